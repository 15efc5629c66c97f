package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
)

// fullDisk is what a store says that has no room.
type fullDisk struct{}

func (fullDisk) Error() string         { return "write /srv/data/zephbot.db: the disk is full" }
func (fullDisk) Advice() reason.Reason { return reason.Plain("the disk is full; free some space") }

// direct notes what is sent beside the outbox.
type direct struct {
	mu   sync.Mutex
	sent []string
}

func (d *direct) Send(_ context.Context, row *bot.Row) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sent = append(d.sent, row.Place.Chat+": "+row.Content.Text)
	return "1", nil
}

func (d *direct) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.sent
	d.sent = nil
	return list
}

// TestNothingCanBeStored: people and admins are told once an outage, strangers nothing; what was not stored is not
// confirmed, and is answered later.
func TestNothingCanBeStored(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		out := &direct{}
		w.parts = func(p *dispatch.Parts) {
			p.Direct, p.Operators = out, func() []bot.Place { return []bot.Place{{Channel: "test", Bot: "7", Surface: "bot", Chat: "admin"}} }
		}
		var mu sync.Mutex
		var failure error
		fail := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failure = err
		}
		w.store.Hooks.BeforeApply = func(*bot.Change) error {
			mu.Lock()
			defer mu.Unlock()
			return failure
		}
		p := w.start()
		fail(fullDisk{})
		ann, stranger, aside := w.private("ann", "hi"), w.private("stranger", "hi"), w.group("g", "ben", "not for the bot")
		aside.Addressed = false
		raws := []turn.Raw{raw(t, ann), raw(t, stranger), raw(t, aside)}
		for range 3 { // the channel delivers them again
			if err := p.Accept(t.Context(), raws); err == nil {
				t.Fatal("confirmed")
			}
		}
		want := []string{
			"admin: ⚠ My database is out of order: the disk is full; free some space. Nothing is lost and nothing runs; I will continue by myself once it works.",
			"ann: I cannot store anything at the moment. Your message is not lost: I will receive it again, and answer as soon as this works.",
		}
		if got := out.take(); !slices.Equal(got, want) {
			t.Errorf("said %q", got)
		}
		fail(nil)
		w.accept(p, ann)
		w.want(bot.Final, "re: hi")
		fail(fullDisk{})
		if err := p.Accept(t.Context(), raws[:1]); err == nil || len(out.take()) != 2 {
			t.Error("the next outage is not told")
		}
		fail(errors.New("this Change is wrong"))
		if err := p.Accept(t.Context(), []turn.Raw{raw(t, w.private("cy", "hi"))}); err == nil || len(out.take()) != 0 {
			t.Error("a Change that is refused is no outage")
		}
		fail(nil)
	})
}
