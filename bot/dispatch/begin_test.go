package dispatch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// counting is a store that counts the reads of single sessions.
type counting struct {
	*bottest.Store
	mu    sync.Mutex
	reads []string
}

func (c *counting) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reads = append(c.reads, what)
}

// take gives what was read since the last time.
func (c *counting) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.reads
	c.reads = nil
	return list
}

func (c *counting) Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	c.note("lane")
	return c.Store.Lane(ctx, session)
}

func (c *counting) Next(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Arrival, error) {
	c.note("inbox")
	return c.Store.Next(ctx, session, limit)
}

func (c *counting) Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error) {
	c.note("journal")
	return c.Store.Tail(ctx, session, room)
}

func (c *counting) OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error) {
	c.note("approvals")
	return c.Store.OpenApprovals(ctx, session)
}

// TestWhatATurnCosts: a turn is two commits, and from the second one of a session on it reads nothing of it.
func TestWhatATurnCosts(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		store := &counting{Store: w.store}
		w.parts = func(parts *dispatch.Parts) { parts.Store = store }
		commits := 0
		w.store.Hooks.AfterApply = func(*bot.Change) error { commits++; return nil }
		p := w.start()
		synctest.Wait()
		for i, want := range [][]string{{"journal", "lane"}, nil, nil} {
			commits = 0
			store.take()
			w.accept(p, w.private("ann", fmt.Sprint(i)))
			reads := store.take()
			if slices.Sort(reads); commits != 2 || !slices.Equal(reads, want) {
				t.Errorf("turn %d: %d commits, reads %q, want 2 and %q", i, commits, reads, want)
			}
		}
		w.want(bot.Final, "re: 0", "re: 1", "re: 2")
		if len(w.meter.turns) != 3 {
			t.Errorf("charged %v", w.meter.turns)
		}
	})
}

// TestNothingLeavesBeforeItIsStored: neither is the model asked nor is anything shown before the Change that begins a
// turn is stored, and never when that Change fails. It is the Change that stores a message with its turn, and the one
// that begins the turn of a message that was stored before.
func TestNothingLeavesBeforeItIsStored(t *testing.T) {
	for _, together := range []bool{true, false} {
		for _, fails := range []bool{false, true} {
			t.Run(fmt.Sprintf("together=%t fails=%t", together, fails), func(t *testing.T) {
				in(t, func(t *testing.T, w *world) { leavesNothing(t, w, together, fails) })
			})
		}
	}
}

func leavesNothing(t *testing.T, w *world, together, fails bool) {
	var log []string
	w.parts = func(parts *dispatch.Parts) {
		parts.Progress = func(watched turn.Watched) turn.Progress {
			return &progress{watched: watched, log: &log, closed: make(chan struct{})}
		}
	}
	batch := []bot.Message{w.private("ann", "hi")}
	if !together { // several of a chat are stored before they begin
		batch = append(batch, w.private("ann", "more"))
	}
	asked, release := 0, make(chan struct{})
	w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
		asked++
		sink.Emit(ctx, agent.Event{Type: agent.DeltaEvent, Text: "re"})
		return echo(ctx, turn, log, sink)
	}
	p := w.start()
	synctest.Wait()
	var once sync.Once
	w.store.Hooks.BeforeApply = func(c *bot.Change) (err error) {
		if c.Claim != nil {
			once.Do(func() {
				if len(c.Arrive) == 1 != together {
					t.Errorf("the Change of the beginning stores %d messages", len(c.Arrive))
				}
				if <-release; fails {
					err = errInjected
				}
			})
		}
		return err
	}
	w.deliver(p, batch...)
	synctest.Wait()
	if asked != 0 || len(log) != 0 || len(w.texts(bot.Final)) != 0 {
		t.Errorf("while it is stored: asked %d times, shown %q, said %q", asked, log, w.texts(bot.Final))
	}
	close(release)
	pass(time.Minute)
	if want := slices.Repeat([]string{"event delta", "closed"}, len(batch)); !slices.Equal(log, want) || asked != len(batch) {
		t.Errorf("shown %q, want %q; asked %d times", log, want, asked)
	}
	w.want(bot.Final, []string{"re: hi", "re: more"}[:len(batch)]...)
}

// TestKnownUpdatesAskNobody: an update that is delivered again, in this process or to the next one, makes no call of
// the model.
func TestKnownUpdatesAskNobody(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		asked := 0
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			asked++
			return echo(ctx, turn, log, sink)
		}
		p := w.start()
		hi, again := w.private("ann", "hi"), w.private("ann", "again")
		w.accept(p, hi)
		w.accept(p, again)
		w.accept(p, hi)
		p.stop()
		p = w.start()
		w.accept(p, again)
		w.want(bot.Final, "re: hi", "re: again")
		if asked != 2 {
			t.Errorf("asked %d times", asked)
		}
	})
}

// TestOneChangeForAMessage: a store that is slow gets no second Change for a message whose turn is on its way to it. What
// is late before that is stored without its turn, which begins once, after.
func TestOneChangeForAMessage(t *testing.T) {
	for name, c := range map[string]struct {
		store, charge time.Duration
		changes       []string
		after         time.Duration // until the message is accepted
	}{
		"slow store":  {3 * time.Second, 0, []string{"arrive and begin"}, 3 * time.Second},
		"slow charge": {0, 3 * time.Second, []string{"arrive", "begin"}, 500 * time.Millisecond},
		"both":        {3 * time.Second, 3 * time.Second, []string{"arrive", "begin"}, 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				asked := 0
				w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
					asked++
					return echo(ctx, turn, log, sink)
				}
				charge := &slowMeter{meter: w.meter}
				w.parts = func(p *dispatch.Parts) { p.Meter = charge }
				p := w.start()
				w.accept(p, w.private("bob", "the first message"))
				asked, charge.takes = 0, c.charge
				var mu sync.Mutex
				var changes []string
				w.store.Hooks.BeforeApply = func(change *bot.Change) error {
					what := ""
					switch {
					case change.Claim != nil && len(change.Arrive) > 0:
						what = "arrive and begin"
					case change.Claim != nil:
						what = "begin"
					case len(change.Arrive) > 0:
						what = "arrive"
					default:
						return nil
					}
					mu.Lock()
					changes = append(changes, what)
					mu.Unlock()
					if change.Claim != nil {
						<-time.After(c.store)
					}
					return nil
				}
				began := time.Now()
				if err := p.Accept(t.Context(), []turn.Raw{raw(t, w.private("ann", "hi"))}); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took != c.after {
					t.Errorf("accepted after %s, want %s", took, c.after)
				}
				pass(20 * time.Second)
				if !slices.Equal(changes, c.changes) || asked != 1 {
					t.Errorf("changes %q, want %q; the model was asked %d times", changes, c.changes, asked)
				}
				w.want(bot.Final, "re: the first message", "re: hi")
			})
		})
	}
}

// slowMeter takes its time.
type slowMeter struct {
	*meter
	takes time.Duration
}

func (m *slowMeter) Admit(ctx context.Context, msg *bot.Message, id string) (turn.Admission, error) {
	<-time.After(m.takes)
	return m.meter.Admit(ctx, msg, id)
}

// TestTwoTakeTurns: messages of a conversation come to two processes in turn, as a balancer deals them out. What each
// remembers of it is out of date every time; from the second time on it looks before it begins a turn.
func TestTwoTakeTurns(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var asked atomic.Int64 // by two processes, of two conversations at once
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			asked.Add(1)
			return echo(ctx, turn, log, sink)
		}
		both := []*process{w.start(), w.start()}
		var want []string
		for i, p := range both {
			w.accept(p, w.private("bob", fmt.Sprint("the first message ", i)))
			want = append(want, fmt.Sprint("re: the first message ", i))
		}
		asked.Store(0)
		var begun atomic.Int64 // tried, also in vain
		w.store.Hooks.BeforeApply = func(c *bot.Change) error {
			if c.Claim != nil {
				begun.Add(1)
			}
			return nil
		}
		const turns = 20
		for i := range turns {
			w.accept(both[i%2], w.private("ann", fmt.Sprint(i)))
			want = append(want, fmt.Sprint("re: ", i))
		}
		w.want(bot.Final, want...)
		if n := begun.Load(); n > turns+2 || asked.Load() != turns { // each process is wrong once
			t.Errorf("%d turns began in %d tries and asked the model %d times", turns, n, asked.Load())
		}
		// One process alone looks no longer once it was right for a while.
		store := &counting{Store: w.store}
		w.parts = func(p *dispatch.Parts) { p.Store = store }
		alone := w.start()
		for i := range 3 {
			w.accept(alone, w.private("ann", fmt.Sprint("alone ", i)))
		}
		store.take()
		w.accept(alone, w.private("ann", "alone"))
		if reads := store.take(); len(reads) > 0 {
			t.Errorf("reads %q where nobody else works", reads)
		}
	})
}

// TestOneBatchInOrder: messages of one chat that come together are answered in their order, and a /stop among them
// finds what came before it.
func TestOneBatchInOrder(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		p := w.start()
		w.accept(p, w.private("bob", "the first message"))
		var batch []bot.Message
		for i := range 5 {
			batch = append(batch, w.private("ann", fmt.Sprint(i)), w.private(fmt.Sprint("p", i), "hello"))
		}
		w.accept(p, batch...)
		var got []string
		for _, r := range w.texts(bot.Final) {
			if r != "re: hello" {
				got = append(got, r)
			}
		}
		if want := []string{"re: the first message", "re: 0", "re: 1", "re: 2", "re: 3", "re: 4"}; !slices.Equal(got, want) {
			t.Errorf("answers %q", got)
		}
		if n := len(w.texts(bot.Final)); n != 11 {
			t.Errorf("%d answers", n)
		}
	})
}

// TestWhatIsKeptIsOutOfDate: another process has worked on the session meanwhile; the next turn begins on what it left.
func TestWhatIsKeptIsOutOfDate(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world){
		"a claim": func(w *world) { takeover(w, session("ann")) },
		"a reset": func(w *world) {
			lane := w.lane(session("ann"))
			change := &bot.Change{Append: &bot.Append{Session: lane.Session, After: lane.Last, Entries: []journal.Entry{{Turn: "reset", Kind: journal.SummaryEntry}}}}
			if _, err := w.store.Apply(w.t.Context(), change); err != nil {
				w.t.Fatal(err)
			}
		},
		"an arrival": func(w *world) {
			message := w.private("ann", "from elsewhere")
			body := raw(w.t, message)
			change := &bot.Change{Arrive: []bot.Arrival{{Channel: "test", Bot: "7", ID: body.ID, Session: session("ann"), Raw: body.Body, At: time.Now()}}}
			if _, err := w.store.Apply(w.t.Context(), change); err != nil {
				w.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, func(t *testing.T, w *world) {
				var seen [][]journal.Entry
				w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
					entries, err := history(ctx, log)
					if err != nil {
						return agent.Outcome{}, err
					}
					seen = append(seen, slices.Clone(entries))
					return echo(ctx, turn, log, sink)
				}
				p := w.start()
				w.accept(p, w.private("ann", "one"))
				meanwhile(w)
				w.accept(p, w.private("ann", "two"))
				pass(2 * time.Minute)
				want := []string{"re: one", "re: two"}
				if name == "an arrival" {
					want = []string{"re: one", "re: from elsewhere", "re: two"}
				}
				w.want(bot.Final, want...)
				all, err := w.store.Journal(t.Context(), session("ann"), 0)
				if err != nil {
					t.Fatal(err)
				}
				last := seen[len(seen)-1]
				if diff := cmp.Diff(all[:len(all)-1], last, cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("what the last turn saw (-stored +seen):\n%s", diff)
				}
			})
		})
	}
}

// TestKeptIsWhatIsStored: whatever a turn leaves, the next one sees the same from memory as it would from the store.
func TestKeptIsWhatIsStored(t *testing.T) {
	for _, room := range []int{room, 4000} { // all is read, or the last turns
		t.Run(fmt.Sprint(room), func(t *testing.T) { keptIsStored(t, room) })
	}
}

func keptIsStored(t *testing.T, room int) {
	in(t, func(t *testing.T, w *world) {
		odd := []string{"plain", "a \xff b", "tab\tnew\nline <&> \u2028", ""}
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			tail, err := log.Load(ctx, room)
			if err != nil {
				return agent.Outcome{}, err
			}
			want, err := w.store.Tail(ctx, bot.SessionKey(turn.Origin.Session), room)
			if diff := cmp.Diff(want.Entries, tail.Entries); diff != "" {
				t.Errorf("(-stored +seen):\n%s", diff)
			}
			last := tail.Last()
			if diff := cmp.Diff(want.StateAt(last), tail.StateAt(last), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("standing (-stored +seen):\n%s", diff)
			}
			text := odd[int(last/4)%len(odd)]
			_, appendErr := log.Append(ctx,
				journal.Entry{Turn: turn.ID, Kind: journal.AssistantEntry, At: time.Now(), Uses: []journal.Use{{Call: "c", Name: "look", Args: []byte(`{"a":1}`)}}},
				journal.Entry{Turn: turn.ID, Kind: journal.ResultEntry, At: time.Now(), Call: "c", Text: text, Touched: []string{"/x"}, Usage: llm.Usage{Input: 1}})
			return answered(turn, "ok "+text), errors.Join(err, appendErr)
		}
		p := w.start()
		for i := range 12 {
			w.accept(p, w.private("ann", fmt.Sprint("message ", odd[i%len(odd)], i)))
		}
		if n := len(w.texts(bot.Final)); n != 12 {
			t.Errorf("%d answers", n)
		}
	})
}

// TestWhatIsKeptIsBounded has more conversations than may be kept: the journals of the oldest are read again, their lanes
// are not.
func TestWhatIsKeptIsBounded(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		store := &counting{Store: w.store}
		w.parts = func(parts *dispatch.Parts) { parts.Store = store }
		long := make([]byte, 600_000)
		for i := range long {
			long[i] = 'x'
		}
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, _ agent.Sink) (agent.Outcome, error) {
			_, err := log.Load(ctx, room)
			return answered(turn, string(long)), err
		}
		p := w.start()
		for i := range 40 {
			w.accept(p, w.private(fmt.Sprint("p", i), "hi"))
		}
		store.take()
		w.accept(p, w.private("p39", "again"))
		if got := store.take(); len(got) != 0 {
			t.Errorf("the latest was read again: %q", got)
		}
		w.accept(p, w.private("p39", "once more")) // too long by now
		w.accept(p, w.private("p0", "again"))
		if got := store.take(); !slices.Equal(got, []string{"journal", "journal"}) {
			t.Errorf("reads %q", got)
		}
	})
}

// beatenMeter refuses a turn that another process has begun in the meantime.
type beatenMeter struct {
	*meter
	w     *world
	other *process
}

func (m *beatenMeter) Admit(ctx context.Context, msg *bot.Message, _ string) (turn.Admission, error) {
	refusal := turn.Admission{Refusal: "used up"}
	name := session(msg.Place.Chat)
	waiting, err := m.w.store.Next(ctx, name, 1)
	if err != nil || len(waiting) == 0 {
		return refusal, err
	}
	m.other.Wake(name)
	for {
		lane, err := m.w.store.Lane(ctx, name)
		if err != nil || lane.Turn != "" {
			return refusal, err
		}
		<-time.After(time.Millisecond)
	}
}

// TestRefusedAfterAnotherBegan: of two processes that look at a message at once, one begins its turn and the other one
// finds the quota used up, perhaps by that very turn. The person is answered, and not refused as well.
func TestRefusedAfterAnotherBegan(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		open := make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			if out, err, ok := until(ctx, open, turn); !ok {
				return out, err
			}
			return echo(ctx, turn, log, sink)
		}
		other := w.start()
		w.parts = func(p *dispatch.Parts) { p.Meter = &beatenMeter{meter: w.meter, w: w, other: other} }
		w.accept(w.start(), w.private("ann", "hello"))
		pass(time.Second)
		close(open)
		pass(time.Second)
		w.want(bot.Final, "re: hello")
		w.want(bot.Reply)
	})
}
