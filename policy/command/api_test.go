package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/reason"
)

func TestParseShape(t *testing.T) {
	t.Parallel()
	s := command.Parse(`sudo -u root sh -c 'rm "$X" ~ a*' > out 2>&1`)
	want := []command.Command{
		{Name: "sudo", Words: []string{"sudo", "-u", "root", "sh", "-c", `rm "$X" ~ a*`}, Text: `sudo -u root sh -c rm "$X" ~ a*`},
		{Name: "sh", Words: []string{"sh", "-c", `rm "$X" ~ a*`}, Text: `sh -c rm "$X" ~ a*`, Depth: 1, Via: []string{"sudo"}},
		{Name: "rm", Words: []string{"rm", `"$X"`, "~", "a*"}, Marks: []command.Mark{0, command.MarkExpansion, command.MarkTilde, command.MarkPattern}, Dynamic: true, Text: `rm "$X" ~ a*`, Depth: 2, Via: []string{"sudo", "sh -c"}},
	}
	if diff := cmp.Diff(want, s.Commands); diff != "" {
		t.Errorf("Commands (-want +got):\n%s", diff)
	}
	wantRedirects := []command.Redirect{{Op: ">", Target: "out", Writes: true}, {Op: ">&", Target: "1"}}
	if diff := cmp.Diff(wantRedirects, s.Redirects); diff != "" {
		t.Errorf("Redirects (-want +got):\n%s", diff)
	}
	if !s.Certain() {
		t.Errorf("Certain is false: %q", s.Indirect)
	}
}

func TestProblems(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"echo a\x00b":                          "NUL",
		strings.Repeat("a", command.MaxText+1): "64 KiB",
		strings.Repeat("(", 500):               "nested",
		"FOO=1 sudo \"x":                       "quote",
	} {
		if s := command.Parse(text); !strings.Contains(s.Problem, want) || s.Certain() {
			t.Errorf("Parse(%.20q).Problem = %q, want it to mention %q", text, s.Problem, want)
		}
	}
	for _, text := range []string{"ls\r", "ls \xff"} {
		if s := command.Parse(text); s.Certain() {
			t.Errorf("Parse(%q) is certain", text)
		}
	}
	if _, blocked := command.Blocked(command.Parse("x=1 sudo id; \"a"), nil); !blocked {
		t.Error("a blocked command before a syntax error is not blocked")
	}
}

// The parser has panics of its own. A panic means that the text cannot be parsed, and must not end the process.
func TestPanicIsAProblem(t *testing.T) {
	t.Parallel()
	if problem := command.ParseWithoutFinder("sudo id"); !strings.Contains(problem, "gave up") {
		t.Errorf("the problem is %q", problem)
	}
}

func TestDepthLimit(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		strings.Repeat("env ", 100) + "sudo id", strings.Repeat("eval ", 100) + "sudo id", strings.Repeat("env ", 24) + "find . -exec id ;", strings.Repeat("env ", 24) + "git bisect run id",
		strings.Repeat("eval '"+strings.Repeat("a", 60000)+"';", 1) + strings.Repeat("eval eval ", 20) + strings.Repeat("b", 5000),
	} {
		if command.Parse(text).Certain() {
			t.Errorf("Parse(%.40q…) is certain", text)
		}
	}
}

func TestBlockedAllowed(t *testing.T) {
	t.Parallel()
	for _, allowed := range []string{"nc", "nc ", " NC"} {
		if pattern, blocked := command.Blocked(command.Parse("nc host 1"), []string{allowed}); blocked {
			t.Errorf("allowed %q: still blocked by %q", allowed, pattern)
		}
	}
	for _, entry := range command.DefaultBlocked() {
		text := map[string]string{"rm -rf /": "rm -rf /", "dd if=": "dd if=x", "dd of=": "dd of=x", "curl|bash": "ssh h cat x | bash"}[entry]
		if text == "" {
			text = strings.TrimSpace(entry) + " x"
		}
		s := command.Parse(text)
		if pattern, _ := command.Blocked(s, nil); pattern != entry {
			t.Errorf("Blocked(%q) = %q, want %q", text, pattern, entry)
		}
		if pattern, blocked := command.Blocked(s, []string{entry}); blocked {
			t.Errorf("Blocked(%q) with the entry allowed is still blocked by %q", text, pattern)
		}
	}
	if _, blocked := command.Blocked(command.Parse(strings.Repeat("x", 70)), nil); blocked {
		t.Error("a long name is blocked")
	}
}

func TestConfirmPatterns(t *testing.T) {
	t.Parallel()
	if pattern, ok := command.Confirm(command.Parse("Kubectl APPLY x"), []string{"", "kubectl apply"}); !ok || pattern != "kubectl apply" {
		t.Errorf("Confirm = %q, %v", pattern, ok)
	}
	if pattern, ok := command.Confirm(command.Parse("r''m x"), nil); !ok || pattern != "rm " {
		t.Errorf("Confirm of a quoted name = %q, %v", pattern, ok)
	}
}

func TestReadsOnlyPaths(t *testing.T) {
	t.Parallel()
	paths, ok := command.ReadsOnly(command.Parse("cd src && cat a.go /etc/x | grep -n main - lib/*.go"))
	if diff := cmp.Diff([]string{"src", "a.go", "src/a.go", "/etc/x", "-", "src/-", "lib/*.go", "src/lib/*.go"}, paths); !ok || diff != "" {
		t.Errorf("ReadsOnly: ok %v (-want +got):\n%s", ok, diff)
	}
}

func TestAttackLaterWords(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"choom -n 0 -- ssh host": "network ssh", "mytool sudo.log": "", "mytool 'echo a; sudo id'": "blocked sudo", "mytool --run=sudo": "blocked sudo", "mytool X=/bin/su": "blocked su",
		"mytool -x -- y": "", "gcc -wrapper sudo,id": "blocked sudo", "mytool host": "", "mytool curl.py": "", "mytool nc.openbsd": "blocked nc", "mytool rm -rf /etc": "blocked rm -rf /",
		"mytool rm x": "", "grep sudo x": "", "timeout 5 grep sudo x": "", "mytool '' ''": "", "nc_helper.sh x": "", "mytool 'a b' sudo": "blocked sudo",
	} {
		s := command.Parse(text)
		got := ""
		if pattern, ok := command.Blocked(s, nil); ok {
			got = "blocked " + strings.TrimSpace(pattern)
		} else if name, ok := command.Network(s); ok {
			got = "network " + name
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
		for range s.Later() {
			break // a caller that stops early gets no more
		}
	}
}

// TestUnclear: each script that is not certain has a reason with a code.
func TestUnclear(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]reason.Code{
		"echo " + strings.Repeat("x", command.MaxText): reason.TextLong,
		"echo \x00":                  reason.TextNul,
		strings.Repeat("(", 10_000):  reason.TextBrackets,
		"if":                         reason.TextUnparsed,
		"eval $x":                    reason.GivenUnknown,
		"PYTHONSTARTUP=x python3 -V": reason.SetsPrograms,
	} {
		s := command.Parse(text)
		if got := s.Unclear(); s.Certain() || got.Code != want || !got.Known() {
			t.Errorf("%.20q: %+v, want %s", text, got, want)
		}
	}
}
