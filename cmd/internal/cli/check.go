package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// checkConfig reports everything that is wrong at once: what cannot be read, what makes a start impossible, what will
// fail in use, and, separately, what is unusual.
func (c *command) checkConfig() error {
	cfg, found, err := c.examine()
	if err != nil {
		return err
	}
	for _, w := range found.Warnings {
		if _, err := fmt.Fprintln(c.env.Out, "warning: "+w.String()); err != nil {
			return err
		}
	}
	if len(found.Problems) > 0 {
		return found.Problems
	}
	return c.checked(cfg)
}

// examine reads the configuration and finds everything that is wrong with it, and what is unusual. The Config is nil if
// the file cannot be read at all; the error is about the check itself.
func (c *command) examine() (*config.Config, check.Findings, error) {
	cfg, err := config.Examine(c.source())
	problems, known := errors.AsType[config.Problems](err)
	if err != nil && !known {
		return nil, check.Findings{}, err
	}
	if cfg == nil {
		return nil, check.Findings{Problems: problems}, nil
	}
	found := check.Check(c.options(cfg).Checks(), check.Use{
		Telegram: true, Model: cfg.Telegram.Token != "" || len(cfg.LLM.Providers) > 0,
	})
	loaded := problems
	for _, p := range slices.Concat(found.Problems, found.Faults) {
		if !told(loaded, p) {
			problems = append(problems, p)
		}
	}
	warnings := found.Warnings
	if len(problems) == 0 {
		tried, err := app.Try(c.options(cfg))
		if err != nil {
			return nil, check.Findings{}, err
		}
		problems, warnings = tried.Problems, append(warnings, tried.Warnings...)
	}
	warnings = slices.DeleteFunc(warnings, func(w config.Problem) bool { return told(problems, w) })
	return cfg, check.Findings{Problems: problems.Sorted(), Warnings: warnings}, nil
}

// told reports whether there is already a problem of the same key, of its table, or of something in it.
func told(problems config.Problems, p config.Problem) bool {
	return slices.ContainsFunc(problems, func(q config.Problem) bool {
		return p.Key != "" && q.Key != "" && p.File == q.File &&
			(strings.HasPrefix(p.Key, q.Key) || strings.HasPrefix(q.Key, p.Key))
	})
}

func (c *command) checked(cfg *config.Config) error {
	file := cfg.File
	if file == "" {
		file = "no config file (defaults and environment)"
	}
	text := "ok: " + file
	if cfg.Telegram.Token == "" {
		text += "; no Telegram token (telegram.token or ZEPH_TELEGRAM_TOKEN): `zephbot` runs the simulator, `zephbot " +
			"setup` sets up a bot"
	}
	_, err := fmt.Fprintln(c.env.Out, text)
	return err
}
