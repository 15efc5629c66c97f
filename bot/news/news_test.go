package news_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
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

// shown is how many ends of commands one turn is told.
const shown = 32

// refusing is a store that refuses the next Changes.
type refusing struct {
	*bottest.Store
	left int
	err  error
}

func (r *refusing) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if r.left > 0 {
		r.left--
		return nil, r.err
	}
	return r.Store.Apply(ctx, change)
}

// living is the ledger of a process, in which no command is under way.
type living struct {
	*news.Ledger
	store *refusing
	moves *moves.Map
}

func small(t *testing.T, store *refusing, owner string) *living {
	t.Helper()
	groups := &moves.Map{}
	return &living{moves: groups, store: store, Ledger: news.New(news.Deps{
		Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Moves: groups, Owner: owner, Now: time.Now, Log: zerolog.Nop(),
		Running: func(string) bool { return false }, Wrap: func(_ source.Source, text string) (string, []string) { return text, nil },
	})}
}

const session = "telegram/7/bot/-5/0/42"

func run(id string, started time.Time) shell.BackgroundRun {
	return shell.BackgroundRun{ID: strings.Repeat(id, 32), Origin: tools.Origin{Session: session}, Command: "make " + id, Started: started}
}

// told reads the news of a session and begins a turn with them.
func told(t *testing.T, l *living, session bot.SessionKey) string {
	t.Helper()
	told, err := l.Read(t.Context(), session, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.store.Apply(t.Context(), &bot.Change{Facts: told.Told}); err != nil {
		t.Fatal(err)
	}
	return told.Text
}

// TestNewsSurviveRefusals: what the store refuses for a while is kept all the same, and told once.
func TestNewsSurviveRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &refusing{Store: bottest.New(), err: errors.New("disk is busy")}
		c := small(t, store, "first")
		store.left = 3
		if err := c.Begun(t.Context(), run("a", time.Now())); err != nil {
			t.Fatal(err)
		}
		store.left = 40 // longer than anybody waits who has a choice
		if err := c.Ended(t.Context(), shell.Completion{BackgroundRun: run("a", time.Now()), Ended: "exit", Text: "built"}); err != nil {
			t.Fatal(err)
		}
		if text := told(t, c, session); strings.Count(text, "built") != 1 || strings.Contains(text, "interrupted") {
			t.Errorf("told %q", text)
		}
		if text := told(t, c, session); text != "" {
			t.Errorf("told again: %q", text)
		}
		store.left = 1 << 30
		if err := c.Begun(t.Context(), run("b", time.Now())); err == nil {
			t.Error("a run that cannot be noted was let through")
		}
	})
}

// TestNewsOfAnotherProcess: what a process left that died is told by the next one, once; a Change that fails loses
// nothing.
func TestNewsOfAnotherProcess(t *testing.T) {
	t.Parallel()
	store := &refusing{Store: bottest.New()}
	first, began := small(t, store, "first"), time.Now()
	for i, id := range []string{"a", "b"} {
		if err := first.Begun(t.Context(), run(id, began.Add(time.Duration(i)*time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Ended(t.Context(), shell.Completion{BackgroundRun: run("a", began), Elapsed: time.Hour, Ended: "exit", Text: "built"}); err != nil {
		t.Fatal(err)
	}
	second := small(t, store, "second")
	for range 2 { // reading alone takes nothing
		news, err := second.Read(t.Context(), session, false)
		if err != nil || len(news.Told) != 2 {
			t.Fatalf("%+v, %v", news, err)
		}
	}
	text := told(t, second, session)
	lost, built := strings.Index(text, "[background run bbbbbbbb was interrupted"), strings.Index(text, "built")
	if lost < 0 || built < lost || strings.Contains(text, "aaaaaaaa was interrupted") {
		t.Errorf("told %q", text)
	}
	if text := told(t, second, session); text != "" {
		t.Errorf("told again: %q", text)
	}
}

// TestNewsBounds: many news are told in bounds, and all of them are gone then; those of a session that was never heard
// of are none.
func TestNewsBounds(t *testing.T) {
	t.Parallel()
	c := small(t, &refusing{Store: bottest.New()}, "first")
	if text := told(t, c, session); text != "" {
		t.Errorf("told %q", text)
	}
	for i := range 3 * shown {
		done := shell.Completion{BackgroundRun: run(fmt.Sprintf("%x", i%16), time.Unix(int64(i), 0)), Ended: "exit", Text: fmt.Sprintf("text %d.", i)}
		if err := c.Ended(t.Context(), done); err != nil {
			t.Fatal(err)
		}
	}
	text := told(t, c, session)
	if strings.Count(text, "text ") != shown || !strings.Contains(text, "[64 more background runs") || !strings.Contains(text, "text 95.") {
		t.Errorf("told %q", text)
	}
	if text := told(t, c, session); text != "" {
		t.Errorf("told again: %q", text)
	}
}

// TestNewsFollowAGroup: news that were kept under an earlier id of a group are told under its present one.
func TestNewsFollowAGroup(t *testing.T) {
	t.Parallel()
	c := small(t, &refusing{Store: bottest.New()}, "first")
	for _, id := range []string{"-6", "-7"} { // twice: Telegram does not do that, and nothing depends on it
		from := map[string]string{"-6": "-5", "-7": "-6"}[id]
		if _, err := c.store.Apply(t.Context(), &bot.Change{
			Facts: []bot.Fact{{Bucket: bot.MovedBucket, Key: "telegram/" + id, Value: from}},
			Move:  &bot.Move{Channel: "telegram", Bot: "7", From: from, To: id},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Ended(t.Context(), shell.Completion{BackgroundRun: run("a", time.Now()), Ended: "exit", Text: "built"}); err != nil {
		t.Fatal(err)
	}
	if err := c.moves.Load(t.Context(), c.store, time.Now()); err != nil {
		t.Fatal(err)
	}
	c.Reload()
	now := bot.SessionKey(session).WithChat("-7")
	if text := told(t, c, now); !strings.Contains(text, "built") {
		t.Errorf("told %q", text)
	}
	if text := told(t, c, now); text != "" {
		t.Errorf("told again: %q", text)
	}
}

// TestSeveralProcesses: a command that runs in another process is not told as interrupted while that one lives, and
// news that another process stored are found by following it.
func TestSeveralProcesses(t *testing.T) {
	t.Parallel()
	store, alive := &refusing{Store: bottest.New()}, map[string]bool{"a": true, "b": true}
	process := func(owner string) *living {
		groups := &moves.Map{}
		return &living{moves: groups, store: store, Ledger: news.New(news.Deps{
			Store: store, Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Moves: groups, Owner: owner, Now: time.Now, Log: zerolog.Nop(),
			Lives: func(owner string) bool { return alive[owner] }, Running: func(string) bool { return owner == "a" },
			Wrap: func(_ source.Source, text string) (string, []string) { return text, nil },
		})}
	}
	a, b := process("a"), process("b")
	if got := told(t, b, session); got != "" { // b has read the store
		t.Errorf("told %q", got)
	}
	if err := a.Begun(t.Context(), run("x", time.Now())); err != nil {
		t.Fatal(err)
	}
	if err := a.TellLater(t.Context(), session, "a server is away"); err != nil {
		t.Fatal(err)
	}
	if moved, err := b.Read(t.Context(), session, true); err != nil || moved.Text != "a server is away" {
		t.Errorf("a session that was just another process's: %q, %v", moved.Text, err)
	}
	if err := b.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := told(t, b, session); got != "a server is away" {
		t.Errorf("the other process told %q", got)
	}
	delete(alive, "a")
	if got := told(t, b, session); !strings.Contains(got, "was interrupted") {
		t.Errorf("of a process that is gone: %q", got)
	}
}
