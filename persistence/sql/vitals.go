package sql

import (
	"context"
	"os"

	"github.com/zephbot/zephbot/persistence/keeping"
	"github.com/zephbot/zephbot/persistence/reading"
)

// Vitals returns the sizes of the database's files and of the files stored in it.
func (s *Store) Vitals(ctx context.Context) (keeping.Vitals, error) {
	v := keeping.Vitals{Bytes: sizeOf(s.dialect.path), WAL: sizeOf(s.dialect.path + "-wal")}
	_, err := s.q.queryOne(ctx, func(scan reading.Scan) error { return scan(&v.Blobs) }, blobBytes)
	return v, s.dialect.wrapError("read", err)
}

// sizeOf returns the size of a file in bytes; 0 if there is none.
func sizeOf(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
