package sql_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/storetest"
)

func TestPersonal(t *testing.T) {
	t.Parallel()
	empty := emptyDatabase(t)
	storetest.Personal(t, func(t *testing.T) storetest.PersonalStore {
		path := filepath.Join(t.TempDir(), "zephbot.db")
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		return open(t, sql.Options{Path: path, Now: storetest.Now})
	})
}

// TestScrub: nothing of what was deleted is left in the files of the database, whether the rows were small or large,
// deleted just now or long ago; and the store goes on.
func TestScrub(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, sql.Options{Path: path})
	place := bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "4242424242"}
	say := func(session bot.SessionKey, text string, n int) {
		t.Helper()
		var list []journal.Entry
		for range n {
			list = append(list, journal.Entry{Turn: "t", Kind: journal.UserEntry, Text: text, At: time.Now()})
		}
		lane, err := store.Lane(t.Context(), session)
		if err == nil {
			_, err = store.Apply(t.Context(), &bot.Change{
				Claim:  &bot.Claim{Session: session, Place: place, Fence: lane.Fence, Owner: "p", Now: time.Now(), Until: time.Now()},
				Append: &bot.Append{Session: session, After: lane.Last, Entries: list}, Lanes: []bot.LaneUpdate{{Session: session, Release: true}},
			})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	own := place.SessionKey("4242424242")
	for range 5 {
		say(own, storetest.Canary+" small", 40)
		say(own, strings.Repeat(storetest.Canary+" large ", 2000), 20)
		say("telegram/1/bot/9/0/9", strings.Repeat("somebody else", 100), 30)
	}
	office := privacy.NewOffice(privacy.Deps{Tables: store, Store: store, Now: time.Now, Log: zerolog.Nop()})
	r, err := office.Erase(t.Context(), privacy.NewJob(privacy.Person{Channel: "telegram", ID: "4242424242"}, time.Now()))
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("%+v, %v", r, err)
	}
	for _, suffix := range []string{"", "-wal", "-mark"} {
		raw, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(raw, []byte(storetest.Canary)); at >= 0 {
			t.Errorf("%s still has it at %d of %d bytes", path+suffix, at, len(raw))
		}
	}
	say(own, "a new beginning", 1)
	if list, err := store.Journal(t.Context(), own, 0); err != nil || len(list) != 1 {
		t.Errorf("afterwards: %+v, %v", list, err)
	}
}
