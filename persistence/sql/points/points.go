// Package points keeps vectors in a SQLite file of their own, apart from the database,
// because they are derived and large.
package points

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
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
	someQuery    = `SELECT id, vector FROM point WHERE id IN (SELECT value FROM json_each(?)) AND kind = ? AND scope ` +
		`= ? ORDER BY id`
	namedQuery = `SELECT id, key, payload FROM point WHERE id IN (SELECT value FROM json_each(?)) AND kind = ? ` +
		`AND scope = ?`

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

// File keeps the points of many owners in a SQLite file, which can be deleted while nobody uses it: it is
// made again from what it was derived from. It implements knn.Rows. Safe for concurrent use, by one
// process. The caller must close it.
type File struct {
	path string
	log  zerolog.Logger

	mu    sync.Mutex
	pools *pools // nil = not open yet
}

// New returns a file that is opened, or created with its directory, at its first use. One that is damaged or of another
// version is deleted and created again.
func New(path string, log zerolog.Logger) *File { return &File{path: path, log: log} }

// scanner reads the columns of one row.
type scanner func(dest ...any) error

func (f *File) queryEach(
	ctx context.Context, what string, see func(scanner) error, query string, args ...any,
) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s of %s: %w", what, f.path, err)
		}
	}()
	p, err := f.openPools(ctx)
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
	err = f.queryEach(ctx, "read the kinds of vectors", func(scan scanner) error {
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
	err = f.queryEach(ctx, "read the owners of vectors", func(scan scanner) error {
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
	err = f.queryEach(ctx, "read the version of vectors", func(scan scanner) error { return scan(&version) },
		versionQuery, kind.String(), scope)
	return version, err
}

// Hashes implements knn.Rows.
func (f *File) Hashes(ctx context.Context, kind knn.Kind, scope string) (map[string]string, error) {
	all := map[string]string{}
	err := f.queryEach(ctx, "read the hashes of vectors", func(scan scanner) error {
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
	return f.queryVectors(ctx, see, vectorsQuery, kind.String(), scope)
}

// Vectors implements knn.Rows.
func (f *File) Vectors(
	ctx context.Context, kind knn.Kind, scope string, ids []int64, see func(id int64, vector []byte) error,
) error {
	return f.queryVectors(ctx, see, someQuery, idArray(ids), kind.String(), scope)
}

func (f *File) queryVectors(
	ctx context.Context, see func(id int64, vector []byte) error, query string, args ...any,
) error {
	var id int64
	var vector sql.RawBytes
	return f.queryEach(ctx, "read vectors", func(scan scanner) error {
		if err := scan(&id, &vector); err != nil {
			return err
		}
		return see(id, vector)
	}, query, args...)
}

// idArray is a list of ids for json_each.
func idArray(ids []int64) string {
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
	return f.queryEach(ctx, "read the names of vectors", func(scan scanner) error {
		var id int64
		var key, payload string
		err := scan(&id, &key, &payload)
		if err == nil {
			see(id, key, payload)
		}
		return err
	}, namedQuery, idArray(ids), kind.String(), scope)
}

// changeFile runs a transaction.
func (f *File) changeFile(
	ctx context.Context, what string, run func(exec func(query string, args ...any) error) error,
) error {
	p, err := f.openPools(ctx)
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
	return f.changeFile(ctx, "store vectors", func(exec func(string, ...any) error) error {
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
	return f.changeFile(ctx, "remove vectors", func(exec func(string, ...any) error) error {
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
	return f.changeFile(ctx, "remove vectors", func(exec func(string, ...any) error) error {
		if err := exec(forgetPoints, kind.String(), scope); err != nil {
			return err
		}
		return exec(leaveOwner, kind.String(), scope)
	})
}

// Drop implements knn.Rows.
func (f *File) Drop(ctx context.Context, kind knn.Kind) error {
	return f.changeFile(ctx, "drop vectors", func(exec func(string, ...any) error) error {
		if err := exec(dropPoints, kind.String()); err != nil {
			return err
		}
		return exec(dropOwners, kind.String())
	})
}
