package pathrule_test

import (
	"os"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/gram"
	"github.com/zephbot/zephbot/policy/pathrule"
)

// row is one line of testdata/paths.txt.
type row struct {
	want        string
	deny, allow []string
	path, why   string
}

func globs(s string) []string {
	if s = strings.TrimSpace(s); s == "-" {
		return nil
	}
	return strings.Fields(s)
}

func rows(t testing.TB) []row {
	t.Helper()
	data, err := os.ReadFile("testdata/paths.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []row
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) != 5 {
			t.Fatalf("row with %d fields: %q", len(f), line)
		}
		r := row{
			want: strings.TrimSpace(f[0]), deny: globs(f[1]), allow: globs(f[2]),
			path: strings.TrimSpace(f[3]), why: strings.TrimSpace(f[4]),
		}
		if strings.HasPrefix(r.path, `"`) {
			if r.path, err = strconv.Unquote(r.path); err != nil {
				t.Fatalf("row %q: %v", line, err)
			}
		}
		out = append(out, r)
	}
	return out
}

func TestDenied(t *testing.T) {
	t.Parallel()
	all := rows(t)
	if len(all) < 60 {
		t.Fatalf("only %d rows", len(all))
	}
	for _, r := range all {
		t.Run(strconv.Quote(r.path)+" "+r.why, func(t *testing.T) {
			t.Parallel()
			rules, err := pathrule.New(r.deny, r.allow)
			if err != nil {
				t.Fatal(err)
			}
			rule, denied := rules.Denied(r.path)
			if denied != (r.want == "deny") {
				t.Errorf("deny %q allow %q: denied %t by %q, want %s", r.deny, r.allow, denied, rule, r.want)
			}
			if denied != (rule != "") {
				t.Errorf("denied %t with rule %q", denied, rule)
			}
		})
	}
}

func TestDeniedNamesTheGlob(t *testing.T) {
	t.Parallel()
	rules, err := pathrule.New([]string{"/a", "/root/*"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if rule, _ := rules.Denied("/root/x"); rule != "/root/*" {
		t.Errorf("rule %q", rule)
	}
	if rule, _ := rules.Denied("x"); rule != "not a canonical path" {
		t.Errorf("rule %q", rule)
	}
}

func TestNewReportsEveryWrongGlob(t *testing.T) {
	t.Parallel()
	_, err := pathrule.New(
		[]string{"", "relative/x", "~/.ssh/*", "/a/[b", "/a/[]", "/a/[^b]", "/a/[c-a]", "/a/[+-9]", "/a/[/]", "/a/{b", "/a/{b,{c}}", "/ok", "/a/../b", "/a//b", "/a/.", "/\xff", "/a/["},
		[]string{"/ok", "x", "/a/" + strings.Repeat("?", 1100), "/b"},
	)
	if err == nil {
		t.Fatal("wrong globs passed")
	}
	for i, want := range []string{
		"deny_read[0]: \"\": the pattern is empty", "deny_read[1]: ", "deny_read[2]: ", "not closed by ]", "deny_read[4]: ",
		"negated by [!…]", "wrong way round", "deny_read[7]: ", "may not contain /", "not closed by }", "nested",
		"deny_read[12]: ", "deny_read[13]: ", "deny_read[14]: ", "not valid text", "deny_read[16]: ", "tools.file.allow_read[1]: ", "at most 1024",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %q is missing in:\n%v", i, want, err)
		}
	}
	if strings.Contains(err.Error(), "deny_read[11]") || strings.Contains(err.Error(), "allow_read[0]") {
		t.Errorf("a good glob is reported:\n%v", err)
	}
}

func TestInside(t *testing.T) {
	t.Parallel()
	tests := []struct {
		root, path string
		want       bool
	}{
		{"/work", "/work", true},
		{"/work", "/work/", true},
		{"/work/", "/work/a", true},
		{"/work", "/work/a/../b", true},
		{"/work", "/work/../etc", false},
		{"/work", "/workshop", false},
		{"/work", "/", false},
		{"/", "/etc", true},
		{"/work/a/..", "/work/b", true},
		{"/work", "/Work/a", false},
		{"/work", "work/a", false},
		{"work", "/work/a", false},
		{"", "", false},
		{"", "/a", false},
	}
	for _, tt := range tests {
		if got := pathrule.Inside(tt.root, tt.path); got != tt.want {
			t.Errorf("Inside(%q, %q) = %t", tt.root, tt.path, got)
		}
	}
}

// FuzzDenied: nothing panics, an exact deny holds in every case, and everything below a denied path is denied.
func FuzzDenied(f *testing.F) {
	for _, r := range rows(f) {
		f.Add(strings.Join(r.deny, " "), strings.Join(r.allow, " "), r.path)
	}
	f.Fuzz(func(t *testing.T, deny, allow, p string) {
		rules, err := pathrule.New(strings.Fields(deny), strings.Fields(allow))
		if err != nil {
			return
		}
		if len(strings.Fields(deny)) == 0 {
			if _, denied := rules.Denied(p); denied {
				t.Fatalf("%q denied without rules", p)
			}
			return
		}
		if !path.IsAbs(p) || path.Clean(p) != p {
			if _, denied := rules.Denied(p); !denied {
				t.Fatalf("%q is not canonical and passed", p)
			}
			return
		}
		bare, err := pathrule.New(strings.Fields(deny), nil)
		if err != nil {
			t.Fatal(err)
		}
		_, with := rules.Denied(p)
		_, without := bare.Denied(p)
		if with && !without {
			t.Fatalf("an exception denies %q", p)
		}
		if without && p != "/" {
			if _, below := bare.Denied(p + "/x"); !below {
				t.Fatalf("%q is denied, what is below is not, by %q", p, deny)
			}
		}
	})
}

// TestNarrow: the narrowed rules say the same about the paths they were narrowed to.
func TestNarrow(t *testing.T) {
	t.Parallel()
	r, err := pathrule.New([]string{"*/Secret.txt", "/etc/*", "*.{pem,key}", "*[a-c]x", "/srv/über/*", "*"[:1] + "/k"}, []string{"/etc/motd"})
	if err != nil {
		t.Fatal(err)
	}
	for _, paths := range [][]string{
		{"/w/secret.TXT", "/w/other"}, {"/etc/passwd", "/etc/motd"}, {"/w/a.pem"}, {"/w/ax"}, {"/w/dx"}, {"/srv/uber/x"}, {"/w/K"}, {},
	} {
		var hay gram.Set
		for _, p := range paths {
			hay.Add(strings.ToLower(p))
		}
		n := r.Narrow(&hay)
		for _, p := range paths {
			want, wantDenied := r.Denied(p)
			got, denied := n.Denied(p)
			if got != want || denied != wantDenied {
				t.Errorf("%s: %q %v, want %q %v", p, got, denied, want, wantDenied)
			}
		}
	}
	if got := r.Denies(); len(got) != 6 || got[1] != "/etc/*" {
		t.Errorf("denies %q", got)
	}
	if _, denied := r.Denied("/w/\u212a"); !denied {
		t.Error("the Kelvin sign is a k in another case")
	}
}

// TestExceptionBelow: an allow glob is an exception only for the directories above what it can match.
func TestExceptionBelow(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		allow, dir string
		want       bool
	}{
		{"/etc/hostname", "/etc", true},
		{"/etc/hostname", "/", true},
		{"/etc/hostname", "/root", false},
		{"/etc/hostname", "/etc/hostname", false},
		{"/etc/hostname", "/et", false},
		{"/srv/*/pub", "/srv", true},
		{"/srv/*/pub", "/srv/a", true},
		{"/srv/*/pub", "/srv/a/deep", true}, // not really, but it need not be exact
		{"/srv/p*", "/srv/private", true},
		{"/srv/p*", "/srv/other", false},
		{"**/notes.md", "/root", true},
	} {
		r, err := pathrule.New([]string{"*"}, []string{tc.allow})
		if err != nil {
			t.Fatal(err)
		}
		if got := r.ExceptionBelow(tc.dir); got != tc.want {
			t.Errorf("%s below %s: %v", tc.allow, tc.dir, got)
		}
	}
	if (&pathrule.Rules{}).ExceptionBelow("/") {
		t.Error("without allow globs there is an exception")
	}
}
