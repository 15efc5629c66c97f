package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/persistence/reading"
)

// statement is one of several that are sent together.
type statement struct {
	query string
	args  []any
	see   func(reading.Scan) error // called for each row of the answer; nil = not called
}

// batch is a list of statements sent in one round trip. Without BEGIN among them, they are one transaction, which ends
// with the trip.
type batch struct{ statements []statement }

// do adds a statement whose answer is ignored.
func (b *batch) do(query string, args ...any) { b.read(nil, query, args...) }

// read adds a statement.
func (b *batch) read(see func(reading.Scan) error, query string, args ...any) {
	b.statements = append(b.statements, statement{query: query, args: cleaned(args), see: see})
}

// sender is a connection, or a pool of connections.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// send sends the statements. If there is no error, all were executed, and committed if they are a transaction.
func (b *batch) send(ctx context.Context, on sender, watch func(string)) error {
	_, err := b.sendUpTo(ctx, on, watch)
	return err
}

// sendUpTo is send. If it fails, it returns the index of the first statement that was not executed; that after the last
// one stands for the commit.
func (b *batch) sendUpTo(ctx context.Context, on sender, watch func(string)) (failed int, err error) {
	queued := &pgx.Batch{}
	for i := range b.statements {
		watch(b.statements[i].query)
		queued.Queue(b.statements[i].query, b.statements[i].args...)
	}
	results := on.SendBatch(ctx, queued)
	for i := range b.statements {
		if err := b.statements[i].answer(results); err != nil {
			_ = results.Close() // returns the same error
			return i, err
		}
	}
	return len(b.statements), results.Close()
}

func (s *statement) answer(results pgx.BatchResults) error {
	rows, err := results.Query()
	if err != nil {
		return err
	}
	see := s.see
	if see == nil {
		see = func(reading.Scan) error { return nil }
	}
	return eachRow(rows, see)
}
