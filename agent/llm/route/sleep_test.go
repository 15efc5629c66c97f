package route_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/llm/route"
)

func TestDefaultSleep(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		main := llmtest.Named("main", fail(llm.RateLimited, 5*time.Second), say("a"), fail(llm.RateLimited, 20*time.Second), say("never"))
		r, err := route.New([]llm.Provider{main}, "main", nil, route.Options{})
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := r.Chat(t.Context(), request(), nil); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d < 5*time.Second || d >= 5500*time.Millisecond {
			t.Errorf("waited %s, want 5 s and up to half a second of jitter", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Chat(ctx, request(), nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error = %v, want the deadline", err)
		}
	})
}
