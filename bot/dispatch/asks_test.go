package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools"
)

// family is a Runner of turns with two sub-agents: the first asks at once while the second works until its gate opens;
// then that one asks too. With both decisions it answers, with one it parks.
type family struct {
	*world
	gate chan struct{}
	mu   sync.Mutex
	runs []string // which decisions each run found when the second sub-agent had ended
}

func (f *family) run(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
	text, err := asked(ctx, turn, log)
	if err != nil || !strings.HasPrefix(text, "share") {
		return answered(turn, "re: "+text), err
	}
	open, _, err := f.decided(ctx, turn)
	if err != nil {
		return agent.Outcome{}, err
	}
	if len(open) > 0 {
		if err := log.(agent.Asker).Ask(ctx, open[:1], journal.Stats{}); err != nil {
			return agent.Outcome{}, err
		}
	}
	if out, err, ok := until(ctx, f.gate, turn); !ok {
		return out, err
	}
	open, saw, err := f.decided(ctx, turn)
	if err != nil {
		return agent.Outcome{}, err
	}
	f.mu.Lock()
	f.runs = append(f.runs, saw)
	f.mu.Unlock()
	if len(open) > 0 {
		return agent.Outcome{Kind: agent.Parked, Questions: open}, nil
	}
	return answered(turn, "shared"), nil
}

// decided returns the questions without a decision, and the calls with one.
func (f *family) decided(ctx context.Context, turn *agent.Turn) (open []tools.Question, saw string, err error) {
	for _, name := range []string{"one", "two"} {
		a, err := f.broker.Approval(ctx, turn.Origin.Session, name, "hash of "+name)
		switch {
		case err != nil:
			return nil, "", err
		case a.State == "approved":
			saw += name + " "
		default:
			open = append(open, tools.Question{
				Call: name, Tool: "bash", Hash: "hash of " + name, Show: name, Agent: name, Caller: turn.Origin.Caller,
			})
		}
	}
	return open, saw, nil
}

// shared begins such a turn, and waits until the first sub-agent has asked.
func shared(w *world) (*family, *process) {
	f := &family{world: w, gate: make(chan struct{})}
	w.runner = f.run
	p := w.start()
	w.accept(p, w.private("ann", "share"))
	if open := w.open(); len(open) != 1 || open[0].Call != "one" || len(w.texts(bot.Question)) != 1 || w.lane(session("ann")).State != bot.Running {
		w.t.Fatalf("questions %+v, lane %+v", w.open(), w.lane(session("ann")))
	}
	return f, p
}

// TestAskedEarly: the card of a sub-agent is sent while another one works. What is decided about it meanwhile is acted
// on when the turn has parked, although another question is open, and no card is sent twice.
func TestAskedEarly(t *testing.T) {
	for _, when := range []string{"while the other works", "when the other asks too"} {
		t.Run(when, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				f, p := shared(w)
				early := when == "while the other works"
				one := w.open()[0]
				if early {
					w.accept(p, w.press("ann", &one, "y"))
					w.want(bot.Toast, "Noted.")
				}
				close(f.gate)
				synctest.Wait()
				if !early {
					w.accept(p, w.press("ann", &one, "y"))
				}
				two := w.open()
				if len(two) != 1 || two[0].Call != "two" || len(w.texts(bot.Question)) != 2 {
					t.Fatalf("open %+v, cards %q", two, w.texts(bot.Question))
				}
				w.accept(p, w.press("ann", &two[0], "y"))
				w.want(bot.Final, "shared")
				if last := len(f.runs) - 1; f.runs[last] != "one two " || f.runs[last-1] != "one " {
					t.Errorf("runs found %q", f.runs)
				}
			})
		})
	}
}

// TestAskedEarlyElsewhere: the process dies while a sub-agent works, before or after the decision about another one. The
// next one goes on with the question as it is: one card, one decision.
func TestAskedEarlyElsewhere(t *testing.T) {
	for _, decided := range []bool{true, false} {
		t.Run(fmt.Sprintf("decided %t", decided), func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				f, p := shared(w)
				one := w.open()[0]
				if decided {
					w.accept(p, w.press("ann", &one, "y"))
				}
				p.stop()
				p = w.start()
				pass(2 * time.Minute) // the lease of the dead process
				if !decided {
					w.accept(p, w.press("ann", &one, "y"))
				}
				close(f.gate)
				synctest.Wait()
				two := w.open()
				if len(two) != 1 || two[0].Call != "two" || len(w.texts(bot.Question)) != 2 {
					t.Fatalf("open %+v, cards %q", two, w.texts(bot.Question))
				}
				w.accept(p, w.press("ann", &two[0], "y"))
				w.want(bot.Final, "shared")
			})
		})
	}
}

// TestAskedEarlyStopped: a turn that is stopped while a sub-agent works withdraws the card of another one, and a press
// on it does nothing.
func TestAskedEarlyStopped(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		_, p := shared(w)
		one := w.open()[0]
		w.accept(p, w.private("ann", "/stop"))
		if len(w.open()) != 0 {
			t.Errorf("open questions %+v", w.open())
		}
		w.accept(p, w.press("ann", &one, "y"))
		if got := w.texts(bot.Toast); len(got) != 1 || got[0] == "Noted." {
			t.Errorf("the press was answered with %q", got)
		}
		w.accept(p, w.private("ann", "next"))
		w.want(bot.Final, "Stopped before anything was said.", "re: next")
	})
}

// TestAskedEarlyAnswered: a turn that ends although a question is open withdraws it: the work does not need it any more.
func TestAskedEarlyAnswered(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			text, err := asked(ctx, turn, log)
			if err == nil {
				err = log.(agent.Asker).Ask(ctx, []tools.Question{{Call: "one", Tool: "bash", Hash: "h", Show: "ls"}}, journal.Stats{})
			}
			return answered(turn, "re: "+text), err
		}
		w.accept(w.start(), w.private("ann", "hi"))
		w.want(bot.Final, "re: hi")
		if len(w.open()) != 0 || len(w.texts(bot.Question)) != 1 {
			t.Errorf("open %+v, cards %q", w.open(), w.texts(bot.Question))
		}
	})
}

// TestAskedEarlyLost: a process that has lost the turn meanwhile asks nobody.
func TestAskedEarlyLost(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var failed error
		begun := make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			lane := w.lane(session("ann"))
			if lane.Owner == "p1" {
				_, err := w.store.Apply(ctx, &bot.Change{
					Lease: &bot.Lease{Session: lane.Session, Fence: lane.Fence}, Lanes: []bot.LaneUpdate{{Session: lane.Session, Release: true}},
				})
				if err == nil {
					_, err = w.store.Apply(ctx, &bot.Change{Claim: &bot.Claim{Session: lane.Session, Owner: "other", Until: time.Now().Add(time.Hour), Fence: lane.Fence}})
				}
				if err != nil {
					w.t.Errorf("take the lane: %v", err)
				}
			}
			failed = log.(agent.Asker).Ask(ctx, []tools.Question{{Call: "one", Tool: "bash", Hash: "h", Show: "ls"}}, journal.Stats{})
			close(begun)
			return agent.Outcome{}, failed
		}
		w.accept(w.start(), w.private("ann", "hi"))
		<-begun
		if !errors.Is(failed, bot.ErrLost) || len(w.open()) != 0 || len(w.texts(bot.Question)) != 0 {
			t.Errorf("asked with %v: %+v", failed, w.open())
		}
	})
}
