package difftest

import (
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
	bashtool "github.com/zephbot/zephbot/tools/shell"
)

// stands lists the programs that rules allow and that do nothing here.
const stands = "git ls cat head grep wc sort"

// standIns are those and the programs that the policy lets read without a rule.
func standIns() []string {
	var out []string
	for _, name := range append(strings.Fields(stands), command.ReadingCommands()...) {
		if !strings.Contains(" "+builtins+" type ", " "+name+" ") && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// builtins lists what rules allow and bash runs itself, or a wrapper whose command is judged too.
const builtins = "echo printf true false : test [ read cd pwd set unset export declare local readonly let mapfile getopts wait trap eval exec command builtin shopt env timeout nice"

// decider says whether a script would run without a question.
type decider func(script string) bool

// byPolicy is a decider that asks the real policy: by permission rules, by the table of reading commands and by grants.
func byPolicy(tb testing.TB, work string) decider {
	tb.Helper()
	var rules []policy.Permission
	var grants []policy.Grant
	for name := range strings.FieldsSeq(stands + " " + builtins) {
		name = policy.QuoteGlob(name)
		for _, pattern := range []string{name, name + " *"} {
			rules = append(rules, policy.Permission{Pattern: pattern, Action: policy.Allow})
		}
		if len(grants) < 16 {
			grants = append(grants,
				policy.Grant{Tool: "bash", Kind: policy.GrantExact, Words: []string{name}, Dir: work},
				policy.Grant{Tool: "bash", Kind: policy.GrantPrefix, Words: []string{name}, Dir: work})
		}
	}
	for _, pattern := range []string{"bash -c *", "sh -c *"} {
		rules = append(rules, policy.Permission{Pattern: pattern, Action: policy.Allow})
	}
	table, err := policy.New(policy.Options{Tools: bashtool.Says(), Permissions: map[string][]policy.Permission{"bash": rules}})
	if err != nil {
		tb.Fatal(err)
	}
	reading, err := policy.New(policy.Options{Tools: bashtool.Says(), Unasked: policy.UnaskedReading})
	if err != nil {
		tb.Fatal(err)
	}
	return func(script string) bool {
		r := policy.Request{Tool: "bash", Inputs: []string{script}, Confined: true, InsidePaths: []string{work}}
		if table.Decide(r).Effect == policy.Allow || reading.Decide(r).Effect == policy.Allow {
			return true
		}
		r.Grants, r.Dir = grants, work
		for _, n := range reading.Named(r) { // a directory in which there is nothing
			f := policy.File{Name: n.Name}
			if n.Name == "." {
				f.Path, f.Hash = work, "directory"
			}
			if !n.Optional {
				r.Scripts = append(r.Scripts, f)
			}
		}
		return reading.Decide(r).Effect == policy.Allow
	}
}

// blind is a decider that looks at the first word only, as a careless rule would.
func blind(script string) bool {
	name, _, _ := strings.Cut(strings.TrimSpace(script), " ")
	return strings.Contains(" "+stands+" "+builtins+" ", " "+name+" ")
}
