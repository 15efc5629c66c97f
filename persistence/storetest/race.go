package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// raceRounds is how often each race is run: the order depends on the machine.
const raceRounds = 20

// Race runs the suite for two handles on one database, as two processes have them: concurrent operations behave as if
// one had come after the other. open returns two handles on one empty database that live as long as their test, or two
// handles in one process if the engine supports only one.
func Race(t *testing.T, open func(t *testing.T) (one, two bot.Store)) {
	t.Helper()
	for name, race := range map[string]func(*racers, int){
		"of two claims one wins":                  ofTwoClaimsOneWins,
		"two votes are both counted":              twoVotesAreBothCounted,
		"of two presses one decides":              ofTwoPressesOneDecides,
		"a claim and a stop both take effect":     aClaimAndAStopBothTakeEffect,
		"a stale fence appends nothing":           aStaleFenceAppendsNothing,
		"of two appends one is in the journal":    ofTwoAppendsOneIsInTheJournal,
		"of two senders one sends":                ofTwoSendersOneSends,
		"of two equal arrivals one is new":        ofTwoEqualArrivalsOneIsNew,
		"two turns do not begin with one message": twoTurnsDoNotBeginWithOneMessage,
		"of two equal rows one is new":            ofTwoEqualRowsOneIsNew,
		"of two facts set if absent one is set":   ofTwoFactsSetIfAbsentOneIsSet,
		"an edit and a begin do not mix":          anEditAndABeginDoNotMix,
		"a refusal and a begin do not mix":        aRefusalAndABeginDoNotMix,
		"of two changes of a fact one wins":       ofTwoThatExpectAFactOneWins,
		"what one did the other one knows":        whatOneDidTheOtherOneKnows,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, two := open(t)
			r := &racers{harness: &harness{T: t, Store: one}, other: &harness{T: t, Store: two}}
			for round := range raceRounds {
				race(r, round)
			}
		})
	}
}

// racers are two handles on one database; the embedded one is the first.
type racers struct {
	*harness
	other *harness
}

// finish is the result of a Change.
type finish struct {
	*bot.Applied
	err error
}

// run applies a Change on each handle, both at once.
func (r *racers) run(one, two *bot.Change) (first, second finish) {
	r.Helper()
	var wg sync.WaitGroup
	gun := make(chan struct{})
	start := func(h *harness, change *bot.Change, end *finish) {
		wg.Go(func() {
			<-gun
			end.Applied, end.err = h.Apply(h.Context(), change)
		})
	}
	start(r.harness, one, &first)
	start(r.other, two, &second)
	close(gun)
	wg.Wait()
	return first, second
}

// oneWins requires that one of two Changes is refused with want, and reports whether it was the second.
func (r *racers) oneWins(first, second finish, want error) (firstWon bool) {
	r.Helper()
	if (first.err == nil) == (second.err == nil) || !errors.Is(errors.Join(first.err, second.err), want) {
		r.Fatalf("the ends are %v and %v, want one that is refused with %v", first.err, second.err, want)
	}
	return first.err == nil
}

// both requires that both Changes are applied.
func (r *racers) both(first, second finish) {
	r.Helper()
	r.ok(errors.Join(first.err, second.err))
}

// onlyOne requires that one of two flags is set.
func (r *racers) onlyOne(what string, first, second bool) {
	r.Helper()
	if first == second {
		r.Errorf("%s: %t and %t, want one of them", what, first, second)
	}
}

// alone returns a session of its own for each round.
func alone(round int) bot.SessionKey {
	return bot.SessionKey(fmt.Sprintf("telegram/1/bot/-100/%d/42", round+1))
}

func take(session bot.SessionKey, by string, fence int64) *bot.Change {
	return &bot.Change{
		Claim: &bot.Claim{Session: session, Fence: fence, Owner: by, Now: start, Until: start.Add(time.Hour)},
	}
}

func ofTwoClaimsOneWins(r *racers, round int) {
	session := alone(round % 4) // including lanes that were held before
	fence := r.lane(session).Fence
	winner := "b"
	if r.oneWins(r.run2(take(session, "a", fence), take(session, "b", fence), bot.ErrLost)) {
		winner = "a"
	}
	for _, h := range []*harness{r.harness, r.other} {
		if lane := h.lane(session); lane.Owner != winner || lane.Fence != fence+1 {
			r.Errorf("lane %+v, want it with %s and fence %d", lane, winner, fence+1)
		}
	}
	r.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Release: true}}})
}

// run2 runs a race for oneWins.
func (r *racers) run2(one, two *bot.Change, want error) (first, second finish, refusal error) {
	r.Helper()
	first, second = r.run(one, two)
	return first, second, want
}

func twoVotesAreBothCounted(r *racers, round int) {
	id := fmt.Sprint("q", round)
	r.do(&bot.Change{Ask: []bot.Approval{{ID: id, Session: session, Needed: 2}}})
	vote := func(by string) *bot.Change {
		return &bot.Change{Decide: []bot.Decision{{ID: id, State: bot.Open, By: by, At: start}}}
	}
	first, second := r.run(vote("a"), vote("b"))
	r.both(first, second)
	r.onlyOne("the last vote approves", first.Decided[0] == bot.Approved, second.Decided[0] == bot.Approved)
	a := r.approval(id)
	slices.Sort(a.Votes)
	same(r.harness, "votes", a.Votes, []string{"a", "b"})
	same(r.harness, "state", a.State, bot.Approved)
}

func ofTwoPressesOneDecides(r *racers, round int) {
	id := fmt.Sprint("q", round)
	r.do(&bot.Change{Ask: []bot.Approval{{ID: id, Session: session}}})
	press := func(by string, state bot.ApprovalState) *bot.Change {
		return &bot.Change{Decide: []bot.Decision{{ID: id, State: state, By: by, At: start}}}
	}
	want, by := bot.Denied, "b"
	if r.oneWins(r.run2(press("a", bot.Approved), press("b", bot.Denied), bot.ErrDecided)) {
		want, by = bot.Approved, "a"
	}
	if a := r.other.approval(id); a.State != want || a.By != by {
		r.Errorf("the question is %s by %s, want %s by %s", a.State, a.By, want, by)
	}
}

func aClaimAndAStopBothTakeEffect(r *racers, round int) {
	name, turn, parked := alone(round), "t1", bot.Parked
	r.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: name, Turn: &turn, State: &parked}}})
	first, second := r.run(take(name, "a", 0), &bot.Change{Lanes: []bot.LaneUpdate{{Session: name, Stop: &turn}}})
	r.both(first, second)
	want := bot.Lane{
		Session: name,
		State:   parked,
		Turn:    turn,
		Stop:    turn,
		Owner:   "a",
		Fence:   1,
		Until:   start.Add(time.Hour),
	}
	same(r.harness, "lane", r.lane(name), want)
	same(r.harness, "lane, as the other one sees it", r.other.lane(name), want)
}

func aStaleFenceAppendsNothing(r *racers, round int) {
	name := alone(round)
	r.do(take(name, "a", 0))
	over := &bot.Change{Claim: &bot.Claim{
		Session: name,
		Fence:   1,
		Owner:   "b",
		Now:     start.Add(2 * time.Hour),
		Until:   start.Add(3 * time.Hour),
	}}
	write := &bot.Change{
		Lease:  &bot.Lease{Session: name, Fence: 1},
		Append: &bot.Append{Session: name, Entries: []journal.Entry{said("t", "late")}},
	}
	first, second := r.run(write, over)
	r.ok(second.err)
	var want []string
	if first.err == nil {
		want = []string{"late"}
	} else if !errors.Is(first.err, bot.ErrLost) {
		r.Errorf("the append ended with %v, want %v", first.err, bot.ErrLost)
	}
	same(r.harness, "journal", texts(r.other.journal(name)), want)
	if lane := r.lane(name); lane.Last != int64(len(want)) || lane.Owner != "b" || lane.Fence != 2 {
		r.Errorf("lane %+v, want %d entries", lane, len(want))
	}
	r.refused(write, bot.ErrLost)
}

func ofTwoAppendsOneIsInTheJournal(r *racers, round int) {
	write := func(text string) *bot.Change {
		return &bot.Change{
			Append: &bot.Append{Session: session, After: int64(round), Entries: []journal.Entry{said("t", text)}},
		}
	}
	want := "b"
	if r.oneWins(r.run2(write("a"), write("b"), bot.ErrConflict)) {
		want = "a"
	}
	entries := texts(r.other.journal(session))
	if len(entries) != round+1 || entries[round] != want {
		r.Errorf("journal %q, want %q last of %d", entries, want, round+1)
	}
}

func ofTwoSendersOneSends(r *racers, _ int) {
	id := r.do(&bot.Change{Send: []bot.Row{{Session: session, Place: r.place()}}}).Rows[0]
	update := &bot.Change{
		Rows: []bot.RowUpdate{{ID: id, From: []bot.RowState{bot.Pending}, To: bot.Sending, Attempts: 1}},
	}
	first, second := r.run(update, update)
	r.both(first, second)
	r.onlyOne("the row moved", first.Moved[0], second.Moved[0])
	same(r.harness, "attempts", r.other.row(id).Attempts, 1)
}

func ofTwoEqualArrivalsOneIsNew(r *racers, round int) {
	change := &bot.Change{
		Arrive: []bot.Arrival{{Channel: channel, Bot: botID, ID: fmt.Sprint(round), Session: session}},
	}
	first, second := r.run(change, change)
	r.both(first, second)
	r.onlyOne("a number was given", first.Seqs[0] != 0, second.Seqs[0] != 0)
}

func twoTurnsDoNotBeginWithOneMessage(r *racers, round int) {
	name := alone(round)
	begin := func(by string) *bot.Change {
		change := take(name, by, 0)
		change.Claim.Arrives = true
		change.Arrive = []bot.Arrival{{Channel: channel, Bot: botID, ID: fmt.Sprint(round), Session: name}}
		return change
	}
	first, second := r.run(begin("a"), begin("b"))
	if (first.err == nil) == (second.err == nil) {
		r.Fatalf("the turns ended with %v and %v, want one of them", first.err, second.err)
	}
	if refused := errors.Join(first.err, second.err); !errors.Is(refused, bot.ErrLost) &&
		!errors.Is(refused, bot.ErrConflict) {
		r.Errorf("refused with %v", refused)
	}
	waiting, err := r.other.Next(r.Context(), name, 0)
	r.ok(err)
	same(r.harness, "what waits", len(waiting), 1)
}

func ofTwoEqualRowsOneIsNew(r *racers, round int) {
	change := &bot.Change{Send: []bot.Row{
		{Session: session, Place: r.place()},
		{Session: session, Place: r.place(), Key: fmt.Sprint("k", round)},
	}}
	first, second := r.run(change, change)
	r.both(first, second)
	r.onlyOne("the key existed", first.Skipped[1], second.Skipped[1])
	same(r.harness, "the row with the key", second.Rows[1], first.Rows[1])
	if first.Rows[0] == second.Rows[0] {
		r.Errorf("two rows have the number %d", first.Rows[0])
	}
}

func ofTwoFactsSetIfAbsentOneIsSet(r *racers, round int) {
	claim := func(value string) *bot.Change {
		return &bot.Change{FactsIf: []bot.Fact{{Bucket: "b", Key: fmt.Sprint(round), Value: value}}}
	}
	first, second := r.run(claim("a"), claim("b"))
	r.both(first, second)
	r.onlyOne("set", first.Set[0], second.Set[0])
	value, err := r.other.Fact(r.Context(), "b", fmt.Sprint(round), start)
	r.ok(err)
	same(r.harness, "value", value, map[bool]string{true: "a", false: "b"}[first.Set[0]])
}

func ofTwoThatExpectAFactOneWins(r *racers, round int) {
	key := fmt.Sprint("e", round/2)
	before := ""
	if round%2 == 1 { // the second of two rounds changes what the first has set
		var err error
		before, err = r.other.Fact(r.Context(), "b", key, start)
		r.ok(err)
	}
	change := func(value string) *bot.Change {
		return &bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: key, Value: value + fmt.Sprint(round), Was: &before}}}
	}
	want := "b"
	if r.oneWins(r.run2(change("a"), change("b"), bot.ErrConflict)) {
		want = "a"
	}
	value, err := r.other.Fact(r.Context(), "b", key, start)
	r.ok(err)
	same(r.harness, "value", value, want+fmt.Sprint(round))
}

// whatOneDidTheOtherOneKnows passes a session back and forth: neither handle may rely on its memory.
func whatOneDidTheOtherOneKnows(r *racers, round int) {
	h, name := r.harness, fmt.Sprint("w", round%2)
	if round%2 == 1 {
		h = r.other
	}
	running, idle := bot.Running, bot.Idle
	arrived := h.arrive(session, fmt.Sprint("m", round))
	begun := h.do(&bot.Change{
		Claim: &bot.Claim{
			Session: session,
			Fence:   int64(round),
			Owner:   name,
			Now:     start,
			Until:   farFuture,
			Arrival: arrived[0],
		},
		Append: &bot.Append{Session: session, After: int64(2 * round), Entries: []journal.Entry{said("t", "question")}},
		Lanes:  []bot.LaneUpdate{{Session: session, State: &running}},
	})
	answered := h.do(&bot.Change{
		Lease: &bot.Lease{Session: session, Fence: begun.Fence}, Done: arrived,
		Append: &bot.Append{Session: session, After: int64(2*round + 1), Entries: []journal.Entry{said("t", "answer")}},
		Lanes:  []bot.LaneUpdate{{Session: session, State: &idle, Release: true}},
		Send:   []bot.Row{{Session: session, Place: h.place(), Key: fmt.Sprint("answer", round)}},
	})
	same(h, "the row is the next one", answered.Rows, []int64{int64(round + 1)})
	for _, other := range []*harness{r.other, r.harness} { // including the one that did not write it
		moved := other.do(&bot.Change{
			Rows: []bot.RowUpdate{{ID: answered.Rows[0], From: []bot.RowState{bot.Pending}, To: bot.Sent}},
		}).Moved[0]
		same(h, "moved", moved, other == r.other)
	}
}
