package moves

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// Runs are the background commands of sessions (shell.Runner).
type Runs interface {
	// Rename has the commands of a session belong to the one that name gives for it.
	Rename(name func(session string) string)
}

// Relocator brings everything that is not in the store in line with the groups' ids. All fields are needed but Forget.
// Safe for concurrent use.
type Relocator struct {
	Map   *Map
	Store bot.Facts
	Runs  Runs
	// News remembers which sessions have some (news.Ledger).
	News interface{ Reload() }
	Dirs *Workspaces
	// Forget drops the counters of groups that moved: their charges have moved in the store, and the counters are filled
	// from them again. nil = there are none yet.
	Forget func()
	Now    func() time.Time
	Log    zerolog.Logger
}

// Relocate is called at the start and after every Change with a Move. It changes nothing the second time. When the store
// cannot be read, the new ids are heeded at the next start, or with the next Change that moves a group.
func (r *Relocator) Relocate(ctx context.Context) {
	defer r.forget()
	if err := r.Map.Load(ctx, r.Store, r.Now()); err != nil {
		r.Log.Error().Err(err).Msg("a group's new id is heeded at the next start only")
		return
	}
	r.rename()
	r.News.Reload()
	r.Dirs.Join(ctx)
}

// Follow looks for groups that another process has moved; that process brings their files together.
func (r *Relocator) Follow(ctx context.Context) error {
	moved, err := r.Map.Refresh(ctx, r.Store, r.Now())
	if err != nil || !moved {
		return err
	}
	r.rename()
	r.forget()
	return nil
}

// rename has background commands belong to the sessions of groups as these are called now.
func (r *Relocator) rename() {
	r.Runs.Rename(func(session string) string { return string(r.Map.Current(bot.SessionKey(session))) })
}

func (r *Relocator) forget() {
	if r.Forget != nil {
		r.Forget()
	}
}
