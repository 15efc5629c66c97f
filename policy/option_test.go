package policy_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// TestAttackOptionUnderRule: a rule, or a grant, for a program allows its ordinary use and no option that runs others,
// writes elsewhere or works elsewhere. Package command tests the whole list of options.
func TestAttackOptionUnderRule(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"git diff --output=/tmp/x", "git diff --outp=/tmp/x", "git -C /elsewhere status", "git -c core.fsmonitor=./evil status", "git clone -u ./evil . y",
		"tar xf a.tar -C /elsewhere", "sort -uo x y", "make -C /elsewhere", "make -f x", "make SHELL=./evil", "find . -delete", "sed -i s/a/b/ x",
		"awk '{print > \"/tmp/x\"}' y", "rsync -ave evil a b", "npm --prefix /x i", "go test -exec ./evil", "docker run -v /:/host x", "ssh -oProxyCommand=evil h",
		"git log $x", "env -C / ls", "timeout 5 git diff --output=x", "git status && git diff --output=x", "git diff --output=x | head",
	} {
		rules := perms("allow git *", "allow tar *", "allow sort *", "allow make *", "allow find *", "allow sed *", "allow awk *", "allow rsync *", "allow npm *", "allow go *",
			"allow docker *", "allow ssh *", "allow env *", "allow timeout *", "allow ls*", "allow head*")
		d := newSet(t, policy.Options{AllowNetwork: true, Permissions: rules}).Decide(everydayCall(text))
		if d.Effect != policy.Ask {
			t.Errorf("%q is %s: %s", text, d.Effect, d.Rule)
		}
		plain := newSet(t, policy.Options{AllowNetwork: true})
		granted := inWork(plain, text, nil)
		for _, p := range rules["bash"] {
			words := []string{strings.Trim(p.Pattern, " *")}
			for _, more := range [][]string{nil, {"diff"}, {"status"}, {"clone"}, {"log"}, {"test"}} {
				granted.Grants = append(granted.Grants, policy.Grant{Tool: "bash", Kind: policy.GrantPrefix, Words: append(words[:1:1], more...), Dir: "/work"})
			}
		}
		if d := plain.Decide(granted); d.Effect != policy.Ask {
			t.Errorf("%q with grants is %s: %s", text, d.Effect, d.Rule)
		}
	}
}

// TestRuleNamesOption: a pattern that names the option, one without a star, and one that names no program keep their
// effect.
func TestRuleNamesOption(t *testing.T) {
	t.Parallel()
	tests := []struct {
		rules   []string
		command string
		want    policy.Effect
		reason  string
	}{
		{[]string{"allow git *"}, "git diff --output=x", policy.Ask, "`--output` of git diff writes a file, and the rule does not name it."},
		{[]string{"allow git diff --output=out/*"}, "git diff --output=out/x", policy.Allow, ""},
		{[]string{"allow git diff --output*"}, "git diff --output=out/x", policy.Allow, ""},
		{[]string{"allow git -C * status"}, "git -C sub status", policy.Allow, ""},
		{[]string{"allow git -C * diff*"}, "git -C sub diff --output=x", policy.Ask, "`--output`"},
		{[]string{"allow git -*"}, "git -C sub status", policy.Ask, "`-C`"},
		{[]string{"allow git *", "allow git -C * status"}, "git -C sub status", policy.Allow, ""},
		{[]string{"allow git *", "deny git -C*"}, "git -C sub status", policy.Deny, ""},
		{[]string{"allow git -C sub diff --output=x"}, "git -C sub diff --output=x", policy.Allow, ""},
		{[]string{"allow *"}, "git -C sub status", policy.Allow, ""},
		{[]string{"allow * diff *"}, "git diff --output=x", policy.Allow, ""},
		{[]string{"allow make -C * test"}, "make -C /srv/x test", policy.Allow, ""},
		{[]string{"ask git *"}, "git diff --output=x", policy.Ask, "A rule wants a person"},
	}
	for _, tt := range tests {
		d := newSet(t, policy.Options{Permissions: perms(tt.rules...)}).Decide(everydayCall(tt.command))
		if d.Effect != tt.want || !strings.Contains(d.Reason.String(), tt.reason) {
			t.Errorf("%q, %q: %+v, want %s with %q", tt.rules, tt.command, d, tt.want, tt.reason)
		}
	}
}

// TestAlwaysCoversOption: a person may permanently allow one command with such an option; the grant is for exactly this
// command.
func TestAlwaysCoversOption(t *testing.T) {
	t.Parallel()
	for _, rules := range [][]string{{"allow git *"}, {"deny nothing*"}} {
		set := newSet(t, policy.Options{Permissions: perms(rules...)})
		r := inWork(set, "git diff --output=x", nil)
		r.Grants = offered(t, set, r, policy.OfferExact)
		if len(r.Grants) != 1 || set.Decide(r).Effect != policy.Allow {
			t.Errorf("%q: always offers %v, and decides %+v with it", rules, r.Grants, set.Decide(r))
		}
	}
}

// TestRepeatedCommand: a command that occurs twice in a script is decided like a single one. One that only looks the
// same is different.
func TestRepeatedCommand(t *testing.T) {
	t.Parallel()
	set := newSet(t, policy.Options{Permissions: perms("deny rm *", "allow git *")})
	for text, want := range map[string]policy.Effect{
		"git status; git status":                    policy.Allow,
		"git status; rm x; git status; rm x":        policy.Deny,
		"git diff '$x'; git diff $x":                policy.Ask,
		"git diff $x; git diff '$x'":                policy.Ask,
		"git diff '--output=x y'; git diff x":       policy.Ask,
		"git log 'a b'; git log a b; git log 'a b'": policy.Allow,
		"''; git status":                            policy.Ask,
	} {
		if d := set.Decide(everydayCall(text)); d.Effect != want {
			t.Errorf("%q is %s: %s", text, d.Effect, d.Rule)
		}
	}
}

// BenchmarkDecideOptions decides a 1 KB command by 256 rules when all of its options are looked up.
func BenchmarkDecideOptions(b *testing.B) {
	lines := make([]string, 0, 256)
	for i := range 253 {
		lines = append(lines, "deny forbidden"+strings.Repeat("x", i)+"*")
	}
	text := strings.Repeat("git log --oneline --graph --since='2 weeks ago' -5 && go test -count=1 -run TestFoo ./... && make -j4 test; ", 9)
	r := bash(text + "git log -S " + strings.Repeat("x", 1024-len(text)-11))
	decides(b, policy.Options{Permissions: perms(append(lines, "allow git *", "allow go *", "allow make *")...)}, r, policy.Allow)
}
