package footprint

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"
)

// kept is a process whose memory a Keeper keeps.
type kept struct {
	heapUse
	percent, set, released int
}

func (p *kept) keeper(fixed bool) *Keeper {
	k := &Keeper{
		fixed: fixed,
		read:  func() heapUse { return p.heapUse },
		percent: func(percent int) int {
			before := p.percent
			p.percent = percent
			p.set++
			return before
		},
		release: func() { p.released++ },
	}
	k.start()
	return k
}

// work has turns allocate memory, look after look.
func (p *kept) work(k *Keeper, looks int, allocated uint64) {
	for range looks {
		p.allocated += allocated
		k.look()
	}
}

// TestIdleProcessReleasesItsMemory once, and again after each time of work; timers are no work.
func TestIdleProcessReleasesItsMemory(t *testing.T) {
	t.Parallel()
	p := &kept{}
	k := p.keeper(false)
	const timers = quietBytes / 2
	for _, step := range []struct {
		what      string
		looks     int
		allocated uint64
		released  int
	}{
		{"the start is over", 0, 0, 1},
		{"not idle yet", quietLooks - 1, timers, 1},
		{"idle", 1, timers, 2},
		{"idle for long", 5, timers, 2},
		{"work", 3, busyBytes, 2},
		{"a pause", quietLooks - 1, 0, 2},
		{"work goes on", 1, busyBytes, 2},
		{"idle again", quietLooks, timers, 3},
	} {
		p.work(k, step.looks, step.allocated)
		if p.released != step.released {
			t.Errorf("%s: released %d times, want %d", step.what, p.released, step.released)
		}
	}
}

// TestCollectorFollowsTheLoad: a small heap is collected seldom while there is work, a large one and that of an idle
// process often. What the operator has set stays.
func TestCollectorFollowsTheLoad(t *testing.T) {
	t.Parallel()
	p := &kept{percent: 100}
	k := p.keeper(false)
	for _, step := range []struct {
		what      string
		live      uint64
		allocated uint64
		percent   int
	}{
		{"at the start", 8 << 20, 0, tightPercent},
		{"a small heap", 8 << 20, busyBytes, roomyPercent},
		{"it grows a little", 21 << 19, busyBytes, roomyPercent},
		{"a larger heap", 16 << 20, busyBytes, 150},
		{"a large heap", 100 << 20, busyBytes, tightPercent},
		{"nothing known", 0, busyBytes, roomyPercent},
	} {
		p.live = step.live
		p.work(k, 1, step.allocated)
		if p.percent != step.percent {
			t.Errorf("%s: %d %%, want %d", step.what, p.percent, step.percent)
		}
	}
	p.work(k, quietLooks, 0)
	if p.percent != tightPercent {
		t.Errorf("idle: %d %%", p.percent)
	}
	operator := &kept{percent: 400}
	k = operator.keeper(true)
	operator.live = 8 << 20
	operator.work(k, 3, busyBytes)
	if operator.set != 0 {
		t.Error("GOGC of the operator was changed")
	}
}

func TestKeeperRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &kept{}
		k := p.keeper(false)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			k.Run(ctx)
		}()
		time.Sleep((quietLooks + 1) * lookEvery) //nolint:forbidigo // the clock of synctest
		synctest.Wait()
		cancel()
		<-ended
		if p.released != 2 {
			t.Errorf("released %d times", p.released)
		}
	})
}

// TestOneKeeperOfAProcess: of two services in a process, one keeps its memory; the next one goes on with what it knows.
func TestOneKeeperOfAProcess(t *testing.T) { //nolint:paralleltest // it is the keeper of the process
	p := &kept{}
	ofProcess = p.keeper(false)
	defer func() { ofProcess = nil }()
	synctest.Test(t, func(t *testing.T) {
		first, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			Keep(first)
		}()
		synctest.Wait()
		Keep(t.Context()) // or this never returns
		end()
		<-ended
		ctx, cancel := context.WithTimeout(t.Context(), (quietLooks+1)*lookEvery)
		defer cancel()
		Keep(ctx)
	})
	if p.released != 2 {
		t.Errorf("released %d times, want once at the start and once when it is idle", p.released)
	}
}

// TestKeeperOfThisProcess changes the collector of the process, so it does not run beside others.
func TestKeeperOfThisProcess(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	HastenStart()
	k := newKeeper(runtime.GC) // the pages of the program are for TestRelease
	if got := debug.SetGCPercent(100); got != tightPercent {
		t.Errorf("%d %%", got)
	}
	if use := k.read(); use.live == 0 || use.allocated < use.live {
		t.Errorf("%+v", use)
	}
	t.Setenv("GOGC", "50")
	debug.SetGCPercent(50)
	HastenStart()
	newKeeper(func() {})
	if got := debug.SetGCPercent(100); got != 50 {
		t.Errorf("of the operator: %d %%", got)
	}
}
