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
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
)

// machine is a store that makes one Change after the other, each of which takes its time, and keeps when turns were
// stored and answered.
type machine struct {
	bot.Store
	takes time.Duration
	turn  chan struct{}

	mu      sync.Mutex
	changes int
	begun   map[string]time.Time
	ran     []time.Duration // from the beginning of a turn until its answer, both stored
	most    int             // turns that were being begun at once
	now     int
}

func (m *machine) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	if change.Claim != nil {
		m.mu.Lock()
		m.now++
		m.most = max(m.most, m.now)
		m.mu.Unlock()
	}
	m.turn <- struct{}{}
	<-time.After(m.takes)
	applied, err := m.Store.Apply(ctx, change)
	<-m.turn
	m.mu.Lock()
	defer m.mu.Unlock()
	m.changes++
	if change.Claim != nil {
		m.now--
	}
	if err != nil {
		return nil, err
	}
	if change.Claim != nil && change.Append != nil {
		m.begun[change.Append.Entries[0].Turn] = time.Now()
	}
	for _, row := range change.Send {
		if row.Purpose == bot.Final {
			m.ran = append(m.ran, time.Since(m.begun[row.Turn]))
		}
	}
	return applied, nil
}

// underLoad has people write for five seconds, so many a second, each once, and returns what became of it.
func underLoad(t *testing.T, rate int) *machine {
	t.Helper()
	w := setup(t)
	m := &machine{Store: w.store, takes: 5 * time.Millisecond, turn: make(chan struct{}, 1), begun: map[string]time.Time{}}
	w.parts = func(p *dispatch.Parts) { p.Store = m }
	w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
		<-time.After(200 * time.Millisecond)
		return echo(ctx, turn, log, sink)
	}
	p := w.start()
	if err := p.Accept(t.Context(), []turn.Raw{raw(t, w.private("warm", "x"))}); err != nil { // the first batch is never new
		t.Fatal(err)
	}
	count := 5 * rate
	var wg sync.WaitGroup
	for i := range count {
		message := raw(t, w.private(fmt.Sprint("p", i), "hello"))
		wg.Go(func() {
			if err := p.Accept(t.Context(), []turn.Raw{message}); err != nil {
				t.Error(err)
			}
		})
		<-time.After(time.Second / time.Duration(rate))
	}
	wg.Wait()
	pass(5 * time.Minute)
	if got := len(w.texts(bot.Final)); got != count+1 {
		t.Errorf("%d answers for %d messages", got, count+1)
	}
	if c := w.counts(); c.Queued != 0 || c.Running != 0 {
		t.Errorf("left: %+v", c)
	}
	slices.Sort(m.ran)
	return m
}

// TestTwiceTheLoad: with twice as many messages as the store can take, turns that run take at most twice as long at
// their 99th percentile as under full load, every message is answered once, and few Changes more are made.
func TestTwiceTheLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		full, over := underLoad(t, 90), underLoad(t, 180) // a turn is two Changes
		p99 := func(m *machine) time.Duration { return m.ran[len(m.ran)*99/100] }
		t.Logf("p99 %v under full load, %v under twice that; %d and %d Changes", p99(full), p99(over), full.changes, over.changes)
		if p99(over) > 2*p99(full) {
			t.Errorf("p99 %v under twice the load, %v under full load", p99(over), p99(full))
		}
		each := func(m *machine) float64 { return float64(m.changes) / float64(len(m.ran)) }
		if each(full) > 2.01 || each(over) > 2.5 {
			t.Errorf("%.2f Changes a turn under full load, %.2f under twice that", each(full), each(over))
		}
		if over.most > 40 {
			t.Errorf("%d turns began at once", over.most)
		}
	})
}

// TestSlowFilesKeepNobodyWaiting: a turn whose files are being read takes no place from those that begin.
func TestSlowFilesKeepNobodyWaiting(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		w.opts.Starts = 1
		files := slowFiles{open: make(chan struct{})}
		w.parts = func(p *dispatch.Parts) { p.Attachments = files }
		p := w.start()
		for i := range 3 {
			m := w.private(fmt.Sprint("slow", i), "look")
			m.Files = []bot.Attachment{{ID: "f", Name: "f"}}
			w.accept(p, m)
		}
		w.accept(p, w.private("ann", "hello"))
		pass(10 * time.Millisecond)
		w.want(bot.Final, "re: hello")
		close(files.open)
		pass(time.Second)
		w.want(bot.Final, "re: hello", "re: look", "re: look", "re: look")
	})
}

type slowFiles struct{ open chan struct{} }

func (f slowFiles) Receive(ctx context.Context, _ *turn.Sent) (turn.Received, error) {
	select {
	case <-f.open:
		return turn.Received{}, nil
	case <-ctx.Done():
		return turn.Received{}, ctx.Err()
	}
}

// board keeps what people are shown who wait.
type board struct {
	mu     sync.Mutex
	shown  []string         // "person: text"
	drafts map[string]int64 // by chat
	turns  map[string]int64 // drafts of turns that run, by chat
	full   bool             // nothing can be shown now
	closed string           // prefix of chats in which nothing can ever be shown
	slow   time.Duration
}

func (b *board) waits(ctx context.Context, place bot.Place, draft int64, text string) (shown, able bool) {
	if b.slow > 0 {
		select {
		case <-time.After(b.slow):
		case <-ctx.Done():
			return false, true
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if place.Group {
		return false, false
	}
	if b.full || b.closed != "" && strings.HasPrefix(place.Chat, b.closed) {
		return false, true
	}
	b.shown = append(b.shown, place.Chat+": "+text)
	if was := b.drafts[place.Chat]; was != 0 && was != draft {
		b.shown = append(b.shown, place.Chat+": another draft")
	}
	b.drafts[place.Chat] = draft
	return true, true
}

func (b *board) watch(of turn.Watched) turn.Progress {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turns[of.Place.Chat] = of.Draft
	return unseen{}
}

// unseen shows nothing of a turn.
type unseen struct{ agent.Sink }

func (unseen) Emit(context.Context, agent.Event) {}
func (unseen) Run(ctx context.Context) error     { return nil }
func (unseen) Close()                            {}

func (b *board) count(person string) (n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.shown {
		if strings.HasPrefix(s, person+": ") {
			n++
		}
	}
	return n
}

// said returns what was shown so far.
func (b *board) said() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.shown)
}

// crowded is a world in which two turns run at once, five seconds each.
func crowded(w *world, b *board, s *signs) {
	b.drafts, b.turns = map[string]int64{}, map[string]int64{}
	w.opts.Concurrency, w.opts.PerCaller = 2, 2
	w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
		open := make(chan struct{})
		time.AfterFunc(5*time.Second, func() { close(open) })
		if out, err, ok := until(ctx, open, turn); !ok {
			return out, err
		}
		return echo(ctx, turn, log, sink)
	}
	w.parts = func(p *dispatch.Parts) { p.Waits, p.Signs, p.Progress = b.waits, s, b.watch }
}

// TestOverloadIsSaid: when more wait than can begin within ten seconds, each of them is told once, within a second, and
// again only when what is shown has gone; who waits for several answers is told once; in a group there is a sign.
func TestOverloadIsSaid(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var b board
		var s signs
		crowded(w, &b, &s)
		p := w.start()
		const people = 12
		for i := range people {
			w.accept(p, w.private(fmt.Sprint("p", i), "hello"))
		}
		w.accept(p, w.group("g1", "p11", "and here?"), w.group("g2", "zoe", "in a group"))
		if len(b.said()) > 0 {
			t.Errorf("said too early: %q", b.said())
		}
		pass(1100 * time.Millisecond)
		for i := range people {
			want := 1
			if i < 4 { // two run, and the next two begin at once
				want = 0
			}
			if got := b.count(fmt.Sprint("p", i)); got != want && i != 2 && i != 3 {
				t.Errorf("p%d was told %d times, want %d", i, got, want)
			}
		}
		if got := s.take(); !slices.Equal(got, []string{"crowded g2 14 m14"}) {
			t.Errorf("signs %q", got)
		}
		if first := b.said()[0]; !strings.Contains(first, "Many are asking just now: about 10 seconds.") {
			t.Errorf("said %q", first)
		}
		pass(15 * time.Second)
		if got := b.count("p11"); got != 1 {
			t.Errorf("told %d times within 16 s", got)
		}
		pass(8 * time.Second)
		if got := b.count("p11"); got != 2 {
			t.Errorf("told %d times within 24 s, want again after 22", got)
		}
		pass(time.Minute)
		b.mu.Lock()
		for chat, draft := range b.drafts {
			if b.turns[chat] != draft {
				t.Errorf("the draft of %s is not that of its turn", chat)
			}
		}
		b.mu.Unlock()
		if n := len(w.texts(bot.Final)); n != people+2 {
			t.Errorf("%d answers", n)
		}
		before := len(b.said())
		w.accept(p, w.private("late", "hello"))
		pass(30 * time.Second)
		if len(b.said()) != before {
			t.Errorf("said although nobody waits: %q", b.said()[before:])
		}
	})
}

// TestClosedChatsKeepNobodyBack: people who can be told are told, although more than are told at a time cannot.
func TestClosedChatsKeepNobodyBack(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := board{closed: "blocked"}
		var s signs
		crowded(w, &b, &s)
		p := w.start()
		for i := range 120 {
			w.accept(p, w.private(fmt.Sprint("blocked", i), "hello"))
		}
		w.accept(p, w.private("late", "hello"))
		pass(3 * time.Second)
		if b.count("late") != 1 {
			t.Errorf("said %q", b.said())
		}
	})
}

// TestOverloadAfterARestart: the next process tells those who still wait, with the same draft, so that nobody sees two.
func TestOverloadAfterARestart(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		var b board
		var s signs
		crowded(w, &b, &s)
		w.opts.Grace = time.Millisecond
		p := w.start()
		for i := range 14 {
			w.accept(p, w.private(fmt.Sprint("p", i), "hello"))
		}
		pass(2 * time.Second)
		if b.count("p13") != 1 {
			t.Fatalf("said %q", b.said())
		}
		p.stop()
		w.start()
		pass(3 * time.Second)
		if got := b.count("p13"); got != 2 {
			t.Errorf("told %d times, want once by each process", got)
		}
		if i := slices.IndexFunc(b.said(), func(s string) bool { return strings.Contains(s, "another") }); i >= 0 {
			t.Error(b.said()[i])
		}
		pass(2 * time.Minute)
		if n := len(w.texts(bot.Final)); n != 14 {
			t.Errorf("%d answers", n)
		}
	})
}

// TestNothingIsSaidAfterTheAnswer: an answer waits for what is still being shown to say that its message waits.
func TestNothingIsSaidAfterTheAnswer(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		b := board{slow: 4 * time.Second}
		var s signs
		crowded(w, &b, &s)
		w.opts.Concurrency, w.opts.PerCaller = 1, 1
		open := make(chan struct{})
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			if turn.Origin.Caller == "test:first" {
				if out, err, ok := until(ctx, open, turn); !ok {
					return out, err
				}
			}
			return echo(ctx, turn, log, sink)
		}
		p := w.start()
		w.accept(p, w.private("first", "hello"))
		for i := range 30 {
			w.accept(p, w.private(fmt.Sprint("p", i), "hello"))
		}
		pass(1600 * time.Millisecond) // it is being shown to all who wait for longer than two seconds
		close(open)
		pass(time.Second)
		if n := len(w.texts(bot.Final)); n > 4 {
			t.Errorf("%d answers while it is being shown that they wait", n)
		}
		pass(time.Minute)
		if n := len(w.texts(bot.Final)); n != 31 {
			t.Errorf("%d answers", n)
		}
	})
}

// TestFloodedGroup: a group in which hundreds write lets another person's first message begin after one of theirs, and
// who writes once in that group does not wait for who writes in all of its topics.
func TestFloodedGroup(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		o := &order{open: make(chan struct{})}
		w.runner, w.opts.Concurrency = o.run, 1
		p := w.start()
		var list []bot.Message
		for i := range 200 {
			list = append(list, w.group("loud", fmt.Sprint("member", i), "x"))
		}
		for i := range 50 {
			m := w.group("forum", "greedy", "x")
			m.Place.Thread = fmt.Sprint(i + 1)
			list = append(list, m)
		}
		w.accept(p, list...)
		w.accept(p, w.private("ann", "hello"), w.group("forum", "ben", "hello"))
		close(o.open)
		pass(time.Minute)
		for who, most := range map[string]int{"test:ann": 3, "test:ben": 6} {
			if at := slices.Index(o.began, who); at < 0 || at > most {
				t.Errorf("%s is number %d, want at most %d", who, at, most)
			}
		}
		if n := len(o.began); n != 252 {
			t.Errorf("%d turns", n)
		}
	})
}

// TestFloodIsStoredTogether: messages that come while others are being stored are stored by one Change; if that is
// refused, each is stored by its own.
func TestFloodIsStoredTogether(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		m := &machine{Store: refusing{w.store}, takes: time.Second, turn: make(chan struct{}, 1), begun: map[string]time.Time{}}
		w.parts = func(p *dispatch.Parts) { p.Store = m }
		p := w.start()
		var wg sync.WaitGroup
		failed := 0
		for i := range 40 {
			text := "/status"
			if i == 7 {
				text = "/refused"
			}
			message := raw(t, w.private(fmt.Sprint("p", i), text))
			wg.Go(func() {
				if err := p.Accept(t.Context(), []turn.Raw{message}); err != nil {
					failed++
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if failed != 1 {
			t.Errorf("%d messages were not stored, want the one that is refused", failed)
		}
		pass(5 * time.Minute)
		if n := len(w.texts(bot.Reply)); n != 39 {
			t.Errorf("%d replies", n)
		}
	})
}

// refusing refuses a message.
type refusing struct{ bot.Store }

var errRefused = errors.New("refused")

func (r refusing) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	for i := range change.Arrive {
		if strings.Contains(string(change.Arrive[i].Raw), "/refused") {
			return nil, errRefused
		}
	}
	return r.Store.Apply(ctx, change)
}
