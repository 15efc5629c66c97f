package catalog

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/source"
	"github.com/zephbot/zephbot/tools"
)

// SearchName is the tool that finds tools that were not shown. The catalog offers it only if it leaves out a tool that
// could be called.
const SearchName = "tool_search"

// Says returns the tool's statement about itself.
func Says() []act.Tool {
	return []act.Tool{{Name: SearchName, Statement: act.Statement{
		Act: act.Recalls, Aliases: []string{"search_tools", "find_tools"},
	}}}
}

// Limits of a search.
const (
	defaultFound = 5
	maxFound     = 20
	maxFoundLine = 160 // characters of a description
)

type searchArgs struct {
	Query string `json:"query" jsonschema:"English words or a name"`
	Max   int    `json:"max_results,omitempty"`
}

// SearchTool returns tool_search over the catalog's tools. It finds only tools that the conversation may call. Tools
// that it found are shown from the next model call of the turn on (agent.View.Found).
func (c *Catalog) SearchTool() (tools.Tool, error) {
	return tools.New(tools.Typed[searchArgs]{
		Definition: tools.Definition{
			Name: SearchName, ReadOnly: true, Says: act.Of(Says(), SearchName),
			Description: "Finds tools that you were not shown, for your next step.",
		},
		Describe: func(_ context.Context, _ *tools.Call, in searchArgs) (tools.Subject, error) {
			return tools.Subject{Inputs: []string{in.Query}, Show: "search tools: " + in.Query}, nil
		},
		Run: func(_ context.Context, call *tools.Call, in searchArgs) (*tools.Result, error) {
			return c.searchTools(call.Origin, in, call.Tools), nil
		},
	})
}

func (c *Catalog) searchTools(from tools.Origin, in searchArgs, overlay *tools.Overlay) *tools.Result {
	s := c.prepareSnapshot(c.sourceTools(from, overlay))
	found := c.findTools(s, in.Query, min(max(cmp.Or(in.Max, defaultFound), 1), maxFound))
	if len(found) == 0 && len(s.foreign) == 0 {
		return &tools.Result{Text: "No tool matches. There are no tools of servers here."}
	}
	if len(found) == 0 {
		servers := strings.Join(slices.Sorted(maps.Keys(s.server)), ", ")
		return &tools.Result{Text: fmt.Sprintf(
			"No tool matches. There are %d tools of servers here (%s); try other words, or the name of a server.",
			len(s.foreign), servers,
		)}
	}
	res := &tools.Result{}
	var b strings.Builder
	servers := map[string]bool{}
	for _, i := range found {
		d := s.defs[i]
		if d.Server != "" {
			servers["mcp:"+d.Server] = true
		}
		res.Found = append(res.Found, d.Name)
		fmt.Fprintf(&b, "%s: %s", d.Name, cleanLine(d.Description, maxFoundLine))
		if first := c.graph.rules[d.Name].Requires; len(first) > 0 {
			fmt.Fprintf(&b, " (can be called after: %s)", strings.Join(first, ", "))
		}
		b.WriteByte('\n')
	}
	res.Text = strings.TrimSuffix(b.String(), "\n")
	res.Untrusted = source.Source(strings.Join(slices.Sorted(maps.Keys(servers)), ", "))
	return res
}

// findTools ranks the tools of servers, and those on demand, by the words of a query: names that it mentions first, then by similarity. The
// best of every server come before the second best of any, so that no server can fill the list. A tool that cannot be
// shown, because its definition exceeds the budget, is not found.
func (c *Catalog) findTools(s *snapshot, query string, most int) []int {
	list, _ := splitTerms(query)
	scores, _ := s.words().rankDocuments(list)
	said, named := findMentions(s, query), namedServers(s, query)
	var hits []int
	for i, d := range s.defs {
		switch {
		case d.Server == "" && !s.deferred(i), d.Server != "" && c.o.Budget > 0 && s.infos[i].tokens > c.o.Budget:
		case said[i]:
			scores[i] += 2
			hits = append(hits, i)
		case scores[i] > 0, d.Server != "" && named[d.Server]:
			hits = append(hits, i)
		}
	}
	slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	place, round := make(map[int]int, len(hits)), map[string]int{}
	for _, i := range hits {
		place[i] = round[s.defs[i].Server]
		round[s.defs[i].Server]++
	}
	slices.SortStableFunc(hits, func(a, b int) int { return cmp.Compare(place[a], place[b]) })
	return hits[:min(len(hits), most)]
}

// sourceTools lists the tools to choose from and, separately, tool_search if it may be used.
func (c *Catalog) sourceTools(
	from tools.Origin, overlay *tools.Overlay,
) (defs []tools.Definition, search *tools.Definition) {
	defs = c.o.Source(from, overlay)
	at := slices.IndexFunc(defs, func(d tools.Definition) bool { return d.Name == SearchName })
	if at < 0 {
		return defs, nil
	}
	return slices.Concat(defs[:at], defs[at+1:]), &defs[at]
}

// allTools is the snapshot of all tools, for any chat.
func (c *Catalog) allTools() *snapshot {
	defs, search := c.sourceTools(tools.Origin{}, nil)
	return c.prepareSnapshot(defs, search)
}
