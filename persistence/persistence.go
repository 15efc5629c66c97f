// Package persistence opens the service's memory: it picks the engines and holds them together. Only cmd imports it.
package persistence

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/vector"
	"github.com/zephbot/zephbot/tools/overflow"
)

// fileName of the SQLite database below the data directory.
const fileName = "zephbot.db"

// Options of Open.
type Options struct {
	DataDir     string           // for embedded engines; locked for this process
	DatabaseURL string           // "" = SQLite below DataDir
	Mode        string           // of this process, such as "serve", for the one that is refused the directory
	Owner       string           // of the leases of this process: unique among processes
	Now         func() time.Time // nil = time.Now
	Log         zerolog.Logger
	Hooks       sql.Hooks // watch the commits; tests only
	Vector      Vector
	BlobBytes   int64 // bound of the files that are kept, all together, in bytes; 0 = no limit
}

// Vector says where vectors are kept ([vector]).
type Vector struct {
	Backend string // "" = vector.Embedded
	URL     string // of Qdrant
	APIKey  string // of Qdrant
}

func (o *Options) validate() error {
	switch {
	case o.DatabaseURL != "":
		scheme, _, _ := strings.Cut(o.DatabaseURL, ":") // never the rest: it holds a password
		return fmt.Errorf("database.url: %q databases are not supported; leave it empty for SQLite in data_dir", scheme)
	case o.DataDir == "":
		return errors.New("data_dir is empty: name a directory for the database")
	case o.Owner == "":
		return errors.New("the owner of the leases has no name")
	}
	return nil
}

// Stores are the open engines. Close them.
type Stores struct {
	Bot      bot.Store
	Overflow overflow.Store
	Vectors  vector.Store
	Blobs    blob.Store

	sql    *sql.Store
	unlock func()
}

// Open takes the data directory for this process, opens the database and frees the leases that dead processes left. ctx bounds the opening.
// Errors name the directory or file and what to do; sql.ErrLocked and *sql.Unavailable are among them.
func Open(ctx context.Context, options Options) (*Stores, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	unlock, err := sql.LockDir(options.DataDir, options.Mode)
	if err != nil {
		return nil, err
	}
	store, err := sql.Open(ctx, sql.Options{Path: filepath.Join(options.DataDir, fileName), Now: options.Now, Log: options.Log, Hooks: options.Hooks, BlobBytes: options.BlobBytes})
	if err != nil {
		unlock()
		return nil, err
	}
	vectors, err := vector.Open(vector.Options{
		Backend: options.Vector.Backend, URL: options.Vector.URL, APIKey: options.Vector.APIKey, Points: store, Log: options.Log,
	})
	if err != nil {
		err = errors.Join(err, store.Close())
		unlock()
		return nil, err
	}
	stores := &Stores{Bot: store, Overflow: store, Vectors: vectors, Blobs: store, sql: store, unlock: unlock}
	freed, err := store.Recover(ctx, options.Owner)
	if err != nil {
		return nil, errors.Join(err, stores.Close())
	}
	if freed > 0 {
		options.Log.Info().Int64("lanes", freed).Msg("took over the work of a process that ended early")
	}
	return stores, nil
}

// Lock takes a directory for one process of its kind, beside a service that may have it: name is the file of the lock. Taken already: sql.ErrLocked, with
// a sentence for the operator.
func Lock(dir, name, mode string) (release func(), err error) { return sql.LockFile(dir, name, mode) }

// OpenReader opens the database below a data directory for reading, beside the process that may be working on it. Where there is none,
// errors.Is(err, fs.ErrNotExist) holds. Close it.
func OpenReader(ctx context.Context, dataDir string) (*sql.Reader, error) {
	return sql.OpenReader(ctx, filepath.Join(dataDir, fileName))
}

// Healthy says why nothing can be stored; see sql.Store.Healthy.
func (s *Stores) Healthy(ctx context.Context) error { return s.sql.Healthy(ctx) }

// Retention says for how long what nobody needs any more is kept all the same.
type Retention = sql.Retention

// Sweep forgets what is no longer needed at now (see sql.Store.Sweep).
func (s *Stores) Sweep(ctx context.Context, now time.Time, keep Retention) error {
	_, err := s.sql.Sweep(ctx, now, keep)
	return err
}

// Close ends what was begun, closes the engines and gives the directory back.
func (s *Stores) Close() error {
	err := errors.Join(s.Vectors.Close(), s.sql.Close())
	s.unlock()
	return err
}
