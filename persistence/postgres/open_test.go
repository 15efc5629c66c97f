package postgres_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

func TestOpenRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	newer := cluster.Database(t, "")
	check(t, open(t, postgres.Options{URL: cluster.URL(newer)}).Close())
	check(t, cluster.Exec(t.Context(), newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, true)"))
	latin := cluster.Name()
	check(t, cluster.Exec(t.Context(), "postgres", "CREATE DATABASE "+latin+" ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"))
	t.Cleanup(func() { _ = cluster.Exec(t.Context(), "postgres", "DROP DATABASE IF EXISTS "+latin) })
	for name, test := range map[string]struct{ url, want string }{
		"a newer schema":       {cluster.URL(newer), "newer version of the program (schema 99"},
		"no such database":     {cluster.URL("nothing"), "does not exist"},
		"nobody listens":       {"postgres://u:hunter2@127.0.0.1:1/d?connect_timeout=1", "cannot be reached"},
		"not a URL":            {"postgres://u:hunter2@h:port/d", "is not a PostgreSQL URL"},
		"texts are not UTF-8":  {cluster.URL(latin), "encoding UTF8"},
		"a parameter is wrong": {"postgres://u:hunter2@h/d?sslmode=sometimes", "is not a PostgreSQL URL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := postgres.Open(t.Context(), postgres.Options{URL: test.url, Log: zerolog.Nop()})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Error("the error shows the password")
			}
		})
	}
}

// TestProcessesThatStartTogetherMigrateOnce: each finds the schema whole.
func TestProcessesThatStartTogetherMigrateOnce(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	const processes = 4
	opened := make(chan error, processes)
	for range processes {
		go func() {
			store, err := postgres.Open(t.Context(), postgres.Options{URL: url, Log: zerolog.Nop()})
			if err == nil {
				_, err = store.Lane(t.Context(), session)
				err = errors.Join(err, store.Close())
			}
			opened <- err
		}()
	}
	for range processes {
		check(t, <-opened)
	}
}

// TestLeasesFollowTheServersClock: a process whose clock is an hour ahead, and one whose clock is right.
func TestLeasesFollowTheServersClock(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	ahead := func() time.Time { return time.Now().Add(time.Hour) }
	wrong, right := open(t, postgres.Options{URL: url, Now: ahead}), open(t, postgres.Options{URL: url})
	_, err := wrong.Apply(t.Context(), &bot.Change{
		Arrive: []bot.Arrival{{Channel: "telegram", Bot: "1", ID: "1", Session: session}},
		Claim:  &bot.Claim{Session: session, Place: place, Owner: "wrong", Now: ahead(), Until: ahead().Add(time.Minute)},
	})
	check(t, err)
	lane, err := right.Lane(t.Context(), session)
	check(t, err)
	if left := time.Until(lane.Until); left > time.Minute+time.Second || left < 50*time.Second {
		t.Errorf("the lease of a minute ends in %v", left)
	}
	for after, want := range map[time.Duration]int{0: 0, 58 * time.Second: 0, 2 * time.Minute: 1} {
		sessions, err := right.Ready(t.Context(), "telegram", "1", time.Now().Add(after), 0)
		check(t, err)
		if len(sessions) != want {
			t.Errorf("after %v %d sessions are ready, want %d", after, len(sessions), want)
		}
	}
	until := ahead().Add(time.Hour)
	_, err = wrong.Apply(t.Context(), &bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Until: &until}}})
	check(t, err)
	_, err = right.Apply(t.Context(), &bot.Change{Claim: &bot.Claim{
		Session: session, Place: place, Fence: 1, Owner: "right", Now: time.Now().Add(time.Minute), Until: time.Now().Add(2 * time.Minute),
	}})
	if !errors.Is(err, bot.ErrLost) {
		t.Errorf("a lease that goes on was taken: %v", err)
	}
}

// TestLeasesAfterTheClockWasSet: a process whose clock is set takes no lease that goes on, and gives none that has ended
// by the clock of the database.
func TestLeasesAfterTheClockWasSet(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	for name, by := range map[string]time.Duration{"forward": time.Hour, "back": -time.Hour} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := cluster.URL(cluster.Database(t, ""))
			var moved atomic.Int64
			clock := func() time.Time { return time.Now().Add(time.Duration(moved.Load())) }
			moving, right := open(t, postgres.Options{URL: url, Now: clock}), open(t, postgres.Options{URL: url})
			claim := func(store *postgres.Store, owner string, fence int64, now time.Time, arrive ...bot.Arrival) error {
				_, err := store.Apply(t.Context(), &bot.Change{Arrive: arrive, Claim: &bot.Claim{
					Session: session, Place: place, Fence: fence, Owner: owner, Now: now, Until: now.Add(time.Minute),
				}})
				return err
			}
			check(t, claim(right, "right", 0, time.Now(), bot.Arrival{Channel: "telegram", Bot: "1", ID: "1", Session: session}))
			moved.Store(int64(by))
			sessions, err := moving.Ready(t.Context(), "telegram", "1", clock(), 0)
			check(t, err)
			if len(sessions) != 0 {
				t.Errorf("ready while somebody works on them: %v", sessions)
			}
			moved.Store(0)
			lane, err := moving.Lane(t.Context(), session)
			check(t, err)
			moved.Store(int64(by))
			if err := claim(moving, "moving", lane.Fence, clock()); !errors.Is(err, bot.ErrLost) {
				t.Errorf("a lease that goes on was taken: %v", err)
			}
			until := time.Now().Add(-time.Minute)
			_, err = right.Apply(t.Context(), &bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Until: &until}}})
			check(t, err)
			moved.Store(0)
			_, err = moving.Lane(t.Context(), session)
			check(t, err)
			moved.Store(int64(by))
			check(t, claim(moving, "moving", lane.Fence, clock()))
			lane, err = right.Lane(t.Context(), session)
			check(t, err)
			if left := time.Until(lane.Until); left > time.Minute+time.Second || left < 50*time.Second {
				t.Errorf("the lease of a minute ends in %v", left)
			}
		})
	}
}
