// Package sql stores the service's data in SQLite, in one file. Changes go through one writer, which commits all
// waiting Changes in one transaction; reads run concurrently.
package sql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
)

// ErrClosed is returned by Apply after Close.
var ErrClosed = keeping.ErrClosed

// Hooks observe the store. AfterCommit runs on the writer's goroutine and gets the Changes of the group that were not
// refused.
type Hooks = keeping.Hooks

// Options of Open.
type Options struct {
	Path  string           // of the SQLite file; created if it does not exist, like its directory
	Owner string           // identifies this process, the only one that uses the database (LockDir)
	Now   func() time.Time // nil = time.Now; clock of FactsIf and of retention
	Log   zerolog.Logger
	Hooks Hooks
	// BlobBytes limits all stored files together, in bytes; 0 = no limit.
	BlobBytes int64
}

func (o *Options) validate() error {
	if o.Path == "" {
		return errors.New("open store: no path is given for the database file")
	}
	return nil
}

// Store is a bot.Store in SQLite. Safe for concurrent use. The caller must close it.
type Store struct {
	reader
	options Options
	dialect dialect
	pools   pools

	mu     sync.Mutex
	wake   *sync.Cond // for queue and closed
	queue  []*job
	closed bool

	failing atomic.Pointer[Unavailable] // why the last commit failed; nil = it did not

	writer sync.WaitGroup
	// For the writer goroutine:
	direct *direct  // nil = must reconnect
	write  *queries // on direct
	memory *memory
	world  *world
	guard  *guard
}

var _ bot.Store = (*Store)(nil)

// Open opens the database, brings its schema up to date and starts the writer. Errors of the database are *Unavailable.
// ctx limits the opening only.
func Open(ctx context.Context, options Options) (*Store, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	d := sqliteDialect(options.Path)
	p, err := d.openPools(ctx)
	if err != nil {
		return nil, err
	}
	s := &Store{options: options, dialect: d, pools: p, memory: newMemory(), world: newWorld()}
	s.reader = newReader(newQueries(newPooled(p.read), options.Hooks.Statement), d)
	s.wake = sync.NewCond(&s.mu)
	if err := s.prepareStore(ctx); err != nil {
		return nil, errors.Join(err, p.closePools())
	}
	s.writer.Go(func() { s.runWriter(context.WithoutCancel(ctx)) })
	return s, nil
}

func (s *Store) prepareStore(ctx context.Context) error {
	version, err := s.dialect.migrateSchema(ctx, s.pools.write)
	if err != nil {
		return err
	}
	if err := s.connectWriter(); err != nil {
		return s.dialect.wrapError("open", err)
	}
	s.guard = &guard{path: s.dialect.path, seen: map[string]os.FileInfo{}}
	if err := s.guard.openMark(ctx, s.write); err != nil {
		s.disconnectWriter()
		return s.dialect.wrapError("open", err)
	}
	s.options.Log.Debug().Str("path", s.options.Path).Int64("schema", version).Msg("store is open")
	return nil
}

// Close waits for the queued Changes, stops the writer and closes the database. A second Close does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.wake.Broadcast()
	s.mu.Unlock()
	s.writer.Wait()
	if again {
		return nil
	}
	s.disconnectWriter()
	return errors.Join(s.q.close(), s.pools.closePools(), s.guard.closeMark())
}

// Healthy returns why nothing can be stored; nil = the last commit succeeded, or else a commit that Healthy makes to
// find out. Errors are *Unavailable.
func (s *Store) Healthy(ctx context.Context) error {
	if s.failing.Load() == nil {
		return nil
	}
	return s.runMaintenance(ctx, func(context.Context, *queries) error { return nil })
}

const (
	freeLanes = `UPDATE lane SET owner = '', until = 0 WHERE owner <> '' AND owner <> ?`
	// freeLeaders frees what others lead, and the locks that they hold; see bot.LeaderBucket.
	freeLeaders = `DELETE FROM fact WHERE bucket = ? AND value <> ?`
	nameOwner   = `INSERT INTO meta (name, value) VALUES ('owner', ?) ON CONFLICT (name) DO UPDATE
		SET value = excluded.value`
)

// Alive returns true: no other process can take over the work of this one.
func (s *Store) Alive() bool { return true }

// Older returns false: no process of another version uses the database.
func (s *Store) Older() bool { return false }

// Buried returns nil: no other process can bury this one.
func (s *Store) Buried() <-chan struct{} { return nil }

// Living lists this process, the only one.
func (s *Store) Living(context.Context) ([]string, error) { return []string{s.options.Owner}, nil }

// Clock returns a time of this process by the clock of the database, which is the same one.
func (s *Store) Clock(at time.Time) time.Time { return at }

// Recover frees the leases of all other owners and returns how many there were, charges what these had set aside, and
// frees what they lead or have locked (bot.LeaderBucket). It is for the start of a process that has exclusive use of
// the store (LockDir): other owners are dead.
func (s *Store) Recover(ctx context.Context, owner string) (freed int64, err error) {
	err = s.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
		if err := s.memory.flushLanes(ctx, q); err != nil {
			return err
		}
		s.memory.forgetRows()
		freed, err = q.execChanged(ctx, freeLanes, owner)
		if err != nil {
			return err
		}
		if err := q.execOne(ctx, freeLeaders, bot.LeaderBucket, owner); err != nil {
			return err
		}
		for _, query := range []string{bookHolds, deleteHolds} {
			if err := q.execOne(ctx, query, owner); err != nil {
				return err
			}
		}
		return q.execOne(ctx, nameOwner, owner)
	})
	if err != nil {
		return 0, fmt.Errorf("recover leases: %w", err)
	}
	return freed, nil
}
