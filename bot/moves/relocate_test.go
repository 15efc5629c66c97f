package moves_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/tools"
)

// runs are the names under which background commands run.
type runs []string

func (r runs) Rename(name func(string) string) {
	for i := range r {
		r[i] = name(r[i])
	}
}

// notes counts the other notifications that a group moved.
type notes struct{ reloads, forgets int }

func (n *notes) Reload() { n.reloads++ }
func (n *notes) forget() { n.forgets++ }

// away is a store that cannot be read.
type away struct{ *bottest.Store }

func (away) FactsOf(context.Context, string, string, time.Time) ([]bot.Fact, error) {
	return nil, errors.New("away")
}

// TestRelocate: after a move, runs, news and counters follow the group's new id; a second run changes nothing; a move
// by another process is noticed once.
func TestRelocate(t *testing.T) {
	t.Parallel()
	const before, after, last = "telegram/7/bot/-5/0/42", "telegram/7/bot/-6/0/42", "telegram/7/bot/-7/0/42"
	store, n, running := bottest.New(), &notes{}, runs{before, "terminal/main"}
	r := moves.Relocator{Map: &moves.Map{}, Store: store, Runs: running, News: n, Forget: n.forget, Now: time.Now, Log: zerolog.Nop()}
	r.Dirs = &moves.Workspaces{Root: t.TempDir(), Map: r.Map, Lanes: store}
	move := func(from, to string) {
		t.Helper()
		if _, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: bot.MovedBucket, Key: "telegram/" + to, Value: from}}}); err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, names runs, told notes) {
		t.Helper()
		if diff := cmp.Diff(names, running); diff != "" {
			t.Errorf("%s: runs (-want +got):\n%s", what, diff)
		}
		if *n != told {
			t.Errorf("%s: told %+v, want %+v", what, *n, told)
		}
	}
	move("-5", "-6")
	r.Relocate(t.Context())
	want("moved here", runs{after, "terminal/main"}, notes{1, 1})
	r.Relocate(t.Context())
	want("again", runs{after, "terminal/main"}, notes{2, 2})
	follow := func() {
		t.Helper()
		if err := r.Follow(t.Context()); err != nil {
			t.Error(err)
		}
	}
	follow()
	want("nothing new", runs{after, "terminal/main"}, notes{2, 2})
	move("-6", "-7")
	follow()
	want("moved elsewhere", runs{last, "terminal/main"}, notes{2, 3})
	broken := r
	broken.Store, broken.Forget = away{store}, nil
	broken.Relocate(t.Context())
	if err := broken.Follow(t.Context()); err == nil {
		t.Error("an unreachable store causes no error")
	}
	want("away", runs{last, "terminal/main"}, notes{2, 3})
	broken.Forget = n.forget // the counters are refilled even if the store cannot be read
	broken.Relocate(t.Context())
	want("away", runs{last, "terminal/main"}, notes{2, 4})
}

// TestOpen: the workspace of a conversation is created under the id in its lane or its first name; a channel with a
// place of its own works there.
func TestOpen(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	w := moves.Workspaces{Root: root + "/w", Map: &moves.Map{}, Own: map[string]string{"terminal": "/home/ann"}}
	for _, tt := range []struct {
		origin tools.Origin
		want   string
	}{
		{tools.Origin{Channel: "terminal", Session: "terminal/main"}, "/home/ann"},
		{tools.Origin{Channel: "telegram", Session: "telegram/7/bot/1/0/0"}, root + "/w/telegram_7_bot_1_0_0"},
		{tools.Origin{Channel: "telegram", Session: "telegram/7/bot/1/0/0", Workspace: "kept"}, root + "/w/kept"},
	} {
		if got, err := w.Open(tt.origin); got != tt.want || err != nil {
			t.Errorf("%+v: %s, %v; want %s", tt.origin, got, err, tt.want)
		}
	}
	w.Root = "/dev/null/w"
	if _, err := w.Open(tools.Origin{Channel: "telegram", Session: "telegram/7/bot/1/0/0"}); err == nil {
		t.Error("a directory that cannot be created causes no error")
	}
}
