package persistence

import (
	"context"
	"path/filepath"

	"github.com/zephbot/zephbot/persistence/archive"
	"github.com/zephbot/zephbot/persistence/sql"
)

// Files of the data directory that belong to the SQLite database.
const (
	FileName = fileName           // the database
	MarkName = fileName + "-mark" // its high-water mark
)

// DatabaseFiles are patterns (path.Match) of the names below the data directory that belong to the database or are
// derived from it.
func DatabaseFiles() []string {
	return []string{fileName, fileName + "-*", vectorFile, vectorFile + "-*"}
}

// Copy describes a copy of a database.
type Copy = sql.Copy

// Snapshot copies the SQLite database below dataDir to a new file, as it is at one moment, while a service may be using
// it; see sql.Snapshot.
func Snapshot(ctx context.Context, dataDir, to string) (Copy, error) {
	return sql.Snapshot(ctx, filepath.Join(dataDir, fileName), to)
}

// ReadCopy inspects a copy that Snapshot made, without changing it. One of a newer version is an error.
func ReadCopy(ctx context.Context, path string) (Copy, error) { return sql.ReadCopy(ctx, path) }

// KnownSchema returns the newest schema of an SQLite database that this program can read.
func KnownSchema() (int64, error) { return sql.KnownSchema() }

// lockData locks a data directory as Open does, and completes a restore that was interrupted in it.
func lockData(o *Options) (release func(), err error) {
	release, err = sql.LockDir(o.DataDir, o.Mode)
	if err != nil {
		return nil, err
	}
	done, err := archive.Finish(o.DataDir)
	if err != nil {
		release()
		return nil, err
	}
	if done {
		o.Log.Warn().Str("data_dir", o.DataDir).Msg("completed a restore that was interrupted")
	}
	return release, nil
}
