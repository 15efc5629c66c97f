package llm_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	tests := []struct {
		err  error
		want llm.Kind
	}{
		{fmt.Errorf("call: %w", &llm.Error{Kind: llm.TooLong, Err: errors.New("x")}), llm.TooLong},
		{fmt.Errorf("call: %w", context.DeadlineExceeded), llm.Timeout},
		{errors.New("anything"), llm.Unavailable},
	}
	for _, tt := range tests {
		if got := llm.KindOf(tt.err); got != tt.want {
			t.Errorf("KindOf(%v) = %s, want %s", tt.err, got, tt.want)
		}
	}
}

func TestError(t *testing.T) {
	t.Parallel()
	cause := errors.New("down")
	retryable := map[llm.Kind]bool{
		llm.Unavailable: true, llm.RateLimited: true, llm.Timeout: true, llm.Truncated: true, llm.Invalid: false, llm.Unauthorized: false, llm.TooLong: false, llm.Overtime: false, llm.Oversize: false,
	}
	for kind, want := range retryable {
		e := &llm.Error{Kind: kind, Provider: "main", Err: cause}
		if e.Retryable() != want || !errors.Is(e, cause) {
			t.Errorf("%s: retryable %t, want %t; cause kept: %t", kind, e.Retryable(), want, errors.Is(e, cause))
		}
	}
	with := &llm.Error{Kind: llm.RateLimited, Provider: "main", Status: 429, Err: cause}
	if got, want := with.Error(), "model main: rate_limited (status 429): down"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
	without := &llm.Error{Kind: llm.Timeout, Provider: "main", Err: cause}
	if got, want := without.Error(), "model main: timeout: down"; got != want {
		t.Errorf("error = %q, want %q", got, want)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	got := llm.Usage{Input: 3, CachedInput: 1, Output: 2}.Add(llm.Usage{Input: 4, CachedInput: 2, Output: 5})
	if want := (llm.Usage{Input: 7, CachedInput: 3, Output: 7}); got != want || got.Total() != 14 {
		t.Errorf("sum = %+v, total %d", got, got.Total())
	}
}
