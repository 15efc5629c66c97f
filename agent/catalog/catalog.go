// Package catalog chooses the tools that a turn is shown: by similarity to what the person said, by which tools have
// already run, by server, or by asking a model. It also decides how a tool is shown: with a field for thoughts, or with
// a hint of its output (seeds 000, 001, 003 and 004).
package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/llm/toolschema"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

// The discovery strategies. Case does not matter.
const (
	Embedding = "Embedding" // rank by similarity; by words if there is no embedder
	Llm       = "Llm"       // ask a model
	None      = "None"      // show all
)

// Filter selects built-in tools ([agent.tool_filter]; seeds 000 and 003).
type Filter struct {
	Enabled       bool
	TopK          int     // most tools shown because of their rank; 0 = all that are similar enough
	MinSimilarity float64 // 0..1
	AlwaysOn      []string
}

// Discovery selects tools of MCP servers ([mcp.tool_discovery]; seed 001).
type Discovery struct {
	Strategy         string   // "" = Embedding
	TopK             int      // most tools shown because of their rank. 0: none with Embedding, no limit with Llm
	MinSimilarity    float64  // 0..1
	AlwaysInclude    []string // bare names, which pin that tool on every server, or server:tool
	MinToolsToFilter int      // a server with fewer tools has all of them shown
	Strict           bool     // if nothing can be ranked: show no tool instead of all
}

// Pruning lets a model select tools of MCP servers ([mcp.pruning]). It is ignored with the strategy Embedding.
type Pruning struct {
	Enabled         bool
	MaxTools        int // 0 = no limit
	MinToolsToPrune int // with fewer tools, all are shown
	AlwaysInclude   []string
}

// Dependencies order tools ([tools.dependencies]; seeds 000 and 003). A tool is hidden until every tool that it
// requires has succeeded in the conversation. Tools on the filter's always-on list are exempt while the filter is
// enabled. A mention by name or always_include of MCP tools is not an exemption.
type Dependencies struct {
	Enabled       bool
	BoostPerDep   float64 // for each preferred tool that has succeeded
	MaxTotalBoost float64
	Rules         map[string]Rule // by the qualified name of the tool
}

// Rule lists the tools that a tool requires, and those that it is preferred after.
type Rule struct{ Requires, Prefers []string }

// TAFC adds a field for thoughts to the schema of complex tools ([tools.tafc]).
type TAFC struct {
	Enabled   bool
	Threshold float64 // see Complexity; NaN = 0.6, other values are clamped to 0..1
}

// Options configure a Catalog. Only Source is required.
type Options struct {
	// Source lists the registered tools as the overlay of a turn leaves them (nil = all), without those hidden in the
	// conversation (none = any), always in the same order. Safe for concurrent use. The lists and what they point to
	// never change.
	Source       func(from tools.Origin, overlay *tools.Overlay) []tools.Definition
	Filter       Filter
	Discovery    Discovery
	Pruning      Pruning
	Dependencies Dependencies
	TAFC         TAFC
	// Budget is the most tokens (estimated by agent/window) that all definitions of MCP tools in one request may take
	// together; 0 = no limit.
	Budget int
	// MaxTools is the most tools in one request, built-in ones and tool_search included; 0 = toolschema.MaxTools, which
	// every server takes. A server that takes fewer still gets some of these.
	MaxTools int
	// OutputHint describes a structured result in words. The text is added to the description of MCP tools that have an
	// output schema. nil = none. It must not call the catalog.
	OutputHint func(schema json.RawMessage) string
	Embedder   *spend.Embedder // nil = tools are ranked by words
	Model      string          // name of the embedding model: vectors of another model are computed again
	Chooser    *spend.Model    // for the strategy Llm and for pruning
	Index      knn.Index       // of the MCP tools; nil = in memory
	Log        zerolog.Logger
	Observe    func(Selection)  // called for each choice, also one that only grew; nil = not called. Must not block
	Now        func() time.Time // nil = time.Now
}

// Limits of what is cached. Evicted entries are computed again.
const (
	maxLists    = 16
	maxInfos    = 8192
	maxTurns    = 512
	maxSessions = 2048
	maxAnswers  = 256
)

// Catalog implements agent.Catalog. Safe for concurrent use. It starts no goroutines.
type Catalog struct {
	o        Options
	graph    graph
	alwaysOn map[string]bool
	pinned   map[string]bool // bare and qualified names
	own      *vectors        // of the built-in tools; nil without an embedder
	foreign  *vectors        // of MCP tools; nil without an embedder
	query    *embedding      // nil without an embedder
	warnings []string

	mu       sync.Mutex
	lists    []*snapshot // most recently used first
	infos    map[string]*info
	turns    *lru[string, *turnState]
	sessions *lru[string, []string] // names that the last turn of a session was shown for a reason of its own
	answers  *lru[string, answer]
	told     *lru[string, bool] // lists whose share has been logged
}

// New returns a Catalog. Options that are odd but usable are reported by Warnings.
func New(o Options) (*Catalog, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.TAFC.Threshold = clampThreshold(o.TAFC.Threshold)
	o.MaxTools = cmp.Or(o.MaxTools, toolschema.MaxTools)
	if err := o.validate(); err != nil {
		return nil, err
	}
	c := &Catalog{
		o: o, graph: newGraph(o.Dependencies), alwaysOn: map[string]bool{}, pinned: map[string]bool{},
		infos: map[string]*info{},
		turns: newLRU[string, *turnState](maxTurns), sessions: newLRU[string, []string](maxSessions),
		answers: newLRU[string, answer](maxAnswers), told: newLRU[string, bool](maxTold),
	}
	if o.Filter.Enabled {
		for _, name := range o.Filter.AlwaysOn {
			c.alwaysOn[name] = true
		}
	}
	for _, name := range o.Discovery.AlwaysInclude {
		c.pinned[name] = true
	}
	if c.prunesTools() {
		for _, name := range o.Pruning.AlwaysInclude {
			c.pinned[name] = true
		}
	}
	c.warnOfOptions()
	c.connectIndexes()
	return c, nil
}

// connectIndexes sets up the embedding indexes, or logs that there is no embedder.
func (c *Catalog) connectIndexes() {
	ranks := c.o.Filter.Enabled || c.o.Discovery.Strategy == Embedding
	if c.o.Embedder == nil {
		if ranks {
			c.o.Log.Debug().Msg("no embedding provider: tools are ranked by words")
		}
		return
	}
	index := c.o.Index
	if index == nil {
		index = knn.NewMemory()
	}
	c.query = &embedding{Embedder: c.o.Embedder, now: c.o.Now, log: c.o.Log}
	c.own = newVectors(knn.NewMemory(), c.o, "own")
	c.foreign = newVectors(index, c.o, "mcp")
}

func (o *Options) validate() error {
	var errs []error
	if o.Source == nil {
		errs = append(errs, errors.New("catalog: Source is missing"))
	}
	strategy := cmp.Or(strings.TrimSpace(o.Discovery.Strategy), Embedding)
	o.Discovery.Strategy = ""
	for _, known := range []string{Embedding, Llm, None} {
		if strings.EqualFold(strategy, known) {
			o.Discovery.Strategy = known
		}
	}
	if o.Discovery.Strategy == "" {
		errs = append(errs, fmt.Errorf("catalog: discovery strategy %q: want Embedding, Llm or None", strategy))
	}
	if o.Chooser == nil && (o.Discovery.Strategy == Llm || o.Pruning.Enabled && o.Discovery.Strategy != Embedding) {
		errs = append(errs, errors.New("catalog: the discovery strategy Llm and pruning need a model that chooses"))
	}
	return errors.Join(append(errs, o.checkRanges()...)...)
}

// checkRanges checks the numbers. The comparisons are written so that NaN fails them.
func (o *Options) checkRanges() []error {
	var errs []error
	check := func(name string, v, limit float64, want string) {
		if !(v >= 0 && v <= limit) {
			errs = append(errs, fmt.Errorf("catalog: %s %v: want %s", name, v, want))
		}
	}
	check("filter: min similarity", o.Filter.MinSimilarity, 1, "0 to 1")
	check("discovery: min similarity", o.Discovery.MinSimilarity, 1, "0 to 1")
	check("dependencies: boost per dependency", o.Dependencies.BoostPerDep, math.MaxFloat32, "0 or more")
	check("dependencies: max total boost", o.Dependencies.MaxTotalBoost, math.MaxFloat32, "0 or more")
	for _, n := range []struct {
		name string
		v    int
	}{
		{"filter: top k", o.Filter.TopK},
		{"discovery: top k", o.Discovery.TopK},
		{"discovery: min tools to filter", o.Discovery.MinToolsToFilter},
		{"budget", o.Budget},
		{"max tools", o.MaxTools},
		{"pruning: max tools", o.Pruning.MaxTools},
		{"pruning: min tools to prune", o.Pruning.MinToolsToPrune},
	} {
		check(n.name, float64(n.v), math.MaxInt, "0 or more")
	}
	return errs
}

// prunesTools reports whether pruning is in effect.
func (c *Catalog) prunesTools() bool {
	return c.o.Pruning.Enabled && c.o.Discovery.Strategy != Embedding
}

// Warnings lists odd options, one sentence each: cycles, keys without effect. Whether the tools of a rule exist is not
// checked: the configuration is, and servers connect later.
func (c *Catalog) Warnings() []string { return slices.Clone(c.warnings) }

func (c *Catalog) warnOfOptions() {
	if c.o.Pruning.Enabled && !c.prunesTools() {
		c.warnings = append(c.warnings, "pruning has no effect with the discovery strategy Embedding")
	}
	if !c.o.Dependencies.Enabled {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(c.o.Dependencies.Rules)) {
		rule := c.o.Dependencies.Rules[name]
		if len(rule.Requires) > 0 && c.alwaysOn[name] {
			c.warnings = append(c.warnings, fmt.Sprintf(
				"dependency rule of %q: what it requires has no effect, because the tool is always on", name,
			))
		}
	}
	if len(c.graph.cycle) > 0 {
		c.warnings = append(c.warnings,
			"dependency rules: these tools require each other, so what they require is ignored: "+
				strings.Join(c.graph.cycle, ", "))
	}
}
