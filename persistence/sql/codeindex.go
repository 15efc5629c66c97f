package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/zephbot/zephbot/tools/code"
)

// codeVersion is the version of the tables. A file with another one is replaced, because everything in it can be read
// again.
const codeVersion = 1

const codeTables = `
CREATE TABLE file (
	root TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL, modified INTEGER NOT NULL, changed INTEGER NOT NULL,
	hash BLOB NOT NULL, outline BLOB NOT NULL, PRIMARY KEY (root, path)
) WITHOUT ROWID`

const (
	codeFiles    = `SELECT path, size, modified, changed, hash, outline FROM file WHERE root = ?`
	dropCode     = `DELETE FROM file WHERE root = ? AND path = ?`
	touchCode    = `UPDATE file SET size = ?, modified = ?, changed = ? WHERE root = ? AND path = ?`
	saveCodeFile = `INSERT INTO file (root, path, size, modified, changed, hash, outline) VALUES (?, ?, ?, ?, ?, ?, ?)
	ON CONFLICT (root, path) DO UPDATE SET size = excluded.size, modified = excluded.modified, changed = excluded.changed,
	hash = excluded.hash, outline = excluded.outline`
	// codeRoots goes from root to root: between them are all files with their outlines.
	codeRoots = `WITH RECURSIVE r(root) AS (
		SELECT min(root) FROM file UNION ALL SELECT (SELECT min(root) FROM file WHERE root > r.root) FROM r WHERE r.root IS NOT NULL
	) SELECT root FROM r WHERE root IS NOT NULL`
	forgetCode = `DELETE FROM file WHERE root = ?`
)

// CodeIndex stores the code index in an SQLite file of its own, which can be deleted at any time. It implements
// code.Store.
type CodeIndex struct{ db *sql.DB }

// OpenCodeIndex opens the index in a file, which is created if it does not exist, and replaced if it is damaged or of
// another version. No other process may use it.
func OpenCodeIndex(ctx context.Context, path string) (*CodeIndex, error) {
	c, err := openCodeIndex(ctx, path)
	if err == nil || ctx.Err() != nil {
		return c, err
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("replace the code index: %w", err)
		}
	}
	return openCodeIndex(ctx, path)
}

func openCodeIndex(ctx context.Context, path string) (*CodeIndex, error) {
	path, err := filepath.Abs(path)
	if err == nil {
		err = makeFile(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the code index: %w", err)
	}
	where := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	// What a power failure takes is read again.
	where.RawQuery = url.Values{"_txlock": {"immediate"}, "_pragma": {
		"busy_timeout(" + busyTimeout + ")", "journal_mode(WAL)",
		"synchronous(NORMAL)", "cache_size(" + readCache + ")", "secure_delete(1)",
	}}.Encode()
	db, err := sql.Open("sqlite", where.String())
	if err != nil {
		return nil, fmt.Errorf("open the code index: %w", err)
	}
	db.SetMaxOpenConns(1)
	c := &CodeIndex{db}
	if err := c.prepareTables(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("open the code index: %w", err), db.Close())
	}
	return c, nil
}

// prepareTables creates the tables, or checks that they are ours.
func (c *CodeIndex) prepareTables(ctx context.Context) error {
	var found int
	if err := c.db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&found); err != nil {
		return err
	}
	switch found {
	case codeVersion:
		var damage string
		if err := c.db.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&damage); err != nil || damage != "ok" {
			return errors.Join(fmt.Errorf("damaged: %s", damage), err)
		}
		return nil
	case 0:
		if _, err := c.db.ExecContext(ctx, codeTables); err != nil {
			return err
		}
		_, err := c.db.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", codeVersion))
		return err
	}
	return fmt.Errorf("version %d, want %d", found, codeVersion)
}

// Close closes the file.
func (c *CodeIndex) Close() error { return c.db.Close() }

// Load implements code.Store.
func (c *CodeIndex) Load(ctx context.Context, root string, see func(code.Stored) error) (err error) {
	rows, err := c.db.QueryContext(ctx, codeFiles, root)
	if err != nil {
		return fmt.Errorf("load the code index: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var s code.Stored
		var hash []byte
		if err := rows.Scan(
			&s.Path, &s.Stamp.Size, &s.Stamp.Modified, &s.Stamp.Changed, &hash, &s.Outline,
		); err != nil {
			return fmt.Errorf("load the code index: %w", err)
		}
		s.Hash = string(hash)
		if err := see(s); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Save implements code.Store.
func (c *CodeIndex) Save(ctx context.Context, root string, put []code.Stored, gone []string) (err error) {
	tx, err := c.db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("store the code index: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("store the code index: %w", err), tx.Rollback())
		}
	}()
	for i := range put {
		if err = saveCode(ctx, tx, root, &put[i]); err != nil {
			return err
		}
	}
	for _, path := range gone {
		if _, err = tx.ExecContext(ctx, dropCode, root, path); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// saveCode stores one file. Without an outline, the stored one remains.
func saveCode(ctx context.Context, tx *sql.Tx, root string, s *code.Stored) error {
	stamp := s.Stamp
	if s.Outline == nil {
		_, err := tx.ExecContext(ctx, touchCode, stamp.Size, stamp.Modified, stamp.Changed, root, s.Path)
		return err
	}
	_, err := tx.ExecContext(
		ctx, saveCodeFile, root, s.Path, stamp.Size, stamp.Modified, stamp.Changed, []byte(s.Hash), s.Outline,
	)
	return err
}

// Roots implements code.Store.
func (c *CodeIndex) Roots(ctx context.Context) (roots []string, err error) {
	rows, err := c.db.QueryContext(ctx, codeRoots)
	if err != nil {
		return nil, fmt.Errorf("list the code index: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var root string
		if err := rows.Scan(&root); err != nil {
			return nil, fmt.Errorf("list the code index: %w", err)
		}
		roots = append(roots, root)
	}
	return roots, rows.Err()
}

// Forget implements code.Store.
func (c *CodeIndex) Forget(ctx context.Context, root string) error {
	if _, err := c.db.ExecContext(ctx, forgetCode, root); err != nil {
		return fmt.Errorf("forget a root of the code index: %w", err)
	}
	return nil
}

var _ code.Store = (*CodeIndex)(nil)

// Scrub cuts the write-ahead log, which still has what was deleted; its place in the file was overwritten.
func (c *CodeIndex) Scrub(ctx context.Context) error {
	if _, err := c.db.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("cut the log of the code index: %w", err)
	}
	return nil
}
