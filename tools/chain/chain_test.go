package chain_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// trace notes what happens, in order.
type trace struct {
	mu    sync.Mutex
	steps []string
}

func (t *trace) add(step string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.steps = append(t.steps, step)
}

// stage records when a call goes down through it, and when the result comes up.
func (t *trace) stage(name string) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			t.add(name)
			res, err := next(ctx, call)
			t.add(name + " up")
			return res, err
		}
	}
}

// Write records that an audit line is written.
func (t *trace) Write(p []byte) (int, error) {
	t.add("audit line")
	return len(p), nil
}

// Approval records that the approvals were read.
func (t *trace) Approval(_ context.Context, _, _, _ string) (approve.Approval, error) {
	t.add("approve")
	return approve.Approval{State: approve.Waiting}, nil
}

// Use is not traced: no standing approval allows anything here.
func (*trace) Use(context.Context, *tools.Call, string) (bool, error) { return true, nil }

func registry(t *testing.T, list ...tools.Tool) *tools.Registry {
	t.Helper()
	r, err := tools.NewRegistry(list...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// simple returns a chain of policy and tools alone.
func simple(t *testing.T, e policy.Effect, list ...tools.Tool) *chain.Chain {
	t.Helper()
	return chain.New(chain.Options{Registry: registry(t, list...), Gate: chain.GateOptions{Policy: toolstest.Always(e)}})
}

// bare returns a tool without schema.
func bare(name string, run tools.Handler) tools.Tool {
	return tools.Tool{Definition: tools.Definition{Name: name, Schema: json.RawMessage(`{"type":"object"}`)}, Run: run}
}

// full returns a chain with every stage, each of which records that it was passed.
func full(t *testing.T, tr *trace, e policy.Effect) *chain.Chain {
	t.Helper()
	log, err := audit.New(audit.Options{Writer: tr})
	if err != nil {
		t.Fatal(err)
	}
	tool := bare("t", func(context.Context, *tools.Call) (*tools.Result, error) {
		tr.add("registry")
		return &tools.Result{Text: "x"}, nil
	})
	tool.Describe = func(_ context.Context, c *tools.Call) (tools.Subject, error) {
		tr.add("decode " + string(c.Args)) // what the gate sees has been through decode
		return tools.Subject{}, nil
	}
	return chain.New(chain.Options{
		Registry: registry(t, tool), Audit: log, Approvals: tr,
		Gate: chain.GateOptions{Policy: toolstest.Decide(func(policy.Request) policy.Decision {
			tr.add("gate")
			return policy.Decision{Effect: e}
		})},
		Block: tr.stage("block"), Judge: tr.stage("judge"), Quota: tr.stage("quota"), Warn: tr.stage("warn"), Mark: tr.stage("mark"), Cache: tr.stage("cache"), Overflow: tr.stage("overflow"),
		Filter: tr.stage("filter"), Redact: tr.stage("redact"), Retry: tr.stage("retry"), Anomaly: tr.stage("anomaly"),
	})
}

func TestOrder(t *testing.T) {
	t.Parallel()
	down := []string{"judge", "quota", "warn", "mark", "cache", "overflow", "filter", "redact", "retry", "anomaly"}
	for _, tc := range []struct {
		name   string
		effect policy.Effect
		probe  bool
		err    bool
		want   []string
	}{
		{name: "allow", effect: policy.Allow, want: append(append([]string{"block", `decode {"a":1}`, "gate"}, down...), "audit line", "start", "registry",
			"anomaly up", "retry up", "redact up", "filter up", "overflow up", "cache up", "mark up", "warn up", "quota up", "judge up", "block up", "audit line")},
		{name: "ask", effect: policy.Ask, err: true, want: []string{"block", `decode {"a":1}`, "gate", "judge", "quota", "approve", "quota up", "judge up", "block up"}},
		{name: "deny", effect: policy.Deny, err: true, want: []string{"block", `decode {"a":1}`, "gate", "block up", "audit line"}},
		{name: "probe", effect: policy.Allow, probe: true, err: true, want: []string{"block", `decode {"a":1}`, "gate", "judge", "quota", "quota up", "judge up", "block up"}},
		{name: "probe of an ask", effect: policy.Ask, probe: true, err: true, want: []string{"block", `decode {"a":1}`, "gate", "judge", "quota", "approve", "quota up", "judge up", "block up"}},
		{name: "probe of a denial", effect: policy.Deny, probe: true, err: true, want: []string{"block", `decode {"a":1}`, "gate", "block up"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var tr trace
			c := full(t, &tr, tc.effect)
			call := toolstest.Call("t", `{ "a" : 1 }`)
			call.Probe = tc.probe
			call.OnStart = func(context.Context) error { tr.add("start"); return nil }
			_, err := c.Execute(t.Context(), call)
			if (err != nil) != tc.err {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.want, tr.steps); diff != "" {
				t.Errorf("steps (-want +got):\n%s", diff)
			}
			names := strings.Fields("audit conclude decode block gate judge quota approve probe warn mark cache overflow filter redact retry anomaly start registry")
			if diff := cmp.Diff(names, c.Order()); diff != "" {
				t.Errorf("order (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOptionalStages(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(strings.Fields("conclude decode gate approve probe start registry"), chain.New(chain.Options{}).Order()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	_, err := chain.New(chain.Options{}).Execute(t.Context(), &tools.Call{Tool: "echo"})
	var e *tools.Error
	if !errors.As(err, &e) || e.Category != tools.ToolNotFound {
		t.Errorf("an empty chain: %v", err)
	}
	_, err = chain.New(chain.Options{Registry: registry(t, toolstest.Echo())}).Execute(t.Context(), toolstest.Call("echo", `{"text":"x"}`))
	if !errors.As(err, &e) || e.Category != tools.PolicyBlocked {
		t.Errorf("a chain without policy: %v", err)
	}
}

func TestFailures(t *testing.T) {
	t.Parallel()
	two := 2
	fails := func(err error) tools.Handler {
		return func(context.Context, *tools.Call) (*tools.Result, error) { return nil, err }
	}
	for _, tc := range []struct {
		name, tool, args string
		category         tools.Category
		message          string
		started          bool
	}{
		{"unknown", "ecko", `{}`, tools.ToolNotFound, `there is no tool named "ecko"`, false},
		{"arguments", "echo", `{}`, tools.InvalidParameters, "missing required field: text", false},
		{"type", "echo", `{"text":1}`, tools.TypeMismatch, "field text: want string, got number", false},
		{"panic", "panics", `{}`, tools.PermanentFailure, "The tool failed for an internal reason.", true},
		{"panic while describing", "shy", `{}`, tools.PermanentFailure, "The tool failed for an internal reason.", false},
		{"own error", "own", `{}`, tools.RateLimited, "wait", true},
		{"plain error", "plain", `{}`, tools.PermanentFailure, "the tool failed for an internal reason; the log has the details", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			shy := bare("shy", fails(nil))
			shy.Describe = func(context.Context, *tools.Call) (tools.Subject, error) { panic("password hunter2") }
			c := simple(t, policy.Allow, toolstest.Echo(), shy,
				bare("panics", func(context.Context, *tools.Call) (*tools.Result, error) { panic("password hunter2") }),
				bare("own", fails(tools.Errorf(tools.RateLimited, "wait"))),
				bare("plain", fails(errors.New("dial tcp 10.0.0.1"))),
				bare("exit", func(context.Context, *tools.Call) (*tools.Result, error) {
					return &tools.Result{Error: true, ExitCode: &two}, nil
				}),
			)
			var logged bytes.Buffer
			ctx := zerolog.New(&logged).WithContext(t.Context())
			call := toolstest.Call(tc.tool, tc.args)
			call.Trail = nil
			res, err := c.Execute(ctx, call)
			var e *tools.Error
			if !errors.As(err, &e) || res != nil {
				t.Fatalf("got %v, %v", res, err)
			}
			if e.Category != tc.category || e.Message != tc.message {
				t.Errorf("got %s: %s", e.Category, e.Message)
			}
			if call.Trail == nil || call.Trail.Category != tc.category || call.Trail.Started != tc.started {
				t.Errorf("trail %+v", call.Trail)
			}
			if text := tools.Feedback(err) + err.Error(); strings.Contains(text, "hunter2") || strings.Contains(tools.Feedback(err), "10.0.0.1") {
				t.Errorf("internals get out: %s", text)
			}
			if panicked := strings.HasPrefix(tc.name, "panic"); panicked != strings.Contains(logged.String(), "chain_test.go") {
				t.Errorf("log: %s", logged.String())
			}
		})
	}
}

func TestResults(t *testing.T) {
	t.Parallel()
	three := 3
	shared := &tools.Result{Text: " \n"}
	for name, tc := range map[string]struct {
		res  *tools.Result
		want tools.Result
	}{
		"text":    {&tools.Result{Text: "a"}, tools.Result{Text: "a"}},
		"nothing": {nil, tools.Result{Text: "(no output)"}},
		"blank":   {shared, tools.Result{Text: "(no output)"}},
		"failure": {&tools.Result{Error: true, ExitCode: &three, Truncated: true}, tools.Result{Text: "(no output)", Error: true, ExitCode: &three, Truncated: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := simple(t, policy.Allow, bare("t", func(context.Context, *tools.Call) (*tools.Result, error) { return tc.res, nil }))
			call := toolstest.Call("t", `{}`)
			got, err := c.Execute(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if call.Trail.Attempts != 1 || !call.Trail.Started || call.Trail.Category != "" || call.Trail.ExitCode != tc.want.ExitCode || call.Trail.Truncated != tc.want.Truncated {
				t.Errorf("trail %+v", call.Trail)
			}
		})
	}
	t.Cleanup(func() {
		if shared.Text != " \n" {
			t.Error("a result that others may hold was changed")
		}
	})
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := toolstest.NewBlocker()
		slow := b.Tool()
		slow.Definition.Timeout = 15 * time.Second
		c := simple(t, policy.Allow, slow)
		call := toolstest.Call("block", `{}`)
		var err error
		var wg sync.WaitGroup
		wg.Go(func() { _, err = c.Execute(t.Context(), call) })
		<-b.Started
		wg.Wait() // the bubble's clock jumps to the deadline
		var e *tools.Error
		if !errors.As(err, &e) || e.Category != tools.Timeout || e.Message != "The tool was stopped after 15s." {
			t.Errorf("got %v", err)
		}
		if call.Trail.Duration != 15*time.Second {
			t.Errorf("duration %s", call.Trail.Duration)
		}
	})
}

func TestCancel(t *testing.T) {
	t.Parallel()
	b := toolstest.NewBlocker()
	c := simple(t, policy.Allow, b.Tool())
	ctx, cancel := context.WithCancel(t.Context())
	var err error
	var wg sync.WaitGroup
	wg.Go(func() { _, err = c.Execute(ctx, toolstest.Call("block", `{}`)) })
	<-b.Started
	cancel()
	wg.Wait()
	var e *tools.Error
	if !errors.As(err, &e) || e.Category != tools.Cancelled {
		t.Errorf("got %v", err)
	}
	call := toolstest.Call("block", `{}`)
	call.OnStart = func(context.Context) error { t.Error("started after the cancel"); return nil }
	if _, err = c.Execute(ctx, call); !errors.As(err, &e) || e.Category != tools.Cancelled || call.Trail.Started {
		t.Errorf("got %v, started %t", err, call.Trail.Started)
	}
}

func TestStart(t *testing.T) {
	t.Parallel()
	var counter toolstest.Counter
	runs := 0
	flaky := bare("flaky", func(context.Context, *tools.Call) (*tools.Result, error) {
		if runs++; runs < 3 {
			return nil, tools.Errorf(tools.NetworkError, "reset")
		}
		return &tools.Result{Text: "there"}, nil
	})
	retry := func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			for {
				if res, err := next(ctx, call); err == nil || !tools.AsError(err).Category.Transient() {
					return res, err
				}
			}
		}
	}
	c := chain.New(chain.Options{Registry: registry(t, counter.Tool(), flaky), Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)}, Retry: retry})

	starts := 0
	call := toolstest.Call("flaky", `{}`)
	call.OnStart = func(context.Context) error { starts++; return nil }
	if _, err := c.Execute(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if starts != 1 || call.Trail.Attempts != 3 {
		t.Errorf("%d starts, %d attempts", starts, call.Trail.Attempts)
	}

	call = toolstest.Call(counter.Tool().Definition.Name, `{}`)
	broken := errors.New("disk full")
	call.OnStart = func(context.Context) error {
		return &tools.Error{Category: tools.PermanentFailure, Message: "not written", Err: broken}
	}
	if _, err := c.Execute(t.Context(), call); !errors.Is(err, broken) || counter.Runs() != 0 || call.Trail.Started {
		t.Errorf("ran %d times without a record of the start: %v", counter.Runs(), err)
	}
}

// TestSure: what is recorded as started runs only in a process that is sure of its work, at every attempt.
func TestSure(t *testing.T) {
	t.Parallel()
	var counter toolstest.Counter
	gone := errors.New("taken for dead")
	asked, started := 0, false
	c := chain.New(chain.Options{Registry: registry(t, counter.Tool()), Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)}, Sure: func(context.Context) error {
		if asked++; !started {
			t.Error("asked before the start is recorded")
		}
		return gone
	}})
	call := toolstest.Call(counter.Tool().Definition.Name, `{}`)
	call.OnStart = func(context.Context) error { started = true; return nil }
	if _, err := c.Execute(t.Context(), call); !errors.Is(err, gone) || counter.Runs() != 0 || asked != 1 {
		t.Errorf("ran %d times, asked %d times: %v", counter.Runs(), asked, err)
	}
}

// TestApproval follows one question to its end: asked, answered, run; and a yes to something else does not count.
func TestApproval(t *testing.T) {
	t.Parallel()
	var counter toolstest.Counter
	var lookup toolstest.Lookup
	var out bytes.Buffer
	log, err := audit.New(audit.Options{Writer: &out})
	if err != nil {
		t.Fatal(err)
	}
	r := registry(t, counter.Tool())
	c := chain.New(chain.Options{Registry: r, Gate: chain.GateOptions{Policy: toolstest.Always(policy.Ask)}, Approvals: &lookup, Audit: log})
	execute := func(args string) (*tools.Call, error) {
		call := toolstest.Call("count", args)
		_, err := c.Execute(t.Context(), call)
		return call, err
	}
	_, err = execute(`{"by": 2}`)
	if err := lookup.Approve("telegram:42", err, "telegram:7"); err != nil {
		t.Fatal(err)
	}
	var pending *tools.Pending
	if _, err = execute(`{"by":200}`); !errors.As(err, &pending) || pending.Question.Show != "add 200" || pending.Question.Reason.String() != "The test says ask." {
		t.Errorf("other arguments: %v", err)
	}
	if counter.Runs() != 0 || out.Len() > 0 {
		t.Fatalf("ran %d times, audit %q", counter.Runs(), out.String())
	}
	call, err := execute(`{"by":2}`)
	if err != nil || counter.Sum() != 2 || call.Trail.ApprovedBy != "telegram:7" {
		t.Errorf("sum %d, %v, %+v", counter.Sum(), err, call.Trail)
	}
	if got := strings.Count(out.String(), "\n"); got != 2 || strings.Count(out.String(), `"approved_by":"telegram:7"`) != 2 {
		t.Errorf("%d audit lines: %s", got, out.String())
	}
	old, _ := r.Lookup("count")
	r.Remove("count")
	old.Definition.Description = "Deletes everything."
	if err := r.Add(old); err != nil {
		t.Fatal(err)
	}
	if _, err = execute(`{"by":2}`); !errors.As(err, &pending) {
		t.Errorf("a changed tool ran on an old yes: %v", err)
	}
}

// TestToolChangesOnTheWay replaces the tool after the gate has judged it: the judged tool is not the one that would
// run.
func TestToolChangesOnTheWay(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*tools.Registry) error{
		"the tool has changed since it was offered": func(r *tools.Registry) error {
			r.Remove("t")
			other := bare("t", func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{Text: "evil"}, nil })
			other.Definition.Description = "other"
			return r.Add(other)
		},
		"the tool t is no longer available": func(r *tools.Registry) error { r.Remove("t"); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := registry(t, bare("t", func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{Text: "x"}, nil }))
			var changed error
			c := chain.New(chain.Options{
				Registry: r, Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)},
				Judge: func(next tools.Handler) tools.Handler {
					return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
						changed = change(r)
						return next(ctx, call)
					}
				},
			})
			call := toolstest.Call("t", `{}`)
			call.OnStart = func(context.Context) error { t.Error("started"); return nil }
			_, err := c.Execute(t.Context(), call)
			var e *tools.Error
			if changed != nil || !errors.As(err, &e) || e.Category != tools.PermanentFailure || e.Message != name {
				t.Errorf("got %v, %v", err, changed)
			}
		})
	}
}

func TestOfferedDefinition(t *testing.T) {
	t.Parallel()
	c := simple(t, policy.Allow, toolstest.Echo())
	call := toolstest.Call("echo", `{"text":"x"}`)
	call.Definition = toolstest.Echo().Definition.Hash()
	if _, err := c.Execute(t.Context(), call); err != nil {
		t.Errorf("unchanged: %v", err)
	}
	call.Definition = "old"
	_, err := c.Execute(t.Context(), call)
	if e := tools.AsError(err); e.Category != tools.PermanentFailure || e.Message != "the tool has changed since it was offered" {
		t.Errorf("changed: %v", err)
	}
}

func TestConcurrentCalls(t *testing.T) {
	t.Parallel()
	var counter toolstest.Counter
	c := simple(t, policy.Allow, counter.Tool(), toolstest.Echo())
	var wg sync.WaitGroup
	for n := range 20 {
		wg.Go(func() {
			if _, err := c.Execute(t.Context(), toolstest.Call("count", `{"by":1}`)); err != nil {
				t.Error(err)
			}
			text := fmt.Sprint(n)
			if res, err := c.Execute(t.Context(), toolstest.Call("echo", `{"text":"`+text+`"}`)); err != nil || res.Text != text {
				t.Errorf("got %v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if counter.Sum() != 20 {
		t.Errorf("sum %d", counter.Sum())
	}
}

// TestAttackChangedBeforeTheRun: a file that is replaced between the decision and the run prevents the call from
// running.
func TestAttackChangedBeforeTheRun(t *testing.T) {
	t.Parallel()
	for name, changed := range map[string][]string{"unchanged": nil, "changed": {"deploy.sh"}} {
		counter := &toolstest.Counter{}
		swap := func(next tools.Handler) tools.Handler {
			return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
				call.Unchanged = func(context.Context) []string { return changed }
				return next(ctx, call)
			}
		}
		c := chain.New(chain.Options{Registry: registry(t, counter.Tool()), Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)}, Judge: swap})
		call := toolstest.Call(counter.Tool().Definition.Name, `{}`)
		started := false
		call.OnStart = func(context.Context) error { started = true; return nil }
		_, err := c.Execute(t.Context(), call)
		if changed == nil {
			if err != nil || !started {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		var e *tools.Error
		if !errors.As(err, &e) || e.Category != tools.PolicyBlocked || !e.Denied() || !strings.Contains(e.Message, "deploy.sh changed") || started {
			t.Errorf("%s: %v, started %t", name, err, started)
		}
	}
}
