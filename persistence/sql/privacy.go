package sql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot/privacy/table"
)

const (
	tablesQuery = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`
	// freeLane takes a lane from whoever holds it, as a move does.
	freeLane   = `UPDATE lane SET fence = fence + 1, owner = '', until = 0 WHERE session = ?`
	endJournal = `DELETE FROM journal WHERE session = ?`
	moveSum    = `INSERT INTO usage (day, scope, unit, n) SELECT day, ?, unit, n FROM usage WHERE day = ? AND scope = ? AND unit = ?
ON CONFLICT (day, scope, unit) DO UPDATE SET n = usage.n + excluded.n`
)

var (
	_ table.Store  = (*Store)(nil)
	_ table.Reader = (*Reader)(nil)
)

// TableNames implements table.Reader.
func (r *reader) TableNames(ctx context.Context) ([]string, error) {
	names, err := list(ctx, r.q, func(scan scanner) (name string, err error) { return name, scan(&name) }, tablesQuery)
	return names, r.problem("list tables", err)
}

// Mentions implements table.Reader.
func (r *reader) Mentions(
	ctx context.Context, of *table.Table, text string, after table.Record, limit int,
) ([]table.Record, error) {
	query, args := mentionsQuery(of, text, after, limit)
	columns := of.Columns()
	found, err := list(ctx, r.q, func(scan scanner) (table.Record, error) {
		values, dests := make([][]byte, len(columns)), make([]any, len(columns))
		for i := range values {
			dests[i] = &values[i]
		}
		if err := scan(dests...); err != nil {
			return nil, err
		}
		row := table.Record{}
		for i, c := range columns {
			if values[i] != nil {
				row[c.Name] = string(values[i])
			}
		}
		return row, nil
	}, query, args...)
	return found, r.problem("search "+of.Name, err)
}

// mentionsQuery selects the rows of a page.
func mentionsQuery(t *table.Table, text string, after table.Record, limit int) (query string, args []any) {
	var fields, has, keys, marks []string
	for _, c := range t.Columns() {
		fields = append(fields, "CAST("+c.Name+" AS BLOB)")
		if c.Kind == table.Text || c.Kind == table.Bytes {
			has = append(has, "instr("+c.Name+", ?) > 0")
			args = append(args, text)
		}
	}
	where := []string{"(" + strings.Join(has, " OR ") + ")"}
	if text == "" || len(has) == 0 {
		where, args = []string{"1"}, nil
	}
	for _, c := range t.Key {
		keys, marks = append(keys, c.Name), append(marks, value(c.Kind))
	}
	if after != nil {
		where = append(where, "("+strings.Join(keys, ", ")+") > ("+strings.Join(marks, ", ")+")")
		for _, c := range t.Key {
			args = append(args, after[c.Name])
		}
	}
	return "SELECT " + strings.Join(fields, ", ") + " FROM " + t.Name + " WHERE " + strings.Join(where, " AND ") +
		" ORDER BY " + strings.Join(keys, ", ") + " LIMIT CAST(? AS INTEGER)", append(args, limit)
}

// value is the placeholder for a value that is given as text.
func value(kind table.Kind) string {
	switch kind {
	case table.Int, table.Bool:
		return "CAST(? AS INTEGER)"
	case table.Text, table.Bytes:
	}
	return "?"
}

// Alter implements table.Store.
func (s *Store) Alter(ctx context.Context, changes []table.Alteration) (altered int, err error) {
	err = s.maintain(ctx, func(ctx context.Context, q *queries) error {
		if err := s.memory.flush(ctx, q); err != nil {
			return err
		}
		s.memory.forget()
		altered = 0
		for i := range changes {
			done, err := s.alter(ctx, q, &changes[i])
			if err != nil {
				return fmt.Errorf("alter %s: %w", changes[i].Table.Name, err)
			}
			if done {
				altered++
			}
		}
		return nil
	})
	return altered, err
}

// alter makes one alteration if the row is still as it was read.
func (s *Store) alter(ctx context.Context, q *queries, a *table.Alteration) (bool, error) {
	name, deleted := a.Table.Name, a.Set == nil && a.Null == nil
	scope, renamed := a.Set["scope"]
	switch {
	case name == "lane" && !deleted && len(a.Set)+len(a.Null) == 0:
		n, err := q.changed(ctx, freeLane, a.Row["session"])
		return n > 0, err
	case name == "blob_ref" && deleted:
		where, args := unchanged(a)
		id, found, err := find(ctx, q, "SELECT blob FROM blob_ref WHERE "+where, args...)
		if err != nil || !found {
			return false, err
		}
		return true, s.dropRef(ctx, q, a.Row["session"], id)
	case name == "usage" && renamed:
		if err := q.exec(ctx, moveSum, scope, a.Row["day"], a.Row["scope"], a.Row["unit"]); err != nil {
			return false, err
		}
		deleted = true
	}
	n, err := rewrite(ctx, q, a, deleted)
	if err != nil || n == 0 || name != "lane" {
		return n > 0, err
	}
	then := freeLane
	if deleted {
		then = endJournal
	}
	return true, q.exec(ctx, then, a.Row["session"])
}

// rewrite changes or deletes a row.
func rewrite(ctx context.Context, q *queries, a *table.Alteration, deleted bool) (int64, error) {
	where, args := unchanged(a)
	if deleted {
		return q.changed(ctx, "DELETE FROM "+a.Table.Name+" WHERE "+where, args...)
	}
	set, values := assignments(a)
	return q.changed(ctx, "UPDATE "+a.Table.Name+" SET "+set+" WHERE "+where, append(values, args...)...)
}

// unchanged is the condition that a row is as it was read.
func unchanged(a *table.Alteration) (where string, args []any) {
	var terms []string
	for _, c := range a.Table.Key {
		terms, args = append(terms, c.Name+" = "+value(c.Kind)), append(args, a.Row[c.Name])
	}
	for _, name := range a.Same {
		was, ok := a.Row[name]
		if !ok {
			terms = append(terms, "("+name+" IS NULL OR "+name+" = '')") // the driver reads both alike
			continue
		}
		terms, args = append(terms, "CAST("+name+" AS TEXT) = ?"), append(args, was)
	}
	return strings.Join(terms, " AND "), args
}

// assignments is the list of new values. A value is stored in the type that it had.
func assignments(a *table.Alteration) (set string, args []any) {
	var terms []string
	names := make([]string, 0, len(a.Set))
	for name := range a.Set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		term := value(a.Table.Kind(name))
		if a.Table.Kind(name) == table.Bytes {
			term = "CASE typeof(" + name + ") WHEN 'blob' THEN CAST(? AS BLOB) ELSE ? END"
			args = append(args, a.Set[name])
		}
		terms, args = append(terms, name+" = "+term), append(args, a.Set[name])
	}
	for _, name := range a.Null {
		terms = append(terms, name+" = NULL")
	}
	return strings.Join(terms, ", "), args
}

const (
	// filler is the number of a content that nobody has, whose pieces fill the free pages.
	filler      = 0
	fillerPiece = 1 << 20 // bytes
	fillerBatch = 8       // pieces of one transaction

	freePages = `SELECT freelist_count FROM pragma_freelist_count()`
	addFiller = `INSERT INTO blob_piece (blob, n, data) VALUES (?, ?, zeroblob(?))`
	oldFiller = `DELETE FROM blob_piece WHERE blob = ? AND n IN (SELECT n FROM blob_piece WHERE blob = ? ORDER BY n LIMIT ?)`
)

// Scrub overwrites what was deleted: in pages that are in use the writer does so anyway (secure_delete), those that are
// free are filled with zeros, and the write-ahead log is brought to an end and cut. It works in small transactions,
// between which Changes run. What the file system or the disk keeps of overwritten blocks is beyond it.
func (s *Store) Scrub(ctx context.Context) error {
	if err := s.emptyFiller(ctx); err != nil { // of a process that was killed
		return fmt.Errorf("overwrite free pages: %w", err)
	}
	n := int64(0)
	for left := true; left; {
		err := s.maintain(ctx, func(ctx context.Context, q *queries) error {
			for range fillerBatch {
				free, _, err := find(ctx, q, freePages)
				if left = free > 0; err != nil || !left {
					return err
				}
				if err := q.exec(ctx, addFiller, filler, n, fillerPiece); err != nil {
					return err
				}
				n++
			}
			return nil
		})
		if err != nil {
			return errors.Join(fmt.Errorf("overwrite free pages: %w", err), s.emptyFiller(context.WithoutCancel(ctx)))
		}
	}
	if err := s.emptyFiller(ctx); err != nil {
		return fmt.Errorf("overwrite free pages: %w", err)
	}
	return s.cutLog(ctx)
}

func (s *Store) emptyFiller(ctx context.Context) error {
	for more := true; more; {
		err := s.maintain(ctx, func(ctx context.Context, q *queries) error {
			n, err := q.changed(ctx, oldFiller, filler, filler, fillerBatch)
			more = n == fillerBatch
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// errLogBusy means that somebody still reads the write-ahead log.
var errLogBusy = errors.New("the write-ahead log is in use by another program, and keeps old pages until it is not")

// cutLog writes the write-ahead log into the database and cuts it to nothing.
func (s *Store) cutLog(ctx context.Context) error {
	return s.submit(ctx, &job{done: make(chan struct{}), outside: func(ctx context.Context, q *queries) error {
		var busy, frames, moved int64
		_, err := q.one(ctx, func(scan scanner) error { return scan(&busy, &frames, &moved) }, "PRAGMA wal_checkpoint(TRUNCATE)")
		s.guard.forget()
		if err == nil && busy != 0 {
			err = errLogBusy
		}
		if err != nil {
			return fmt.Errorf("cut the write-ahead log: %w", err)
		}
		return nil
	}})
}
