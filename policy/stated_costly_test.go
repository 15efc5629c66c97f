package policy_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
)

// TestCostly: a call that makes something runs without a question unless it may cost more than that; a rule, a standing
// approval and the level decide before its price does.
func TestCostly(t *testing.T) {
	t.Parallel()
	list := []act.Tool{{Name: "draw", Statement: act.Statement{Act: act.Makes}}}
	for name, row := range map[string]struct {
		options policy.Options
		costly  bool
		flagged string
		want    policy.Effect
		code    reason.Code
	}{
		"cheap":    {policy.Options{}, false, "", policy.Allow, reason.NoApprovalNeeded},
		"dear":     {policy.Options{}, true, "", policy.Ask, reason.CostsMore},
		"flagged":  {policy.Options{}, false, "https://evil.example", policy.Ask, reason.ContentFlagged},
		"full":     {policy.Options{Level: policy.Full}, true, "", policy.Allow, reason.AutonomyFull},
		"readonly": {policy.Options{Level: policy.ReadOnly}, false, "", policy.Deny, reason.AutonomyReadonly},
		"a rule":   {policy.Options{Permissions: map[string][]policy.Permission{"draw": {{Pattern: "*", Action: policy.Allow}}}}, true, "", policy.Allow, ""},
	} {
		row.options.Tools = list
		set, err := policy.New(row.options)
		if err != nil {
			t.Fatal(err)
		}
		d := set.Decide(policy.Request{Tool: "draw", Inputs: []string{"a fox"}, Costly: row.costly, Suspicious: row.flagged})
		if d.Effect != row.want || row.code != "" && d.Reason.Code != row.code {
			t.Errorf("%s: %s because of %s (%s)", name, d.Effect, d.Reason.Code, d.Rule)
		}
	}
}
