package cache

import "context"

// Notes keep durably which scopes have to be dropped, where several processes use one Store: the drop of one of them
// may not have reached it, and that process may be gone.
type Notes interface {
	// Note adds a note about a scope.
	Note(ctx context.Context, scope string) error
	// Noted lists the ids of the notes about a scope.
	Noted(ctx context.Context, scope string) ([]string, error)
	// Forget deletes notes.
	Forget(ctx context.Context, ids []string) error
}

// note tells other processes of a drop that did not reach the store. If that fails too, this process still knows.
func (c *Cache) note(ctx context.Context, where string) {
	if c.o.Notes == nil {
		return
	}
	kept, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.o.Timeout)
	defer cancel()
	if err := c.o.Notes.Note(kept, where); err != nil {
		c.o.Log.Error().Err(err).Msg("other processes are not told that cached results are out of date")
	}
}

// noted reports whether what was found may be out of date because another process, or an earlier one,
// could not drop it. It makes up for the drop. It is asked only about what was found, so that a call that
// is not in the cache costs no query.
func (c *Cache) noted(ctx context.Context, where string) bool {
	if c.o.Notes == nil {
		return false
	}
	ids, err := c.o.Notes.Noted(ctx, where)
	if err != nil {
		c.o.Log.Warn().Err(err).Msg("whether a cached result is out of date is not known, so its call runs")
		return true
	}
	if len(ids) == 0 {
		return false
	}
	c.drop(ctx, where)
	if c.stale.version(where) == 0 {
		if err := c.o.Notes.Forget(ctx, ids); err != nil { // it is dropped once more, which is harmless
			c.o.Log.Warn().Err(err).Msg("a note about cached results is not deleted")
		}
	}
	return true
}
