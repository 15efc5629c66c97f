package catalog

import (
	"cmp"
	"slices"
)

// decision is the result for every tool of a snapshot. It is a pure function of the snapshot, the ranking and the tools
// that have succeeded.
type decision struct {
	choices  []Choice
	gatesOff bool
}

// applyRanking applies a ranking. done are the tools that have succeeded in the conversation, used those of them that
// ran in this turn, found those that a search of the turn has found. With open set, requirements do not count.
func (c *Catalog) applyRanking(s *snapshot, r *ranking, done, used, found map[string]bool, open bool) decision {
	d := decision{choices: make([]Choice, len(s.defs)), gatesOff: open}
	var own, foreign []int // to be ranked
	for i, def := range s.defs {
		ch := &d.choices[i]
		ch.Tool = def.Name
		if r.ranked {
			ch.Boost = c.graph.boostOf(def.Name, done)
			ch.Score = float64(r.scores[i]) + ch.Boost
		}
		ch.Reasons = c.sureReasons(s, r, i, used, found)
		if s.deferred(i) && done[def.Name] {
			ch.Reasons = append(ch.Reasons, InUse)
		}
		switch {
		case len(ch.Reasons) > 0, s.deferred(i):
		case def.Server == "":
			own = append(own, i)
		default:
			foreign = append(foreign, i)
		}
	}
	if f := c.o.Filter; len(own) > 0 {
		c.showBest(d.choices, own, r, f.MinSimilarity, cmp.Or(f.TopK, len(own)))
	}
	if len(foreign) > 0 && !r.model {
		c.chooseForeign(s, d.choices, foreign, r)
	}
	irrelevant := []Reason{NotRelevant} // shared, so it has no spare capacity
	for i := range d.choices {
		ch := &d.choices[i]
		switch ch.Shown = len(ch.Reasons) > 0; {
		case ch.Shown:
		case s.deferred(i):
			ch.Reasons = onDemand
		default:
			ch.Reasons = irrelevant
		}
	}
	c.hideUnmet(&d, done, used)
	return d
}

// chooseForeign chooses among MCP tools. The tools of a server that the person names are ranked among themselves,
// however low their scores. If every score is low, the words say nothing about any tool ("look at my files" for a file
// server); then the best tools are shown whatever their score, as after a failed ranking, unless Strict is set.
func (c *Catalog) chooseForeign(s *snapshot, choices []Choice, candidates []int, r *ranking) {
	f := c.o.Discovery
	var named, others []int
	for _, i := range candidates {
		if r.servers[s.defs[i].Server] {
			named = append(named, i)
		} else {
			others = append(others, i)
		}
	}
	c.showBest(choices, named, r, anyScore, f.TopK)
	least := f.MinSimilarity
	hopeless := !slices.ContainsFunc(others, func(i int) bool { return choices[i].Score >= least })
	if hopeless && r.known > 0 && len(r.carried) == 0 && !f.Strict && len(named) == 0 {
		least = anyScore
	}
	c.showBest(choices, others, r, least, f.TopK)
}

// anyScore is below every score.
const anyScore = -2

// unfiltered and onDemand are shared by all tools that no filter applies to, so they have no spare capacity.
var (
	unfiltered = []Reason{Unfiltered}
	onDemand   = []Reason{OnDemand}
)

// sureReasons returns the reasons to show a tool that do not depend on its rank.
func (c *Catalog) sureReasons(s *snapshot, r *ranking, i int, used, found map[string]bool) []Reason {
	def, in := s.defs[i], s.infos[i]
	var list []Reason
	add := func(yes bool, reason Reason) {
		if yes {
			list = append(list, reason)
		}
	}
	add(used[def.Name], Used)
	add(found[def.Name], Found)
	add(r.carried[def.Name], Carried)
	if def.Server == "" {
		if s.deferred(i) {
			return list
		}
		if !c.o.Filter.Enabled {
			if len(list) == 0 {
				return unfiltered
			}
			return append(list, Unfiltered)
		}
		add(c.alwaysOn[def.Name], AlwaysOn)
		add(r.mentioned[i], NameMentioned)
		add(in.short, ShortDescription)
		add(!r.ranked, Unranked)
		add(r.ranked && r.bare[i], NoEmbedding)
		return list
	}
	if r.foreign.all {
		add(c.o.Discovery.Strategy == None, Unfiltered)
		add(c.o.Discovery.Strategy != None, SmallServer)
		return list
	}
	add(c.pinsTool(in), AlwaysOn)
	add(r.mentioned[i], NameMentioned)
	add(!c.isFiltered(s, def), SmallServer)
	if r.model {
		add(r.chosen[def.Name], ChosenByModel)
		add(r.chosen == nil && !c.o.Discovery.Strict, Unranked)
	} else {
		add(!r.ranked && !c.o.Discovery.Strict, Unranked)
	}
	return list
}

// showBest shows the best of the candidates that are similar enough. Of equal ones, the first wins.
func (c *Catalog) showBest(choices []Choice, candidates []int, r *ranking, least float64, limit int) {
	if !r.ranked {
		return
	}
	candidates = slices.DeleteFunc(candidates, func(i int) bool { return choices[i].Score < least })
	slices.SortStableFunc(candidates, func(a, b int) int { return cmp.Compare(choices[b].Score, choices[a].Score) })
	for _, i := range candidates[:min(limit, len(candidates))] {
		ch := &choices[i]
		ch.Reasons = append(ch.Reasons, SimilarityRank)
		if r.bare[i] {
			ch.Reasons = append(ch.Reasons, NoEmbedding)
		}
		if ch.Boost > 0 {
			ch.Reasons = append(ch.Reasons, PreferenceBoost)
		}
	}
}

// hideUnmet hides tools that require tools that have not succeeded. Only tools that are always on, or ran, are
// exempt. If that would hide everything else, requirements do not count in this turn, because a model with no tools
// left could not meet them either.
func (c *Catalog) hideUnmet(d *decision, done, used map[string]bool) {
	if len(c.graph.rules) == 0 {
		return
	}
	left, hidden := 0, 0
	for i := range d.choices {
		ch := &d.choices[i]
		ch.Missing = c.graph.missingTools(ch.Tool, done)
		switch {
		case !ch.Shown:
		case c.isHeld(ch, used):
			hidden++
		case !c.alwaysOn[ch.Tool]:
			left++
		}
		if ch.Shown && len(c.graph.rules[ch.Tool].Requires) > 0 && len(ch.Missing) == 0 {
			ch.Reasons = append(ch.Reasons, DependencyMet)
		}
	}
	if d.gatesOff = d.gatesOff || hidden > 0 && left == 0; !d.gatesOff {
		c.hideTools(d.choices, used)
	}
}

// isHeld reports whether the requirements of a tool hide it.
func (c *Catalog) isHeld(ch *Choice, used map[string]bool) bool {
	return len(ch.Missing) > 0 && !c.alwaysOn[ch.Tool] && !used[ch.Tool]
}

func (c *Catalog) hideTools(choices []Choice, used map[string]bool) {
	for i := range choices {
		if ch := &choices[i]; ch.Shown && c.isHeld(ch, used) {
			ch.Shown, ch.Reasons = false, append(ch.Reasons, DependencyUnmet)
		}
	}
}
