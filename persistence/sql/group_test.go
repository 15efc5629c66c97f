package sql_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/storetest"
)

// grouper is a store that is given many Changes at once: its writer stands before the commit of one while the others
// come in, in their order.
type grouper struct {
	store  *sql.Store
	atDoor chan struct{}
	open   chan struct{}

	mu         sync.Mutex
	statements []string
	groups     int
}

const gate = "gate"

func group(t *testing.T, path string) *grouper {
	t.Helper()
	g := &grouper{atDoor: make(chan struct{}), open: make(chan struct{})}
	g.store = open(t, sql.Options{Path: path, Hooks: sql.Hooks{
		BeforeCommit: func(changes []*bot.Change) {
			if len(changes[0].Facts) > 0 && changes[0].Facts[0].Bucket == gate {
				g.atDoor <- struct{}{}
				<-g.open
			}
		},
		AfterCommit: func([]*bot.Change) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.groups++
		},
		Statement: func(query string) {
			g.mu.Lock()
			defer g.mu.Unlock()
			g.statements = append(g.statements, query)
		},
	}})
	return g
}

// apply has Changes applied in one group.
func (g *grouper) apply(t *testing.T, changes []*bot.Change) ([]*bot.Applied, []error) {
	t.Helper()
	applied, errs := make([]*bot.Applied, len(changes)), make([]error, len(changes))
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := g.store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{{Bucket: gate, Key: "k", Value: "v"}}}); err != nil {
			t.Error(err)
		}
	})
	<-g.atDoor
	waiting := 0
	for i, change := range changes {
		if change.Validate() == nil {
			waiting++
		}
		wg.Go(func() { applied[i], errs[i] = g.store.Apply(t.Context(), change) })
		for g.store.Queued() < waiting {
			runtime.Gosched()
		}
	}
	g.mu.Lock()
	g.statements, g.groups = nil, -1 // the gate's own commit comes yet
	g.mu.Unlock()
	g.open <- struct{}{}
	wg.Wait()
	return applied, errs
}

// ran counts the statements of the last group that begin with some words.
func (g *grouper) ran(words string) (n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, query := range g.statements {
		if strings.HasPrefix(query, words) {
			n++
		}
	}
	return n
}

func TestAGroupBehavesLikeTheOneInMemory(t *testing.T) {
	t.Parallel()
	g := group(t, "")
	storetest.CompareGroups(t, bottest.New(), g.store, func(changes []*bot.Change) ([]*bot.Applied, []error) { return g.apply(t, changes) })
}

func lanePlace() bot.Place {
	return bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "42"}
}

// turns are the Changes of some turns of one session, as a worker makes them.
func turns(n int) (changes []*bot.Change) {
	running, idle := bot.Running, bot.Idle
	for i := range int64(n) {
		at := time.Unix(1000+i, 0)
		lease := &bot.Lease{Session: "s", Fence: i + 1}
		changes = append(changes,
			&bot.Change{
				Claim:  &bot.Claim{Session: "s", Place: lanePlace(), Fence: i, Owner: "o", Now: at, Until: at.Add(time.Minute)},
				Append: &bot.Append{Session: "s", After: 2 * i, Entries: []journal.Entry{{Turn: "t", Text: "question"}}},
				Lanes:  []bot.LaneUpdate{{Session: "s", State: &running}},
			},
			&bot.Change{
				Lease: lease, Append: &bot.Append{Session: "s", After: 2*i + 1, Entries: []journal.Entry{{Turn: "t", Text: "answer"}}},
				Lanes: []bot.LaneUpdate{{Session: "s", State: &idle, Release: true}}, Send: []bot.Row{{Session: "s", Place: lanePlace(), Key: fmt.Sprint(i)}},
			})
	}
	return changes
}

func TestALaneIsReadOnceAndWrittenOnceAGroup(t *testing.T) {
	t.Parallel()
	g := group(t, "")
	const n = 10
	_, errs := g.apply(t, turns(n))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if reads, writes := g.ran("SELECT"), g.ran("INSERT INTO lane")+g.ran("UPDATE lane"); reads != 1 || writes != 1 || g.ran("SAVEPOINT") != 0 {
		t.Errorf("%d reads, %d writes of the lane, %d savepoints, want 1, 1 and 0", reads, writes, g.ran("SAVEPOINT"))
	}
	lane, err := g.store.Lane(t.Context(), "s")
	if err != nil || lane.Fence != n || lane.Last != 2*n || lane.State != bot.Idle || lane.Owner != "" {
		t.Errorf("lane %+v, %v", lane, err)
	}
	_, errs = g.apply(t, []*bot.Change{{Append: &bot.Append{Session: "s", After: 2 * n, Entries: []journal.Entry{{Text: "more"}}}}})
	if errs[0] != nil || g.ran("SELECT") != 0 || g.ran("UPDATE lane") != 1 {
		t.Errorf("in the next group: %v, %d reads", errs[0], g.ran("SELECT"))
	}
}

// TestARefusalCostsTheGroupNothing has a group of which one Change is refused. The refusal comes before anything is
// written, so nothing is undone.
func TestARefusalCostsTheGroupNothing(t *testing.T) {
	t.Parallel()
	said := &bot.Append{Session: "s", After: 2, Entries: []journal.Entry{{Text: "refused"}}}
	for name, tt := range map[string]struct {
		refused *bot.Change
		want    error
	}{
		"lease":   {&bot.Change{Lease: &bot.Lease{Session: "s", Fence: 99}, Facts: fact("refused").Facts}, bot.ErrLost},
		"card":    {&bot.Change{Send: []bot.Row{{Session: "s", Key: "refused"}}, Cards: []bot.Card{{Approval: "unknown"}}, Facts: fact("refused").Facts}, bot.ErrNotFound},
		"arrival": {&bot.Change{Append: said, Done: []int64{9}}, bot.ErrNotFound},
		"row":     {&bot.Change{Append: said, Rows: []bot.RowUpdate{{ID: 99, From: []bot.RowState{bot.Sent}, To: bot.Dead}}}, bot.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := group(t, "")
			all := turns(3)
			changes := append(append(append([]*bot.Change{}, all[:2]...), tt.refused), all[2:]...)
			_, errs := g.apply(t, changes)
			for i, err := range errs {
				if want := map[bool]error{true: tt.want}[i == 2]; !errors.Is(err, want) {
					t.Errorf("change %d: %v, want %v", i, err, want)
				}
			}
			if got := g.ran("ROLLBACK"); got != 0 || g.groups != 1 {
				t.Errorf("%d undone in %d commits, want 0 in one", got, g.groups)
			}
			lane, err := g.store.Lane(t.Context(), "s")
			check(t, err)
			entries, err := g.store.Journal(t.Context(), "s", 0)
			check(t, err)
			rows, err := g.store.Rows(t.Context(), "s", 0)
			check(t, err)
			if lane.Last != 6 || len(entries) != 6 || len(rows) != 3 || has(t, g.store, "refused") {
				t.Errorf("last %d, %d entries, %d rows", lane.Last, len(entries), len(rows))
			}
		})
	}
}

// TestAWrongGuessIsMended has Changes whose keys are in use already, which the writer does not expect. One that wrote
// nothing before is run again where it is; one that did costs its group a second run, in which a refused Change is
// undone alone.
func TestAWrongGuessIsMended(t *testing.T) {
	t.Parallel()
	arrival := func(id string) bot.Arrival {
		return bot.Arrival{Channel: "telegram", Bot: "1", ID: id, Session: "q"}
	}
	row := func(key string) bot.Row { return bot.Row{Session: "s", Key: key} }
	begins := &bot.Change{
		Claim:  &bot.Claim{Session: "q", Owner: "o", Now: time.Unix(1, 0), Until: time.Unix(2, 0), Arrives: true},
		Arrive: []bot.Arrival{arrival("new")},
	}
	for name, tt := range map[string]struct {
		change *bot.Change
		want   *bot.Applied
		err    error
		undone int
	}{
		"a row":               {change: &bot.Change{Send: []bot.Row{row("known")}}, want: &bot.Applied{Rows: []int64{1}, Skipped: []bool{true}}},
		"a row after another": {change: &bot.Change{Send: []bot.Row{row("new"), row("known")}}, want: &bot.Applied{Rows: []int64{2, 1}, Skipped: []bool{false, true}}, undone: 1},
		"an arrival":          {change: &bot.Change{Arrive: []bot.Arrival{arrival("known")}}, want: &bot.Applied{Seqs: []int64{0}}},
		"arrivals":            {change: &bot.Change{Arrive: []bot.Arrival{arrival("new"), arrival("known")}}, want: &bot.Applied{Seqs: []int64{2, 0}}, undone: 1},
		"an arrival waits":    {change: begins, err: bot.ErrConflict},
		"a question":          {change: &bot.Change{Ask: []bot.Approval{{ID: "known", Session: "s"}}}, err: bot.ErrTaken},
		"a row, a question":   {change: &bot.Change{Send: []bot.Row{row("new")}, Ask: []bot.Approval{{ID: "known", Session: "s"}}}, err: bot.ErrTaken, undone: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := group(t, "")
			_, err := g.store.Apply(t.Context(), &bot.Change{
				Arrive: []bot.Arrival{arrival("known")}, Send: []bot.Row{row("known")}, Ask: []bot.Approval{{ID: "known", Session: "s"}},
			})
			check(t, err)
			after := &bot.Change{Send: []bot.Row{row("after")}, Arrive: []bot.Arrival{arrival("after")}}
			applied, errs := g.apply(t, []*bot.Change{fact("before"), tt.change, after})
			check(t, errors.Join(errs[0], errs[2]))
			if diff := cmp.Diff(tt.want, applied[1]); diff != "" || !errors.Is(errs[1], tt.err) {
				t.Errorf("applied (-want +got):\n%s%v, want %v", diff, errs[1], tt.err)
			}
			if got := g.ran("ROLLBACK") - g.ran("ROLLBACK TO"); got != tt.undone || g.groups != 1 || !has(t, g.store, "before") {
				t.Errorf("%d groups undone, %d commits, want %d and 1", got, g.groups, tt.undone)
			}
			given, err := g.store.Row(t.Context(), applied[2].Rows[0])
			if err != nil || given.Key != "after" {
				t.Errorf("the row after it: %+v, %v", given, err)
			}
		})
	}
}

func TestWhatSomebodyElseWroteIsSeen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	g := group(t, path)
	_, errs := g.apply(t, turns(1)[:1])
	check(t, errs[0])
	run(t, connect(t, path), "UPDATE lane SET fence = 7 WHERE session = 's'")
	_, errs = g.apply(t, []*bot.Change{{Lease: &bot.Lease{Session: "s", Fence: 1}}, {Lease: &bot.Lease{Session: "s", Fence: 7}}})
	if !errors.Is(errs[0], bot.ErrLost) || errs[1] != nil {
		t.Errorf("the old fence: %v, the new one: %v", errs[0], errs[1])
	}
}
