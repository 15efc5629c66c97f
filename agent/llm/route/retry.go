package route

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
)

// Retry repeats calls of a provider that are not answers to a conversation, such as embeddings, after the
// same errors and with the same pauses as a Router. Each attempt is a call of its own for those who count
// and pay. Safe for concurrent use.
type Retry struct{ o Options }

// NewRetry uses Attempts, BaseDelay, MaxDelay, MaxRetryAfter, Budget, Now, Sleep, Jitter and Log of the options.
func NewRetry(o Options) (*Retry, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Retry{o: o}, nil
}

// Do runs a call until it succeeds or a further attempt is pointless, and returns its
// last error. what names it in logs.
func (r *Retry) Do(ctx context.Context, what string, run func(ctx context.Context) error) error {
	end := r.o.Now().Add(r.o.Budget)
	for number := 1; ; number++ {
		err := run(ctx)
		if err == nil || ctx.Err() != nil {
			return err
		}
		e, ok := errors.AsType[*llm.Error](err)
		if !ok {
			return err
		}
		delay, again := r.o.delayAfter(e, number, end)
		if !again {
			return err
		}
		r.o.Log.Debug().Str("call", what).Str("kind", string(e.Kind)).Dur("delay", delay).Int("attempt", number).
			Msg("call of a provider is retried")
		if err := r.o.Sleep(ctx, delay); err != nil {
			return fmt.Errorf("wait before retrying to %s: %w", what, err)
		}
	}
}

// nextDelay returns how long to wait before the next attempt with the same provider, and whether there is one.
func (c *call) nextDelay(e *llm.Error, number int) (time.Duration, bool) {
	// The time that a silent provider takes is lost to the next provider, so it is not spent twice.
	if e.Kind == llm.Timeout && c.more {
		return 0, false
	}
	return c.router.o.delayAfter(e, number, c.end)
}

// delayAfter returns how long to wait after attempt number, and whether there is another one, which begins before end.
func (o *Options) delayAfter(e *llm.Error, number int, end time.Time) (time.Duration, bool) {
	if !e.Retryable() || number >= o.Attempts || e.RetryAfter > o.MaxRetryAfter {
		return 0, false
	}
	limit := o.BaseDelay
	for i := 1; i < number && limit < o.MaxDelay; i++ {
		limit *= 2
	}
	// Never earlier than the provider asked; the jitter keeps many conversations from retrying together.
	delay := e.RetryAfter + o.Jitter(min(limit, o.MaxDelay))
	return delay, !o.Now().Add(delay).After(end)
}
