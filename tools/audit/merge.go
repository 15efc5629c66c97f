package audit

import (
	"context"
	"iter"
	"time"
)

// Merge calls do for the lines of several chains in the order of their times. Within a chain the order
// stays as it is: a line whose time is earlier than that of the line before, or that has none, follows it.
// It holds one line of each chain.
func Merge(ctx context.Context, paths []string, since time.Time, do func(log int, l *Line) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	cursors := make([]*cursor, 0, len(paths))
	for i, path := range paths {
		c := newCursor(ctx, i, path, since)
		defer c.stop()
		if c.nextLine() {
			cursors = append(cursors, c)
		} else if c.err != nil {
			return c.err
		}
	}
	for len(cursors) > 0 {
		first := 0
		for i, c := range cursors {
			if c.at.Before(cursors[first].at) {
				first = i
			}
		}
		c := cursors[first]
		if err := do(c.log, c.line); err != nil {
			return err
		}
		if !c.nextLine() {
			if c.err != nil {
				return c.err
			}
			cursors = append(cursors[:first], cursors[first+1:]...)
		}
	}
	return ctx.Err()
}

// cursor is a chain that is being read.
type cursor struct {
	log  int
	next func() (*Line, bool)
	stop func()
	line *Line
	at   time.Time // of the line, or of the latest one before
	err  error
}

func newCursor(ctx context.Context, log int, path string, since time.Time) *cursor {
	c := &cursor{log: log}
	c.next, c.stop = iter.Pull(func(yield func(*Line) bool) {
		err := Read(ctx, path, since, func(l *Line) error {
			if !yield(l) {
				return errEnough
			}
			return nil
		})
		if err != nil && err != errEnough { //nolint:errorlint // it is ours and never wrapped
			c.err = err
		}
	})
	return c
}

type enough struct{}

// Error implements error.
func (enough) Error() string { return "no more lines are wanted" }

// errEnough ends Read early.
var errEnough error = enough{}

// nextLine reads the next line; false = there is none.
func (c *cursor) nextLine() bool {
	line, ok := c.next()
	if !ok {
		return false
	}
	if c.line = line; line.Time.After(c.at) {
		c.at = line.Time
	}
	return true
}
