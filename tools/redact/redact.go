// Package redact is the stage that takes credentials out of what a tool gave back, before the model, the chat or the journal see it.
package redact

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/tools"
)

// Redactor replaces credentials. It is pure and safe for concurrent use.
type Redactor interface {
	String(text string) string
	Value(v any) any
}

// New makes the stage. Result.Raw becomes a redacted tree of JSON values.
func New(r Redactor) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			result, err := next(ctx, call)
			if e, ok := errors.AsType[*tools.Error](err); ok {
				clean := *e
				clean.Message, clean.Suggestion = r.String(e.Message), r.String(e.Suggestion)
				return result, &clean
			}
			if err != nil || result == nil {
				return result, err
			}
			clean := *result
			clean.Text = r.String(result.Text)
			if result.Raw != nil {
				clean.Raw = r.Value(result.Raw)
			}
			return &clean, nil
		}
	}
}
