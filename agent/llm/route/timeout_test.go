package route_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
)

// slow sends a word at intervals, forever, or nothing at all.
type slow struct {
	name  string
	every time.Duration // 0 = never
	idle  time.Duration // after which it gives up on its own, like an adapter; 0 = never
}

func (s slow) Name() string { return s.name }

func (s slow) Chat(ctx context.Context, _ *llm.Request, onDelta func(string)) (*llm.Response, error) {
	for {
		var word, idle <-chan time.Time
		if s.every > 0 {
			word = time.After(s.every)
		}
		if s.idle > 0 {
			idle = time.After(s.idle)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-word:
			onDelta("word ")
		case <-idle:
			return nil, &llm.Error{Kind: llm.Timeout, Provider: s.name, Err: errors.New("no data for a while, which is llm.idle_timeout")}
		}
	}
}

// TestWholeCall: llm.timeout ends a call however its time is spent, and the error names the limit.
func TestWholeCall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		providers []llm.Provider
		kind      llm.Kind
		causes    []string
	}{
		{"silence", []llm.Provider{slow{name: "main"}}, llm.Timeout, []string{"llm.timeout"}},
		{"a stream without end", []llm.Provider{slow{name: "main", every: time.Second}}, llm.Overtime, []string{"llm.timeout"}},
		{"repetitions", []llm.Provider{slow{name: "main", idle: 50 * time.Second}}, llm.Timeout, []string{"llm.timeout", "llm.idle_timeout"}},
		{
			"a fallback after silence",
			[]llm.Provider{slow{name: "main", idle: time.Minute}, slow{name: "back", every: time.Second}},
			llm.Overtime,
			[]string{"llm.timeout", "main", "llm.idle_timeout"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var rest []string
				for _, p := range tt.providers[1:] {
					rest = append(rest, p.Name())
				}
				r, err := route.New(tt.providers, "main", rest, route.Options{Timeout: 2 * time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				_, err = r.Chat(t.Context(), &llm.Request{OnReset: func() {}}, func(string) {})
				var e *llm.Error
				if !errors.As(err, &e) || e.Kind != tt.kind || e.Retryable() != (tt.kind == llm.Timeout) {
					t.Fatalf("error %v, want %s", err, tt.kind)
				}
				for _, cause := range tt.causes {
					if !strings.Contains(err.Error(), cause) {
						t.Errorf("%v does not name %s", err, cause)
					}
				}
				if took := time.Since(began); took != 2*time.Minute {
					t.Errorf("took %s", took)
				}
			})
		})
	}
	t.Run("a stop is no timeout", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r, err := route.New([]llm.Provider{slow{name: "main"}}, "main", nil, route.Options{Timeout: 2 * time.Minute})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var e *llm.Error
			if _, err := r.Chat(ctx, &llm.Request{}, nil); !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &e) {
				t.Errorf("error %v, want the caller's own", err)
			}
		})
	})
}
