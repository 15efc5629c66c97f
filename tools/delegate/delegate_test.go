package delegate_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/delegate"
	"github.com/zephbot/zephbot/tools/toolstest"
)

func tool(t *testing.T) tools.Tool {
	t.Helper()
	list, err := tools.NewRegistry(toolstest.Echo(), (&toolstest.Counter{}).Tool())
	if err != nil {
		t.Fatal(err)
	}
	d, err := delegate.New(list)
	if err == nil {
		err = list.Add(d)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestTask: what a sub-agent gets, by what the model wrote.
func TestTask(t *testing.T) {
	t.Parallel()
	d := tool(t)
	for args, want := range map[string]tools.Task{
		`{"task":" look "}`: {Name: "researcher", Text: "look", Tools: []string{"echo"}, Budget: delegate.Usual},
		`{"task":"look","name":" Scout ","tools":["count","echo","count"],"budget":{"tokens":500,"steps":2,"usd":0.5}}`: {
			Name: "scout", Text: "look", Tools: []string{"count", "echo"}, Budget: tools.Budget{Steps: 2, Calls: delegate.Usual.Calls, Tokens: 500, USD: 0.5},
		},
	} {
		call := toolstest.Call(delegate.Name, args)
		var got tools.Task
		call.Delegate = func(_ context.Context, task tools.Task) (*tools.Result, error) {
			got = task
			return &tools.Result{Text: "done"}, nil
		}
		res, err := d.Run(t.Context(), call)
		if err != nil || res.Text != "done" {
			t.Fatalf("%s: %v, %v", args, res, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", args, diff)
		}
	}
}

// TestNowhere: without a conversation, as for a call from the command line, the tool says so.
func TestNowhere(t *testing.T) {
	t.Parallel()
	d := tool(t)
	_, err := d.Run(t.Context(), toolstest.Call(delegate.Name, `{"task":"look"}`))
	if e := tools.AsError(err); e.Category != tools.PolicyBlocked || !e.Denied() || !strings.Contains(e.Message, "no conversation") {
		t.Errorf("%+v", e)
	}
}

// TestSubject: rules are matched against the name, and a person who is asked sees the whole task.
func TestSubject(t *testing.T) {
	t.Parallel()
	d := tool(t)
	s, err := d.Describe(t.Context(), toolstest.Call(delegate.Name, `{"task":"look at all","name":"scout","budget":{"usd":0.5}}`))
	want := tools.Subject{
		Inputs: []string{"scout"}, Show: "scout: look at all\n\necho", Note: reason.Notes(reason.New(reason.SubAgent), reason.New(reason.AgentBudget, "10", "20", "100000"), reason.New(reason.AgentMoney, "0.5")),
	}
	if diff := cmp.Diff(want, s); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// TestName: the name of a sub-agent is part of the caller id in every record, so it can be nothing but one short word.
// The same name twice is allowed: records tell the two apart by the call that began them.
func TestName(t *testing.T) {
	t.Parallel()
	d := tool(t)
	long := strings.Repeat("a", 32)
	for name, want := range map[string]string{
		"": "researcher", "  ": "researcher", "scout": "scout", " Scout\t": "scout", "R2-d2_x": "r2-d2_x", "7": "7", long: long,
		long + "a": "!", strings.Repeat("a", 200): "!", "a/b": "!", "/": "!", "../42": "!", "researcher/telegram:42": "!", "telegram:42": "!", "42/scout": "!",
		"a b": "!", "a\nb": "!", "a\u202eb": "!", "\u2066a\u2069": "!", "sc\u043eut": "!", "\u200bscout": "!", "-scout": "!", "_": "!", "a.b": "!", "a\x00": "!", "\u0130": "!", "\u212a": "!", "%s": "!",
	} {
		in, err := json.Marshal(map[string]string{"task": "look", "name": name})
		if err != nil {
			t.Fatal(err)
		}
		call, got := toolstest.Call(delegate.Name, string(in)), "!"
		call.Origin.Caller = "telegram:42"
		call.Delegate = func(_ context.Context, task tools.Task) (*tools.Result, error) {
			o := call.Origin
			o.Agent, got = task.Name, task.Name
			if person, agent, ok := strings.Cut(o.CallerID(), "/"); !ok || person != "telegram:42" || agent != task.Name {
				t.Errorf("%q: caller id %q", name, o.CallerID())
			}
			return &tools.Result{}, nil
		}
		_, err = d.Run(t.Context(), call)
		if e := tools.AsError(err); got != want || want == "!" && (e.Category != tools.InvalidParameters || !strings.Contains(e.Message, "is not a name; want 1 to 32")) {
			t.Errorf("%q: name %q, want %q; %v", name, got, want, err)
		}
	}
}
