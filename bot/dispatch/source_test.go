package dispatch_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// later is a source that only some versions of the program know.
const later bot.Source = "calendar"

// own is a message of a source of our own, as it is accepted.
func own(t *testing.T, m bot.Message) turn.Raw {
	t.Helper()
	m.ID = string(later) + "/" + m.ID
	body, err := bot.EncodeMessage(&m)
	if err != nil {
		t.Fatal(err)
	}
	return turn.Raw{ID: m.ID, Source: later, Body: body}
}

// knows gives a dispatcher the decoder of the later source.
func knows(parts *dispatch.Parts) { parts.Decoders[later] = bot.MessageDecoder{} }

// TestSources: each arrival is read as its source writes it, beside the updates of the channel, and begins a turn like
// any other.
func TestSources(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.parts = knows
		p := w.start()
		for _, update := range []turn.Raw{own(t, w.private("ann", "remind me")), raw(t, w.private("ben", "hi"))} {
			if err := p.Accept(t.Context(), []turn.Raw{update}); err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		w.want(bot.Final, "re: remind me", "re: hi")
		a, err := w.store.ArrivalOf(t.Context(), "test", "7", "calendar/1")
		if err != nil || a.Source != later || a.Session != session("ann") {
			t.Errorf("arrival %+v, %v", a, err)
		}
		b, err := w.store.ArrivalOf(t.Context(), "test", "7", "2")
		if err != nil || b.Source != "test" {
			t.Errorf("arrival of the channel %+v, %v", b, err)
		}
	})
}

// TestSourceBeforeThereWereAny: what is stored without a source came from the channel.
func TestSourceBeforeThereWereAny(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		body := raw(t, w.private("ann", "hi"))
		old := bot.Arrival{Channel: "test", Bot: "7", ID: body.ID, Session: session("ann"), Raw: body.Body, At: time.Now()}
		if _, err := w.store.Apply(t.Context(), &bot.Change{Arrive: []bot.Arrival{old}}); err != nil {
			t.Fatal(err)
		}
		w.start()
		pass(2 * time.Second)
		w.want(bot.Final, "re: hi")
	})
}

// storeLater puts an arrival of the later source, with this body, into ann's session.
func (w *world) storeLater(id string, body []byte) {
	a := bot.Arrival{Channel: "test", Bot: "7", ID: id, Source: later, Session: session("ann"), Raw: body, At: time.Now()}
	if _, err := w.store.Apply(w.t.Context(), &bot.Change{Arrive: []bot.Arrival{a}}); err != nil {
		w.t.Fatal(err)
	}
}

// TestForeignSourceIsLeftToWhoKnowsIt: while processes of two versions run, what only the newer one can read is done by
// that one, and nothing is lost.
func TestForeignSourceIsLeftToWhoKnowsIt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.storeLater("calendar/1", own(t, w.private("ann", "remind me")).Body)
		w.start()
		pass(time.Minute)
		if letters, err := w.store.DeadLetters(t.Context(), 10); err != nil || len(letters) != 0 || len(w.rows()) != 0 {
			t.Fatalf("given up after a minute: %+v %v, rows %q", letters, err, w.rows())
		}
		w.parts = knows
		w.start()
		pass(3 * time.Second)
		w.want(bot.Final, "re: remind me")
	})
}

// TestForeignSourceIsGivenUpInWords: when nobody can read it for as long as anything is tried, it is a dead letter with
// its body, the chat is told, and the session goes on.
func TestForeignSourceIsGivenUpInWords(t *testing.T) {
	for name, test := range map[string]struct {
		parts   func(*dispatch.Parts)
		body    string
		problem string
		within  time.Duration
	}{
		"an unknown source":  {nil, `{"v":1}`, `"calendar"`, 11 * time.Minute},
		"an unknown version": {knows, `{"v":9}`, "version 9", 11 * time.Minute},
		"not a message":      {knows, `{"v":1}`, "id, kind, channel", 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				w.storeLater("calendar/1", []byte(test.body))
				w.parts = test.parts
				w.accept(w.start(), w.private("ann", "hi"))
				pass(test.within)
				letters, err := w.store.DeadLetters(t.Context(), 10)
				if err != nil || len(letters) != 1 || string(letters[0].Raw) != test.body || !strings.Contains(letters[0].Problem, test.problem) {
					t.Errorf("dead letters %+v, %v", letters, err)
				}
				rows, err := w.store.Rows(t.Context(), "", 10)
				if err != nil || len(rows) != 1 || rows[0].Purpose != bot.Reply || rows[0].Place.ChatKey() != "test/7/bot/ann" || rows[0].Content.Text == "" {
					t.Errorf("told %+v, %v", rows, err)
				}
				w.want(bot.Final, "re: hi")
			})
		})
	}
}

// TestWorkspace: a session has the workspace that it first began with, whatever a process thinks of it later, and keeps
// it when its group moves.
func TestWorkspace(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var got []string
		w.runner = func(ctx context.Context, turn *agent.Turn, journal agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			got = append(got, turn.Origin.Workspace)
			return echo(ctx, turn, journal, sink)
		}
		thinks := func(prefix string) {
			w.parts = func(parts *dispatch.Parts) {
				parts.Workspace = func(session bot.SessionKey) string { return prefix + session.Chat() }
			}
		}
		thinks("a")
		p := w.start()
		w.accept(p, w.group("-5", "ann", "one"))
		pass(time.Second)
		p.stop()
		thinks("b")
		p = w.start()
		w.accept(p, w.group("-5", "ann", "two"))
		pass(time.Second)
		if _, err := w.store.Apply(t.Context(), &bot.Change{Move: &bot.Move{Channel: "test", Bot: "7", From: "-5", To: "-6"}}); err != nil {
			t.Fatal(err)
		}
		for _, person := range []string{"ann", "ben"} {
			w.accept(p, w.group("-6", person, "three"))
			pass(time.Second)
		}
		if diff := cmp.Diff([]string{"a-5", "a-5", "a-5", "b-6"}, got); diff != "" {
			t.Errorf("workspaces (-want +got):\n%s", diff)
		}
	})
}
