package sql

import "context"

// OnWriter runs a statement on the writer's connection, outside any transaction: for limits that only the connection itself knows.
func (s *Store) OnWriter(ctx context.Context, statement string) error {
	return s.write.exec(ctx, statement)
}

// Queued is the number of Changes that wait for the writer.
func (s *Store) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// Upward is the part of a migration that is run.
var Upward = upward
