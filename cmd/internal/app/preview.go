package app

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools/shell"
)

// previewDir returns where the layers of previewed commands are kept; "" = commands are not previewed. A call from the
// command line has nobody to ask.
func (c *Core) previewDir() string {
	switch {
	case !c.cfg.Tools.Shell.Preview || c.passing:
		return ""
	case c.shared() && c.cfg.Workspaces.Dir != "":
		return filepath.Join(c.opts.Layout().Common(), layout.Previews)
	default:
		return filepath.Join(c.dir, layout.Previews)
	}
}

// previewing says whether questions about commands show what they would do.
func (c *Core) previewing(ctx context.Context) texts.Previews {
	_, runs := c.registry.Lookup(shell.Name)
	switch {
	case !c.cfg.Tools.Enabled || !runs:
		return ""
	case c.previewDir() == "":
		return texts.PreviewsOff
	case !c.kit.runner.Previews(ctx):
		return texts.PreviewsCannot
	}
	return texts.PreviewsShown
}

// previewGrace is how long a layer stays whose question is not stored yet, or whose approved call has not run yet.
const previewGrace = time.Hour

// sweepPreviews completes layers that were being applied when their process was killed, and removes those that nobody
// decides about any more.
func (c *Core) sweepPreviews(ctx context.Context) error {
	return c.kit.runner.SweepPreviews(ctx, func(session, call, digest string, at time.Time) (bool, error) {
		a, err := c.stores.Bot.ApprovalOf(ctx, bot.SessionKey(session), call)
		fresh := func(t time.Time) bool { return c.now().Sub(t) < previewGrace }
		switch {
		case errors.Is(err, bot.ErrNotFound):
			return fresh(at), nil
		case err != nil:
			return true, err
		case a.State == bot.Open:
			return true, nil
		default:
			return a.State == bot.Approved && fresh(a.Decided), nil
		}
	})
}

// undecided is a store that notices when questions end without a yes, so that what their
// calls would have done is removed.
type undecided struct {
	bot.Store

	ended chan<- struct{} // has room for one
}

// Apply implements bot.Store.
func (u undecided) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	applied, err := u.Store.Apply(ctx, change)
	no := func(d bot.Decision) bool { return d.State != bot.Open && d.State != bot.Approved }
	if err == nil && (len(applied.Withdrawn) > 0 || slices.ContainsFunc(change.Decide, no)) {
		select {
		case u.ended <- struct{}{}:
		default: // the next sweep sees this one too
		}
	}
	return applied, err
}

// sweepUndecided removes layers whose questions have ended, until ctx ends.
func (s *service) sweepUndecided(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-s.undecided:
			if err := s.core.sweepPreviews(ctx); err != nil && ctx.Err() == nil {
				s.log.Error().Err(err).Msg("layers of previewed commands not removed; tried again within an hour")
			}
		}
	}
}

// previewPlace are layers of previewed commands about which nobody has decided.
type previewPlace struct{ core *Core }

// Name implements privacy.Place.
func (previewPlace) Name() string { return "previews" }

// Erase implements privacy.Place. It comes before the directories are gone, whose canonical paths it needs.
func (p previewPlace) Erase(ctx context.Context, of *privacy.Order) (int, error) {
	dirs, err := p.core.workspaces().Of(of)
	n, errs := 0, []error{err}
	for _, dir := range dirs {
		had, err := p.core.kit.runner.ForgetPreviews(ctx, dir)
		if errs = append(errs, err); had {
			n++
		}
	}
	return n, errors.Join(errs...)
}

// Export implements privacy.Place: what a command would have done is no data of the person.
func (previewPlace) Export(context.Context, *privacy.Order, *privacy.Archive) error { return nil }
