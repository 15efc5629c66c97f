package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// progress records what it is told and asks for the placeholder.
type progress struct {
	watched turn.Watched
	log     *[]string
	closed  chan struct{}
	fails   error
}

func (p *progress) Emit(_ context.Context, e agent.Event) {
	*p.log = append(*p.log, "event "+string(e.Type))
}

func (p *progress) Run(ctx context.Context) error {
	if p.fails != nil {
		return p.fails
	}
	select {
	case <-p.closed:
	case <-ctx.Done():
	}
	return nil
}

func (p *progress) Close() {
	*p.log = append(*p.log, "closed")
	close(p.closed)
}

func TestProgressAndPlaceholder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var log []string
		var shown *progress
		w.parts = func(parts *dispatch.Parts) {
			parts.Observe = func(o dispatch.Observation) { log = append(log, o.What+" "+o.Kind) }
			parts.Progress = func(watched turn.Watched) turn.Progress {
				shown = &progress{watched: watched, log: &log, closed: make(chan struct{})}
				return shown
			}
		}
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			sink.Emit(ctx, agent.Event{Type: agent.ModelEvent})
			for range 2 { // the second time it is found again
				if message, err := shown.watched.Placeholder(ctx); message != "" || err != nil {
					t.Errorf("placeholder %q %v", message, err)
				}
			}
			out := answered(turn, "first\fsecond")
			out.Reason = "length"
			return out, nil
		}
		w.accept(w.start(), w.group("g", "ann", "hi"))
		if shown.watched.Draft <= 0 || shown.watched.Turn == "" {
			t.Errorf("watched %+v", shown.watched)
		}
		if want := []string{"update text", "queue ", "event model", "closed", "turn answered", "end answered"}; !slices.Equal(log, want) {
			t.Errorf("log %q", log)
		}
		rows, err := w.store.Rows(t.Context(), "test/7/bot/g/0/ann", 0)
		if err != nil || len(rows) != 3 {
			t.Fatalf("rows %+v %v", rows, err)
		}
		if rows[0].Purpose != bot.Placeholder || rows[1].EditRow != rows[0].ID || rows[1].ReplyTo != "m1" || rows[2].EditRow != 0 || rows[2].ReplyTo != "" {
			t.Errorf("rows %+v", rows)
		}
	})
}

// TestButtonsOnlyWhereTheBotIs: a growing message and an answer have buttons in chats that the bot is in. Where it is a
// guest or answers in somebody's name, nobody who reads them has a say in the turn.
func TestButtonsOnlyWhereTheBotIs(t *testing.T) {
	business, ok := bot.SurfaceBusiness("c1")
	if !ok {
		t.Fatal("no surface")
	}
	for surface, want := range map[string]bool{bot.SurfaceBot: true, bot.SurfaceGuest: false, business: false} {
		t.Run(surface, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var log []string
				var shown *progress
				w.parts = func(parts *dispatch.Parts) {
					some := [][]bot.Button{{{Label: "b", Data: "x:1"}}}
					parts.Stop = func(string, string) [][]bot.Button { return some }
					parts.Below = func(turn.Answer) [][]bot.Button { return some }
					parts.Progress = func(watched turn.Watched) turn.Progress {
						shown = &progress{watched: watched, log: &log, closed: make(chan struct{})}
						return shown
					}
				}
				msg := w.private("ann", "hi")
				msg.Place.Surface = surface
				w.accept(w.start(), msg)
				rows, err := w.store.Rows(t.Context(), msg.Place.SessionKey(""), 0)
				if err != nil || len(rows) == 0 {
					t.Fatalf("rows %+v, %v", rows, err)
				}
				if got := len(shown.watched.Buttons) > 0; got != want {
					t.Errorf("%s: buttons below what grows: %t", surface, got)
				}
				if got := len(rows[len(rows)-1].Content.Buttons) > 0; got != want {
					t.Errorf("%s: buttons below the answer: %t", surface, got)
				}
			})
		})
	}
}

func TestProgressThatFailsOrPanics(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var log []string
		w.parts = func(parts *dispatch.Parts) {
			parts.Progress = func(watched turn.Watched) turn.Progress {
				return &progress{watched: watched, log: &log, closed: make(chan struct{}), fails: errors.New("no draft")}
			}
		}
		runs := 0
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			if runs++; runs == 1 {
				panic("in the middle")
			}
			return answered(turn, " "), nil // nothing to see
		}
		w.accept(w.start(), w.private("ann", "hi"))
		w.want(bot.Final, "The model gave an empty answer. Please ask again, perhaps with different wording.")
		if !slices.Equal(log, []string{"closed", "closed"}) {
			t.Errorf("log %q", log)
		}
	})
}

func TestMessageWithFilesAndQuote(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := w.private("ann", "look")
		m.Files = []bot.Attachment{{Kind: "photo"}}
		m.Reply = &bot.Quote{Author: "Bob", Text: "quoted"}
		quoteOnly := w.private("bob", "")
		quoteOnly.Reply = &bot.Quote{Author: "Ann", Text: "quoted"}
		p := w.start()
		w.accept(p, m)
		w.accept(p, quoteOnly)
		w.want(bot.Final, "re: look", "re: ")
		entries, _ := w.store.Journal(t.Context(), session("ann"), 0)
		if len(entries) != 2 || entries[0].Quote == nil || entries[0].Quote.Text != "quoted" || !slices.Equal(entries[0].Parts, []llm.Part{{Kind: llm.ImagePart, Label: "photo"}}) {
			t.Errorf("journal %+v", entries)
		}
	})
}

// A vote that turns out to be the last one makes the turn go on, and what follows is applied.
func TestThen(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		follow := errors.New("not readable")
		w.parts = func(parts *dispatch.Parts) {
			parts.Commands = then{commands: w.commands, follow: func(*bot.Applied) (turn.Effect, error) {
				row := bot.Row{Place: bot.Place{Channel: "test", Bot: "7"}, Purpose: bot.Record, Content: bot.Content{Text: "followed"}}
				return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}, Wake: []bot.SessionKey{session("ann")}}, follow
			}}
		}
		p := w.start()
		w.accept(p, w.private("ann", "/status"))
		w.want(bot.Record)
		follow = nil
		w.accept(p, w.private("ann", "/status"))
		w.want(bot.Record, "followed")
		if c := w.counts(); c.Queued != 0 || c.DeadLetters != 0 {
			t.Errorf("counts %+v", c)
		}
		pass(time.Second)
	})
}

type then struct {
	*commands
	follow func(*bot.Applied) (turn.Effect, error)
}

func (c then) Run(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	e, err := c.commands.Run(ctx, call)
	e.Then = func(_ context.Context, applied *bot.Applied) (turn.Effect, error) { return c.follow(applied) }
	return e, err
}

// Two replicas on one store answer everything once.
func TestTwoReplicas(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		a, b := w.start(), w.start()
		for i := range 20 {
			p := []*process{a, b}[i%2]
			m, s := w.private("ann", "m"), w.private("bob", "/status")
			list := []turn.Raw{raw(t, m), raw(t, s), raw(t, w.private("cy", "/lane"))}
			for _, p := range []*process{p, a, b} { // delivered to both
				if err := p.Accept(t.Context(), list); err != nil {
					t.Fatal(err)
				}
			}
		}
		pass(time.Minute)
		if f, r := len(w.texts(bot.Final)), len(w.texts(bot.Reply)); f != 20 || r != 40 {
			t.Errorf("%d answers, %d replies", f, r)
		}
		if c := w.counts(); c.Queued != 0 || c.DeadLetters != 0 {
			t.Errorf("counts %+v", c)
		}
	})
}
