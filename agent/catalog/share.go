package catalog

import (
	"cmp"
	"maps"
	"slices"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/window"
)

// maxTold bounds the number of tool lists whose share was logged.
const maxTold = 64

// The tiers of servers' tools. A lower tier is kept first.
const (
	tierCalled = iota // found by a search of this turn, or called in this conversation
	tierNamed         // the person named it, or the configuration pins it
	tierRanked        // all others, by rank
)

// share distributes the budget among the definitions of servers' tools. cost and the indices are those of a snapshot.
type share struct {
	budget int // tokens
	cost   []int
	tier   []int
	choice []Choice
	spent  map[string]int // tokens by server
	total  int
	kept   map[int]bool
}

// fit hides the tools of servers that exceed the budget. It is a pure function of the snapshot, the choices, and the
// tools that were found or have succeeded.
//
// Every server gets an equal part of the budget for its tools, so that no server can displace another, however it names
// its tools and however long they are. What some servers leave unused is given to those that need more: first to tools
// that were found or called, then to those that were named, then to the rest. Among equals, the server that has used
// least comes first.
func (c *Catalog) fit(s *snapshot, choices []Choice, found, done map[string]bool) (tokens, left int) {
	sh := share{
		budget: c.o.Budget, choice: choices,
		cost: make([]int, len(choices)), tier: make([]int, len(choices)),
		spent: map[string]int{}, kept: map[int]bool{},
	}
	queues := map[string][]int{}
	for i, ch := range choices {
		server := s.defs[i].Server
		if server == "" || !ch.Shown {
			continue
		}
		sh.cost[i], sh.tier[i] = s.infos[i].tokens, tierOf(ch, found, done)
		queues[server] = append(queues[server], i)
		tokens += sh.cost[i]
	}
	if sh.budget <= 0 || tokens <= sh.budget {
		return tokens, 0
	}
	servers := slices.Sorted(maps.Keys(queues))
	var rest []int
	for _, server := range servers {
		slices.SortStableFunc(queues[server], sh.before)
		for _, i := range queues[server] {
			if !sh.take(server, i, sh.budget/len(servers)) {
				rest = append(rest, i)
			}
		}
	}
	sh.divide(s, rest)
	for i := range choices {
		if ch := &choices[i]; ch.Shown && s.defs[i].Server != "" && !sh.kept[i] {
			ch.Shown, ch.Reasons = false, append(slices.Clone(ch.Reasons), OverBudget)
			left++
		}
	}
	return sh.total, left
}

func tierOf(ch Choice, found, done map[string]bool) int {
	switch {
	case found[ch.Tool], done[ch.Tool]:
		return tierCalled
	case ch.Has(NameMentioned), ch.Has(AlwaysOn):
		return tierNamed
	default:
		return tierRanked
	}
}

// before orders tools by priority.
func (sh *share) before(a, b int) int {
	return cmp.Or(cmp.Compare(sh.tier[a], sh.tier[b]), cmp.Compare(sh.choice[b].Score, sh.choice[a].Score))
}

// take keeps a tool if its server stays within limit and all tools stay within the budget.
func (sh *share) take(server string, i, limit int) bool {
	if sh.spent[server]+sh.cost[i] > limit || sh.total+sh.cost[i] > sh.budget {
		return false
	}
	sh.spent[server] += sh.cost[i]
	sh.total += sh.cost[i]
	sh.kept[i] = true
	return true
}

// divide gives the rest of the budget to the tools that did not fit into the part of their server.
func (sh *share) divide(s *snapshot, rest []int) {
	queues := map[string][]int{}
	for _, i := range rest { // in the order of before, within a server
		queues[s.defs[i].Server] = append(queues[s.defs[i].Server], i)
	}
	servers := slices.Sorted(maps.Keys(queues))
	for len(servers) > 0 {
		next := slices.MinFunc(servers, func(a, b string) int {
			return cmp.Or(
				cmp.Compare(sh.tier[queues[a][0]], sh.tier[queues[b][0]]),
				cmp.Compare(sh.spent[a], sh.spent[b]),
			)
		})
		sh.take(next, queues[next][0], sh.budget)
		if queues[next] = queues[next][1:]; len(queues[next]) == 0 {
			servers = slices.DeleteFunc(servers, func(server string) bool { return server == next })
		}
	}
}

// estimate is the size of a definition in a request, in tokens.
func estimate(in *info) int {
	return window.Tool(llm.Tool{Name: in.offer.Name, Description: in.offer.Description, Schema: in.offer.Schema})
}

// Share says how many tools a server has, and how many of them fit into the budget when all servers want to show all of
// theirs.
type Share struct{ Fit, Of int }

// Shares returns the share of every server by its id, and the budget in tokens, 0 = no limit.
func (c *Catalog) Shares() (shares map[string]Share, budget int) {
	s := c.everything()
	choices := make([]Choice, len(s.defs))
	for i, d := range s.defs {
		choices[i] = Choice{Tool: d.Name, Shown: true}
	}
	c.fit(s, choices, nil, nil)
	shares = map[string]Share{}
	for i, d := range s.defs {
		if d.Server == "" {
			continue
		}
		sh := shares[d.Server]
		if sh.Of++; choices[i].Shown {
			sh.Fit++
		}
		shares[d.Server] = sh
	}
	return shares, c.o.Budget
}

// tellShare logs, once for every list of tools, that their definitions do not fit.
func (c *Catalog) tellShare(s *snapshot, tokens, left int) {
	c.mu.Lock()
	_, told := c.told.get(s.hash)
	if left > 0 && !told {
		c.told.put(s.hash, true)
	}
	c.mu.Unlock()
	if left == 0 || told {
		return
	}
	c.o.Log.Info().Int("tools", len(s.foreign)).Int("left_out", left).Int("tokens", tokens).Int("budget", c.o.Budget).
		Msg("tools of servers exceed their share of the context; the rest is found by tool_search")
}
