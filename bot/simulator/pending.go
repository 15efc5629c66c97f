package simulator

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// gate is a handler in front of the Bot API that sees the bot's calls and knows whether a poll is in progress.
type gate struct {
	next  http.Handler
	heard func()

	mu    sync.Mutex
	polls int
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.heard()
	if !strings.HasSuffix(strings.ToLower(r.URL.Path), "/getupdates") {
		g.next.ServeHTTP(w, r)
		return
	}
	g.mu.Lock()
	g.polls++
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		g.polls--
		g.mu.Unlock()
	}()
	g.next.ServeHTTP(w, r)
}

// pendingUpdates reads the updates that the bot has not confirmed. It polls for them itself, which is only safe while
// the bot does not; ok is false if the bot does and there are some. It returns at most 100 unless last is set; then it
// empties the queue, which only the end of the simulator may do. The lock of the world must be held.
func (w *world) pendingUpdates(ctx context.Context, g *gate, last bool) (batch []json.RawMessage, ok bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	before := w.fake.PendingUpdates()
	if before == 0 {
		return nil, true, nil
	}
	if g.polls > 0 {
		return nil, false, nil
	}
	batch, err = w.fetchUpdates(ctx, 0)
	if err != nil {
		return nil, false, err
	}
	if !last {
		w.giveBack(batch, before-w.fake.PendingUpdates())
		return batch, true, nil
	}
	for next := batch; len(next) > 0; batch = append(batch, next...) {
		if next, err = w.fetchUpdates(ctx, updateID(next[len(next)-1])+1); err != nil {
			return nil, false, err
		}
	}
	return batch, true, nil
}

func (w *world) fetchUpdates(ctx context.Context, offset int64) ([]json.RawMessage, error) {
	raw, err := w.callMethod(ctx, "getUpdates", map[string]any{"offset": offset, "timeout": 0, "limit": 100})
	if err != nil {
		return nil, err
	}
	var batch []json.RawMessage
	if err := json.Unmarshal(raw, &batch); err != nil {
		return nil, fmt.Errorf("read waiting updates: %w", err)
	}
	return batch, nil
}

// giveBack queues second deliveries again that reading the queue has used up: taken of them, starting with those that
// are doubled.
func (w *world) giveBack(batch []json.RawMessage, taken int) {
	count := map[int64]int{}
	for _, raw := range batch {
		count[updateID(raw)]++
	}
	for _, twice := range []bool{true, false} {
		for _, id := range slices.Backward(w.again) {
			if taken > 0 && count[id] > 0 && (count[id] > 1) == twice && w.fake.Redeliver(id) == nil {
				taken--
				delete(count, id)
			}
		}
	}
}

func updateID(raw json.RawMessage) int64 {
	var u struct {
		ID int64 `json:"update_id"`
	}
	// Made by the fake: it has an id.
	_ = json.Unmarshal(raw, &u)
	return u.ID
}
