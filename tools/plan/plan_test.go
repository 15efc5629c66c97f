package plan_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/plan"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestSays pins what decides whether calls run without a question, and which results are remembered.
func TestSays(t *testing.T) {
	t.Parallel()
	toolstest.CheckSays(t, plan.Says(), map[string]toolstest.Said{plan.Name: {Act: act.Plans}})
}

// TestPlan: a plan is bounded, and each entry one line.
func TestPlan(t *testing.T) {
	t.Parallel()
	tool, err := plan.New()
	if err != nil {
		t.Fatal(err)
	}
	many := strings.TrimSuffix(strings.Repeat(`{"text":"a","status":"pending"},`, tools.MostPlanned+1), ",")
	long := strings.Repeat("ü", tools.LongestPlanned+1)
	for args, want := range map[string]string{
		`{"entries":[{"text":" read\n the  code ","status":"completed"},{"text":"write","status":"in_progress"}]}`: "read the code\nwrite",
		`{"entries":[{"text":"later"}]}`:                           "later",
		`{"entries":[]}`:                                           "",
		`{"entries":[{"text":" ","status":"pending"}]}`:            "empty",
		`{"entries":[{"text":"a","status":"done"}]}`:               `status is "done"`,
		`{"entries":[{"text":"` + long + `","status":"pending"}]}`: "more than 200",
		`{"entries":[` + many + `]}`:                               "at most 20",
	} {
		call := &tools.Call{Args: json.RawMessage(args)}
		subject, err := tool.Describe(t.Context(), call)
		entries, same := tools.ReadPlan(call.Args)
		if (err == nil) != (same == nil) {
			t.Errorf("%s: %v, and from the journal %v", args, err, same)
		}
		if err != nil {
			if !strings.Contains(err.Error(), want) || want == "" || entries != nil {
				t.Errorf("%s: %v, want %q", args, err, want)
			}
			continue
		}
		if subject.Show != want {
			t.Errorf("%s: %q, want %q", args, subject.Show, want)
		}
		if result, err := tool.Run(t.Context(), call); err != nil || result.Text == "" {
			t.Errorf("%s: %+v, %v", args, result, err)
		}
	}
	if _, err := tools.ReadPlan(json.RawMessage(`[]`)); err == nil {
		t.Error("a list is no plan")
	}
}
