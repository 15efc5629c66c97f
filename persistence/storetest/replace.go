package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

// changed is a new content of an arrival.
func changed(session bot.SessionKey, seq int64, raw string) *bot.Change {
	return &bot.Change{
		Replace: []bot.Replacement{{Seq: seq, Session: session, Source: bot.FromTerminal, Raw: []byte(raw)}},
	}
}

func whatWaitsGetsANewContentWhatHasBegunDoesNot(h *harness) {
	seqs := h.arrive(session, "1", "2", "3")
	h.do(changed(session, seqs[0], "new"))
	got, err := h.Next(h.Context(), session, 10)
	h.ok(err)
	same(h, "the arrival", got[0], bot.Arrival{
		Seq:     seqs[0],
		Channel: channel,
		Bot:     botID,
		ID:      "1",
		Source:  bot.FromTerminal,
		Session: session,
		Raw:     []byte("new"),
		At:      start,
	})
	same(h, "the next one", string(got[1].Raw), "raw 2")
	same(h, "a claim from before", h.lane(session).Fence, 1)
	same(h, "it is still to be worked on", h.ready(start), []bot.SessionKey{session})
	h.refused(begin(session, seqs[0], 0), bot.ErrLost)

	h.do(begin(session, seqs[0], 1))
	h.refused(changed(session, seqs[0], "late"), bot.ErrConflict)
	h.do(changed(session, seqs[1], "second")) // it waits behind the turn, whose lease stays
	same(h, "fence of the turn", h.lane(session).Fence, 2)
	idle, none := bot.Idle, ""
	h.do(&bot.Change{
		Lease: &bot.Lease{Session: session, Fence: 2}, Done: seqs[:1],
		Lanes: []bot.LaneUpdate{{Session: session, State: &idle, Turn: &none, Release: true}},
	})
	h.refused(changed(session, seqs[0], "too late"), bot.ErrHandled)
	h.refused(changed(session, 1<<40, "none"), bot.ErrNotFound)
	refused := changed(session, seqs[2], "undone")
	refused.Handles = seqs[0]
	h.refused(refused, bot.ErrHandled)
	for i, want := range []string{"new", "second", "raw 3"} {
		a, err := h.ArrivalOf(h.Context(), channel, botID, fmt.Sprint(i+1))
		h.ok(err)
		same(h, "content", string(a.Raw), want)
	}
}

// begin claims a lane and begins a turn with an arrival.
func begin(session bot.SessionKey, seq, fence int64) *bot.Change {
	running, turn := bot.Running, "t1"
	return &bot.Change{
		Claim: &bot.Claim{
			Session: session,
			Fence:   fence,
			Owner:   owner,
			Now:     start,
			Until:   start.Add(time.Minute),
			Arrival: seq,
		},
		Lanes: []bot.LaneUpdate{{Session: session, State: &running, Turn: &turn, Arrival: &seq}},
	}
}

// anEditAndABeginDoNotMix: a turn begins with the content that is stored, or the edit is told that it came too late.
func anEditAndABeginDoNotMix(r *racers, round int) {
	name := alone(round)
	seq := r.do(&bot.Change{
		Arrive: []bot.Arrival{{Channel: channel, Bot: botID, ID: fmt.Sprint(round), Session: name, Raw: []byte("old")}},
	}).Seqs[0]
	first, second := r.run(changed(name, seq, "new"), begin(name, seq, 0))
	if (first.err == nil) == (second.err == nil) {
		r.Fatalf("the edit ended with %v and the turn with %v, want one of them", first.err, second.err)
	}
	want := "new"
	if first.err != nil {
		want = "old"
		if !errors.Is(first.err, bot.ErrConflict) {
			r.Errorf("the edit was refused with %v", first.err)
		}
	} else if !errors.Is(second.err, bot.ErrLost) {
		r.Errorf("the turn was refused with %v", second.err)
	}
	a, err := r.other.ArrivalOf(r.Context(), channel, botID, fmt.Sprint(round))
	r.ok(err)
	same(r.harness, "content", string(a.Raw), want)
}

// aRefusalAndABeginDoNotMix: a message begins a turn or is answered without one, never both.
func aRefusalAndABeginDoNotMix(r *racers, round int) {
	name := alone(round)
	seq := r.do(&bot.Change{
		Arrive: []bot.Arrival{{Channel: channel, Bot: botID, ID: fmt.Sprint(round), Session: name, Raw: []byte("hi")}},
	}).Seqs[0]
	first, second := r.run(&bot.Change{Handles: seq, Unbegun: name}, begin(name, seq, 0))
	if (first.err == nil) == (second.err == nil) {
		r.Fatalf("the refusal ended with %v and the turn with %v, want one of them", first.err, second.err)
	}
	if first.err != nil && !errors.Is(first.err, bot.ErrHandled) {
		r.Errorf("the refusal was refused with %v", first.err)
	}
}
