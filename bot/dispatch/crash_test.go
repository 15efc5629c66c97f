package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
)

// model wants two tools and then answers.
type model struct{}

func (model) Name() string { return "model" }

func (model) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	results := 0
	for _, m := range req.Messages {
		if m.Result != nil {
			results++
		}
	}
	if results == 0 {
		args := json.RawMessage(`{}`)
		return &llm.Response{Uses: []llm.ToolUse{{ID: "1", Name: "look", Args: args}, {ID: "2", Name: "change", Args: args}}, Stop: llm.StopTools}, nil
	}
	return &llm.Response{Text: "all done", Stop: llm.StopEnd}, nil
}

// chain runs "look" freely and "change" after an approval; it counts what really ran.
type chain struct {
	mu  sync.Mutex
	w   *world
	ran map[string]int
}

func (c *chain) Interrupted(context.Context, *tools.Call) {}

func (c *chain) Execute(ctx context.Context, call *tools.Call) (*tools.Result, error) {
	if call.Tool == "change" {
		hash := "hash of " + call.ID
		a, err := c.w.broker.Approval(ctx, call.Origin.Session, call.ID, hash)
		if err != nil {
			return nil, err
		}
		if a.State == "denied" {
			return nil, tools.Errorf(tools.PolicyBlocked, "declined")
		}
		if a.State != "approved" {
			return nil, &tools.Pending{Question: tools.Question{Call: call.ID, Tool: call.Tool, Hash: hash, Show: "change it"}}
		}
	}
	if call.Probe {
		return nil, tools.ErrProbed
	}
	if err := call.OnStart(ctx); err != nil {
		return nil, err
	}
	call.Trail.Started = true
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ran[call.Tool]++
	return &tools.Result{Text: "ok"}, nil
}

type catalog struct{}

func (catalog) Tools(context.Context, *agent.Turn, agent.View) []agent.Offer {
	return []agent.Offer{agent.Plain(tools.Definition{Name: "look", ReadOnly: true}), agent.Plain(tools.Definition{Name: "change"})}
}

var errInjected = errors.New("injected")

// injector makes one Apply fail, and after a crash all that follow until the next process.
type injector struct {
	mu    sync.Mutex
	at    int // which Apply, from 1
	after bool
	crash bool
	seen  int
	hit   bool
	dead  bool
}

func (i *injector) apply(after bool) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !after {
		i.seen++
	}
	switch {
	case i.dead && !after:
		return errInjected
	case i.seen == i.at && after == i.after && !i.hit:
		i.hit, i.dead = true, i.crash
		return errInjected
	}
	return nil
}

func (i *injector) crashed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.dead
}

func (i *injector) revive() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.dead = false
}

// Every point of a turn with two tools and one approval: the store fails, or the process dies, before or after that
// Change. The question is asked once, nothing that changes something runs twice, and the message is answered once.
func TestEveryPointOfATurn(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			points := 0
			for at, hit := 1, true; hit; at++ {
				name := fmt.Sprintf("crash=%t after=%t at=%d", crash, after, at)
				t.Run(name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) { hit = point(t, &injector{at: at, after: after, crash: crash}) })
				})
				points++
			}
			if points < 10 {
				t.Errorf("crash=%t after=%t: only %d points, a turn has more", crash, after, points)
			}
		}
	}
}

// reads is a store whose reads fail as the injector says.
type reads struct {
	*bottest.Store
	inject *injector
}

func (r reads) Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error) {
	if err := r.inject.apply(false); err != nil {
		return bot.Lane{}, err
	}
	return r.Store.Lane(ctx, session)
}

func (r reads) Lanes(ctx context.Context, channel, id string, limit int) ([]bot.Lane, error) {
	if err := r.inject.apply(false); err != nil {
		return nil, err
	}
	return r.Store.Lanes(ctx, channel, id, limit)
}

func (r reads) Next(ctx context.Context, session bot.SessionKey, limit int) ([]bot.Arrival, error) {
	if err := r.inject.apply(false); err != nil {
		return nil, err
	}
	return r.Store.Next(ctx, session, limit)
}

func (r reads) Express(ctx context.Context, channel, id string, limit int) ([]bot.Arrival, error) {
	if err := r.inject.apply(false); err != nil {
		return nil, err
	}
	return r.Store.Express(ctx, channel, id, limit)
}

func (r reads) Ready(ctx context.Context, channel, id string, now time.Time, limit int) ([]bot.SessionKey, error) {
	if err := r.inject.apply(false); err != nil {
		return nil, err
	}
	return r.Store.Ready(ctx, channel, id, now, limit)
}

func (r reads) Stops(ctx context.Context, owner string) ([]bot.Stop, error) {
	if err := r.inject.apply(false); err != nil {
		return nil, err
	}
	return r.Store.Stops(ctx, owner)
}

func (r reads) Tail(ctx context.Context, session bot.SessionKey, room int) (journal.Tail, error) {
	if err := r.inject.apply(false); err != nil {
		return journal.Tail{}, err
	}
	return r.Store.Tail(ctx, session, room)
}

func (r reads) OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error) {
	if err := r.inject.apply(false); err != nil {
		return nil, err
	}
	return r.Store.OpenApprovals(ctx, session)
}

// Every read of the first minutes fails once: nothing is lost by it.
func TestEveryRead(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 80; at++ {
		synctest.Test(t, func(t *testing.T) { pointOf(t, &injector{at: at}, true) })
		if t.Failed() {
			t.Fatalf("at read %d", at)
		}
	}
}

// point plays the turn with one failure of a write and says whether the point was reached.
func point(t *testing.T, inject *injector) bool { return pointOf(t, inject, false) }

func pointOf(t *testing.T, inject *injector, read bool) bool {
	w := setup(t)
	c := &chain{w: w, ran: map[string]int{}}
	deps := agent.Deps{Provider: model{}, Tools: c, Catalog: catalog{}, System: func(*agent.Turn, bool) string { return "" }, Now: time.Now}
	w.runner = agent.NewRunner(deps, agent.Limits{}).Run
	w.opts.Grace = time.Second
	if read {
		w.parts = func(parts *dispatch.Parts) { parts.Store = reads{w.store, inject} }
	} else {
		w.store.Hooks.BeforeApply = func(*bot.Change) error { return inject.apply(false) }
		w.store.Hooks.AfterApply = func(*bot.Change) error { return inject.apply(true) }
	}
	p := w.start()
	ask := []turn.Raw{raw(t, w.private("ann", "do it"))}
	var press []turn.Raw
	step := func() {
		if inject.crashed() {
			p.stop()
			inject.revive()
			p = w.start()
		}
		if ask != nil && p.Accept(t.Context(), ask) == nil {
			ask = nil
		}
		if open := w.open(); len(open) == 1 && press == nil {
			press = []turn.Raw{raw(t, w.press("ann", &open[0], "y"))}
		}
		if len(press) > 0 && p.Accept(t.Context(), press) == nil {
			press = []turn.Raw{}
		}
		pass(time.Second)
	}
	quiet := 0
	for second := 0; second < 300 && quiet < 5; second++ { // a lease of a dead process ends after sixty
		step()
		c := w.counts()
		if quiet++; ask != nil || press == nil || len(press) > 0 || c.Queued+c.Running+c.Parked+c.Waiting > 0 {
			quiet = 0
		}
	}
	if got := w.counts(); got.Queued != 0 || got.DeadLetters != 0 || got.Running+got.Parked+got.Waiting != 0 {
		t.Errorf("something is left: %+v", got)
	}
	w.want(bot.Final, "all done")
	if n := len(w.texts(bot.Question)); n != 1 {
		t.Errorf("asked %d times", n)
	}
	if n := len(w.texts(bot.Toast)); n != 1 {
		t.Errorf("press answered %d times: %q", n, w.rows())
	}
	if c.ran["change"] > 1 || c.ran["look"] < 1 {
		t.Errorf("ran %v", c.ran)
	}
	if charges, _ := w.store.Charges(t.Context(), ""); len(charges) != 1 {
		t.Errorf("charged %d times", len(charges))
	}
	entries, err := w.store.Journal(t.Context(), session("ann"), 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, e := range entries {
		kinds = append(kinds, string(e.Kind))
	}
	if got := strings.Join(kinds, " "); strings.Count(got, "user") != 1 || strings.Count(got, "result") != 2 || !strings.HasSuffix(got, "answer") {
		t.Errorf("journal: %s", got)
	}
	p.stop()
	return inject.hit
}
