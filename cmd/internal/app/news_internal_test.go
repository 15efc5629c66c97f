package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mark"
	"github.com/zephbot/zephbot/tools/shell"
)

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

// small is a core with a store, runs and marks, and nothing else.
func small(t *testing.T, store *refusing, owner string) *Core {
	t.Helper()
	marker, err := mark.New(mark.Options{Key: make([]byte, mark.KeySize)})
	if err != nil {
		t.Fatal(err)
	}
	_, runner, err := shell.New(shell.Options{Workspace: func(tools.Origin) (string, error) { return t.TempDir(), nil }})
	if err != nil {
		t.Fatal(err)
	}
	c := &Core{
		cfg: &config.Config{}, dir: t.TempDir(), log: zerolog.Nop(), now: time.Now, owner: owner, moves: &moves{}, stores: &persistence.Stores{Bot: store},
		stages: &stages{marker: marker}, kit: &kit{runner: runner},
	}
	c.news = newNews(c)
	return c
}

const session = "telegram/7/bot/-5/0/42"

func run(id string, started time.Time) shell.BackgroundRun {
	return shell.BackgroundRun{ID: strings.Repeat(id, 32), Origin: tools.Origin{Session: session}, Command: "make " + id, Started: started}
}

// told reads the news of a session and begins a turn with them.
func told(t *testing.T, c *Core, session string) string {
	t.Helper()
	news, err := c.news.read(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.stores.Bot.Apply(t.Context(), &bot.Change{Facts: news.Told}); err != nil {
		t.Fatal(err)
	}
	return news.Text
}

// TestNewsSurviveRefusals: what the store refuses for a while is kept all the same, and told once.
func TestNewsSurviveRefusals(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &refusing{Store: bottest.New(), err: errors.New("disk is busy")}
		c := small(t, store, "first")
		store.left = 3
		if err := c.news.Begun(t.Context(), run("a", time.Now())); err != nil {
			t.Fatal(err)
		}
		store.left = 40 // longer than anybody waits who has a choice
		if err := c.news.Ended(t.Context(), shell.Completion{BackgroundRun: run("a", time.Now()), Ended: "exit", Text: "built"}); err != nil {
			t.Fatal(err)
		}
		if text := told(t, c, session); strings.Count(text, "built") != 1 || strings.Contains(text, "interrupted") {
			t.Errorf("told %q", text)
		}
		if text := told(t, c, session); text != "" {
			t.Errorf("told again: %q", text)
		}
		store.left = 1 << 30
		if err := c.news.Begun(t.Context(), run("b", time.Now())); err == nil {
			t.Error("a run that cannot be noted was let through")
		}
		store.left, store.err = 1, fmt.Errorf("no: %w", bot.ErrInvalid)
		if err := c.keeper().Keep(t.Context(), &bot.Change{}); !errors.Is(err, bot.ErrInvalid) {
			t.Errorf("what is refused for good: %v", err)
		}
	})
}

// TestNewsOfAnotherProcess: what a process left that died is told by the next one, once; a Change that fails loses nothing.
func TestNewsOfAnotherProcess(t *testing.T) {
	t.Parallel()
	store := &refusing{Store: bottest.New()}
	first, began := small(t, store, "first"), time.Now()
	for i, id := range []string{"a", "b"} {
		if err := first.news.Begun(t.Context(), run(id, began.Add(time.Duration(i)*time.Minute))); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.news.Ended(t.Context(), shell.Completion{BackgroundRun: run("a", began), Elapsed: time.Hour, Ended: "exit", Text: "built"}); err != nil {
		t.Fatal(err)
	}
	second := small(t, store, "second")
	for range 2 { // reading alone takes nothing
		news, err := second.news.read(t.Context(), session)
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

// TestNewsBounds: many news are told in bounds, and all of them are gone then; those of a session that was never heard of are none.
func TestNewsBounds(t *testing.T) {
	t.Parallel()
	c := small(t, &refusing{Store: bottest.New()}, "first")
	if text := told(t, c, session); text != "" {
		t.Errorf("told %q", text)
	}
	for i := range 3 * maxRunNews {
		done := shell.Completion{BackgroundRun: run(fmt.Sprintf("%x", i%16), time.Unix(int64(i), 0)), Ended: "exit", Text: fmt.Sprintf("text %d.", i)}
		if err := c.news.Ended(t.Context(), done); err != nil {
			t.Fatal(err)
		}
	}
	text := told(t, c, session)
	if strings.Count(text, "text ") != maxRunNews || !strings.Contains(text, "[64 more background runs") || !strings.Contains(text, "text 95.") {
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
		if _, err := c.stores.Bot.Apply(t.Context(), &bot.Change{
			Facts: []bot.Fact{{Bucket: bot.MovedBucket, Key: "telegram/" + id, Value: from}},
			Move:  &bot.Move{Channel: "telegram", Bot: "7", From: from, To: id},
		}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.news.Ended(t.Context(), shell.Completion{BackgroundRun: run("a", time.Now()), Ended: "exit", Text: "built"}); err != nil {
		t.Fatal(err)
	}
	c.relocate(t.Context())
	now := strings.Replace(session, "-5", "-7", 1)
	if got := []string{c.moves.first(now), c.moves.current(session), c.moves.current("terminal/main"), c.moves.first("x")}; !cmp.Equal(got, []string{session, now, "terminal/main", "x"}) {
		t.Errorf("names %q", got)
	}
	if text := told(t, c, now); !strings.Contains(text, "built") {
		t.Errorf("told %q", text)
	}
	if text := told(t, c, now); text != "" {
		t.Errorf("told again: %q", text)
	}
}

// TestJoinWorkspaces: whatever there is under the old and the new id of a group, afterwards everything is where the sessions work, and doing it again
// changes nothing.
func TestJoinWorkspaces(t *testing.T) {
	t.Parallel()
	const old, moved = "telegram_7_bot_-5_0_42", "telegram_7_bot_-6_0_42"
	tests := map[string]struct{ before, after []string }{
		"nothing":         {nil, nil},
		"only the old":    {[]string{old + "/a"}, []string{old + "/a"}},
		"only the new":    {[]string{moved + "/a"}, []string{old + "/a"}},
		"both":            {[]string{old + "/a", moved + "/a"}, []string{old + "/a", old + "/group-6/a"}},
		"a name in use":   {[]string{old + "/group-6", moved + "/a"}, []string{old + "/group-6", old + "/group-6-2/a"}},
		"an empty new":    {[]string{old + "/a", moved + "/"}, []string{old + "/a"}},
		"an empty old":    {[]string{old + "/", moved + "/a"}, []string{old + "/a"}},
		"somebody else's": {[]string{"telegram_7_bot_-61_0_42/a", "telegram_7_bot_6_0_0/a"}, []string{"telegram_7_bot_-61_0_42/a", "telegram_7_bot_6_0_0/a"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := small(t, &refusing{Store: bottest.New()}, "first")
			moved := bot.Fact{Bucket: bot.MovedBucket, Key: "telegram/-6", Value: "-5"}
			if _, err := c.stores.Bot.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{moved}}); err != nil {
				t.Fatal(err)
			}
			for _, path := range tt.before {
				dir, file, _ := strings.Cut(path, "/")
				dir = filepath.Join(c.workspaceRoot(), dir)
				err := os.MkdirAll(dir, 0o700)
				if err == nil && file != "" {
					err = os.WriteFile(filepath.Join(dir, file), []byte("x"), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				c.relocate(t.Context())
				var got []string
				err := filepath.WalkDir(c.dir, func(path string, d os.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						path, err = filepath.Rel(c.workspaceRoot(), path)
						got = append(got, path)
					}
					return err
				})
				if diff := cmp.Diff(tt.after, got); diff != "" || err != nil {
					t.Errorf("files (-want +got):\n%s%v", diff, err)
				}
			}
		})
	}
}
