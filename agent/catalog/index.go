package catalog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/zeebo/blake3"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/tools"
)

// Limits of embedding.
const (
	embedBatch  = 64              // texts in one request
	embedDesc   = 200             // characters of a description that are embedded
	embedQuery  = 2000            // characters of a message that are embedded
	embedLimit  = 5 * time.Second // for the query's embedding
	searchLimit = 2 * time.Second // for one search
	syncLimit   = 5 * time.Second // for a sync that a turn waits for; points stored by then are kept
	forgetEvery = time.Minute
	pauseAfter  = 30 * time.Second // after a failure, nothing is tried for this long
)

// SyncReport counts the results of a sync.
type SyncReport struct{ Added, Updated, Removed, Unchanged int }

// vectors keeps an Index in sync with a list of tools.
type vectors struct {
	index knn.Index
	embed *spend.Embedder
	model string
	name  string
	now   func() time.Time
	log   zerolog.Logger

	mu      sync.Mutex
	flight  chan struct{} // closed when the running sync is over; nil = none
	synced  []tools.Definition
	inStep  bool // synced and dim match the index
	size    int  // points in the index
	dim     int
	servers map[string]bool // servers that had tools since the start of the process
	forgot  time.Time       // last time that points were found missing
	failed  time.Time       // last failure; zero = the last sync succeeded
}

func newVectors(index knn.Index, o Options, name string) *vectors {
	return &vectors{
		index: index, embed: o.Embedder, model: o.Model, name: name,
		now: o.Now, log: o.Log, servers: map[string]bool{},
	}
}

var errPause = errors.New("paused after a recent failure")

// readyIndex syncs the index, once for concurrent callers. The others wait for that sync, at most until ctx ends.
func (v *vectors) readyIndex(ctx context.Context, defs []tools.Definition, dim int) error {
	for {
		v.mu.Lock()
		switch {
		case v.inStep && v.dim == dim && sameDefinitions(v.synced, defs):
			v.mu.Unlock()
			return nil
		case v.flight != nil:
			flight := v.flight
			v.mu.Unlock()
			select {
			case <-flight:
				continue
			case <-ctx.Done():
				return fmt.Errorf("wait for the sync of %s tools: %w", v.name, ctx.Err())
			}
		case !v.failed.IsZero() && v.now().Sub(v.failed) < pauseAfter:
			v.mu.Unlock()
			return errPause
		}
		v.flight = make(chan struct{})
		v.mu.Unlock()
		_, err := v.runSync(ctx, defs, dim)
		return err
	}
}

// forceSync syncs the index even during the pause after a failure.
func (v *vectors) forceSync(ctx context.Context, defs []tools.Definition, dim int) (SyncReport, error) {
	for {
		v.mu.Lock()
		if v.flight == nil {
			v.flight = make(chan struct{})
			v.mu.Unlock()
			return v.runSync(ctx, defs, dim)
		}
		flight := v.flight
		v.mu.Unlock()
		select {
		case <-flight:
		case <-ctx.Done():
			return SyncReport{}, fmt.Errorf("wait for the sync of %s tools: %w", v.name, ctx.Err())
		}
	}
}

// runSync syncs as the owner of the flight and ends the flight.
func (v *vectors) runSync(ctx context.Context, defs []tools.Definition, dim int) (report SyncReport, err error) {
	began := v.now()
	size, done := 0, false
	defer func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		if v.inStep = done && err == nil; v.inStep {
			v.synced, v.dim, v.size, v.failed = defs, dim, size, time.Time{}
		} else if stopped := ctx.Err() != nil && !errors.Is(ctx.Err(), context.DeadlineExceeded); !stopped &&
			!cost.Refused(err) {
			v.failed = v.now()
		}
		close(v.flight)
		v.flight = nil
	}()
	report, size, err = v.syncTools(ctx, defs, dim)
	done = true
	if err != nil {
		return report, fmt.Errorf("sync the index of %s tools: %w", v.name, err)
	}
	v.log.Debug().Str("index", v.name).Int("added", report.Added).Int("updated", report.Updated).
		Int("removed", report.Removed).
		Int("unchanged", report.Unchanged).Dur("took", v.now().Sub(began)).Msg("tool index synced")
	return report, nil
}

// syncTools stores new and changed tools and removes those that no longer exist. Tools of a server that has not
// been seen since the start of the process are kept: the server may still be connecting, and embedding its tools
// again at each start would cost money.
func (v *vectors) syncTools(
	ctx context.Context, defs []tools.Definition, dim int,
) (report SyncReport, size int, err error) {
	stored, err := v.index.Hashes(ctx)
	if err != nil {
		return report, 0, fmt.Errorf("read hashes: %w", err)
	}
	marker := fmt.Sprintf("%s/%d", v.model, dim)
	live := map[string]bool{}
	var todo []knn.Point
	for _, d := range defs {
		v.servers[d.Server], live[d.Name] = true, true
		p := pointOf(marker, d)
		switch hash, ok := stored[p.Key]; {
		case !ok:
			report.Added++
		case hash != p.Hash:
			report.Updated++
		default:
			report.Unchanged++
			continue
		}
		todo = append(todo, p)
	}
	var gone []string
	for key := range stored {
		server, _, ok := strings.Cut(key, ":")
		if !ok {
			server = ""
		}
		if !live[key] && v.servers[server] {
			gone = append(gone, key)
		}
	}
	if len(gone) > 0 {
		if err := v.index.Delete(ctx, gone); err != nil {
			return report, 0, fmt.Errorf("remove points: %w", err)
		}
		report.Removed = len(gone)
	}
	return report, len(stored) + report.Added - report.Removed, v.storePoints(ctx, todo, dim)
}

// storePoints embeds and stores points in batches, so that an interrupted sync does not start over.
func (v *vectors) storePoints(ctx context.Context, todo []knn.Point, dim int) error {
	for len(todo) > 0 {
		n := min(len(todo), embedBatch)
		batch := todo[:n]
		todo = todo[n:]
		texts := make([]string, n)
		for i, p := range batch {
			texts[i] = p.Payload["key"] + ": " + cleanLine(p.Payload["description"], embedDesc)
		}
		vecs, err := v.embed.Embed(ctx, texts)
		if err != nil {
			return fmt.Errorf("embed: %w", err)
		}
		if len(vecs) != n {
			return fmt.Errorf("embed: %d vectors for %d texts", len(vecs), n)
		}
		for i, vec := range vecs {
			if len(vec) != dim {
				return fmt.Errorf("embed: a vector of %d dimensions among those of %d", len(vec), dim)
			}
			batch[i].Vector = vec
		}
		if err := v.index.Upsert(ctx, batch); err != nil {
			return fmt.Errorf("store points: %w", err)
		}
	}
	return nil
}

// searchPoints returns the similarity of every point that has one.
func (v *vectors) searchPoints(ctx context.Context, vector []float32) (map[string]float32, error) {
	v.mu.Lock()
	size := v.size
	v.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, searchLimit)
	defer cancel()
	hits, err := v.index.Search(ctx, vector, size)
	if err != nil {
		if !errors.Is(ctx.Err(), context.Canceled) {
			v.mu.Lock()
			v.failed, v.inStep = v.now(), false
			v.mu.Unlock()
		}
		return nil, fmt.Errorf("search the index of %s tools: %w", v.name, err)
	}
	scores := make(map[string]float32, len(hits))
	for _, h := range hits {
		if h.Score == h.Score { // not NaN
			scores[h.Key] = h.Score
		}
	}
	return scores, nil
}

// forgetSync makes the next turn sync again because something else changed the index. It is limited in frequency,
// because some indexes never return certain points.
func (v *vectors) forgetSync() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := v.now(); v.forgot.IsZero() || now.Sub(v.forgot) >= forgetEvery {
		v.inStep, v.forgot = false, now
	}
}

func pointOf(marker string, d tools.Definition) knn.Point {
	h := blake3.New()
	for _, part := range []string{marker, d.Server, d.Name, d.Description, string(d.Schema)} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	return knn.Point{
		Key: d.Name, Hash: hex.EncodeToString(h.Sum(nil)),
		Payload: map[string]string{
			"key": d.Name, "server_id": d.Server, "tool_name": bareName(d), "description": d.Description,
		},
	}
}

// bareName returns the name of a tool on its server.
func bareName(d tools.Definition) string {
	if d.Server == "" {
		return d.Name
	}
	return strings.TrimPrefix(d.Name, d.Server+":")
}
