package agent_test

import (
	"context"
	"slices"
	"testing"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
)

// chosen is a catalog that shows a turn all tools, and claims lists that grow with its steps.
type chosen struct {
	registered
	lists map[string][][]string // by sub-agent, "" = the turn: what each step is shown
	saw   map[string][][]string // what each step was told that was shown before
}

func (c *chosen) Tools(ctx context.Context, turn *agent.Turn, view agent.View) []agent.Offer {
	name := turn.Origin.Agent
	list := c.lists[name]
	turn.Shown = list[min(view.Step, len(list))-1]
	c.saw[name] = append(c.saw[name], view.Shown)
	return c.registered.Tools(ctx, turn, view)
}

// TestShown: what a turn was shown is journalled where it changes, apart for each sub-agent, and told to the catalog at
// the next step, in whatever process that is.
func TestShown(t *testing.T) {
	t.Parallel()
	w := newOffice(t, script(t, `on "go": call delegate {"task":"look","name":"scout","tools":["echo","count"]}
then call echo {"text":"a"}
then call count {"by":20}
then say Done
on "look": call echo {"text":"b"}
then call count {"by":10}
then say looked`), "go")
	first, longer, own := []string{"b", "a"}, []string{"b", "a", "c"}, []string{"s"}
	c := &chosen{
		registered: w.deps.Catalog.(registered), saw: map[string][][]string{},
		lists: map[string][][]string{"": {first, first, longer}, "scout": {nil, own}},
	}
	w.deps.Catalog = c
	if out := w.finish(t.Context()); out.Text != "Done" { // two questions: three runs
		t.Fatalf("outcome %+v", out)
	}
	var recorded [][]string
	for _, e := range w.shelf.all() {
		if e.Kind == journal.AssistantEntry {
			recorded = append(recorded, e.Shown)
		}
	}
	equal := func(a, b [][]string) bool { return slices.EqualFunc(a, b, slices.Equal[[]string]) }
	if want := [][]string{first, nil, own, nil, longer}; !equal(recorded, want) {
		t.Errorf("recorded %q, want %q", recorded, want)
	}
	if want := [][]string{nil, first, first, longer}; !equal(c.saw[""], want) {
		t.Errorf("the turn was told %q, want %q", c.saw[""], want)
	}
	if want := [][]string{nil, nil, own}; !equal(c.saw["scout"], want) {
		t.Errorf("the sub-agent was told %q, want %q", c.saw["scout"], want)
	}
}
