package policy_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// A redirection that writes asks, whatever allows the command before it and wherever it is.
func TestAttackRedirections(t *testing.T) {
	t.Parallel()
	table := newSet(t, policy.Options{Permissions: perms("allow *"), Unasked: policy.UnaskedReading})
	named := newSet(t, policy.Options{Permissions: perms("allow echo *> x", "allow > x", "allow echo*", "allow ls", "allow true", "allow git *", "allow read *"), Unasked: policy.UnaskedReading})
	reading := newSet(t, policy.Options{Unasked: policy.UnaskedReading})
	var standing []policy.Grant
	for _, words := range [][]string{{"echo", "a"}, {"ls"}, {"true"}, {"cat"}, {"git", "log"}, {"exec"}, {"cat", "'<'"}} {
		standing = append(standing, policy.Grant{Tool: "bash", Kind: policy.GrantExact, Dir: "/work", Words: words})
	}
	for _, words := range [][]string{{"echo"}, {"ls"}, {"cat"}, {"git", "log"}} {
		standing = append(standing, policy.Grant{Tool: "bash", Kind: policy.GrantPrefix, Dir: "/work", Words: words})
	}
	for _, text := range []string{
		"echo a > x", "echo a >x", "echo a >> x", "echo a >| x", "echo a &> x", "echo a &>> x", "echo a 2> x", "echo a <> x", "echo a >& x", "echo > x a", "> x", ">x", "> x echo a", "2>x", ": > x", "ls | echo a > x",
		"ls && echo a > x", "{ echo a; } > x", "(ls) > x", "if true; then ls; fi > x", "for f in a; do ls; done > x", "while true; do ls; done >> x", "echo $(ls > x)", "echo `ls > x`",
		"echo a > \"$x\"", "echo a > /dev/null/../x", "echo a > /dev/stdout", "echo a > /dev/nullx", "echo a > \"/dev/null\"x", "echo a > $x/dev/null", "A=1 > x", "bash -c 'ls > x'", "eval 'ls > x'", "echo a > x 2>&1 >/dev/null", "[[ -f x ]] > x",
		"cat <<EOF > x\na\nEOF", "cat <<< a > x", "case a in a) ls;; esac > x", "git log > x", "exec > x", "exec 3> x", "ls > ~/x", "ls > *.x", "read -r a < /dev/tcp/127.0.0.1/1", "ls > /dev/tcp/127.0.0.1/1", "ls > /dev/udp/127.0.0.1/1", "cat < $x",
	} {
		for i, s := range []*policy.Set{table, named, reading} {
			for _, grants := range [][]policy.Grant{nil, standing} {
				r := with(inWork(s, text, nil), grants)
				if got := s.Decide(r); got.Effect == policy.Allow {
					t.Errorf("set %d, grants %v: %q is allowed by %q", i, grants != nil, text, got.Rule)
				}
			}
		}
	}
}

// What writes no file is not asked about, and the reason names the file.
func TestRedirections(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{Permissions: perms("allow *")})
	for _, text := range []string{"echo a >/dev/null", "echo a > /dev/null 2>&1", "echo a 2>&1", "echo a >&2", "echo a 2>&-", "cat < x", "echo a &>/dev/null", "cat <<EOF\na\nEOF", "cat <<< a"} {
		if got := s.Decide(bash(text)); got.Effect != policy.Allow {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := s.Decide(bash("echo a > out.txt")); !strings.Contains(got.Reason.String(), "writes its output to `out.txt`") || !strings.Contains(got.Rule, `permissions.bash[0] "*" allow`) {
		t.Errorf("%+v", got)
	}
	bare := newSet(t, policy.Options{Unasked: policy.UnaskedReading})
	for text, want := range map[string]string{
		"echo hello > notes.txt": "`echo hello > notes.txt` writes its output to `notes.txt`.",
		"make > log.txt":         "No rule allows `make`.",
		"make":                   "No rule allows `make`.",
	} {
		if got := bare.Decide(inWork(bare, text, nil)); got.Effect != policy.Ask || got.Reason.String() != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
}
