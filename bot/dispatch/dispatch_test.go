package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// in runs a test with a clock of its own.
func in(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, setup(t)) })
}

func TestAnswersOnceAndInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.start()
		one, two, three := w.private("ann", "one"), w.private("ann", "two"), w.private("ann", "three")
		w.accept(p, one, two, one)
		w.accept(p, two, three)
		pass(time.Minute)
		w.want(bot.Final, "re: one", "re: two", "re: three")
		if c := w.counts(); c.Queued != 0 || c.Running != 0 {
			t.Errorf("left: %+v", c)
		}
		if err := p.Accept(t.Context(), nil); err != nil {
			t.Error(err)
		}
	})
}

func TestManySessionsAtOnceOneTurnEach(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		open := make(chan struct{})
		var mu sync.Mutex
		running, most := map[string]int{}, 0
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			mu.Lock()
			running[turn.Origin.Session]++
			if running[turn.Origin.Session] > 1 {
				t.Errorf("two turns at once in %s", turn.Origin.Session)
			}
			most = max(most, len(running))
			mu.Unlock()
			defer func() { mu.Lock(); delete(running, turn.Origin.Session); mu.Unlock() }()
			if out, err, ok := until(ctx, open, turn); !ok {
				return out, err
			}
			return echo(ctx, turn, log, sink)
		}
		w.opts.Concurrency = 5
		p := w.start()
		for i := range 8 {
			w.accept(p, w.private(fmt.Sprintf("p%d", i), "a"), w.private(fmt.Sprintf("p%d", i), "b"))
		}
		if most != 5 || p.Working() != 5 || p.Queued() != 3 {
			t.Errorf("at once: %d, working %d, queued %d", most, p.Working(), p.Queued())
		}
		close(open)
		pass(time.Second)
		if n := len(w.texts(bot.Final)); n != 16 {
			t.Errorf("%d answers, want 16", n)
		}
	})
}

func TestPerCallerCapStarvesNobody(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		open := make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			if turn.Origin.Caller == "test:greedy" {
				if out, err, ok := until(ctx, open, turn); !ok {
					return out, err
				}
			}
			return echo(ctx, turn, log, sink)
		}
		w.opts.Concurrency, w.opts.PerCaller = 4, 2
		p := w.start()
		for i := range 20 {
			w.accept(p, w.group(fmt.Sprintf("g%d", i), "greedy", "x"))
		}
		w.accept(p, w.private("ann", "hello"))
		w.want(bot.Final, "re: hello")
		close(open)
		pass(time.Second)
		if n := len(w.texts(bot.Final)); n != 21 {
			t.Errorf("%d answers, want 21", n)
		}
	})
}

func TestStop(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		never := make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			out, err, _ := until(ctx, never, turn)
			return out, err
		}
		p := w.start()
		w.accept(p, w.private("ann", "work"), w.private("ann", "waits"))
		w.accept(p, w.private("ann", "/status")) // overtakes
		w.want(bot.Reply, "/status running=true admin=false")
		w.accept(p, w.private("ann", "/stop"))
		w.want(bot.Final, "Stopped before anything was said.")
		if c := w.counts(); c.Queued != 0 || c.Running != 0 {
			t.Errorf("left: %+v", c)
		}
		// The button of a draft.
		w.accept(p, w.private("ann", "more"))
		tap := w.private("ann", "")
		tap.Kind = bot.StopTap
		w.accept(p, tap)
		if n := len(w.texts(bot.Final)); n != 2 {
			t.Errorf("the button stopped nothing: %q", w.rows())
		}
		tap.ID = "again"
		w.accept(p, tap)
		if c := w.counts(); c.Queued != 0 {
			t.Errorf("left: %+v", c)
		}
	})
}

// A message that begins in the very moment /stop drops it is stopped, not answered behind the back of the person.
func TestStopDropsAMessageThatBegins(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		open, begun := make(chan struct{}), make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			if turn.Origin.Caller == "test:ann" {
				close(begun)
				out, err, _ := until(ctx, make(chan struct{}), turn)
				return out, err
			}
			out, err, ok := until(ctx, open, turn)
			if ok {
				return echo(ctx, turn, log, nil)
			}
			return out, err
		}
		w.opts.Concurrency = 1
		p := w.start()
		w.accept(p, w.private("bob", "first"))
		w.accept(p, w.private("ann", "behind")) // waits for a worker
		w.commands.during = func() {            // /stop has read that nothing runs
			close(open)
			<-begun
		}
		w.accept(p, w.private("ann", "/stop"))
		w.want(bot.Reply, "stopping")
		w.want(bot.Final, "re: first", "Stopped before anything was said.")
		if c := w.counts(); c.Queued != 0 || c.Running != 0 {
			t.Errorf("counts %+v", c)
		}
	})
}

// The reply to a command that is too long for one message comes as several, as an answer does, with the button below the
// last one; a delivery that comes twice adds none.
func TestLongReplyToACommand(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		command := w.private("ann", "/long")
		w.accept(w.start(), command, command)
		w.want(bot.Reply, "one", "two", "three")
		rows, err := w.store.Rows(t.Context(), session("ann"), 10)
		if err != nil || len(rows) != 3 {
			t.Fatalf("%d rows, %v", len(rows), err)
		}
		for i := range rows {
			if rows[i].Content.Text != "one" && rows[i].ReplyTo != "" {
				t.Errorf("row %d replies to %q", i, rows[i].ReplyTo)
			}
			if last := rows[i].Content.Text == "three"; (rows[i].Content.Buttons != nil) != last {
				t.Errorf("row %d has the buttons %+v", i, rows[i].Content.Buttons)
			}
		}
	})
}

// The process dies between dropping a message that had begun and stopping its turn.
func TestOrphanedTurnEnds(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		never := make(chan struct{})
		first := func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			out, err, _ := until(ctx, never, turn)
			return out, err
		}
		w.runner = first
		w.opts.Grace = time.Nanosecond
		p := w.start()
		w.accept(p, w.private("ann", "work"))
		p.stop()
		seq := w.lane(session("ann")).Arrival
		if _, err := w.store.Apply(t.Context(), &bot.Change{Done: []int64{seq}}); err != nil {
			t.Fatal(err)
		}
		w.runner = echo
		p = w.start()
		w.accept(p, w.private("ann", "next"))
		pass(2 * time.Minute)
		w.want(bot.Final, "re: next")
		if lane := w.lane(session("ann")); lane.Turn != "" || lane.State != bot.Idle {
			t.Errorf("lane: %+v", lane)
		}
	})
}

func TestClear(t *testing.T) {
	park := func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
		if errors.Is(context.Cause(ctx), agent.ErrStopped) {
			return ended(turn, journal.ReasonStopped), nil
		}
		text, err := asked(ctx, turn, log)
		if text != "park" {
			return answered(turn, "re: "+text), err
		}
		return agent.Outcome{Kind: agent.Parked, Questions: []tools.Question{{Call: "c1", Tool: "bash", Hash: "h", Show: "ls"}}}, err
	}
	busy := func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
		text, err := asked(ctx, turn, log)
		if text != "work" || err != nil {
			return answered(turn, "re: "+text), err
		}
		out, err, _ := until(ctx, make(chan struct{}), turn)
		return out, err
	}
	stoppedText := "Stopped before anything was said."
	t.Run("idle", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.accept(w.start(), w.private("ann", "/clear"), w.private("ann", "hi"))
			w.want(bot.Reply, "cleared")
			w.want(bot.Final, "re: hi")
			if w.lane(session("ann")).Place.Chat != "ann" {
				t.Error("a lane made by a command has no place")
			}
		})
	})
	t.Run("running", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = busy
			p := w.start()
			w.accept(p, w.private("ann", "work"))
			w.accept(p, w.private("ann", "/clear"))
			w.want(bot.Reply, "cleared")
			w.want(bot.Final, stoppedText)
			w.accept(p, w.private("ann", "hi"))
			w.want(bot.Final, stoppedText, "re: hi")
		})
	})
	t.Run("in one batch with what it stops", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = park
			w.accept(w.start(), w.private("ann", "park"), w.private("ann", "/clear"))
			w.want(bot.Reply, "cleared")
			w.want(bot.Final, stoppedText)
		})
	})
	t.Run("parked", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = park
			p := w.start()
			w.accept(p, w.private("ann", "park"))
			w.accept(p, w.private("ann", "/clear"))
			w.want(bot.Reply, "cleared")
			w.want(bot.Final, stoppedText)
			if len(w.open()) != 0 {
				t.Error("the question is still open")
			}
		})
	})
	t.Run("parked, accepted by a process that died at once", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = park
			p := w.start()
			w.accept(p, w.private("ann", "park"))
			p.stop()
			if err := p.Accept(t.Context(), []turn.Raw{raw(t, w.private("ann", "/clear"))}); err != nil {
				t.Fatal(err)
			}
			w.start()
			pass(time.Second)
			w.want(bot.Reply, "cleared")
			w.want(bot.Final, stoppedText)
		})
	})
	t.Run("delivered twice stops nothing later", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = busy
			p := w.start()
			again := w.private("ann", "/clear")
			w.accept(p, again)
			w.accept(p, w.private("ann", "work"))
			w.accept(p, again)
			pass(time.Minute)
			if p.Working() != 1 || len(w.texts(bot.Final)) != 0 {
				t.Errorf("the turn was stopped: %q", w.rows())
			}
		})
	})
	t.Run("of a stranger stops nobody", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = busy
			p := w.start()
			w.accept(p, w.group("shared", "ann", "work"))
			w.accept(p, w.group("shared", "stranger", "/clear"))
			pass(time.Minute)
			if p.Working() != 1 || len(w.texts(bot.Final)) != 0 {
				t.Errorf("the turn was stopped: %q", w.rows())
			}
		})
	})
	t.Run("on another replica", func(t *testing.T) {
		in(t, func(t *testing.T, w *world) {
			w.runner = busy
			a := w.start()
			w.accept(a, w.private("ann", "work"))
			b := w.start()
			w.accept(b, w.private("ann", "/clear"))
			pass(3 * time.Second)
			w.want(bot.Final, stoppedText)
			w.want(bot.Reply, "cleared")
		})
	})
}

// parker asks two questions and goes on with each as it is approved; it answers when both are.
func parker(w *world, runs *[]string) runner {
	return func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
		if errors.Is(context.Cause(ctx), agent.ErrStopped) {
			return ended(turn, journal.ReasonStopped), nil
		}
		text, err := asked(ctx, turn, log)
		if err != nil || !strings.HasPrefix(text, "park") {
			return answered(turn, "re: "+text), err
		}
		var questions []tools.Question
		saw := ""
		for _, call := range []string{"c1", "c2"} {
			a, err := w.broker.Approval(ctx, turn.Origin.Session, call, "h"+call)
			if err != nil {
				return agent.Outcome{}, err
			}
			if a.State == "approved" {
				saw += call
			} else {
				questions = append(questions, tools.Question{Call: call, Tool: "bash", Hash: "h" + call, Show: call})
			}
		}
		*runs = append(*runs, saw)
		if len(questions) > 0 {
			return agent.Outcome{Kind: agent.Parked, Questions: questions}, nil
		}
		return answered(turn, "both"), nil
	}
}

func TestParked(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var runs []string
		w.runner = parker(w, &runs)
		p := w.start()
		w.accept(p, w.private("ann", "park"), w.private("ann", "b")) // one batch: nothing tells of the second later
		w.accept(p, w.private("ann", "c"))
		w.want(bot.Notice, "I will get to this after you decide above. /stop drops it.")
		open := w.open()
		if len(open) != 2 {
			t.Fatalf("%d questions", len(open))
		}
		w.accept(p, w.press("ann", &open[0], "y"))
		if !slices.Equal(runs, []string{"", "c1"}) {
			t.Fatalf("a decision with another question open: runs %q", runs)
		}
		w.accept(p, w.press("ann", &open[0], "y")) // again
		w.want(bot.Toast, "Noted.", "Already decided: "+strings.TrimPrefix(w.texts(bot.Toast)[1], "Already decided: "))
		w.accept(p, w.private("ann", "/approve "+open[1].Short))
		w.want(bot.Final, "both", "re: b", "re: c")
		if len(w.texts(bot.Question)) != 2 {
			t.Errorf("questions: %q", w.texts(bot.Question))
		}
	})
}

// A question whose card was given up is sent again when somebody waits for its decision; one that is on its way, or
// there, is not.
func TestCardThatWasLostIsSentAgain(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var runs []string
		w.runner = parker(w, &runs)
		p := w.start()
		w.accept(p, w.private("ann", "park"))
		open := w.open()
		if len(open) != 2 {
			t.Fatalf("%d questions", len(open))
		}
		for i, state := range []bot.RowState{bot.Unknown, bot.Sent} {
			_, err := w.store.Apply(t.Context(), &bot.Change{Rows: []bot.RowUpdate{{ID: open[i].Row, From: []bot.RowState{bot.Pending}, To: state}}})
			if err != nil {
				t.Fatal(err)
			}
		}
		w.accept(p, w.private("ann", "b"))
		var states []bot.RowState
		for i := range open {
			row, err := w.store.Row(t.Context(), open[i].Row)
			if err != nil {
				t.Fatal(err)
			}
			states = append(states, row.State)
		}
		if !slices.Equal(states, []bot.RowState{bot.Pending, bot.Sent}) {
			t.Errorf("cards are %q", states)
		}
	})
}

// A decision whose process died before it acted, with another question open.
func TestDecisionIsFoundAfterADeath(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var runs []string
		w.runner = parker(w, &runs)
		p := w.start()
		w.accept(p, w.private("ann", "park"))
		p.stop()
		open := w.open()
		d := bot.Decision{ID: open[0].ID, State: bot.Approved, Scope: bot.Once, By: "test:ann", At: time.Now()}
		if _, err := w.store.Apply(t.Context(), &bot.Change{Decide: []bot.Decision{d}}); err != nil {
			t.Fatal(err)
		}
		w.start()
		pass(time.Second)
		if !slices.Equal(runs, []string{"", "c1"}) {
			t.Errorf("runs %q", runs)
		}
	})
}

func TestQuestionsExpire(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		runs := 0
		w.runner = func(ctx context.Context, turn *agent.Turn, _ agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			if runs++; runs == 1 {
				return agent.Outcome{Kind: agent.Parked, Questions: []tools.Question{{Call: "c", Tool: "bash", Hash: "h", Show: "ls"}}}, nil
			}
			return answered(turn, "without it"), nil
		}
		w.accept(w.start(), w.private("ann", "x"))
		pass(10*time.Minute + 2*time.Second)
		w.want(bot.Final, "without it")
	})
}

func TestStopEndsAParkedTurn(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var runs []string
		w.runner = parker(w, &runs)
		p := w.start()
		w.accept(p, w.private("ann", "park"))
		w.accept(p, w.private("ann", "/stop"))
		w.want(bot.Final, "Stopped before anything was said.")
		if len(w.open()) != 0 {
			t.Error("questions are still open")
		}
	})
}

// A stop that came for an earlier turn must neither end nor spin the next one.
func TestStaleStop(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var runs []string
		w.runner = parker(w, &runs)
		p := w.start()
		w.accept(p, w.private("ann", "park"))
		old := "an earlier turn"
		if _, err := w.store.Apply(t.Context(), &bot.Change{Lanes: []bot.LaneUpdate{{Session: session("ann"), Stop: &old}}}); err != nil {
			t.Fatal(err)
		}
		p.Wake(session("ann"))
		pass(time.Minute)
		if len(runs) != 1 || len(w.open()) != 2 {
			t.Errorf("%d runs, %d questions", len(runs), len(w.open()))
		}
	})
}
