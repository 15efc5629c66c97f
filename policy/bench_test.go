package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// kilobyte is a command of 1 KB with several simple commands.
func kilobyte() string {
	text := "git status && cd src && go test -run 'TestOne|TestTwo' ./... | tail -20; "
	return text + "grep -n " + strings.Repeat("pattern-in-a-long-line ", (1024-len(text)-8)/23+1)
}

// BenchmarkDecidePermissions decides a 1 KB command by 256 permission rules, of
// which none matches.
func BenchmarkDecidePermissions(b *testing.B) {
	list := make([]policy.Permission, 256)
	for i := range list {
		list[i] = policy.Permission{Pattern: fmt.Sprintf("*forbidden%d*", i), Action: policy.Deny}
	}
	s := newSet(b, policy.Options{Permissions: map[string][]policy.Permission{"bash": list}})
	r := bash(kilobyte())
	b.ReportAllocs()
	for b.Loop() {
		if s.Decide(r).Effect != policy.Ask {
			b.Fatal("decided otherwise")
		}
	}
}

// BenchmarkDecidePolicy does the same by 256 outer rules with paths and
// expressions.
func BenchmarkDecidePolicy(b *testing.B) {
	list := make([]policy.Rule, 256)
	for i := range list {
		list[i] = deny("bash")
		if i%2 == 0 {
			list[i].Paths = []string{fmt.Sprintf("/etc/%d/*", i)}
		} else {
			list[i].ArgsMatch = fmt.Sprintf(".*forbidden%d.*", i)
		}
	}
	s := newSet(b, open(rules(policy.Allow, list...)))
	r := bash(kilobyte())
	b.ReportAllocs()
	for b.Loop() {
		if s.Decide(r).Effect != policy.Ask {
			b.Fatal("decided otherwise")
		}
	}
}
