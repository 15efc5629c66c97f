//go:build linux

package crashtest_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

var (
	faultsWanted = flag.Int("faults", 0, "TestMachine: how many faults; 0 = a few, with ZEPH_CRASH=full those of a minute")
	machineSeed  = flag.Uint64("seed", 0, "TestMachine: what the plan of faults is made of; 0 = a new one")
	processes    = flag.Int("processes", 0, "TestMachine: 0 = one process on SQLite; else how many, on PostgreSQL and Redis")
	hooked       = flag.Bool("webhook", false, "TestMachine: updates are delivered to the processes in turn, instead of being polled")
	machineDir   = flag.String("keep", "", "TestMachine: an existing directory for the state and the logs of the processes, kept; empty = one that is removed")
)

const (
	fewFaults     = 40  // of a plain `go test`
	minuteFaults  = 250 // … with ZEPH_CRASH=full
	maxViolations = 200
	// aftermath is how long the service may take after the last fault to finish everything. It retries the model and
	// the Bot API at growing intervals, so this takes minutes if much was broken at the end.
	aftermath = 4 * time.Minute
	// firstPerson and firstGroup are the ids of the people and groups of a machine's world.
	firstPerson = 2000
	firstGroup  = -5000
)

// machine is a world with many people, whose service is broken again and again in every way that the plan of a seed
// lists. The results are checked from outside: the fake Bot API, the file to which every command appends a line, the
// audit log, the database.
type machine struct {
	t        *testing.T
	seed     uint64
	dir      string
	fake     *telegramtest.Server
	url      string
	oracle   *oracle
	bench    *workbench
	diary    diary
	money    purse
	pace     pace
	nodes    []*node
	talkers  []*talker
	store    engine
	shared   bool      // several processes work on it
	steady   bool      // none of them is broken
	lossy    bool      // answers of the model are lost on their way
	front    *balancer // in front of their webhooks; nil: updates are polled
	began    time.Time
	working  sync.WaitGroup // what ends by itself soon after the last fault
	pressing sync.WaitGroup // people deciding about a card
	over     chan struct{}  // closed when nobody presses any more
	sky      sync.Mutex     // held by an outage
	tally    tally

	mu        sync.Mutex
	hits      map[string]int // faults that hit something, by kind
	questions []*question
	commands  []*command
	presses   int
	updates   int
	newest    int64 // update
	unasked   int   // 429s that no fault asked for
	wrong     []string
}

// TestMachine causes faults by a plan and checks that every promise is kept. It prints the seed, which repeats the
// plan:
//
//	go test ./cmd/internal/crashtest -run TestMachine -v -timeout 0 -faults 10000 -seed 7
//
// The plan (which fault, when, in which process, for how long) is a function of the seed; which request or instruction
// a fault hits also depends on the scheduler of the machine. A seed that failed is therefore likely, but not certain,
// to fail again.
func TestMachine(t *testing.T) {
	wanted, seed := *faultsWanted, *machineSeed
	switch {
	case wanted > 0:
	case os.Getenv("ZEPH_CRASH") == "full":
		wanted = minuteFaults
	default:
		wanted = fewFaults
		if testing.Short() {
			wanted /= 2
		}
		t.Parallel()
	}
	if seed == 0 {
		seed = rand.Uint64N(1_000_000) + 1
	}
	t.Logf("seed %d, %d faults; again: go test ./cmd/internal/crashtest -run TestMachine -v -timeout 0 -faults %d -seed %d -processes %d -webhook=%v", seed, wanted, wanted, seed, *processes, *hooked)
	var store engine
	if *processes > 0 {
		store = newServers(t)
	} else {
		store = newFiles(t)
	}
	newMachine(t, seed, store, max(1, *processes), *hooked).run(wanted)
}

func newMachine(t *testing.T, seed uint64, store engine, processes int, webhook bool) *machine {
	t.Helper()
	m := &machine{t: t, seed: seed, dir: *machineDir, store: store, shared: processes > 1, began: time.Now(), hits: map[string]int{}, over: make(chan struct{})}
	if m.dir == "" {
		m.dir = t.TempDir()
	}
	if webhook {
		m.front = &balancer{}
	}
	// Telegram's own limits: a 429 that no fault caused means that a budget was exceeded.
	m.fake = telegramtest.New(telegramtest.Options{PrivacyOff: true, Log: m.saw, Local: webhook, WebhookClient: m.client(), WebhookPause: hookPause, Budgets: telegramtest.Budgets{
		Global: telegramtest.Limit{Count: 30, Per: time.Second}, Group: telegramtest.Limit{Count: 20, Per: time.Minute},
		Chat: telegramtest.Limit{Count: 4, Per: time.Second},
	}})
	t.Cleanup(m.fake.Close)
	var err error
	if m.url, err = m.fake.Start(); err != nil {
		t.Fatal(err)
	}
	m.oracle, m.bench = newOracle(t, m), newWorkbench(t, m)
	m.populate()
	for i := range processes {
		m.nodes = append(m.nodes, newNode(m, i))
	}
	return m
}

// client delivers updates to webhooks; nil if they are polled. A process that does not answer loses its turn after a
// while.
func (m *machine) client() *http.Client {
	if m.front == nil {
		return nil
	}
	return &http.Client{Transport: m.front, Timeout: 5 * time.Second}
}

// hookPause is shorter than Telegram's maximum of one minute, which would be too long for a storm of a minute.
func hookPause(attempt int) time.Duration {
	return min(time.Duration(attempt)*100*time.Millisecond, 3*time.Second)
}

// run causes the requested number of faults and returns the verdict.
func (m *machine) run(wanted int) {
	t := m.t
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var processes, people sync.WaitGroup
	for _, n := range m.nodes {
		processes.Go(func() { n.run(ctx) })
	}
	talking, silence := context.WithCancel(ctx)
	for _, p := range m.talkers {
		people.Go(func() { p.talk(talking) })
	}
	m.storm(ctx, wanted)
	silence()
	people.Wait()
	m.calm()
	m.working.Wait()
	if err := m.settle(ctx); err != nil {
		m.fail("%v", err)
	}
	cancel()
	processes.Wait()
	close(m.over)
	m.pressing.Wait()
	m.judge()
	t.Log(m.table())
	if len(m.wrong) > 0 {
		t.Errorf("seed %d: %d promises not kept\n  %s", m.seed, len(m.wrong), strings.Join(m.wrong, "\n  "))
		m.keep()
	}
}

// storm causes faults by the plan until enough of them have hit something.
func (m *machine) storm(ctx context.Context, wanted int) {
	p := newPlan(m.seed, len(m.nodes), m.store.kinds()...)
	told := time.Now()
	watched := make(chan struct{})
	defer func() { <-watched }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer close(watched)
		m.watch(ctx)
	}()
	for m.faults() < wanted && len(m.violations()) < maxViolations && ctx.Err() == nil {
		f := p.next()
		pause(ctx, f.After)
		m.apply(ctx, f)
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			m.t.Log(m.summary())
		}
	}
}

// watch compares what is charged with the limits until ctx ends.
func (m *machine) watch(ctx context.Context) {
	for ctx.Err() == nil {
		m.withinLimits()
		pause(ctx, time.Second)
	}
}

// apply causes one fault.
func (m *machine) apply(ctx context.Context, f fault) {
	kind, ofBotAPI := strings.CutPrefix(f.Kind, faultTelegram)
	switch {
	case !m.pace.allows(f):
	case ofBotAPI:
		m.breakCalls(ctx, kind, f)
	case strings.HasPrefix(f.Kind, faultModel):
		m.oracle.add(f)
	case f.Kind == faultAgain:
		m.again(f)
	case f.Kind == faultOutage:
		m.working.Go(func() { m.outage(ctx, f) })
	case f.Kind == faultKill:
		m.nodes[f.Node].kill()
	case f.Kind == faultStop:
		m.nodes[f.Node].stop(ctx, f.Length)
	case f.Kind == faultTerm:
		m.nodes[f.Node].term()
	default:
		m.store.apply(ctx, m, f)
	}
}

// breakCalls makes the next calls of the Bot API fail. They are counted when they do.
func (m *machine) breakCalls(ctx context.Context, kind string, f fault) {
	if len(m.fake.Faults()) >= 8 { // they have hit no call yet
		return
	}
	armed := telegramtest.Fault{Method: f.Method, Kind: kind, Count: f.Count}
	switch kind {
	case telegramtest.Fault429:
		armed.RetryAfter = int(f.Length / time.Second)
	case telegramtest.FaultSlow:
		armed.Delay = f.Length
	case telegramtest.FaultHang, telegramtest.FaultStall:
		m.working.Go(func() {
			pause(ctx, f.Length)
			m.fake.ClearFaults()
		})
	}
	m.fake.AddFault(armed)
}

// outage breaks the connection to Telegram for a while, in various ways: entirely, or for sending only.
func (m *machine) outage(ctx context.Context, f fault) {
	if !m.sky.TryLock() {
		return
	}
	defer m.sky.Unlock()
	m.hit(f.Kind)
	manners := []telegramtest.FaultKind{telegramtest.Fault502, telegramtest.FaultDrop, telegramtest.FaultCut, telegramtest.Fault500, telegramtest.Fault429, telegramtest.FaultHang, telegramtest.FaultStall}
	random := rand.New(rand.NewPCG(f.Dice, 7))
	kinds, first := 1+random.IntN(len(manners)), random.IntN(len(manners))
	method := []string{"", "send*", "send*"}[random.IntN(3)]
	ctx, cancel := context.WithTimeout(ctx, f.Length)
	defer cancel()
	for ctx.Err() == nil {
		version := m.fake.Version()
		if len(m.fake.Faults()) < 4 {
			kind := manners[(first+random.IntN(kinds))%len(manners)]
			m.fake.AddFault(telegramtest.Fault{Method: method, Kind: kind, RetryAfter: 1 + random.IntN(2), Count: 1 + random.IntN(3)})
			continue
		}
		select {
		case <-m.fake.Changed(version):
		case <-ctx.Done():
		}
	}
	m.fake.ClearFaults()
}

// again delivers one of the latest updates a second time.
func (m *machine) again(f fault) {
	m.mu.Lock()
	newest, seen := m.newest, m.updates
	m.mu.Unlock()
	if seen == 0 {
		return
	}
	if m.fake.Redeliver(newest-int64(f.Dice%uint64(min(seen, 60)))) == nil { //nolint:gosec // below 60
		m.hit(f.Kind)
	}
}

// calm ends every fault. A stopped process receives what it missed when it continues.
func (m *machine) calm() {
	m.fake.ClearFaults()
	m.oracle.clear()
}

// pause lets time pass, while people and outages go on by themselves.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// hit counts a fault that hit something.
func (m *machine) hit(kind string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hits[kind]++
}

func (m *machine) faults() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.hits {
		n += k
	}
	return n
}

// fail records a broken promise.
func (m *machine) fail(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wrong = append(m.wrong, fmt.Sprintf("%6.1f s: ", time.Since(m.began).Seconds())+fmt.Sprintf(format, args...))
}

func (m *machine) violations() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.wrong)
}

// summary is one line about the progress.
func (m *machine) summary() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	open, answered, faults := 0, 0, 0
	for _, q := range m.questions {
		switch {
		case q.heard:
			answered++
		case !q.excused:
			open++
		}
	}
	for _, k := range m.hits {
		faults += k
	}
	return fmt.Sprintf("%.0f s: %d faults, %d questions, %d answered, %d open, %d wrong", time.Since(m.began).Seconds(), faults, len(m.questions), answered, open, len(m.wrong))
}

// table is the result.
func (m *machine) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, %s, %d process(es), %d faults in %.0f s\n", m.seed, m.store.name(), len(m.nodes), m.faults(), time.Since(m.began).Seconds())
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, kind := range slices.Sorted(maps.Keys(m.hits)) {
		fmt.Fprintf(&b, "  %-28s %6d\n", kind, m.hits[kind])
	}
	return b.String() + m.tally.String()
}

// keep saves the logs of a failed run.
func (m *machine) keep() {
	if *machineDir != "" {
		m.t.Logf("logs and state are in %s", m.dir)
		return
	}
	dir, err := os.MkdirTemp("", fmt.Sprintf("machine-%d-", m.seed))
	if err != nil {
		m.t.Log(err)
		return
	}
	for _, n := range m.nodes {
		raw, err := os.ReadFile(n.logName())
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(n.logName())), raw, 0o600)
		}
		if err != nil {
			m.t.Log(err)
		}
	}
	m.t.Logf("logs of the processes: %s", dir)
}
