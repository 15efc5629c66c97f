package postgres

// Still leaves out the beats of a process, as if it stood still, or goes on with them.
func (s *Store) Still(still bool) { s.hold.still.Store(still) }
