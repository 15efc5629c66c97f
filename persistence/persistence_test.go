package persistence_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/tools/overflow"
)

func TestOpenTakesTheDirectoryAndFreesDeadLeases(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	options := persistence.Options{DataDir: dir, Owner: "one", Log: zerolog.Nop()}
	stores, err := persistence.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	claim := &bot.Claim{Session: "s", Owner: "one", Now: now, Until: now.Add(time.Hour)}
	if _, err := stores.Bot.Apply(t.Context(), &bot.Change{Claim: claim}); err != nil {
		t.Fatal(err)
	}
	output := overflow.Item{ID: "0f8fad5b-d9cb-469f-a165-708600000001", Session: "s", Call: "c", Text: "long"}
	if err := stores.Overflow.Save(t.Context(), output); err != nil {
		t.Fatal(err)
	}
	_, err = persistence.Open(t.Context(), options)
	if !errors.Is(err, sql.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Fatalf("second open: %v, want ErrLocked that names %s", err, dir)
	}
	if err := stores.Sweep(t.Context(), now, persistence.Retention{}); err != nil {
		t.Fatal(err)
	}
	if err := stores.Close(); err != nil {
		t.Fatal(err)
	}
	options.Owner = "two"
	stores, err = persistence.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	lane, err := stores.Bot.Lane(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if lane.Owner != "" || lane.Fence != 1 {
		t.Errorf("lane after restart: owner %q fence %d, want nobody and 1", lane.Owner, lane.Fence)
	}
	if got, err := stores.Overflow.Load(t.Context(), "s", output.ID, now); err != nil || got.Text != output.Text {
		t.Errorf("output after restart: %+v (%v)", got, err)
	}
	if err := stores.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		options persistence.Options
		want    string
	}{
		"no directory": {persistence.Options{Owner: "one"}, "data_dir is empty"},
		"no owner":     {persistence.Options{DataDir: "x"}, "owner"},
		"other engine": {persistence.Options{DataDir: "x", Owner: "one", DatabaseURL: "mysql://u:hunter2@h/d"}, `"mysql" databases are not supported`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := persistence.Open(t.Context(), test.options)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("got %v, want %q in it", err, test.want)
			}
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the error shows a password")
			}
		})
	}
}
