package facts

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// lockPause is the wait between two attempts to take a Lock, which doubles up to lockMost.
const (
	lockPause = 50 * time.Millisecond
	lockMost  = time.Second
)

// releaseWithin bounds how long it takes to give a Lock back.
const releaseWithin = 10 * time.Second

// Lock keeps the other processes that work on a store from something. Who holds it is a fact that the store deletes
// with the process (bot.LeaderBucket), so no clock decides about it. It does not keep the goroutines of one process
// from each other. Safe for concurrent use.
type Lock struct {
	Store  Store
	Keeper Keeper
	Owner  string // names this process as its leases do
	Now    func() time.Time
}

// Hold waits until this process holds the lock of a key, or ctx ends. release gives it back; while the store refuses
// that, the other processes wait, and this one can hold it again.
func (l Lock) Hold(ctx context.Context, key string) (release func(), err error) {
	for pause := lockPause; ; pause = min(2*pause, lockMost) {
		ok, err := l.take(ctx, key)
		if err != nil {
			return nil, fmt.Errorf("keep other processes from %s: %w", key, err)
		}
		if ok {
			return func() { l.release(ctx, key) }, nil
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("another process is at %s: %w", key, ctx.Err())
		case <-timer.C:
		}
	}
}

// take takes the lock if nobody has it.
func (l Lock) take(ctx context.Context, key string) (bool, error) {
	fact := bot.Fact{Bucket: bot.LeaderBucket, Key: key, Value: l.Owner}
	applied, err := l.Store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{fact}})
	if err != nil || applied.Set[0] {
		return err == nil, err
	}
	holder, err := l.Store.Fact(ctx, bot.LeaderBucket, key, l.Now())
	return holder == l.Owner, err
}

// release gives the lock back, also when ctx has ended.
func (l Lock) release(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	free := bot.Fact{Bucket: bot.LeaderBucket, Key: key}
	if err := l.Keeper.Keep(ctx, &bot.Change{Facts: []bot.Fact{free}}); err != nil {
		l.Keeper.Log.Warn().Err(err).Str("lock", key).Msg("not given back; other processes wait for it")
	}
}
