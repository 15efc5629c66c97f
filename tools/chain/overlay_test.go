package chain_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/chain"
)

// TestTurnsOwnTools: a call sees the tools as its turn has changed them, at every stage, and the rules judge an added
// tool by its own statement.
func TestTurnsOwnTools(t *testing.T) {
	t.Parallel()
	says := func(text string) tools.Handler {
		return func(context.Context, *tools.Call) (*tools.Result, error) { return &tools.Result{Text: text}, nil }
	}
	own := func(name string, does act.Act, run tools.Handler) tools.Tool {
		tool := bare(name, run)
		tool.Definition.Says = &act.Statement{Act: does}
		return tool
	}
	set, err := policy.New(policy.Options{Tools: []act.Tool{{Name: "read", Statement: act.Statement{Act: act.ReadsFile}}}})
	if err != nil {
		t.Fatal(err)
	}
	c := chain.New(chain.Options{Registry: registry(t, own("read", act.ReadsFile, says("from the disk")), own("list", act.Searches, says("a b"))), Gate: chain.GateOptions{Policy: set}})
	open := own("open", act.ReadsFile, says("opened"))
	open.Describe = func(context.Context, *tools.Call) (tools.Subject, error) {
		return tools.Subject{Inputs: []string{"x"}}, nil
	}
	overlay, err := tools.NewOverlay(func(name string) bool { return name == "list" },
		open, own("read", act.ReadsFile, says("from the editor")), own("push", act.Unknown, says("never")),
		own("crash", act.ReadsFile, func(context.Context, *tools.Call) (*tools.Result, error) { panic("hunter2") }))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		tool    string
		overlay *tools.Overlay
		want    string
	}{
		{"read", nil, "from the disk"},
		{"read", overlay, "from the editor"},
		{"open", nil, `there is no tool named "open"`},
		{"open", overlay, "opened"},
		{"list", nil, "a b"},
		{"list", overlay, "The tool list is not permitted in this chat."},
		{"lits", overlay, "Check the name"}, // what is taken away is not proposed
		{"push", overlay, "nobody"},
		{"crash", overlay, "The tool failed for an internal reason."},
	} {
		res, err := c.Execute(t.Context(), &tools.Call{ID: "c", Tool: tt.tool, Args: json.RawMessage(`{}`), Tools: tt.overlay})
		got := ""
		if err != nil {
			got = tools.Feedback(err)
		} else {
			got = res.Text
		}
		if !strings.Contains(got, tt.want) || strings.Contains(got, "Did you mean list") {
			t.Errorf("%s: %s, want %s", tt.tool, got, tt.want)
		}
	}
}

// TestTakenAwayWhileItWaits: what a turn takes away does not run, even where a stage above has let it pass.
func TestTakenAwayWhileItWaits(t *testing.T) {
	t.Parallel()
	takes := tools.Only(func(string) bool { return false })
	late := func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			call.Tools = takes
			return next(ctx, call)
		}
	}
	runs := 0
	tool := bare("t", func(context.Context, *tools.Call) (*tools.Result, error) { runs++; return nil, nil })
	set, err := policy.New(policy.Options{Level: policy.Full})
	if err != nil {
		t.Fatal(err)
	}
	c := chain.New(chain.Options{Registry: registry(t, tool), Gate: chain.GateOptions{Policy: set}, Quota: late})
	_, err = c.Execute(t.Context(), &tools.Call{ID: "c", Tool: "t", Args: json.RawMessage(`{}`)})
	if err == nil || !strings.Contains(err.Error(), "no longer available") || runs != 0 {
		t.Errorf("%v after %d runs", err, runs)
	}
}
