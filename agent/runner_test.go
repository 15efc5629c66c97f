package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/tools"
)

func TestPlainAnswer(t *testing.T) {
	t.Parallel()
	m := llmtest.New(llmtest.Step{ExpectText: "hello", Deltas: []string{"Hi ", "there"}, Usage: llm.Usage{Input: 7, Output: 2}, USD: 0.25})
	w := newWorld(t, m, "hello")
	out := w.must(t.Context())
	if out.Kind != agent.Answered || out.Text != "Hi there" || out.Reason != "" {
		t.Errorf("outcome %+v", out)
	}
	want := []journal.Entry{{
		Turn: "turn-1", Kind: journal.AnswerEntry, At: noon, Text: "Hi there", Usage: llm.Usage{Input: 7, Output: 2}, USD: 0.25, Model: "scripted",
	}}
	if diff := cmp.Diff(want, out.Entries); diff != "" {
		t.Errorf("entries (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]agent.EventType{agent.ModelEvent, agent.DeltaEvent, agent.DeltaEvent}, w.watch.types()); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	req := m.Requests()[0]
	if req.System != "You are a test." || len(req.Tools) != 3 || req.Tools[0].Name != "echo" || len(req.Tools[0].Schema) == 0 {
		t.Errorf("request %+v", req)
	}
	// A turn that is over does not change again, not even by a stop.
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(agent.ErrStopped)
	again := w.must(ctx)
	if again.Kind != agent.Answered || again.Text != "Hi there" || len(again.Entries) != 0 || again.Stats.USD != 0.25 {
		t.Errorf("second run: %+v", again)
	}
}

func TestToolsThenAnswer(t *testing.T) {
	t.Parallel()
	m := script(t, `on "go": say I look.
and call* echo {"text":"a"} count {"by": 2}
and usage 10 5
then expect "the sum is 2"
and say Done
and usage 20 5`)
	w := newWorld(t, m, "go")
	out := w.must(t.Context())
	if out.Text != "Done" || out.Stats != (journal.Stats{Steps: 1, Calls: 2, Ran: 2, Usage: llm.Usage{Input: 10, Output: 5}}) {
		t.Errorf("outcome %+v", out)
	}
	if got, want := w.kinds(), "user assistant result started result answer"; got != want {
		t.Errorf("journal %s, want %s", got, want)
	}
	use := w.shelf.all()[1].Uses[1]
	if use.Call != "c2_1" || string(use.Args) != `{"by":2}` || use.Definition == "" || use.ReadOnly || use.Model == "" {
		t.Errorf("use %+v", use)
	}
	res := w.results()
	if r := res["c2_1"]; r.Text != "the sum is 2" || r.Rule != "test rule" || r.Failed || r.Tool != "count" {
		t.Errorf("result %+v", r)
	}
	wellFormed(t, m.Requests())
	last := m.Requests()[1].Messages
	if len(last) != 4 || last[1].Text != "I look." || last[1].Uses[0].ID != "c2_0" || last[2].Result.Text != "a" {
		t.Errorf("second request: %+v", last)
	}
	types := w.watch.types()
	if types[2] != agent.ResetEvent {
		t.Errorf("the text of a step with tools stays on the screen: %v", types)
	}
}

func TestReadsRunBesideEachOther(t *testing.T) {
	t.Parallel()
	m := script(t, `on "go": call* block {} echo {"text":"x"} block {} block {}
then say Done`)
	w := newWorld(t, m, "go")
	w.limits.Parallel = -1
	done := make(chan agent.Outcome, 1)
	go func() {
		out, err := w.run(t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	seen := map[string]bool{}
	for range 3 { // all three run before any may end
		seen[<-w.blocker.Started] = true
	}
	close(w.blocker.Release)
	if out := <-done; out.Text != "Done" || len(seen) != 3 {
		t.Errorf("outcome %+v, %d runs", out, len(seen))
	}
	wellFormed(t, m.Requests())
	var ids []string
	for _, msg := range m.Requests()[1].Messages[2:] {
		ids = append(ids, msg.Result.ID+" "+msg.Result.Text)
	}
	if diff := cmp.Diff([]string{"c2_0 released", "c2_1 x", "c2_2 released", "c2_3 released"}, ids); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
}

func TestReadsAreBounded(t *testing.T) {
	t.Parallel()
	m := script(t, `on "go": call* block {} block {} block {}
then say Done`)
	w := newWorld(t, m, "go")
	w.limits.Parallel = 1
	done := make(chan agent.Outcome, 1)
	go func() {
		out, err := w.run(t.Context())
		if err != nil {
			t.Error(err)
		}
		done <- out
	}()
	for range 3 { // one after the other: the next begins only when the last was released
		<-w.blocker.Started
		select {
		case id := <-w.blocker.Started:
			t.Errorf("%s runs beside another", id)
		case w.blocker.Release <- struct{}{}:
		}
	}
	if out := <-done; out.Text != "Done" {
		t.Errorf("outcome %+v", out)
	}
}

func TestWritersRunInOrderUntilOneWaits(t *testing.T) {
	t.Parallel()
	m := script(t, `on "go": call* count {"by":1} count {"by":10} count {"by":2} echo {"text":"read"} count {"by":11} count {"by":100}
then say Done`)
	w := newWorld(t, m, "go")
	out := w.must(t.Context())
	if out.Kind != agent.Parked || len(out.Entries) != 0 {
		t.Fatalf("outcome %+v", out)
	}
	var asked []string
	for _, q := range out.Questions {
		asked = append(asked, q.Call+" "+q.Show)
	}
	if diff := cmp.Diff([]string{"c2_1 add 10", "c2_4 add 11"}, asked); diff != "" {
		t.Errorf("questions of the whole batch at once (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"c2_3", "c2_0"}, w.hand.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	// A second run without a decision asks the same questions and runs nothing.
	if again := w.must(t.Context()); again.Kind != agent.Parked || len(again.Questions) != 2 || len(w.hand.ran) != 2 {
		t.Errorf("second run: %+v, ran %v", again, w.hand.ran)
	}
	// One of two decisions: the calls before the second question run.
	w.approve(agent.Outcome{Questions: out.Questions[:1]})
	half := w.must(t.Context())
	if half.Kind != agent.Parked || len(half.Questions) != 1 || half.Questions[0].Call != "c2_4" || w.counter.Sum() != 13 {
		t.Errorf("after one decision: %+v, sum %d", half, w.counter.Sum())
	}
	w.approve(half)
	if end := w.must(t.Context()); end.Text != "Done" || w.counter.Sum() != 24 {
		t.Errorf("end %+v, sum %d", end, w.counter.Sum())
	}
	if diff := cmp.Diff([]string{"c2_3", "c2_0", "c2_1", "c2_2", "c2_4"}, w.hand.ran); diff != "" {
		t.Errorf("ran (-want +got):\n%s", diff)
	}
	res := w.results()
	if r := res["c2_1"]; r.By != "telegram:42" {
		t.Errorf("approver %q", r.By)
	}
	if r := res["c2_5"]; r.Category != string(tools.PolicyBlocked) || !r.Failed {
		t.Errorf("denied call: %+v", r)
	}
	wellFormed(t, m.Requests())
}

func TestReaderThatWaits(t *testing.T) {
	t.Parallel()
	secret := tools.Tool{
		Definition: tools.Definition{Name: "count", ReadOnly: true, Schema: []byte(`{"type":"object"}`)},
		Describe: func(context.Context, *tools.Call) (tools.Subject, error) {
			return tools.Subject{Inputs: []string{"10"}}, nil
		},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{Text: "read"}, nil },
	}
	for _, calls := range []string{"count {}", "count {} echo {\"text\":\"x\"}"} {
		m := script(t, "on \"go\": call* "+calls+"\nthen say Done")
		w := newWorld(t, m, "go")
		w.replace(secret)
		out := w.must(t.Context())
		if out.Kind != agent.Parked || len(out.Questions) != 1 || out.Questions[0].Tool != "count" {
			t.Fatalf("%s: outcome %+v", calls, out)
		}
		w.approve(out)
		if end := w.must(t.Context()); end.Text != "Done" {
			t.Errorf("%s: end %+v", calls, end)
		}
	}
}

func TestModelFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		err    error
		kind   agent.OutcomeKind
		reason string
		retry  time.Duration
	}{
		{"unavailable", &llm.Error{Kind: llm.Unavailable}, agent.Later, "", 0},
		{"rate limited", &llm.Error{Kind: llm.RateLimited, RetryAfter: 7 * time.Second}, agent.Later, "", 7 * time.Second},
		{"timeout", &llm.Error{Kind: llm.Timeout}, agent.Later, "", 0},
		{"truncated", &llm.Error{Kind: llm.Truncated}, agent.Later, "", 0},
		{"deadline", context.DeadlineExceeded, agent.Later, "", 0},
		{"unknown", errors.New("weird"), agent.Later, "", 0},
		{"too long", &llm.Error{Kind: llm.TooLong}, agent.Ended, journal.ReasonContext, 0},
		{"key", &llm.Error{Kind: llm.Unauthorized}, agent.Ended, journal.ReasonKey, 0},
		{"credit", &llm.Error{Kind: llm.NoCredit}, agent.Ended, journal.ReasonCredit, 0},
		{"unknown model", &llm.Error{Kind: llm.UnknownModel}, agent.Ended, journal.ReasonNoModel, 0},
		{"address", &llm.Error{Kind: llm.WrongAddress}, agent.Ended, journal.ReasonAddress, 0},
		{"region", &llm.Error{Kind: llm.Region}, agent.Ended, journal.ReasonRegion, 0},
		{"overtime", &llm.Error{Kind: llm.Overtime}, agent.Ended, journal.ReasonOvertime, 0},
		{"oversize", &llm.Error{Kind: llm.Oversize}, agent.Ended, journal.ReasonOversize, 0},
		{"invalid", fmt.Errorf("chat: %w", &llm.Error{Kind: llm.Invalid}), agent.Ended, journal.ReasonModel, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llmtest.New().On("go", llmtest.Step{Err: tt.err}, llmtest.Step{Text: "Back"}), "go")
			out := w.must(t.Context())
			if out.Kind != tt.kind || out.Reason != tt.reason || out.RetryAfter != tt.retry || out.Err == nil {
				t.Fatalf("outcome %+v", out)
			}
			if tt.kind == agent.Later {
				if end := w.must(t.Context()); end.Text != "Back" {
					t.Errorf("after a while: %+v", end)
				}
				return
			}
			if out.Entries[0].Kind != journal.EndEntry || out.Entries[0].Reason != tt.reason {
				t.Errorf("entries %+v", out.Entries)
			}
			if again := w.must(t.Context()); again.Kind != agent.Ended || again.Reason != tt.reason || len(again.Entries) != 0 {
				t.Errorf("second run: %+v", again)
			}
		})
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	uses := []llm.ToolUse{{Name: "count", Args: []byte(`{}`)}}
	tests := []struct {
		name   string
		step   llmtest.Step
		kind   agent.OutcomeKind
		reason string
	}{
		{"empty", llmtest.Step{USD: 1}, agent.Ended, journal.ReasonEmpty},
		{"blank", llmtest.Step{Text: " \n", USD: 1}, agent.Ended, journal.ReasonEmpty},
		{"refusal", llmtest.Step{Stop: llm.StopRefusal, USD: 1}, agent.Ended, journal.ReasonRefusal},
		{"refusal in the middle of a wish", llmtest.Step{Stop: llm.StopRefusal, Uses: uses, USD: 1}, agent.Ended, journal.ReasonRefusal},
		{"refusal in words", llmtest.Step{Stop: llm.StopRefusal, Text: "I must not.", Declines: true, USD: 1}, agent.Answered, ""},
		{"broken off by a filter", llmtest.Step{Stop: llm.StopRefusal, Text: "Half an ans", USD: 1}, agent.Answered, journal.ReasonFiltered},
		{"cut", llmtest.Step{Stop: llm.StopLength, Text: "Half an ans", USD: 1}, agent.Answered, journal.ReasonLength},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, llmtest.New(tt.step), "go")
			out := w.must(t.Context())
			if out.Kind != tt.kind || out.Reason != tt.reason || out.Text != strings.TrimSpace(tt.step.Text) {
				t.Fatalf("outcome %+v", out)
			}
			if out.Entries[0].USD != 1 || out.Entries[0].Model != "scripted" {
				t.Errorf("what was spent is lost: %+v", out.Entries[0])
			}
			if again := w.must(t.Context()); again.Kind != tt.kind || again.Reason != tt.reason || w.counter.Runs() != 0 {
				t.Errorf("second run: %+v", again)
			}
		})
	}
}

func TestCallsThatCannotRun(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, call, category, text string
	}{
		{"malformed", `callraw count {"by": 1`, "type_mismatch|invalid_parameters", "error:"},
		{"not UTF-8", "callraw count {\"by\":\"\xff\"}", "type_mismatch", "by"},
		{"wrong type", `call count {"by":"x"}`, "type_mismatch", "by"},
		{"a list", `call count [1]`, "type_mismatch|invalid_parameters", "error:"},
		{"unknown", `call cuont {"by":1}`, "tool_not_found", "Did you mean count"},
		{"hidden", `call count {"by":1}`, "policy_blocked", "not permitted in this chat"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := script(t, "on \"go\": "+tt.call+"\nthen expect \"[tool_error]\"\nand say Done")
			w := newWorld(t, m, "go")
			if tt.name == "hidden" {
				w.turn.Tools = tools.Only(func(tool string) bool { return tool == "echo" })
			}
			if out := w.must(t.Context()); out.Text != "Done" {
				t.Fatalf("outcome %+v", out)
			}
			r := w.results()["c2_0"]
			if !r.Failed || !strings.Contains(tt.category, r.Category) || !strings.Contains(r.Text, tt.text) || w.counter.Runs() != 0 {
				t.Errorf("result %+v", r)
			}
			wellFormed(t, m.Requests())
		})
	}
}

func TestToolsThatChange(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, want string
		change     func(d *tools.Definition)
	}{
		{"changed", "has changed", func(d *tools.Definition) { d.Description = "Does something else." }},
		{"vanished", "no longer available", func(d *tools.Definition) { d.Name = "gone" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			offered := tools.Definition{Name: "count", Schema: []byte(`{"type":"object"}`)}
			tt.change(&offered)
			m := script(t, "on \"go\": call "+offered.Name+" {}\nthen say Done")
			w := newWorld(t, m, "go")
			w.deps.Catalog = catalog(func() []tools.Definition { return []tools.Definition{offered} })
			if out := w.must(t.Context()); out.Text != "Done" {
				t.Fatalf("outcome %+v", out)
			}
			r := w.results()["c2_0"]
			if r.Category != string(tools.PermanentFailure) || !strings.Contains(r.Text, tt.want) || w.counter.Runs() != 0 {
				t.Errorf("result %+v", r)
			}
		})
	}
}

func TestErrorsOfTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, script(t, "on \"go\": call* echo {\"text\":\"a\"} echo {\"text\":\"b\"}\nthen say Done"), "go")
	h := &handle{shelf: w.shelf, load: errStore}
	if _, err := agent.NewRunner(w.deps, w.limits).Run(t.Context(), w.turn, h, w.watch); !errors.Is(err, errStore) {
		t.Errorf("load: %v", err)
	}
	// Another worker writes while the model thinks.
	h = &handle{shelf: w.shelf}
	deps := w.deps
	deps.Provider = chatFunc(func(ctx context.Context, req *llm.Request, d func(string)) (*llm.Response, error) {
		w.shelf.mu.Lock()
		w.shelf.keep(journal.Entry{Turn: "turn-1", Kind: journal.StartedEntry})
		w.shelf.mu.Unlock()
		return w.deps.Provider.Chat(ctx, req, d)
	})
	if _, err := agent.NewRunner(deps, w.limits).Run(t.Context(), w.turn, h, w.watch); !errors.Is(err, journal.ErrConflict) {
		t.Errorf("err = %v, want ErrConflict", err)
	}
	// The results of a parallel batch cannot be stored.
	w.shelf.before = func(n int) error {
		if n >= 3 {
			return errStore
		}
		return nil
	}
	if _, err := w.run(t.Context()); !errors.Is(err, errStore) {
		t.Errorf("err = %v, want %v", err, errStore)
	}
	w.shelf.before = nil
	if out := w.must(t.Context()); out.Text != "Done" {
		t.Errorf("outcome %+v", out)
	}
}

func TestClearedUnderTheTurn(t *testing.T) {
	t.Parallel()
	m := llmtest.New()
	w := newWorld(t, m, "go")
	w.shelf.keep(journal.Entry{Turn: "reset/1", Kind: journal.ResetEntry})
	if out := w.must(t.Context()); out.Kind != agent.Ended || out.Reason != journal.ReasonInternal || len(m.Requests()) != 0 {
		t.Errorf("outcome %+v", out)
	}
}

func TestProgressAndFailures(t *testing.T) {
	t.Parallel()
	work := tools.Tool{
		Definition: tools.Definition{Name: "work", Schema: []byte(`{"type":"object"}`)},
		Run: func(_ context.Context, call *tools.Call) (*tools.Result, error) {
			call.Progress("half")
			return &tools.Result{Text: "exit 1", Error: true, Untrusted: "https://h"}, nil
		},
	}
	w := newWorld(t, script(t, "on \"go\": call work {}\nthen say Done"), "go", work)
	w.must(t.Context())
	var got []agent.Event
	for _, e := range w.watch.events {
		if e.Call != "" {
			got = append(got, e)
		}
	}
	want := []agent.Event{
		{Type: agent.ToolStartedEvent, Call: "c2_0", Tool: "work", Args: "{}", Step: 1},
		{Type: agent.ToolProgressEvent, Call: "c2_0", Tool: "work", Text: "half"},
		{Type: agent.ToolFinishedEvent, Call: "c2_0", Tool: "work", Args: "{}", Failed: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	if r := w.results()["c2_0"]; !r.Failed || r.Source != "https://h" || r.Category != "" {
		t.Errorf("result %+v", r)
	}
}

func TestIterations(t *testing.T) {
	t.Parallel()
	steps := make([]llmtest.Step, 0, 20)
	for i := range 20 {
		steps = append(steps, llmtest.Step{Uses: []llm.ToolUse{{Name: "echo", Args: fmt.Appendf(nil, `{"text":"%d"}`, i)}}})
	}
	for limit, want := range map[int]int{0: 10, 1: 1, 3: 3, -1: 20} {
		m := llmtest.New(steps...)
		w := newWorld(t, m, "go")
		w.limits.Iterations = limit
		out := w.must(t.Context())
		if out.Kind != agent.Ended || out.Stats.Steps != want {
			t.Errorf("limit %d: %s %s after %d steps, want %d", limit, out.Kind, out.Reason, out.Stats.Steps, want)
		}
		if reason := map[bool]string{true: journal.ReasonLimit, false: journal.ReasonModel}[limit >= 0]; out.Reason != reason {
			t.Errorf("limit %d: reason %s", limit, out.Reason)
		}
	}
}

func TestDoomLoop(t *testing.T) {
	t.Parallel()
	n := 0
	clock := tools.Tool{
		Definition: tools.Definition{Name: "clock", ReadOnly: true, Schema: []byte(`{"type":"object"}`)},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			n++ // one call per step: never concurrent
			return &tools.Result{Text: fmt.Sprintf("it is %d", n)}, nil
		},
	}
	long := tools.Tool{
		Definition: tools.Definition{Name: "long", ReadOnly: true, Schema: []byte(`{"type":"object"}`)},
		Run: func(_ context.Context, call *tools.Call) (*tools.Result, error) {
			return &tools.Result{Text: "cut; the rest is overflow:0f8fad5b-d9cb-469f-a165-7086" + fmt.Sprintf("%08d", len(call.ID)+int(call.Batch))}, nil
		},
	}
	same, other := `call echo {"text":"<same> & more"}`, `call echo {"text":"other"}`
	tests := []struct {
		name    string
		steps   []string
		repeats int
		kind    agent.OutcomeKind
		text    string
		asked   int
	}{
		{"three", []string{same, same, same, same}, 0, agent.Ended, "<same> & more", 3},
		{"two", []string{same, same, "say Done"}, 0, agent.Answered, "Done", 3},
		{"interrupted", []string{same, same, other, same, same, "say Done"}, 0, agent.Answered, "Done", 6},
		{"late", []string{other, same, same, same, same}, 0, agent.Ended, "<same> & more", 4},
		{"another result", []string{"call clock {}", "call clock {}", "call clock {}", "call clock {}", "say Done"}, 0, agent.Answered, "Done", 5},
		{"only the name of the rest differs", []string{"call long {}", "call long {}", "call long {}", "say Done"}, 0, agent.Ended, "cut; the rest", 3},
		{"off", []string{same, same, same, same, "say Done"}, -1, agent.Answered, "Done", 5},
	}
	for _, tt := range tests {
		m := script(t, "on \"go\": "+strings.Join(tt.steps, "\nthen "))
		w := newWorld(t, m, "go", clock, long)
		w.limits.Repeats = tt.repeats
		out := w.must(t.Context())
		if out.Kind != tt.kind || !strings.HasPrefix(out.Text, tt.text) || len(m.Requests()) != tt.asked {
			t.Errorf("%s: %d requests, outcome %+v", tt.name, len(m.Requests()), out)
		}
		if tt.kind == agent.Ended && out.Reason != journal.ReasonLoop {
			t.Errorf("%s: reason %s", tt.name, out.Reason)
		}
	}
}

func TestDoomLoopOverRestarts(t *testing.T) {
	t.Parallel()
	step := `call count {"by": 10}`
	w := newWorld(t, script(t, "on \"go\": "+step+"\nthen "+step+"\nthen "+step+"\nthen say Done"), "go",
		tools.Tool{Definition: tools.Definition{Name: "x"}, Run: func(context.Context, *tools.Call) (*tools.Result, error) { return nil, nil }})
	w.replace(tools.Tool{
		Definition: tools.Definition{Name: "count", Schema: []byte(`{"type":"object"}`)},
		Describe: func(context.Context, *tools.Call) (tools.Subject, error) {
			return tools.Subject{Inputs: []string{"10"}}, nil
		},
		Run: func(context.Context, *tools.Call) (*tools.Result, error) {
			return &tools.Result{Text: "no change <>"}, nil
		},
	})
	if out := w.finish(t.Context()); out.Reason != journal.ReasonLoop || out.Text != "no change <>" {
		t.Errorf("each step is run by another process, and the loop is not detected: %+v", out)
	}
}
