package postgres

import (
	"context"

	"github.com/zephbot/zephbot/persistence/keeping"
)

const vitalsQuery = `SELECT pg_database_size(current_database()),
	COALESCE((SELECT value::bigint FROM meta WHERE name = 'blob_bytes'), 0)`

// Vitals returns the sizes of the database and of the files stored in it, and what the connections are used for.
func (s *Store) Vitals(ctx context.Context) (keeping.Vitals, error) {
	var v keeping.Vitals
	stat := s.pool.Stat()
	v.Connections.Used, v.Connections.Idle = int(stat.AcquiredConns()), int(stat.IdleConns())
	v.Connections.Most, v.Connections.Waits = int(stat.MaxConns()), stat.EmptyAcquireCount()
	s.told(vitalsQuery)
	err := s.pool.QueryRow(ctx, vitalsQuery).Scan(&v.Bytes, &v.Blobs)
	return v, unavailable(s.where, "read", err)
}
