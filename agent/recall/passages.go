package recall

import (
	"context"
	"encoding/hex"
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/zeebo/blake3"

	"github.com/zephbot/zephbot/agent/llm/cost"

	"github.com/zephbot/zephbot/tools/code"
)

// Pauses after a failed sync of a directory, before the next attempt.
const (
	pauseFailed = 30 * time.Second
	pauseBudget = 10 * time.Minute // a quota is used up
	logEvery    = 30 * time.Second // of the progress
)

// CodeOptions of New. Index and Passages are required.
type CodeOptions struct {
	Index *Index
	// Passages returns the passages of a root; see code.Index.Passages.
	Passages func(ctx context.Context, root string) iter.Seq2[code.Passage, error]
	Now      func() time.Time
	Log      zerolog.Logger
}

// Code finds code by meaning: it embeds the passages of the code index and answers search_code. A directory is the
// owner of its passages; which conversation may read them is decided by the tool. It is a code.Semantic. Safe for
// concurrent use. Nothing is embedded before Run.
type Code struct {
	o    CodeOptions
	kick chan struct{} // something is pending

	mu      sync.Mutex
	pending map[string]bool // roots whose passages have changed
}

var _ code.Semantic = (*Code)(nil)

// NewCode returns a Code.
func NewCode(o CodeOptions) *Code {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Code{o: o, kick: make(chan struct{}, 1), pending: map[string]bool{}}
}

// scopeOf is the owner of the passages of a root. Paths can be longer than scopes.
func scopeOf(root string) string {
	sum := blake3.Sum256([]byte(root))
	return "code:" + hex.EncodeToString(sum[:16])
}

// Near implements code.Semantic.
func (c *Code) Near(ctx context.Context, root, question string, limit int) ([]code.Near, error) {
	hits, err := c.o.Index.Search(ctx, []string{scopeOf(root)}, question, limit)
	if err != nil {
		return nil, err
	}
	list := make([]code.Near, 0, len(hits))
	for _, h := range hits {
		if h.Score > 0 {
			list = append(list, code.Near{
				Path: h.Payload["path"], Start: lineNumber(h.Payload["start"]), End: lineNumber(h.Payload["end"]),
				Symbol: h.Payload["symbol"], Score: float64(h.Score),
			})
		}
	}
	return list, nil
}

func lineNumber(text string) int {
	n, _ := strconv.Atoi(text) // what is no number is line 0, which the tool drops
	return n
}

// Indexed implements code.Semantic.
func (c *Code) Indexed(root string) {
	c.mu.Lock()
	c.pending[root] = true
	c.mu.Unlock()
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// Forget implements code.Semantic.
func (c *Code) Forget(ctx context.Context, root string) error {
	c.mu.Lock()
	delete(c.pending, root)
	c.mu.Unlock()
	return c.o.Index.Forget(ctx, scopeOf(root))
}

// Run embeds what has changed until ctx ends, one directory after the other. The payer in ctx pays. What fails is tried
// again later, and goes on from where it was.
func (c *Code) Run(ctx context.Context) error {
	for {
		select {
		case <-c.kick:
		case <-ctx.Done():
			return nil
		}
		for wait := c.syncPending(ctx); wait > 0; wait = c.syncPending(ctx) {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-ctx.Done():
				timer.Stop()
				return nil
			}
		}
	}
}

// syncPending syncs the pending roots, and returns how long to wait if one failed; 0 = none did.
func (c *Code) syncPending(ctx context.Context) time.Duration {
	var wait time.Duration
	for _, root := range c.takePending() {
		err := c.Sync(ctx, root)
		if err == nil || ctx.Err() != nil {
			continue
		}
		c.o.Log.Warn().Err(err).Str("root", root).Msg("code cannot be searched by meaning yet; it is tried again")
		c.mu.Lock()
		c.pending[root] = true
		c.mu.Unlock()
		if wait = max(wait, pauseFailed); cost.Refused(err) {
			wait = pauseBudget
		}
	}
	return wait
}

func (c *Code) takePending() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var roots []string
	for root := range c.pending {
		roots = append(roots, root)
	}
	clear(c.pending)
	return roots
}

// Sync embeds what has changed in a root.
func (c *Code) Sync(ctx context.Context, root string) error {
	began := c.o.Now()
	said := began
	report, err := c.o.Index.Sync(ctx, scopeOf(root), c.readDocs(ctx, root), func(r Report) {
		if now := c.o.Now(); now.Sub(said) >= logEvery {
			said = now
			c.o.Log.Info().Str("root", root).Int("passages", r.Seen()).
				Int("embedded", r.Added+r.Updated).Msg("code is embedded")
		}
	})
	if err != nil {
		return err
	}
	c.o.Log.Info().Str("root", root).Int("passages", report.Seen()).Int("embedded", report.Added+report.Updated).
		Int("removed", report.Removed).Int("skipped", report.Skipped).Dur("took", c.o.Now().Sub(began)).
		Msg("code can be searched by meaning")
	return nil
}

// readDocs turns passages into texts. The key of a passage is made of its path and its text, so that lines which were
// inserted above it change its payload only.
func (c *Code) readDocs(ctx context.Context, root string) iter.Seq2[Doc, error] {
	return func(yield func(Doc, error) bool) {
		path, seen := "", map[string]int{}
		for p, err := range c.o.Passages(ctx, root) {
			if err != nil {
				yield(Doc{}, err)
				return
			}
			if p.Path != path {
				path = p.Path
				clear(seen)
			}
			sum := blake3.Sum256([]byte(p.Text))
			key := p.Path + "#" + hex.EncodeToString(sum[:8])
			if seen[key]++; seen[key] > 1 {
				key += "." + strconv.Itoa(seen[key])
			}
			d := Doc{Key: key, Text: p.Text, Payload: map[string]string{
				"path": p.Path, "start": strconv.Itoa(p.Start), "end": strconv.Itoa(p.End), "symbol": p.Symbol,
			}}
			if !yield(d, nil) {
				return
			}
		}
	}
}
