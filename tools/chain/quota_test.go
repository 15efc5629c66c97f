package chain_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestPlaces: which calls of a conversation of three batches, with 1, 3 and 2 calls, run.
func TestPlaces(t *testing.T) {
	t.Parallel()
	batches := []int{1, 3, 2}
	for _, tc := range []struct {
		name  string
		o     chain.QuotaOptions
		want  string // a letter per call: r runs, b is blocked; a space between batches
		limit string
	}{
		{"batches", chain.QuotaOptions{Max: 2, Unit: chain.QuotaPerBatch}, "r rrr bb", "2 rounds of tool calls"},
		{"batches are the default", chain.QuotaOptions{Max: 1}, "r bbb bb", "1 rounds of tool calls"},
		{"enough batches", chain.QuotaOptions{Max: 3}, "r rrr rr", ""},
		{"calls", chain.QuotaOptions{Max: 3, Unit: chain.QuotaPerCall}, "r rrb bb", "3 tool calls"},
		{"all calls", chain.QuotaOptions{Max: 6, Unit: chain.QuotaPerCall}, "r rrr rr", ""},
		{"none", chain.QuotaOptions{}, "b bbb bb", "0 rounds"},
		{"negative", chain.QuotaOptions{Max: -1, Unit: chain.QuotaPerCall}, "b bbb bb", "0 tool calls"},
		{"unknown unit", chain.QuotaOptions{Max: 3, Unit: "calls"}, "r rrb bb", "3 tool calls"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			runs := 0
			h := chain.NewQuota(tc.o)(func(context.Context, *tools.Call) (*tools.Result, error) { runs++; return &tools.Result{}, nil })
			var got strings.Builder
			n, ran := 0, 0
			for b, calls := range batches {
				if b > 0 {
					got.WriteByte(' ')
				}
				for range calls {
					n++
					call := toolstest.Call("echo", `{}`)
					call.BatchN, call.CallN = b+1, n
					_, err := h(t.Context(), call)
					if err == nil {
						ran++
						got.WriteByte('r')
						continue
					}
					got.WriteByte('b')
					refusal(t, err, call, tc.limit)
				}
			}
			if got.String() != tc.want || runs != ran {
				t.Errorf("got %q, want %q; %d runs of %d that passed", got.String(), tc.want, runs, ran)
			}
		})
	}
}

func refusal(t *testing.T, err error, call *tools.Call, limit string) {
	t.Helper()
	e, ok := errors.AsType[*tools.Error](err)
	if !ok || e.Category != tools.PolicyBlocked || !e.Denied() || e.Retryable {
		t.Fatalf("error %+v", err)
	}
	if !strings.HasPrefix(e.Message, "quota_blocked:") || !strings.Contains(e.Message, limit) || !strings.Contains(e.Suggestion, "/clear") {
		t.Errorf("error %q, suggestion %q: want the limit %q and /clear", e.Message, e.Suggestion, limit)
	}
	if call.Trail.Rule != chain.QuotaRule || call.Trail.Effect != "deny" {
		t.Errorf("trail %+v", call.Trail)
	}
	feedback := tools.Feedback(err)
	if lines := strings.Split(feedback, "\n"); len(lines) != 5 || lines[1] != "category: policy_blocked" || !strings.HasPrefix(lines[2], "error: quota_blocked: ") {
		t.Errorf("feedback:\n%s", feedback)
	}
}

func TestUncounted(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{chain.QuotaPerBatch, chain.QuotaPerCall} {
		call := toolstest.Call("echo", `{}`)
		want := &tools.Result{Text: "x"}
		h := chain.NewQuota(chain.QuotaOptions{Unit: unit})(func(context.Context, *tools.Call) (*tools.Result, error) { return want, nil })
		if got, err := h(t.Context(), call); err != nil || got != want {
			t.Errorf("%s: got %v, %v for a call outside of a conversation", unit, got, err)
		}
	}
}

// TestQuotaInChain: the quota comes before the question to a person and applies to probes too; the same call may come any
// number of times.
func TestQuotaInChain(t *testing.T) {
	t.Parallel()
	var counter toolstest.Counter
	list, err := tools.NewRegistry(counter.Tool())
	if err != nil {
		t.Fatal(err)
	}
	var lookup toolstest.Lookup
	o := chain.Options{Registry: list, Approvals: &lookup, Quota: chain.NewQuota(chain.QuotaOptions{Max: 1})}
	o.Gate.Policy = toolstest.Always(policy.Ask)
	shown, _ := list.Lookup("count")
	c, id := chain.New(o), "call"
	execute := func(n int, probe bool) error {
		call := toolstest.Call("count", `{}`)
		call.ID = id
		call.BatchN, call.CallN, call.Probe = n, n, probe
		call.Definition = shown.Definition.Hash()
		_, err := c.Execute(t.Context(), call)
		return err
	}
	if err := execute(2, true); tools.AsError(err).Category != tools.PolicyBlocked {
		t.Errorf("a probe beyond the limit: %v", err)
	}
	if lookup.Asked() != 0 {
		t.Error("a person is asked about a call that cannot run")
	}
	for n := range 2 { // two calls of the one batch that there may be, each asked about and then taken up again
		id = fmt.Sprint("call-", n)
		err := execute(1, false)
		if _, ok := errors.AsType[*tools.Pending](err); !ok {
			t.Fatalf("a call within the limit: %v", err)
		}
		if err := lookup.Approve("telegram:42", err, "telegram:42"); err != nil {
			t.Fatal(err)
		}
		if err := execute(1, false); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(2, counter.Runs()); diff != "" {
		t.Errorf("runs (-want +got):\n%s", diff)
	}
}
