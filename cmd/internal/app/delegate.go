package app

import (
	"fmt"

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
