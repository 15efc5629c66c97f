package app_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
)

// TestABuriedServiceEnds: a service that others have taken for dead ends with an error that says so, for its supervisor
// to start it anew.
func TestABuriedServiceEnds(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	name := cluster.Database(t, "")
	w := newWired(t, "", fmt.Sprintf("[database]\nurl = %q\n", cluster.URL(name)), spoken("Hello."))
	w.say("hi")
	w.await("Hello.")
	if err := cluster.Exec(t.Context(), name, `DELETE FROM process`); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case err := <-w.done:
		if !errors.Is(err, persistence.ErrBuried) {
			t.Errorf("the service ended with %v", err)
		}
		w.done <- nil // for the end of the test
	case <-ctx.Done():
		t.Fatal("the service goes on")
	}
}
