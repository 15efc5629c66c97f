package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/tools"
)

// turnState remembers what a turn was shown. Every step is shown the same tools in the same order, so that the vendor's
// prompt cache hits. Tools added during the turn come last.
type turnState struct {
	mu       sync.Mutex
	chosen   bool
	query    string
	snapshot *snapshot
	vec      []float32
	ranking  *ranking
	done     []string        // tools that had succeeded at the last step
	found    []string        // tools that searches of the turn had found at the last step
	before   map[string]bool // tools that had succeeded before the turn
	gatesOff bool
	names    []string
	offers   []agent.Offer
}

// Tools implements agent.Catalog. Turns share the list that it returns.
func (c *Catalog) Tools(ctx context.Context, turn *agent.Turn, view agent.View) []agent.Offer {
	began := c.o.Now()
	defs, search := c.sourceTools(turn.Origin, turn.Tools)
	s := c.prepareSnapshot(defs, search)
	t := c.stateOf(turn)
	t.mu.Lock()
	defer t.mu.Unlock()
	fresh := !t.chosen
	same := t.query == view.Query && t.snapshot == s &&
		slices.Equal(t.done, view.Succeeded) && slices.Equal(t.found, view.Found)
	if !fresh && same {
		turn.Shown = recordedTools(s, t.names)
		return t.offers
	}
	r, vec := t.ranking, t.vec
	if fresh || t.query != view.Query || t.snapshot.hash != s.hash {
		if t.query != view.Query {
			vec = nil
		}
		r, vec = c.rankTools(ctx, s, view.Query, vec)
		c.carryTools(turn, view.Query, r)
	}
	before := t.before
	if fresh {
		before = succeededBefore(&view)
		t.names = view.Shown
	}
	done, used := setOf(view.Succeeded), map[string]bool{}
	for _, name := range view.Succeeded {
		if !before[name] {
			used[name] = true
		}
	}
	found := setOf(view.Found)
	d := c.applyRanking(s, r, done, used, found, t.gatesOff)
	keepShown(s, t.names, d.choices)
	extra := 0
	if searchTool(s, t.names, d.choices, search) != nil {
		extra = 1
	}
	tokens, left := c.fitBudget(s, d.choices, found, done, extra)
	c.tellShare(s, tokens, left)
	names, offers := c.listOffers(s, t.names, d.choices, searchTool(s, t.names, d.choices, search))
	turn.Shown = recordedTools(s, names)
	c.tellChoice(turn, view, r, d, len(names), tokens, began)
	if ctx.Err() != nil { // an interrupted ranking must not be kept
		return offers
	}
	t.chosen, t.query, t.snapshot, t.vec, t.ranking = true, view.Query, s, vec, r
	t.done, t.before, t.gatesOff, t.names, t.offers = slices.Clone(view.Succeeded), before, d.gatesOff, names, offers
	t.found = slices.Clone(view.Found)
	c.rememberTools(turn, d.choices, names)
	return offers
}

// stateOf finds or creates the state of a turn. A turn without an id has none.
func (c *Catalog) stateOf(turn *agent.Turn) *turnState {
	if turn.ID == "" {
		return &turnState{}
	}
	key := turn.Origin.Session + "\x00" + turn.ID + "\x00" + turn.Child
	c.mu.Lock()
	defer c.mu.Unlock()
	t, ok := c.turns.get(key)
	if !ok {
		t = &turnState{}
		c.turns.put(key, t)
	}
	return t
}

// keepShown shows the tools that were shown before, if they still exist.
func keepShown(s *snapshot, before []string, choices []Choice) {
	for _, name := range before {
		if i, ok := s.at[name]; ok && !choices[i].Shown {
			choices[i].Shown, choices[i].Reasons = true, []Reason{Kept}
		}
	}
}

// succeededBefore returns the tools that had succeeded before the turn. At a later step, another process began the
// turn, and some may have succeeded in it.
func succeededBefore(view *agent.View) map[string]bool {
	switch {
	case view.Step <= 1:
		return setOf(view.Succeeded)
	case view.Before != nil:
		return setOf(view.Before())
	default:
		return map[string]bool{}
	}
}

// mostRecorded bounds the names that a turn records. With more tools, another process that goes on with the turn
// chooses and orders them for itself.
const mostRecorded = 256

// recordedTools returns what a turn records of the tools that it is shown: nothing if they are those of the
// snapshot that are usually shown, which every process knows.
func recordedTools(s *snapshot, names []string) []string {
	if len(names) > mostRecorded {
		return nil
	}
	if usual, _ := s.usual(); slices.Equal(usual, names) {
		return nil
	}
	return names
}

// searchTool returns tool_search if there are tools on demand, if a tool of a server is left out that could be called,
// for lack of budget or of similarity to what the person said, or if the turn was shown it before; else nil.
func searchTool(s *snapshot, before []string, choices []Choice, search *tools.Definition) *tools.Definition {
	if search == nil || s.seldom || slices.Contains(before, search.Name) {
		return search
	}
	for i, ch := range choices {
		if !ch.Shown && s.defs[i].Server != "" && !ch.Has(DependencyUnmet) {
			return search
		}
	}
	return nil
}

// listOffers is arrangeOffers, with a list that turns share where they are shown what is usual.
func (c *Catalog) listOffers(
	s *snapshot, before []string, choices []Choice, search *tools.Definition,
) (names []string, offers []agent.Offer) {
	usual := len(before) == 0 && (search != nil) == s.seldom
	for i := range choices {
		usual = usual && choices[i].Shown == !s.deferred(i)
	}
	if usual {
		return s.usual()
	}
	return arrangeOffers(s, before, choices, search)
}

// arrangeOffers lists the tools shown before first and appends the new ones in the order of Source, and search, if it
// is not nil. Those that are shown on demand come last, so that the request begins as before when one is asked for; the
// others of them are only named.
func arrangeOffers(
	s *snapshot, before []string, choices []Choice, search *tools.Definition,
) (names []string, offers []agent.Offer) {
	seen := make(map[string]bool, len(before))
	add := func(name string, o agent.Offer) {
		if !seen[name] {
			seen[name] = true
			names, offers = append(names, name), append(offers, o)
		}
	}
	for _, name := range before {
		if i, ok := s.at[name]; ok && choices[i].Shown {
			add(name, s.infos[i].offer)
		} else if search != nil && name == search.Name {
			add(name, s.offerSearch(search))
		}
	}
	var last []agent.Offer
	for i, ch := range choices {
		switch {
		case s.deferred(i):
			offer := s.infos[i].offer
			offer.Named = !ch.Shown
			last = append(last, offer)
		case ch.Shown:
			add(ch.Tool, s.infos[i].offer)
		}
	}
	if search != nil {
		add(search.Name, s.offerSearch(search))
	}
	for _, o := range last {
		if !o.Named {
			add(o.Name, o)
		}
	}
	names = slices.Clip(names)
	for _, o := range last {
		if o.Named {
			offers = append(offers, o)
		}
	}
	return names, slices.Clip(offers)
}

// carryTools keeps the tools of the turn before if the person only agrees: "yes, please" names no tool and
// means the one under discussion.
func (c *Catalog) carryTools(turn *agent.Turn, query string, r *ranking) {
	if turn.Origin.Session == "" || turn.Child != "" || r.how == ByNothing {
		return
	}
	if list, _ := splitTerms(query); len(list) > 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if names, ok := c.sessions.get(turn.Origin.Session); ok {
		r.carried = setOf(names)
	}
}

// rememberTools stores, for the session, the tools that its turn was shown because of what the person said.
func (c *Catalog) rememberTools(turn *agent.Turn, choices []Choice, shown []string) {
	if turn.Origin.Session == "" || turn.Child != "" || len(shown) == 0 {
		return
	}
	var names []string
	for _, ch := range choices {
		if ch.Shown && slices.ContainsFunc(ch.Reasons, isSpoken) {
			names = append(names, ch.Tool)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions.put(turn.Origin.Session, names)
}

func isSpoken(r Reason) bool {
	switch r {
	case NameMentioned, SimilarityRank, ChosenByModel, Carried, Found, Used, Kept:
		return true
	default:
		return false
	}
}

func setOf(names []string) map[string]bool {
	m := make(map[string]bool, len(names))
	for _, n := range names {
		m[n] = true
	}
	return m
}

// tellChoice reports a choice to the observer and the log.
func (c *Catalog) tellChoice(
	turn *agent.Turn, view agent.View, r *ranking, d decision, shown, tokens int, began time.Time,
) {
	debug := c.o.Log.Debug()
	if c.o.Observe == nil && !debug.Enabled() {
		return
	}
	sel := Selection{
		Turn: turn.ID, Session: turn.Origin.Session, Step: view.Step,
		Ranked: r.how, Registered: len(d.choices), Shown: shown, GatesOff: d.gatesOff, Tokens: tokens,
		Tools: d.choices, Took: c.o.Now().Sub(began),
	}
	if c.o.Observe != nil {
		sel.Tools = slices.Clone(d.choices)
		c.o.Observe(sel)
	}
	if !debug.Enabled() {
		return
	}
	why := zerolog.Dict()
	for _, ch := range d.choices {
		// Nothing was decided about the other tools.
		if (ch.Shown || ch.Has(DependencyUnmet)) && !slices.Equal(ch.Reasons, []Reason{Unfiltered}) {
			why.Str(ch.Tool, ch.String())
		}
	}
	debug.Str("turn", turn.ID).Str("session", turn.Origin.Session).Int("step", view.Step).
		Str("ranked", r.how).Int("registered", sel.Registered).
		Int("shown", shown).Int("tokens", tokens).Bool("gates_off", d.gatesOff).Dict("tools", why).Msg("tools chosen")
}

// String describes the result for a tool in one line.
func (c Choice) String() string {
	text := ""
	for _, r := range c.Reasons {
		if text != "" {
			text += " "
		}
		text += string(r)
	}
	if c.Score != 0 {
		text += fmt.Sprintf(" %.2f", c.Score)
	}
	if len(c.Missing) > 0 {
		text += fmt.Sprintf(" missing %v", c.Missing)
	}
	return text
}

// probeLimit bounds a sync that no turn waits for.
const probeLimit = 2 * time.Minute

// Sync syncs the vectors of all tools with Source, so that the next turn does not have to. Call it after tools were
// added or removed. It blocks while tools are embedded, at most two minutes. Without an embedder, or if nothing is
// ranked by vectors, it does nothing.
func (c *Catalog) Sync(ctx context.Context) (SyncReport, error) {
	byVectors := c.o.Discovery.Strategy == Embedding
	if c.query == nil || !c.o.Filter.Enabled && !byVectors {
		return SyncReport{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	everything := c.allTools()
	probe, err := c.o.Embedder.Embed(ctx, []string{"tool"}) // reveals the number of dimensions
	if err == nil && (len(probe) != 1 || len(probe[0]) == 0) {
		err = errors.New("no vector")
	}
	if err != nil {
		return SyncReport{}, fmt.Errorf("embed: %w", err)
	}
	var report SyncReport
	if c.o.Filter.Enabled {
		r, err := c.own.forceSync(ctx, everything.own, len(probe[0]))
		if err != nil {
			return report, err
		}
		report = r
	}
	if byVectors {
		r, err := c.foreign.forceSync(ctx, everything.foreign, len(probe[0]))
		if err != nil {
			return report, err
		}
		report.Added += r.Added
		report.Updated += r.Updated
		report.Removed += r.Removed
		report.Unchanged += r.Unchanged
	}
	return report, nil
}
