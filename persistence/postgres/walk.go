package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/zephbot/zephbot/bot/privacy/table"
	"github.com/zephbot/zephbot/persistence/reading"
)

// The queries of this file are put together from what is known of tables (bot/privacy/table). They walk over whole
// tables, which is what they are for: a person is looked for everywhere, once in years.

const tablesQuery = `SELECT tablename FROM pg_tables WHERE schemaname = current_schema() ORDER BY tablename`

// TableNames implements table.Reader.
func (r *reader) TableNames(ctx context.Context) ([]string, error) {
	names, err := reading.List(ctx, r, func(scan reading.Scan) (name string, err error) { return name, scan(&name) }, tablesQuery)
	return names, r.problem("list tables", err)
}

// Mentions implements table.Reader.
func (r *reader) Mentions(
	ctx context.Context, of *table.Table, text string, after table.Record, limit int,
) ([]table.Record, error) {
	query, args, err := mentionsQuery(of, text, after, limit)
	if err != nil {
		return nil, err
	}
	found, err := reading.List(ctx, r, reading.ScanRecord(of.Columns()), query, args...)
	return found, r.problem("search "+of.Name, err)
}

// mentionsQuery selects the rows of a page; all columns are read as bytes.
func mentionsQuery(t *table.Table, text string, after table.Record, limit int) (string, []any, error) {
	var p parameters
	var fields, has, keys, marks []string
	for _, c := range t.Columns() {
		switch c.Kind {
		case table.Bytes:
			fields = append(fields, c.Name)
			has = append(has, "position("+p.add([]byte(text))+"::bytea IN "+c.Name+") > 0")
		case table.Text:
			fields = append(fields, "convert_to("+c.Name+", 'UTF8')")
			has = append(has, "strpos("+c.Name+", "+p.add(text)+"::text) > 0")
		case table.Int:
			fields = append(fields, "convert_to("+c.Name+"::text, 'UTF8')")
		case table.Bool:
			fields = append(fields, "convert_to(("+c.Name+"::int)::text, 'UTF8')")
		}
	}
	where := []string{"(" + strings.Join(has, " OR ") + ")"}
	if text == "" || len(has) == 0 {
		where, p = []string{"true"}, parameters{}
	}
	for _, c := range t.Key {
		keys = append(keys, c.Name)
		if after == nil {
			continue
		}
		mark, err := p.value(c.Kind, after[c.Name])
		if err != nil {
			return "", nil, err
		}
		marks = append(marks, mark)
	}
	if after != nil {
		where = append(where, "("+strings.Join(keys, ", ")+") > ("+strings.Join(marks, ", ")+")")
	}
	return "SELECT " + strings.Join(fields, ", ") + " FROM " + t.Name + " WHERE " + strings.Join(where, " AND ") +
		" ORDER BY " + strings.Join(keys, ", ") + " LIMIT " + strconv.Itoa(limit), p.args, nil
}

// parameters are the arguments of a statement that is being put together.
type parameters struct{ args []any }

func (p *parameters) add(arg any) string {
	p.args = append(p.args, arg)
	return "$" + strconv.Itoa(len(p.args))
}

// value adds a value that is given as text.
func (p *parameters) value(kind table.Kind, text string) (string, error) {
	switch kind {
	case table.Int:
		n, err := strconv.ParseInt(text, 10, 64)
		return p.add(n) + "::bigint", err
	case table.Bool:
		return p.add(text == "1") + "::boolean", nil
	case table.Bytes:
		return p.add([]byte(text)) + "::bytea", nil
	case table.Text:
	}
	return p.add(text) + "::text", nil
}

// rewrite changes or deletes a row.
func rewrite(ctx context.Context, tx pgx.Tx, a *table.Alteration, deleted bool) (bool, error) {
	var p parameters
	query := "DELETE FROM " + a.Table.Name
	if !deleted {
		set, err := p.assignments(a)
		if err != nil {
			return false, err
		}
		query = "UPDATE " + a.Table.Name + " SET " + set
	}
	where, err := p.unchanged(a)
	if err != nil {
		return false, err
	}
	return affected(tx.Exec(ctx, query+" WHERE "+where, p.args...))
}

func affected(tag pgconn.CommandTag, err error) (bool, error) { return tag.RowsAffected() > 0, err }

// unchanged is the condition that a row is as it was read.
func (p *parameters) unchanged(a *table.Alteration) (string, error) {
	var terms []string
	names := make([]string, 0, len(a.Table.Key)+len(a.Same))
	for _, c := range a.Table.Key {
		names = append(names, c.Name)
	}
	for _, name := range append(names, a.Same...) {
		was, ok := a.Row[name]
		if !ok {
			terms = append(terms, name+" IS NULL")
			continue
		}
		mark, err := p.value(a.Table.Kind(name), was)
		if err != nil {
			return "", err
		}
		terms = append(terms, name+" = "+mark)
	}
	return strings.Join(terms, " AND "), nil
}

// assignments is the list of new values.
func (p *parameters) assignments(a *table.Alteration) (string, error) {
	var terms []string
	names := make([]string, 0, len(a.Set))
	for name := range a.Set {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		mark, err := p.value(a.Table.Kind(name), a.Set[name])
		if err != nil {
			return "", err
		}
		terms = append(terms, name+" = "+mark)
	}
	for _, name := range a.Null {
		terms = append(terms, name+" = NULL")
	}
	return strings.Join(terms, ", "), nil
}
