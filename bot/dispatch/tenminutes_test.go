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
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// manner is how a server is away.
type manner string

const (
	refuses manner = "refuses" // connections
	hangs   manner = "hangs"   // never answers
	cuts    manner = "cuts"    // the connection, after it has done what was asked
)

// outage is when a server is away: a minute after the start for ten minutes, a third of them in each manner.
type outage struct{ began, back time.Time }

func newOutage() outage {
	began := time.Now().Add(time.Minute)
	return outage{began, began.Add(10 * time.Minute)}
}

// now is how the server is away at the moment; "" = it is not.
func (o outage) now() manner {
	at := time.Now()
	if at.Before(o.began) || !at.Before(o.back) {
		return ""
	}
	return []manner{refuses, hangs, cuts}[3*at.Sub(o.began)/o.back.Sub(o.began)]
}

// reach asks the server. It returns an error if it is away; done is false if it has not done what it was asked.
func (o outage) reach(ctx context.Context, patience time.Duration) (done bool, err error) {
	switch o.now() {
	case refuses:
		return false, errors.New("connection refused")
	case hangs:
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-time.After(patience):
			return false, errors.New("no answer")
		}
	case cuts:
		return true, errors.New("connection reset")
	}
	return true, nil
}

// databasePatience is how long a store waits for its server.
const databasePatience = 30 * time.Second

// distantStore is a store whose server is away for a time.
type distantStore struct {
	bot.Store
	outage outage
}

func (d *distantStore) Apply(ctx context.Context, change *bot.Change) (*bot.Applied, error) {
	done, away := d.outage.reach(ctx, databasePatience)
	if away != nil {
		away = noDatabase{away}
	}
	if !done {
		return nil, away
	}
	applied, err := d.Store.Apply(ctx, change)
	if err == nil && away != nil {
		return nil, away
	}
	return applied, err
}

// noDatabase is what a store says whose server is away.
type noDatabase struct{ error }

func (noDatabase) Advice() reason.Reason { return reason.Plain("the database does not answer") }

func read[T any](ctx context.Context, d *distantStore, ask func() (T, error)) (T, error) {
	if _, err := d.outage.reach(ctx, databasePatience); err != nil {
		var none T
		return none, err
	}
	return ask()
}

func (d *distantStore) Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	return read(ctx, d, func() (bot.Lane, error) { return d.Store.Lane(ctx, session) })
}

func (d *distantStore) Next(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Arrival, error) {
	return read(ctx, d, func() ([]bot.Arrival, error) { return d.Store.Next(ctx, session, limit) })
}

func (d *distantStore) Express(ctx context.Context, channel, botID string, limit int) ([]bot.Arrival, error) {
	return read(ctx, d, func() ([]bot.Arrival, error) { return d.Store.Express(ctx, channel, botID, limit) })
}

func (d *distantStore) Journal(ctx context.Context, session bot.SessionKey, after int64) ([]journal.Entry, error) {
	return read(ctx, d, func() ([]journal.Entry, error) { return d.Store.Journal(ctx, session, after) })
}

func (d *distantStore) Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error) {
	return read(ctx, d, func() (journal.Tail, error) { return d.Store.Tail(ctx, session, room) })
}

func (d *distantStore) OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error) {
	return read(ctx, d, func() ([]bot.Approval, error) { return d.Store.OpenApprovals(ctx, session) })
}

func (d *distantStore) FactsOf(ctx context.Context, bucket, prefix string, now time.Time) ([]bot.Fact, error) {
	return read(ctx, d, func() ([]bot.Fact, error) { return d.Store.FactsOf(ctx, bucket, prefix, now) })
}

// channel delivers updates in order until they are confirmed, as Telegram does.
type channel struct {
	mu      sync.Mutex
	pending []turn.Raw
}

func (c *channel) write(update turn.Raw) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, update)
}

// deliver offers what is pending each second.
func (c *channel) deliver(ctx context.Context, p *process) {
	for {
		c.mu.Lock()
		batch := slices.Clone(c.pending)
		c.mu.Unlock()
		if len(batch) > 0 && p.Accept(ctx, batch) == nil {
			c.mu.Lock()
			c.pending = c.pending[len(batch):]
			c.mu.Unlock()
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Second):
		}
	}
}

// conversations have people write every 20 s from before an outage until after it, and wait until everything is
// answered. It returns how long after the return of the server that was, and what everybody wrote, in order.
func (w *world) conversations(p *process, o outage) (took time.Duration, wrote map[string][]string) {
	const people, every = 10, 20 * time.Second
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	var c channel
	var delivering sync.WaitGroup
	delivering.Go(func() { c.deliver(ctx, p) })
	wrote = map[string][]string{}
	n := 0
	for time.Now().Before(o.back.Add(time.Minute)) {
		for i := range people {
			person := fmt.Sprint("person", i)
			text := fmt.Sprint("message ", n)
			n++
			wrote[person] = append(wrote[person], text)
			c.write(raw(w.t, w.private(person, text)))
			pass(every / people)
		}
	}
	for range 20 { // minutes
		if open := w.counts(); open.Queued+open.Running+open.Waiting == 0 {
			break
		}
		pass(time.Minute)
	}
	took = time.Since(o.back)
	cancel()
	delivering.Wait()
	return took, wrote
}

// answersOf lists the answers in the private chat of a person, in order.
func (w *world) answersOf(person string) (list []string) {
	w.t.Helper()
	rows, err := w.store.Rows(w.t.Context(), session(person), 1<<20)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		if r.Purpose == bot.Final {
			list = append(list, r.Content.Text)
		}
	}
	return list
}

// TestTenMinutesWithoutStore: the database is away for ten minutes. Every message is answered once, in order, and charged
// once; who writes meanwhile is told so once, and 15 s after its return nobody waits any more.
func TestTenMinutesWithoutStore(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		o, out := newOutage(), &direct{}
		w.parts = func(p *dispatch.Parts) { p.Store, p.Direct = &distantStore{w.store, o}, out }
		w.runner = func(ctx context.Context, turn *agent.Turn, log agent.Journal, sink agent.Sink) (agent.Outcome, error) {
			select {
			case <-time.After(time.Second):
				return echo(ctx, turn, log, sink)
			case <-ctx.Done():
				return agent.Outcome{}, ctx.Err()
			}
		}
		p := w.start()
		took, wrote := w.conversations(p, o)
		turns := 0
		for person, texts := range wrote {
			var want []string
			for _, text := range texts {
				want = append(want, "re: "+text)
			}
			turns += len(want)
			if got := w.answersOf(person); !slices.Equal(got, want) {
				t.Errorf("%s: answered %q, want %q", person, got, want)
			}
		}
		charges, err := w.store.Charges(t.Context(), "")
		if err != nil || len(charges) != turns {
			t.Errorf("%d charges of %d turns, %v", len(charges), turns, err)
		}
		told := map[string]int{}
		for _, line := range out.take() {
			told[line]++
			if told[line] > 1 {
				t.Errorf("told %d times: %s", told[line], line)
			}
		}
		if len(told) == 0 {
			t.Error("nobody was told")
		}
		t.Logf("%d messages; everything was done %s after the return; %d were told", turns, took, len(told))
		if took > time.Minute+15*time.Second { // people write for a minute after the return
			t.Errorf("everything was done %s after the return", took)
		}
	})
}

// noTools is a catalog and an executor without tools.
type noTools struct{}

func (noTools) Tools(context.Context, *agent.Turn, agent.View) []agent.Offer { return nil }
func (noTools) Execute(context.Context, *tools.Call) (*tools.Result, error) {
	return nil, errors.New("there are no tools")
}
func (noTools) Interrupted(context.Context, *tools.Call) {}

// distantModel is a model whose server is away for a time. It repeats the last message.
type distantModel struct {
	outage outage
	mu     sync.Mutex
	during int // requests while it was away
}

func (*distantModel) Name() string { return "main" }

func (d *distantModel) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	text := "re: " + req.Messages[len(req.Messages)-1].Text
	if d.outage.now() != "" {
		d.mu.Lock()
		d.during++
		d.mu.Unlock()
	}
	done, err := d.outage.reach(ctx, 2*time.Minute)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case done && err != nil:
		if onDelta != nil {
			onDelta(text[:2])
		}
		return nil, &llm.Error{Kind: llm.Truncated, Provider: "main", Err: err}
	case err != nil:
		return nil, &llm.Error{Kind: llm.Unavailable, Provider: "main", Err: err}
	}
	return &llm.Response{Text: text, Stop: llm.StopEnd}, nil
}

// TestTenMinutesWithoutModel: the model is away for ten minutes. Every message gets one answer in its order: that of the
// model, or that the bot gave up, if its own ten minutes were over. Everybody is told that the model is away, and the
// provider is asked a few times a minute instead of once a message.
func TestTenMinutesWithoutModel(t *testing.T) {
	in(t, func(t *testing.T, w *world) {
		o := newOutage()
		model := &distantModel{outage: o}
		router, err := route.New([]llm.Provider{model}, "main", nil, route.Options{Timeout: 5 * time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		real := agent.NewRunner(agent.Deps{
			Provider: router, Tools: noTools{}, Catalog: noTools{}, Now: time.Now,
			System: func(*agent.Turn, bool) string { return "be short" },
		}, agent.Limits{})
		w.runner = real.Run
		p := w.start()
		took, wrote := w.conversations(p, o)
		messages, lost := 0, 0
		for person, texts := range wrote {
			messages += len(texts)
			got := w.answersOf(person)
			for i, text := range texts {
				switch {
				case i >= len(got):
					t.Errorf("%s: %q is not answered", person, text)
				case strings.Contains(got[i], "gave up"):
					lost++
				case got[i] != "re: "+text:
					t.Errorf("%s: %q is answered by %q", person, text, got[i])
				}
			}
			if len(got) > len(texts) {
				t.Errorf("%s: %d answers to %d messages", person, len(got), len(texts))
			}
		}
		told := len(w.texts(bot.Notice))
		synctest.Wait()
		t.Logf("%d messages, %d given up; everything was done %s after the return; %d notices, %d requests meanwhile", messages, lost, took, told, model.during)
		if told < len(wrote) {
			t.Errorf("%d notices for %d people", told, len(wrote))
		}
		if took > 3*time.Minute {
			t.Errorf("everything was done %s after the return", took)
		}
	})
}
