// Package persistence opens the service's memory: it picks the engines and holds them together. Only cmd imports it.
package persistence

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/vector"
	"github.com/zephbot/zephbot/tools/overflow"
)

// fileName of the SQLite database below the data directory.
const fileName = "zephbot.db"

// Options of Open.
type Options struct {
	DataDir     string           // for embedded engines; locked for this process
	DatabaseURL string           // of PostgreSQL; "" = SQLite below DataDir
	Shared      bool             // other processes that share may work on the database too: PostgreSQL only
	Mode        string           // of this process, such as "serve", for the one that is refused the directory
	Owner       string           // names this process, also in leases: another one for each start
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
	case o.DatabaseURL != "" && !isPostgres(o.DatabaseURL):
		scheme, _, _ := strings.Cut(o.DatabaseURL, ":") // never the rest: it holds a password
		return fmt.Errorf("database.url: %q databases are not supported; give a postgres:// URL, or leave it empty for SQLite in data_dir", scheme)
	case o.Shared && o.DatabaseURL == "":
		return errors.New("a database in data_dir is for one process: set database.url to share one, or workspaces.shared = false")
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

// CheckURL says what is wrong with the form of a DatabaseURL; "" is fine. The error shows no password.
func CheckURL(url string) error {
	if url == "" {
		return nil
	}
	return postgres.Check(url)
}

// Passwords are those in a DatabaseURL, as it has them and decoded.
func Passwords(raw string) []string {
	u, err := url.Parse(raw)
	if err != nil {
		return nil
	}
	list := []string{u.Query().Get("password"), u.Query().Get("sslpassword")}
	if password, ok := u.User.Password(); ok {
		_, encoded, _ := strings.Cut(u.User.String(), ":")
		list = append(list, password, encoded)
	}
	return slices.Compact(slices.DeleteFunc(list, func(s string) bool { return s == "" }))
}

// database is what each of the SQL engines is.
type database interface {
	bot.Store
	overflow.Store
	vector.Points
	blob.Store
	keeper
}

// keeper is what is done to a database as a whole; see sql.Store.
type keeper interface {
	Recover(ctx context.Context, owner string) (freed int64, err error)
	Sweep(ctx context.Context, now time.Time, keep sql.Retention) (sql.Swept, error)
	Healthy(ctx context.Context) error
	Close() error
	member
}

// member is what a database knows of the processes that work on it; see Stores.
type member interface {
	Alive() bool
	Buried() <-chan struct{}
	Living(ctx context.Context) ([]string, error)
}

// Stores are the open engines. Close them.
type Stores struct {
	Bot      bot.Store
	Overflow overflow.Store
	Vectors  vector.Store
	Blobs    blob.Store

	database database
	unlock   func()
}

// openDatabase opens the engine that the options name.
func openDatabase(ctx context.Context, o *Options) (database, error) {
	if o.DatabaseURL != "" {
		store, err := postgres.Open(ctx, postgres.Options{
			URL: o.DatabaseURL, Owner: o.Owner, Shared: o.Shared, Now: o.Now, Log: o.Log, Hooks: o.Hooks, BlobBytes: o.BlobBytes,
		})
		if err != nil {
			return nil, err // not a nil *postgres.Store in an interface
		}
		return store, nil
	}
	store, err := sql.Open(ctx, sql.Options{Path: filepath.Join(o.DataDir, fileName), Owner: o.Owner, Now: o.Now, Log: o.Log, Hooks: o.Hooks, BlobBytes: o.BlobBytes})
	if err != nil {
		return nil, err
	}
	return store, nil
}

// Open takes the data directory for this process, makes it one of those that work on the database, and frees the leases
// that dead processes left. ctx bounds the opening. Errors name the directory, file or server and what to do;
// sql.ErrLocked and *sql.Unavailable are among them.
func Open(ctx context.Context, options Options) (*Stores, error) {
	if err := options.validate(); err != nil {
		return nil, err
	}
	unlock, err := sql.LockDir(options.DataDir, options.Mode)
	if err != nil {
		return nil, err
	}
	store, err := openDatabase(ctx, &options)
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
	stores := &Stores{Bot: store, Overflow: store, Vectors: vectors, Blobs: store, database: store, unlock: unlock}
	freed, err := store.Recover(ctx, options.Owner)
	if err != nil {
		return nil, errors.Join(err, stores.Close())
	}
	if freed > 0 {
		options.Log.Info().Int64("lanes", freed).Msg("took over the work of a process that ended early")
	}
	return stores, nil
}

// Lock takes a directory for one process of its kind, beside a service that may have it: name is the file of the lock.
// Taken already: sql.ErrLocked, with a sentence for the operator.
func Lock(dir, name, mode string) (release func(), err error) { return sql.LockFile(dir, name, mode) }

// Reader reads what a store holds. Close it.
type Reader interface {
	bot.Reader
	Close() error
}

// OpenReader opens a database for reading, beside the process that may be working on it: the one at a URL of
// PostgreSQL, or SQLite's below a data directory when url is empty. Where there is no such file, errors.Is(err,
// fs.ErrNotExist) holds.
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

// Schema says which schema a database has, and which this program makes of it.
type Schema = keeping.Schema

// ReadSchema reads which schema a database has, beside processes that may be working on it: the one at a URL of
// PostgreSQL, or SQLite's below a data directory when url is empty. It changes nothing. A database of a newer version
// is an error.
func ReadSchema(ctx context.Context, dataDir, url string) (Schema, error) {
	if url != "" {
		return postgres.Schema(ctx, url)
	}
	return sql.Schema(ctx, filepath.Join(dataDir, fileName))
}

// Migrate brings a database up to date, as Open does, beside processes that may be working on it, and says which schema
// it had.
func Migrate(ctx context.Context, dataDir, url string) (Schema, error) {
	if url != "" {
		return postgres.Migrate(ctx, url)
	}
	return sql.Migrate(ctx, filepath.Join(dataDir, fileName))
}

// Alive says whether this process can be sure that no other one has taken over its work; it asks nobody, and may be
// called as often as one likes. What is no Change and cannot be undone (a request to somebody else, the start of a
// tool) is begun only while it holds.
func (s *Stores) Alive() bool { return s.database.Alive() }

// Sure waits until Alive holds: the next beat brings it, where the server is not away. ErrBuried when it never will, or
// the error of ctx.
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

// Buried is closed when others have taken this process for dead and gone on with its work: it can store nothing any
// more (ErrBuried), and has to end. It is nil where that cannot be.
func (s *Stores) Buried() <-chan struct{} { return s.database.Buried() }

// Living lists the processes that work on the database by the names of their leases, this one among them, sorted. One
// that died is listed until the others have taken over its work, a few seconds later.
func (s *Stores) Living(ctx context.Context) ([]string, error) { return s.database.Living(ctx) }

// ErrBuried is the error of Changes of a process that others have taken for dead.
var ErrBuried = keeping.ErrBuried

// Healthy says why nothing can be stored; see sql.Store.Healthy.
func (s *Stores) Healthy(ctx context.Context) error { return s.database.Healthy(ctx) }

// Retention says for how long what nobody needs any more is kept all the same.
type Retention = sql.Retention

// Sweep forgets what is no longer needed at now (see sql.Store.Sweep).
func (s *Stores) Sweep(ctx context.Context, now time.Time, keep Retention) error {
	_, err := s.database.Sweep(ctx, now, keep)
	return err
}

// Close ends what was begun, closes the engines and gives the directory back.
func (s *Stores) Close() error {
	err := errors.Join(s.Vectors.Close(), s.database.Close())
	s.unlock()
	return err
}
