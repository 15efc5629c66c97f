package points

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
)

// pools are the connections: one for writing, several for reading.
type pools struct{ write, read *sql.DB }

func (p *pools) closePools() error { return errors.Join(p.read.Close(), p.write.Close()) }

// openPools returns the connections. After a failure, the next call tries again.
func (f *File) openPools(ctx context.Context) (*pools, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pools != nil {
		return f.pools, nil
	}
	p, err := connectPools(ctx, f.path)
	if err != nil && ctx.Err() == nil && f.discardFile(err) {
		p, err = connectPools(ctx, f.path)
	}
	if err != nil {
		return nil, fmt.Errorf("open the vectors in %s: %w", f.path, err)
	}
	f.pools = p
	return p, nil
}

// discardFile deletes the file, if it is one.
func (f *File) discardFile(why error) bool {
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

func connectPools(ctx context.Context, path string) (*pools, error) {
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
	write, err := sql.Open("sqlite", fileDSN(path))
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read, err := sql.Open("sqlite", fileDSN(path, "query_only(1)"))
	if err != nil {
		return nil, errors.Join(err, write.Close())
	}
	read.SetMaxOpenConns(readers)
	read.SetMaxIdleConns(readers)
	p := &pools{write: write, read: read}
	if err := prepareSchema(ctx, write); err != nil {
		return nil, errors.Join(err, p.closePools())
	}
	return p, nil
}

// fileDSN of a file. What was committed survives the end of the process; a power cut may undo the last
// changes, which the next sync makes again. A page holds several vectors: with SQLite's default of 4096
// bytes, half of each page would be empty.
func fileDSN(path string, more ...string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	pragmas := append([]string{
		"busy_timeout(10000)",
		"page_size(16384)",
		"synchronous(NORMAL)",
		"cache_size(-2048)",
		"secure_delete(1)",
	}, more...)
	where := url.URL{Scheme: "file", Path: filepath.ToSlash(path)}
	// The driver sorts pragmas by name, and sets this mode, which writes the first page, after them.
	where.RawQuery = url.Values{"_txlock": {"immediate"}, "_pragma": pragmas, "_journal_mode": {"WAL"}}.Encode()
	return where.String()
}

// prepareSchema creates the schema of a new file, and checks that of another one.
func prepareSchema(ctx context.Context, write *sql.DB) error {
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
	err := f.pools.closePools()
	f.pools = nil
	return err
}

// Scrub cuts the write-ahead log, which still has what was deleted; its place in the file was overwritten. A file that
// was not used yet is left alone.
func (f *File) Scrub(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pools == nil {
		return nil
	}
	if _, err := f.pools.write.ExecContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		return fmt.Errorf("cut the log of %s: %w", f.path, err)
	}
	return nil
}
