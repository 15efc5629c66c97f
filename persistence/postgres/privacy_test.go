package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/storetest"
)

func TestPersonal(t *testing.T) {
	t.Parallel()
	cluster, empty := template(t)
	storetest.Personal(t, func(t *testing.T) storetest.PersonalStore {
		return open(t, postgres.Options{URL: cluster.URL(cluster.Database(t, empty)), Now: storetest.Now})
	})
}

// TestASumMovesOnce: while another process moves a sum to a pseudonym, this one waits for it and then adds nothing.
func TestASumMovesOnce(t *testing.T) {
	t.Parallel()
	cluster, empty := template(t)
	name := cluster.Database(t, empty)
	store := open(t, postgres.Options{URL: cluster.URL(name)})
	check(t, cluster.Exec(t.Context(), name, `INSERT INTO usage (day, scope, unit, n) VALUES ('2026-02-10', 'user/telegram:42', 'turns', 5)`))
	conn, err := pgx.Connect(t.Context(), cluster.URL(name))
	check(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	other, err := conn.Begin(t.Context())
	check(t, err)
	for _, query := range []string{
		`DELETE FROM usage WHERE scope = 'user/telegram:42'`,
		`INSERT INTO usage (day, scope, unit, n) VALUES ('2026-02-10', 'user/erased-x', 'turns', 5)`,
	} {
		_, err = other.Exec(t.Context(), query)
		check(t, err)
	}
	text := func(names ...string) (list []privacy.Column) {
		for _, name := range names {
			list = append(list, privacy.Column{Name: name})
		}
		return list
	}
	move := []privacy.Alteration{{
		Table: &privacy.Table{Name: "usage", Key: text("day", "scope", "unit")},
		Row:   privacy.Record{"day": "2026-02-10", "scope": "user/telegram:42", "unit": "turns"},
		Set:   map[string]string{"scope": "user/erased-x"},
	}}
	moved := make(chan int)
	go func() {
		n, err := store.Alter(t.Context(), move)
		if err != nil {
			t.Error(err)
		}
		moved <- n
	}()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for waits := int64(0); waits == 0; {
		list, err := cluster.Numbers(ctx, name, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		check(t, err)
		waits = list[0]
	}
	check(t, other.Commit(t.Context()))
	if n := <-moved; n != 0 {
		t.Errorf("%d rows were moved, want none", n)
	}
	sums, err := cluster.Numbers(t.Context(), name, `SELECT n FROM usage`)
	check(t, err)
	if len(sums) != 1 || sums[0] != 5 {
		t.Errorf("sums of %v, want 5 once", sums)
	}
}
