package postgres

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/reading"
)

// With the extension pgvector, the server compares vectors. Column near of vector_entry repeats column vector in the
// extension's type. It is not part of the schema, because the extension can come later, or go: DROP EXTENSION … CASCADE
// removes it, and nothing is lost. near is NULL in what was stored without it; a trigger makes it NULL if a program
// that does not know it replaces the vector.
const (
	nearQuery = `SELECT to_regtype('vector') IS NOT NULL,
	EXISTS (SELECT 1 FROM pg_available_extensions WHERE name = 'vector'),
	EXISTS (SELECT 1 FROM pg_attribute WHERE attrelid = 'vector_entry'::regclass AND attname = 'near' AND NOT attisdropped),
	to_regclass('vector_entry_far') IS NOT NULL`

	nearLock   = `SELECT set_config('lock_timeout', '5s', true), pg_advisory_xact_lock($1)`
	nearCreate = `CREATE EXTENSION IF NOT EXISTS vector`
	nearSchema = `ALTER TABLE vector_entry ADD COLUMN IF NOT EXISTS near vector;
CREATE OR REPLACE FUNCTION vector_entry_far() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.near := NULL; RETURN NEW; END';
DROP TRIGGER IF EXISTS vector_entry_far ON vector_entry;
CREATE TRIGGER vector_entry_far BEFORE UPDATE OF vector ON vector_entry FOR EACH ROW
WHEN (NEW.vector IS DISTINCT FROM OLD.vector AND NEW.near IS NOT DISTINCT FROM OLD.near) EXECUTE FUNCTION vector_entry_far();
CREATE INDEX IF NOT EXISTS vector_entry_far ON vector_entry (kind, scope, id) WHERE near IS NULL`

	// nearestQuery answers with the id 0 only if column near is not complete. <#> is the negative inner
	// product, which is the negative cosine, because vectors have length 1; unlike a distance by angle, it is 0
	// for one without direction. The query is converted in a subquery, as that is done once and not for each
	// vector, which takes 15 times as long.
	nearestQuery = `WITH far AS MATERIALIZED
	(SELECT EXISTS (SELECT 1 FROM vector_entry WHERE kind = $1 AND scope = $2 AND near IS NULL) AS any)
(SELECT id, -(near <#> (SELECT $3::real[]::vector OFFSET 0)) FROM vector_entry
WHERE kind = $1 AND scope = $2 AND near IS NOT NULL AND NOT (SELECT far.any FROM far)
ORDER BY near <#> (SELECT $3::real[]::vector OFFSET 0), id LIMIT $4)
UNION ALL SELECT 0, 0 FROM far WHERE far.any`
	farQuery = `SELECT id, vector FROM vector_entry WHERE kind = $1 AND scope = $2 AND near IS NULL ORDER ` +
		`BY id LIMIT $3`
	holdOwner  = `SELECT 1 FROM vector_owner WHERE kind = $1 AND scope = $2 FOR UPDATE`
	nearEntry  = `UPDATE vector_entry SET near = $3::real[]::vector WHERE id = $1 AND vector = $2`
	upsertNear = `INSERT INTO vector_entry (kind, scope, key, hash, payload, vector, near) VALUES ($1, $2, $3, $4, $5, $6, $7::real[]::vector)
ON CONFLICT (kind, scope, key) DO UPDATE SET hash = excluded.hash, payload = excluded.payload, vector = excluded.vector, near = excluded.near`
)

const (
	// nearSize is the most numbers of the extension's type.
	nearSize = 16_000
	// nearBatch is the number of vectors that are repeated in one step, nearMost for one search.
	nearBatch, nearMost = 256, 2048
	// nearAgain is the time until the server is asked again for what it did not have.
	nearAgain = 10 * time.Minute
	// nearLockID is the advisory lock for adding the column.
	nearLockID = migrationLock + 1
)

// Codes of a server that has lost the extension.
const (
	insufficientPrivilege = "42501"
	undefinedColumn       = "42703"
	undefinedObject       = "42704"
	undefinedFunction     = "42883"
)

// near knows whether the server compares vectors. Safe for concurrent use.
type near struct {
	asking sync.Mutex // held while the server is asked
	mu     sync.Mutex
	able   bool
	until  time.Time // when to ask again, if it is not able
	said   string
}

// ready reports whether the server can compare vectors. It is asked at the first use, so that nothing is installed for
// those who have no vectors.
func (s *Store) ready(ctx context.Context) bool {
	able, known := s.near.known(s.options.Now())
	if known {
		return able
	}
	s.near.asking.Lock()
	defer s.near.asking.Unlock()
	if able, known = s.near.known(s.options.Now()); known {
		return able
	}
	able, err := s.equip(ctx)
	if ctx.Err() != nil {
		return false // that says nothing about the server
	}
	s.near.learn(able, s.options.Now().Add(nearAgain))
	s.sayNear(able, err)
	return able
}

func (n *near) known(now time.Time) (able, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.able, n.able || now.Before(n.until)
}

func (n *near) learn(able bool, until time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.able, n.until = able, until
}

// equip asks what the server has, and adds what it lacks as far as the user of the database may.
func (s *Store) equip(ctx context.Context) (able bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*answering)
	defer cancel()
	var typed, available, column, index bool
	err = s.pool.QueryRow(ctx, nearQuery).Scan(&typed, &available, &column, &index)
	if err != nil || typed && column && index {
		return err == nil, err
	}
	if !typed && !available {
		return false, nil
	}
	err = pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, nearLock, int64(nearLockID)); err != nil {
			return err
		}
		if !typed {
			if _, err := tx.Exec(ctx, nearCreate); err != nil {
				return err
			}
		}
		_, err := tx.Exec(ctx, nearSchema, pgx.QueryExecModeSimpleProtocol)
		return err
	})
	return err == nil, err
}

// sayNear logs who compares vectors, once for each answer.
func (s *Store) sayNear(able bool, err error) {
	text := "vectors are compared by this process: the server has no extension pgvector, which would do it there " +
		"(Debian: postgresql-<version>-pgvector)"
	level := zerolog.InfoLevel
	switch {
	case able:
		text = "vectors are compared by the server, with pgvector"
	case codeOf(err) == insufficientPrivilege:
		text = "vectors are compared by this process: the user of database.url may not set up pgvector, " +
			"which the server " +
			"has; as a superuser, run CREATE EXTENSION vector in this database"
		level = zerolog.WarnLevel
	case err != nil:
		text = "vectors are compared by this process: pgvector could not be set up; it is tried again in some minutes"
		level = zerolog.WarnLevel
	}
	s.near.mu.Lock()
	again := s.near.said == text
	s.near.said = text
	s.near.mu.Unlock()
	if !again {
		s.options.Log.WithLevel(level).Err(err).Str("server", s.where).Msg(text)
	}
}

// gone reports whether an error says that the server has lost the extension, and remembers it.
func (s *Store) gone(err error) bool {
	switch codeOf(err) {
	case undefinedColumn, undefinedObject, undefinedFunction:
		s.near.learn(false, s.options.Now().Add(nearAgain))
		s.sayNear(false, nil)
		return true
	}
	return false
}

// Nearest finds the most similar vectors of a scope on the server. ok is false if that is not possible now: without
// pgvector, or while vectors that were stored without it are being repeated, up to 2048 for a call.
func (e Entries) Nearest(
	ctx context.Context, kind knn.Kind, scope string, query []float32, limit int, see func(id int64, score float32),
) (ok bool, err error) {
	if kind.Size > nearSize || !e.store.ready(ctx) {
		return false, nil
	}
	ok, err = e.nearest(ctx, kind, scope, query, limit, see)
	if err == nil && !ok {
		if ok, err = e.approach(ctx, kind, scope, nearMost); err == nil && ok {
			ok, err = e.nearest(ctx, kind, scope, query, limit, see)
		}
	}
	if e.store.gone(err) {
		return false, nil
	}
	return ok, e.store.problem("search vectors", err)
}

// nearest searches. ok is false, and nothing was seen, if not all vectors are there in the type of the extension.
func (e Entries) nearest(
	ctx context.Context, kind knn.Kind, scope string, query []float32, limit int, see func(id int64, score float32),
) (ok bool, err error) {
	ok = true
	err = e.store.EachRow(ctx, func(scan reading.Scan) error {
		var id int64
		var score float64
		if err := scan(&id, &score); err != nil {
			return err
		}
		if id == 0 {
			ok = false
			return nil
		}
		see(id, float32(score))
		return nil
	}, nearestQuery, kind.String(), scope, query, limit)
	return ok, err
}

// approach repeats vectors in the type of the extension, at most a number of them. done is true if all are repeated.
func (e Entries) approach(ctx context.Context, kind knn.Kind, scope string, most int) (done bool, err error) {
	name := kind.String()
	for ; most > 0; most -= nearBatch {
		b := &batch{}
		b.do(holdOwner, name, scope) // as every change does first
		before := len(b.statements)
		var id int64
		var data []byte
		err := e.store.EachRow(ctx, func(scan reading.Scan) error {
			if err := scan(&id, &data); err != nil {
				return err
			}
			numbers := asNumbers(data)
			if len(numbers) != kind.Size || slices.ContainsFunc(numbers, odd) {
				return errOdd
			}
			b.do(nearEntry, id, slices.Clone(data), numbers)
			return nil
		}, farQuery, name, scope, nearBatch)
		if errors.Is(err, errOdd) {
			return false, nil // the search that reads all finds what can be found
		}
		if err != nil || len(b.statements) == before {
			return err == nil, err
		}
		if err := e.store.maintain(ctx, b); err != nil {
			return false, err
		}
	}
	return false, nil
}

// errOdd is the error of a stored vector that the extension does not accept.
var errOdd = errors.New("a stored vector is damaged")

// odd reports a number that the extension does not accept.
func odd(x float32) bool { return math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) }

// asNumbers decodes a vector for the type of the extension.
func asNumbers(data []byte) []float32 {
	v := make([]float32, len(data)/4)
	knn.DecodeVector(v, data)
	return v
}
