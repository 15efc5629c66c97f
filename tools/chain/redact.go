package chain

import (
	"context"
	"errors"
	"strings"

	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
)

// Redactor replaces credentials. It is pure and safe for concurrent use.
type Redactor interface {
	String(text string) string
	Value(v any) any
}

// NewRedact returns the stage that removes credentials from the result of a tool, before the model, the chat or the
// journal get it. It replaces Result.Raw by a redacted tree of JSON values.
func NewRedact(r Redactor) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			result, err := next(ctx, call)
			if e, ok := errors.AsType[*tools.Error](err); ok {
				return result, redactError(r, e)
			}
			if err != nil || result == nil {
				return result, err
			}
			clean := *result
			clean.Text = r.String(result.Text)
			if clean.Text != result.Text {
				clean.Credentials += max(1, strings.Count(clean.Text, redact.Mask)-strings.Count(result.Text,
					redact.Mask))
			}
			if result.Failure != nil {
				clean.Failure = redactError(r, result.Failure)
			}
			if result.Raw != nil {
				clean.Raw = r.Value(result.Raw)
			}
			return &clean, nil
		}
	}
}

// WarnRedacted returns the stage that tells the model, at the end of a result, how many credentials were hidden in it,
// whatever the tool. It is outside of all stages that shorten, store or mark a text.
func WarnRedacted(next tools.Handler) tools.Handler {
	return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
		result, err := next(ctx, call)
		if err != nil || result == nil || result.Credentials <= 0 {
			return result, err
		}
		shown := *result // a cache may share it
		if shown.Text != "" && !strings.HasSuffix(shown.Text, "\n") {
			shown.Text += "\n"
		}
		shown.Text += redact.Warning(shown.Credentials)
		return &shown, nil
	}
}

func redactError(r Redactor, e *tools.Error) *tools.Error {
	clean := *e
	clean.Message, clean.Suggestion = r.String(e.Message), r.String(e.Suggestion)
	clean.Reason = e.Reason.Map(r.String)
	return &clean
}
