package footprint

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// How much the heap may grow between two runs of the collector, in percent of what is in use. A small heap may grow to
// roomyHeap, because each run costs processor time; a large one grows by less than Go's 100, which keeps 1 000 sessions
// within 60 MB.
const (
	tightPercent = 75
	roomyPercent = 300
	roomyHeap    = 40 << 20
	stepPercent  = 25 // smaller changes are not made: each stops the process for a moment
)

// When the process counts as idle.
const (
	lookEvery  = 5 * time.Second
	quietBytes = 512 << 10 // allocated between two looks by timers alone
	quietLooks = 2         // in a row, after which memory is released
	busyBytes  = 4 << 20   // allocated since memory was released, after which it is again
)

// heapUse is what the runtime says about the heap.
type heapUse struct {
	live      uint64 // bytes that the last run of the collector found in use
	allocated uint64 // bytes, since the start
}

// HastenStart has the collector run seldom until Keep: little of what the start allocates is garbage.
func HastenStart() {
	if !fixed() {
		debug.SetGCPercent(roomyPercent)
	}
}

// fixed reports whether the operator has set how often the collector runs.
func fixed() bool { return os.Getenv("GOGC") != "" }

// Keeper makes the memory of the process follow its load: the collector runs seldom while there is little to collect,
// and what an idle process does not need is given back to the system.
type Keeper struct {
	read    func() heapUse
	percent func(percent int) (before int)
	release func()
	fixed   bool // the operator has set GOGC

	now      int    // percent
	last     uint64 // bytes allocated at the last look
	released uint64 // … when memory was released
	quiet    int    // looks in a row without work
	idle     bool   // memory is released
}

// The keeper of this process; nil until its start is over. The mutex is held while it runs.
var (
	keeping   sync.Mutex
	ofProcess *Keeper
)

// Keep looks after the memory of this process, whose start is over, until ctx ends: it releases what only the start
// needed. Of several services in one process, as tests have them, one does so, and what their starts need stays.
func Keep(ctx context.Context) {
	if !keeping.TryLock() {
		return
	}
	defer keeping.Unlock()
	if ofProcess == nil {
		ofProcess = newKeeper(release)
	}
	ofProcess.Run(ctx)
}

func newKeeper(release func()) *Keeper {
	k := &Keeper{read: readHeap, percent: debug.SetGCPercent, release: release, fixed: fixed()}
	k.start()
	return k
}

func (k *Keeper) start() {
	k.now = roomyPercent
	k.set(tightPercent)
	k.release()
	k.last = k.read().allocated
}

// Run looks after the memory until ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			k.look()
		}
	}
}

func (k *Keeper) look() {
	use := k.read()
	if use.allocated-k.last > quietBytes {
		k.quiet = 0
		k.adapt(use.live)
	} else {
		k.quiet++
	}
	k.last = use.allocated
	if k.idle && use.allocated-k.released > busyBytes {
		k.idle = false
	}
	if k.idle || k.quiet < quietLooks {
		return
	}
	k.set(tightPercent)
	k.release()
	k.idle, k.released = true, k.read().allocated
	k.last = k.released
}

// adapt lets the heap grow as far as fits what is in use.
func (k *Keeper) adapt(live uint64) {
	percent := roomyPercent
	if live > 0 {
		percent = min(roomyPercent, int(roomyHeap*100/live)-100)
	}
	k.set(max(percent, tightPercent))
}

func (k *Keeper) set(percent int) {
	if off := percent - k.now; k.fixed || off > -stepPercent && off < stepPercent {
		return
	}
	k.percent(percent)
	k.now = percent
}

func readHeap() heapUse {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return heapUse{live: sample[0].Value.Uint64(), allocated: sample[1].Value.Uint64()}
}
