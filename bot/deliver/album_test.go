package deliver_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
)

func albumOf(n int, text string) bot.Row {
	r := row(bot.Reply, text)
	r.Content.File = &bot.File{Name: "0.txt", Data: []byte("x")}
	for i := range n - 1 {
		r.Content.More = append(r.Content.More, bot.File{Name: string(rune('1'+i)) + ".txt", Data: []byte("x")})
	}
	return r
}

// TestAlbumApart: an album that the server refuses goes out file by file, each once, and a row that ends so is not
// reported as lost.
func TestAlbumApart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(r *bot.Row) error {
			if len(r.Content.More) > 0 {
				return fail(bot.Refused)
			}
			return nil
		}
		w.start()
		r := albumOf(3, "caption")
		r.ReplyTo = "4"
		id := w.say(r)[0]
		pass(time.Second)
		w.say(row(bot.Final, "answer"))
		pass(time.Minute)
		w.stop()
		if got := w.row(id); got.State != bot.Dead || !strings.Contains(got.Problem, "one by one") {
			t.Errorf("%s: %s", got.State, got.Problem)
		}
		var names []string
		for _, r := range w.sender.chats["7"] {
			name := ""
			if r.Content.File != nil {
				name = r.Content.File.Name
			}
			names = append(names, name+" "+r.Content.Text+" "+r.ReplyTo)
		}
		if diff := cmp.Diff([]string{"0.txt caption 4", "1.txt  ", "2.txt  ", " answer "}, names); diff != "" {
			t.Error(diff)
		}
	})
}

// TestAlbumIsRepeatedAndMarked: an album whose outcome is unknown is repeated as a whole and says so, also where its
// caption leaves no room.
func TestAlbumIsRepeatedAndMarked(t *testing.T) {
	for name, text := range map[string]string{"short": "caption", "long": strings.Repeat("x", 1024)} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				w := setup(t)
				failed := false
				w.sender.answer = func(*bot.Row) error {
					if failed {
						return nil
					}
					failed = true
					return fail(bot.Vague)
				}
				w.start()
				id := w.say(albumOf(2, text))[0]
				pass(time.Minute)
				w.stop()
				seen := w.sender.chats["7"]
				if len(seen) != 1 || len(seen[0].Content.More) != 1 || len(seen[0].Content.Buttons) > 0 ||
					!strings.HasSuffix(seen[0].Content.Text, "\n\n"+mark) || len(seen[0].Content.Text) > 1030 {
					t.Errorf("%+v", seen)
				}
				if got := w.row(id); got.State != bot.Sent {
					t.Errorf("%s: %s", got.State, got.Problem)
				}
			})
		})
	}
}

// TestAlbumApartSurvives: the store fails when the album is split; nothing is lost, and nothing is sent twice.
func TestAlbumApartSurvives(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := setup(t)
		w.sender.answer = func(r *bot.Row) error {
			if len(r.Content.More) > 0 {
				return fail(bot.Refused)
			}
			return nil
		}
		failures := 2
		w.store.Hooks.BeforeApply = func(change *bot.Change) error {
			if len(change.Send) == 3 && len(change.Rows) == 1 && failures > 0 {
				failures--
				return errors.New("the disk is away")
			}
			return nil
		}
		w.start()
		w.say(albumOf(3, "caption"))
		pass(time.Minute)
		w.stop()
		if got := w.sender.texts("7"); failures != 0 || len(got) != 3 {
			t.Errorf("%d failures left, sent %q", failures, got)
		}
	})
}
