package facts

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
)

// Pauses between two attempts of a Keeper.
const (
	firstPause = 50 * time.Millisecond
	mostPause  = 5 * time.Second
)

// Keeper makes changes that must not be lost. Safe for concurrent use; it starts no goroutines.
type Keeper struct {
	Store bot.Writer
	Log   zerolog.Logger
}

// Keep applies a Change until the store accepts it or refuses it for good, or ctx ends. A reply of the store may be
// lost, so the Change must have the same effect if it is applied twice.
func (k Keeper) Keep(ctx context.Context, change *bot.Change) error {
	return k.Insist(ctx, func() error {
		_, err := k.Store.Apply(ctx, change)
		return err
	})
}

// Insist runs work until it succeeds, is refused for good, or ctx ends; in the last case the error wraps both ctx's
// error and the last one of work.
func (k Keeper) Insist(ctx context.Context, work func() error) error {
	for pause := firstPause; ; pause = min(2*pause, mostPause) {
		err := work()
		if err == nil || isFinal(err) {
			return err
		}
		k.Log.Warn().Err(err).Dur("wait", pause).Msg("the store failed; retrying")
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(ctx.Err(), err)
		case <-timer.C:
		}
	}
}

// isFinal reports whether the store would refuse a Change at any other time too.
func isFinal(err error) bool {
	return slices.ContainsFunc([]error{
		bot.ErrInvalid, bot.ErrNotFound, bot.ErrLost, bot.ErrConflict, bot.ErrDecided, bot.ErrTaken,
	}, func(e error) bool {
		return errors.Is(err, e)
	})
}
