package approve_test

import (
	"errors"
	"testing"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// asking returns a call that asks its caller something, as it comes out of the gate.
func asking() *tools.Call {
	c := toolstest.Call("ask", `{}`)
	c.Def = tools.Definition{Name: "ask", ReadOnly: true}
	c.Subject.Form = &tools.Form{Questions: []tools.FormQuestion{{Text: "Why?", Kind: tools.TextQuestion}}}
	c.Trail = &tools.Trail{Effect: "allow"}
	return c
}

// TestForms: a call that asks its caller something waits for the answer, whether the rules allow it or ask, and runs with it.
func TestForms(t *testing.T) {
	t.Parallel()
	hash := approve.Hash(asking())
	reply := &tools.FormReply{State: tools.FormExpired}
	for name, tc := range map[string]struct {
		approval approve.Approval
		runs     bool
		pending  bool
		category tools.Category
	}{
		"not asked yet":       {pending: true},
		"waiting":             {approval: approve.Approval{State: approve.Waiting, Hash: hash}, pending: true},
		"answered":            {approval: approve.Approval{State: approve.Approved, Hash: hash, Reply: reply}, runs: true},
		"declined":            {approval: approve.Approval{State: approve.Denied, Hash: hash, Reply: reply}, runs: true},
		"expired":             {approval: approve.Approval{State: approve.Expired, Hash: hash, Reply: reply}, runs: true},
		"of something else":   {approval: approve.Approval{State: approve.Approved, Hash: "0" + hash[1:], Reply: reply}, pending: true},
		"withdrawn":           {approval: approve.Approval{State: approve.Cancelled, Hash: hash}, category: tools.Cancelled},
		"without its answers": {approval: approve.Approval{State: approve.Approved, Hash: hash}, category: tools.ServerError},
	} {
		for _, effect := range []string{"allow", "ask"} {
			t.Run(name+", "+effect, func(t *testing.T) {
				t.Parallel()
				var lookup toolstest.Lookup
				lookup.Set("telegram:42", "call-1", tc.approval)
				c := asking()
				c.Trail.Effect = effect
				ran, err := walk(t, &lookup, c)
				pending, waits := errors.AsType[*tools.Pending](err)
				e, refused := errors.AsType[*tools.Error](err)
				switch {
				case ran != tc.runs || waits != tc.pending || refused != (tc.category != ""):
					t.Errorf("ran %t, %v", ran, err)
				case tc.runs && (c.Reply != reply || c.Trail.ApprovedBy != ""):
					t.Errorf("reply %+v, approved by %q", c.Reply, c.Trail.ApprovedBy)
				case waits && (pending.Question.Form != c.Subject.Form || pending.Question.Hash != hash):
					t.Errorf("%+v", pending.Question)
				case refused && e.Category != tc.category:
					t.Errorf("%+v", e)
				}
			})
		}
	}
}

// TestFormsNeedSomebody: who does not wait for the turn is not asked, and the model hears it at once. A denial stays one.
func TestFormsNeedSomebody(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *tools.Call){
		"unattended":  func(c *tools.Call) { c.Origin.Unattended = true },
		"a sub-agent": func(c *tools.Call) { c.Origin.Agent = "one" },
		"no caller":   func(c *tools.Call) { c.Origin.Caller = "" },
		"denied":      func(c *tools.Call) { c.Trail.Effect = "deny" },
	} {
		c := asking()
		change(c)
		ran, err := walk(t, &toolstest.Lookup{}, c)
		if e, ok := errors.AsType[*tools.Error](err); ran || !ok || !e.Denied() {
			t.Errorf("%s: ran %t, %v", name, ran, err)
		}
	}
	if ran, err := walk(t, nil, asking()); ran || err == nil {
		t.Errorf("without a store: ran %t, %v", ran, err)
	}
}
