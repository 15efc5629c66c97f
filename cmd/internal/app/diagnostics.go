package app

import (
	"fmt"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/diagnostics"
)

// checking builds the tool diagnostics. The runner of commands must have been built.
func (c *Core) checking(k *kit) ([]tools.Tool, error) {
	tool, err := diagnostics.New(diagnostics.Options{Runner: k.runner, Max: c.cfg.Tools.Diagnostics.MaxDiagnostics})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", diagnostics.Name, err)
	}
	return []tools.Tool{tool}, nil
}
