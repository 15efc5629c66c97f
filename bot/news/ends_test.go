package news_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/news"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
)

// fleet are processes on one store.
type fleet struct {
	*testing.T
	store *refusing
	alive map[string]bool
}

func newFleet(t *testing.T, owners ...string) *fleet {
	t.Helper()
	f := &fleet{T: t, store: &refusing{Store: bottest.New()}, alive: map[string]bool{}}
	for _, o := range owners {
		f.alive[o] = true
	}
	return f
}

// process is the ledger of one of them.
func (f *fleet) process(owner string) *living {
	groups := &moves.Map{}
	return &living{moves: groups, store: f.store, Ledger: news.New(news.Deps{
		Store: f.store, Keeper: facts.Keeper{Store: f.store, Log: zerolog.Nop()}, Moves: groups, Owner: owner, Now: time.Now, Log: zerolog.Nop(),
		Lives: func(owner string) bool { return f.alive[owner] }, Running: func(string) bool { return true },
		Wrap: func(_ source.Source, text string) (string, []string) { return text, nil },
	})}
}

// wanted are the keys of what a process wants others to end.
func (f *fleet) wanted(l *living, store bool) []string {
	f.Helper()
	list, err := l.End(f.Context(), session)
	if err != nil {
		f.Fatal(err)
	}
	if store {
		if _, err := f.store.Apply(f.Context(), &bot.Change{Facts: list}); err != nil {
			f.Fatal(err)
		}
	}
	keys := []string{}
	for _, fact := range list {
		keys = append(keys, fact.Key[:1])
	}
	slices.Sort(keys)
	return keys
}

// TestEndElsewhere: a process has the commands of a session ended that others run, each once: not its own, not those of
// a process that is gone, not those of other sessions. The wish is gone with the command.
func TestEndElsewhere(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "one", "two", "three")
	one, two, three := f.process("one"), f.process("two"), f.process("three")
	begin := func(l *living, run shell.BackgroundRun) shell.BackgroundRun {
		t.Helper()
		if err := l.Begun(t.Context(), run); err != nil {
			t.Fatal(err)
		}
		return run
	}
	begun := begin(one, run("a", time.Now()))
	begin(one, run("b", time.Now()))
	begin(two, run("c", time.Now()))
	begin(three, run("d", time.Now()))
	other := run("e", time.Now())
	other.Origin.Session = session + "3" // a name that begins with the other's
	begin(one, other)
	f.alive["three"] = false
	if got := f.wanted(two, false); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("two wants %q to end", got)
	}
	if got := f.wanted(one, false); !slices.Equal(got, []string{"c"}) {
		t.Errorf("one wants %q to end", got)
	}
	if ids, err := one.Ending(t.Context()); err != nil || len(ids) != 0 {
		t.Errorf("%v are to end before it is stored, %v", ids, err)
	}
	f.wanted(two, true)
	ids, err := one.Ending(t.Context())
	if err != nil || len(ids) != 2 || !ids[begun.ID] {
		t.Errorf("to end: %v, %v", ids, err)
	}
	if got := f.wanted(two, true); len(got) != 0 {
		t.Errorf("counted twice: %q", got)
	}
	if err := one.Ended(t.Context(), shell.Completion{BackgroundRun: begun, Ended: "cancelled"}); err != nil {
		t.Fatal(err)
	}
	if ids, err = one.Ending(t.Context()); err != nil || len(ids) != 1 {
		t.Errorf("to end once one has ended: %v, %v", ids, err)
	}
}

// TestElsewhereIsFollowed: which sessions have commands in other processes is known after a look.
func TestElsewhereIsFollowed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "one", "two")
	one, two := f.process("one"), f.process("two")
	if err := one.Begun(t.Context(), run("a", time.Now())); err != nil {
		t.Fatal(err)
	}
	look := func() {
		t.Helper()
		for _, l := range []*living{one, two} {
			if err := l.Follow(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	look()
	if own, other := one.Elsewhere(session), two.Elsewhere(session); own || !other {
		t.Errorf("elsewhere: %t for its own process, %t for the other", own, other)
	}
	f.alive["one"] = false
	if look(); two.Elsewhere(session) {
		t.Error("a command of a process that is gone is under way")
	}
}

// TestEndUnreadable: a fact that cannot be read is left out.
func TestEndUnreadable(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "one", "two")
	if _, err := f.store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: "background", Key: session + "/1/a", Value: "{"}}}); err != nil {
		t.Fatal(err)
	}
	two := f.process("two")
	if got := f.wanted(two, false); len(got) != 0 {
		t.Errorf("wants %q to end", got)
	}
}

// TestNewcomer: a process that has just begun, and that another one does not know yet, is told to end its commands, and
// they do not count as interrupted.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "one", "two")
	two := f.process("two")
	if err := two.Begun(t.Context(), shell.BackgroundRun{ID: "b", Origin: tools.Origin{Session: string(session)}, Started: time.Now(), Command: "sleep 9"}); err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func(one *living){
		"end": func(one *living) {
			if got := f.wanted(one, false); len(got) != 1 {
				t.Errorf("to end: %q", got)
			}
		},
		"news": func(one *living) {
			if got, err := one.Read(t.Context(), session, true); err != nil || got.Text != "" {
				t.Errorf("%q, %v", got.Text, err)
			}
		},
	} {
		known, looked := map[string]bool{"one": true}, 0
		groups := &moves.Map{}
		one := &living{moves: groups, store: f.store, Ledger: news.New(news.Deps{
			Store: f.store, Keeper: facts.Keeper{Store: f.store, Log: zerolog.Nop()}, Moves: groups, Owner: "one", Now: time.Now, Log: zerolog.Nop(),
			Lives: func(owner string) bool { return known[owner] }, Running: func(string) bool { return true },
			Look: func(context.Context) error { looked++; known["two"] = true; return nil },
			Wrap: func(_ source.Source, text string) (string, []string) { return text, nil },
		})}
		use(one)
		use(one)
		if looked != 1 {
			t.Errorf("%s: looked %d times for who lives", name, looked)
		}
	}
}
