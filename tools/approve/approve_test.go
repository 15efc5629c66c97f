package approve_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// asked returns a call as it comes out of the gate.
func asked() *tools.Call {
	c := toolstest.Call("bash", `{"command":"rm a"}`)
	c.Def = tools.Definition{Name: "bash", Destructive: true}
	c.Subject = tools.Subject{Show: "rm a", Note: reason.Plain("network off")}
	c.Trail = &tools.Trail{Effect: "ask", Reason: reason.Plain("no rule allows it"), Suspicious: "https://h"}
	return c
}

// walk passes a call through the stage and reports whether it ran.
func walk(t *testing.T, lookup approve.Lookup, c *tools.Call) (ran bool, err error) {
	t.Helper()
	_, err = approve.New(lookup, nil)(func(context.Context, *tools.Call) (*tools.Result, error) {
		ran = true
		return &tools.Result{}, nil
	})(t.Context(), c)
	return ran, err
}

func TestStates(t *testing.T) {
	t.Parallel()
	hash := approve.Hash(asked())
	for _, tc := range []struct {
		name     string
		approval approve.Approval
		runs     bool
		pending  bool
		category tools.Category
		denied   bool
		message  string
	}{
		{name: "empty", pending: true},
		{name: "none", approval: approve.Approval{State: approve.None}, pending: true},
		{name: "waiting", approval: approve.Approval{State: approve.Waiting, Hash: hash}, pending: true},
		{name: "approved", approval: approve.Approval{State: approve.Approved, By: "telegram:7", Hash: hash}, runs: true},
		{name: "approved for the session", approval: approve.Approval{State: approve.Approved, By: "telegram:7", Hash: hash, Scope: approve.ScopeSession}, runs: true},
		{name: "approved something else", approval: approve.Approval{State: approve.Approved, By: "telegram:7", Hash: "0" + hash[1:]}, pending: true},
		{name: "session approval of something else", approval: approve.Approval{State: approve.Approved, By: "telegram:7", Scope: approve.ScopeSession}, pending: true},
		{name: "denied", approval: approve.Approval{State: approve.Denied}, category: tools.PolicyBlocked, denied: true, message: "The user declined this call."},
		{name: "expired", approval: approve.Approval{State: approve.Expired}, category: tools.PolicyBlocked, denied: true, message: "Nobody decided in time whether this call may run, so it did not."},
		{name: "cancelled", approval: approve.Approval{State: approve.Cancelled}, category: tools.Cancelled, denied: true, message: "The question about this call was cancelled."},
		{name: "unknown", approval: approve.Approval{State: "maybe", Hash: hash}, category: tools.PermanentFailure, message: "The approval of this call could not be read."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var lookup toolstest.Lookup
			lookup.Set("telegram:42", "call-1", tc.approval)
			c := asked()
			ran, err := walk(t, &lookup, c)
			if ran != tc.runs {
				t.Fatalf("ran %t, want %t (%v)", ran, tc.runs, err)
			}
			var pending *tools.Pending
			var e *tools.Error
			switch {
			case tc.runs:
				if err != nil || c.Trail.ApprovedBy != "telegram:7" {
					t.Errorf("approved by %q, %v", c.Trail.ApprovedBy, err)
				}
			case tc.pending:
				want := tools.Question{
					Call: "call-1", Tool: "bash", Hash: hash, Show: "rm a", Note: reason.Plain("network off"), Reason: reason.Plain("no rule allows it"),
					Caller: "telegram:42", Args: `{"command":"rm a"}`, Destroys: true, Suspicious: "https://h",
				}
				if !errors.As(err, &pending) {
					t.Fatalf("got %v, want a question", err)
				}
				if diff := cmp.Diff(want, pending.Question); diff != "" {
					t.Errorf("question (-want +got):\n%s", diff)
				}
				if c.Trail.ApprovedBy != "" {
					t.Errorf("approved by %q", c.Trail.ApprovedBy)
				}
			case !errors.As(err, &e) || e.Category != tc.category || e.Denied() != tc.denied || e.Message != tc.message:
				t.Errorf("got %+v", err)
			}
		})
	}
}

func TestNeverAsked(t *testing.T) {
	t.Parallel()
	var pending *tools.Pending
	if ran, err := walk(t, &toolstest.Lookup{}, asked()); ran || !errors.As(err, &pending) {
		t.Errorf("ran %t, %v", ran, err)
	}
}

func TestEffects(t *testing.T) {
	t.Parallel()
	for effect, runs := range map[string]bool{"allow": true, "deny": false, "": false, "Allow": false} {
		var lookup toolstest.Lookup
		lookup.Set("telegram:42", "call-1", approve.Approval{State: approve.Approved, Hash: approve.Hash(asked())})
		c := asked()
		c.Trail.Effect = effect
		ran, err := walk(t, &lookup, c)
		if ran != runs || (err == nil) != runs {
			t.Errorf("effect %q: ran %t, %v", effect, ran, err)
		}
		if lookup.Asked() != 0 {
			t.Errorf("effect %q: the approvals were looked at", effect)
		}
	}
}

func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	ran, err := walk(t, nil, asked())
	var e *tools.Error
	if ran || !errors.As(err, &e) || e.Category != tools.PolicyBlocked || !e.Denied() {
		t.Errorf("ran %t, %v", ran, err)
	}
}

// TestAlone: if nobody could approve, the model is told so, and not that somebody declined. Earlier decisions still
// count.
func TestAlone(t *testing.T) {
	t.Parallel()
	alone := asked()
	alone.Origin.Alone = true
	ran, err := walk(t, &toolstest.Lookup{}, alone)
	var e *tools.Error
	if ran || !errors.As(err, &e) || !e.Denied() || !strings.Contains(e.Message, "nobody can be asked") {
		t.Errorf("ran %t, %v", ran, err)
	}
	var lookup toolstest.Lookup
	lookup.Set("telegram:42", "call-1", approve.Approval{State: approve.Approved, Hash: approve.Hash(asked())})
	if ran, err := walk(t, &lookup, alone); !ran || err != nil {
		t.Errorf("ran %t, %v", ran, err)
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	down := errors.New("password=x refused")
	ran, err := walk(t, &toolstest.Lookup{Err: down}, asked())
	var e *tools.Error
	if ran || !errors.As(err, &e) || e.Category != tools.ServerError || e.Message != "The approval of this call could not be read." || !errors.Is(err, down) {
		t.Errorf("ran %t, %v", ran, err)
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	base := approve.Hash(asked())
	if len(base) != 64 {
		t.Errorf("hash %q is no SHA-256", base)
	}
	for name, change := range map[string]func(*tools.Call){
		"tool":        func(c *tools.Call) { c.Def.Name = "bash2" },
		"description": func(c *tools.Call) { c.Def.Description = "x" },
		"schema":      func(c *tools.Call) { c.Def.Schema = json.RawMessage(`{}`) },
		"read-only":   func(c *tools.Call) { c.Def.ReadOnly = true },
		"arguments":   func(c *tools.Call) { c.Args = json.RawMessage(`{"command":"rm b"}`) },
		"caller":      func(c *tools.Call) { c.Origin.Caller = "telegram:43" },
		"a script":    func(c *tools.Call) { c.Subject.Scripts = []policy.File{{Name: "x.sh", Path: "/w/x.sh", Hash: "1"}} },
		"shifted": func(c *tools.Call) {
			c.Args, c.Origin.Caller = json.RawMessage(string(c.Args)+"11:telegram:42"), ""
		},
	} {
		c := asked()
		change(c)
		if approve.Hash(c) == base {
			t.Errorf("%s does not change the hash", name)
		}
	}
	c := asked()
	c.ID, c.Batch, c.Origin.Turn, c.Origin.Session, c.Trail.Rule = "call-2", 9, "t", "s", "r"
	if approve.Hash(c) != base {
		t.Error("the same wish of the same caller hashes differently")
	}
}

// previewer notes what it is asked for.
type previewer struct {
	effect *tools.Effect
	cannot bool
	why    tools.Unknown // if it cannot
	holds  bool
	log    []string
}

func (p *previewer) Previewable(context.Context, *tools.Call) (bool, tools.Unknown) {
	return !p.cannot, p.why
}

func (p *previewer) Preview(context.Context, *tools.Call) *tools.Effect {
	p.log = append(p.log, "preview")
	return p.effect
}

func (p *previewer) Holds(_ context.Context, _ *tools.Call, layer string) bool {
	p.log = append(p.log, "holds "+layer)
	return p.holds
}

func (p *previewer) Drop(context.Context, *tools.Call) { p.log = append(p.log, "drop") }

// TestPreviews: a call is tried once, when it is first asked about; what was approved is applied if it holds, else it is
// asked about again; after a no, nothing is kept.
func TestPreviews(t *testing.T) {
	t.Parallel()
	hash := approve.Hash(asked())
	yes := approve.Approval{State: approve.Approved, By: "telegram:7", Hash: hash}
	shown := yes
	shown.Layer = "abc"
	effect := &tools.Effect{Deleted: []string{"a"}, Layer: "def"}
	for _, tc := range []struct {
		name     string
		approval approve.Approval
		holds    bool
		change   func(*tools.Call)
		runs     bool
		layer    string // that it runs with
		asks     *tools.Effect
		again    bool
		log      string
		cannot   bool
		why      tools.Unknown
	}{
		{name: "first", asks: effect, log: "preview"},
		{name: "probe", change: func(c *tools.Call) { c.Probe = true }, asks: &tools.Effect{Unknown: tools.UnknownBehind}},
		{name: "the operator's rule", change: func(c *tools.Call) { c.Trail.Explicit = true }, asks: &tools.Effect{Unknown: tools.UnknownRule}},
		{name: "the operator's rule, of a step", change: func(c *tools.Call) { c.Trail.Explicit, c.Probe = true, true }, asks: &tools.Effect{Unknown: tools.UnknownRule}},
		{name: "not here", cannot: true, why: tools.UnknownMachine, asks: &tools.Effect{Unknown: tools.UnknownMachine}},
		{name: "not here, of a step", cannot: true, why: tools.UnknownMachine, change: func(c *tools.Call) { c.Probe = true }, asks: &tools.Effect{Unknown: tools.UnknownMachine}},
		{name: "not here, and the operator's rule", cannot: true, why: tools.UnknownMachine, change: func(c *tools.Call) { c.Trail.Explicit = true }, asks: &tools.Effect{Unknown: tools.UnknownRule}},
		{name: "another tool, or switched off", cannot: true},
		{name: "another tool, and the operator's rule", cannot: true, change: func(c *tools.Call) { c.Trail.Explicit = true }},
		{name: "allowed", change: func(c *tools.Call) { c.Trail.Effect = "allow" }, runs: true},
		{name: "waiting", approval: approve.Approval{State: approve.Waiting, Hash: hash}},
		{name: "the text was approved", approval: yes, runs: true},
		{name: "holds", approval: shown, holds: true, runs: true, layer: "abc", log: "holds abc"},
		{name: "does not hold", approval: shown, asks: effect, again: true, log: "holds abc,preview"},
		{name: "a probe of it", approval: shown, change: func(c *tools.Call) { c.Probe = true }, runs: true},
		{name: "something else was approved", approval: approve.Approval{State: approve.Approved, Hash: "x", Layer: "abc"}, asks: effect, log: "preview"},
		{name: "denied", approval: approve.Approval{State: approve.Denied}, log: "drop"},
		{name: "expired", approval: approve.Approval{State: approve.Expired}, log: "drop"},
		{name: "cancelled", approval: approve.Approval{State: approve.Cancelled}, log: "drop"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			p, c := &previewer{effect: effect, cannot: tc.cannot, why: tc.why, holds: tc.holds}, asked()
			if tc.change != nil {
				tc.change(c)
			}
			var lookup toolstest.Lookup
			lookup.Set("telegram:42", "call-1", tc.approval)
			ran := false
			_, err := approve.New(&lookup, p)(func(context.Context, *tools.Call) (*tools.Result, error) {
				ran = true
				return &tools.Result{}, nil
			})(t.Context(), c)
			if ran != tc.runs || c.Layer != tc.layer {
				t.Errorf("ran %t with layer %q: %v", ran, c.Layer, err)
			}
			var q tools.Question
			if pending, ok := errors.AsType[*tools.Pending](err); ok {
				q = pending.Question
			}
			if !cmp.Equal(q.Effect, tc.asks) || q.Again != tc.again {
				t.Errorf("asks with %+v, again %t", q.Effect, q.Again)
			}
			if got := strings.Join(p.log, ","); got != tc.log {
				t.Errorf("did %q, want %q", got, tc.log)
			}
		})
	}
}

// TestUses: a call that a standing approval allows is counted before it runs; one for which none is left asks, and one
// that cannot be counted does not run.
func TestUses(t *testing.T) {
	t.Parallel()
	granted := func() *tools.Call {
		c := asked()
		c.Trail = &tools.Trail{Effect: "allow", Rule: grant.RulePrefix + "bash `rm a`", Granted: []grant.Grant{{Tool: "bash"}}}
		return c
	}
	lookup := &toolstest.Lookup{}
	if ran, err := walk(t, lookup, granted()); !ran || err != nil || lookup.Uses() != 1 {
		t.Errorf("ran %v: %v, counted %d", ran, err, lookup.Uses())
	}
	probe := granted()
	probe.Probe = true
	if ran, err := walk(t, lookup, probe); !ran || err != nil || lookup.Uses() != 1 {
		t.Errorf("a probe ran %v: %v, counted %d", ran, err, lookup.Uses())
	}
	if ran, err := walk(t, nil, granted()); !ran || err != nil {
		t.Errorf("without people ran %v: %v", ran, err)
	}
	var pending *tools.Pending
	c := granted()
	if ran, err := walk(t, &toolstest.Lookup{Spent: true}, c); ran || !errors.As(err, &pending) || pending.Question.Reason.Code != reason.GrantSpent {
		t.Errorf("used up, ran %v: %v", ran, err)
	}
	if c.Trail.Approved() && c.Trail.Effect == "allow" {
		t.Errorf("its trail says that it was allowed: %+v", c.Trail)
	}
	if ran, err := walk(t, &toolstest.Lookup{Err: errors.New("no store")}, granted()); ran || tools.AsError(err).Category != tools.ServerError {
		t.Errorf("not counted, ran %v: %v", ran, err)
	}
}
