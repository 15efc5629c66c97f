package route_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
)

// vendor answers each request after a second, at most room at once. Further requests get a 429 immediately.
type vendor struct {
	room  int
	after time.Duration // Retry-After of a 429

	mu      sync.Mutex
	busy    int
	most    int
	refused int
	begun   []begun
}

type begun struct {
	party string
	at    time.Time
}

func (*vendor) Name() string { return "main" }

func (v *vendor) Chat(ctx context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	v.mu.Lock()
	v.begun = append(v.begun, begun{req.Party, time.Now()})
	if v.busy >= v.room {
		v.refused++
		v.mu.Unlock()
		return nil, &llm.Error{Kind: llm.RateLimited, Provider: "main", RetryAfter: v.after, Err: errors.New("slow down")}
	}
	v.busy++
	v.most = max(v.most, v.busy)
	v.mu.Unlock()
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.busy--
	}()
	select {
	case <-time.After(time.Second):
		return &llm.Response{Text: "ok", Stop: llm.StopEnd}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// until retries what the vendor refuses, as route does.
func until(ctx context.Context, p llm.Provider, party string) error {
	for {
		_, err := p.Chat(ctx, &llm.Request{Party: party}, nil)
		var e *llm.Error
		if !errors.As(err, &e) || e.Kind != llm.RateLimited {
			return err
		}
		select {
		case <-time.After(max(e.RetryAfter, 100*time.Millisecond)):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// TestLearns: 400 requests are sent to a vendor that takes eight at once. All are answered, with few refusals and the
// vendor kept busy.
func TestLearns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{room: 8}
		p := route.NewPacer(v, route.PacerOptions{})
		began := time.Now()
		var wg sync.WaitGroup
		for range 400 {
			wg.Go(func() {
				if err := until(t.Context(), p, ""); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		took := time.Since(began)
		// Without a limit, each of the 392 excess requests would be refused ten times a second. The first burst is
		// refused as a whole, once.
		if v.refused > 400+100 {
			t.Errorf("%d refusals of %d requests", v.refused, len(v.begun))
		}
		if took > 100*time.Second { // eight at once need 50 s
			t.Errorf("took %s", took)
		}
		if v.most != 8 {
			t.Errorf("the vendor had %d at once, at most", v.most)
		}
	})
}

// TestGrowsBack: once the vendor takes more, more is sent.
func TestGrowsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{room: 1}
		p := route.NewPacer(v, route.PacerOptions{Most: 16})
		var wg sync.WaitGroup
		burst := func(n int) {
			for range n {
				wg.Go(func() { _ = until(t.Context(), p, "") })
			}
			wg.Wait()
		}
		burst(10)
		v.mu.Lock()
		v.room, v.most = 100, 0
		v.mu.Unlock()
		burst(400)
		if v.most != 16 {
			t.Errorf("at most %d at once, want 16 again", v.most)
		}
	})
}

// TestRetryAfter: while the server wants a pause, nothing is sent to it; a wait that is too long is returned to every
// caller, including those that are already waiting.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{room: 1, after: 20 * time.Second}
		p := route.NewPacer(v, route.PacerOptions{})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = p.Chat(t.Context(), &llm.Request{}, nil) })
		}
		wg.Wait()
		refusedAt := v.begun[1].at
		if _, err := p.Chat(t.Context(), &llm.Request{}, nil); err != nil {
			t.Fatal(err)
		}
		if waited := v.begun[2].at.Sub(refusedAt); waited < 20*time.Second {
			t.Errorf("asked again after %s", waited)
		}
		v.after = time.Hour
		var late error
		for range 2 {
			wg.Go(func() { _, _ = p.Chat(t.Context(), &llm.Request{}, nil) })
		}
		wg.Go(func() { _, late = p.Chat(t.Context(), &llm.Request{Party: "x"}, nil) })
		wg.Wait()
		for _, err := range []error{late, func() error { _, err := p.Chat(t.Context(), &llm.Request{}, nil); return err }()} {
			var e *llm.Error
			if err != nil && (!errors.As(err, &e) || e.Kind != llm.RateLimited || e.RetryAfter < 59*time.Minute) {
				t.Errorf("error %v, want the hour", err)
			}
		}
	})
}

// TestTurns: a hundred requests of one party wait when another party's first one arrives. It is the second to start.
func TestTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{room: 100}
		p := route.NewPacer(v, route.PacerOptions{Most: 1})
		var wg sync.WaitGroup
		for range 100 {
			wg.Go(func() { _ = until(t.Context(), p, "a") })
		}
		synctest.Wait()
		wg.Go(func() { _ = until(t.Context(), p, "b") })
		wg.Wait()
		if at := slices.IndexFunc(v.begun, func(b begun) bool { return b.party == "b" }); at > 2 {
			t.Errorf("%d requests of the other began before", at)
		}
	})
}

// TestCancelledWait: a cancelled request takes no slot, neither before nor after it was granted.
func TestCancelledWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v := &vendor{room: 100}
		p := route.NewPacer(v, route.PacerOptions{Most: 1})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		errs := make([]error, 5)
		for i := range errs {
			wg.Go(func() { _, errs[i] = p.Chat(ctx, &llm.Request{}, nil) })
		}
		synctest.Wait()
		cancel()
		wg.Wait()
		for _, err := range errs {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v", err)
			}
		}
		if _, err := p.Chat(ctx, &llm.Request{}, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
		if len(v.begun) != 1 {
			t.Errorf("%d requests began", len(v.begun))
		}
		if _, err := p.Chat(t.Context(), &llm.Request{}, nil); err != nil {
			t.Errorf("the place is lost: %v", err)
		}
		if p.Name() != "main" {
			t.Error(p.Name())
		}
	})
}

// TestPanic: a provider that panics releases its slot.
func TestPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := route.NewPacer(panicking{}, route.PacerOptions{Most: 1})
		for range 2 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("no panic")
					}
				}()
				_, _ = p.Chat(t.Context(), &llm.Request{}, nil)
			}()
		}
	})
}

type panicking struct{}

func (panicking) Name() string { return "p" }

func (panicking) Chat(context.Context, *llm.Request, func(string)) (*llm.Response, error) {
	panic("boom")
}
