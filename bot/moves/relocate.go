package moves

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// Runs are the background commands of sessions (shell.Runner).
type Runs interface {
	// Rename assigns the commands of each session to the session that name returns for it.
	Rename(name func(session string) string)
}

// Relocator updates everything outside the store after a group got a new id. All fields but Forget are required. It is
// safe for concurrent use.
type Relocator struct {
	Map   *Map
	Store bot.Facts
	Runs  Runs
	// News remembers which sessions have news (news.Ledger).
	News interface{ Reload() }
	Dirs *Workspaces
	// Forget drops the counters of groups that moved: their charges have moved in the store, from which the counters
	// are filled again. nil = there are no counters yet.
	Forget func()
	Now    func() time.Time
	Log    zerolog.Logger
}

// Relocate is called at startup and after every Change with a Move. A second call changes nothing. If the store cannot
// be read, the new ids take effect at the next start or with the next Change that moves a group.
func (r *Relocator) Relocate(ctx context.Context) {
	defer r.forgetChats()
	if err := r.Map.Load(ctx, r.Store, r.Now()); err != nil {
		r.Log.Error().Err(err).Msg("a group's new id takes effect only at the next start")
		return
	}
	r.renameRuns()
	r.News.Reload()
	r.Dirs.Join(ctx)
}

// Follow looks for groups that another process has moved; that process merges their files.
func (r *Relocator) Follow(ctx context.Context) error {
	moved, err := r.Map.refreshMoves(ctx, r.Store, r.Now())
	if err != nil || !moved {
		return err
	}
	r.renameRuns()
	r.forgetChats()
	return nil
}

// renameRuns assigns background commands to the current keys of their sessions.
func (r *Relocator) renameRuns() {
	r.Runs.Rename(func(session string) string { return string(r.Map.Current(bot.SessionKey(session))) })
}

func (r *Relocator) forgetChats() {
	if r.Forget != nil {
		r.Forget()
	}
}
