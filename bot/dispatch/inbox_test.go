package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// TestBusySteer: a text of the same person is read before the next call of the model, without a turn of its own; one of
// somebody else, a command and a file are not.
func TestBusySteer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.opts.Busy = dispatch.Steer
		hold, c := make(chan struct{}), &chain{w: w, ran: map[string]int{}}
		var asked record
		w.talks(func(ctx context.Context, req *llm.Request) (*llm.Response, error) {
			n := asked.add(said(req))
			if n == 1 {
				<-hold
				return &llm.Response{Uses: []llm.ToolUse{{ID: "1", Name: "look", Args: []byte(`{}`)}}, Stop: llm.StopTools}, nil
			}
			return &llm.Response{Text: fmt.Sprint("answer ", n), Stop: llm.StopEnd}, nil
		}, c)
		p := w.start()
		w.accept(p, w.group("s1", "ann", "look"))
		file := w.group("s1", "ann", "with this")
		file.Files = []bot.Attachment{{Kind: bot.Document, ID: "f"}}
		w.accept(p, w.group("s1", "ben", "me too"), w.group("s1", "ann", "but briefly"), file, w.group("s1", "ann", "thanks"))
		close(hold)
		pass(time.Minute)
		if want := "ann: look|[said while you were working]\nann: but briefly"; len(asked.all()) < 2 || asked.all()[1] != want {
			t.Errorf("asked %q, want %q second", asked.all(), want)
		}
		w.want(bot.Final, "answer 2", "answer 3", "answer 4", "answer 5")
		if charges, _ := w.store.Charges(t.Context(), ""); len(charges) != 4 {
			t.Errorf("charged %d times", len(charges))
		}
	})
}

// TestBusyInterrupt: a text of the same person ends the turn, and is answered next; one of somebody else does not, and
// none ends a turn that waits for a decision.
func TestBusyInterrupt(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.opts.Busy = dispatch.Interrupt
		var asked record
		w.talks(changing(&asked), &chain{w: w, ran: map[string]int{}})
		p := w.start()
		w.accept(p, w.group("s1", "ann", "think"))
		w.accept(p, w.group("s1", "ben", "instead"))
		pass(time.Second)
		w.want(bot.Final)
		w.accept(p, w.group("s1", "ann", "this instead"))
		pass(time.Second)
		if got := w.texts(bot.Final); len(got) != 3 || got[0] != "I left this for your next message." {
			t.Errorf("answers %q", got)
		}
		w.accept(p, w.private("ann", "do it"))
		pass(time.Second)
		open := w.open()
		w.accept(p, w.private("ann", "something instead"))
		pass(time.Second)
		w.accept(p, w.press("ann", &open[0], "y"))
		pass(time.Minute)
		if got := w.texts(bot.Final); len(got) != 5 || got[3] != "re: do it" || got[4] != "re: do it|something instead" {
			t.Errorf("answers %q", got)
		}
	})
}

// chosen is what people have chosen for themselves: Ann, that her next text ends the work.
type chosen struct{}

func (chosen) Language(_, told string) string { return told }

func (chosen) Busy(caller string) string {
	if strings.HasSuffix(caller, "ann") {
		return string(dispatch.Interrupt)
	}
	return ""
}

// TestBusyChosen: what a person has chosen holds for their turns, and what the operator has set for those of others.
func TestBusyChosen(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asked record
		w.talks(changing(&asked), &chain{w: w, ran: map[string]int{}})
		w.parts = func(parts *dispatch.Parts) { parts.Personal = chosen{} }
		p := w.start()
		w.accept(p, w.private("ann", "think"))
		w.accept(p, w.private("ben", "think"))
		pass(time.Second)
		w.accept(p, w.private("ann", "this instead"))
		w.accept(p, w.private("ben", "and this"))
		pass(time.Second)
		if got := w.texts(bot.Final); len(got) != 2 || got[0] != "I left this for your next message." {
			t.Errorf("answers %q", got)
		}
	})
}

// TestBusyInterruptElsewhere: the process that accepts the text is not the one that runs the turn.
func TestBusyInterruptElsewhere(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.opts.Busy, w.opts.Shared = dispatch.Interrupt, true
		var asked record
		w.talks(changing(&asked), &chain{w: w, ran: map[string]int{}})
		p, q := w.start(), w.start()
		w.accept(p, w.private("ann", "think"))
		pass(time.Second)
		w.accept(q, w.private("ann", "this instead"))
		pass(time.Minute)
		if got := w.texts(bot.Final); len(got) != 2 || got[0] != "I left this for your next message." {
			t.Errorf("answers %q", got)
		}
	})
}

// TestEveryPointOfSteering: the store fails, or the process dies, before or after each Change of a turn that a text
// joins. The text is read once, by this turn or by one of its own, and the tool runs once.
func TestEveryPointOfSteering(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			joined := 0
			for at, hit := 1, true; hit; at++ {
				t.Run(fmt.Sprintf("crash=%t after=%t at=%d", crash, after, at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						once := false
						hit, once = steerPoint(t, &injector{at: at, after: after, crash: crash})
						if once {
							joined++
						}
					})
				})
			}
			if joined == 0 {
				t.Errorf("crash=%t after=%t: no text ever joined", crash, after)
			}
		}
	}
}

func steerPoint(t *testing.T, inject *injector) (hit, joined bool) {
	w := setup(t)
	w.opts.Busy, w.opts.Grace = dispatch.Steer, time.Second
	c := &chain{w: w, ran: map[string]int{}}
	w.talks(func(_ context.Context, req *llm.Request) (*llm.Response, error) {
		if last := req.Messages[len(req.Messages)-1]; strings.HasSuffix(last.Text, "look") {
			return &llm.Response{Uses: []llm.ToolUse{{ID: "1", Name: "look", Args: []byte(`{}`)}, {ID: "2", Name: "change", Args: []byte(`{}`)}}, Stop: llm.StopTools}, nil
		}
		return &llm.Response{Text: said(req), Stop: llm.StopEnd}, nil
	}, c)
	w.store.Hooks.BeforeApply = func(*bot.Change) error { return inject.apply(false) }
	w.store.Hooks.AfterApply = func(*bot.Change) error { return inject.apply(true) }
	p := w.start()
	steps := []func() *bot.Message{
		func() *bot.Message { return new(w.private("ann", "look")) },
		func() *bot.Message {
			if len(w.open()) != 1 {
				return nil
			}
			return new(w.private("ann", "briefly"))
		},
		func() *bot.Message { open := w.open(); return new(w.press("ann", &open[0], "y")) },
	}
	var now []turn.Raw
	for second, quiet := 0, 0; second < 500 && quiet < 5; second++ {
		if inject.crashed() {
			p.stop()
			inject.revive()
			p = w.start()
		}
		if now == nil && len(steps) > 0 {
			if message := steps[0](); message != nil {
				now, steps = []turn.Raw{raw(t, *message)}, steps[1:]
			}
		}
		if now != nil && p.Accept(t.Context(), now) == nil {
			now = nil
		}
		pass(time.Second)
		c := w.counts()
		if quiet++; now != nil || len(steps) > 0 || c.Queued+c.Running+c.Parked+c.Waiting > 0 {
			quiet = 0
		}
	}
	if got := w.counts(); got.Queued+got.DeadLetters+got.Running+got.Parked+got.Waiting != 0 {
		t.Errorf("something is left: %+v", got)
	}
	finals := w.texts(bot.Final)
	if n := strings.Count(finals[len(finals)-1], "briefly"); n != 1 || c.ran["change"] > 1 {
		t.Errorf("read %d times, ran %v: %q", n, c.ran, finals)
	}
	p.stop()
	return inject.hit, slices.Equal(finals, []string{"look|[said while you were working]\nbriefly"})
}
