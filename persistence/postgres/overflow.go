package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/persistence/reading"
	"github.com/zephbot/zephbot/tools/overflow"
)

const (
	replaceOverflow = `DELETE FROM tool_overflow WHERE session = $1 AND turn = $2 AND call = $3`
	insertOverflow  = `INSERT INTO tool_overflow (id, session, turn, call, tool, source, bytes, created, expires, text)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	overflowQuery = `SELECT turn, call, tool, source, created, expires, text FROM tool_overflow
WHERE id = $1 AND session = $2 AND (expires = 0 OR expires > $3)`
)

var _ overflow.Store = (*Store)(nil)

// Save implements overflow.Store. The output is durable when Save returns.
func (s *Store) Save(ctx context.Context, item overflow.Item) error {
	if err := item.Validate(); err != nil {
		return err
	}
	b := &batch{}
	// Concurrent saves for one call are serialised: the second replaces the first, which it could not see otherwise.
	b.do(lockNames, "output/"+item.Session+"/"+item.Turn+"/"+item.Call)
	b.do(replaceOverflow, item.Session, item.Turn, item.Call)
	b.do(insertOverflow, item.ID, item.Session, item.Turn, item.Call, item.Tool, string(item.Source), len(item.Text),
		reading.Nanos(item.Created), reading.Nanos(item.Expires), []byte(item.Text))
	if err := s.maintain(ctx, b); err != nil {
		return fmt.Errorf("store output of call %s: %w", item.Call, err)
	}
	return nil
}

// Load implements overflow.Store.
func (s *Store) Load(ctx context.Context, session, id string, now time.Time) (overflow.Item, error) {
	item := overflow.Item{ID: id, Session: session}
	var text []byte
	found, err := reading.One(ctx, &s.reader, func(scan reading.Scan) error {
		return scan(&item.Turn, &item.Call, &item.Tool, &item.Source, reading.Stamp{To: &item.Created},
			reading.Stamp{To: &item.Expires}, &text)
	}, overflowQuery, id, session, reading.Nanos(now))
	if err != nil {
		return overflow.Item{}, s.problem("read output", err)
	}
	if !found {
		return overflow.Item{}, fmt.Errorf("output %s: %w", id, overflow.ErrNotFound)
	}
	item.Text = string(text)
	return item, nil
}

// maintain sends statements that are one repeatable transaction, and retries while the server is down.
func (s *Store) maintain(ctx context.Context, b *batch) error {
	again := func(err error) bool { return passing(err) && codeOf(err) != uniqueViolation }
	return s.insist(ctx, again, func() error { return s.trip(ctx, b) })
}

// insist repeats a write as long as again reports that its error is temporary, for at most the configured patience.
func (s *Store) insist(ctx context.Context, again func(error) bool, write func() error) error {
	done, err := s.begin()
	if err != nil {
		return err
	}
	defer done()
	wait := newPause(s.options.Patience)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := write()
		if err == nil || !again(err) || !wait.next(ctx) {
			return unavailable(s.where, "write", err)
		}
	}
}

// trip sends statements once. It is not cancelled by ctx halfway.
func (s *Store) trip(ctx context.Context, b *batch) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answering)
	defer cancel()
	return b.send(ctx, s.pool, s.told)
}
