package dispatch_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
)

// order keeps who began a turn, one after the other, and lets none end before open is closed.
type order struct {
	mu    sync.Mutex
	began []string
	open  chan struct{}
}

func (o *order) run(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
	o.mu.Lock()
	o.began = append(o.began, turn.Origin.Caller)
	o.mu.Unlock()
	if out, err, ok := until(ctx, o.open, turn); !ok {
		return out, err
	}
	return echo(ctx, turn, log, sink)
}

// TestFairTurns: a person who has written in hundreds of chats, or hundreds of messages in one, lets another's first
// message begin after at most one more of theirs, whatever kind of chats they are and also when a new process finds all
// of it in the store.
func TestFairTurns(t *testing.T) {
	const many = 250
	chats := map[string]func(w *world, i int) bot.Message{
		"chats of their own": func(w *world, i int) bot.Message { return w.group(fmt.Sprint("g", i), "greedy", "x") },
		"shared chats":       func(w *world, i int) bot.Message { return w.group(fmt.Sprint("s", i), "greedy", "x") },
		"topics of one chat": func(w *world, i int) bot.Message {
			m := w.group("forum", "greedy", "x")
			m.Place.Thread = fmt.Sprint(i + 1)
			return m
		},
		"messages in one": func(w *world, _ int) bot.Message { return w.private("greedy", "x") },
		"topics of a private": func(w *world, i int) bot.Message {
			m := w.private("greedy", "x")
			m.Place.Thread = fmt.Sprint(i + 1)
			return m
		},
	}
	for name, write := range chats {
		for _, restarted := range []bool{false, true} {
			if restarted && name == "shared chats" {
				continue // whose turn it is stands in their messages alone: the chats are parties then
			}
			t.Run(fmt.Sprintf("%s, restarted %t", name, restarted), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) {
					o := &order{open: make(chan struct{})}
					w.runner = o.run
					most := 2
					if w.opts.Concurrency = 1; restarted { // so many are read from the store at once
						w.opts.Concurrency, most = 64, 16
					}
					p := w.start()
					var list []bot.Message
					for i := range many {
						list = append(list, write(w, i))
					}
					w.accept(p, list...)
					w.accept(p, w.private("ann", "hello"))
					if restarted {
						p.stop()
						o.began = nil
						w.start()
						pass(2 * time.Second) // as many begin as may, and none ends
						if !slices.Contains(o.began, "test:ann") {
							t.Errorf("ann waits behind %d turns", len(o.began))
						}
					}
					close(o.open)
					pass(time.Minute)
					at := slices.Index(o.began, "test:ann")
					if at < 0 || at > most {
						t.Errorf("%d of %d turns of the other began before the first of ann", at, len(o.began))
					}
					if n := len(w.texts(bot.Final)); n != many+1 {
						t.Errorf("%d answers, want %d", n, many+1)
					}
				})
			})
		}
	}
}

// TestMemoryBound: as many turns run at once as their histories have room for together, and one at least.
func TestMemoryBound(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		o := &order{open: make(chan struct{})}
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			if _, err := log.Load(ctx, room); err != nil {
				return agent.Outcome{}, err
			}
			return o.run(ctx, turn, log, sink)
		}
		w.opts.Memory = 1 << 20
		p := w.start()
		for i := range 30 {
			w.accept(p, w.private(fmt.Sprint("short", i), "x"))
		}
		short := p.Working()
		if short < 4 || short > 8 {
			t.Errorf("%d turns with short histories at once in 1 MiB", short)
		}
		close(o.open)
		pass(time.Minute)
		o.open = make(chan struct{})
		for i := range 8 { // the service learns that histories are long
			w.accept(p, w.private(fmt.Sprint("long", i), strings.Repeat("x", 400<<10)))
		}
		if long := p.Working(); long < 1 || long >= short {
			t.Errorf("%d turns with long histories at once, %d with short ones", long, short)
		}
		close(o.open)
		pass(time.Minute)
		if n := len(w.texts(bot.Final)); n != 38 {
			t.Errorf("%d answers, want 38", n)
		}
	})
}
