package chain_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	policy "github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
)

const redactedSecret = "hunter2-very-secret"

func runRedact(t *testing.T, result *tools.Result, err error) (*tools.Result, error) {
	t.Helper()
	stage := chain.NewRedact(policy.New([]string{redactedSecret}))
	return stage(func(context.Context, *tools.Call) (*tools.Result, error) { return result, err })(t.Context(), &tools.Call{})
}

func TestResultsAndErrors(t *testing.T) {
	t.Parallel()
	own := &tools.Result{Text: "the key is " + redactedSecret, Raw: map[string]any{"stdout": redactedSecret, "exit_code": 0}, Truncated: true, Failure: &tools.Error{Category: tools.Timeout, Message: "stopped with " + redactedSecret}}
	got, err := runRedact(t, own, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := &tools.Result{
		Text: "the key is [redacted]", Raw: map[string]any{"stdout": "[redacted]", "exit_code": 0}, Truncated: true, Credentials: 1,
		Failure: &tools.Error{Category: tools.Timeout, Message: "stopped with [redacted]"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if own.Text != "the key is "+redactedSecret {
		t.Error("the tool's own result was changed")
	}
	_, err = runRedact(t, nil, &tools.Error{Category: tools.Timeout, Message: "printed " + redactedSecret, Suggestion: "ask " + redactedSecret, Retryable: true})
	if diff := cmp.Diff(&tools.Error{Category: tools.Timeout, Message: "printed [redacted]", Suggestion: "ask [redacted]", Retryable: true}, err); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	other := errors.New("pending")
	if _, err := runRedact(t, nil, other); !errors.Is(err, other) {
		t.Errorf("%v", err)
	}
}
