package anomaly_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/anomaly"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// store is an anomaly.Store in memory. Safe for concurrent use.
type store struct {
	mu    sync.Mutex
	err   error
	list  map[string]tools.Block
	reads int
}

func (s *store) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *store) Blocks(context.Context) ([]tools.Block, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	return slices.Collect(maps.Values(s.list)), s.err
}

func (s *store) Block(_ context.Context, b tools.Block) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	if s.list == nil {
		s.list = map[string]tools.Block{}
	}
	s.list[b.Session+" "+b.Caller+" "+b.Tool] = b
	return nil
}

func (s *store) Unblock(_ context.Context, b tools.Block) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	delete(s.list, b.Session+" "+b.Caller+" "+b.Tool)
	return nil
}

func (s *store) names() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := []string{}
	for _, b := range s.list {
		names = append(names, b.Tool)
	}
	return strings.Join(names, " ")
}

// home is the conversation of a setup, unless it is said otherwise.
const home = "telegram:42"

// origin is a call of a person in their private chat.
func origin(session string) tools.Origin { return tools.Origin{Session: session, Caller: session} }

// setup is a detector with a clock that does not move by itself.
type setup struct {
	*anomaly.Detector
	now             time.Time
	log             bytes.Buffer
	events          []anomaly.Event
	calls           int
	session, server string // of the calls; "" = home, and a tool of our own
	caller          string // "" = whose private chat the session is
}

// blocked reports whether home may not use a tool of our own.
func (s *setup) blocked(tool string) (tools.Block, bool) {
	return s.Blocked(origin(home), tools.Definition{Name: tool})
}

func (s *setup) gate(ctx context.Context, tool string) error {
	return s.Gate(ctx, origin(home), tools.Definition{Name: tool})
}

func newSetup(t *testing.T, o anomaly.Options) *setup {
	t.Helper()
	s := &setup{now: time.Unix(1_700_000_000, 0)}
	o.Now, o.Log = func() time.Time { return s.now }, zerolog.New(&s.log)
	o.Observe = func(e anomaly.Event) { s.events = append(s.events, e) }
	d, err := anomaly.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	s.Detector = d
	return s
}

// run makes a call of a tool that ends with res and err, and reports whether the tool was run.
func (s *setup) run(ctx context.Context, tool string, res *tools.Result, err error) (bool, error) {
	s.calls++
	call := toolstest.Call(tool, `{}`)
	call.ID, call.Def = fmt.Sprint("call-", s.calls), tools.Definition{Name: tool, ReadOnly: true, Server: s.server}
	call.Origin.Session = cmp.Or(s.session, home)
	call.Origin.Caller = cmp.Or(s.caller, call.Origin.Session)
	ran := false
	_, err = s.Middleware(func(_ context.Context, call *tools.Call) (*tools.Result, error) {
		ran = true
		call.Trail.Attempts++
		return res, err
	})(ctx, call)
	return ran, err
}

// play makes one call for each letter: o succeeds, f fails, b is blocked by policy. A refusal by the detector ends it.
func (s *setup) play(ctx context.Context, tool, calls string) (ran int) {
	for _, c := range calls {
		res, err := &tools.Result{}, error(nil)
		switch c {
		case 'f':
			res, err = nil, tools.Errorf(tools.ServerError, "broken")
		case 'b':
			res, err = nil, &tools.Error{Category: tools.PolicyBlocked, Message: "no", Reason: reason.Plain("no")}
		}
		ok, _ := s.run(ctx, tool, res, err)
		if !ok {
			return ran
		}
		ran++
	}
	return ran
}

func TestLevels(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		options anomaly.Options
		calls   string
		want    string // the levels that were reached, with failures/samples
	}{
		{"five and five", anomaly.Options{Window: 10, Critical: 0.8}, "ooooofffff", "warning 5/10"},
		{"two and eight", anomaly.Options{Window: 10, Critical: 0.8}, "ooffffffff", "critical 8/10"},
		{"refusals do not count", anomaly.Options{Window: 10, Critical: 0.8}, "oobbbbbbbb", ""},
		{"all but a full window", anomaly.Options{}, strings.Repeat("f", 19), ""},
		{"a full window", anomaly.Options{}, strings.Repeat("f", 20), "critical 20/20"},
		{"reached is enough", anomaly.Options{Window: 10}, "ooofffffff", "critical 7/10"},
		{"not reached", anomaly.Options{Window: 10}, "ooooffffff", "warning 6/10"},
		{"the oldest go", anomaly.Options{Window: 4}, "oooofff", "warning 2/4, critical 3/4"},
		{"it recovers and fails again", anomaly.Options{Window: 4}, "ooffooooff", "warning 2/4, warning 2/4"},
		{"a small window", anomaly.Options{Window: 2}, "ff", "critical 2/2"},
		{"all of the default window", anomaly.Options{Critical: 1}, strings.Repeat("o", 20) + strings.Repeat("f", 20), "warning 10/20, critical 20/20"},
		{"one failure never", anomaly.Options{Window: 3, Warning: 0.01, Critical: 0.02}, "ooo", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, tc.options)
			if ran := s.play(t.Context(), "fetch", tc.calls); ran != len(tc.calls) {
				t.Errorf("blocked without being told to after %d calls", ran)
			}
			s.play(t.Context(), "grep", "ooo") // another tool has another window
			var got []string
			for _, e := range s.events {
				got = append(got, fmt.Sprintf("%s %d/%d", e.Level, e.Failures, e.Samples))
				if e.Tool != "fetch" || e.Blocked || e.Last != tools.ServerError || e.Model != "" {
					t.Errorf("event %+v", e)
				}
			}
			if diff := gocmp.Diff(tc.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if lines := strings.Count(s.log.String(), "tool fails often"); lines != len(got) || len(s.Blocks()) != 0 {
				t.Errorf("%d events, blocks %v, log:\n%s", len(got), s.Blocks(), s.log.String())
			}
		})
	}
}

// TestWhatFails: three of these block the tool, or do not.
func TestWhatFails(t *testing.T) {
	t.Parallel()
	one := 1
	own := func(c tools.Category, cause error) error { return &tools.Error{Category: c, Message: "x", Err: cause} }
	for _, tc := range []struct {
		name  string
		res   *tools.Result
		err   error
		block bool
	}{
		{"network", nil, own(tools.NetworkError, nil), true},
		{"server", nil, own(tools.ServerError, nil), true},
		{"timeout", nil, own(tools.Timeout, nil), true},
		{"rate limit", nil, own(tools.RateLimited, nil), true},
		{"permanent", nil, own(tools.PermanentFailure, nil), true},
		{"a plain error", nil, errors.New("boom"), true},
		{"a system error", nil, syscall.ECONNREFUSED, true},
		{"a command that exits with 1", &tools.Result{Error: true, ExitCode: &one}, nil, false},
		{"policy", nil, own(tools.PolicyBlocked, nil), false},
		{"a refusal that calls itself permanent", nil, &tools.Error{Category: tools.PermanentFailure, Reason: reason.New(reason.PolicyDenies)}, false},
		{"a question", nil, &tools.Pending{}, false},
		{"confirmation", nil, own(tools.ConfirmationRequired, nil), false},
		{"cancelled", nil, context.Canceled, false},
		{"unknown tool", nil, own(tools.ToolNotFound, nil), false},
		{"arguments", nil, own(tools.InvalidParameters, nil), false},
		{"types", nil, own(tools.TypeMismatch, nil), false},
		{"no such file", nil, own(tools.PermanentFailure, fmt.Errorf("open: %w", fs.ErrNotExist)), false},
		{"a directory", nil, &fs.PathError{Op: "read", Path: "/x", Err: syscall.EISDIR}, false},
		{"permission", nil, fs.ErrPermission, false},
		{"a page that is not there", nil, &tools.Error{Category: tools.PermanentFailure, Mistake: true}, false},
		{"a host that is not there", nil, &tools.Error{Category: tools.NetworkError, Mistake: true}, false},
		{"127", &tools.Result{Failure: &tools.Error{Category: tools.PermanentFailure, Mistake: true}, Error: true}, nil, false},
		{"126", &tools.Result{Failure: &tools.Error{Category: tools.PolicyBlocked, Mistake: true}, Error: true}, nil, false},
		{"a run that was stopped", &tools.Result{Failure: &tools.Error{Category: tools.Cancelled}, Error: true}, nil, false},
		{"a run whose time was up", &tools.Result{Failure: &tools.Error{Category: tools.Timeout}, Error: true}, nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true})
			for range 3 {
				if ran, _ := s.run(t.Context(), "x", tc.res, tc.err); !ran {
					t.Fatal("blocked too early")
				}
			}
			if _, blocked := s.blocked("x"); blocked != tc.block {
				t.Errorf("blocked %t", blocked)
			}
			if tc.block {
				return
			}
			s.play(t.Context(), "x", "ff") // with a sample of one failure before it, this would be three of three
			if _, blocked := s.blocked("x"); blocked {
				t.Errorf("it was counted: events %+v", s.events)
			}
		})
	}
}

func TestBlock(t *testing.T) {
	t.Parallel()
	s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true})
	s.play(t.Context(), "grep", "oof")
	if ran := s.play(t.Context(), "fetch", "fffff"); ran != 3 {
		t.Fatalf("%d calls ran", ran)
	}
	want := tools.Block{Tool: "fetch", Reason: reason.New(reason.CallsFailed, "3", "3", "server_error"), Since: s.now, Session: home, Caller: home, Until: s.now.Add(10 * time.Minute), Times: 1}
	if b, ok := s.blocked("fetch"); !ok || !gocmp.Equal(b, want) {
		t.Errorf("block %+v", b)
	}
	if len(s.events) != 1 || !s.events[0].Blocked || s.events[0].Level != anomaly.Critical {
		t.Errorf("events %+v", s.events)
	}
	ran, err := s.run(t.Context(), "fetch", &tools.Result{}, nil)
	e := tools.AsError(err)
	if ran || e.Category != tools.PolicyBlocked || !e.Denied() || e.Retryable || !strings.Contains(e.Message, want.Reason.String()) || !strings.Contains(e.Suggestion, "/tools unblock fetch") {
		t.Errorf("ran %t, error %+v", ran, e)
	}
	if err := s.gate(t.Context(), "fetch"); tools.AsError(err).Message != e.Message {
		t.Errorf("gate: %v", err)
	}
	if err := s.gate(t.Context(), "grep"); err != nil {
		t.Errorf("another reading tool is blocked: %v", err)
	}
	s.play(t.Context(), "bash", "fff")
	if diff := gocmp.Diff([]string{"bash", "fetch"}, names(s.Blocks())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for want, tool := range map[bool]string{true: "fetch", false: "grep"} {
		if ok, err := s.Unblock(t.Context(), tool); ok != want || err != nil {
			t.Errorf("unblock %s: %t, %v", tool, ok, err)
		}
	}
	if ran := s.play(t.Context(), "fetch", "ffff"); ran != 3 {
		t.Errorf("after the block was lifted %d calls ran: the window starts again", ran)
	}
}

func names(blocks []tools.Block) []string {
	list := []string{}
	for _, b := range blocks {
		list = append(list, b.Tool)
	}
	return list
}

// TestNotRun: errors before the tool runs (the journal is not available, the tool is gone) say nothing about the tool.
func TestNotRun(t *testing.T) {
	t.Parallel()
	s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true})
	for i := range 5 {
		call := toolstest.Call("x", `{}`)
		call.ID, call.Def.Name = fmt.Sprint(i), "x"
		_, err := s.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) {
			return nil, tools.Errorf(tools.ServerError, "The call could not be recorded, so it was not run.")
		})(t.Context(), call)
		if tools.AsError(err).Category != tools.ServerError {
			t.Fatal(err)
		}
	}
	if len(s.events) > 0 {
		t.Errorf("events %+v", s.events)
	}
}

// TestRetries: a call counts once however often it is tried, and is judged when it is over.
func TestRetries(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		fail    []int // how often each call fails before it goes well
		blocked bool
	}{
		{"all well at last", []int{2, 2, 2, 2, 2}, false},
		{"one call that never goes well", []int{9, 0, 0}, false},
		{"three of them", []int{9, 9, 9}, true},
		{"two, and one that recovers", []int{9, 9, 1}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Attempts: 3})
			left := 0
			flaky := tools.Tool{
				Definition: tools.Definition{Name: "flaky", Schema: []byte(`{"type":"object"}`), ReadOnly: true},
				Run: func(context.Context, *tools.Call) (*tools.Result, error) {
					if left > 0 {
						left--
						return nil, tools.Errorf(tools.NetworkError, "broken")
					}
					return &tools.Result{}, nil
				},
			}
			list, err := tools.NewRegistry(flaky)
			if err != nil {
				t.Fatal(err)
			}
			o := chain.Options{Registry: list, Anomaly: s.Middleware, Retry: repeat(3)}
			o.Gate.Policy = toolstest.Always(policy.Allow)
			c := chain.New(o)
			for i, n := range tc.fail {
				left = n
				call := toolstest.Call("flaky", `{}`)
				call.ID = fmt.Sprint(i)
				_, err := c.Execute(t.Context(), call)
				if (err != nil) != (n > 2) || call.Trail.Attempts != min(n, 2)+1 {
					t.Errorf("call %d: %d attempts, %v", i, call.Trail.Attempts, err)
				}
			}
			if _, blocked := s.blocked("flaky"); blocked != tc.blocked {
				t.Errorf("blocked %t, events %+v", blocked, s.events)
			}
		})
	}
}

// repeat tries a call up to n times.
func repeat(n int) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (res *tools.Result, err error) {
			for range n {
				if res, err = next(ctx, call); err == nil {
					break
				}
			}
			return res, err
		}
	}
}

func TestRestart(t *testing.T) {
	t.Parallel()
	kept := &store{}
	first := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Store: kept})
	first.play(t.Context(), "fetch", "fff")
	first.play(t.Context(), "grep", "off")
	second := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Store: kept})
	b, ok := second.blocked("fetch")
	if !ok || !b.Until.Equal(b.Since.Add(10*time.Minute)) || !strings.HasPrefix(b.Reason.String(), "3 of the last 3") {
		t.Errorf("block %+v", b)
	}
	if ran := second.play(t.Context(), "grep", "ff"); ran != 2 || second.gate(t.Context(), "grep") != nil {
		t.Error("the window of another process counts")
	}
	if ok, err := second.Unblock(t.Context(), "fetch"); !ok || err != nil {
		t.Errorf("unblock: %t, %v", ok, err)
	}
	if third := newSetup(t, anomaly.Options{Store: kept}); len(third.Blocks()) != 0 {
		t.Errorf("blocks %v", third.Blocks())
	}
	kept.fail(errors.New("away"))
	if _, err := anomaly.New(t.Context(), anomaly.Options{Store: kept}); err == nil || err.Error() != "read blocked tools: away" {
		t.Errorf("err = %v", err)
	}
}

// TestLift: a lifted block is over at once, although the store has it until the Change that lifts it is in. It returns
// if that never happens.
func TestLift(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{true, false} {
		kept := &store{}
		s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Store: kept})
		s.play(t.Context(), "fetch", "fff")
		s.play(t.Context(), "grep", "fff")
		if got := names(s.Lift("fetch")); !slices.Equal(got, []string{"fetch"}) {
			t.Errorf("lifted %q", got)
		}
		s.now = s.now.Add(6 * time.Second) // the list of the store is read again
		if err := s.gate(t.Context(), "fetch"); err != nil {
			t.Errorf("still blocked: %v", err)
		}
		if got := names(s.Blocks()); !slices.Equal(got, []string{"grep"}) || len(s.Lift("fetch")) != 0 {
			t.Errorf("blocks %q", got)
		}
		if stored {
			if err := kept.Unblock(t.Context(), tools.Block{Session: home, Caller: home, Tool: "fetch"}); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Unblock(t.Context(), "fetch"); err != nil {
				t.Fatal(err)
			}
		}
		s.now = s.now.Add(time.Minute)
		if err := s.gate(t.Context(), "fetch"); (err == nil) != stored {
			t.Errorf("lifted in the store: %t; the gate says %v", stored, err)
		}
		if stored && s.play(t.Context(), "fetch", "ff") != 2 {
			t.Error("failures from before the block count")
		}
	}
}

// TestProcesses: a block, and its end, reach the other processes within seconds.
func TestProcesses(t *testing.T) {
	t.Parallel()
	kept := &store{}
	a, b := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Store: kept}), newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Store: kept})
	b.play(t.Context(), "fetch", "ff")
	a.play(t.Context(), "fetch", "fff")
	reads := kept.reads
	if err := b.gate(t.Context(), "fetch"); err != nil || kept.reads != reads {
		t.Errorf("every call asks the store: %v", err)
	}
	b.now = b.now.Add(5 * time.Second)
	if err := b.gate(t.Context(), "fetch"); err == nil {
		t.Error("the other process does not know")
	}
	if ok, err := b.Unblock(t.Context(), "fetch"); !ok || err != nil {
		t.Errorf("unblock: %t, %v", ok, err)
	}
	if err := a.gate(t.Context(), "fetch"); err == nil {
		t.Error("the block is forgotten without a look at the store")
	}
	a.now = a.now.Add(5 * time.Second)
	if err := a.gate(t.Context(), "fetch"); err != nil {
		t.Errorf("the block was lifted: %v", err)
	}
	if ran := b.play(t.Context(), "fetch", "ff"); ran != 2 || b.gate(t.Context(), "fetch") != nil {
		t.Error("old failures count after the block was lifted")
	}
}

// TestStoreAway: a block holds in its process while it cannot be stored, and is stored later.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	kept := &store{}
	s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Store: kept})
	kept.fail(errors.New("away"))
	s.play(t.Context(), "fetch", "fff")
	for range 3 {
		if err := s.gate(t.Context(), "fetch"); err == nil {
			t.Error("the block does not hold")
		}
		s.now = s.now.Add(5 * time.Second)
	}
	if ok, err := s.Unblock(t.Context(), "fetch"); ok || err == nil {
		t.Errorf("unblock: %t, %v", ok, err)
	}
	if lines := strings.Count(s.log.String(), "away"); lines != 1 {
		t.Errorf("log:\n%s", s.log.String())
	}
	kept.fail(nil)
	if err := s.gate(t.Context(), "fetch"); err == nil || kept.names() != "fetch" {
		t.Errorf("gate %v, stored %q", err, kept.names())
	}
	if ok, err := s.Unblock(t.Context(), "fetch"); !ok || err != nil || kept.names() != "" {
		t.Errorf("unblock: %t, %v, stored %q", ok, err, kept.names())
	}
}

// TestCallerGone: the block is stored also when the turn is being stopped.
func TestCallerGone(t *testing.T) {
	t.Parallel()
	kept := &store{}
	s := newSetup(t, anomaly.Options{Window: 3, AutoBlock: true, Store: kept})
	s.play(t.Context(), "fetch", "ff")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s.play(ctx, "fetch", "f")
	if kept.names() != "fetch" {
		t.Errorf("stored %q", kept.names())
	}
}

func TestReasoning(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{
		"o1": true, "o1-mini": true, "o3": true, "openai/o3-mini": true, "o4-mini-high": true, "QwQ-32B": true, "qwen/qwq-32b": true,
		"deepseek/deepseek-r1": true, "DeepSeek-R1-Distill": true, "claude-3.7-sonnet-thinking": true, "anthropic/claude-think": true,
		"": false, "gpt-4o": false, "gpt-4o1": false, "claude-sonnet-4": false, "deepseek-chat": false, "thinking-cap": false, "offline": false,
	} {
		if got := anomaly.Reasoning(model); got != want {
			t.Errorf("%q: %t", model, got)
		}
		s := newSetup(t, anomaly.Options{Window: 3, ReasoningModelWarning: true, Model: func() string { return model }})
		s.play(t.Context(), "x", "fff")
		named := ""
		if want {
			named = model
		}
		if len(s.events) != 1 || s.events[0].Model != named || strings.Contains(s.log.String(), "reasoning_model") != want {
			t.Errorf("%q: events %+v, log %s", model, s.events, s.log.String())
		}
	}
}

// TestRaces: many calls, an admin and a list at once.
func TestRaces(t *testing.T) {
	t.Parallel()
	kept := &store{}
	d, err := anomaly.New(t.Context(), anomaly.Options{Window: 3, AutoBlock: true, Store: kept})
	if err != nil {
		t.Fatal(err)
	}
	h := d.Middleware(func(_ context.Context, call *tools.Call) (*tools.Result, error) {
		call.Trail.Attempts++
		return nil, tools.Errorf(tools.ServerError, "broken")
	})
	var wg sync.WaitGroup
	for n := range 8 {
		wg.Go(func() {
			for i := range 50 {
				call := toolstest.Call("x", `{}`)
				call.ID, call.Def.Name = fmt.Sprint(n, "-", i), "x"
				_, err := h(t.Context(), call)
				if err == nil {
					t.Error("no error")
				}
				if n == 0 {
					_, err = d.Unblock(t.Context(), "x")
					if err != nil {
						t.Error(err)
					}
				}
				d.Blocks()
			}
		})
	}
	wg.Wait()
	for i := range 3 {
		call := toolstest.Call("x", `{}`)
		call.ID, call.Def.Name = fmt.Sprint("last-", i), "x"
		if _, err := h(t.Context(), call); err == nil {
			t.Error("no error")
		}
	}
	if len(d.Blocks()) != 1 || kept.names() != "x" {
		t.Errorf("blocks %v, stored %q", d.Blocks(), kept.names())
	}
}
