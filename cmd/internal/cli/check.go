package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// checkConfig reports everything that is wrong at once: what cannot be read, what makes a start impossible, what will
// fail in use, and, separately, what is unusual.
func (c *command) checkConfig() error {
	cfg, err := config.Examine(c.source())
	problems, known := errors.AsType[config.Problems](err)
	if err != nil && (!known || cfg == nil) {
		return err
	}
	found := app.Check(c.options(cfg), app.Use{
		Telegram: true, Model: cfg.Telegram.Token != "" || len(cfg.LLM.Providers) > 0,
	})
	loaded := problems
	for _, p := range slices.Concat(found.Problems, found.Faults) {
		if !told(loaded, p) {
			problems = append(problems, p)
		}
	}
	if len(problems) == 0 {
		tried, err := app.Try(c.options(cfg))
		if err != nil {
			return err
		}
		problems, found.Warnings = tried.Problems, append(found.Warnings, tried.Warnings...)
	}
	for _, w := range found.Warnings {
		if told(problems, w) {
			continue
		}
		if _, err := fmt.Fprintln(c.env.Out, "warning: "+w.String()); err != nil {
			return err
		}
	}
	if len(problems) > 0 {
		return problems.Sorted()
	}
	return c.checked(cfg)
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
		text += "; no Telegram token (telegram.token or ZEPH_TELEGRAM_TOKEN): `zephbot` runs the simulator"
	}
	_, err := fmt.Fprintln(c.env.Out, text)
	return err
}
