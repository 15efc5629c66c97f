package sql

import (
	"context"
	"fmt"
)

func (t *step) facts(ctx context.Context) error {
	for _, f := range t.change.Facts {
		var err error
		if f.Value == "" {
			err = t.q.exec(ctx, `DELETE FROM fact WHERE bucket = ? AND key = ?`, f.Bucket, f.Key)
		} else {
			err = t.q.exec(ctx, `INSERT INTO fact (bucket, key, value, expires) VALUES (?, ?, ?, ?)
				ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value, expires = excluded.expires`,
				f.Bucket, f.Key, f.Value, nanos(f.Expires))
		}
		if err != nil {
			return fmt.Errorf("store fact: %w", err)
		}
	}
	return nil
}

func (t *step) factsIf(ctx context.Context) error {
	for _, f := range t.change.FactsIf {
		n, err := t.q.changed(ctx, `INSERT INTO fact (bucket, key, value, expires) VALUES (?, ?, ?, ?)
			ON CONFLICT (bucket, key) DO UPDATE SET value = excluded.value, expires = excluded.expires
			WHERE fact.expires <> 0 AND fact.expires <= ?`,
			f.Bucket, f.Key, f.Value, nanos(f.Expires), nanos(t.now()))
		if err != nil {
			return fmt.Errorf("store fact: %w", err)
		}
		t.applied.Set = append(t.applied.Set, n > 0)
	}
	return nil
}

func (t *step) charge(ctx context.Context) error {
	for _, c := range t.change.Charges {
		err := t.q.exec(ctx, `INSERT INTO charge (key, scope, unit, day, n) VALUES (?, ?, ?, ?, ?) ON CONFLICT (key) DO NOTHING`,
			c.Key, c.Scope, c.Unit, c.Day, c.N)
		if err != nil {
			return fmt.Errorf("store charge: %w", err)
		}
	}
	return nil
}
