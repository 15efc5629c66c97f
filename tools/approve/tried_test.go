package approve_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/grant"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/shell"
)

// readingCall is a call that is permitted only where it can change nothing.
func readingCall() *tools.Call {
	c := asked()
	c.Trail = &tools.Trail{Effect: "allow", Rule: "built-in: reading command", Reason: reason.Plain("It only reads."), Reading: true, Bared: true}
	return c
}

// TestTried: a call for which reading is too little becomes a question, and runs as usual after a yes, without being
// tried again. Nothing else of it is asked.
func TestTried(t *testing.T) {
	t.Parallel()
	hash := approve.Hash(readingCall())
	const why = "It was tried where it can change nothing, and failed there."
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
				return nil, &tools.Walled{Reason: reason.New(reason.Tried).With(reason.New(reason.WantedRefused))}
			})(t.Context(), c)
			var pending *tools.Pending
			switch {
			case errors.As(err, &pending) != tc.pending, !tc.pending && (err != nil) != (tc.category != ""):
				t.Fatalf("%v", err)
			case tc.pending && (pending.Question.Reason.String() != why || c.Trail.Started || c.Trail.Attempts != 0 || c.Trail.Bared):
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

// fileCall is a call of a tool that says what it does to files, which are as state says.
func fileCall(state, diff string) *tools.Call {
	c := asked()
	c.Subject.State = func() ([]tools.FileState, error) {
		return []tools.FileState{{Path: "/w/a", Before: state}}, nil
	}
	c.Subject.Deed = func() *tools.Effect {
		return &tools.Effect{Changed: []tools.FileEffect{{Path: "a", Added: 1, Removed: 1, Bytes: int64(len(state))}}, Diff: diff}
	}
	return c
}

// TestBoundToFiles: an approval is of what was shown. If the files are others when the call is to run, the person is asked
// again, unless only calls of the same step have changed them and the call does the same in another line; who meets other
// files twice is asked about the text.
func TestBoundToFiles(t *testing.T) {
	t.Parallel()
	const diff, moved, other = "@@ -1,2 +1,2 @@\n-a\n+b\n", "@@ -7,2 +8,2 @@\n-a\n+b\n", "@@ -1,2 +1,2 @@\n-x\n+b\n"
	left := func(pairs ...string) (list []tools.FileState) {
		for i := 0; i < len(pairs); i += 2 {
			list = append(list, tools.FileState{Path: "/w/a", Before: pairs[i], After: pairs[i+1]})
		}
		return list
	}
	for _, tc := range []struct {
		name        string
		state, diff string // when it is to run; it was shown in the state "old" with diff
		ahead       []tools.FileState
		again       bool // the approved question was a repeated one
		probe       bool
		unreadable  bool
		runs        bool
		text        bool // the question is about the text
	}{
		{name: "the same", state: "old", diff: diff, runs: true},
		{name: "another content", state: "new", diff: diff},
		{name: "gone", state: "", diff: diff},
		{name: "another content again", state: "new", diff: diff, again: true, text: true},
		{name: "the same, after it was asked again", state: "old", diff: diff, again: true, runs: true},
		{name: "a call of the step", state: "new", diff: moved, ahead: left("old", "new"), runs: true},
		{name: "two calls of the step", state: "new", diff: moved, ahead: left("old", "mid", "mid", "new"), runs: true},
		{name: "a call of the step, and the difference is another", state: "new", diff: other, ahead: left("old", "new")},
		{name: "a call of the step, and somebody else", state: "new", diff: diff, ahead: left("old", "mid")},
		{name: "somebody else, and a call of the step", state: "new", diff: diff, ahead: left("mid", "new")},
		{name: "another file of the step", state: "new", diff: diff, ahead: []tools.FileState{{Path: "/w/b", Before: "old", After: "new"}}},
		{name: "a probe", state: "new", diff: diff, probe: true, runs: true},
		{name: "it cannot be read", state: "old", diff: diff, unreadable: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := fileCall(tc.state, tc.diff)
			c.Ahead, c.Probe = tc.ahead, tc.probe
			if tc.unreadable {
				c.Subject.State = func() ([]tools.FileState, error) { return nil, errors.New("no") }
			}
			shown := fileCall("old", diff)
			a := approve.Approval{
				State: approve.Approved, By: "telegram:7", Hash: approve.Hash(c), Again: tc.again,
				States: left("old", ""), Deed: shown.Subject.Deed(),
			}
			ran := false
			_, err := approve.New(only{a}, nil)(func(context.Context, *tools.Call) (*tools.Result, error) {
				ran = true
				return &tools.Result{}, nil
			})(t.Context(), c)
			if ran != tc.runs {
				t.Fatalf("ran: %t, %v", ran, err)
			}
			if ran && !tc.probe && (len(c.Shown) != 1 || c.Shown[0].Before != tc.state) {
				t.Errorf("the tool is told that %+v was shown", c.Shown)
			}
			if ran {
				return
			}
			pending, ok := errors.AsType[*tools.Pending](err)
			if !ok {
				t.Fatal(err)
			}
			q := pending.Question
			if busy := q.Effect != nil && q.Effect.Unknown == tools.UnknownBusy; !q.Again || busy != tc.text || (q.Deed == nil) != tc.text {
				t.Errorf("%+v", q)
			}
			if (len(q.States) == 0) != (tc.text || tc.unreadable) {
				t.Errorf("bound to %+v", q.States)
			}
		})
	}
}

// Use implements approve.Lookup.
func (only) Use(context.Context, *tools.Call, string) (bool, error) { return true, nil }
