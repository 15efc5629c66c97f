package agent_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/tools"
)

var errMoved = errors.New("the process goes down")

// stopped returns a context and the function that ends it.
func stopped(t *testing.T, cause error) (context.Context, func()) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	t.Cleanup(func() { cancel(nil) })
	return ctx, func() { cancel(cause) }
}

// slow returns a tool that changes something and is ended from outside while it runs.
func slow(end func(), result *tools.Result, err error) tools.Tool {
	return tools.Tool{
		Definition: tools.Definition{Name: "slow", Schema: []byte(`{"type":"object"}`)},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			end()
			return result, err
		},
	}
}

// isStopped checks that the turn ended as stopped by a person.
func isStopped(t *testing.T, out agent.Outcome, err error, text string) {
	t.Helper()
	if err != nil || out.Kind != agent.Ended || out.Reason != journal.ReasonStopped || out.Text != text {
		t.Fatalf("outcome %+v, error %v", out, err)
	}
	if last := out.Entries[len(out.Entries)-1]; last.Kind != journal.EndEntry || last.Reason != journal.ReasonStopped {
		t.Errorf("last entry %+v", last)
	}
}

func TestStopWhileTheModelSpeaks(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{agent.ErrStopped, errMoved} {
		ctx, end := stopped(t, cause)
		w := newWorld(t, nil, "go")
		money := &purse{}
		w.deps.Budget = money
		w.deps.Provider = chatFunc(func(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
			onDelta("forget ")
			req.OnReset()
			onDelta("Half an ")
			onDelta("answer")
			end()
			return nil, ctx.Err()
		})
		out, err := w.run(ctx)
		if spent := money.settled["turn-1/1"]; spent.Input == 0 || spent.Output == 0 {
			t.Errorf("a call that had begun to answer is settled with %+v", spent)
		}
		if errors.Is(cause, agent.ErrStopped) {
			isStopped(t, out, err, "Half an answer")
			continue
		}
		if !errors.Is(err, errMoved) || w.kinds() != "user" {
			t.Errorf("shutdown: %+v, %v, journal %s", out, err, w.kinds())
		}
	}
}

func TestStopWhileAToolReads(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{agent.ErrStopped, errMoved} {
		ctx, end := stopped(t, cause)
		w := newWorld(t, script(t, "on \"go\": call* echo {\"text\":\"a\"} block {}\nthen say Done"), "go")
		w.limits.Parallel = 1 // echo has ended when block begins
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-w.blocker.Started
			end()
		}()
		out, err := w.run(ctx)
		<-done
		if w.results()["c2_0"].Text != "a" {
			t.Error("what was read before the stop is lost")
		}
		if errors.Is(cause, agent.ErrStopped) {
			isStopped(t, out, err, "")
			if r := w.results()["c2_1"]; r.Category != "cancelled" || !strings.Contains(r.Text, "stopped this call while it ran") {
				t.Errorf("result %+v", r)
			}
			continue
		}
		if !errors.Is(err, errMoved) {
			t.Fatalf("shutdown: %+v, %v", out, err)
		}
		close(w.blocker.Release)
		go func() { <-w.blocker.Started }()
		if end := w.must(t.Context()); end.Text != "Done" {
			t.Errorf("after the shutdown: %+v", end)
		}
	}
}

func TestStopWhileAToolChangesSomething(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name           string
		cause          error
		result         *tools.Result
		err            error
		category, text string
	}{
		{"stopped", agent.ErrStopped, nil, context.Canceled, "cancelled", "stopped this call while it ran. It may have finished"},
		{"restarted", errMoved, nil, context.Canceled, "unknown", "[outcome unknown]\nThis call was ended half-way"},
		{"restarted, wrapped", errMoved, nil, &tools.Error{Category: tools.NetworkError, Message: "x", Err: context.Canceled}, "unknown", "[outcome unknown]"},
		{"it was done all the same", errMoved, &tools.Result{Text: "done"}, nil, "", "done"},
		{"it failed by itself", agent.ErrStopped, nil, tools.Errorf(tools.InvalidParameters, "no such place"), "invalid_parameters", "no such place"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ctx, end := stopped(t, tt.cause)
			w := newWorld(t, script(t, "on \"go\": call* slow {} count {\"by\":1} count {\"by\":10}\nthen say Done"), "go", slow(end, tt.result, tt.err))
			out, err := w.run(ctx)
			r := w.results()["c2_0"]
			if r.Category != tt.category || !strings.Contains(r.Text, tt.text) {
				t.Errorf("result %+v", r)
			}
			if w.counter.Runs() != 0 {
				t.Error("the next call ran although the turn was stopped")
			}
			if errors.Is(tt.cause, agent.ErrStopped) {
				isStopped(t, out, err, "")
				if got, want := w.kinds(), "user assistant started result result result end"; got != want {
					t.Errorf("journal %s, want %s", got, want)
				}
				return
			}
			if !errors.Is(err, tt.cause) {
				t.Fatalf("shutdown: %+v, %v", out, err)
			}
			if end := w.finish(t.Context()); end.Text != "Done" || w.counter.Sum() != 11 || len(w.hand.interrupted) != 0 {
				t.Errorf("after the shutdown: %+v, sum %d, interrupted %v", end, w.counter.Sum(), w.hand.interrupted)
			}
		})
	}
}

func TestStopWhileParked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(t, "on \"go\": say Let me.\nand call* count {\"by\":10} count {\"by\":11}\nthen say Done"), "go")
	if out := w.must(t.Context()); out.Kind != agent.Parked {
		t.Fatalf("outcome %+v", out)
	}
	ctx, end := stopped(t, agent.ErrStopped)
	end()
	out, err := w.run(ctx)
	isStopped(t, out, err, "")
	if got, want := w.kinds(), "user assistant result result end"; got != want {
		t.Errorf("journal %s, want %s", got, want)
	}
	for id, r := range w.results() {
		if !r.Failed || r.Category != "cancelled" || !strings.Contains(r.Text, "before it ran") {
			t.Errorf("%s: %+v", id, r)
		}
	}
	// The next turn sees a complete conversation.
	m := script(t, `on "next": say Next`)
	w.deps.Provider, w.turn.ID = m, "turn-2"
	w.shelf.keep(journal.Entry{Turn: "turn-2", Kind: journal.UserEntry, Text: "next"})
	if out := w.must(t.Context()); out.Text != "Next" || out.Stats != (journal.Stats{}) {
		t.Errorf("next turn: %+v", out)
	}
	wellFormed(t, m.Requests())
	var roles []string
	for _, msg := range m.Requests()[0].Messages {
		roles = append(roles, string(msg.Role))
	}
	if diff := cmp.Diff([]string{"user", "assistant", "tool", "tool", "assistant", "user"}, roles); diff != "" {
		t.Errorf("roles (-want +got):\n%s", diff)
	}
}

func TestStopAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(t, ""), "go")
	w.shelf.keep(
		journal.Entry{Turn: "turn-1", Kind: journal.AssistantEntry, Uses: []journal.Use{{Call: "c2_0", Name: "count", Args: []byte(`{}`)}, {Call: "c2_1", Name: "count", Args: []byte(`{}`)}}},
		journal.Entry{Turn: "turn-1", Kind: journal.StartedEntry, Call: "c2_0", Tool: "count"},
	)
	ctx, end := stopped(t, agent.ErrStopped)
	end()
	out, err := w.run(ctx)
	isStopped(t, out, err, "")
	if diff := cmp.Diff([]string{"c2_0"}, w.hand.interrupted); diff != "" {
		t.Errorf("interrupted (-want +got):\n%s", diff)
	}
	if r := w.results(); !strings.Contains(r["c2_0"].Text, "may have finished") || !strings.Contains(r["c2_1"].Text, "before it ran") {
		t.Errorf("results %+v", r)
	}
}

// TestStopWhileTheModelWishes: what the model said in time is kept, and its tool uses are closed.
func TestStopWhileTheModelWishes(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{agent.ErrStopped, errMoved} {
		ctx, end := stopped(t, cause)
		m := script(t, "on \"go\": call count {\"by\":1}\nthen say Done")
		w := newWorld(t, chatFunc(func(_ context.Context, req *llm.Request, d func(string)) (*llm.Response, error) {
			res, err := m.Chat(context.WithoutCancel(ctx), req, d)
			end()
			return res, err
		}), "go")
		out, err := w.run(ctx)
		if errors.Is(cause, agent.ErrStopped) {
			isStopped(t, out, err, "")
			if got, want := w.kinds(), "user assistant result end"; got != want {
				t.Errorf("journal %s, want %s", got, want)
			}
			continue
		}
		if !errors.Is(err, errMoved) || w.kinds() != "user assistant" {
			t.Errorf("shutdown: %v, journal %s", err, w.kinds())
		}
	}
}
