package moves_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/moves"
)

// TestNames: a session has one name for each id of its chat; ids that form a circle end.
func TestNames(t *testing.T) {
	t.Parallel()
	const first, second, last = "telegram/7/bot/-5/0/42", "telegram/7/bot/-6/0/42", "telegram/7/bot/-7/0/42"
	store, m := bottest.New(), &moves.Map{}
	if got := m.Current(first); got != first {
		t.Errorf("before anything is known: %q", got)
	}
	watched := moves.Watched{Store: store, Moved: func(ctx context.Context) {
		if err := m.Load(ctx, store, time.Now()); err != nil {
			t.Error(err)
		}
	}}
	for from, to := range map[string]string{"-5": "-6", "-6": "-7", "1": "2", "2": "1"} {
		if _, err := watched.Apply(t.Context(), &bot.Change{
			Facts: []bot.Fact{{Bucket: bot.MovedBucket, Key: "telegram/" + to, Value: from}},
			Move:  &bot.Move{Channel: "telegram", Bot: "7", From: from, To: to},
		}); err != nil {
			t.Fatal(err)
		}
	}
	got := [][]bot.SessionKey{m.Names(first), m.Names(last), {m.First(last), m.First(second), m.Current(second), m.Current("terminal/main"), m.First("x")}}
	want := [][]bot.SessionKey{{last, second, first}, {last, second, first}, {first, first, last, "terminal/main", "x"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := m.Names("telegram/7/bot/1/0/0"); len(got) > 5 {
		t.Errorf("a circle: %q", got)
	}
}

// TestJoinWorkspaces: whatever exists under the old and the new id of a group, everything ends up where the sessions
// work, and a second run changes nothing.
func TestJoinWorkspaces(t *testing.T) {
	t.Parallel()
	const old, moved = "telegram_7_bot_-5_0_42", "telegram_7_bot_-6_0_42"
	const fresh = "telegram_7_bot_-6_0_43" // of a session that began after the move, with its own files
	tests := map[string]struct{ before, after []string }{
		"one that began":  {[]string{fresh + "/a", moved + "/a"}, []string{old + "/a", fresh + "/a"}},
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
			store, told := bottest.New(), []string{}
			c := moves.Workspaces{Root: t.TempDir(), Map: &moves.Map{}, Lanes: store, Log: zerolog.Nop(), Tell: func(_ context.Context, session bot.SessionKey, text string) error {
				told = append(told, string(session)+" "+text)
				return nil
			}}
			moved := bot.Fact{Bucket: bot.MovedBucket, Key: "telegram/-6", Value: "-5"}
			began := &bot.Claim{Session: "telegram/7/bot/-6/0/43", Workspace: fresh, Owner: "o", Until: time.Now()}
			if _, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{moved}, Claim: began}); err != nil {
				t.Fatal(err)
			}
			for _, path := range tt.before {
				dir, file, _ := strings.Cut(path, "/")
				dir = filepath.Join(c.Root, dir)
				err := os.MkdirAll(dir, 0o700)
				if err == nil && file != "" {
					err = os.WriteFile(filepath.Join(dir, file), []byte("x"), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			for range 2 {
				if err := c.Map.Load(t.Context(), store, time.Now()); err != nil {
					t.Fatal(err)
				}
				c.Join(t.Context())
				var got []string
				err := filepath.WalkDir(c.Root, func(path string, d os.DirEntry, err error) error {
					if err == nil && !d.IsDir() {
						path, err = filepath.Rel(c.Root, path)
						got = append(got, path)
					}
					return err
				})
				if diff := cmp.Diff(tt.after, got); diff != "" || err != nil {
					t.Errorf("files (-want +got):\n%s%v", diff, err)
				}
			}
			if aside := name == "both" || name == "a name in use"; aside != (len(told) == 1) {
				t.Errorf("told %q", told)
			}
		})
	}
}
