package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
)

// kilobyte returns a command of 1 KB with several simple commands.
func kilobyte() string {
	text := "git status && cd src && go test -run 'TestOne|TestTwo' ./... | tail -20; "
	return text + "grep -n " + strings.Repeat("pattern-in-a-long-line ", (1024-len(text)-8)/23+1)
}

// decides measures one decision: for a text that was not parsed yet, and for one that the tool has already parsed to
// describe the call, as in the service.
func decides(b *testing.B, o policy.Options, r policy.Request, want policy.Effect) {
	for name, reader := range map[string]*command.Reader{"unread": nil, "read": command.NewReader()} {
		b.Run(name, func(b *testing.B) {
			o.Reader = reader
			s := newSet(b, o)
			b.ReportAllocs()
			for b.Loop() {
				if d := s.Decide(r); d.Effect != want {
					b.Fatal(d)
				}
			}
		})
	}
}

// BenchmarkDecidePermissions decides a 1 KB command by 256 permission rules, of
// which none matches.
func BenchmarkDecidePermissions(b *testing.B) {
	list := make([]policy.Permission, 256)
	for i := range list {
		list[i] = policy.Permission{Pattern: fmt.Sprintf("*forbidden%d*", i), Action: policy.Deny}
	}
	decides(b, policy.Options{Permissions: map[string][]policy.Permission{"bash": list}}, bash(kilobyte()), policy.Ask)
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
	decides(b, open(rules(policy.Allow, list...)), bash(kilobyte()), policy.Ask)
}
