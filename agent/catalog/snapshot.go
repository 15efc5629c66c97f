package catalog

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zeebo/blake3"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/tools"
)

// shortWords is the fewest words of a description that can be ranked (from the seed's code; not configurable).
const shortWords = 5

// info is computed once for a definition. Immutable.
type info struct {
	offer    agent.Offer
	key      string // of the definition
	bare     string
	lower    []string // names by which a person can mention it
	short    bool
	complex  float64
	thinks   bool
	tokens   int             // of the definition as it is shown
	document func() document // computed when words are ranked
}

// snapshot is a list of definitions with the data computed once for it. Immutable.
type snapshot struct {
	defs   []tools.Definition
	hash   string
	infos  []*info
	at     map[string]int
	server map[string]int // number of tools by server
	// The definitions by kind.
	own, foreign []tools.Definition
	words        func() *wordIndex
	search       *tools.Definition // tool_search; nil = it may not be used
	seldom       bool              // there are tools that are shown on demand: see deferred
	// usual returns what a turn is shown that no filter applies to: the names and offers of all tools, in order, with
	// those on demand only named. Neither slice has spare capacity.
	usual func() ([]string, []agent.Offer)
}

// deferred reports whether a tool is shown only on demand. Without tool_search, a model could not ask for it.
func (s *snapshot) deferred(i int) bool {
	return s.seldom && s.defs[i].Seldom != "" && s.defs[i].Server == ""
}

// prepareSnapshot returns the cached snapshot of a list of definitions, or makes one. Comparing is cheap, because
// unchanged lists share their memory.
func (c *Catalog) prepareSnapshot(defs []tools.Definition, search *tools.Definition) *snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, l := range c.lists {
		if sameDefinitions(l.defs, defs) && (l.search == nil) == (search == nil) {
			copy(c.lists[1:i+1], c.lists[:i])
			c.lists[0] = l
			return l
		}
	}
	l := c.newList(slices.Clone(defs), search)
	c.lists = slices.Insert(c.lists, 0, l)
	if len(c.lists) > maxLists {
		c.lists = slices.Delete(c.lists, maxLists, len(c.lists))
	}
	return l
}

func (c *Catalog) newList(defs []tools.Definition, search *tools.Definition) *snapshot {
	l := &snapshot{
		defs: defs, infos: make([]*info, len(defs)),
		at: make(map[string]int, len(defs)), server: map[string]int{},
		search: search,
	}
	h := blake3.New()
	for i, d := range defs {
		in := c.infoOf(d)
		l.infos[i], l.at[d.Name] = in, i
		if d.Server == "" {
			l.own = append(l.own, d)
			l.seldom = l.seldom || d.Seldom != "" && search != nil && !c.o.Filter.Enabled
		} else {
			l.foreign = append(l.foreign, d)
			l.server[d.Server]++
		}
		fmt.Fprintf(h, "%s;", in.key)
	}
	l.hash = hex.EncodeToString(h.Sum(nil))
	l.words = sync.OnceValue(func() *wordIndex {
		docs := make([]document, len(l.infos))
		for i, in := range l.infos {
			docs[i] = in.document()
		}
		return newWordIndex(docs)
	})
	l.usual = sync.OnceValues(func() (names []string, offers []agent.Offer) {
		shown := make([]Choice, len(defs))
		for i := range shown {
			shown[i] = Choice{Tool: defs[i].Name, Shown: !l.deferred(i)}
		}
		if !l.seldom {
			search = nil
		}
		return arrangeOffers(l, nil, shown, search)
	})
	return l
}

// offerSearch returns tool_search as a turn is shown it: it names the tools that are shown on demand. What it says
// depends on the snapshot alone, so that requests begin alike.
func (s *snapshot) offerSearch(search *tools.Definition) agent.Offer {
	offer := agent.Plain(*search)
	if !s.seldom {
		return offer
	}
	var hints []string
	for i := range s.defs {
		if s.deferred(i) {
			hints = append(hints, s.defs[i].Name+": "+s.defs[i].Seldom)
		}
	}
	offer.Description += " Such as " + strings.Join(hints, "; ") + "."
	return offer
}

// infoOf returns the cached info of a definition, or makes it. c.mu must be held.
func (c *Catalog) infoOf(d tools.Definition) *info {
	key := fmt.Sprintf("%s %d", d.Hash(), d.Timeout)
	if in, ok := c.infos[key]; ok {
		return in
	}
	if len(c.infos) >= maxInfos {
		clear(c.infos)
	}
	in := &info{
		offer: agent.Plain(d),
		key:   key,
		bare:  bareName(d),
		short: len(strings.Fields(d.Description)) < shortWords,
	}
	in.lower = []string{strings.ToLower(d.Name)}
	if in.bare != d.Name {
		in.lower = append(in.lower, strings.ToLower(in.bare))
	}
	if c.o.TAFC.Enabled {
		in.complex = Complexity(d.Schema)
		if in.complex >= c.o.TAFC.Threshold {
			if schema, ok := withThinking(d.Schema); ok {
				in.offer.Schema, in.thinks = schema, true
			}
		}
	}
	if c.o.OutputHint != nil && d.Server != "" && len(d.OutputSchema) > 0 {
		if hint := c.o.OutputHint(d.OutputSchema); hint != "" {
			in.offer.Description = strings.TrimSpace(d.Description + "\n" + hint)
		}
	}
	in.tokens = estimateTokens(in)
	in.document = sync.OnceValue(func() document {
		return newDocument(in.bare, d.Server, d.Description, parameterNames(d.Schema))
	})
	c.infos[key] = in
	return in
}

// Thinks reports whether the tool is shown with a field for thoughts, which must be removed from the arguments before
// they are validated. The answer depends only on the definition and the options.
func (c *Catalog) Thinks(d tools.Definition) bool {
	if !c.o.TAFC.Enabled {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.infoOf(d).thinks
}

// sameDefinitions compares by value. Slices that share their memory are compared by pointer only.
func sameDefinitions(a, b []tools.Definition) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !sameDefinition(&a[i], &b[i]) {
			return false
		}
	}
	return true
}

func sameDefinition(a, b *tools.Definition) bool {
	return a.Name == b.Name && a.Description == b.Description &&
		bytes.Equal(a.Schema, b.Schema) && bytes.Equal(a.OutputSchema, b.OutputSchema) &&
		a.ReadOnly == b.ReadOnly && a.Destructive == b.Destructive &&
		a.Server == b.Server && a.Trusted == b.Trusted && a.Timeout == b.Timeout && a.Says == b.Says && a.Seldom == b.Seldom
}

// parameterNames lists the names of all properties of a schema, including nested ones, once per occurrence.
func parameterNames(schema json.RawMessage) []string {
	var doc any
	if json.Unmarshal(schema, &doc) != nil {
		return nil
	}
	var names []string
	var walk func(v any, depth int)
	walk = func(v any, depth int) {
		if depth > maxSchemaDepth || len(names) >= maxTerms {
			return
		}
		switch v := v.(type) {
		case map[string]any:
			for _, key := range sortedKeys(v) {
				if props, ok := v[key].(map[string]any); ok && key == "properties" {
					names = append(names, sortedKeys(props)...)
					for _, name := range sortedKeys(props) {
						walk(props[name], depth+1)
					}
					continue
				}
				walk(v[key], depth+1)
			}
		case []any:
			for _, item := range v {
				walk(item, depth+1)
			}
		}
	}
	walk(doc, 0)
	return names
}
