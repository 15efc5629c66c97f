package points

import (
	"context"
	"fmt"
)

// SetVersion makes the file one of another version.
func (f *File) SetVersion(ctx context.Context, version int) error {
	p, err := f.openPools(ctx)
	if err != nil {
		return err
	}
	_, err = p.write.ExecContext(ctx, fmt.Sprintf("PRAGMA user_version = %d", version))
	return err
}

// Ask runs a query with one text.
func (f *File) Ask(ctx context.Context, query string) (text string, err error) {
	p, err := f.openPools(ctx)
	if err != nil {
		return "", err
	}
	return text, p.read.QueryRowContext(ctx, query).Scan(&text)
}

// ByID are the queries that find points by their ids.
var ByID = []string{someQuery, namedQuery}

// Plan says how a query finds its rows.
func (f *File) Plan(ctx context.Context, query string) (plan string, err error) {
	err = f.queryEach(ctx, "explain", func(scan scanner) error {
		var id, parent, unused int
		var detail string
		err := scan(&id, &parent, &unused, &detail)
		plan += detail + "\n"
		return err
	}, "EXPLAIN QUERY PLAN "+query, "[1]", "kind", "scope")
	return plan, err
}
