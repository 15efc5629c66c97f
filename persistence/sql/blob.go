package sql

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
)

const (
	insertBlob  = `INSERT INTO blob (hash, size, begun) VALUES ('', 0, ?) RETURNING id`
	insertPiece = `INSERT INTO blob_piece (blob, n, data) VALUES (?, ?, ?)`
	growBlob    = `UPDATE blob SET size = size + ? WHERE id = ?`
	nameBlob    = `UPDATE blob SET hash = ? WHERE id = ?`
	knownBlob   = `SELECT id FROM blob WHERE hash = ? AND hash <> ''`
	setRef      = `INSERT INTO blob_ref (session, blob, used) VALUES (?, ?, ?) ON CONFLICT (session, blob) DO UPDATE
		SET used = excluded.used`
	blobQuery = `SELECT blob.id, blob.size FROM blob JOIN blob_ref ON blob_ref.blob = blob.id
WHERE blob.hash = ? AND blob.hash <> '' AND blob_ref.session = ?`
	pieceQuery = `SELECT data FROM blob_piece WHERE blob = ? AND n = ?`

	blobBytes    = `SELECT CAST(value AS INTEGER) FROM meta WHERE name = 'blob_bytes'`
	addBlobBytes = `INSERT INTO meta (name, value) VALUES ('blob_bytes', ?)
ON CONFLICT (name) DO UPDATE SET value = CAST(meta.value AS INTEGER) + CAST(excluded.value AS INTEGER)`

	refOf        = `SELECT blob FROM blob_ref WHERE blob = ? LIMIT 1`
	deleteRef    = `DELETE FROM blob_ref WHERE session = ? AND blob = ?`
	sizeOfBlob   = `SELECT size FROM blob WHERE id = ?`
	deletePieces = `DELETE FROM blob_piece WHERE blob = ?`
	deleteBlob   = `DELETE FROM blob WHERE id = ?`

	refSessions = `SELECT DISTINCT session FROM blob_ref WHERE session >= ? AND session < ?`
	copyRefs    = `INSERT INTO blob_ref (session, blob, used) SELECT ?, blob, used FROM blob_ref WHERE session = ?
ON CONFLICT (session, blob) DO UPDATE SET used = excluded.used`
	deleteRefs = `DELETE FROM blob_ref WHERE session = ?`
)

var _ blob.Store = (*Store)(nil)

// Put implements blob.Store. A content of one piece is stored in one commit, a longer one in a commit per piece. It
// gives up when ctx ends.
func (s *Store) Put(ctx context.Context, session string, content io.Reader) (blob.Ref, error) {
	return keeping.Put(ctx, session, content, &upload{store: s, session: session})
}

// upload is a content being stored. It implements keeping.Upload. For one goroutine.
type upload struct {
	store   *Store
	session string
	id      int64 // of the row; 0 = none yet
}

// Add implements keeping.Upload. The last piece completes the content with its hash.
func (u *upload) Add(ctx context.Context, n int64, piece []byte, whole string) error {
	id := u.id
	err := u.store.runMaintenance(ctx, func(ctx context.Context, q *queries) (err error) {
		if whole != "" {
			known, found, err := findNumber(ctx, q, knownBlob, whole)
			if err != nil {
				return err
			}
			if found {
				return errors.Join(u.store.dropBlob(ctx, q, u.id), u.referTo(ctx, q, known))
			}
		}
		if id, err = u.appendPiece(ctx, q, n, piece); err != nil || whole == "" {
			return err
		}
		return errors.Join(q.execOne(ctx, nameBlob, whole, id), u.referTo(ctx, q, id))
	})
	if err != nil {
		return err
	}
	u.id = id
	return nil
}

// appendPiece stores a piece after the existing ones if there is room, and returns the number of the row.
func (u *upload) appendPiece(ctx context.Context, q *queries, n int64, piece []byte) (id int64, err error) {
	if err := u.store.reserveBytes(ctx, q, int64(len(piece))); err != nil {
		return 0, err
	}
	if id = u.id; id == 0 {
		if id, _, err = findNumber(ctx, q, insertBlob, reading.Nanos(u.store.options.Now())); err != nil {
			return 0, err
		}
	}
	if len(piece) == 0 {
		return id, nil
	}
	return id, errors.Join(q.execOne(ctx, insertPiece, id, n, piece), q.execOne(ctx, growBlob, len(piece), id))
}

// referTo records that the session has the content.
func (u *upload) referTo(ctx context.Context, q *queries, id int64) error {
	return q.execOne(ctx, setRef, u.session, id, reading.Nanos(u.store.options.Now()))
}

// Abandon implements keeping.Upload.
func (u *upload) Abandon(ctx context.Context) error {
	if u.id == 0 {
		return nil
	}
	return u.store.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
		return u.store.dropBlob(ctx, q, u.id)
	})
}

// findNumber reads the number that a query returns.
func findNumber(ctx context.Context, q *queries, query string, args ...any) (n int64, found bool, err error) {
	found, err = q.queryOne(ctx, func(scan reading.Scan) error { return scan(&n) }, query, args...)
	return n, found, err
}

// reserveBytes counts bytes to be stored. It fails with ErrFull if there is no room for them.
func (s *Store) reserveBytes(ctx context.Context, q *queries, n int64) error {
	if limit := s.options.BlobBytes; limit > 0 {
		total, _, err := findNumber(ctx, q, blobBytes)
		if err != nil {
			return err
		}
		if total+n > limit {
			return fmt.Errorf("%w: retention.max_blob_bytes is %d, %d are in use", blob.ErrFull, limit, total)
		}
	}
	return q.execOne(ctx, addBlobBytes, n)
}

// dropBlob deletes a content; 0 = none.
func (s *Store) dropBlob(ctx context.Context, q *queries, id int64) error {
	size, found, err := findNumber(ctx, q, sizeOfBlob, id)
	if err != nil || !found {
		return err
	}
	return errors.Join(
		q.execOne(ctx, deletePieces, id), q.execOne(ctx, deleteBlob, id), q.execOne(ctx, addBlobBytes, -size),
	)
}

// dropRef removes a content from a session, and deletes it if no other session has it.
func (s *Store) dropRef(ctx context.Context, q *queries, session string, id int64) error {
	if err := q.execOne(ctx, deleteRef, session, id); err != nil {
		return err
	}
	if _, found, err := findNumber(ctx, q, refOf, id); err != nil || found {
		return err
	}
	return s.dropBlob(ctx, q, id)
}

// Open implements blob.Store.
func (r *reader) Open(ctx context.Context, session, hash string) (io.ReadCloser, error) {
	ref, id := blob.Ref{Hash: hash}, int64(0)
	found, err := r.q.queryOne(ctx, func(scan reading.Scan) error { return scan(&id, &ref.Size) }, blobQuery, hash, session)
	if err != nil {
		return nil, r.wrapProblem("open file", err)
	}
	if !found {
		return nil, fmt.Errorf("open file: %w", blob.ErrNotFound)
	}
	return keeping.Give(ref, func(n int64) (piece []byte, found bool, err error) {
		found, err = r.q.queryOne(ctx, func(scan reading.Scan) error { return scan(&piece) }, pieceQuery, id, n)
		return piece, found, r.wrapProblem("read file", err)
	}), nil
}

// moveBlobs moves a session's files to its new key.
func (t *step) moveBlobs(ctx context.Context, m *bot.Move) error {
	sessions, err := t.listKeys(ctx, m, "", refSessions)
	if err != nil {
		return err
	}
	for _, old := range sessions {
		session, _ := state.Rename(m, old)
		if err := errors.Join(t.q.execOne(ctx, copyRefs, session, old), t.q.execOne(ctx, deleteRefs, old)); err != nil {
			return err
		}
	}
	return nil
}
