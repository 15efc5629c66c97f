package policy_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

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
