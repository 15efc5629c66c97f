// Package persistence opens the service's storage: it selects the engines and combines them. Only cmd imports it.
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
	"github.com/zephbot/zephbot/bot/privacy/table"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/sql/points"
	"github.com/zephbot/zephbot/persistence/vector"
	"github.com/zephbot/zephbot/tools/overflow"
)

// Files below the data directory.
const (
	fileName   = "zephbot.db" // the SQLite database
	vectorFile = "vectors.db" // vectors of code and memories, which can be made again
)

// Options of Open.
type Options struct {
	DataDir     string           // for embedded engines; locked for this process
	DatabaseURL string           // of PostgreSQL; "" = SQLite below DataDir
	Shared      bool             // other processes that share may use the database too: PostgreSQL only
	Mode        string           // of this process, such as "serve"; shown to a process that finds the directory locked
	Owner       string           // identifies this process, also in leases; different for each start
	Now         func() time.Time // nil = time.Now
	Log         zerolog.Logger
	Hooks       sql.Hooks // observe the commits
	Vector      Vector
	BlobBytes   int64 // limit of all stored files together, in bytes; 0 = no limit
}

// Vector configures where vectors are stored ([vector]).
type Vector struct {
	Backend string // "" = vector.Embedded
	URL     string // of Qdrant
	APIKey  string // of Qdrant
}

func (o *Options) validate() error {
	switch {
	case o.DatabaseURL != "" && !isPostgres(o.DatabaseURL):
		scheme, _, _ := strings.Cut(o.DatabaseURL, ":") // never the rest, which contains a password
		return fmt.Errorf("database.url: %q databases are not supported; "+
			"give a postgres:// URL, or leave it empty for SQLite in data_dir", scheme)
	case o.Shared && o.DatabaseURL == "":
		return errors.New("a database in data_dir is for one process: " +
			"set database.url to share one, or workspaces.shared = false")
	case o.DataDir == "":
		return errors.New("data_dir is empty: name a directory for the database")
	case o.Owner == "":
		return errors.New("the owner of the leases has no name")
	}
	return nil
}

func isPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// CheckURL returns what is wrong with the form of a DatabaseURL; "" is valid. The error shows no password.
func CheckURL(url string) error {
	if url == "" {
		return nil
	}
	return postgres.Check(url)
}

// database is implemented by both SQL engines.
type database interface {
	bot.Store
	overflow.Store
	vector.Points
	contents
	keeper
}

// contents has the contents of files, and the rows of all tables.
type contents interface {
	blob.Store
	table.Store
}

// keeper has the operations on a database as a whole; see sql.Store.
type keeper interface {
	Recover(ctx context.Context, owner string) (freed int64, err error)
	Sweep(ctx context.Context, now time.Time, keep sql.Retention) (sql.Swept, error)
	Healthy(ctx context.Context) error
	Close() error
	watched
}

// watched has what is asked of a database while it is in use.
type watched interface {
	member
	vital
}

// vital has the figures of a database; see Stores.
type vital interface {
	Vitals(ctx context.Context) (keeping.Vitals, error)
}

// member has the operations on the processes that use the database; see Stores.
type member interface {
	Alive() bool
	Older() bool
	Buried() <-chan struct{}
	Living(ctx context.Context) ([]string, error)
	Clock(at time.Time) time.Time
}

// Stores are the open engines. The caller must close them.
type Stores struct {
	Bot      bot.Store
	Overflow overflow.Store
	Vectors  vector.Store
	Blobs    blob.Store
	Tables   table.Store

	database database
	points   *points.File // nil = they are in the database, or in Qdrant
	unlock   func()
}

// openDatabase opens the configured engine.
func openDatabase(ctx context.Context, o *Options) (database, error) {
	if o.DatabaseURL != "" {
		store, err := postgres.Open(ctx, postgres.Options{
			URL: o.DatabaseURL, Owner: o.Owner, Shared: o.Shared,
			Now: o.Now, Log: o.Log, Hooks: o.Hooks, BlobBytes: o.BlobBytes,
		})
		if err != nil {
			return nil, err // not a nil *postgres.Store in an interface
		}
		return store, nil
	}
	store, err := sql.Open(ctx, sql.Options{
		Path: filepath.Join(o.DataDir, fileName), Owner: o.Owner,
		Now: o.Now, Log: o.Log, Hooks: o.Hooks, BlobBytes: o.BlobBytes,
	})
	if err != nil {
		return nil, err
	}
	return store, nil
}

// Open locks the data directory for this process, registers it with the database, and frees the leases of dead
// processes. ctx limits the opening only. Errors name the directory, file or server and what to do; sql.ErrLocked and
// *sql.Unavailable are among them.
func Open(ctx context.Context, options Options) (*Stores, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	unlock, err := lockData(&options)
	if err != nil {
		return nil, err
	}
	store, err := openDatabase(ctx, &options)
	if err != nil {
		unlock()
		return nil, err
	}
	stores := &Stores{Bot: store, Overflow: store, Blobs: store, Tables: store, database: store, unlock: unlock}
	if stores.Vectors, err = stores.openVectors(options); err != nil {
		err = errors.Join(err, store.Close())
		unlock()
		return nil, err
	}
	freed, err := store.Recover(ctx, options.Owner)
	if err != nil {
		return nil, errors.Join(err, stores.Close())
	}
	if freed > 0 {
		options.Log.Info().Int64("lanes", freed).Msg("took over the work of a process that ended early")
	}
	return stores, nil
}

// openVectors opens the store of vectors. Those of many owners are in PostgreSQL if it is the database, so that
// processes share them, and otherwise in a file of their own, which is opened at its first use.
func (s *Stores) openVectors(o Options) (vector.Store, error) {
	vectors := vector.Options{
		Backend: o.Vector.Backend, URL: o.Vector.URL, APIKey: o.Vector.APIKey, Points: s.database, Log: o.Log,
	}
	if shared, ok := s.database.(*postgres.Store); ok {
		vectors.Rows = shared.Entries()
	} else {
		s.points = points.New(filepath.Join(o.DataDir, vectorFile), o.Log)
		vectors.Rows = s.points
	}
	return vector.Open(vectors)
}

// Lock locks a directory for one process of its kind, independent of a service that may have locked it. name is the
// lock file. If it is locked already, the error is sql.ErrLocked, with a sentence for the operator.
func Lock(dir, name, mode string) (release func(), err error) { return sql.LockFile(dir, name, mode) }

// Holder reports whether a running process has locked a data directory, and describes it; see sql.Holder.
func Holder(dir string) (who string, held bool, err error) { return sql.Holder(dir) }

// Reader reads a store. The caller must close it.
type Reader interface {
	bot.Reader
	table.Reader
	blob.Opener
	Close() error
}

// OpenReader opens a database for reading while another process may be using it: the PostgreSQL database at url, or
// SQLite's below dataDir if url is empty. If there is no such file, errors.Is(err, fs.ErrNotExist) is true.
func OpenReader(ctx context.Context, dataDir, url string) (Reader, error) {
	if url != "" {
		reader, err := postgres.OpenReader(ctx, url)
		if err != nil {
			return nil, err
		}
		return reader, nil
	}
	reader, err := sql.OpenReader(ctx, filepath.Join(dataDir, fileName))
	if err != nil {
		return nil, err
	}
	return reader, nil
}

// PingVectors checks whether the configured vector store can be used; one in the process
// always can. It changes nothing.
func PingVectors(ctx context.Context, v Vector, log zerolog.Logger) error {
	if v.Backend != vector.Qdrant {
		return nil
	}
	store, err := vector.Open(vector.Options{Backend: v.Backend, URL: v.URL, APIKey: v.APIKey, Log: log})
	if err != nil {
		return err
	}
	return errors.Join(store.Ping(ctx), store.Close())
}

// PutFact stores a fact in a database while another process may be using it: the PostgreSQL database at url, or
// SQLite's below dataDir if url is empty. It must exist, and have the schema of this program.
func PutFact(ctx context.Context, dataDir, url string, fact bot.Fact) error {
	if url != "" {
		return postgres.PutFact(ctx, url, fact)
	}
	return sql.PutFact(ctx, filepath.Join(dataDir, fileName), fact)
}

// ScrubVectors overwrites the vectors that were deleted, where they are in a file of their own.
func (s *Stores) ScrubVectors(ctx context.Context) error {
	if s.points == nil {
		return nil
	}
	return s.points.Scrub(ctx)
}

// Schema is the schema version of a database and the one that this program needs.
type Schema = keeping.Schema

// ReadSchema reads the schema version of a database while other processes may be using it: the PostgreSQL database at
// url, or SQLite's below dataDir if url is empty. It changes nothing. A database of a newer version is an error.
func ReadSchema(ctx context.Context, dataDir, url string) (Schema, error) {
	if url != "" {
		return postgres.Schema(ctx, url)
	}
	return sql.Schema(ctx, filepath.Join(dataDir, fileName))
}

// Migrate brings a database up to date, as Open does, while other processes may be using it, and returns the schema
// that it had before.
func Migrate(ctx context.Context, dataDir, url string) (Schema, error) {
	if url != "" {
		return postgres.Migrate(ctx, url)
	}
	return sql.Migrate(ctx, filepath.Join(dataDir, fileName))
}

// Alive reports whether this process can be sure that no other one has taken over its work. It does no I/O and is
// cheap. An irreversible action that is not a Change (a request to another service, the start of a tool) may begin only
// while it returns true.
func (s *Stores) Alive() bool { return s.database.Alive() }

// Older reports whether a process of a version lives that does not know bot.Ledger. It does no I/O.
func (s *Stores) Older() bool { return s.database.Older() }

// Sure waits until Alive returns true, which the next beat brings about unless the server is down. It returns ErrBuried
// if that cannot happen any more, or the error of ctx.
func (s *Stores) Sure(ctx context.Context) error {
	if s.Alive() {
		return nil
	}
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-s.Buried():
			return ErrBuried
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			if s.Alive() {
				return nil
			}
		}
	}
}

// Buried is closed when other processes have declared this one dead and taken over its work: it can store nothing any
// more (ErrBuried) and must end. It is nil if that cannot happen.
func (s *Stores) Buried() <-chan struct{} { return s.database.Buried() }

// Clock converts a time of this process to the clock of the database, on which the processes that share it agree. It
// does not ask the server: the clocks are compared now and then.
func (s *Stores) Clock(at time.Time) time.Time { return s.database.Clock(at) }

// Living lists the processes that use the database by the names in their leases, including this one, sorted. A dead
// process is listed until the others have taken over its work, a few seconds later.
func (s *Stores) Living(ctx context.Context) ([]string, error) { return s.database.Living(ctx) }

// ErrBuried is the error of Changes of a process that others have declared dead.
var ErrBuried = keeping.ErrBuried

// Healthy returns why nothing can be stored; see sql.Store.Healthy.
func (s *Stores) Healthy(ctx context.Context) error { return s.database.Healthy(ctx) }

// Vitals are figures of a database for its operator.
type Vitals = keeping.Vitals

// Vitals reads the figures of the database.
func (s *Stores) Vitals(ctx context.Context) (Vitals, error) { return s.database.Vitals(ctx) }

// Retention says how long data is kept after it is no longer needed.
type Retention = sql.Retention

// Sweep deletes data that is no longer needed at now (see sql.Store.Sweep).
func (s *Stores) Sweep(ctx context.Context, now time.Time, keep Retention) error {
	_, err := s.database.Sweep(ctx, now, keep)
	return err
}

// Close ends pending work, closes the engines and unlocks the directory.
func (s *Stores) Close() error {
	err := s.Vectors.Close()
	if s.points != nil {
		err = errors.Join(err, s.points.Close())
	}
	err = errors.Join(err, s.database.Close())
	s.unlock()
	return err
}
