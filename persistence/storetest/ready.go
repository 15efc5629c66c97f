package storetest

import (
	"cmp"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
)

func readyTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"an idle lane is ready for a waiting arrival":                            anIdleLaneIsReadyForAWaitingArrival,
		"what is not queued makes no lane ready":                                 whatIsNotQueuedMakesNoLaneReady,
		"a running lane is ready when nobody holds it":                           aRunningLaneIsReadyWhenNobodyHoldsIt,
		"a lane without work is not ready":                                       aLaneWithoutWorkIsNotReady,
		"a waiting lane is ready after its time, or when stopped":                aWaitingLaneIsReadyAfterItsTimeOrWhenStopped,
		"a parked lane is ready when its questions are decided, or when stopped": aParkedLaneIsReadyWhenItsQuestionsAreDecidedOrWhenStopped,
		"ready lists the oldest work first and obeys the limit":                  readyListsTheOldestWorkFirstAndObeysTheLimit,
		"stops are those of the turns that a process holds":                      stopsAreThoseOfTheTurnsThatAProcessHolds,
	}
}

func stopsAreThoseOfTheTurnsThatAProcessHolds(h *harness) {
	stops := func(owner string) []bot.Stop {
		h.Helper()
		list, err := h.Stops(h.Context(), owner)
		h.ok(err)
		return list
	}
	stop := func(session bot.SessionKey, turn string) {
		h.Helper()
		h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Stop: &turn}}})
	}
	for _, s := range []bot.SessionKey{session, another} {
		h.claim(s, 0)
		turn, running := "turn of "+string(s), bot.Running
		h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: s, State: &running, Turn: &turn}}})
	}
	same(h, "nobody asked", stops(owner), nil)
	stop(session, "an earlier turn")
	same(h, "for another turn", stops(owner), nil)
	stop(session, "turn of "+string(session))
	stop(another, "turn of "+string(another))
	want := []bot.Stop{
		{Session: session, Turn: "turn of " + string(session)},
		{Session: another, Turn: "turn of " + string(another)},
	}
	slices.SortFunc(want, func(a, b bot.Stop) int { return cmp.Compare(a.Session, b.Session) })
	same(h, "both", stops(owner), want)
	same(h, "of another process", stops("another"), nil)
	same(h, "of nobody", stops(""), nil)
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: another, Release: true}}})
	same(h, "one was given back", stops(owner), []bot.Stop{{Session: session, Turn: "turn of " + string(session)}})
	same(h, "and is nobody's", stops(""), nil)
}

func anIdleLaneIsReadyForAWaitingArrival(h *harness) {
	same(h, "empty", h.ready(start), nil)
	seqs := h.arrive(session, "1")
	h.arrive(another, "2")
	same(h, "oldest first", h.ready(start), []bot.SessionKey{session, another})
	h.claim(session, 0)
	same(h, "while it is held", h.ready(start), []bot.SessionKey{another})
	same(h, "when the lease is over", h.ready(start.Add(time.Minute)), []bot.SessionKey{session, another})
	h.do(&bot.Change{Done: seqs})
	same(h, "when the arrival is done", h.ready(start.Add(time.Minute)), []bot.SessionKey{another})
}

func whatIsNotQueuedMakesNoLaneReady(h *harness) {
	h.do(&bot.Change{Arrive: []bot.Arrival{
		{Channel: channel, Bot: botID, ID: "1", Session: session, Express: true},
		{Channel: channel, Bot: botID, ID: "2"},
		{Channel: channel, Bot: "2", ID: "3", Session: "telegram/2/bot/-100/0/42"},
	}})
	same(h, "ready", h.ready(start), nil)
}

func aRunningLaneIsReadyWhenNobodyHoldsIt(h *harness) {
	h.turn(bot.Running, "t1")
	same(h, "held", h.ready(start), nil)
	same(h, "lease over", h.ready(start.Add(time.Minute)), []bot.SessionKey{session})
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Release: true}}})
	same(h, "given back", h.ready(start), []bot.SessionKey{session})
	sessions, err := h.Ready(h.Context(), channel, "2", start, 10)
	h.ok(err)
	same(h, "of another bot", sessions, nil)
}

func aLaneWithoutWorkIsNotReady(h *harness) {
	for _, state := range []bot.LaneState{bot.Running, bot.Waiting, bot.Parked} {
		h.turn(state, "")
		h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Release: true}}})
		same(h, string(state), h.ready(start), nil)
	}
	h.arrive(session, "1")
	same(h, "with an arrival", h.ready(start), []bot.SessionKey{session})
}

func aWaitingLaneIsReadyAfterItsTimeOrWhenStopped(h *harness) {
	h.turn(bot.Waiting, "t1")
	at := start.Add(time.Second)
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, NotBefore: &at, Release: true}}})
	h.arrive(session, "1")
	same(h, "before", h.ready(at.Add(-1)), nil)
	same(h, "then", h.ready(at), []bot.SessionKey{session})
	stop := "t1"
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Stop: &stop}}})
	same(h, "stopped", h.ready(start), []bot.SessionKey{session})
}

func aParkedLaneIsReadyWhenItsQuestionsAreDecidedOrWhenStopped(h *harness) {
	h.turn(bot.Parked, "t1")
	h.do(&bot.Change{
		Ask:   []bot.Approval{{ID: "a", Session: session, Turn: "t1"}, {ID: "b", Session: session, Turn: "t1"}},
		Lanes: []bot.LaneUpdate{{Session: session, Release: true}},
	})
	h.arrive(session, "1")
	same(h, "asked", h.ready(start), nil)
	h.do(&bot.Change{Decide: []bot.Decision{{ID: "a", State: bot.Approved}}})
	same(h, "one decided", h.ready(start), nil)
	older := "t0"
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Stop: &older}}})
	same(h, "an older turn stopped", h.ready(start), nil)
	stop := "t1"
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, Stop: &stop}}})
	same(h, "stopped", h.ready(start), []bot.SessionKey{session})
	none := ""
	h.do(&bot.Change{
		Lanes:  []bot.LaneUpdate{{Session: session, Stop: &none}},
		Decide: []bot.Decision{{ID: "b", State: bot.Denied}},
	})
	same(h, "all decided", h.ready(start), []bot.SessionKey{session})
}

func readyListsTheOldestWorkFirstAndObeysTheLimit(h *harness) {
	h.arrive("s3", "1")
	seqs := h.arrive("s2", "2")
	h.arrive("s1", "3")
	h.turnOf("s2", bot.Running, "t1", seqs[0])
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: "s2", Release: true}}})
	same(h, "all", h.ready(start), []bot.SessionKey{"s3", "s2", "s1"})
	sessions, err := h.Ready(h.Context(), channel, botID, start, 2)
	h.ok(err)
	same(h, "limited", sessions, []bot.SessionKey{"s3", "s2"})
}

// turn claims the session's lane and sets a state with a turn.
func (h *harness) turn(state bot.LaneState, turn string) {
	h.Helper()
	h.turnOf(session, state, turn, 0)
}

func (h *harness) turnOf(session bot.SessionKey, state bot.LaneState, turn string, arrival int64) {
	h.Helper()
	h.claim(session, h.lane(session).Fence)
	h.do(&bot.Change{Lanes: []bot.LaneUpdate{{Session: session, State: &state, Turn: &turn, Arrival: &arrival}}})
}
