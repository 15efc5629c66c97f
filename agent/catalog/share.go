package catalog

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/window"
)

// maxTold bounds the number of tool lists whose share was logged.
const maxTold = 64

// The tiers of tools. A lower tier is kept first.
const (
	tierCalled = iota // found by a search of this turn, or called in it
	tierBefore        // called in this conversation
	tierNamed         // the person named it, or the configuration pins it
	tierRanked        // all others, by rank
)

// share distributes the budget and the number of tools among the definitions of servers' tools. cost and the
// indices are those of a snapshot.
type share struct {
	budget int // tokens
	room   int // tools
	cost   []int
	tier   []int
	choice []Choice
	spent  map[string]int // tokens by server
	number map[string]int // tools by server
	total  int            // tokens
	kept   map[int]bool
}

// fitBudget hides the tools that exceed the budget or the number of tools in a request, of which extra are already
// given away. It is a pure function of the snapshot, the choices, and the tools that were found or have succeeded.
//
// Every server gets an equal part of the budget and of the number for its tools, so that no server can displace
// another, however it names its tools, however long and however many they are. Only tools that were found or
// called take more of the number. What some servers leave unused is given to those that need more: first to
// tools that were found or called, then to those that were named, then to the rest. Among equals, the server
// that has used least comes first. Built-in tools have no budget, and come before those of servers that were
// neither found nor called in this turn.
func (c *Catalog) fitBudget(s *snapshot, choices []Choice, found, done map[string]bool, extra int) (tokens, left int) {
	sh := share{
		budget: c.o.Budget, choice: choices,
		cost: make([]int, len(choices)), tier: make([]int, len(choices)),
		spent: map[string]int{}, number: map[string]int{}, kept: map[int]bool{},
	}
	queues := map[string][]int{}
	var own []int
	number, called := extra, 0
	for i, ch := range choices {
		if !ch.Shown {
			continue
		}
		number++
		server := s.defs[i].Server
		sh.tier[i] = tierOf(ch, found, done)
		if server == "" {
			own = append(own, i)
			continue
		}
		if sh.tier[i] == tierCalled {
			called++
		}
		sh.cost[i] = s.infos[i].tokens
		queues[server] = append(queues[server], i)
		tokens += sh.cost[i]
	}
	if (sh.budget <= 0 || tokens <= sh.budget) && number <= c.o.MaxTools {
		return tokens, 0
	}
	if sh.budget <= 0 {
		sh.budget = math.MaxInt
	}
	most := max(c.o.MaxTools-max(extra, 1), 0) // tool_search is offered for what is left out
	slices.SortStableFunc(own, sh.orderTools)
	own = own[:min(len(own), max(most-called, most/2))]
	for _, i := range own {
		sh.kept[i] = true
	}
	sh.room = most
	servers := slices.Sorted(maps.Keys(queues))
	for _, server := range servers {
		slices.SortStableFunc(queues[server], sh.orderTools)
	}
	sh.divideRest(s, sh.serverParts(servers, queues, len(own)))
	for i := range choices {
		if ch := &choices[i]; ch.Shown && !sh.kept[i] {
			ch.Shown, ch.Reasons = false, append(slices.Clone(ch.Reasons), OverBudget)
			left++
		}
	}
	return sh.total, left
}

// serverParts gives every server its part, beside a number of built-in tools, and returns the tools that did not
// fit into it, in the order of before within a server. Tools that were found or called in this turn come first, and
// are limited only in their tokens.
func (sh *share) serverParts(servers []string, queues map[string][]int, own int) []int {
	if len(servers) == 0 {
		return nil
	}
	budget, number := sh.budget/len(servers), (sh.room-own)/len(servers)
	var rest []int
	for _, first := range []bool{true, false} {
		for _, server := range servers {
			for _, i := range queues[server] {
				most := sh.room
				if !first {
					most = number
				}
				if (sh.tier[i] == tierCalled) == first && !sh.takeTool(server, i, budget, most) {
					rest = append(rest, i)
				}
			}
		}
	}
	return rest
}

func tierOf(ch Choice, found, done map[string]bool) int {
	switch {
	case found[ch.Tool], ch.Has(Used):
		return tierCalled
	case done[ch.Tool]:
		return tierBefore
	case ch.Has(NameMentioned), ch.Has(AlwaysOn):
		return tierNamed
	default:
		return tierRanked
	}
}

// orderTools orders tools by priority.
func (sh *share) orderTools(a, b int) int {
	return cmp.Or(cmp.Compare(sh.tier[a], sh.tier[b]), cmp.Compare(sh.choice[b].Score, sh.choice[a].Score))
}

// takeTool keeps a tool if its server stays within a number of tokens and of tools, and all tools
// within the budget and the room.
func (sh *share) takeTool(server string, i, tokens, number int) bool {
	if sh.spent[server]+sh.cost[i] > tokens || sh.total+sh.cost[i] > sh.budget ||
		sh.number[server] >= number || len(sh.kept) >= sh.room {
		return false
	}
	sh.spent[server] += sh.cost[i]
	sh.number[server]++
	sh.total += sh.cost[i]
	sh.kept[i] = true
	return true
}

// divideRest gives the rest of the budget to the tools that did not fit into the part of their server.
func (sh *share) divideRest(s *snapshot, rest []int) {
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
		sh.takeTool(next, queues[next][0], sh.budget, sh.room)
		if queues[next] = queues[next][1:]; len(queues[next]) == 0 {
			servers = slices.DeleteFunc(servers, func(server string) bool { return server == next })
		}
	}
}

// estimateTokens is the size of a definition in a request, in tokens.
func estimateTokens(in *info) int {
	return window.Tool(llm.Tool{Name: in.offer.Name, Description: in.offer.Description, Schema: in.offer.Schema})
}

// Share says how many tools a server has, and how many of them fit into the budget when all servers want to show all of
// theirs.
type Share struct{ Fit, Of int }

// Shares returns the share of every server by its id, and the budget in tokens, 0 = no limit.
func (c *Catalog) Shares() (shares map[string]Share, budget int) {
	s := c.allTools()
	choices := make([]Choice, len(s.defs))
	for i, d := range s.defs {
		choices[i] = Choice{Tool: d.Name, Shown: true}
	}
	c.fitBudget(s, choices, nil, nil, 0)
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
		Int("max_tools", c.o.MaxTools).
		Msg("tools of servers exceed their share of the context; the rest is found by tool_search")
}
