package approve_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/shell"
)

// readingCall is a call that is permitted only where it can change nothing.
func readingCall() *tools.Call {
	c := asked()
	c.Trail = &tools.Trail{Effect: "allow", Rule: "built-in: reading command", Reason: "It only reads.", Reading: true, Bared: true}
	return c
}

// TestTried: a call for which reading is too little becomes a question, and runs as usual after a yes, without being
// tried again. Nothing else of it is asked.
func TestTried(t *testing.T) {
	t.Parallel()
	hash := approve.Hash(readingCall())
	const why = "It wanted to write."
	for _, tc := range []struct {
		name     string
		lookup   approve.Lookup
		enough   bool // reading is
		tries    int
		runs     int
		pending  bool
		category tools.Category
	}{
		{name: "enough", lookup: only{}, enough: true, tries: 1},
		{name: "too little", lookup: only{}, tries: 1, pending: true},
		{name: "nobody to ask", tries: 1, category: tools.PolicyBlocked},
		{name: "asked before", lookup: only{approve.Approval{State: approve.Waiting, Hash: hash}}, tries: 1, pending: true},
		{name: "approved", lookup: only{approve.Approval{State: approve.Approved, By: "telegram:7", Hash: hash}}, runs: 1},
		{name: "another one approved", lookup: only{approve.Approval{State: approve.Approved, By: "telegram:7", Hash: "x"}}, tries: 1, pending: true},
		{name: "denied", lookup: only{approve.Approval{State: approve.Denied}}, category: tools.PolicyBlocked},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tries, runs := 0, 0
			c := readingCall()
			_, err := approve.New(tc.lookup, nil)(func(_ context.Context, call *tools.Call) (*tools.Result, error) {
				call.Trail.Started, call.Trail.Attempts = true, call.Trail.Attempts+1
				if !call.Trail.Reading {
					runs++
					return &tools.Result{}, nil
				}
				tries++
				if tc.enough {
					return &tools.Result{}, nil
				}
				return nil, &tools.Walled{Why: why}
			})(t.Context(), c)
			var pending *tools.Pending
			switch {
			case errors.As(err, &pending) != tc.pending, !tc.pending && (err != nil) != (tc.category != ""):
				t.Fatalf("%v", err)
			case tc.pending && (pending.Question.Reason != why || c.Trail.Started || c.Trail.Attempts != 0 || c.Trail.Bared):
				t.Errorf("%+v, %+v", pending.Question, c.Trail)
			case tc.category != "" && tools.AsError(err).Category != tc.category:
				t.Errorf("%v", err)
			}
			if tries != tc.tries || runs != tc.runs {
				t.Errorf("%d tries, %d runs, want %d and %d", tries, runs, tc.tries, tc.runs)
			}
		})
	}
}

// only finds one approval for every call.
type only struct{ a approve.Approval }

func (o only) Approval(context.Context, string, string, string) (approve.Approval, error) {
	return o.a, nil
}

// drifting is a workspace in which something else always works: no layer holds.
type drifting struct{ tries int }

func (*drifting) Previewable(context.Context, *tools.Call) (bool, tools.Unknown) { return true, "" }
func (d *drifting) Preview(context.Context, *tools.Call) *tools.Effect {
	d.tries++
	return &tools.Effect{Layer: "layer"}
}
func (d *drifting) Holds(context.Context, *tools.Call, string) bool { return false }
func (d *drifting) Drop(context.Context, *tools.Call)               {}

// TestDrifting: where no layer holds, a person is asked about the effect twice, and then about the text.
func TestDrifting(t *testing.T) {
	t.Parallel()
	p, a := &drifting{}, approve.Approval{}
	for i := range 3 {
		_, err := approve.New(only{a}, p)(func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{}, nil })(t.Context(), asked())
		var pending *tools.Pending
		if !errors.As(err, &pending) {
			t.Fatalf("%d: %v", i, err)
		}
		q := pending.Question
		if (q.Effect.Layer == "") != (i == 2) || q.Again != (i > 0) {
			t.Errorf("%d: %+v", i, q)
		}
		a = approve.Approval{State: approve.Approved, By: "telegram:7", Hash: q.Hash, Layer: q.Effect.Layer, Again: q.Again}
	}
	if ran, err := walk(t, only{a}, asked()); !ran || err != nil {
		t.Errorf("the text was approved, and it did not run: %v", err)
	}
}

// holding is a workspace in which every layer holds.
type holding struct{ drifting }

func (*holding) Holds(context.Context, *tools.Call, string) bool { return true }

// TestAlwaysAppliesWhatWasShown: a call whose card has shown a layer applies it, also if a standing approval was stored
// from that card and would allow the call by itself.
func TestAlwaysAppliesWhatWasShown(t *testing.T) {
	t.Parallel()
	for _, holds := range []bool{true, false} {
		c := asked()
		c.Def.Says = act.Of(shell.Says(), "bash")
		c.Trail = &tools.Trail{Effect: "allow", Rule: grant.RulePrefix + "bash rm a"}
		var p approve.Previewer = &drifting{}
		if holds {
			p = &holding{}
		}
		a := approve.Approval{State: approve.Approved, By: "telegram:7", Hash: approve.Hash(c), Layer: "layer"}
		_, err := approve.New(only{a}, p)(func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{}, nil })(t.Context(), c)
		if err != nil || (c.Layer == "layer") != holds || (c.Trail.ApprovedBy != "") != holds {
			t.Errorf("holds %v: %q by %q, %v", holds, c.Layer, c.Trail.ApprovedBy, err)
		}
	}
}
