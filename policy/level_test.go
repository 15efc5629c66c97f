package policy_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy"
)

// TestTheStricterLevelHolds: a session's autonomy level, such as the mode of an editor, only restricts what the rules
// allow, and one that nobody knows is the strictest.
func TestTheStricterLevelHolds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		set, session policy.Level
		want         policy.Effect
	}{
		{policy.Full, "", policy.Allow},
		{policy.Full, policy.Full, policy.Allow},
		{policy.Full, policy.Supervised, policy.Ask},
		{policy.Full, policy.ReadOnly, policy.Deny},
		{policy.Full, "nonsense", policy.Deny},
		{policy.Supervised, policy.Full, policy.Ask},
		{policy.Supervised, policy.ReadOnly, policy.Deny},
		{policy.ReadOnly, policy.Full, policy.Deny},
	} {
		got := newSet(t, policy.Options{Level: tt.set}).Decide(policy.Request{Tool: "write", Inputs: []string{"/a"}, Level: tt.session})
		if got.Effect != tt.want {
			t.Errorf("rules %q, session %q: %+v, want %s", tt.set, tt.session, got, tt.want)
		}
	}
}
