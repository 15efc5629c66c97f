package storetest

import (
	"errors"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot"
)

func arrivalTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"arrivals are numbered and kept as they came":            arrivalsAreNumberedAndKeptAsTheyCame,
		"a doubled arrival is ignored, by channel, bot and id":   aDoubledArrivalIsIgnoredByChannelBotAndId,
		"express arrivals and those without a lane do not queue": expressArrivalsAndThoseWithoutALaneDoNotQueue,
		"an arrival is retried, given up, done":                  anArrivalIsRetriedGivenUpDone,
		"what waits gets a new content, what has begun does not": whatWaitsGetsANewContentWhatHasBegunDoesNot,
		"what has begun is not handled as one that waits":        whatHasBegunIsNotHandledAsOneThatWaits,
	}
}

func arrivalsAreNumberedAndKeptAsTheyCame(h *harness) {
	seqs := h.arrive(session, "7", "5", "9")
	got, err := h.Next(h.Context(), session, 10)
	h.ok(err)
	want := []bot.Arrival{
		{
			Seq:     seqs[0],
			Channel: channel,
			Bot:     botID,
			ID:      "7",
			Source:  bot.FromTelegram,
			Session: session,
			Raw:     []byte("raw 7"),
			At:      start,
		},
		{
			Seq:     seqs[1],
			Channel: channel,
			Bot:     botID,
			ID:      "5",
			Source:  bot.FromTelegram,
			Session: session,
			Raw:     []byte("raw 5"),
			At:      start,
		},
		{
			Seq:     seqs[2],
			Channel: channel,
			Bot:     botID,
			ID:      "9",
			Source:  bot.FromTelegram,
			Session: session,
			Raw:     []byte("raw 9"),
			At:      start,
		},
	}
	same(h, "arrivals", got, want)
	if seqs[0] <= 0 || seqs[1] <= seqs[0] || seqs[2] <= seqs[1] {
		h.Errorf("numbers %v do not grow", seqs)
	}
	got, err = h.Next(h.Context(), session, 2)
	h.ok(err)
	same(h, "limited", ids(got), []string{"7", "5"})
}

func aDoubledArrivalIsIgnoredByChannelBotAndId(h *harness) {
	first := h.arrive(session, "7")
	h.do(&bot.Change{Done: first})
	applied := h.do(&bot.Change{Arrive: []bot.Arrival{
		{Channel: channel, Bot: botID, ID: "7", Session: session},
		{Channel: channel, Bot: "2", ID: "7", Session: session},
		{Channel: "terminal", Bot: botID, ID: "7", Session: session},
		{Channel: channel, Bot: "2", ID: "7", Session: session},
	}})
	if s := applied.Seqs; s[0] != 0 || s[1] == 0 || s[2] == 0 || s[3] != 0 {
		h.Errorf("numbers %v, want first and last 0", s)
	}
}

func expressArrivalsAndThoseWithoutALaneDoNotQueue(h *harness) {
	h.do(&bot.Change{Arrive: []bot.Arrival{
		{Channel: channel, Bot: botID, ID: "1", Session: session},
		{Channel: channel, Bot: botID, ID: "2", Session: session, Express: true},
		{Channel: channel, Bot: botID, ID: "3"},
		{Channel: channel, Bot: "2", ID: "4"},
	}})
	got, err := h.Express(h.Context(), channel, botID, 10)
	h.ok(err)
	same(h, "express", ids(got), []string{"2", "3"})
	got, err = h.Next(h.Context(), session, 10)
	h.ok(err)
	same(h, "queued", ids(got), []string{"1"})
	got, err = h.Next(h.Context(), "", 10)
	h.ok(err)
	same(h, "queue of no session", ids(got), nil)
	got, err = h.Express(h.Context(), channel, botID, 1)
	h.ok(err)
	same(h, "limited", ids(got), []string{"2"})
}

func anArrivalIsRetriedGivenUpDone(h *harness) {
	seqs := h.arrive(session, "1", "2", "3")
	h.do(&bot.Change{Retry: []bot.DeadLetter{{Seq: seqs[0], Problem: "no net"}}})
	got, err := h.Next(h.Context(), session, 10)
	h.ok(err)
	if got[0].Attempts != 1 || got[0].Problem != "no net" || len(got) != 3 {
		h.Errorf("after a retry: %+v", got)
	}
	h.do(&bot.Change{
		Dead: []bot.DeadLetter{{Seq: seqs[0], Problem: "bad"}, {Seq: seqs[2], Problem: "worse"}},
		Done: seqs[1:2],
	})
	h.do(&bot.Change{
		Dead:  []bot.DeadLetter{{Seq: seqs[1], Problem: "late"}},
		Retry: []bot.DeadLetter{{Seq: seqs[0], Problem: "late"}},
	})
	dead, err := h.DeadLetters(h.Context(), 10)
	h.ok(err)
	same(h, "dead letters, newest first", ids(dead), []string{"3", "1"})
	if dead[1].Problem != "bad" || dead[1].Attempts != 1 {
		h.Errorf("a dead letter changed: %+v", dead[1])
	}
	h.do(&bot.Change{Done: []int64{seqs[0], seqs[1]}})
	for i, id := range []string{"1", "2", "3"} {
		a, err := h.ArrivalOf(h.Context(), channel, botID, id)
		h.ok(err)
		if a.Seq != seqs[i] || a.Session != session {
			h.Errorf("arrival %s: %+v", id, a)
		}
	}
	if _, err := h.ArrivalOf(h.Context(), channel, "2", "1"); !errors.Is(err, bot.ErrNotFound) {
		h.Errorf("arrival of another bot: %v", err)
	}
	dead, err = h.DeadLetters(h.Context(), 10)
	h.ok(err)
	same(h, "dead letters after one was done", ids(dead), []string{"3"})
	more := h.arrive(session, "4", "5")
	h.do(&bot.Change{Handles: more[0]})
	h.refused(&bot.Change{Handles: more[0], Facts: []bot.Fact{{Bucket: "b", Key: "twice", Value: "x"}}}, bot.ErrHandled)
	h.do(&bot.Change{Dead: []bot.DeadLetter{{Seq: more[1], Problem: "bad"}}})
	h.refused(&bot.Change{Handles: more[1]}, bot.ErrHandled)
	for _, change := range []bot.Change{
		{Done: []int64{999}},
		{Handles: 999},
		{Retry: []bot.DeadLetter{{Seq: 999}}},
		{Dead: []bot.DeadLetter{{Seq: 999}}},
	} {
		h.refused(&change, bot.ErrNotFound)
	}
}

func whatHasBegunIsNotHandledAsOneThatWaits(h *harness) {
	seqs := h.arrive(session, "1", "2", "3")
	h.do(&bot.Change{Handles: seqs[0], Unbegun: session})
	same(h, "a claim from before", h.lane(session).Fence, 1)
	h.refused(begin(session, seqs[1], 0), bot.ErrLost)
	h.do(begin(session, seqs[1], 1))
	h.refused(&bot.Change{Handles: seqs[1], Unbegun: session}, bot.ErrHandled)
	h.refused(&bot.Change{Dead: []bot.DeadLetter{{Seq: seqs[1], Problem: "bad"}}, Unbegun: session}, bot.ErrHandled)
	h.do(&bot.Change{Handles: seqs[2], Unbegun: session}) // it waits behind the turn, whose lease stays
	same(h, "fence of the turn", h.lane(session).Fence, 2)
	got, err := h.Next(h.Context(), session, 10)
	h.ok(err)
	same(h, "what waits", ids(got), []string{"2"})
}

func laneTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"a session never seen is idle":               aSessionNeverSeenIsIdle,
		"a claim takes the lane and its fence grows": aClaimTakesTheLaneAndItsFenceGrows,
		"who lost the lane changes nothing more":     whoLostTheLaneChangesNothingMore,
		"a lease is extended and given back":         aLeaseIsExtendedAndGivenBack,
		"a lane update sets what is given":           aLaneUpdateSetsWhatIsGiven,
		"one of two claimants wins":                  oneOfTwoClaimantsWins,
		"a turn begins with the arrival that waits":  aTurnBeginsWithTheArrivalThatWaits,
		"a turn begins with what arrives":            aTurnBeginsWithWhatArrives,
		"a lane keeps the workspace it was given":    aLaneKeepsTheWorkspaceItWasGiven,
	}
}

func aLaneKeepsTheWorkspaceItWasGiven(h *harness) {
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session}}}) // as left by an earlier version
	take := func(workspace string) {
		fence := h.lane(session).Fence
		h.do(&bot.Change{
			Claim: &bot.Claim{
				Session:   session,
				Place:     h.place(),
				Workspace: workspace,
				Fence:     fence,
				Owner:     owner,
				Now:       start,
				Until:     start.Add(time.Minute),
			},
			Lanes: []bot.LaneUpdate{{Session: session, Release: true}},
		})
	}
	for _, step := range [][2]string{{"", ""}, {"w1", "w1"}, {"w2", "w1"}, {"", "w1"}} {
		take(step[0])
		same(h, "workspace after a claim with "+step[0], h.lane(session).Workspace, step[1])
	}
}

func aSessionNeverSeenIsIdle(h *harness) {
	same(h, "lane", h.lane(session), bot.Lane{Session: session, State: bot.Idle})
}

func aClaimTakesTheLaneAndItsFenceGrows(h *harness) {
	if fence := h.claim(session, 0); fence != 1 {
		h.Errorf("fence %d, want 1", fence)
	}
	same(h, "lane", h.lane(session), bot.Lane{
		Session: session, Place: h.place(), State: bot.Idle, Fence: 1, Owner: owner, Until: start.Add(time.Minute),
	})
	h.refused(&bot.Change{
		Claim: &bot.Claim{Session: session, Fence: 1, Owner: "b", Now: start.Add(time.Minute - 1)},
	}, bot.ErrLost)
	h.refused(
		&bot.Change{Claim: &bot.Claim{Session: session, Fence: 0, Owner: "b", Now: start.Add(time.Hour)}}, bot.ErrLost,
	)
	h.do(&bot.Change{Claim: &bot.Claim{
		Session: session,
		Fence:   1,
		Owner:   "b",
		Now:     start.Add(time.Minute),
		Until:   start.Add(time.Hour),
	}})
	lane := h.lane(session)
	if lane.Fence != 2 || lane.Owner != "b" || lane.Place != h.place() {
		h.Errorf("after the lease ended: %+v", lane)
	}
}

func aTurnBeginsWithTheArrivalThatWaits(h *harness) {
	seqs := h.arrive(session, "1", "2")
	h.do(&bot.Change{Done: seqs[:1]})
	claim := &bot.Claim{Session: session, Owner: owner, Now: start, Until: start.Add(time.Minute), Arrival: seqs[0]}
	h.refused(&bot.Change{Claim: claim}, bot.ErrConflict)
	claim.Arrival = seqs[1] + 1
	h.refused(&bot.Change{Claim: claim}, bot.ErrConflict)
	claim.Arrival = seqs[1]
	h.do(&bot.Change{Claim: claim})
}

func aTurnBeginsWithWhatArrives(h *harness) {
	begin := func(id string, fence int64) *bot.Change {
		return &bot.Change{
			Claim:  &bot.Claim{Session: session, Fence: fence, Owner: owner, Now: start, Until: start, Arrives: true},
			Arrive: []bot.Arrival{{Channel: channel, Bot: botID, ID: id, Session: session, At: start}},
		}
	}
	first := h.do(begin("1", 0))
	if lane := h.lane(session); lane.Arrival != first.Seqs[0] || lane.Fence != 1 {
		h.Errorf("lane %+v, want the arrival %d", lane, first.Seqs[0])
	}
	h.refused(begin("2", 1), bot.ErrConflict) // the first one waits
	h.do(&bot.Change{Done: first.Seqs})
	h.refused(begin("1", 1), bot.ErrConflict) // known
	h.arrive("another", "3")
	second := h.do(begin("2", 1))
	if lane := h.lane(session); lane.Arrival != second.Seqs[0] {
		h.Errorf("lane %+v, want the arrival %d", lane, second.Seqs[0])
	}
	h.do(&bot.Change{Done: second.Seqs})
	express := begin("4", 2)
	express.Arrive[0].Express = true
	h.refused(express, bot.ErrInvalid)
	several := begin("5", 2)
	several.Arrive = append(several.Arrive, begin("6", 2).Arrive...)
	h.refused(several, bot.ErrInvalid)
}

func whoLostTheLaneChangesNothingMore(h *harness) {
	h.claim(session, 0)
	old := &bot.Lease{Session: session, Fence: 1}
	h.do(&bot.Change{Lease: old})
	h.do(&bot.Change{Claim: &bot.Claim{
		Session: session,
		Fence:   1,
		Owner:   "b",
		Now:     start.Add(time.Hour),
		Until:   start.Add(2 * time.Hour),
	}})
	h.refused(&bot.Change{Lease: old, Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}}}, bot.ErrLost)
	h.refused(&bot.Change{Lease: &bot.Lease{Session: "never seen"}}, bot.ErrLost)
	value, err := h.Fact(h.Context(), "b", "k", start)
	h.ok(err)
	same(h, "fact of a refused change", value, "")
}

func aLeaseIsExtendedAndGivenBack(h *harness) {
	h.claim(session, 0)
	later := start.Add(time.Hour)
	lease := &bot.Lease{Session: session, Fence: 1}
	h.do(&bot.Change{Lease: lease, Lanes: []bot.LaneUpdate{{Session: session, Until: &later}}})
	same(h, "until", h.lane(session).Until, later)
	h.do(&bot.Change{Lease: lease, Lanes: []bot.LaneUpdate{{Session: session, Until: &later, Release: true}}})
	if lane := h.lane(session); lane.Owner != "" || !lane.Until.IsZero() || lane.Fence != 1 {
		h.Errorf("given back: %+v", lane)
	}
	h.refused(&bot.Change{Lease: lease}, bot.ErrLost)
	h.claim(session, 1)
}

func aLaneUpdateSetsWhatIsGiven(h *harness) {
	place := h.place()
	state, turn, arrival, live := bot.Waiting, "t1", int64(3), int64(4)
	since, notBefore, failing := start, start.Add(1), start.Add(2)
	stop, notice, caller := "t1", "t1", "telegram:42"
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{
		Session:   session,
		Place:     &place,
		State:     &state,
		Turn:      &turn,
		Arrival:   &arrival,
		Since:     &since,
		NotBefore: &notBefore,
		Failing:   &failing,
		Stop:      &stop,
		Live:      &live,
		Notice:    &notice,
		Caller:    &caller,
	}}})
	want := bot.Lane{
		Session: session, Place: place, State: state, Turn: turn, Arrival: arrival, Since: since, NotBefore: notBefore,
		Failing: failing, Stop: stop, Live: live, Notice: notice, Caller: caller,
	}
	same(h, "lane", h.lane(session), want)
	never, none := time.Time{}, ""
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Failing: &never, Stop: &none}}})
	want.Failing, want.Stop = never, none
	same(h, "lane after clearing", h.lane(session), want)
}

func oneOfTwoClaimantsWins(h *harness) {
	var wg sync.WaitGroup
	var one, two error
	take := func(name string, err *error) {
		wg.Go(func() {
			_, *err = h.Apply(h.Context(), &bot.Change{
				Claim: &bot.Claim{Session: session, Owner: name, Now: start, Until: start.Add(time.Hour)},
			})
		})
	}
	take("a", &one)
	take("b", &two)
	wg.Wait()
	if (one == nil) == (two == nil) || !errors.Is(errors.Join(one, two), bot.ErrLost) {
		h.Errorf("claims ended with %v and %v, want one winner", one, two)
	}
}
