package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// dated gives messages the dates of their channel, in whole seconds from now on.
func dated(seconds int, m bot.Message) bot.Message {
	m.At = time.Now().Add(time.Duration(seconds) * time.Second).Truncate(time.Second)
	return m
}

func (w *world) forwarded(person, text string) bot.Message {
	m := w.private(person, text)
	m.Forwarded = true
	return m
}

func (w *world) pictured(person, album, text string) bot.Message {
	m := w.private(person, text)
	m.Files = []bot.Attachment{{Kind: bot.Photo, ID: "f" + m.ID, Album: album}}
	return m
}

// TestGather plays what people send within a window of 600 ms; "…" waits that long and a little more.
func TestGather(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 4000)
	for name, test := range map[string]struct {
		send func(w *world) []bot.Message // an empty one is a pause
		want []string
	}{
		"forwards and a comment": {func(w *world) []bot.Message {
			return []bot.Message{w.forwarded("ann", "one"), w.forwarded("ann", "two"), w.private("ann", "why?")}
		}, []string{"re: one\ntwo\nwhy?"}},
		"forwards that end": {func(w *world) []bot.Message {
			return []bot.Message{w.forwarded("ann", "one"), w.forwarded("ann", "two")}
		}, []string{"re: one\ntwo"}},
		"forwards apart": {func(w *world) []bot.Message {
			return []bot.Message{w.forwarded("ann", "one"), {}, w.forwarded("ann", "two")}
		}, []string{"re: one", "re: two"}},
		"a split text": {func(w *world) []bot.Message {
			return []bot.Message{w.private("ann", long), w.private("ann", "b"+long), w.private("ann", "c")}
		}, []string{"re: " + long + "\nb" + long + "\nc"}},
		"an ordinary message waits for nothing": {func(w *world) []bot.Message {
			return []bot.Message{w.private("ann", "one"), w.private("ann", "two")}
		}, []string{"re: one", "re: two"}},
		"two people": {func(w *world) []bot.Message {
			return []bot.Message{w.group("s1", "ann", long), w.group("s1", "ben", "two")}
		}, []string{"re: " + long, "re: two"}},
		"a command between": {func(w *world) []bot.Message {
			return []bot.Message{w.forwarded("ann", "one"), w.private("ann", "/lane"), w.private("ann", "two")}
		}, []string{"re: one", "re: two"}},
		"an answer to a message": {func(w *world) []bot.Message {
			m := w.private("ann", "two")
			m.Reply = &bot.Quote{ID: "9", Text: "quoted"}
			return []bot.Message{w.forwarded("ann", "one"), m, w.private("ann", "three")}
		}, []string{"re: one", "re: two", "re: three"}},
		"an album": {func(w *world) []bot.Message {
			return []bot.Message{w.pictured("ann", "a", "look"), w.pictured("ann", "a", ""), w.pictured("ann", "a", "")}
		}, []string{"re: look"}},
		"two albums": {func(w *world) []bot.Message {
			return []bot.Message{w.pictured("ann", "a", "one"), w.pictured("ann", "a", ""), {}, {}, w.pictured("ann", "b", "two"), w.pictured("ann", "b", "")}
		}, []string{"re: one", "re: two"}},
		"written hours apart, delivered at once": {func(w *world) []bot.Message {
			return []bot.Message{dated(-7200, w.forwarded("ann", "one")), dated(-3600, w.forwarded("ann", "two")), dated(0, w.private("ann", "three"))}
		}, []string{"re: one", "re: two", "re: three"}},
		"written in the same second": {func(w *world) []bot.Message {
			return []bot.Message{dated(0, w.forwarded("ann", "one")), dated(1, w.private("ann", "two"))}
		}, []string{"re: one\ntwo"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := setup(t)
				w.opts.Merge = 600 * time.Millisecond
				p := w.start()
				for _, m := range test.send(w) {
					if m.ID == "" {
						pass(700 * time.Millisecond)
						continue
					}
					w.accept(p, m)
				}
				pass(2 * time.Second)
				w.want(bot.Final, test.want...)
				if c := w.counts(); c.Queued != 0 || c.DeadLetters != 0 {
					t.Errorf("left: %+v", c)
				}
			})
		})
	}
}

// What waits while a turn runs is taken together by the same rule, and albums even where merging is off.
func TestGatherBehindATurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t)
		gate := make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			if out, err, more := until(ctx, gate, turn); !more {
				return out, err
			}
			return echo(ctx, turn, log, sink)
		}
		p := w.start()
		w.accept(p, w.private("ann", "first"))
		w.accept(p, w.private("ann", "second"))
		w.accept(p, w.pictured("ann", "a", "album"))
		w.accept(p, w.pictured("ann", "a", ""))
		close(gate)
		pass(2 * time.Second)
		w.want(bot.Final, "re: first", "re: second", "re: album")
	})
}

// A process that ends in the window loses nothing: the next one decides from what is stored, and answers once.
func TestGatherSurvivesAProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Merge, w.opts.Lease = 5*time.Second, time.Minute
		p := w.start()
		w.accept(p, w.forwarded("ann", "one"))
		w.accept(p, w.forwarded("ann", "two"))
		p.stop()
		w.want(bot.Final)
		w.start()
		pass(time.Second)
		w.want(bot.Final) // the window is still open
		pass(5 * time.Second)
		w.want(bot.Final, "re: one\ntwo")
		pass(time.Minute)
		w.want(bot.Final, "re: one\ntwo")
	})
}

// receiver reads files by function.
type receiver func(ctx context.Context, sent *turn.Sent) (turn.Received, error)

func (r receiver) Receive(ctx context.Context, sent *turn.Sent) (turn.Received, error) {
	return r(ctx, sent)
}

// reading is a world whose messages' files are read by a function.
func reading(t *testing.T, read receiver) *world {
	t.Helper()
	w := setup(t)
	w.parts = func(p *dispatch.Parts) { p.Attachments = read }
	return w
}

func TestFilesAreReadBeforeTheTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		typed := 0
		w := reading(t, func(ctx context.Context, sent *turn.Sent) (turn.Received, error) {
			select {
			case <-time.After(9 * time.Second):
			case <-ctx.Done():
				return turn.Received{}, ctx.Err()
			}
			return turn.Received{Parts: []llm.Part{{Kind: llm.TextPart, Text: "read " + sent.Message.Files[0].ID}}, Notices: []string{"careful"}, USD: 0.5, Flagged: true}, nil
		})
		plain := w.parts
		w.parts = func(p *dispatch.Parts) {
			plain(p)
			p.Typing = func(context.Context, bot.Place) { typed++ }
		}
		p := w.start()
		w.accept(p, w.pictured("ann", "", "look"))
		w.accept(p, w.private("ben", "hello")) // is held up by nobody's file
		w.want(bot.Final, "re: hello")
		pass(10 * time.Second)
		w.want(bot.Final, "re: hello", "re: look")
		w.want(bot.Reply, "careful")
		entries, err := w.store.Journal(t.Context(), session("ann"), 0)
		if err != nil || len(entries) == 0 || len(entries[0].Parts) != 1 || entries[0].Parts[0].Text != "read f1" || entries[0].USD != 0.5 || !entries[0].Flagged {
			t.Errorf("journal: %+v, %v", entries, err)
		}
		if typed != 3 {
			t.Errorf("typing was shown %d times in 9 s", typed)
		}
	})
}

// A process that ends while a file is read, or dies, leaves the message to the next one, which reads it again.
func TestFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		w := reading(t, func(ctx context.Context, _ *turn.Sent) (turn.Received, error) {
			if reads++; reads == 1 {
				<-ctx.Done()
				return turn.Received{}, ctx.Err()
			}
			return turn.Received{}, nil
		})
		p := w.start()
		w.accept(p, w.pictured("ann", "", "look"))
		began := time.Now()
		p.stop()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the end waited %s for a download", took)
		}
		w.want(bot.Final)
		w.start()
		pass(2 * time.Second)
		w.want(bot.Final, "re: look")
		if reads != 2 || w.meter.undone != 0 || len(w.meter.turns) != 1 {
			t.Errorf("%d reads, %d charges given back, turns %v", reads, w.meter.undone, w.meter.turns)
		}
	})
}

func TestAStopEndsTheReadingOfFiles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := reading(t, func(ctx context.Context, _ *turn.Sent) (turn.Received, error) {
			<-ctx.Done()
			return turn.Received{}, ctx.Err()
		})
		p := w.start()
		w.accept(p, w.pictured("ann", "", "look"))
		w.accept(p, w.private("ann", "/stop"))
		w.accept(p, w.private("ann", "next"))
		pass(2 * time.Second)
		w.want(bot.Final, "re: next")
		if w.meter.undone != 1 || w.counts().Queued != 0 {
			t.Errorf("%d charges given back, %+v", w.meter.undone, w.counts())
		}
	})
}

// A reader that fails or panics is no reason to lose a message: it is tried again, and given up with a word.
func TestAReaderThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		w := reading(t, func(context.Context, *turn.Sent) (turn.Received, error) {
			if reads++; reads == 1 {
				return turn.Received{}, errors.New("no disk")
			}
			if reads == 2 {
				panic("reader")
			}
			return turn.Received{}, nil
		})
		p := w.start()
		w.accept(p, w.pictured("ann", "", "look"))
		pass(10 * time.Second)
		w.want(bot.Final, "re: look")
	})
}

// TestReadingIsPaidFor: what the reading of a file costs is stored at once and once, also if its turn never begins
// because the process ends; the next process, which reads the file again, pays again.
func TestReadingIsPaidFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		w := reading(t, func(ctx context.Context, _ *turn.Sent) (turn.Received, error) {
			payer, ok := cost.PayerOf(ctx)
			if !ok {
				return turn.Received{}, errors.New("nobody pays")
			}
			reads++
			if err := payer.Settle(ctx, fmt.Sprintf("transcribe/%d", reads), cost.Amount{USD: 0.01}); err != nil {
				return turn.Received{}, err
			}
			if reads == 1 {
				<-ctx.Done()
				return turn.Received{}, ctx.Err()
			}
			return turn.Received{USD: 0.01}, nil
		})
		spent := func(want int64) {
			t.Helper()
			got, err := w.store.Used(t.Context(), "user/1", "usd", "2026-01-01")
			if err != nil || got != want {
				t.Errorf("charged %d, %v; want %d", got, err, want)
			}
		}
		p := w.start()
		w.accept(p, w.pictured("ann", "", "listen"))
		p.stop()
		spent(10_000)
		w.start()
		pass(time.Minute)
		w.want(bot.Final, "re: listen")
		spent(20_000)
	})
}
