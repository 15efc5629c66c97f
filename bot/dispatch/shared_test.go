package dispatch_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/bot"
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
