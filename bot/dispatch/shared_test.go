package dispatch_test

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// watched counts how often each command is computed, and how often something followed from it.
type watched struct {
	turn.Commands
	mu            sync.Mutex
	ran, followed map[string]int
}

func watch(of turn.Commands) *watched {
	return &watched{Commands: of, ran: map[string]int{}, followed: map[string]int{}}
}

func (c *watched) note(in map[string]int, id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in[id]++
}

func (c *watched) Run(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	c.note(c.ran, call.Message.ID)
	e, err := c.Commands.Run(ctx, call)
	e.Then = func(context.Context, *bot.Applied) (turn.Effect, error) {
		c.note(c.followed, call.Message.ID)
		return turn.Effect{}, nil
	}
	return e, err
}

// TestSharedExpress: of several processes on one store the one that accepted a command answers it, once; when it is
// gone, another one does, soon.
func TestSharedExpress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t)
		w.opts.Shared = true
		commands := watch(w.commands)
		w.parts = func(p *dispatch.Parts) { p.Commands = commands }
		processes := []*process{w.start(), w.start(), w.start()}
		synctest.Wait()
		var want []string
		for i := range 60 {
			w.accept(processes[i%3], w.private("ann", fmt.Sprintf("/status%d", i)))
			want = append(want, fmt.Sprintf("/status%d running=false admin=false", i))
		}
		pass(10 * time.Second)
		w.want(bot.Reply, want...)
		for id, n := range commands.ran {
			if n != 1 {
				t.Errorf("command %s was computed %d times", id, n)
			}
		}
		// Accepted by a process that dies before it handles anything: Accept without Run.
		dead := w.start()
		dead.stop()
		w.accept(dead, w.private("ben", "/status"))
		pass(5 * time.Second)
		w.want(bot.Reply, append(want, "/status running=false admin=false")...)
	})
}

// looks counts reads of a store.
type looks struct {
	*bottest.Store
	lanes, stops atomic.Int64
}

func (l *looks) Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	l.lanes.Add(1)
	return l.Store.Lane(ctx, session)
}

func (l *looks) Stops(ctx context.Context, owner string) ([]bot.Stop, error) {
	l.stops.Add(1)
	return l.Store.Stops(ctx, owner)
}

// TestStopsAreOneLook: a process looks once a second for stops that another one was asked for, however many turns it has
// at work, and does not look when it has none. A stop is heeded within that second, of its turn alone.
func TestStopsAreOneLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t)
		store := &looks{Store: w.store}
		w.parts = func(p *dispatch.Parts) { p.Store = store }
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			out, err, _ := until(ctx, nil, turn)
			return out, err
		}
		p := w.start()
		pass(5 * time.Second)
		if n := store.stops.Load(); n != 0 {
			t.Errorf("%d looks for stops without a turn", n)
		}
		const turns = 30
		for i := range turns {
			w.accept(p, w.private(fmt.Sprint("p", i), "work"))
		}
		pass(2 * time.Second)
		store.lanes.Store(0)
		store.stops.Store(0)
		pass(10 * time.Second)
		if lanes, stops := store.lanes.Load(), store.stops.Load(); p.Working() != turns || lanes != 0 || stops < 9 || stops > 11 {
			t.Errorf("%d turns at work: %d reads of lanes and %d looks for stops in 10 s, want none and ten", p.Working(), lanes, stops)
		}
		for i, other := range []string{"", "an earlier turn"} { // the stop of a turn that is over counts for nothing
			lane := w.lane(session(fmt.Sprint("p", i)))
			turn := cmp.Or(other, lane.Turn)
			if _, err := w.store.Apply(t.Context(), &bot.Change{Lanes: []bot.LaneUpdate{{Session: lane.Session, Stop: &turn}}}); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		if p.Working() != turns-1 || w.lane(session("p0")).Turn != "" {
			t.Errorf("%d turns at work a second after one was stopped, want %d", p.Working(), turns-1)
		}
	})
}

// TestHandledOnce: processes that handle the same arrivals in the same moment act on each once.
func TestHandledOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := setup(t)
		commands := watch(w.commands)
		w.parts = func(p *dispatch.Parts) { p.Commands = commands }
		var processes []*process
		for range 4 {
			processes = append(processes, w.start())
		}
		var want []string
		for i := range 25 {
			m := w.private("ann", fmt.Sprintf("/status%d", i))
			want = append(want, fmt.Sprintf("/status%d running=false admin=false", i))
			w.accept(processes[0], m)
			for _, p := range processes { // a hint each: all of them look
				w.accept(p, m)
			}
		}
		pass(5 * time.Second)
		w.want(bot.Reply, want...)
		for id, n := range commands.followed {
			if n != 1 {
				t.Errorf("what follows from command %s was done %d times", id, n)
			}
		}
		if c := w.counts(); c.Queued != 0 || c.DeadLetters != 0 {
			t.Errorf("left over: %+v", c)
		}
	})
}

// TestMovedSession: what a model has to be told is read from the store where another process may have had the session
// last, and only there.
func TestMovedSession(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shared bool
		want   []bool
	}{{true, []bool{true, false, true, false}}, {false, []bool{false, false, false}}} {
		synctest.Test(t, func(t *testing.T) {
			w := setup(t)
			w.opts.Shared = c.shared
			var moved []bool
			w.parts = func(p *dispatch.Parts) {
				p.News = func(_ context.Context, _ bot.SessionKey, m bool) (turn.News, error) {
					moved = append(moved, m)
					return turn.News{}, nil
				}
			}
			p := w.start()
			for i := range c.want {
				if i == 2 { // another process has the session from now on
					p.stop()
					p = w.start()
				}
				moved = nil
				w.accept(p, w.private("ann", fmt.Sprintf("message %d", i)))
				pass(10 * time.Second)
				// of a turn that was refused first, since what was remembered is out of date, the last reading counts
				if n := len(moved); n == 0 || moved[n-1] != c.want[i] {
					t.Errorf("shared %t, message %d: moved %v, want %v", c.shared, i, moved, c.want[i])
				}
			}
		})
	}
}
