package app

import (
	"context"
	"slices"

	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// Ready is the first step of every mode: it refuses a configuration with which nothing can start, and warns once about
// what is unusual or will fail.
func Ready(opts Options, use check.Use) error {
	if opts.Checked {
		return nil
	}
	use.Model = use.Model && opts.Provider == nil
	found := check.Check(opts.Checks(), use)
	if len(found.Problems) > 0 {
		return found.Problems
	}
	for _, w := range slices.Concat(found.Faults, found.Warnings) {
		opts.Log.Warn().Str("config", w.String()).Msg("start")
	}
	return nil
}

// Checks returns what the configuration is checked with.
func (o Options) Checks() check.Options {
	return check.Options{Config: o.Config, Tools: Tools(), State: o.State, WorkDir: o.WorkDir, Now: o.Now}
}

// Try builds everything that a start builds, in a temporary directory, and returns what made that impossible.
func Try(opts Options) (found check.Findings, err error) {
	b, err := OpenTrial(context.Background(), opts)
	found.Problems = check.Located(opts.Config, err)
	if b == nil {
		return found, nil
	}
	for _, w := range b.core.warnings {
		found.Warnings = append(found.Warnings, config.Problem{Text: w})
	}
	return found, b.Close()
}
