package app

import (
	"fmt"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/delegate"
)

// addDelegate adds the tool that gives work to sub-agents, which have the tools of the same registry.
func addDelegate(list *tools.Registry) error {
	tool, err := delegate.New(list)
	if err != nil {
		return fmt.Errorf("%s: %w", delegate.Name, err)
	}
	return list.Add(tool)
}

// stepsOf returns what an entry of a sub-agent adds to the story of its turn: its steps are told among those of the
// turn, with its name in front.
func stepsOf(agent string, e journal.Entry) []simulator.Step {
	if e.Kind == journal.UserEntry {
		return []simulator.Step{{Kind: "task", Name: agent, Text: e.Text}}
	}
	var t simulator.StoryTurn
	addEntry(&t, e)
	for i := range t.Steps {
		t.Steps[i].Name = agent + " · " + t.Steps[i].Name
	}
	return t.Steps
}
