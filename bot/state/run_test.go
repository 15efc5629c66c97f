package state_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

// full is a Change with every part, in a world in which nothing refuses it.
func full() (*bot.Change, *state.World) {
	running := bot.Running
	change := &bot.Change{
		Claim:   &bot.Claim{Session: "s", Fence: 1, Owner: "o", Now: noon, Until: noon.Add(time.Minute), Arrives: true},
		Lease:   &bot.Lease{Session: "s", Fence: 2},
		Arrive:  []bot.Arrival{{Channel: "c", Bot: "b", ID: "9", Session: "s"}},
		Done:    []int64{3, 1, 3},
		Retry:   []bot.DeadLetter{{Seq: 2, Problem: "no net"}},
		Dead:    []bot.DeadLetter{{Seq: 4, Problem: "bad"}},
		Append:  &bot.Append{Session: "s", After: 5, Entries: []journal.Entry{{Kind: journal.ResetEntry}, {Kind: journal.UserEntry}}},
		Lanes:   []bot.LaneUpdate{{Session: "s", State: &running}, {Session: "a", State: &running}},
		Ask:     []bot.Approval{{ID: "q2", Session: "s", Short: "x", Turn: "t"}},
		Decide:  []bot.Decision{{ID: "q1", State: bot.Denied, By: "u", At: noon}},
		Cancel:  &bot.Cancel{Session: "a", By: "u", At: noon},
		Send:    []bot.Row{{Session: "s", Key: "known"}, {Session: "s", Key: "new"}, {Session: "s", Key: "new"}, {Session: "s"}},
		Cards:   []bot.Card{{Approval: "q2", Send: 1}},
		Rows:    []bot.RowUpdate{{ID: 6, From: []bot.RowState{bot.Sending}, To: bot.Sent}, {ID: 6, From: []bot.RowState{bot.Sending}, To: bot.Dead}},
		Facts:   []bot.Fact{{Bucket: "b", Key: "k", Value: ""}},
		FactsIf: []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}, {Bucket: "a", Key: "k", Value: "v"}, {Bucket: "b", Key: "k", Value: "w"}},

		PlaceholderOf: "s",
	}
	waiting := state.Arrival{State: state.Waiting}
	world := &state.World{
		Lanes:    map[bot.SessionKey]bot.Lane{"s": {Session: "s", State: bot.Idle, Fence: 1, Last: 5}},
		Arrivals: map[int64]state.Arrival{1: waiting, 2: waiting, 3: waiting, 4: waiting},
		Questions: map[string]state.Question{
			"q1": {Approval: bot.Approval{ID: "q1", State: bot.Open, Session: "s", Needed: 1}, N: 1},
			"q9": {Approval: bot.Approval{ID: "q9", State: bot.Open, Session: "a", Needed: 1}, N: 2},
			"q0": {Approval: bot.Approval{ID: "q0", State: bot.Open, Session: "a", Needed: 1}, N: 3},
		},
		Rows:    map[int64]state.Delivery{6: {State: bot.Sending}},
		Keys:    map[string]int64{"known": 4},
		Facts:   map[state.FactKey]bot.Fact{{Bucket: "a", Key: "k"}: {Bucket: "a", Key: "k", Value: "old"}, {Bucket: "b", Key: "k"}: {Value: "old"}},
		Numbers: state.Numbers{Arrivals: []int64{21}, Questions: []int64{31}, Rows: []int64{41, 42, 43, 44}},
	}
	return change, world
}

func TestRunDoesAllParts(t *testing.T) {
	t.Parallel()
	change, world := full()
	got, err := state.Run(change, world, noon)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "applied", got.Applied, &bot.Applied{
		Fence: 2, Seqs: []int64{21}, Rows: []int64{4, 41, 41, 42}, Skipped: []bool{true, false, true, false}, Set: []bool{true, false, false},
		Moved: []bool{true, false}, Decided: []bot.ApprovalState{bot.Denied}, Withdrawn: []string{"q9", "q0"},
	})
	same(t, "arrivals", got.Arrive, []state.NewArrival{{Seq: 21}})
	same(t, "rows to send", got.Send, []state.NewRow{
		{ID: 41, Index: 1, Created: noon, Delivery: state.Delivery{State: bot.Pending}},
		{ID: 42, Index: 3, Created: noon, Delivery: state.Delivery{State: bot.Pending}},
	})
	same(t, "questions", got.Ask, []state.NewQuestion{{Question: state.Question{
		N: 31, Approval: bot.Approval{ID: "q2", Session: "s", Short: "x", Turn: "t", State: bot.Open, Needed: 1, Row: 41},
	}}})
	same(t, "journal", []any{got.Entries, got.Forget}, []any{int64(6), bot.SessionKey("s")})
	same(t, "lanes", got.Lanes, []state.Write[bot.SessionKey, bot.Lane]{
		{Key: "a", New: bot.Lane{Session: "a", State: bot.Running}},
		{
			Key: "s", Exists: true, Old: world.Lanes["s"],
			New: bot.Lane{Session: "s", State: bot.Running, Fence: 2, Owner: "o", Until: noon.Add(time.Minute), Arrival: 21, Last: 7, Live: 4},
		},
	})
	var seqs []int64
	for _, w := range got.Arrivals {
		seqs = append(seqs, w.Key)
	}
	same(t, "arrivals that moved on, in order", seqs, []int64{1, 2, 3, 4})
	var ids []string
	for _, w := range got.Questions {
		ids = append(ids, w.Key)
	}
	same(t, "questions that changed, in order", ids, []string{"q0", "q1", "q9"})
	same(t, "facts", got.Facts, []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}})
}

// TestRunChangesNothingInItsArguments runs a Change twice on one World: a store that guessed wrong runs it again.
func TestRunChangesNothingInItsArguments(t *testing.T) {
	t.Parallel()
	change, world := full()
	first, err := state.Run(change, world, noon)
	refused(t, err, nil)
	sameChange, sameWorld := full()
	if !reflect.DeepEqual(change, sameChange) || !reflect.DeepEqual(world, sameWorld) {
		t.Error("the Change or the World is another one afterwards")
	}
	second, err := state.Run(change, world, noon)
	refused(t, err, nil)
	same(t, "second run", second, first)
}

func TestNeedsOf(t *testing.T) {
	t.Parallel()
	change, _ := full()
	same(t, "needs", state.NeedsOf(change), state.Needs{
		Lanes: []bot.SessionKey{"a", "s"}, Waiting: "s", Arrivals: []int64{1, 2, 3, 4}, Arrived: []state.ArrivalKey{{Channel: "c", Bot: "b", ID: "9"}},
		Asked: []string{"q1", "q2"}, OpenOf: "a", Shorts: []state.ShortName{{Short: "x"}}, Rows: []int64{6}, Keys: []string{"known", "new"},
		Facts: []state.FactKey{{Bucket: "a", Key: "k"}, {Bucket: "b", Key: "k"}}, Chats: []bot.Place{{}}, NewArrivals: 1, NewQuestions: 1, NewRows: 4,
	})
	if !reflect.DeepEqual(state.NeedsOf(&bot.Change{}), state.Needs{}) {
		t.Error("an empty Change needs something")
	}
}

// TestRefusals wants each reason to refuse a Change, and none of its other parts done.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		spoil func(*bot.Change, *state.World)
		want  error
	}{
		"the lane is another's":     {func(c *bot.Change, _ *state.World) { c.Claim.Fence = 0 }, bot.ErrLost},
		"another arrival waits":     {func(_ *bot.Change, w *state.World) { w.Waiting = true }, bot.ErrConflict},
		"the arrival waits no more": {func(c *bot.Change, _ *state.World) { c.Claim.Arrives, c.Claim.Arrival = false, 8 }, bot.ErrConflict},
		"the lease is lost":         {func(c *bot.Change, _ *state.World) { c.Lease.Fence = 1 }, bot.ErrLost},
		"the arrival that it begins with is known": {func(_ *bot.Change, w *state.World) {
			w.Arrived = map[state.ArrivalKey]int64{{Channel: "c", Bot: "b", ID: "9"}: 1}
		}, bot.ErrConflict},
		"an unknown arrival is done":     {func(c *bot.Change, _ *state.World) { c.Done = append(c.Done, 99) }, bot.ErrNotFound},
		"an unknown arrival is retried":  {func(c *bot.Change, _ *state.World) { c.Retry[0].Seq = 99 }, bot.ErrNotFound},
		"an unknown arrival is given up": {func(c *bot.Change, _ *state.World) { c.Dead[0].Seq = 99 }, bot.ErrNotFound},
		"the journal has moved on":       {func(c *bot.Change, _ *state.World) { c.Append.After = 4 }, bot.ErrConflict},
		"a question exists":              {func(c *bot.Change, _ *state.World) { c.Ask[0].ID = "q1" }, bot.ErrTaken},
		"a short name is in use":         {func(c *bot.Change, _ *state.World) { c.Ask = append(c.Ask, bot.Approval{ID: "q3", Short: "x"}) }, bot.ErrTaken},
		"an unknown question is decided": {func(c *bot.Change, _ *state.World) { c.Decide[0].ID = "q7" }, bot.ErrNotFound},
		"a question is decided twice":    {func(c *bot.Change, _ *state.World) { c.Decide = append(c.Decide, c.Decide[0]) }, bot.ErrDecided},
		"a card of no question":          {func(c *bot.Change, _ *state.World) { c.Cards[0].Approval = "q7" }, bot.ErrNotFound},
		"an unknown row":                 {func(c *bot.Change, _ *state.World) { c.Rows[0].ID = 99 }, bot.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change, world := full()
			tt.spoil(change, world)
			result, err := state.Run(change, world, noon)
			refused(t, err, tt.want)
			if result != nil {
				t.Errorf("a refused change has the result %+v", result)
			}
		})
	}
}

// TestManyRows goes through a Change that touches more rows than are searched one by one.
func TestManyRows(t *testing.T) {
	t.Parallel()
	const n = 100
	change, world := &bot.Change{}, &state.World{Arrivals: map[int64]state.Arrival{}}
	for seq := range int64(n) {
		change.Done = append(change.Done, n-seq)
		change.Dead = append(change.Dead, bot.DeadLetter{Seq: seq + 1, Problem: "late"})
		world.Arrivals[seq+1] = state.Arrival{State: state.Waiting}
	}
	result, err := state.Run(change, world, noon)
	refused(t, err, nil)
	if len(result.Arrivals) != n {
		t.Fatalf("%d arrivals, want %d", len(result.Arrivals), n)
	}
	for i, w := range result.Arrivals {
		if w.Key != int64(i)+1 || w.New.State != state.Done {
			t.Errorf("arrival %d is %+v", i, w)
		}
	}
}

// TestRowsOfAChatStayWithOneProcess: a new row goes to the process that has open rows of its chat, and behind open rows
// nothing is being sent yet.
func TestRowsOfAChatStayWithOneProcess(t *testing.T) {
	t.Parallel()
	chat := func(id string) bot.Place { return bot.Place{Channel: "c", Bot: "b", Surface: "s", Chat: id} }
	change := &bot.Change{Send: []bot.Row{
		{Place: chat("1"), State: bot.Sending}, {Place: chat("2"), State: bot.Sending}, {Place: chat("3"), State: bot.Sending}, {Place: chat("2")},
	}}
	needs := state.NeedsOf(change)
	same(t, "chats", needs.Chats, []bot.Place{chat("1"), chat("2"), chat("3")})
	world := &state.World{
		Self: "me", Senders: map[string]string{chat("2").ChatKey(): "other", chat("3").ChatKey(): "me"},
		Numbers: state.Numbers{Rows: []int64{1, 2, 3, 4}},
	}
	got, err := state.Run(change, world, noon)
	refused(t, err, nil)
	var rows []string
	for _, n := range got.Send {
		rows = append(rows, fmt.Sprint(n.ID, " ", n.Owner, " ", n.Delivery.State))
	}
	same(t, "rows", rows, []string{"1 me sending", "2 other pending", "3 me pending", "4 other pending"})
	same(t, "queued", got.Applied.Queued, []int64{2, 3, 4})
}

// TestReplace: an arrival gets a new content while it waits and no turn has begun with it; then a claim of its idle lane
// from before is void, and the lease of a turn that it waits behind is not.
func TestReplace(t *testing.T) {
	t.Parallel()
	world := func(of state.ArrivalState, lane bot.Lane) *state.World {
		return &state.World{Arrivals: map[int64]state.Arrival{7: {State: of}}, Lanes: map[bot.SessionKey]bot.Lane{"s": lane}}
	}
	change := &bot.Change{Replace: []bot.Replacement{{Seq: 7, Session: "s", Source: "edit", Raw: []byte("new")}}}
	for name, c := range map[string]struct {
		world *state.World
		fence int64
		want  error
	}{
		"idle":             {world(state.Waiting, bot.Lane{Session: "s", Fence: 3}), 4, nil},
		"behind a turn":    {world(state.Waiting, bot.Lane{Session: "s", Fence: 3, Turn: "t", Arrival: 6}), 3, nil},
		"begun":            {world(state.Waiting, bot.Lane{Session: "s", Fence: 3, Turn: "t", Arrival: 7}), 0, bot.ErrConflict},
		"done":             {world(state.Done, bot.Lane{Session: "s"}), 0, bot.ErrHandled},
		"given up":         {world(state.Dead, bot.Lane{Session: "s"}), 0, bot.ErrHandled},
		"unknown":          {&state.World{}, 0, bot.ErrNotFound},
		"held between two": {world(state.Waiting, bot.Lane{Session: "s", Fence: 3, Owner: "o"}), 3, nil},
	} {
		got, err := state.Run(change, c.world, noon)
		if refused(t, err, c.want); err != nil {
			continue
		}
		same(t, name, got.Replace, []int{0})
		same(t, name, got.Lanes[0].New.Fence, c.fence)
	}
	for _, wrong := range []bot.Replacement{{Session: "s", Raw: []byte("x")}, {Seq: 1, Raw: []byte("x")}, {Seq: 1, Session: "s"}} {
		refused(t, (&bot.Change{Replace: []bot.Replacement{wrong}}).Validate(), bot.ErrInvalid)
	}
}
