package sql

import (
	"context"
	"fmt"
)

const (
	deleteFact = `DELETE FROM fact WHERE bucket = ? AND key = ?`
	setFact    = `INSERT INTO fact (bucket, key, value, expires) VALUES (?, ?, ?, ?)
ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`
	setFactIf    = setFact + ` WHERE fact.expires <> 0 AND fact.expires <= ?`
	insertCharge = `INSERT INTO charge (key, scope, unit, day, n) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`
)

func (t *step) facts(ctx context.Context) error {
	for _, f := range t.change.Facts {
		var err error
		if f.Value == "" {
			err = t.q.exec(ctx, deleteFact, f.Bucket, f.Key)
		} else {
			err = t.q.exec(ctx, setFact, f.Bucket, f.Key, f.Value, nanos(f.Expires))
		}
		if err != nil {
			return fmt.Errorf("store fact: %w", err)
		}
	}
	return nil
}

func (t *step) factsIf(ctx context.Context) error {
	for _, f := range t.change.FactsIf {
		n, err := t.q.changed(ctx, setFactIf, f.Bucket, f.Key, f.Value, nanos(f.Expires), nanos(t.now()))
		if err != nil {
			return fmt.Errorf("store fact: %w", err)
		}
		t.applied.Set = append(t.applied.Set, n > 0)
	}
	return nil
}

func (t *step) charge(ctx context.Context) error {
	for _, c := range t.change.Charges {
		err := t.q.exec(ctx, insertCharge, c.Key, c.Scope, c.Unit, c.Day, c.N)
		if err != nil {
			return fmt.Errorf("store charge: %w", err)
		}
	}
	return nil
}
