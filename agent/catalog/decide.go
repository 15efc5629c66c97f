package catalog

import (
	"cmp"
	"slices"
)

// decision is what becomes of every tool of a snapshot. It is a pure function of the snapshot, the ranking and what has
// succeeded.
type decision struct {
	choices  []Choice
	gatesOff bool
}

// decide applies a ranking. done is what has succeeded in the conversation, used what of it ran in this turn, found
// what a search of the turn has found. With open the requirements do not count.
func (c *Catalog) decide(s *snapshot, r *ranking, done, used, found map[string]bool, open bool) decision {
	d := decision{choices: make([]Choice, len(s.defs)), gatesOff: open}
	var own, foreign []int // to be ranked
	for i, def := range s.defs {
		ch := &d.choices[i]
		ch.Tool = def.Name
		if r.ranked {
			ch.Boost = c.graph.boost(def.Name, done)
			ch.Score = float64(r.scores[i]) + ch.Boost
		}
		ch.Reasons = c.sure(s, r, i, used, found)
		switch {
		case len(ch.Reasons) > 0:
		case def.Server == "":
			own = append(own, i)
		default:
			foreign = append(foreign, i)
		}
	}
	if f := c.o.Filter; len(own) > 0 {
		c.top(d.choices, own, r, f.MinSimilarity, cmp.Or(f.TopK, len(own)))
	}
	if len(foreign) > 0 && !r.model {
		c.foreigners(s, d.choices, foreign, r)
	}
	irrelevant := []Reason{NotRelevant} // shared: it has no room to grow
	for i := range d.choices {
		ch := &d.choices[i]
		if ch.Shown = len(ch.Reasons) > 0; !ch.Shown {
			ch.Reasons = irrelevant
		}
	}
	c.gate(&d, done, used)
	return d
}

// foreigners chooses among MCP tools. The tools of a server that the person names are ranked among themselves, however
// little the words of the message say about each. Words that all tools share say nothing of any ("look at my files", of
// a server for files): then the best are shown whatever their score, as for a ranking that failed, unless it is strict.
func (c *Catalog) foreigners(s *snapshot, choices []Choice, candidates []int, r *ranking) {
	f := c.o.Discovery
	var named, others []int
	for _, i := range candidates {
		if r.servers[s.defs[i].Server] {
			named = append(named, i)
		} else {
			others = append(others, i)
		}
	}
	c.top(choices, named, r, anyScore, f.TopK)
	least := f.MinSimilarity
	if r.known > 0 && len(r.carried) == 0 && !f.Strict && len(named) == 0 && !slices.ContainsFunc(others, func(i int) bool { return choices[i].Score >= least }) {
		least = anyScore
	}
	c.top(choices, others, r, least, f.TopK)
}

// anyScore is less than every score.
const anyScore = -2

// unfiltered is shared by all tools that nothing filters: it has no room to grow.
var unfiltered = []Reason{Unfiltered}

// sure gives the reasons to show a tool that do not depend on its rank among others.
func (c *Catalog) sure(s *snapshot, r *ranking, i int, used, found map[string]bool) []Reason {
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
	add(c.pins(in), AlwaysOn)
	add(r.mentioned[i], NameMentioned)
	add(!c.filtered(s, def), SmallServer)
	if r.model {
		add(r.chosen[def.Name], ChosenByModel)
		add(r.chosen == nil && !c.o.Discovery.Strict, Unranked)
	} else {
		add(!r.ranked && !c.o.Discovery.Strict, Unranked)
	}
	return list
}

// top shows the best of the candidates that are similar enough; of equals the first.
func (c *Catalog) top(choices []Choice, candidates []int, r *ranking, least float64, limit int) {
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

// gate hides what requires tools that have not succeeded. Only what is always on, or ran, is exempt. Where that would
// hide everything else, the requirements do not count in this turn: a model with nothing left could not meet them
// either.
func (c *Catalog) gate(d *decision, done, used map[string]bool) {
	if len(c.graph.rules) == 0 {
		return
	}
	left, hidden := 0, 0
	for i := range d.choices {
		ch := &d.choices[i]
		ch.Missing = c.graph.missing(ch.Tool, done)
		switch {
		case !ch.Shown:
		case c.held(ch, used):
			hidden++
		case !c.alwaysOn[ch.Tool]:
			left++
		}
		if ch.Shown && len(c.graph.rules[ch.Tool].Requires) > 0 && len(ch.Missing) == 0 {
			ch.Reasons = append(ch.Reasons, DependencyMet)
		}
	}
	if d.gatesOff = d.gatesOff || hidden > 0 && left == 0; !d.gatesOff {
		c.hide(d.choices, used)
	}
}

// held says whether the requirements of a tool hide it.
func (c *Catalog) held(ch *Choice, used map[string]bool) bool {
	return len(ch.Missing) > 0 && !c.alwaysOn[ch.Tool] && !used[ch.Tool]
}

func (c *Catalog) hide(choices []Choice, used map[string]bool) {
	for i := range choices {
		if ch := &choices[i]; ch.Shown && c.held(ch, used) {
			ch.Shown, ch.Reasons = false, append(ch.Reasons, DependencyUnmet)
		}
	}
}
