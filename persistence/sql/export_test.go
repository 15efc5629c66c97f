package sql

import (
	"context"
	"errors"
)

// OnWriter runs a statement on the writer's connection, outside any transaction: for limits that only the connection itself knows.
func (s *Store) OnWriter(ctx context.Context, statement string) error {
	_, err := s.conn.ExecContext(ctx, statement)
	return err
}

// Explain gives SQLite's plan of each query that runs all the time.
func (s *Store) Explain(ctx context.Context) (map[string][]string, error) {
	plans := map[string][]string{}
	for name, query := range map[string]string{
		"ready": readyQuery, "next": nextQuery, "express": expressQuery, "journal": journalQuery, "due": dueQuery, "stranded": strandedQuery, "lost": lostQuery,
		"approval of": approvalOfQuery, "open": openQuery, "open all": openAllQuery, "granted": grantedQuery, "counts": countsQuery,
		"charges": chargesQuery, "rows": rowsQuery, "lanes": lanesQuery, "dead": deadQuery,
		"sweep bodies": sweepBodies, "sweep arrivals": sweepArrivals, "sweep contents": sweepContents, "sweep facts": sweepFacts,
		"sweep overflow": sweepOverflow, "overflow": overflowQuery, "replace overflow": replaceOverflow, "reset overflow": resetOverflow,
		"sessions with overflow": overflowSessions, "move overflow": moveOverflow,
	} {
		plan, err := s.explain(ctx, query)
		if err != nil {
			return nil, err
		}
		plans[name] = plan
	}
	return plans, nil
}

func (s *Store) explain(ctx context.Context, query string) (plan []string, err error) {
	rows, err := s.pools.read.QueryContext(ctx, "EXPLAIN QUERY PLAN "+query, make([]any, 32)[:count(query)]...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			return nil, err
		}
		plan = append(plan, detail)
	}
	return plan, rows.Err()
}

func count(query string) (n int) {
	for _, c := range query {
		if c == '?' {
			n++
		}
	}
	return n
}

// Queued is the number of Changes that wait for the writer.
func (s *Store) Queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}
