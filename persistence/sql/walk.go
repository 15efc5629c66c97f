package sql

import (
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot/privacy/table"
	"github.com/zephbot/zephbot/persistence/reading"
)

// The queries of this file are put together from what is known of tables (bot/privacy/table). They walk over whole
// tables, which is what they are for: a person is looked for everywhere, once in years.

const tablesQuery = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name`

// TableNames implements table.Reader.
func (r *reader) TableNames(ctx context.Context) ([]string, error) {
	names, err := reading.List(
		ctx, r.q, func(scan reading.Scan) (name string, err error) { return name, scan(&name) }, tablesQuery,
	)
	return names, r.wrapProblem("list tables", err)
}

// Mentions implements table.Reader.
func (r *reader) Mentions(
	ctx context.Context, of *table.Table, text string, after table.Record, limit int,
) ([]table.Record, error) {
	query, args := mentionsQuery(of, text, after, limit)
	found, err := reading.List(ctx, r.q, reading.ScanRecord(of.Columns()), query, args...)
	return found, r.wrapProblem("search "+of.Name, err)
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
		keys, marks = append(keys, c.Name), append(marks, placeholderOf(c.Kind))
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

// placeholderOf is the placeholder for a value that is given as text.
func placeholderOf(kind table.Kind) string {
	switch kind {
	case table.Int, table.Bool:
		return "CAST(? AS INTEGER)"
	case table.Text, table.Bytes:
	}
	return "?"
}

// rewriteRow changes or deletes a row.
func rewriteRow(ctx context.Context, q *queries, a *table.Alteration, deleted bool) (int64, error) {
	where, args := unchangedCondition(a)
	if deleted {
		return q.execChanged(ctx, "DELETE FROM "+a.Table.Name+" WHERE "+where, args...)
	}
	set, values := assignmentList(a)
	return q.execChanged(ctx, "UPDATE "+a.Table.Name+" SET "+set+" WHERE "+where, append(values, args...)...)
}

// unchangedCondition is the condition that a row is as it was read.
func unchangedCondition(a *table.Alteration) (where string, args []any) {
	var terms []string
	for _, c := range a.Table.Key {
		terms, args = append(terms, c.Name+" = "+placeholderOf(c.Kind)), append(args, a.Row[c.Name])
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

// assignmentList is the list of new values. A value is stored in the type that it had.
func assignmentList(a *table.Alteration) (set string, args []any) {
	var terms []string
	names := make([]string, 0, len(a.Set))
	for name := range a.Set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		term := placeholderOf(a.Table.Kind(name))
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
