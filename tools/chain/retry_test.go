package chain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	const almost = 0.999999
	for _, tc := range []struct {
		n      int
		random float64
		atMost time.Duration
	}{
		{0, almost, 500 * time.Millisecond},
		{1, almost, time.Second},
		{2, almost, 2 * time.Second},
		{3, almost, 4 * time.Second},
		{4, almost, 5 * time.Second},
		{100, almost, 5 * time.Second},
		{-1, almost, 500 * time.Millisecond},
		{100, 0.5, 2500 * time.Millisecond},
	} {
		got := chain.Backoff(tc.n, 500*time.Millisecond, 5*time.Second, tc.random)
		if got > tc.atMost || got < tc.atMost*99/100 {
			t.Errorf("backoff %d with %v = %s, want just below %s", tc.n, tc.random, got, tc.atMost)
		}
	}
	if got := chain.Backoff(3, time.Second, time.Minute, 0); got != 0 {
		t.Errorf("the least wait is %s, want none: full jitter", got)
	}
	if got := chain.Backoff(1000, time.Second, 1000*time.Hour, 1); got != 1024*time.Second {
		t.Errorf("doubled more than ten times: %s", got)
	}
}

func passing(c tools.Category) error {
	return &tools.Error{Category: c, Message: "It did not work.", Retryable: true}
}

func after(d time.Duration) error {
	return &tools.Error{Category: tools.RateLimited, Message: "Too many requests.", RetryAfter: d}
}

// setup is a stage whose waits take no time and are noted.
type setup struct {
	now      time.Time
	waits    []time.Duration
	progress []string
	observed []string
}

// run passes a call through the stage. Attempt n ends with errs[n], and every later one succeeds. It also returns the
// number of attempts.
func (s *setup) run(ctx context.Context, o chain.RetryOptions, call *tools.Call, errs ...error) (int, *tools.Result, error) {
	o.Rand = func() float64 { return 0.5 }
	o.Now = func() time.Time { return s.now }
	if o.Wait == nil {
		o.Wait = func(_ context.Context, d time.Duration) error {
			s.waits = append(s.waits, d)
			s.now = s.now.Add(d)
			return nil
		}
	}
	o.Observe = func(tool string, n int, ok bool) { s.observed = append(s.observed, fmt.Sprint(tool, " ", n, " ", ok)) }
	call.Progress = func(text string) { s.progress = append(s.progress, text) }
	n := 0
	h := chain.NewRetry(o)(func(context.Context, *tools.Call) (*tools.Result, error) {
		n++
		if n <= len(errs) && errs[n-1] != nil {
			return nil, errs[n-1]
		}
		return &tools.Result{Text: "done"}, nil
	})
	res, err := h(ctx, call)
	return n, res, err
}

func reading() *tools.Call {
	call := toolstest.Call("fetch", `{}`)
	call.Def = tools.Definition{Name: "fetch", ReadOnly: true}
	return call
}

func TestWhatIsRepeated(t *testing.T) {
	t.Parallel()
	network := passing(tools.NetworkError)
	for _, tc := range []struct {
		name     string
		options  chain.RetryOptions
		def      func(*tools.Definition)
		errs     []error
		attempts int
		category tools.Category // "" = it went well
		message  string
	}{
		{name: "success", attempts: 1},
		{name: "once", errs: []error{network}, attempts: 2},
		{name: "twice", errs: []error{network, passing(tools.ServerError)}, attempts: 3},
		{name: "three times", errs: []error{network, network, passing(tools.Timeout)}, attempts: 3, category: tools.Timeout, message: "It did not work (tried 3 times)"},
		{name: "rate limited", errs: []error{passing(tools.RateLimited)}, attempts: 2},
		{name: "an error of the system", errs: []error{syscall.ECONNRESET}, attempts: 2},
		{name: "more", options: chain.RetryOptions{Max: 4}, errs: []error{network, network, network, network, network}, attempts: 5, category: tools.NetworkError, message: "It did not work (tried 5 times)"},
		{name: "none", options: chain.RetryOptions{Max: -1}, errs: []error{network}, attempts: 1, category: tools.NetworkError, message: "It did not work."},
		{name: "permanent", errs: []error{passing(tools.PermanentFailure)}, attempts: 1, category: tools.PermanentFailure, message: "It did not work."},
		{name: "permanent at last", errs: []error{network, passing(tools.PermanentFailure)}, attempts: 2, category: tools.PermanentFailure, message: "It did not work (tried 2 times)"},
		{name: "model's mistake", errs: []error{passing(tools.InvalidParameters)}, attempts: 1, category: tools.InvalidParameters, message: "It did not work."},
		{name: "cancelled", errs: []error{context.Canceled}, attempts: 1, category: tools.Cancelled, message: "the call was cancelled"},
		{name: "refused", errs: []error{&tools.Error{Category: tools.RateLimited, Message: "No.", Reason: reason.Plain("No.")}}, attempts: 1, category: tools.RateLimited, message: "No."},
		{name: "a tool that changes something", def: func(d *tools.Definition) { d.ReadOnly = false }, errs: []error{network}, attempts: 1, category: tools.NetworkError, message: "It did not work."},
		{name: "a server that only says so", def: func(d *tools.Definition) { d.Server = "s" }, errs: []error{network}, attempts: 1, category: tools.NetworkError, message: "It did not work."},
		{name: "a trusted server", def: func(d *tools.Definition) { d.Server, d.Trusted = "s", true }, errs: []error{network}, attempts: 2},
		{
			name: "known to be safe", def: func(d *tools.Definition) { d.ReadOnly = false }, errs: []error{network}, attempts: 2,
			options: chain.RetryOptions{Safe: func(_ *tools.Call, err error) bool { return tools.AsError(err).Category == tools.NetworkError }},
		},
		{
			name: "known to be unsafe", errs: []error{network}, attempts: 1, category: tools.NetworkError, message: "It did not work.",
			options: chain.RetryOptions{Safe: func(*tools.Call, error) bool { return false }},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s, call := &setup{}, reading()
			if tc.def != nil {
				tc.def(&call.Def)
			}
			attempts, res, err := s.run(t.Context(), tc.options, call, tc.errs...)
			if attempts != tc.attempts || len(s.waits) != attempts-1 || len(s.progress) != attempts-1 {
				t.Errorf("%d attempts, %d waits, progress %q; want %d attempts", attempts, len(s.waits), s.progress, tc.attempts)
			}
			var observed []string
			if attempts > 1 {
				observed = []string{fmt.Sprint("fetch ", attempts-1, " ", tc.category == "")}
			}
			if diff := cmp.Diff(observed, s.observed); diff != "" {
				t.Errorf("observed (-want +got):\n%s", diff)
			}
			if tc.category == "" {
				if err != nil || res == nil || res.Text != "done" {
					t.Errorf("got %v, %v", res, err)
				}
				return
			}
			e := tools.AsError(err)
			if err == nil || e.Category != tc.category || e.Message != tc.message || e.Retryable {
				t.Errorf("got %+v", e)
			}
			if !strings.HasSuffix(tools.Feedback(err), "\nretryable: false") {
				t.Errorf("the model waits for a repetition that will not come:\n%s", tools.Feedback(err))
			}
		})
	}
}

func TestFeedback(t *testing.T) {
	t.Parallel()
	own := &tools.Error{Category: tools.NetworkError, Message: "The connection failed.", Retryable: true}
	_, _, err := (&setup{}).run(t.Context(), chain.RetryOptions{}, reading(), own, own, own)
	want := strings.Join([]string{
		"[tool_error]", "category: network_error", "error: The connection failed (tried 3 times)",
		"suggestion: It was repeated without success. Go on without it, or tell the user what did not work.", "retryable: false",
	}, "\n")
	if diff := cmp.Diff(want, tools.Feedback(err)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if own.Message != "The connection failed." || !own.Retryable {
		t.Errorf("the tool's error was changed: %+v", own)
	}
	own.Suggestion = "Use the mirror."
	_, _, err = (&setup{}).run(t.Context(), chain.RetryOptions{}, reading(), own, own, own)
	if got := tools.AsError(err).Suggestion; got != "Use the mirror." {
		t.Errorf("suggestion %q: the tool knows better", got)
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	const s = time.Second
	network := passing(tools.NetworkError)
	for _, tc := range []struct {
		name       string
		options    chain.RetryOptions
		errs       []error
		waits      []time.Duration
		suggestion string
	}{
		{name: "doubled", options: chain.RetryOptions{Max: 5, Base: 2 * s, Cap: 5 * s}, errs: []error{network, network, network, network}, waits: []time.Duration{s, 2 * s, 2500 * time.Millisecond, 2500 * time.Millisecond}},
		{name: "asked for", errs: []error{after(7 * s)}, waits: []time.Duration{7 * s}},
		{name: "asked for less", options: chain.RetryOptions{Base: 4 * s}, errs: []error{after(s)}, waits: []time.Duration{2 * s}},
		{name: "asked for nonsense", options: chain.RetryOptions{Base: 4 * s}, errs: []error{after(-s)}, waits: []time.Duration{2 * s}},
		{name: "asked for too much", errs: []error{after(2 * time.Minute)}, suggestion: "The other side asks to wait 2m0s before another call. Go on without it, or tell the user."},
		{name: "asked for more than the budget", options: chain.RetryOptions{Budget: 10 * s}, errs: []error{after(10 * s)}, suggestion: "The other side asks to wait 10s before another call. Go on without it, or tell the user."},
		{name: "budget", options: chain.RetryOptions{Max: 9, Base: 4 * s, Cap: 4 * s, Budget: 7 * s}, errs: []error{network, network, network, network, network, network}, waits: []time.Duration{2 * s, 2 * s, 2 * s}, suggestion: "It was repeated without success. Go on without it, or tell the user what did not work."},
		{name: "patient", options: chain.RetryOptions{Base: 400 * s, Cap: 400 * s}, errs: []error{network}, waits: []time.Duration{200 * s}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			u := &setup{}
			_, _, err := u.run(t.Context(), tc.options, reading(), tc.errs...)
			if diff := cmp.Diff(tc.waits, u.waits); diff != "" {
				t.Errorf("waits (-want +got):\n%s", diff)
			}
			if (err != nil) != (tc.suggestion != "") || (err != nil && tools.AsError(err).Suggestion != tc.suggestion) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	u := &setup{}
	if _, _, err := u.run(t.Context(), chain.RetryOptions{Base: 500 * time.Millisecond}, reading(), passing(tools.Timeout), after(1001*time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"trying again in 1 s", "trying again in 2 s"}, u.progress); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestStop: a person who stops the turn waits for no repetition, and what they read is that they stopped it.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		attempts := 0
		h := chain.NewRetry(chain.RetryOptions{Base: time.Hour, Cap: time.Hour, Rand: func() float64 { return 0.5 }})(
			func(context.Context, *tools.Call) (*tools.Result, error) {
				attempts++
				return nil, passing(tools.NetworkError)
			})
		time.AfterFunc(time.Minute, cancel)
		_, err := h(ctx, reading())
		if attempts != 1 || tools.AsError(err).Category != tools.Cancelled || !errors.Is(err, context.Canceled) {
			t.Errorf("%d attempts, error %v", attempts, err)
		}
	})
}

// TestEnded: nothing is repeated after the context has ended. A call that may have changed something keeps its own
// error.
func TestEnded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	call := reading()
	call.Def.ReadOnly = false
	for _, c := range []*tools.Call{reading(), call} {
		n, _, err := (&setup{}).run(ctx, chain.RetryOptions{}, c, passing(tools.NetworkError))
		if n != 1 || tools.AsError(err).Category != tools.NetworkError {
			t.Errorf("%d attempts, %v", n, err)
		}
	}
}

// TestBudgetEndsAttempt: a repetition that takes for ever is ended when the budget is.
func TestBudgetEndsAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		h := chain.NewRetry(chain.RetryOptions{Budget: time.Minute})(func(ctx context.Context, _ *tools.Call) (*tools.Result, error) {
			if attempts++; attempts == 1 {
				return nil, passing(tools.ServerError)
			}
			<-ctx.Done()
			return nil, ctx.Err()
		})
		_, err := h(t.Context(), reading())
		if e := tools.AsError(err); attempts != 2 || e.Category != tools.Timeout || e.Message != "the call took too long (tried 2 times)" {
			t.Errorf("%d attempts, error %+v", attempts, e)
		}
	})
}

// TestPassedOn: what is no failure comes out as it was.
func TestPassedOn(t *testing.T) {
	t.Parallel()
	pending := &tools.Pending{}
	for _, want := range []error{tools.ErrProbed, pending} {
		if _, _, err := (&setup{}).run(t.Context(), chain.RetryOptions{}, reading(), want); !errors.Is(err, want) {
			t.Errorf("got %v, want %v", err, want)
		}
	}
}

// TestRetryInChain: the runner counts the attempts, the start is recorded once, and the record contains nothing of the failed
// run.
func TestRetryInChain(t *testing.T) {
	t.Parallel()
	runs, starts, code := 0, 0, 7
	flaky := tools.Tool{
		Definition: tools.Definition{Name: "flaky", Schema: []byte(`{"type":"object"}`), ReadOnly: true},
		Run: func(_ context.Context, call *tools.Call) (*tools.Result, error) {
			if runs++; runs == 1 {
				call.Trail.MCPErrorCode, call.Trail.ExitCode, call.Trail.Summary = "transient", &code, "it broke"
				return nil, passing(tools.ServerError)
			}
			return &tools.Result{Text: "done"}, nil
		},
	}
	list, err := tools.NewRegistry(flaky)
	if err != nil {
		t.Fatal(err)
	}
	o := chain.Options{Registry: list, Retry: chain.NewRetry(chain.RetryOptions{Wait: func(context.Context, time.Duration) error { return nil }})}
	o.Gate.Policy = toolstest.Always(policy.Allow)
	c := chain.New(o)
	call := toolstest.Call("flaky", `{}`)
	call.OnStart = func(context.Context) error { starts++; return nil }
	if _, err := c.Execute(t.Context(), call); err != nil {
		t.Fatal(err)
	}
	if starts != 1 || call.Trail.Attempts != 2 || call.Trail.MCPErrorCode != "" || call.Trail.ExitCode != nil || call.Trail.Summary != "" || call.Trail.Category != "" {
		t.Errorf("%d starts, trail %+v", starts, call.Trail)
	}
}
