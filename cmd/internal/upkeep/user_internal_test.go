package upkeep

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/persistence"
)

// TestAskOnce: the command line waits for an erasure that was asked for before, and asks for no second one.
func TestAskOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stores, err := persistence.Open(t.Context(), persistence.Options{DataDir: dir, Mode: "serve", Owner: "service", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stores.Close() })
	office := privacy.NewOffice(privacy.Deps{Tables: stores.Tables, Store: stores.Bot, Now: time.Now, Log: zerolog.Nop()})
	u := &User{Person: privacy.Person{Channel: "telegram", ID: "4242424242"}, opts: app.Options{Now: time.Now}, dir: dir}
	before := privacy.NewJob(u.Person, time.Now())
	second := privacy.NewJob(u.Person, time.Now())
	for _, tt := range []struct {
		begun bool
		job   *privacy.Job
		want  string
	}{{true, second, before.ID}, {false, second, second.ID}} {
		if tt.begun {
			fact, err := before.Fact()
			if err == nil {
				err = persistence.PutFact(t.Context(), dir, "", fact)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r, err := u.askService(t.Context(), tt.job, func(string) {
			jobs, err := stores.Bot.FactsOf(t.Context(), privacy.JobBucket, "", time.Now())
			if err != nil || len(jobs) != 1 || jobs[0].Key != tt.want {
				t.Fatalf("asked for: %v, %v; want %s", jobs, err, tt.want)
			}
			begun, err := office.Begun(t.Context(), u.Person)
			if err == nil {
				_, err = office.Erase(t.Context(), begun)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if err != nil || r.ID != tt.want {
			t.Errorf("%+v, %v; want the receipt of %s", r, err, tt.want)
		}
	}
}
