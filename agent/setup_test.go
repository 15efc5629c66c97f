package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/toolstest"
)

var errStore = errors.New("the store is away")

// shelf is a durable journal; handles read and write it like the holders of a lane.
type shelf struct {
	t       testing.TB
	mu      sync.Mutex
	entries []journal.Entry
	appends int
	// before makes an append fail without effect, after one that took effect. n counts from 1.
	before, after func(n int) error
}

// keep stores entries as a durable store does: encoded as JSON.
func (s *shelf) keep(entries ...journal.Entry) []journal.Entry {
	var stored []journal.Entry
	for _, e := range entries {
		data, err := json.Marshal(e)
		if err != nil {
			s.t.Errorf("entry cannot be stored: %v", err)
		}
		var back journal.Entry
		if err := json.Unmarshal(data, &back); err != nil {
			s.t.Errorf("entry cannot be read: %v", err)
		}
		back.N = int64(len(s.entries) + 1)
		s.entries = append(s.entries, back)
		e.N = back.N
		stored = append(stored, e)
	}
	return stored
}

func (s *shelf) all() []journal.Entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]journal.Entry(nil), s.entries...)
}

// handle is one lane holder's view; it implements agent.Journal.
type handle struct {
	*shelf
	last   int64
	single sync.Mutex
	load   error
}

func (h *handle) Load(ctx context.Context, room int) (journal.Tail, error) {
	if err := ctx.Err(); err != nil {
		return journal.Tail{}, err
	}
	if h.load != nil {
		return journal.Tail{}, h.load
	}
	list := h.all()
	h.last = int64(len(list))
	back := journal.Back{Room: room}
	for _, e := range slices.Backward(list) {
		if !back.Take(e) {
			break
		}
	}
	tail := back.Tail()
	if n := back.Wants(); n > 0 {
		return tail.With(list[n-1]), nil
	}
	return tail, nil
}

func (h *handle) Append(ctx context.Context, entries ...journal.Entry) ([]journal.Entry, error) {
	if !h.single.TryLock() {
		return nil, errors.New("two goroutines append at once")
	}
	defer h.single.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.appends++
	if h.before != nil {
		if err := h.before(h.appends); err != nil {
			return nil, err
		}
	}
	if h.last != int64(len(h.entries)) {
		return nil, fmt.Errorf("append after %d, it is at %d: %w", h.last, len(h.entries), journal.ErrConflict)
	}
	stored := h.keep(entries...)
	h.last += int64(len(entries))
	if h.after != nil {
		if err := h.after(h.appends); err != nil {
			return nil, err
		}
	}
	return stored, nil
}

// watcher records events.
type watcher struct {
	mu     sync.Mutex
	events []agent.Event
}

func (w *watcher) Emit(_ context.Context, e agent.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

func (w *watcher) types() []agent.EventType {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []agent.EventType
	for _, e := range w.events {
		list = append(list, e.Type)
	}
	return list
}

// hand executes through the real chain and records what ran.
type hand struct {
	chain *chain.Chain

	mu          sync.Mutex
	ran         []string // calls that were started, in order
	probed      []string
	interrupted []string
	calls       []*tools.Call // all that were executed, probes too
}

func (h *hand) Execute(ctx context.Context, call *tools.Call) (*tools.Result, error) {
	res, err := h.chain.Execute(ctx, call)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call)
	if call.Probe {
		h.probed = append(h.probed, call.ID)
	}
	if call.Trail.Started {
		h.ran = append(h.ran, call.ID)
	}
	return res, err
}

func (h *hand) Interrupted(_ context.Context, call *tools.Call) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.interrupted = append(h.interrupted, call.ID)
}

// ask is the policy of the tests: adding 10 or more needs approval, 100 or more is denied.
func ask(r policy.Request) policy.Decision {
	d := policy.Decision{Effect: policy.Allow, Rule: "test rule", Reason: reason.Plain("Adding much is asked for.")}
	if r.Tool == "count" && len(r.Inputs) == 1 {
		switch len(r.Inputs[0]) {
		case 2:
			d.Effect = policy.Ask
		case 3:
			d.Effect = policy.Deny
		}
	}
	return d
}

type catalog func() []tools.Definition

func (c catalog) Tools(context.Context, *agent.Turn, agent.View) []agent.Offer {
	var list []agent.Offer
	for _, d := range c() {
		list = append(list, agent.Plain(d))
	}
	return list
}

// world is the environment of a turn; its durable parts survive a new runner.
type world struct {
	t       testing.TB
	shelf   *shelf
	counter *toolstest.Counter
	blocker *toolstest.Blocker
	lookup  *toolstest.Lookup
	hand    *hand
	watch   *watcher
	deps    agent.Deps
	limits  agent.Limits
	turn    *agent.Turn
}

var noon = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// newWorld returns a world in which Ann has said text, with tools in addition to echo, count and block.
func newWorld(t testing.TB, provider llm.Provider, text string, more ...tools.Tool) *world {
	t.Helper()
	w := &world{
		t: t, shelf: &shelf{t: t}, counter: &toolstest.Counter{}, blocker: toolstest.NewBlocker(), lookup: &toolstest.Lookup{}, watch: &watcher{},
		turn: &agent.Turn{
			ID: "turn-1", Request: "7f3a",
			Origin: tools.Origin{Channel: "telegram", Session: "telegram/1/bot/42/0/0", Chat: "telegram/1/bot/42", Turn: "turn-1", Caller: "telegram:42"},
		},
	}
	registry, err := tools.NewRegistry(append([]tools.Tool{toolstest.Echo(), w.counter.Tool(), w.blocker.Tool()}, more...)...)
	if err != nil {
		t.Fatal(err)
	}
	w.hand = &hand{chain: chain.New(chain.Options{
		Registry: registry, Gate: chain.GateOptions{Policy: toolstest.Decide(ask)}, Approvals: w.lookup, Now: func() time.Time { return noon },
	})}
	w.deps = agent.Deps{
		Provider: provider, Tools: w.hand, Catalog: catalog(registry.Definitions),
		System: func(*agent.Turn, bool) string { return "You are a test." }, Now: func() time.Time { return noon },
	}
	w.shelf.keep(journal.Entry{Turn: w.turn.ID, Kind: journal.UserEntry, At: noon, Text: text, Caller: "telegram:42", Speaker: "Ann"})
	return w
}

// run runs the turn once with a new runner and a new handle, like a process that has just started, and commits the
// outcome.
func (w *world) run(ctx context.Context) (agent.Outcome, error) {
	h := &handle{shelf: w.shelf}
	out, err := agent.NewRunner(w.deps, w.limits).Run(ctx, w.turn, h, w.watch)
	if err == nil && len(out.Entries) > 0 {
		if _, err := h.Append(context.WithoutCancel(ctx), out.Entries...); err != nil {
			return out, fmt.Errorf("commit: %w", err)
		}
	}
	return out, err
}

// must is run for cases that must not fail.
func (w *world) must(ctx context.Context) agent.Outcome {
	w.t.Helper()
	out, err := w.run(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// finish continues until the turn is over: questions are answered with yes, failures of the store with a retry.
func (w *world) finish(ctx context.Context) agent.Outcome {
	w.t.Helper()
	for range 100 {
		out, err := w.run(ctx)
		switch {
		case err != nil && (errors.Is(err, errStore) || errors.Is(err, journal.ErrConflict)):
		case err != nil:
			w.t.Fatal(err)
		case out.Kind == agent.Parked:
			w.approve(out)
		case out.Kind == agent.Answered, out.Kind == agent.Ended:
			return out
		}
	}
	w.t.Fatal("the turn does not end")
	return agent.Outcome{}
}

func (w *world) approve(out agent.Outcome) {
	for _, q := range out.Questions {
		w.lookup.Set(w.turn.Origin.Session, q.Call, approve.Approval{State: approve.Approved, By: "telegram:42", Hash: q.Hash})
	}
}

// results returns the stored results by call.
func (w *world) results() map[string]journal.Entry {
	m := map[string]journal.Entry{}
	for _, e := range w.shelf.all() {
		if e.Kind == journal.ResultEntry {
			m[e.Call] = e
		}
	}
	return m
}

func (w *world) kinds() string {
	var b strings.Builder
	for _, e := range w.shelf.all() {
		fmt.Fprintf(&b, "%s ", e.Kind)
	}
	return strings.TrimSpace(b.String())
}

func script(t testing.TB, text string) *llmtest.Model {
	t.Helper()
	m, err := llmtest.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wellFormed checks what every vendor requires: each use is answered, in order, before the next message.
func wellFormed(t testing.TB, requests []llm.Request) {
	t.Helper()
	for n, r := range requests {
		for i, m := range r.Messages {
			if m.Role == llm.ToolRole && m.Result == nil {
				t.Fatalf("request %d: message %d has no result", n, i)
			}
			for k, u := range m.Uses {
				at := i + 1 + k
				if at >= len(r.Messages) || r.Messages[at].Role != llm.ToolRole || r.Messages[at].Result.ID != u.ID {
					t.Fatalf("request %d: use %s has no result in its place", n, u.ID)
				}
			}
		}
	}
}

// chatFunc is a provider made from a function.
type chatFunc func(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error)

func (chatFunc) Name() string { return "func" }

func (f chatFunc) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	return f(ctx, req, onDelta)
}

// replace replaces the test tool of the same name.
func (w *world) replace(t tools.Tool) {
	w.t.Helper()
	registry, err := tools.NewRegistry(toolstest.Echo(), t)
	if err != nil {
		w.t.Fatal(err)
	}
	w.hand.chain = chain.New(chain.Options{
		Registry: registry, Gate: chain.GateOptions{Policy: toolstest.Decide(ask)}, Approvals: w.lookup, Now: func() time.Time { return noon },
	})
	w.deps.Catalog = catalog(registry.Definitions)
}
