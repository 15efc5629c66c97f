package deliver

import (
	"context"
	"sync"
	"time"
)

const (
	// probeTime limits one question whether answers come back.
	probeTime = 10 * time.Second
	// probePause is the longest delay between two of them.
	probePause = 4 * time.Second
)

// way knows whether answers of the channel come back. Once one was lost, it is closed until a request that began later
// was answered: nothing whose outcome is unknown is repeated before, because the repetition could be lost alike. It
// counts losses instead of comparing times, so that no clock matters. Safe for concurrent use.
type way struct {
	// probe makes a request that changes nothing, and returns nil if it was answered; nil = the way is always open.
	probe func(ctx context.Context) error
	pause func(failures int) time.Duration // before the next question

	mu      sync.Mutex
	losses  uint64        // how many answers were lost; the first is the one that nobody knows of after a start
	open    uint64        // how many had been lost when the latest request began that was answered
	asking  chan struct{} // closed when the question in progress is answered; nil = there is none
	refused int           // questions in a row without an answer
}

// begin returns what back needs to know of a request that begins now.
func (w *way) begin() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.losses
}

// back records that a request was answered.
func (w *way) back(begun uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open = max(w.open, begun)
}

// lost records that an answer was lost.
func (w *way) lost() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.losses++
}

// isOpen reports whether a request was answered that began after the last loss.
func (w *way) isOpen() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.probe == nil || w.open >= w.losses
}

// await waits until the way is open; false if ctx ended first. Of those who wait, one asks.
func (w *way) await(ctx context.Context) bool {
	for !w.isOpen() {
		w.mu.Lock()
		asking, mine := w.asking, w.asking == nil
		if mine {
			asking = make(chan struct{})
			w.asking = asking
		}
		failures := w.refused
		w.mu.Unlock()
		if mine {
			w.ask(ctx, failures)
			close(asking)
		}
		select {
		case <-ctx.Done():
			return false
		case <-asking:
		}
	}
	return true
}

// ask makes one request, after a pause if the last one was not answered.
func (w *way) ask(ctx context.Context, failures int) {
	begun, err := w.begin(), error(nil)
	if failures == 0 || sleep(ctx, min(w.pause(failures-1), probePause)) {
		limited, cancel := context.WithTimeout(ctx, probeTime)
		begun = w.begin()
		err = w.probe(limited)
		cancel()
	} else {
		err = ctx.Err()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asking = nil
	if err != nil {
		w.refused++
		return
	}
	w.refused, w.open = 0, max(w.open, begun)
}
