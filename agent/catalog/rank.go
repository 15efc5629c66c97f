package catalog

import (
	"context"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"
	"github.com/zeebo/blake3"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

// ranking is what is known about every tool of a snapshot for one message. It is immutable after construction.
type ranking struct {
	how       string
	mentioned []bool
	servers   map[string]bool // servers that the message names
	carried   map[string]bool
	// scores are similarities, set if ranked is. If ranking failed, every tool counts as similar (no MCP tool with
	// Strict).
	ranked bool
	scores []float32
	known  int    // words of the message that occur in tools, if the ranking is by words
	bare   []bool // the tool has no vector, its score is by words
	// model: a model was asked about the MCP tools. chosen is nil if that failed.
	model   bool
	chosen  map[string]bool
	foreign scope
}

// scope says which MCP tools are subject to selection.
type scope struct {
	all   bool // no selection: all are shown
	limit int  // most tools that a model may choose; 0 = no limit
}

// rankTools computes a ranking. vec is the query's vector from an earlier ranking of the same turn, or nil. The
// vector that was used is returned.
func (c *Catalog) rankTools(ctx context.Context, s *snapshot, query string, vec []float32) (*ranking, []float32) {
	r := &ranking{how: ByNothing, foreign: c.selectionScope(s)}
	filters := c.o.Filter.Enabled
	byModel := !r.foreign.all && c.o.Discovery.Strategy != Embedding
	if !filters && r.foreign.all {
		return r, vec
	}
	r.mentioned, r.servers = findMentions(s, query), namedServers(s, query)
	if filters || !byModel && !r.foreign.all {
		list, stops := splitTerms(query)
		if vec = c.rankSimilar(ctx, s, r, query, vec); !r.ranked {
			c.byWords(s, r, list, stops)
		}
	}
	if byModel {
		r.model, r.how = true, ByModel
		r.chosen = c.byModel(ctx, s, query, r.foreign.limit)
	}
	return r, vec
}

// selectionScope reports whether the MCP tools of a snapshot are subject to selection at all.
func (c *Catalog) selectionScope(s *snapshot) scope {
	n, pool := 0, 0
	for _, count := range s.server {
		n += count
		if count >= c.o.Discovery.MinToolsToFilter {
			pool += count
		}
	}
	out := scope{limit: c.o.Discovery.TopK}
	switch c.o.Discovery.Strategy {
	case Embedding:
		out.all = pool == 0
		return out
	case None:
		out.limit, out.all = 0, !c.prunesTools()
	default:
		out.all = pool == 0
	}
	if c.prunesTools() {
		if m := c.o.Pruning.MaxTools; m > 0 && (out.limit == 0 || m < out.limit) {
			out.limit = m
		}
		out.all = out.all || n == 0 || n < c.o.Pruning.MinToolsToPrune
	}
	return out
}

// isFiltered reports whether an MCP tool is subject to selection, that is, whether its server is large enough. With the
// strategy None, pruning decides, which counts all servers together.
func (c *Catalog) isFiltered(s *snapshot, d tools.Definition) bool {
	return c.o.Discovery.Strategy == None || s.server[d.Server] >= c.o.Discovery.MinToolsToFilter
}

// rankSimilar ranks by embeddings. If that fails, r stays unranked.
func (c *Catalog) rankSimilar(ctx context.Context, s *snapshot, r *ranking, query string, vec []float32) []float32 {
	if c.query == nil || strings.TrimSpace(query) == "" {
		return vec
	}
	var err error
	if vec == nil {
		if vec, err = c.query.embedQuery(ctx, query); err != nil {
			c.query.reportState(ctx, err)
			return nil
		}
	}
	scores, lacking := make([]float32, len(s.defs)), make([]bool, len(s.defs))
	everything := c.allTools() // not only what this chat may use: all chats share the indexes
	if c.o.Filter.Enabled {
		err = c.scanIndex(ctx, c.own, everything.own, vec, func(found map[string]float32) {
			placeScores(s, found, false, scores, lacking)
		})
	}
	if err == nil && !r.foreign.all && c.o.Discovery.Strategy == Embedding {
		err = c.scanIndex(ctx, c.foreign, everything.foreign, vec, func(found map[string]float32) {
			placeScores(s, found, true, scores, lacking)
		})
	}
	c.query.reportState(ctx, err)
	if err != nil {
		return vec
	}
	r.how, r.ranked, r.scores, r.bare = ByEmbedding, true, scores, lacking
	c.fillRanks(s, r, query)
	return vec
}

// scanIndex syncs an index and searches it. Points that were stored but are missing were removed by something else;
// they are stored again for the next turn.
func (c *Catalog) scanIndex(
	ctx context.Context, v *vectors, defs []tools.Definition, vec []float32, use func(map[string]float32),
) error {
	limited, cancel := context.WithTimeout(ctx, syncLimit)
	err := v.readyIndex(limited, defs, len(vec))
	cancel()
	if err != nil {
		return err
	}
	found, err := v.searchPoints(ctx, vec)
	if err != nil {
		return err
	}
	for _, d := range defs {
		if _, ok := found[d.Name]; !ok {
			v.forgetSync()
			break
		}
	}
	use(found)
	return nil
}

// placeScores copies the scores that were found to the tools of one kind.
func placeScores(s *snapshot, found map[string]float32, foreign bool, scores []float32, lacking []bool) {
	for i, d := range s.defs {
		if (d.Server != "") != foreign {
			continue
		}
		score, ok := found[d.Name]
		scores[i], lacking[i] = score, !ok
	}
}

// fillRanks ranks MCP tools without a vector by words.
func (c *Catalog) fillRanks(s *snapshot, r *ranking, query string) {
	for i, d := range s.defs {
		if r.bare[i] && d.Server != "" {
			list, _ := splitTerms(query)
			byWords, _ := s.words().rankDocuments(list)
			for j := i; j < len(s.defs); j++ {
				if r.bare[j] {
					r.scores[j] = byWords[j]
				}
			}
			return
		}
	}
}

// byWords ranks by words. A message in another language than the tools' descriptions says nothing about them. Without a
// single known word, and without one of the function words that show that it is English, the message is left unranked.
func (c *Catalog) byWords(s *snapshot, r *ranking, query []string, stops int) {
	scores, known := s.words().rankDocuments(query)
	r.how = ByWords
	if known == 0 && stops == 0 && len(query) > 0 {
		return
	}
	r.ranked, r.known, r.scores, r.bare = true, known, scores, make([]bool, len(s.defs))
}

// byModel asks the model that chooses. It returns nil if that failed.
func (c *Catalog) byModel(ctx context.Context, s *snapshot, query string, limit int) map[string]bool {
	if strings.TrimSpace(query) == "" {
		return map[string]bool{}
	}
	var list []candidate
	for i, d := range s.defs {
		if d.Server != "" && c.isFiltered(s, d) && !c.pinsTool(s.infos[i]) {
			list = append(list, candidate{d.Name, s.infos[i].bare, d.Description})
		}
	}
	if len(list) == 0 {
		return map[string]bool{}
	}
	h := blake3.New()
	fmt.Fprintf(h, "%s %d %s", s.hash, limit, query)
	chosen, err := c.askChoice(ctx, query, hex.EncodeToString(h.Sum(nil)), list, limit)
	if err != nil {
		c.o.Log.Warn().Err(err).Bool("strict", c.o.Discovery.Strict).Msg("model could not choose tools")
		return nil
	}
	return chosen
}

// pinsTool reports whether always_include lists an MCP tool.
func (c *Catalog) pinsTool(in *info) bool { return c.pinned[in.offer.Name] || c.pinned[in.bare] }

// findMentions finds the tools whose names occur in the message as whole words, in any case: no
// letter, digit or _ next to them.
func findMentions(s *snapshot, query string) []bool {
	found := make([]bool, len(s.defs))
	if len(query) > maxTermText {
		query = query[:maxTermText]
	}
	query = strings.ToLower(query)
	for i, in := range s.infos {
		for _, name := range in.lower {
			if isMentioned(query, name) {
				found[i] = true
				break
			}
		}
	}
	return found
}

// namedServers finds the servers whose ids occur in the message, as mentions does for tools.
func namedServers(s *snapshot, query string) map[string]bool {
	if len(query) > maxTermText {
		query = query[:maxTermText]
	}
	query = strings.ToLower(query)
	named := map[string]bool{}
	for id := range s.server {
		if isMentioned(query, strings.ToLower(id)) {
			named[id] = true
		}
	}
	return named
}

func isMentioned(text, name string) bool {
	if name == "" {
		return false
	}
	for at := 0; ; {
		i := strings.Index(text[at:], name)
		if i < 0 {
			return false
		}
		before, _ := utf8.DecodeLastRuneInString(text[:at+i])
		after, _ := utf8.DecodeRuneInString(text[at+i+len(name):])
		if !wordRune(before) && !wordRune(after) {
			return true
		}
		at += i + 1
	}
}

func wordRune(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// embedding embeds messages. It pauses after a failure, so that not every turn waits for a provider that is down.
type embedding struct {
	*spend.Embedder
	now func() time.Time
	log zerolog.Logger

	mu     sync.Mutex
	failed time.Time
	said   bool // the fallback to words has been logged
}

func (e *embedding) embedQuery(ctx context.Context, query string) ([]float32, error) {
	e.mu.Lock()
	failed := e.failed
	e.mu.Unlock()
	if !failed.IsZero() && e.now().Sub(failed) < pauseAfter {
		return nil, errPause
	}
	limited, cancel := context.WithTimeout(ctx, embedLimit)
	defer cancel()
	vecs, err := e.Embed(limited, []string{cleanLine(query, embedQuery)})
	if err == nil && (len(vecs) != 1 || len(vecs[0]) == 0) {
		err = fmt.Errorf("%d vectors for one text", len(vecs))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil && !cost.Refused(err) { // the next turn may have money
			e.failed = e.now()
		}
		return nil, fmt.Errorf("embed the message: %w", err)
	}
	e.failed = time.Time{}
	return vecs[0], nil
}

// reportState logs once that ranking falls back to words, and once that embeddings work again.
func (e *embedding) reportState(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case err != nil && !e.said:
		e.said = true
		e.log.Warn().Err(err).Msg("embedding failed: tools are ranked by words")
	case err == nil && e.said:
		e.said = false
		e.log.Info().Msg("tools are ranked by embeddings again")
	}
}
