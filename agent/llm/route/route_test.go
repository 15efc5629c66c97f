package route_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/llm/route"
)

// clock is a time that advances only by sleeping.
type clock struct {
	mu    sync.Mutex
	at    time.Time
	slept []time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
	c.slept = append(c.slept, d)
	return nil
}

func fail(kind llm.Kind, after time.Duration) llmtest.Step {
	return llmtest.Step{Err: &llm.Error{Kind: kind, RetryAfter: after, Err: errors.New("down")}}
}

func blank() llmtest.Step {
	return llmtest.Step{Err: &llm.Error{Kind: llm.Truncated, Blank: true, Provider: "main", Err: errors.New("nothing")}}
}

func say(text string) llmtest.Step { return llmtest.Step{Text: text} }

type bench struct {
	clock    *clock
	attempts []string
	options  route.Options
}

func newBench() *bench {
	b := &bench{clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}}
	b.options = route.Options{
		Now: b.clock.now, Sleep: b.clock.sleep,
		Jitter: func(limit time.Duration) time.Duration { return limit / 2 },
		Observe: func(_ context.Context, a route.Attempt) {
			word := "ok"
			if a.Err != nil {
				word = string(llm.KindOf(a.Err))
			}
			b.attempts = append(b.attempts, a.Provider+" "+word)
		},
	}
	return b
}

func (b *bench) router(t *testing.T, providers ...llm.Provider) *route.Router {
	t.Helper()
	names := make([]string, 0, len(providers))
	for _, p := range providers {
		names = append(names, p.Name())
	}
	r, err := route.New(providers, names[0], names[1:], b.options)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func request() *llm.Request {
	return &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "hi"}}}
}

func TestChat(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name       string
		main, back []llmtest.Step
		attempts   []string
		slept      []time.Duration
		text       string
		kind       llm.Kind
	}{
		{name: "first time", main: []llmtest.Step{say("a")}, attempts: []string{"main ok"}, text: "a"},
		{
			name: "repeats with growing delays", main: []llmtest.Step{fail(llm.Unavailable, 0), fail(llm.Truncated, 0), say("a")},
			attempts: []string{"main unavailable", "main truncated", "main ok"},
			slept:    []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, text: "a",
		},
		{
			name: "falls back after its attempts",
			main: []llmtest.Step{fail(llm.Truncated, 0), fail(llm.Unavailable, 0), fail(llm.Unavailable, 0), say("never")}, back: []llmtest.Step{say("b")},
			attempts: []string{"main truncated", "main unavailable", "main unavailable", "back ok"},
			slept:    []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, text: "b",
		},
		{
			name: "unauthorized falls back at once", main: []llmtest.Step{fail(llm.Unauthorized, 0)}, back: []llmtest.Step{say("b")},
			attempts: []string{"main unauthorized", "back ok"}, text: "b",
		},
		{
			name: "retry after is obeyed", main: []llmtest.Step{fail(llm.RateLimited, 7*time.Second), say("a")},
			attempts: []string{"main rate_limited", "main ok"}, slept: []time.Duration{7250 * time.Millisecond}, text: "a",
		},
		{
			name: "a long retry after is not waited for", main: []llmtest.Step{fail(llm.RateLimited, time.Hour)}, back: []llmtest.Step{say("b")},
			attempts: []string{"main rate_limited", "back ok"}, text: "b",
		},
		{
			name: "an answer with nothing in it is asked for three times and no more", main: []llmtest.Step{blank(), blank(), blank(), say("never")}, back: []llmtest.Step{fail(llm.WrongAddress, 0)},
			attempts: []string{"main truncated", "main truncated", "main truncated", "back wrong_address"},
			slept:    []time.Duration{250 * time.Millisecond, 500 * time.Millisecond}, kind: llm.WrongAddress,
		},
		{
			name: "an answer with nothing in it, once", main: []llmtest.Step{blank(), say("a")},
			attempts: []string{"main truncated", "main ok"}, slept: []time.Duration{250 * time.Millisecond}, text: "a",
		},
		{
			name: "a wrong address falls back at once", main: []llmtest.Step{fail(llm.WrongAddress, 0)}, back: []llmtest.Step{say("b")},
			attempts: []string{"main wrong_address", "back ok"}, text: "b",
		},
		{
			name: "invalid ends at once", main: []llmtest.Step{fail(llm.Invalid, 0)}, back: []llmtest.Step{say("b")},
			attempts: []string{"main invalid"}, kind: llm.Invalid,
		},
		{
			name: "too long ends at once", main: []llmtest.Step{fail(llm.TooLong, 0)}, back: []llmtest.Step{say("b")},
			attempts: []string{"main too_long"}, kind: llm.TooLong,
		},
		{
			name: "a silent provider is not waited for twice while there is another", main: []llmtest.Step{fail(llm.Timeout, 0)}, back: []llmtest.Step{say("b")},
			attempts: []string{"main timeout", "back ok"}, text: "b",
		},
		{
			name: "the last provider is asked again", main: []llmtest.Step{fail(llm.Timeout, 0)}, back: []llmtest.Step{fail(llm.Timeout, 0), say("b")},
			attempts: []string{"main timeout", "back timeout", "back ok"}, slept: []time.Duration{250 * time.Millisecond}, text: "b",
		},
		{
			name: "too large ends at once", main: []llmtest.Step{fail(llm.Oversize, 0)}, back: []llmtest.Step{say("b")},
			attempts: []string{"main oversize"}, kind: llm.Oversize,
		},
		{
			name: "a retryable failure counts more than a final one", main: []llmtest.Step{fail(llm.RateLimited, time.Hour)},
			back: []llmtest.Step{fail(llm.Unauthorized, 0)}, attempts: []string{"main rate_limited", "back unauthorized"}, kind: llm.RateLimited,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := newBench()
			r := b.router(t, llmtest.Named("main", tt.main...), llmtest.Named("back", tt.back...))
			res, err := r.Chat(t.Context(), request(), nil)
			if diff := cmp.Diff(tt.attempts, b.attempts); diff != "" {
				t.Errorf("attempts (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.slept, b.clock.slept); diff != "" {
				t.Errorf("delays (-want +got):\n%s", diff)
			}
			if tt.kind != "" {
				if err == nil || llm.KindOf(err) != tt.kind {
					t.Fatalf("error = %v, want kind %s", err, tt.kind)
				}
				return
			}
			if err != nil || res.Text != tt.text {
				t.Fatalf("answer = %+v, %v, want text %q", res, err, tt.text)
			}
		})
	}
}

func TestChatErrorNamesAllCauses(t *testing.T) {
	t.Parallel()
	b := newBench()
	r := b.router(t, llmtest.Named("main", fail(llm.RateLimited, time.Hour)), llmtest.Named("back", fail(llm.RateLimited, time.Minute)))
	_, err := r.Chat(t.Context(), request(), nil)
	var e *llm.Error
	if !errors.As(err, &e) || e.RetryAfter != time.Minute || e.Provider != "back" {
		t.Fatalf("error = %#v, want the one that ends first", err)
	}
	for _, name := range []string{"main", "back"} {
		if !strings.Contains(err.Error(), "model "+name) {
			t.Errorf("error %q does not name %s", err, name)
		}
	}
}

func TestStreamedFailure(t *testing.T) {
	t.Parallel()
	cut := llmtest.Step{Deltas: []string{"half ", "an"}, Err: &llm.Error{Kind: llm.Truncated, Err: errors.New("cut")}}
	full := llmtest.Step{Deltas: []string{"whole ", "answer"}}

	t.Run("with reset", func(t *testing.T) {
		t.Parallel()
		b := newBench()
		r := b.router(t, llmtest.Named("main", cut, fail(llm.Unauthorized, 0)), llmtest.Named("back", full))
		shown, resets := "", 0
		req := request()
		req.OnReset = func() { shown, resets = "", resets+1 }
		res, err := r.Chat(t.Context(), req, func(d string) { shown += d })
		if err != nil || res.Text != "whole answer" || shown != res.Text || resets != 1 {
			t.Fatalf("answer = %+v, %v; shown %q after %d resets", res, err, shown, resets)
		}
	})
	t.Run("without reset", func(t *testing.T) {
		t.Parallel()
		b := newBench()
		r := b.router(t, llmtest.Named("main", cut, full), llmtest.Named("back", full))
		_, err := r.Chat(t.Context(), request(), func(string) {})
		var e *llm.Error
		if !errors.As(err, &e) || !e.Streamed || e.Kind != llm.Truncated {
			t.Fatalf("error = %v, want truncated and streamed", err)
		}
		if diff := cmp.Diff([]string{"main truncated"}, b.attempts); diff != "" {
			t.Errorf("attempts (-want +got):\n%s", diff)
		}
	})
	t.Run("nobody listens", func(t *testing.T) {
		t.Parallel()
		b := newBench()
		r := b.router(t, llmtest.Named("main", cut, full))
		if res, err := r.Chat(t.Context(), request(), nil); err != nil || res.Text != "whole answer" {
			t.Fatalf("answer = %+v, %v", res, err)
		}
	})
	t.Run("routers below each other", func(t *testing.T) {
		t.Parallel()
		b := newBench()
		inner := b.router(t, llmtest.Named("main", cut, full))
		outer := b.router(t, inner)
		shown := ""
		req := request()
		req.OnReset = func() { shown = "" }
		if _, err := outer.Chat(t.Context(), req, func(d string) { shown += d }); err != nil || shown != "whole answer" {
			t.Fatalf("shown %q, %v", shown, err)
		}
	})
}

func TestBudget(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.options.Budget = 10 * time.Second
	b.options.Attempts = 10
	r := b.router(t, llmtest.Named("main", fail(llm.RateLimited, 6*time.Second), fail(llm.RateLimited, 6*time.Second), say("late")))
	_, err := r.Chat(t.Context(), request(), nil)
	if llm.KindOf(err) != llm.RateLimited || len(b.attempts) != 2 {
		t.Fatalf("error = %v after %v, want two attempts", err, b.attempts)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	b := newBench()
	ctx, cancel := context.WithCancel(t.Context())
	b.options.Sleep = func(ctx context.Context, _ time.Duration) error { cancel(); return ctx.Err() }
	r := b.router(t, llmtest.Named("main", fail(llm.Unavailable, 0), say("a")), llmtest.Named("back", say("b")))
	if _, err := r.Chat(ctx, request(), nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("error = %v, want cancelled", err)
	}
	if _, err := r.Chat(ctx, request(), nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("second error = %v, want cancelled", err)
	}
	if diff := cmp.Diff([]string{"main unavailable"}, b.attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

// givenUp is a provider whose call is given up while its request is under way.
type givenUp struct{ cancel func() }

func (givenUp) Name() string { return "main" }

func (g givenUp) Chat(context.Context, *llm.Request, func(string)) (*llm.Response, error) {
	g.cancel()
	return nil, fmt.Errorf("model main: %w: %w", context.Canceled, llm.ErrUnderWay)
}

// TestUnderWay: who pays learns that a call was given up while its request was under way.
func TestUnderWay(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := newBench().router(t, givenUp{cancel})
	if _, err := r.Chat(ctx, request(), nil); !errors.Is(err, context.Canceled) || !errors.Is(err, llm.ErrUnderWay) {
		t.Errorf("error %v", err)
	}
}

func TestCircuit(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.options.Attempts, b.options.BreakAfter, b.options.BreakFor = 1, 2, time.Minute
	main := llmtest.Named("main", fail(llm.Unavailable, 0), fail(llm.Unavailable, 0), fail(llm.Unavailable, 0), say("a"), say("a"))
	r := b.router(t, main, llmtest.Named("back").On("hi", say("b")))
	chat := func() {
		t.Helper()
		if _, err := r.Chat(t.Context(), request(), nil); err != nil {
			t.Fatal(err)
		}
	}
	pass := func(d time.Duration) {
		if err := b.clock.sleep(t.Context(), d); err != nil {
			t.Fatal(err)
		}
	}
	chat()
	chat() // the second failure opens the circuit
	chat() // skipped
	pass(time.Minute)
	chat() // the probe fails: closed again
	chat()
	pass(time.Minute)
	chat() // the probe succeeds
	chat()
	want := []string{
		"main unavailable", "back ok", "main unavailable", "back ok", "back ok",
		"main unavailable", "back ok", "back ok", "main ok", "main ok",
	}
	if diff := cmp.Diff(want, b.attempts); diff != "" {
		t.Errorf("attempts (-want +got):\n%s", diff)
	}
}

func TestCircuitProbesOnce(t *testing.T) {
	t.Parallel()
	b := newBench()
	b.options.Attempts, b.options.BreakAfter, b.options.BreakFor = 1, 1, time.Minute
	b.options.Observe = nil
	main, err := llmtest.ParseNamed("main", "fail unavailable\nwait gate\nand say a")
	if err != nil {
		t.Fatal(err)
	}
	r := b.router(t, main)
	_, err = r.Chat(t.Context(), request(), nil)
	var e *llm.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	if _, err = r.Chat(t.Context(), request(), nil); !errors.As(err, &e) || e.RetryAfter != time.Minute {
		t.Fatalf("error = %v, want to be told to come back in a minute", err)
	}
	if err := b.clock.sleep(t.Context(), time.Minute); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := r.Chat(t.Context(), request(), nil); err != nil {
			t.Errorf("probe: %v", err)
		}
	})
	<-main.Arrived("gate")
	if _, err := r.Chat(t.Context(), request(), nil); llm.KindOf(err) != llm.Unavailable {
		t.Errorf("error = %v, want to be kept out while the probe runs", err)
	}
	main.Release("gate")
	wg.Wait()
	if _, err := r.Chat(t.Context(), request(), nil); llm.KindOf(err) != llm.Invalid {
		t.Fatalf("error = %v, want the script's end: the circuit must be open again", err)
	}
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	a, b := llmtest.Named("a"), llmtest.Named("b")
	tests := []struct {
		name      string
		providers []llm.Provider
		primary   string
		fallback  []string
		options   route.Options
		want      string
	}{
		{"unknown primary", []llm.Provider{a, b}, "x", nil, route.Options{}, `llm.primary names the provider "x", which is not configured; configured are: a, b`},
		{"unknown fallback", []llm.Provider{a, b}, "a", []string{"c"}, route.Options{}, `llm.fallback names the provider "c"`},
		{"twice in the list", []llm.Provider{a, b}, "a", []string{"a"}, route.Options{}, "a second time"},
		{"same name", []llm.Provider{a, a}, "a", nil, route.Options{}, "used twice"},
		{"negative", []llm.Provider{a}, "a", nil, route.Options{Budget: -1}, "Budget is negative"},
		{"negative count", []llm.Provider{a}, "a", nil, route.Options{Attempts: -1}, "must not be negative"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := route.New(tt.providers, tt.primary, tt.fallback, tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
		})
	}
}

// The preferred provider is asked first, whether or not it is a fallback; primary and fallbacks follow.
func TestPrefer(t *testing.T) {
	t.Parallel()
	for prefer, want := range map[string]string{
		"": "main spare", "unknown": "main spare", "main": "main spare", "spare": "spare main", "large": "large main spare",
	} {
		b := newBench()
		var list []llm.Provider
		for _, name := range []string{"main", "spare", "large"} {
			list = append(list, llmtest.Named(name, fail(llm.Unauthorized, 0)))
		}
		r, err := route.New(list, "main", []string{"spare"}, b.options)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Chat(t.Context(), &llm.Request{Prefer: prefer}, nil); err == nil {
			t.Error("no error")
		}
		if got := strings.ReplaceAll(strings.Join(b.attempts, " "), " unauthorized", ""); got != want {
			t.Errorf("%q: asked %s, want %s", prefer, got, want)
		}
	}
}
