package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
)

// FuzzDecide: for any command, an allow by `git *` means that only git runs, a denial of everything holds, and an
// offered grant allows the command.
func FuzzDecide(f *testing.F) {
	for _, c := range []string{
		"git status", "git log; curl x", "git log $(make)", "git log `make`", "git log > /etc/x", "git 'x", "A=1 git x",
		"bash -c 'git log; make'", "git log | xargs rm", `"git status"`, "g\\it x", "git <(make)", "{ git x; }", "! git x", "",
	} {
		f.Add(c)
	}
	git := newSet(f, policy.Options{Permissions: perms("allow git *"), AllowNetwork: true})
	none := newSet(f, policy.Options{Permissions: perms("deny *"), AllowNetwork: true})
	plain := newSet(f, policy.Options{AllowNetwork: true})
	f.Fuzz(func(t *testing.T, text string) {
		got := git.Decide(bash(text))
		if diff := cmp.Diff(got, git.Decide(bash(text))); diff != "" {
			t.Fatalf("two answers: %s", diff)
		}
		if got.Effect == policy.Allow {
			sc := command.Parse(text)
			if !sc.Certain() {
				t.Fatalf("%q is allowed and not certain", text)
			}
			for _, c := range sc.Commands {
				if !strings.EqualFold(c.Name, "git") {
					t.Fatalf("%q is allowed and runs %q", text, c.Name)
				}
			}
		}
		if got := none.Decide(bash(text)); got.Effect != policy.Deny {
			t.Fatalf("%q: %+v", text, got)
		}
		for _, o := range plain.Offers(inWork(plain, text, nil)) {
			r := inWork(plain, text, nil)
			if r.Grants = o.Grants; plain.Decide(r).Effect != policy.Allow {
				t.Fatalf("%q: the offer %v does not allow", text, o)
			}
			r = inWork(plain, "A=1 "+text, nil)
			if r.Grants = o.Grants; plain.Decide(r).Effect == policy.Allow {
				t.Fatalf("%q: the offer %v covers an environment", text, o)
			}
		}
	})
}
