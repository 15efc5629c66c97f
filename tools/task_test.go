package tools_test

import (
	"testing"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// TestNarrow: part of a turn's work never has a tool that the turn lacks, and loses what the turn adds unless it is
// allowed.
func TestNarrow(t *testing.T) {
	t.Parallel()
	counter := &toolstest.Counter{}
	list, err := tools.NewRegistry(toolstest.Echo(), toolstest.NewBlocker().Tool())
	if err != nil {
		t.Fatal(err)
	}
	adds, err := tools.NewOverlay(func(name string) bool { return name == "block" }, counter.Tool())
	if err != nil {
		t.Fatal(err)
	}
	why := func(name string) reason.Reason { return reason.New(reason.ToolNotGiven, name, "scout") }
	for _, c := range []struct {
		overlay *tools.Overlay
		allowed string
		names   []string // of echo, block and count, those that are left
	}{
		{nil, "echo", []string{"echo"}},
		{adds, "echo", []string{"echo"}},
		{adds, "block", nil},
		{adds, "count", []string{"count"}},
	} {
		narrow := c.overlay.Narrow(func(name string) bool { return name == c.allowed }, why)
		var names []string
		for _, d := range narrow.Over(list).Definitions() {
			names = append(names, d.Name)
		}
		if len(names) != len(c.names) || len(names) > 0 && names[0] != c.names[0] {
			t.Errorf("%s: %v, want %v", c.allowed, names, c.names)
		}
		for _, name := range []string{"echo", "block", "count"} {
			_, ok := narrow.Over(list).Lookup(name)
			has := len(c.names) > 0 && c.names[0] == name
			if ok != has || name != "count" && narrow.Takes(name) == has {
				t.Errorf("%s: %s is there: %t", c.allowed, name, ok)
			}
			if said := narrow.Why(name); (said.Code == reason.ToolHidden) != (name == c.allowed) {
				t.Errorf("%s: %s: %q", c.allowed, name, said)
			}
		}
	}
	hidden := reason.New(reason.ToolHidden, "echo")
	if !(*tools.Overlay)(nil).Why("echo").Equal(hidden) || !adds.Why("echo").Equal(hidden) {
		t.Error("a reason that nobody gave")
	}
}

// TestCallerID names the person, and the sub-agent that works for them.
func TestCallerID(t *testing.T) {
	t.Parallel()
	o := tools.Origin{Caller: "telegram:42"}
	if o.CallerID() != "telegram:42" {
		t.Error(o.CallerID())
	}
	if o.Agent = "researcher"; o.CallerID() != "telegram:42/researcher" {
		t.Error(o.CallerID())
	}
}
