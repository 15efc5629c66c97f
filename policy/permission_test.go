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

// TestRuleNamesVariable: a rule that begins with NAME=glob is about commands before which exactly these variables are
// set, beside harmless ones.
func TestRuleNamesVariable(t *testing.T) {
	t.Parallel()
	goRules := []string{"allow GOFLAGS=* go *", "allow go vet*"}
	two := []string{"allow GOFLAGS=-mod=* CC=gcc|clang go *", "allow A=* B=* make"}
	for _, tt := range []struct {
		rules   []string
		command string
		want    policy.Effect
	}{
		{goRules, "GOFLAGS=-race go test ./...", policy.Allow},
		{goRules, "GOFLAGS='-race' go test ./... && GOFLAGS= go build", policy.Allow},
		{goRules, "CGO_ENABLED=0 GOFLAGS=-race LANG=C go test", policy.Allow},
		{goRules, "cd sub && GOFLAGS=-race go test", policy.Ask}, // no rule allows cd
		{goRules, "go vet", policy.Allow},
		{goRules, "go test", policy.Ask}, // it does not set the variable
		{goRules, "CGO_ENABLED=0 go test", policy.Ask},
		{goRules, "GOFLAGS=-race go vet", policy.Allow},
		{goRules, "goflags=-race go test", policy.Ask},
		{goRules, "GOFLAGS=-race make", policy.Ask},
		{goRules, "'GOFLAGS=-race' go test", policy.Ask}, // the name of a program
		{goRules, "env GOFLAGS=-race go test", policy.Ask},
		{goRules, "export GOFLAGS=-race; go test", policy.Ask},
		{goRules, "GOFLAGS=-race go test -exec ./evil", policy.Ask},
		{two, "CC=gcc GOFLAGS=-mod=mod go build", policy.Ask}, // gcc|clang is no list
		{[]string{"allow A=1 make", "allow A=2 make"}, "A=2 make", policy.Allow},
		{two, "B=x A=y make", policy.Allow},
		{two, "A=y make", policy.Ask},
		{two, "A=y B=x C=z make", policy.Ask},
		{[]string{"allow CGO_ENABLED=0 go *"}, "CGO_ENABLED=0 go test", policy.Allow},
		{[]string{"allow CGO_ENABLED=0 go *"}, "CGO_ENABLED=1 go test", policy.Ask},
		{[]string{"allow A=* sh *", "allow A=* ls"}, "A=1 sh -c ls", policy.Allow},
		{[]string{"allow A=* sh *", "allow ls"}, "A=1 sh -c ls", policy.Ask}, // ls gets it too
		{[]string{"allow A=* timeout *", "allow ls"}, "A=1 timeout 5 ls", policy.Ask},
		{[]string{"allow A=* echo*", "allow ls"}, "A=1 echo $(ls)", policy.Allow}, // ls does not get it
		{[]string{"allow *"}, "A=1 make", policy.Ask},
		{[]string{"deny A=* make*", "allow *"}, "LANG=C A=$x make -k", policy.Deny},
		{[]string{"deny A=bad make*", "allow A=* make*"}, "true; A=bad /usr/bin/make -k", policy.Deny},
		{[]string{"deny A=bad make*", "allow A=* make*"}, "A=good make -k", policy.Allow},
		{[]string{"ask PATH=* make", "allow *"}, "PATH=/x make", policy.Ask},
		{[]string{"deny LD_PRELOAD=*", "allow *"}, "LD_PRELOAD=x make", policy.Deny}, // the whole text, as ever
	} {
		d := newSet(t, policy.Options{Permissions: perms(tt.rules...)}).Decide(everydayCall(tt.command))
		if d.Effect != tt.want {
			t.Errorf("%q, %q: %+v, want %s", tt.rules, tt.command, d, tt.want)
		}
	}
}

// TestAttackNamedVariable: a rule covers no value but a known one without blanks, of a variable that it names.
func TestAttackNamedVariable(t *testing.T) {
	t.Parallel()
	set := newSet(t, policy.Options{Permissions: perms("allow GOFLAGS=-mod=* go *", "allow true")})
	for _, text := range []string{
		"GOFLAGS='-mod=mod -toolexec=./evil' go build", `GOFLAGS=-mod=mod\ -toolexec=./evil go build`, "GOFLAGS=-mod=mod$'\\t'-toolexec=./evil go build",
		"GOFLAGS='-mod=mod\n-toolexec=./evil' go build", "GOFLAGS=-mod=$x go build", `GOFLAGS="-mod=$x" go build`, "GOFLAGS=-mod=$(cat x) go build", "GOFLAGS=-mod=`x` go build",
		"GOFLAGS=-mod=mod GOFLAGS=-toolexec=./evil go build", "GOFLAGS=-toolexec=./evil GOFLAGS=-mod=mod go build", "GOFLAGS=-mod=mod GOENV=./evil go build",
		"GOENV=./evil GOFLAGS=-mod=mod go build", "GOFLAGS+=-mod=mod go build", "GOFLAGS=(-mod=mod) go build", "GOFLAGS[0]=-mod=mod go build", "GOFLAGS=-MOD=mod go build",
		"GOFLAGS=-mod=mod PATH=. go build", "GOFLAGS=-mod=mod LD_PRELOAD=./x go build", "GOFLAGS=-mod=~/x go build", "GOFLAGS=-mod=mod go build; GOFLAGS=-toolexec=./evil go build",
		"GOFLAGS=-mod=mod go build && go build", "GOFLAGS=-mod=mod; go build", "GOFLAGS=-mod=mod bash -c 'GOENV=./evil go build'", "GOFLAGS=-mod=mod go build > go.mod",
	} {
		if d := set.Decide(everydayCall(text)); d.Effect != policy.Ask {
			t.Errorf("%q is %s: %s", text, d.Effect, d.Rule)
		}
	}
	d := set.Decide(everydayCall("GOFLAGS=-mod=mod GOENV=./evil go build"))
	if want := "`GOENV` is set, which may decide what programs do, and the rule does not name it with this value."; d.Reason.String() != want {
		t.Errorf("the reason is %q, want %q", d.Reason.String(), want)
	}
	_, err := policy.New(policy.Options{Tools: stated(), Permissions: perms("allow PATH=* LD_PRELOAD=* go *")})
	if err == nil || !strings.Contains(err.Error(), "PATH decides what runs") || !strings.Contains(err.Error(), "LD_PRELOAD decides") {
		t.Errorf("a rule that allows any PATH: %v", err)
	}
}
