package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	newBlob     = `SELECT nextval(pg_get_serial_sequence('blob', 'id'))`
	insertBlob  = `INSERT INTO blob (id, hash, size, begun) VALUES ($1, '', 0, $2) ON CONFLICT (id) DO NOTHING`
	insertPiece = `INSERT INTO blob_piece (blob, n, data) VALUES ($1, $2, $3) ON CONFLICT (blob, n) DO NOTHING`
	growBlob    = `UPDATE blob SET size = size + $2 WHERE id = $1`
	nameBlob    = `UPDATE blob SET hash = $2 WHERE id = $1`
	knownBlob   = `SELECT id FROM blob WHERE hash = $1 AND hash <> '' FOR UPDATE`
	setRef      = `INSERT INTO blob_ref (session, blob, used) VALUES ($1, $2, $3)
		ON CONFLICT (session, blob) DO UPDATE SET used = excluded.used`
	blobQuery = `SELECT blob.id, blob.size FROM blob JOIN blob_ref ON blob_ref.blob = blob.id
WHERE blob.hash = $1 AND blob.hash <> '' AND blob_ref.session = $2`
	pieceQuery = `SELECT data FROM blob_piece WHERE blob = $1 AND n = $2`

	blobBytes = `SELECT value::bigint FROM meta WHERE name = 'blob_bytes'`
	// addBlobBytes counts bytes, up to a limit; 0 = none.
	addBlobBytes = `UPDATE meta SET value = (value::bigint + $1)::text WHERE name = 'blob_bytes' AND ($2::bigint = 0
		OR value::bigint + $1 <= $2)`

	lockBlob     = `SELECT id FROM blob WHERE id = $1 FOR UPDATE`
	refOf        = `SELECT blob FROM blob_ref WHERE blob = $1 LIMIT 1`
	deleteRef    = `DELETE FROM blob_ref WHERE session = $1 AND blob = $2 AND used <= $3`
	deletePieces = `DELETE FROM blob_piece WHERE blob = $1`
	deleteBlob   = `DELETE FROM blob WHERE id = $1 RETURNING size`
)

var _ blob.Store = (*Store)(nil)

// Put implements blob.Store. A content of one piece is stored in one transaction, a longer one in a transaction per
// piece. It gives up when ctx ends.
func (s *Store) Put(ctx context.Context, session string, content io.Reader) (blob.Ref, error) {
	return keeping.Put(ctx, session, content, &upload{store: s, session: session})
}

// upload is a content being stored. It implements keeping.Upload. For one goroutine.
type upload struct {
	store   *Store
	session string
	id      int64 // of the row; 0 = none yet
	began   bool  // part of it may be stored
}

// Add implements keeping.Upload. The last piece completes the content with its hash. The transaction may run twice,
// because the answer to the first may have been lost.
func (u *upload) Add(ctx context.Context, n int64, piece []byte, whole string) error {
	if u.id == 0 {
		if _, err := reading.One(ctx, &u.store.reader, func(scan reading.Scan) error { return scan(&u.id) }, newBlob); err != nil {
			return u.store.problem("number a file", err)
		}
	}
	u.began = true
	return u.store.transact(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if whole != "" {
			known, err := numberOf(ctx, tx, knownBlob, whole)
			if err != nil {
				return err
			}
			if known != 0 && known != u.id {
				return errors.Join(dropBlob(ctx, tx, u.id), u.refer(ctx, tx, known))
			}
		}
		if err := u.append(ctx, tx, n, piece); err != nil || whole == "" {
			return err
		}
		if _, err := tx.Exec(ctx, nameBlob, u.id, whole); err != nil {
			return err
		}
		return u.refer(ctx, tx, u.id)
	})
}

// append stores a piece after the existing ones if there is room.
func (u *upload) append(ctx context.Context, tx pgx.Tx, n int64, piece []byte) error {
	if _, err := tx.Exec(ctx, insertBlob, u.id, reading.Nanos(u.store.options.Now())); err != nil || len(piece) == 0 {
		return err
	}
	tag, err := tx.Exec(ctx, insertPiece, u.id, n, piece)
	if err != nil || tag.RowsAffected() == 0 {
		return err
	}
	if _, err := tx.Exec(ctx, growBlob, u.id, len(piece)); err != nil {
		return err
	}
	return u.store.reserve(ctx, tx, int64(len(piece)))
}

// refer records that the session has the content.
func (u *upload) refer(ctx context.Context, tx pgx.Tx, id int64) error {
	_, err := tx.Exec(ctx, setRef, cleanText(u.session), id, reading.Nanos(u.store.options.Now()))
	return err
}

// Abandon implements keeping.Upload.
func (u *upload) Abandon(ctx context.Context) error {
	if !u.began {
		return nil
	}
	return u.store.transact(ctx, func(ctx context.Context, tx pgx.Tx) error { return dropBlob(ctx, tx, u.id) })
}

// reserve counts bytes to be stored. It fails with ErrFull if there is no room for them.
func (s *Store) reserve(ctx context.Context, tx pgx.Tx, n int64) error {
	tag, err := tx.Exec(ctx, addBlobBytes, n, s.options.BlobBytes)
	if err != nil || tag.RowsAffected() == 1 {
		return err
	}
	total, err := numberOf(ctx, tx, blobBytes)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: retention.max_blob_bytes is %d, %d are in use", blob.ErrFull, s.options.BlobBytes, total)
}

// transact runs a transaction, and again while the server is down or the transaction conflicts with another. run must
// be repeatable. A transaction is not cancelled by ctx halfway.
func (s *Store) transact(ctx context.Context, run func(ctx context.Context, tx pgx.Tx) error) error {
	return s.insist(ctx, passing, func() error { return s.transactOnce(ctx, run) })
}

func (s *Store) transactOnce(ctx context.Context, run func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answering)
	defer cancel()
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return run(ctx, tx) })
}

// numberOf reads the number that a query returns; 0 = none.
func numberOf(ctx context.Context, tx pgx.Tx, query string, args ...any) (n int64, err error) {
	if err = tx.QueryRow(ctx, query, args...).Scan(&n); errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return n, err
}

// dropBlob deletes a content if it exists.
func dropBlob(ctx context.Context, tx pgx.Tx, id int64) error {
	if _, err := tx.Exec(ctx, deletePieces, id); err != nil {
		return err
	}
	size, err := numberOf(ctx, tx, deleteBlob, id)
	if err != nil || size == 0 {
		return err
	}
	_, err = tx.Exec(ctx, addBlobBytes, -size, 0)
	return err
}

// dropRef removes a content from a session that has not put it again since a time, and deletes it if no other session
// has it. It locks the row of the content first, so that a concurrent Put runs before or after it.
func dropRef(ctx context.Context, tx pgx.Tx, session string, id, until int64) error {
	if _, err := tx.Exec(ctx, lockBlob, id); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, deleteRef, session, id, until); err != nil {
		return err
	}
	left, err := numberOf(ctx, tx, refOf, id)
	if err != nil || left != 0 {
		return err
	}
	return dropBlob(ctx, tx, id)
}

// Open implements blob.Store.
func (r *reader) Open(ctx context.Context, session, hash string) (io.ReadCloser, error) {
	ref, id := blob.Ref{Hash: hash}, int64(0)
	found, err := reading.One(ctx, r, func(scan reading.Scan) error { return scan(&id, &ref.Size) }, blobQuery, hash, session)
	if err != nil {
		return nil, r.problem("open file", err)
	}
	if !found {
		return nil, fmt.Errorf("open file: %w", blob.ErrNotFound)
	}
	return keeping.Give(ref, func(n int64) (piece []byte, found bool, err error) {
		found, err = reading.One(ctx, r, func(scan reading.Scan) error { return scan(&piece) }, pieceQuery, id, n)
		return piece, found, r.problem("read file", err)
	}), nil
}
