package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	kindsQuery       = `SELECT DISTINCT kind FROM vector_owner WHERE kind >= $1 AND kind < $2`
	ownersQuery      = `SELECT scope FROM vector_owner WHERE kind = $1 ORDER BY scope`
	ownerQuery       = `SELECT version FROM vector_owner WHERE kind = $1 AND scope = $2`
	entryHashesQuery = `SELECT key, hash FROM vector_entry WHERE kind = $1 AND scope = $2`
	entriesQuery     = `SELECT id, vector FROM vector_entry WHERE kind = $1 AND scope = $2 AND id > $3 ORDER ` +
		`BY id LIMIT $4`
	someQuery = `SELECT id, vector FROM vector_entry WHERE id = ANY($1::bigint[]) AND kind = $2 AND scope = ` +
		`$3 ORDER BY id`
	namedQuery = `SELECT id, key, payload FROM vector_entry WHERE id = ANY($1::bigint[]) AND kind = $2 AND scope = $3`

	// touchOwner locks the owner, so that its entries are changed by one transaction at a time.
	touchOwner = `INSERT INTO vector_owner (kind, scope, version) VALUES ($1, $2, nextval('vector_version'))
ON CONFLICT (kind, scope) DO UPDATE SET version = excluded.version`
	lockOwner   = `UPDATE vector_owner SET version = nextval('vector_version') WHERE kind = $1 AND scope = $2`
	upsertEntry = `INSERT INTO vector_entry (kind, scope, key, hash, payload, vector) VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (kind, scope, key) DO UPDATE SET hash = excluded.hash, payload = excluded.payload, vector = excluded.vector`
	restateEntry  = `UPDATE vector_entry SET hash = $4, payload = $5 WHERE kind = $1 AND scope = $2 AND key = $3`
	removeEntries = `DELETE FROM vector_entry WHERE kind = $1 AND scope = $2 AND key = ANY($3::text[])`
	forgetEntries = `DELETE FROM vector_entry WHERE kind = $1 AND scope = $2`
	leaveOwner    = `DELETE FROM vector_owner WHERE kind = $1 AND scope = $2
AND NOT EXISTS (SELECT 1 FROM vector_entry WHERE kind = $1 AND scope = $2)`
	dropOwners  = `DELETE FROM vector_owner WHERE kind = $1`
	dropEntries = `DELETE FROM vector_entry WHERE kind = $1`
)

// Entries are the vectors of many owners in the database. They implement knn.Rows: every process searches exactly in
// copies that are as new as what is stored.
type Entries struct{ store *Store }

// Entries returns the vectors of many owners.
func (s *Store) Entries() Entries { return Entries{s} }

// Kinds implements knn.Rows.
func (e Entries) Kinds(ctx context.Context, name string) (kinds []knn.Kind, err error) {
	err = e.store.EachRow(ctx, func(scan reading.Scan) error {
		var text string
		if err := scan(&text); err != nil {
			return err
		}
		kind, err := knn.ParseKind(text)
		if err != nil {
			e.store.options.Log.Warn().Err(err).Msg("skipped stored vectors")
			return nil
		}
		kinds = append(kinds, kind)
		return nil
	}, kindsQuery, name+"|", name+"}") // '}' follows '|'
	return kinds, e.store.problem("read the kinds of vectors", err)
}

// Owners implements knn.Rows.
func (e Entries) Owners(ctx context.Context, kind knn.Kind) ([]string, error) {
	scopes, err := reading.List(ctx, &e.store.reader, func(scan reading.Scan) (scope string, err error) { return scope, scan(&scope) },
		ownersQuery, kind.String())
	return scopes, e.store.problem("read the owners of vectors", err)
}

// Version implements knn.Rows.
func (e Entries) Version(ctx context.Context, kind knn.Kind, scope string) (version int64, err error) {
	_, err = reading.One(ctx, &e.store.reader, func(scan reading.Scan) error { return scan(&version) }, ownerQuery, kind.String(), scope)
	return version, e.store.problem("read the version of vectors", err)
}

// Hashes implements knn.Rows.
func (e Entries) Hashes(ctx context.Context, kind knn.Kind, scope string) (map[string]string, error) {
	all := map[string]string{}
	err := e.store.EachRow(ctx, func(scan reading.Scan) error {
		var key, hash string
		err := scan(&key, &hash)
		all[key] = hash
		return err
	}, entryHashesQuery, kind.String(), scope)
	return all, e.store.problem("read the hashes of vectors", err)
}

// EachVector implements knn.Rows. The time that a query may take is for a page of vectors, not for all of them.
func (e Entries) EachVector(
	ctx context.Context, kind knn.Kind, scope string, see func(id int64, vector []byte) error,
) error {
	page := max(16, pageBytes/(4*kind.Size))
	var last int64
	for n := page; n == page; {
		n = 0
		var vector pgtype.DriverBytes // lent by the connection until the next row
		err := e.store.EachRow(ctx, func(scan reading.Scan) error {
			if err := scan(&last, &vector); err != nil {
				return err
			}
			n++
			return see(last, vector)
		}, entriesQuery, kind.String(), scope, last, page)
		if err != nil {
			return e.store.problem("read vectors", err)
		}
	}
	return nil
}

// Vectors implements knn.Rows.
func (e Entries) Vectors(
	ctx context.Context, kind knn.Kind, scope string, ids []int64, see func(id int64, vector []byte) error,
) error {
	var id int64
	var vector pgtype.DriverBytes
	err := e.store.EachRow(ctx, func(scan reading.Scan) error {
		if err := scan(&id, &vector); err != nil {
			return err
		}
		return see(id, vector)
	}, someQuery, ids, kind.String(), scope)
	return e.store.problem("read vectors", err)
}

// pageBytes is the size of the vectors that are read by one query.
const pageBytes = 8 << 20

// Named implements knn.Rows.
func (e Entries) Named(
	ctx context.Context, kind knn.Kind, scope string, ids []int64, see func(id int64, key, payload string),
) error {
	err := e.store.EachRow(ctx, func(scan reading.Scan) error {
		var id int64
		var key string
		var payload []byte
		if err := scan(&id, &key, &payload); err != nil {
			return err
		}
		see(id, key, string(payload))
		return nil
	}, namedQuery, ids, kind.String(), scope)
	return e.store.problem("read the names of vectors", err)
}

// Store implements knn.Rows. Owners are locked in the order of their names, so that two processes cannot deadlock.
func (e Entries) Store(ctx context.Context, kind knn.Kind, rows []knn.Row) error {
	near := kind.Size <= nearSize && e.store.ready(ctx)
	err := e.store.maintain(ctx, storing(kind, rows, near))
	if near && e.store.gone(err) {
		err = e.store.maintain(ctx, storing(kind, rows, false))
	}
	return wrote("store vectors", err)
}

// storing returns the statements of Store, with the vectors also in the type of pgvector if near is set.
func storing(kind knn.Kind, rows []knn.Row, near bool) *batch {
	name, b := kind.String(), &batch{}
	var scopes []string
	for _, r := range rows {
		scopes = append(scopes, r.Scope)
	}
	slices.Sort(scopes)
	scopes = slices.Compact(scopes)
	for _, scope := range scopes {
		b.do(touchOwner, name, scope)
	}
	for _, r := range rows {
		switch {
		case len(r.Vector) == 0:
			b.do(restateEntry, name, r.Scope, r.Key, r.Hash, []byte(r.Payload))
		case near:
			b.do(upsertNear, name, r.Scope, r.Key, r.Hash, []byte(r.Payload), r.Vector, asNumbers(r.Vector))
		default:
			b.do(upsertEntry, name, r.Scope, r.Key, r.Hash, []byte(r.Payload), r.Vector)
		}
	}
	for _, scope := range scopes { // nothing may have been stored, if no row has a vector
		b.do(leaveOwner, name, scope)
	}
	return b
}

// Remove implements knn.Rows.
func (e Entries) Remove(ctx context.Context, kind knn.Kind, scope string, keys []string) error {
	name, b := kind.String(), &batch{}
	b.do(lockOwner, name, scope)
	b.do(removeEntries, name, scope, keys)
	b.do(leaveOwner, name, scope)
	return wrote("remove vectors", e.store.maintain(ctx, b))
}

// Forget implements knn.Rows.
func (e Entries) Forget(ctx context.Context, kind knn.Kind, scope string) error {
	name, b := kind.String(), &batch{}
	b.do(lockOwner, name, scope)
	b.do(forgetEntries, name, scope)
	b.do(leaveOwner, name, scope)
	return wrote("remove vectors", e.store.maintain(ctx, b))
}

// Drop implements knn.Rows.
func (e Entries) Drop(ctx context.Context, kind knn.Kind) error {
	b := &batch{}
	b.do(dropOwners, kind.String()) // first, as every change locks the owner first
	b.do(dropEntries, kind.String())
	return wrote("drop vectors", e.store.maintain(ctx, b))
}

func wrote(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
