package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/offline"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
)

// never must not be said of a call that may have run; orders are instructions that a person must not be shown.
var (
	denials = []string{"did not run", "was not run", "not run", "before it ran", "before this ran", "before this was run", "declined", "could not", "before I could", "so it did not", "was not executed"}
	orders  = []string{"[outcome unknown]", "Tell the person", "ask whether", "Do not repeat", "[tool_error]", "suggestion:", "retryable", "Look at what is there"}
)

// interruption is one way in which a call can end without its result.
type interruption struct {
	name   string
	mayRun bool // the call may have had an effect
	do     func(t *testing.T, w *world)
}

func interruptions() []interruption {
	asked := func(w *world, name string, readOnly bool, started ...string) {
		w.shelf.keep(journal.Entry{Turn: "turn-1", Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: "c2_0", Name: name, Args: []byte(`{"command":"x"}`), ReadOnly: readOnly}}})
		for _, call := range started {
			w.shelf.keep(journal.Entry{Turn: "turn-1", Kind: journal.StartedEntry, Call: call, Tool: name})
		}
	}
	over := func(w *world, reason string) {
		w.shelf.keep(journal.Entry{Turn: "turn-1", Kind: journal.EndEntry, Reason: reason, Text: "Over."})
	}
	// within runs the turn with a tool that is ended from outside while it runs.
	within := func(cause, result error, readOnly bool) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			ctx, end := stopped(t, cause)
			tool := slow(end, nil, result)
			tool.Definition.Name, tool.Definition.ReadOnly = "bash", readOnly
			w.replace(tool)
			asked(w, "bash", readOnly)
			_, _ = w.run(ctx)
			// as a worker that gave up leaves it
			if w.shelf.all()[len(w.shelf.all())-1].Kind != journal.EndEntry {
				over(w, journal.ReasonInternal)
			}
		}
	}
	parked := func(cause error) func(*testing.T, *world) {
		return func(t *testing.T, w *world) {
			ctx, end := stopped(t, cause)
			end()
			asked(w, "bash", false)
			_, _ = w.run(ctx)
		}
	}
	return []interruption{
		{"killed while it ran", true, func(t *testing.T, w *world) {
			asked(w, "bash", false, "c2_0")
			_, _ = w.run(t.Context())
			over(w, journal.ReasonInternal)
		}},
		{"killed while it ran, then stopped", true, func(t *testing.T, w *world) {
			ctx, end := stopped(t, agent.ErrStopped)
			end()
			asked(w, "bash", false, "c2_0")
			_, _ = w.run(ctx)
		}},
		{"killed while it ran, then given up", true, func(_ *testing.T, w *world) {
			asked(w, "bash", false, "c2_0")
			over(w, journal.ReasonInternal)
		}},
		{"given up before it began", false, func(_ *testing.T, w *world) {
			asked(w, "bash", false)
			over(w, journal.ReasonInternal)
		}},
		{"only reads, given up", true, func(_ *testing.T, w *world) {
			asked(w, "bash", true)
			over(w, journal.ReasonInternal)
		}},
		{"stopped while it ran", true, within(agent.ErrStopped, context.Canceled, false)},
		{"stopped while it ran, told as a broken connection", true, within(agent.ErrStopped, &tools.Error{Category: tools.NetworkError, Message: "x", Err: context.Canceled}, false)},
		{"stopped while it read", true, within(agent.ErrStopped, context.Canceled, true)},
		{"chat gone while it ran", true, within(agent.ErrGone, context.Canceled, false)},
		{"chat gone while it read", true, within(agent.ErrGone, context.Canceled, true)},
		{"service stopped while it ran", true, within(errMoved, context.Canceled, false)},
		{"lease lost while it ran", true, within(errors.New("the lane is held by another worker"), context.Canceled, false)},
		{"took too long", true, within(nil, tools.Errorf(tools.Timeout, "the command was stopped after 30s"), false)},
		{"connection broke in the middle", true, within(nil, tools.Errorf(tools.NetworkError, "the server went away during the call"), false)},
		{"stopped before it began", false, parked(agent.ErrStopped)},
		{"chat gone before it began", false, parked(agent.ErrGone)},
		{"nobody decided in time", false, func(t *testing.T, w *world) {
			w.deps.Provider = script(t, "on \"run x\": call count {\"by\":10}\nthen say Done")
			out := w.must(t.Context())
			for _, q := range out.Questions {
				w.lookup.Set(w.turn.Origin.Session, q.Call, approve.Approval{State: approve.Expired, Hash: q.Hash})
			}
			_, _ = w.run(t.Context())
			over(w, journal.ReasonInternal)
		}},
		{"declined", false, func(t *testing.T, w *world) {
			w.deps.Provider = script(t, "on \"run x\": call count {\"by\":10}\nthen say Done")
			out := w.must(t.Context())
			for _, q := range out.Questions {
				w.lookup.Set(w.turn.Origin.Session, q.Call, approve.Approval{State: approve.Denied, Hash: q.Hash})
			}
			_, _ = w.run(t.Context())
			over(w, journal.ReasonInternal)
		}},
	}
}

// TestInterruptions: nobody is told that a call that may have run did not, neither the model nor a person, and what is
// meant for the model alone reaches no person, however the call ended.
func TestInterruptions(t *testing.T) {
	t.Parallel()
	for _, tt := range interruptions() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script(t, "on \"run x\": say later"), "run x")
			tt.do(t, w)
			told := w.told(t)
			if told.Text == "" || !told.Error {
				t.Fatalf("the model is told %+v", told)
			}
			for _, no := range denials {
				if tt.mayRun && strings.Contains(told.Text, no) {
					t.Errorf("the model is told that it did not run: %q", told.Text)
				}
			}
			if !tt.mayRun && (strings.Contains(told.Text, "may have") || !containsAny(told.Text, denials)) {
				t.Errorf("the model is not told that it did not run: %q", told.Text)
			}
			said := report(t, told)
			for _, no := range append(orders, map[bool][]string{true: denials}[tt.mayRun]...) {
				if strings.Contains(said, no) {
					t.Errorf("a person is told %q: %s", no, said)
				}
			}
		})
	}
}

func containsAny(text string, list []string) bool {
	for _, s := range list {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// told returns what the model reads of the call in the next turn.
func (w *world) told(t *testing.T) *llm.ToolResult {
	t.Helper()
	m := script(t, `on "next": say Next`)
	w.deps.Provider, w.turn.ID = m, "turn-2"
	w.shelf.keep(journal.Entry{Turn: "turn-2", Kind: journal.UserEntry, Text: "next"})
	w.must(t.Context())
	for _, msg := range m.Requests()[len(m.Requests())-1].Messages {
		if msg.Result != nil {
			return msg.Result
		}
	}
	t.Fatal("the model is told nothing")
	return nil
}

// report returns what the built-in model tells a person about a result.
func report(t *testing.T, r *llm.ToolResult) string {
	t.Helper()
	res, err := offline.New(offline.Options{}).Chat(t.Context(), &llm.Request{
		Tools: []llm.Tool{{Name: "bash"}},
		Messages: []llm.Message{
			{Role: llm.User, Text: "run x"},
			{Role: llm.Assistant, Uses: []llm.ToolUse{{ID: "u", Name: "bash", Args: []byte(`{"command":"x"}`)}}},
			{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "u", Name: "bash", Text: r.Text, Error: r.Error}},
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Text
}

// TestModelRepeatsWhatItWasTold: if a model repeats text that was meant for it, the person sees none of its
// instructions.
func TestModelRepeatsWhatItWasTold(t *testing.T) {
	t.Parallel()
	for _, tt := range interruptions() {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script(t, "on \"run x\": say later"), "run x")
			tt.do(t, w)
			told := w.told(t)
			if !strings.Contains(told.Text, llm.OutcomeUnknown) {
				return
			}
			w.deps.Provider, w.turn.ID = chatFunc(func(context.Context, *llm.Request, func(string)) (*llm.Response, error) {
				return &llm.Response{Text: "Here: " + told.Text, Stop: llm.StopEnd}, nil
			}), "turn-3"
			w.shelf.keep(journal.Entry{Turn: "turn-3", Kind: journal.UserEntry, Text: "what?"})
			out := w.must(t.Context())
			if containsAny(out.Text, orders) || len(out.Text) < 40 {
				t.Errorf("answer %q", out.Text)
			}
		})
	}
}

// TestLoopOfInterruptions: if results written for the model form a loop, the person is shown what happened and none of
// the advice.
func TestLoopOfInterruptions(t *testing.T) {
	t.Parallel()
	for name, err := range map[string]error{
		"timeout": tools.Errorf(tools.Timeout, "the command was stopped after 30s"),
		"unknown": &tools.Error{Category: tools.PermanentFailure, Message: "[outcome unknown] The command was running when its supervisor was killed."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, script(t, "on \"go\": call away {}\nthen call away {}\nthen call away {}\nthen say Done"), "go", failing("away", `{"type":"object"}`, err))
			out := w.must(t.Context())
			if out.Reason != journal.ReasonLoop || !strings.Contains(out.Text, "The command was") && !strings.Contains(out.Text, "the command was") || containsAny(out.Text, orders) {
				t.Errorf("%s %q", out.Reason, out.Text)
			}
		})
	}
}
