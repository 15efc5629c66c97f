package file_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
)

func TestGrep(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	for name, content := range map[string]string{
		"a.txt": "first Needle\nsecond\nneedle in line three\n", "d/b.txt": "no\r\nneedle at the end\r\n", "d/c.txt": "straw", ".hidden": "needle", "target/x": "needle", "node_modules/x": "needle",
		"bin": "needle\x00", "latin": "needle caf\xe9\n", "z/target": "needle in a file called target", "kelvin": "300 \u212a\n", "s": "\u017f\n",
		"late": strings.Repeat("line\n", 5000) + "Gr\xf6\xdfe\n", "wide": "\xff\xfea\x00\n\x00G\x00r\x00\xf6\x00\xdf\x00e\x00",
	} {
		b.put(name, content)
	}
	b.link(b.outside, "out")
	b.link("a.txt", "link")
	b.put(filepath.Join(b.outside, "secret.txt"), "SECRET outside")
	rest := "\n[1 file is not UTF-8: decoded before the search]"
	for _, tc := range []struct {
		in   args
		want string
	}{
		{args{"pattern": "needle"}, "a.txt:3: needle in line three\nd/b.txt:2: needle at the end\nlatin:1: needle café\nz/target:1: needle in a file called target" + rest},
		{args{"pattern": "needle", "case_sensitive": false, "path": "a.txt"}, "a.txt:1: first Needle\na.txt:3: needle in line three"},
		{args{"pattern": "NEEDLE", "case_sensitive": false, "path": "d"}, "d/b.txt:2: needle at the end"},
		{args{"pattern": "end$"}, "d/b.txt:2: needle at the end"},
		{args{"pattern": `^n.*e\z`, "path": "a.txt"}, "a.txt:3: needle in line three"},
		{args{"pattern": `\Asecond`}, "a.txt:2: second"},
		{args{"pattern": "^$", "path": "a.txt"}, "No matches for ^$"},
		{args{"pattern": "[^x]*", "path": "d"}, "d/b.txt:1: no\nd/b.txt:2: needle at the end\nd/c.txt:1: straw"},
		{args{"pattern": "(?s)second.needle"}, "No matches for (?s)second.needle"},
		{args{"pattern": "(straw|second)"}, "a.txt:2: second\nd/c.txt:1: straw"},
		{args{"pattern": "300 k", "case_sensitive": false}, "kelvin:1: 300 \u212a"},
		{args{"pattern": "^s$", "case_sensitive": false}, "s:1: \u017f"},
		{args{"pattern": "SECRET"}, "No matches for SECRET"},
		{args{"pattern": "needle", "path": ".hidden"}, ".hidden:1: needle"},
		{args{"pattern": "Größe"}, "late:5001: Größe\nwide:2: Größe\n[2 files are not UTF-8: decoded before the search]"},
		{args{"pattern": "Größe", "path": "wide"}, "wide:2: Größe\n[1 file is not UTF-8: decoded before the search]"},
		{args{"pattern": "Gr..e", "path": "late"}, "late:5001: Größe\n[1 file is not UTF-8: decoded before the search]"},
	} {
		if diff := cmp.Diff(tc.want, b.run("grep", tc.in)); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tc.in, diff)
		}
	}
	for pattern, want := range map[string]string{"(": "not a valid regular expression", "": "empty", "a\nb": "line break", strings.Repeat("a", 2000): "at most", `(a{1000}){1000}`: "valid"} {
		b.refuse("grep", args{"pattern": pattern}, tools.InvalidParameters, want)
	}
	b.refuse("grep", args{"pattern": "x", "path": "missing"}, tools.PermanentFailure, "does not exist")
}

// The result is the first hundred matches in order, whichever searcher is faster.
func TestGrepCap(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	for i := range 300 {
		b.put(fmt.Sprintf("d%02d/f%03d", i/20, i), "x\nneedle\n")
	}
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprintf("d%02d/f%03d:2: needle", i/20, i))
	}
	want = append(want, "[more results: only the first 100 are shown; narrow the pattern or the path]")
	for range 5 {
		if diff := cmp.Diff(strings.Join(want, "\n"), b.run("grep", args{"pattern": "needle"})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	}
	b.put("one", strings.Repeat("needle\n", 200))
	if got := b.run("grep", args{"pattern": "needle", "path": "one"}); strings.Count(got, "\n") != 100 || !strings.Contains(got, "one:100: needle\n[more results") {
		t.Errorf("got %s", got)
	}
}

// Files beyond the buffer, lines beyond what is shown.
func TestGrepLarge(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	line := strings.Repeat("x", 99) + "\n"
	b.put("long", strings.Repeat(line, 60_000)+"the needle\n"+strings.Repeat(line, 100)+"needle again")
	if got := b.run("grep", args{"pattern": "needle"}); got != "long:60001: the needle\nlong:60102: needle again" {
		t.Errorf("got %q", got)
	}
	b.put("long", strings.Repeat("ä", 500)+"needle"+strings.Repeat("ö", 500)+"\n")
	got := b.run("grep", args{"pattern": "needle"})
	if !regexp.MustCompile(`^long:1: … ä+needleö+ …$`).MatchString(got) || len(got) > 450 {
		t.Errorf("got %q", got)
	}
}

// One line as long as a file is searched in pieces and shown once, wherever it matches, and the result says so.
func TestGrepHugeLine(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	note := "\n[1 line is longer than 4 MiB: searched in pieces of that size, as if each were a line]"
	long := strings.Repeat("äx", 200<<20/3)
	b.put("minified", "first\n"+long+"needle"+long[:9<<20]+"needle"+long[:3]+"\nlast needle\n")
	for _, tc := range []struct{ pattern, want string }{
		{"needle", "^minified:2: … [äx]+needle[äx]+ …\nminified:3: last needle"},
		{"n[e]+dle.x", "^minified:2: … [äx]+needleäx[äx]+ …$"},
		{"NEEDLE", "^No matches for NEEDLE"},
	} {
		got, ok := strings.CutSuffix(b.run("grep", args{"pattern": tc.pattern}), note)
		if !ok || !regexp.MustCompile(tc.want).MatchString(got) || len(got) > 1000 {
			t.Errorf("%s: %.1000q", tc.pattern, got)
		}
	}
	for cut := range 20 { // a match at the border of two pieces
		b.put("minified", strings.Repeat("x", 4<<20-10+cut)+"needle"+strings.Repeat("ä", 5<<20))
		if got := b.run("grep", args{"pattern": "needle", "path": "minified"}); !strings.HasPrefix(got, "minified:1: … ") || strings.Count(got, "needle") != 1 {
			t.Fatalf("at %d: %.1000q", cut, got)
		}
	}
}

// The time holds within a line and within a buffer, for one file and for many, whatever an expression costs: one of
// 4000 instructions takes some 20 µs for each byte. What was found before is shown.
func TestGrepStopsInTime(t *testing.T) {
	t.Parallel()
	b := newBox(t, func(_ *box, o *file.Options) { o.MaxTime = 100 * time.Millisecond })
	b.put("d/line", strings.Repeat("x", 8<<20))
	b.put("d/lines", strings.Repeat("x\n", 4<<20))
	for _, pattern := range []string{strings.Repeat(`\pL{40}`, 100) + `\d`, "x[^y]*y", "(x+x+)+y"} {
		for _, path := range []string{"d", "d/line", "d/lines"} {
			for _, sensitive := range []bool{true, false} {
				start := time.Now()
				got := b.run("grep", args{"pattern": pattern, "path": path, "case_sensitive": sensitive})
				if took := time.Since(start); took > 10*time.Second {
					t.Errorf("%s in %s: %s", pattern, path, took)
				}
				if strings.HasPrefix(pattern, `\p`) && !strings.Contains(got, "[the search is not complete, because the time is over") {
					t.Errorf("%s in %s: %s", pattern, path, got)
				}
			}
		}
	}
}

func TestGrepIgnore(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	for name, content := range map[string]string{
		".gitignore": "*.log\nbuild/\n/top\n", "a.log": "needle", "build/x": "needle", "top": "needle", "d/top": "needle", "d/.gitignore": "!keep.log\nlocal\n", "d/keep.log": "needle", "d/local": "needle",
		"repo/.git/HEAD": "", "repo/b.log": "needle", "d/repo/.git/HEAD": "", "d/repo/.gitignore": "y\n", "d/repo/x.log": "needle", "d/repo/y": "needle",
	} {
		b.put(name, content)
	}
	for path, want := range map[string]string{
		".": "d/keep.log:1: needle\nd/repo/x.log:1: needle\nd/top:1: needle\nrepo/b.log:1: needle", "d": "d/keep.log:1: needle\nd/repo/x.log:1: needle\nd/top:1: needle",
		"build": "build/x:1: needle", "a.log": "a.log:1: needle", "repo": "repo/b.log:1: needle",
	} {
		if diff := cmp.Diff(want, b.run("grep", args{"pattern": "needle", "path": path})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	b.link(filepath.Join(b.outside, "secret.txt"), "e/.gitignore") // as in git, a link is no .gitignore
	b.put("e/SECRET outside", "needle")
	if got := b.run("grep", args{"pattern": "needle", "path": "e"}); got != "e/SECRET outside:1: needle" {
		t.Errorf("got %q", got)
	}
}

// grep -r finds the same lines, for patterns that take every way through the matcher.
func TestGrepLikeGrep(t *testing.T) {
	t.Parallel()
	grep, err := exec.LookPath("grep")
	if err != nil {
		t.Skip("grep is not here")
	}
	b := newBox(t, nil)
	words := []string{"alpha", "Beta", "gamma ray", "DELTA_9", "(x)", "k9", "Kappa", "end.", "tab\there", "", "alphabet", "beta-blocker", "a.b.c", "ss", "SS"}
	for i := range 12 {
		var text strings.Builder
		for j := range 40 {
			text.WriteString(words[(i*7+j*j)%len(words)] + " " + words[(i+j*3)%len(words)] + "\n")
		}
		b.put(fmt.Sprintf("d%d/f%02d.txt", i%3, i), text.String())
	}
	for _, pattern := range []string{
		"DELTA_9 DELTA", "gamma ray k9", `\(x\) \(x\)`, "[Aa]lphabet tab", "(alphabet|gamma).*Kappa", "^Beta Kappa", "k9 $", "[0-9] end", "ss S+ *$", "(a|b)[.]c k", "be{1}ta-b.*ss", "x?Kappa +SS", "^ tab", "zzz", "(alpha)+bet +ss",
	} {
		for _, sensitive := range []bool{true, false} {
			flags := []string{"-rnE"}
			if !sensitive {
				flags = append(flags, "-i")
			}
			cmd := exec.CommandContext(t.Context(), grep, append(flags, "--", pattern, ".")...)
			cmd.Dir = b.ws
			cmd.Env = append(os.Environ(), "LC_ALL=C")
			out, err := cmd.Output()
			var exit *exec.ExitError
			if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) {
				t.Fatal(err)
			}
			want := map[string]int{}
			for line := range bytes.Lines(out) {
				file, rest, _ := strings.Cut(strings.TrimPrefix(strings.TrimSuffix(string(line), "\n"), "./"), ":")
				number, text, _ := strings.Cut(rest, ":")
				want[file+":"+number+": "+text]++
			}
			got := map[string]int{}
			if text := b.run("grep", args{"pattern": pattern, "case_sensitive": sensitive}); !strings.HasPrefix(text, "No matches") {
				lines := strings.Split(text, "\n")
				if !slices.IsSortedFunc(lines, func(x, y string) int { return strings.Compare(x[:10], y[:10]) }) {
					t.Errorf("%s: not sorted", pattern)
				}
				for _, l := range lines {
					got[l]++
				}
			}
			if len(want) > 100 {
				t.Fatalf("%s gives %d lines: too many to compare", pattern, len(want))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, case %t (-grep +ours):\n%s", pattern, sensitive, diff)
			}
		}
	}
}

// Whatever the pattern, the same lines are found as by running the expression over every line.
func FuzzGrep(f *testing.F) {
	for _, p := range []string{"a", "A", "(a|bc)d", "[ab]c*", "^a$", "x{2,3}y", "(?i)k", "\\bfoo", "a.*b", "ab|cd|[ef]g", "$", "(?:)", "ſ", "é", "\\pL", "(a?)+b"} {
		f.Add(p, "foo Bar\nabcd\nxxy K \u212a\n\naé\r\nk", true)
		f.Add(p, "A\nBC d\nſs\r\nÉ", false)
	}
	b := newBox(f, nil)
	run := b.tools["grep"].Run
	f.Fuzz(func(t *testing.T, pattern, content string, sensitive bool) {
		flags := "(?i)"
		if sensitive {
			flags = ""
		}
		re, err := regexp.Compile(flags + "(?:" + pattern + ")")
		if _, alone := regexp.Compile(pattern); err != nil || alone != nil || pattern == "" || strings.Contains(pattern, "\n") || strings.ContainsRune(pattern, 0xfffd) || len(content) > 2000 || content == "" {
			t.Skip()
		}
		content = strings.ReplaceAll(strings.ToValidUTF8(content, "?"), "\x00", "?")
		if err := os.WriteFile(b.path("f"), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		var want []string
		for i, line := range strings.Split(strings.TrimSuffix(content, "\n"), "\n") {
			if line = strings.TrimSuffix(line, "\r"); re.MatchString(line) && len(line) < 400 {
				want = append(want, fmt.Sprintf("f:%d: %s", i+1, line))
			}
		}
		raw := fmt.Appendf(nil, `{"pattern":%s,"path":"f","case_sensitive":%t}`, quoted(t, pattern), sensitive)
		res, err := run(t.Context(), &tools.Call{Args: raw})
		if err != nil {
			t.Skip() // too long
		}
		got := strings.Split(res.Text, "\n")
		if strings.HasPrefix(res.Text, "No matches for ") {
			got = nil
		}
		if len(want) <= 100 && !strings.Contains(res.Text, "…") && !slices.Equal(want, got) {
			t.Errorf("%q in %q: got %q, want %q", pattern, content, got, want)
		}
	})
}
