// Package learnt stores what was learnt of model servers: which tools they refuse, which fields they want, how
// large their windows are. It implements dialect.Memory. All processes share it; what is recalled is in the memory of
// this one.
package learnt

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/texts"
)

// Bucket holds what was learnt, by provider and model. revisions holds one value, which changes with each change.
const (
	Bucket    = "model_server"
	revisions = "model_server_revision"
)

// Entry is what was learnt of the server of a provider.
type Entry struct {
	Provider string          `json:"provider"`
	Model    string          `json:"model"`
	Server   string          `json:"server"` // hash of address and key: another server has to be learnt again
	Learnt   *dialect.Learnt `json:"learnt"`
}

// Deps are the dependencies of a Memory. All are required.
type Deps struct {
	// Server returns the hash of the address and the key of a provider; "" = it is not configured.
	Server func(provider string) string
	Now    func() time.Time
	Log    zerolog.Logger
}

// Memory is a dialect.Memory that outlives the process. Safe for concurrent use; it starts no goroutines.
type Memory struct {
	deps     Deps
	local    dialect.Local
	store    facts.Store // nil = not open
	followed *facts.Followed[[]Entry]

	mu      sync.Mutex
	changed map[[2]string]bool // provider and model: what is not stored yet
	wake    chan struct{}
	fresh   []Entry // with the tools that were set aside and that nobody was told of
}

// New returns a Memory that knows nothing before the first Follow.
func New(deps Deps) *Memory {
	return &Memory{
		deps: deps, local: dialect.Local{Now: deps.Now}, changed: map[[2]string]bool{}, wake: make(chan struct{}, 1),
	}
}

// Open sets where what is learnt is kept. It is called at most once, before Follow, Run and Store, which do nothing
// without it: the providers of models are made before the store is open.
func (m *Memory) Open(store facts.Store) {
	m.store, m.followed = store, facts.NewFollowed(store, Bucket, revisions, m.deps.Now, Entries)
}

// Entries reads what is stored in the bucket. What cannot be read is left out.
func Entries(list []bot.Fact) []Entry {
	var out []Entry
	for _, f := range list {
		var e Entry
		if json.Unmarshal([]byte(f.Value), &e) == nil && e.Learnt != nil {
			out = append(out, e)
		}
	}
	return out
}

// Recall implements dialect.Memory.
func (m *Memory) Recall(provider, model string) *dialect.Learnt {
	return m.local.Recall(provider, model)
}

// Update implements dialect.Memory. Run stores what has changed.
func (m *Memory) Update(provider, model string, change func(*dialect.Learnt)) {
	before := m.local.Recall(provider, model)
	m.local.Update(provider, model, change)
	after := m.local.Recall(provider, model)
	m.mu.Lock()
	m.changed[[2]string{provider, model}] = true
	if list := newAside(before, after); len(list) > 0 {
		m.fresh = append(m.fresh, Entry{Provider: provider, Model: model, Learnt: &dialect.Learnt{Aside: list}})
		m.fresh = m.fresh[max(0, len(m.fresh)-maxFresh):]
	}
	m.mu.Unlock()
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// maxFresh bounds how much waits to be told.
const maxFresh = 64

// LearnWindow keeps how many tokens a server takes. It is what a router calls after a refusal that says so.
func (m *Memory) LearnWindow(provider, model string, tokens int) {
	if known := m.Recall(provider, model); tokens <= 0 || known != nil && known.Window == tokens {
		return
	}
	m.Update(provider, model, func(l *dialect.Learnt) { l.Window = tokens })
}

// newAside returns the tools that were set aside between two states. A model that takes no tools at all is
// told of under the name NoTools.
func newAside(before, after *dialect.Learnt) []dialect.Aside {
	if after == nil {
		return nil
	}
	old := before.Clone()
	var list []dialect.Aside
	for _, a := range after.Aside {
		if !slices.ContainsFunc(old.Aside, func(b dialect.Aside) bool {
			return a.Tool == b.Tool && a.Schema == b.Schema
		}) {
			list = append(list, a)
		}
	}
	if slices.Contains(after.Omit, AllTools) && !slices.Contains(old.Omit, AllTools) {
		list = append(list, dialect.Aside{Tool: NoTools})
	}
	return list
}

// NoTools is the name of an Aside that means that a model takes no tools at all.
const NoTools = "*"

// AllTools is the name in Learnt.Omit of tools as such.
const AllTools = "tools"

// Follow reads what any process has stored since the last call. What this process has not stored yet is left alone.
func (m *Memory) Follow(ctx context.Context) error {
	if m.store == nil {
		return nil
	}
	if err := m.followed.Follow(ctx); err != nil {
		return err
	}
	for _, e := range m.followed.Value() {
		m.mu.Lock()
		waits := m.changed[[2]string{e.Provider, e.Model}]
		m.mu.Unlock()
		if waits || e.Server != m.deps.Server(e.Provider) {
			continue
		}
		if known := m.local.Recall(e.Provider, e.Model); known != nil &&
			(known.At.After(e.Learnt.At) || known.SameForm(e.Learnt) && known.Window == e.Learnt.Window) {
			continue
		}
		m.local.Set(e.Provider, e.Model, func(*dialect.Learnt) *dialect.Learnt { return e.Learnt.Clone() })
	}
	return nil
}

// Run stores what is learnt, and calls tell for each tool that this process has set aside, until ctx ends. It returns
// nil.
func (m *Memory) Run(
	ctx context.Context, tell func(ctx context.Context, provider, model string, aside dialect.Aside),
) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-m.wake:
		}
		if err := m.Store(ctx); err != nil && ctx.Err() == nil {
			m.deps.Log.Error().Err(err).Msg("what was learnt of a model's server is not kept")
		}
		m.mu.Lock()
		fresh := m.fresh
		m.fresh = nil
		m.mu.Unlock()
		for _, e := range fresh {
			for _, a := range e.Learnt.Aside {
				tell(ctx, e.Provider, e.Model, a)
			}
		}
	}
}

// Store stores what has changed since the last call. It insists until the store accepts it, or ctx ends.
func (m *Memory) Store(ctx context.Context) error {
	if m.store == nil {
		return nil
	}
	m.mu.Lock()
	waiting := m.changed
	m.changed = map[[2]string]bool{}
	m.mu.Unlock()
	if len(waiting) == 0 {
		return nil
	}
	change := &bot.Change{Facts: []bot.Fact{m.followed.Revised()}}
	for place := range waiting {
		f, ok := m.fact(place[0], place[1])
		if ok {
			change.Facts = append(change.Facts, f)
		}
	}
	keeper := facts.Keeper{Store: m.store, Log: m.deps.Log}
	if err := keeper.Keep(ctx, change); err != nil {
		m.mu.Lock()
		for place := range waiting {
			m.changed[place] = true
		}
		m.mu.Unlock()
		return fmt.Errorf("store what was learnt of model servers: %w", err)
	}
	return nil
}

// fact is what is stored of a server; ok = false: there is nothing, or nobody knows its address any more.
func (m *Memory) fact(provider, model string) (f bot.Fact, ok bool) {
	l, server := m.local.Recall(provider, model), m.deps.Server(provider)
	if l == nil || server == "" {
		return f, false
	}
	value, err := json.Marshal(Entry{Provider: provider, Model: model, Server: server, Learnt: l})
	if err != nil { // unreachable: it consists of texts and numbers
		return f, false
	}
	return bot.Fact{
		Bucket:  Bucket,
		Key:     provider + " " + model,
		Value:   string(value),
		Expires: l.At.Add(dialect.Forgotten),
	}, true
}

// Aside lists what the servers of some providers refuse, for /tools. The order is that of the providers.
func (m *Memory) Aside(places [][2]string) []texts.SetAside {
	var list []texts.SetAside
	for _, place := range places {
		l := m.Recall(place[0], place[1])
		if l == nil {
			continue
		}
		if slices.Contains(l.Omit, AllTools) {
			list = append(list, texts.SetAside{Provider: place[0], Model: place[1]})
		}
		for _, a := range l.Aside {
			list = append(list, texts.SetAside{Provider: place[0], Model: place[1], Tool: a.Tool, Reason: a.Reason})
		}
	}
	return list
}

// Describe says in one line what is known of a server, for operators; "" = nothing.
func Describe(l *dialect.Learnt) string { return strings.Join(Lessons(l), "; ") }

// Lessons says what is known of a server, one lesson after the other, for operators; nil = nothing.
func Lessons(l *dialect.Learnt) []string {
	if l.Empty() {
		return nil
	}
	var list []string
	for _, field := range l.Omit {
		if field == AllTools {
			list = append(list, "takes no tools: calls are written as fenced blocks")
			continue
		}
		list = append(list, "without "+field)
	}
	for _, from := range sortedKeys(l.Rename) {
		list = append(list, from+" as "+l.Rename[from])
	}
	for _, name := range sortedKeys(l.Set) {
		list = append(list, name+" = "+l.Set[name])
	}
	if l.Wire != "" {
		list = append(list, "wire "+l.Wire)
	}
	if l.Safe {
		list = append(list, "only the simplest schemas")
	}
	if l.Closed {
		list = append(list, "closed schemas")
	}
	if l.MaxTools > 0 {
		list = append(list, fmt.Sprintf("at most %d tools", l.MaxTools))
	}
	for _, rule := range l.History {
		list = append(list, "history: "+rule)
	}
	if l.Begins != "" {
		list = append(list, "answers begin with "+l.Begins)
	}
	if l.Window > 0 {
		list = append(list, fmt.Sprintf("window of %d tokens", l.Window))
	}
	for _, a := range l.Aside {
		list = append(list, "set aside "+a.Tool+" ("+a.Reason+")")
	}
	return list
}

func sortedKeys(m map[string]string) []string {
	list := make([]string, 0, len(m))
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
