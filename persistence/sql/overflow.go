package sql

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/reading"
	"github.com/zephbot/zephbot/tools/overflow"
)

const (
	replaceOverflow = `DELETE FROM tool_overflow WHERE session = ? AND turn = ? AND call = ?`
	insertOverflow  = `INSERT INTO tool_overflow (id, session, turn, call, tool, source, bytes, created, expires,
		text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	overflowQuery = `SELECT turn, call, tool, source, created, expires, text FROM tool_overflow
WHERE id = ? AND session = ? AND (expires = 0 OR expires > ?)`
	resetOverflow    = `DELETE FROM tool_overflow WHERE session = ?`
	overflowSessions = `SELECT DISTINCT session FROM tool_overflow WHERE session >= ? AND session < ?`
	moveOverflow     = `UPDATE tool_overflow SET session = ? WHERE session = ?`
)

var _ overflow.Store = (*Store)(nil)

// Save implements overflow.Store. The output is durable when Save returns. It gives up with ctx while it waits for the
// writer.
func (s *Store) Save(ctx context.Context, item overflow.Item) error {
	if err := item.Validate(); err != nil {
		return err
	}
	err := s.runMaintenance(ctx, func(ctx context.Context, q *queries) error {
		if err := q.execOne(ctx, replaceOverflow, item.Session, item.Turn, item.Call); err != nil {
			return err
		}
		return q.execOne(ctx, insertOverflow, item.ID, item.Session, item.Turn, item.Call, item.Tool,
			string(item.Source), len(item.Text),
			reading.Nanos(item.Created), reading.Nanos(item.Expires), []byte(item.Text))
	})
	if err != nil {
		return fmt.Errorf("store output of call %s: %w", item.Call, err)
	}
	return nil
}

// Load implements overflow.Store.
func (s *Store) Load(ctx context.Context, session, id string, now time.Time) (overflow.Item, error) {
	item := overflow.Item{ID: id, Session: session}
	var text []byte
	found, err := s.q.queryOne(ctx, func(scan reading.Scan) error {
		return scan(&item.Turn, &item.Call, &item.Tool, &item.Source, reading.Stamp{To: &item.Created}, reading.Stamp{To: &item.Expires}, &text)
	}, overflowQuery, id, session, reading.Nanos(now))
	if err != nil {
		return overflow.Item{}, s.wrapProblem("read output", err)
	}
	if !found {
		return overflow.Item{}, fmt.Errorf("output %s: %w", id, overflow.ErrNotFound)
	}
	item.Text = string(text)
	return item, nil
}

// moveOverflow moves outputs, which keep their ids.
func (t *step) moveOverflow(ctx context.Context, m *bot.Move) error {
	return t.moveSessions(ctx, m, overflowSessions, moveOverflow)
}
