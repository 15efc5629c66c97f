package policy_test

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// everydayReading is what people and models type all day to look at things, with the decision about it before the
// kernel kept the promise that reading changes nothing. It has a head line, then one command a line: the decision
// without rules on a machine that confines; whether its output in the reading profile is the same, differs because it is
// about the time, the machine or the owner, or is there only outside (no command of the sandbox sees the table of
// processes); the command.
// tools/shell/sandbox runs them in a repository that its testdata/everyday.sh makes.
//
//go:embed testdata/everyday_reading.tsv
var everydayReading string

// TestEverydayReading: no command that only reads asks more often than before.
func TestEverydayReading(t *testing.T) {
	t.Parallel()
	set := everydaySets(t)[0]
	seen := map[string]bool{}
	before, after := 0, 0
	for i, line := range strings.Split(strings.TrimSuffix(everydayReading, "\n"), "\n")[1:] {
		cols := strings.Split(line, "\t")
		if len(cols) != 3 || seen[cols[2]] || cols[0] != "allow" && cols[0] != "ask" ||
			!slices.Contains([]string{"same", "differs", "outside"}, cols[1]) {
			t.Fatalf("line %d is not a decision, same, differs or outside, and a command that is new: %q", i+2, line)
		}
		seen[cols[2]] = true
		d := set.Decide(everydayCall(cols[2]))
		if cols[0] != string(policy.Allow) {
			before++
		}
		if d.Effect != policy.Allow {
			after++
		}
		if stricter(d.Effect, policy.Effect(cols[0])) {
			t.Errorf("line %d: %q was %s and is %s now: %s (%s)", i+2, cols[2], cols[0], d.Effect, d.Reason.String(), d.Rule)
		}
	}
	if len(seen) < 200 {
		t.Errorf("the list has %d commands, want at least 200", len(seen))
	}
	t.Logf("asked for %d of %d before, %d now", before, len(seen), after)
}
