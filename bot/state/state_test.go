package state_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// same compares; empty lists are equal to none.
func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func refused(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("error %v, want %v", got, want)
	}
}

func TestClaim(t *testing.T) {
	t.Parallel()
	place := bot.Place{Channel: "telegram", Chat: "1"}
	free := bot.Lane{Session: "s", State: bot.Parked, Fence: 3, Place: place}
	held := free
	held.Owner, held.Until = "a", noon
	claim := func(fence int64, now time.Time) *bot.Claim {
		return &bot.Claim{Session: "s", Fence: fence, Owner: "b", Now: now, Until: now.Add(time.Minute)}
	}
	for name, tt := range map[string]struct {
		lane  bot.Lane
		claim *bot.Claim
		want  error
	}{
		"free":                             {free, claim(3, noon), nil},
		"never seen":                       {state.Idle("s"), claim(0, noon), nil},
		"held":                             {held, claim(3, noon.Add(-1)), bot.ErrLost},
		"its lease ends now":               {held, claim(3, noon), nil},
		"its lease is over, fence is old":  {held, claim(2, noon.Add(time.Hour)), bot.ErrLost},
		"free, somebody had it since then": {free, claim(2, noon), bot.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := state.Claim(tt.lane, tt.claim)
			refused(t, err, tt.want)
			want := tt.lane
			if tt.want == nil {
				want.Fence, want.Owner, want.Until = tt.lane.Fence+1, "b", tt.claim.Until
			}
			same(t, "lane", got, want)
		})
	}
	moved := claim(3, noon)
	moved.Place = bot.Place{Channel: "telegram", Chat: "2"}
	if got, err := state.Claim(free, moved); err != nil || got.Place != moved.Place {
		t.Errorf("a claim with a place: %+v, %v", got.Place, err)
	}
	named := claim(3, noon)
	named.Workspace = "new"
	if got, err := state.Claim(free, named); err != nil || got.Workspace != "new" {
		t.Errorf("a claim with a workspace: %q, %v", got.Workspace, err)
	}
	keeps := free
	keeps.Workspace = "old"
	if got, err := state.Claim(keeps, named); err != nil || got.Workspace != "old" {
		t.Errorf("a claim of a lane that has a workspace: %q, %v", got.Workspace, err)
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	lane := bot.Lane{Session: "s", Fence: 3, Owner: "a", Until: noon}
	refused(t, state.Holds(lane, &bot.Lease{Session: "s", Fence: 3}), nil) // the fence decides, not the clock
	refused(t, state.Holds(lane, &bot.Lease{Session: "s", Fence: 2}), bot.ErrLost)
	refused(t, state.Holds(state.Release(lane), &bot.Lease{Session: "s", Fence: 3}), bot.ErrLost)
	refused(t, state.Holds(state.Idle("s"), &bot.Lease{Session: "s"}), bot.ErrLost)
}

func TestAppend(t *testing.T) {
	t.Parallel()
	lane := bot.Lane{Session: "s", Last: 4}
	said, reset := journal.Entry{Kind: journal.UserEntry}, journal.Entry{Kind: journal.ResetEntry}
	got, forget, err := state.Append(lane, &bot.Append{Session: "s", After: 4, Entries: []journal.Entry{said, said}})
	if got.Last != 6 || forget || err != nil {
		t.Errorf("last %d, forget %t, %v", got.Last, forget, err)
	}
	summary, anew := journal.Entry{Kind: journal.SummaryEntry, Text: "was", State: &journal.ConversationState{}}, journal.Entry{Kind: journal.SummaryEntry}
	for e, want := range map[*journal.Entry]bool{&summary: false, &anew: true} {
		if _, forget, err := state.Append(lane, &bot.Append{Session: "s", After: 4, Entries: []journal.Entry{*e}}); err != nil || forget != want {
			t.Errorf("%+v: forget %t, %v", *e, forget, err)
		}
	}
	got, forget, err = state.Append(lane, &bot.Append{Session: "s", After: 4, Entries: []journal.Entry{reset, said}})
	if got.Last != 6 || !forget || err != nil {
		t.Errorf("with a reset: last %d, forget %t, %v", got.Last, forget, err)
	}
	for _, after := range []int64{3, 5} {
		got, _, err := state.Append(lane, &bot.Append{Session: "s", After: after, Entries: []journal.Entry{said}})
		refused(t, err, bot.ErrConflict)
		same(t, "lane", got, lane)
	}
}

func TestUpdate(t *testing.T) {
	t.Parallel()
	full := bot.Lane{
		Session: "s", Place: bot.Place{Chat: "1"}, State: bot.Waiting, Fence: 3, Owner: "a", Until: noon, Turn: "t", Arrival: 1, Since: noon,
		NotBefore: noon, Failing: noon, Stop: "t", Last: 4, Live: 5, Notice: "t", Caller: "c",
	}
	same(t, "nothing is set", state.Update(full, &bot.LaneUpdate{}), full)
	place, running, later, none, number := bot.Place{Chat: "2"}, bot.Running, noon.Add(1), "", int64(9)
	got := state.Update(full, &bot.LaneUpdate{
		Place: &place, State: &running, Turn: &none, Arrival: &number, Since: &later, NotBefore: &later, Failing: &later, Stop: &none, Live: &number,
		Notice: &none, Caller: &none, Until: &later,
	})
	same(t, "all is set", got, bot.Lane{
		Session: "s", Place: place, State: running, Fence: 3, Owner: "a", Until: later, Arrival: 9, Since: later, NotBefore: later, Failing: later,
		Last: 4, Live: 9,
	})
	got = state.Update(full, &bot.LaneUpdate{Until: &later, Release: true})
	if got.Owner != "" || !got.Until.IsZero() || got.Fence != 3 {
		t.Errorf("released: %+v", got)
	}
}

func TestArrival(t *testing.T) {
	t.Parallel()
	came := state.Arrival{State: state.Waiting}
	later := noon.Add(time.Hour)
	retried := came.Retry("no net")
	same(t, "retried", retried, state.Arrival{State: state.Waiting, Attempts: 1, Problem: "no net"})
	dead := retried.GiveUp("bad", noon)
	same(t, "given up", dead, state.Arrival{State: state.Dead, Attempts: 1, Problem: "bad", Finished: noon})
	same(t, "a dead letter is not given up again", dead.GiveUp("worse", later), dead)
	same(t, "a dead letter is not retried", dead.Retry("worse"), dead)
	done := came.Finish(noon)
	same(t, "done", done, state.Arrival{State: state.Done, Finished: noon})
	same(t, "done again", done.Finish(later), done)
	same(t, "done is not given up", done.GiveUp("late", later), done)
	same(t, "a dead letter that is done", dead.Finish(later), state.Arrival{State: state.Done, Attempts: 1, Problem: "bad", Finished: noon})
}

func TestVote(t *testing.T) {
	t.Parallel()
	open := bot.Approval{ID: "q", State: bot.Open, Needed: 2, Votes: []string{"a"}}
	vote := func(by string, votes ...string) *bot.Decision {
		return &bot.Decision{ID: "q", State: bot.Open, By: by, ByName: "N", Votes: votes, At: noon}
	}
	for name, tt := range map[string]struct {
		decision *bot.Decision
		state    bot.ApprovalState
		scope    string
		votes    []string
	}{
		"the same person again":         {vote("a"), bot.Open, "", []string{"a"}},
		"nobody":                        {vote(""), bot.Open, "", []string{"a"}},
		"the second person":             {vote("b"), bot.Approved, bot.Once, []string{"a", "b"}},
		"a vote that somebody passed":   {vote("a", "c"), bot.Approved, bot.Once, []string{"a", "c"}},
		"the second one, for a session": {&bot.Decision{ID: "q", State: bot.Open, By: "b", Scope: bot.Session}, bot.Approved, bot.Session, []string{"a", "b"}},
		"denied":                        {&bot.Decision{ID: "q", State: bot.Denied, By: "b"}, bot.Denied, "", []string{"a"}},
		"approved at once":              {&bot.Decision{ID: "q", State: bot.Approved, By: "b", Scope: bot.Always}, bot.Approved, bot.Always, []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := state.Vote(open, tt.decision)
			refused(t, err, nil)
			want := open
			want.State, want.Scope, want.Votes = tt.state, tt.scope, tt.votes
			if tt.state != bot.Open {
				want.By, want.ByName, want.Decided = tt.decision.By, tt.decision.ByName, tt.decision.At
			}
			same(t, "question", got, want)
		})
	}
	same(t, "votes that were there", open.Votes, []string{"a"})
	for _, final := range []bot.ApprovalState{bot.Approved, bot.Denied, bot.Expired, bot.Withdrawn} {
		_, err := state.Vote(bot.Approval{State: final}, vote("b"))
		refused(t, err, bot.ErrDecided)
	}
}

func TestAdvance(t *testing.T) {
	t.Parallel()
	later := noon.Add(time.Hour)
	sending := state.Delivery{State: bot.Sending, Message: "7", Attempts: 1, NotBefore: noon, Problem: "slow"}
	for name, tt := range map[string]struct {
		from   state.Delivery
		update bot.RowUpdate
		want   state.Delivery
		moved  bool
	}{
		"sent": {
			sending,
			bot.RowUpdate{From: []bot.RowState{bot.Sending}, To: bot.Sent, Message: "8", Attempts: 1},
			state.Delivery{State: bot.Sent, Message: "8", Attempts: 2, Finished: later},
			true,
		},
		"back to wait, its message is kept": {
			sending,
			bot.RowUpdate{From: []bot.RowState{bot.Pending, bot.Sending}, To: bot.Pending, NotBefore: later, Doubt: noon, Problem: "502"},
			state.Delivery{State: bot.Pending, Message: "7", Attempts: 1, NotBefore: later, Doubt: noon, Problem: "502"},
			true,
		},
		"the first doubt counts": {
			state.Delivery{State: bot.Pending, Doubt: noon},
			bot.RowUpdate{From: []bot.RowState{bot.Pending}, To: bot.Unknown, Doubt: later},
			state.Delivery{State: bot.Unknown, Doubt: noon},
			true,
		},
		"given up, then told": {
			state.Delivery{State: bot.Dead, Finished: noon},
			bot.RowUpdate{From: []bot.RowState{bot.Dead}, To: bot.Pending},
			state.Delivery{State: bot.Pending},
			true,
		},
		"in another state": {sending, bot.RowUpdate{From: []bot.RowState{bot.Pending}, To: bot.Dead, Problem: "late"}, sending, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, moved := tt.from.Advance(&tt.update, later)
			same(t, "row", got, tt.want)
			same(t, "moved", moved, tt.moved)
		})
	}
	same(t, "a new row", state.Deliver(&bot.Row{}, noon).State, bot.Pending)
	same(t, "a new row that was sent", state.Deliver(&bot.Row{State: bot.Sent}, noon).Finished, noon)
}
