package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// statement is one of several that are sent together.
type statement struct {
	query string
	args  []any
	see   func(row) error // is shown the rows of the answer; nil = nobody
}

// batch is statements that make one trip. Without BEGIN among them they are one transaction, which ends with the trip.
type batch struct{ statements []statement }

// do adds a statement whose answer says nothing.
func (b *batch) do(query string, args ...any) { b.read(nil, query, args...) }

// read adds a statement.
func (b *batch) read(see func(row) error, query string, args ...any) {
	b.statements = append(b.statements, statement{query: query, args: cleaned(args), see: see})
}

// sender is a connection, or a pool of them.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// send makes the trip. Without an error everything was done, and committed when it is a transaction.
func (b *batch) send(ctx context.Context, on sender, watch func(string)) error {
	queued := &pgx.Batch{}
	for i := range b.statements {
		watch(b.statements[i].query)
		queued.Queue(b.statements[i].query, b.statements[i].args...)
	}
	results := on.SendBatch(ctx, queued)
	for i := range b.statements {
		if err := b.statements[i].answer(results); err != nil {
			_ = results.Close() // it says the same
			return err
		}
	}
	return results.Close()
}

func (s *statement) answer(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	see := s.see
	if see == nil {
		see = func(row) error { return nil }
	}
	return eachRow(rows, see)
}
