// Package points keeps vectors in a SQLite file of their own, apart from the database, because they are derived and large.
package points

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"

	"github.com/rs/zerolog"
	_ "modernc.org/sqlite" // the driver

	"github.com/zephbot/zephbot/agent/knn"
)

// version of the schema. A file with another one is made again.
const version = 1

// schema. The version of an owner is another one after each change of its points.
const schema = `
CREATE TABLE owner (kind TEXT NOT NULL, scope TEXT NOT NULL, version INTEGER NOT NULL, PRIMARY KEY (kind, scope)) WITHOUT ROWID;
CREATE TABLE point (
  id INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL,
  hash TEXT NOT NULL, payload TEXT NOT NULL, vector BLOB NOT NULL
);
CREATE UNIQUE INDEX point_key ON point (kind, scope, key);
CREATE INDEX point_scope ON point (kind, scope, id);
PRAGMA user_version = 1;`

// readers is the number of connections that read.
const readers = 4

const (
	kindsQuery   = `SELECT DISTINCT kind FROM owner WHERE kind >= ? AND kind < ?`
	ownersQuery  = `SELECT scope, version FROM owner WHERE kind = ? ORDER BY scope`
	versionQuery = `SELECT version FROM owner WHERE kind = ? AND scope = ?`
	hashesQuery  = `SELECT key, hash FROM point WHERE kind = ? AND scope = ?`
	vectorsQuery = `SELECT id, vector FROM point WHERE kind = ? AND scope = ? ORDER BY id`
	someQuery    = `SELECT id, vector FROM point WHERE id IN (SELECT value FROM json_each(?)) AND kind = ? AND scope = ? ORDER BY id`
	namedQuery   = `SELECT id, key, payload FROM point WHERE id IN (SELECT value FROM json_each(?)) AND kind = ? AND scope = ?`

	upsertPoint = `INSERT INTO point (kind, scope, key, hash, payload, vector) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, scope, key) DO UPDATE SET hash = excluded.hash, payload = excluded.payload, vector = excluded.vector`
	restatePoint = `UPDATE point SET hash = ?, payload = ? WHERE kind = ? AND scope = ? AND key = ?`
	touchOwner   = `INSERT INTO owner (kind, scope, version) VALUES (?, ?, ?)
ON CONFLICT (kind, scope) DO UPDATE SET version = excluded.version`
	deletePoint  = `DELETE FROM point WHERE kind = ? AND scope = ? AND key = ?`
	forgetPoints = `DELETE FROM point WHERE kind = ? AND scope = ?`
	leaveOwner   = `DELETE FROM owner WHERE kind = ? AND scope = ?
AND NOT EXISTS (SELECT 1 FROM point WHERE point.kind = owner.kind AND point.scope = owner.scope)`
	dropPoints = `DELETE FROM point WHERE kind = ?`
	dropOwners = `DELETE FROM owner WHERE kind = ?`
)

// File keeps the points of many owners in a SQLite file, which can be deleted while nobody uses it: it is made again from
// what it was derived from. It implements knn.Rows. Safe for concurrent use, by one process. The caller must close it.
type File struct {
	path string
	log  zerolog.Logger

	mu    sync.Mutex
	pools *pools // nil = not open yet
}

// pools are the connections: one for writing, several for reading.
type pools struct{ write, read *sql.DB }

func (p *pools) close() error { return errors.Join(p.read.Close(), p.write.Close()) }

// New returns a file that is opened, or created with its directory, at its first use. One that is damaged or of another
// version is deleted and created again.
func New(path string, log zerolog.Logger) *File { return &File{path: path, log: log} }

// open returns the connections. After a failure, the next call tries again.
func (f *File) open(ctx context.Context) (*pools, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pools != nil {
		return f.pools, nil
	}
	p, err := connect(ctx, f.path)
	if err != nil && ctx.Err() == nil && f.discard(err) {
		p, err = connect(ctx, f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the vectors in %s: %w", f.path, err)
	}
	f.pools = p
	return p, nil
}

// discard deletes the file, if it is one.
func (f *File) discard(why error) bool {
	info, err := os.Stat(f.path)
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	f.log.Warn().Err(why).Str("file", f.path).Msg("the file of vectors cannot be used; it is made again")
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(f.path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

func connect(ctx context.Context, path string) (*pools, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) // SQLite gives the same mode to the files next to it
	if err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	write, err := sql.Open("sqlite", dsn(path))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", dsn(path, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	p := &pools{write: write, read: read}
	if err := prepare(ctx, write); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// dsn of a file. What was committed survives the end of the process; a power cut may undo the last changes, which the next
// sync makes again. A page holds several vectors: with SQLite's default of 4096 bytes, half of each page would be empty.
func dsn(path string, more ...string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	pragmas := append([]string{"busy_timeout(10000)", "page_size(16384)", "synchronous(NORMAL)", "cache_size(-2048)"}, more...)
	where := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	// The driver sorts pragmas by name, and sets this mode, which writes the first page, after them.
	where.RawQuery = url.Values{"_txlock": {"immediate"}, "_pragma": pragmas, "_journal_mode": {"WAL"}}.Encode()
	return where.String()
}

// prepare creates the schema of a new file, and checks that of another one.
func prepare(ctx context.Context, write *sql.DB) error {
	var found int
	if err := write.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&found); err != nil {
		return err
	}
	switch found {
	case 0:
		_, err := write.ExecContext(ctx, schema)
		return err
	case version:
		return nil
	default:
		return fmt.Errorf("the file has version %d, this program needs %d", found, version)
	}
}

// Close closes the file. A later use would open it again.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pools == nil {
		return nil
	}
	err := f.pools.close()
	f.pools = nil
	return err
}

// scanner reads the columns of one row.
type scanner func(dest ...any) error

func (f *File) each(ctx context.Context, what string, see func(scanner) error, query string, args ...any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s of %s: %w", what, f.path, err)
		}
	}()
	p, err := f.open(ctx)
	if err != nil {
		return err
	}
	rows, err := p.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		if err := see(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Kinds implements knn.Rows.
func (f *File) Kinds(ctx context.Context, name string) (kinds []knn.Kind, err error) {
	err = f.each(ctx, "read the kinds of vectors", func(scan scanner) error {
		var text string
		if err := scan(&text); err != nil {
			return err
		}
		kind, err := knn.ParseKind(text)
		if err != nil {
			f.log.Warn().Err(err).Msg("skipped stored vectors")
			return nil
		}
		kinds = append(kinds, kind)
		return nil
	}, kindsQuery, name+"|", name+"}") // '}' follows '|'
	return kinds, err
}

// Owners implements knn.Rows.
func (f *File) Owners(ctx context.Context, kind knn.Kind) (scopes []string, err error) {
	err = f.each(ctx, "read the owners of vectors", func(scan scanner) error {
		var scope string
		var version int64
		if err := scan(&scope, &version); err != nil {
			return err
		}
		scopes = append(scopes, scope)
		return nil
	}, ownersQuery, kind.String())
	return scopes, err
}

// Version implements knn.Rows.
func (f *File) Version(ctx context.Context, kind knn.Kind, scope string) (version int64, err error) {
	err = f.each(ctx, "read the version of vectors", func(scan scanner) error { return scan(&version) },
		versionQuery, kind.String(), scope)
	return version, err
}

// Hashes implements knn.Rows.
func (f *File) Hashes(ctx context.Context, kind knn.Kind, scope string) (map[string]string, error) {
	all := map[string]string{}
	err := f.each(ctx, "read the hashes of vectors", func(scan scanner) error {
		var key, hash string
		if err := scan(&key, &hash); err != nil {
			return err
		}
		all[key] = hash
		return nil
	}, hashesQuery, kind.String(), scope)
	return all, err
}

// EachVector implements knn.Rows.
func (f *File) EachVector(
	ctx context.Context, kind knn.Kind, scope string, see func(id int64, vector []byte) error,
) error {
	return f.vectors(ctx, see, vectorsQuery, kind.String(), scope)
}

// Vectors implements knn.Rows.
func (f *File) Vectors(
	ctx context.Context, kind knn.Kind, scope string, ids []int64, see func(id int64, vector []byte) error,
) error {
	return f.vectors(ctx, see, someQuery, array(ids), kind.String(), scope)
}

func (f *File) vectors(ctx context.Context, see func(id int64, vector []byte) error, query string, args ...any) error {
	var id int64
	var vector sql.RawBytes
	return f.each(ctx, "read vectors", func(scan scanner) error {
		if err := scan(&id, &vector); err != nil {
			return err
		}
		return see(id, vector)
	}, query, args...)
}

// array is a list of ids for json_each.
func array(ids []int64) string {
	text := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, id, 10)
	}
	return string(append(text, ']'))
}

// Named implements knn.Rows.
func (f *File) Named(
	ctx context.Context, kind knn.Kind, scope string, ids []int64, see func(id int64, key string, payload string),
) error {
	return f.each(ctx, "read the names of vectors", func(scan scanner) error {
		var id int64
		var key, payload string
		err := scan(&id, &key, &payload)
		if err == nil {
			see(id, key, payload)
		}
		return err
	}, namedQuery, array(ids), kind.String(), scope)
}

// change runs a transaction.
func (f *File) change(ctx context.Context, what string, run func(exec func(query string, args ...any) error) error) error {
	p, err := f.open(ctx)
	if err != nil {
		return err
	}
	tx, err := p.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("%s in %s: %w", what, f.path, err)
	}
	err = run(func(query string, args ...any) error {
		_, err := tx.ExecContext(ctx, query, args...)
		return err
	})
	if err == nil {
		err = tx.Commit()
	} else {
		err = errors.Join(err, tx.Rollback())
	}
	if err != nil {
		return fmt.Errorf("%s in %s: %w", what, f.path, err)
	}
	return nil
}

// Store implements knn.Rows.
func (f *File) Store(ctx context.Context, kind knn.Kind, rows []knn.Row) error {
	name := kind.String()
	return f.change(ctx, "store vectors", func(exec func(string, ...any) error) error {
		var scopes []string
		for _, r := range rows {
			var err error
			if len(r.Vector) == 0 {
				err = exec(restatePoint, r.Hash, r.Payload, name, r.Scope, r.Key)
			} else {
				err = exec(upsertPoint, name, r.Scope, r.Key, r.Hash, r.Payload, r.Vector)
				scopes = append(scopes, r.Scope)
			}
			if err != nil {
				return err
			}
		}
		slices.Sort(scopes)
		for _, scope := range slices.Compact(scopes) {
			if err := exec(touchOwner, name, scope, rand.Int64()); err != nil { //nolint:gosec // only has to be another one
				return err
			}
		}
		return nil
	})
}

// Remove implements knn.Rows.
func (f *File) Remove(ctx context.Context, kind knn.Kind, scope string, keys []string) error {
	name := kind.String()
	return f.change(ctx, "remove vectors", func(exec func(string, ...any) error) error {
		for _, key := range keys {
			if err := exec(deletePoint, name, scope, key); err != nil {
				return err
			}
		}
		if err := exec(touchOwner, name, scope, rand.Int64()); err != nil { //nolint:gosec // only has to be another one
			return err
		}
		return exec(leaveOwner, name, scope)
	})
}

// Forget implements knn.Rows.
func (f *File) Forget(ctx context.Context, kind knn.Kind, scope string) error {
	return f.change(ctx, "remove vectors", func(exec func(string, ...any) error) error {
		if err := exec(forgetPoints, kind.String(), scope); err != nil {
			return err
		}
		return exec(leaveOwner, kind.String(), scope)
	})
}

// Drop implements knn.Rows.
func (f *File) Drop(ctx context.Context, kind knn.Kind) error {
	return f.change(ctx, "drop vectors", func(exec func(string, ...any) error) error {
		if err := exec(dropPoints, kind.String()); err != nil {
			return err
		}
		return exec(dropOwners, kind.String())
	})
}
