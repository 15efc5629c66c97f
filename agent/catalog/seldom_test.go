package catalog_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/tools"
)

// seldom are built-in tools of which two are shown on demand, with tool_search.
func seldom(t *testing.T) []tools.Definition {
	t.Helper()
	ask, plan := tool("ask_user", "Asks the person some questions and waits.", "questions"), tool("update_plan", "Shows the steps of a task.", "entries")
	ask.Seldom, plan.Seldom = "asks the person", "shows your steps"
	search, err := new(catalog.Catalog).SearchTool()
	if err != nil {
		t.Fatal(err)
	}
	return []tools.Definition{ask, tool("read", "Reads a text file of the directory.", "path"), plan, search.Definition}
}

// inRequest returns the names that the request of a turn defines, the description of tool_search, and what is only named.
func (k *kit) inRequest(turn *agent.Turn, view agent.View) (defined []string, said string, named []string) {
	k.t.Helper()
	for _, o := range k.Tools(k.t.Context(), turn, view) {
		switch {
		case o.Named:
			named = append(named, o.Name)
			continue
		case o.Name == catalog.SearchName:
			said = o.Description
		}
		defined = append(defined, o.Name)
	}
	return defined, said, named
}

// TestSeldomTools: a tool on demand costs its name until a search finds it or it has succeeded. Requests begin alike
// before and after, in the same turn and in the next ones.
func TestSeldomTools(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{}, seldom(t)...)
	said := ""
	for _, step := range []struct {
		name, turn     string
		view           agent.View
		defined, named []string
	}{
		{"at first", "1", agent.View{Step: 1}, []string{"read", "tool_search"}, []string{"ask_user", "update_plan"}},
		{"found", "1", agent.View{Step: 2, Found: []string{"update_plan"}}, []string{"read", "tool_search", "update_plan"}, []string{"ask_user"}},
		{"another found", "1", agent.View{Step: 3, Found: []string{"update_plan", "ask_user"}}, []string{"read", "tool_search", "update_plan", "ask_user"}, nil},
		{"called in the turn before", "2", agent.View{Step: 1, Succeeded: []string{"update_plan"}}, []string{"read", "tool_search", "update_plan"}, []string{"ask_user"}},
		{"called directly", "3", agent.View{Step: 2, Succeeded: []string{"ask_user"}}, []string{"read", "tool_search", "ask_user"}, []string{"update_plan"}},
		{"of another conversation", "4", agent.View{Step: 1}, []string{"read", "tool_search"}, []string{"ask_user", "update_plan"}},
	} {
		turn := &agent.Turn{ID: step.turn, Origin: tools.Origin{Session: step.turn, Turn: step.turn}}
		defined, description, named := k.inRequest(turn, step.view)
		if diff := cmp.Diff([][]string{step.defined, step.named}, [][]string{defined, named}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
		if said == "" {
			said = description
		}
		if description != said || !strings.HasSuffix(said, "ask_user: asks the person; update_plan: shows your steps.") {
			t.Errorf("%s: tool_search says %q", step.name, description)
		}
		if usual := len(named) == 2; (turn.Shown == nil) != usual {
			t.Errorf("%s: the journal has %v", step.name, turn.Shown)
		}
	}
}

// TestSeldomToolsAreShown where a model could not ask for them, and where the operator has tools filtered anyway.
func TestSeldomToolsAreShown(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{}, seldom(t)...)
	turn := &agent.Turn{ID: "1", Tools: tools.Only(func(name string) bool { return name != catalog.SearchName })}
	defined, _, named := k.inRequest(turn, agent.View{Step: 1})
	if diff := cmp.Diff([][]string{{"ask_user", "read", "update_plan"}, nil}, [][]string{defined, named}); diff != "" {
		t.Errorf("without tool_search (-want +got):\n%s", diff)
	}
	k = setup(t, catalog.Options{Filter: catalog.Filter{Enabled: true, TopK: 1, MinSimilarity: 0.1}}, seldom(t)...)
	defined, _, named = k.inRequest(&agent.Turn{ID: "1"}, agent.View{Step: 1, Query: "show me the steps of the task"})
	if diff := cmp.Diff([][]string{{"update_plan"}, nil}, [][]string{defined, named}); diff != "" {
		t.Errorf("with a filter (-want +got):\n%s", diff)
	}
}

// TestSeldomToolsAreFound: tool_search finds them by name and by words, and their descriptions are ours.
func TestSeldomToolsAreFound(t *testing.T) {
	t.Parallel()
	k := setup(t, catalog.Options{}, seldom(t)...)
	for query, want := range map[string]string{
		"ask_user": "ask_user", "questions for the person": "ask_user", "show the steps": "update_plan", "text file": "", "": "",
	} {
		if res := k.find(query, 1, nil); strings.Join(res.Found, " ") != want || res.Untrusted != "" {
			t.Errorf("%q: %+v", query, res)
		}
	}
}
