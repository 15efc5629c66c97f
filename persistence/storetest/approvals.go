package storetest

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/zephbot/zephbot/bot"
)

func approvalTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"a question comes back whole":                                aQuestionComesBackWhole,
		"ids are unique, short names among open questions of a chat": idsAreUniqueShortNamesAmongOpenQuestionsOfAChat,
		"the first decision counts":                                  theFirstDecisionCounts,
		"an approval once grants nothing in the session":             anApprovalOnceGrantsNothingInTheSession,
		"votes add up and the last one approves":                     votesAddUpAndTheLastOneApproves,
		"open questions, oldest first":                               openQuestionsOldestFirst,
		"questions about a tool since a time, newest first":          questionsAboutAToolSinceATimeNewestFirst,
		"cancel withdraws the questions of a turn, or of all":        cancelWithdrawsTheQuestionsOfATurnOrOfAll,
	}
}

func aQuestionComesBackWhole(h *harness) {
	a := bot.Approval{
		ID:      "a",
		Short:   "x1",
		Session: session,
		Turn:    "t",
		Call:    "2.0",
		Place:   h.place(),
		Caller:  "telegram:42",
		Tool:    "bash",
		Hash:    "h",
		Body:    json.RawMessage(`{"show": "rm -r x"}`),
		Needed:  2,
		Created: start,
		Expires: start.Add(time.Hour),
		Votes:   []string{"telegram:1"},
	}
	applied := h.do(&bot.Change{
		Ask:   []bot.Approval{a},
		Send:  []bot.Row{{Place: h.place()}, {Place: h.place()}},
		Cards: []bot.Card{{Approval: "a", Send: 1}},
	})
	a.State, a.Row = bot.Open, applied.Rows[1]
	same(h, "question", h.approval("a"), a)
	of, err := h.ApprovalOf(h.Context(), session, "2.0")
	h.ok(err)
	same(h, "by call", of, a)
	_, err = h.ApprovalOf(h.Context(), another, "2.0")
	if !errors.Is(err, bot.ErrNotFound) {
		h.Errorf("call of another session: %v", err)
	}
	_, err = h.Approval(h.Context(), "b")
	if !errors.Is(err, bot.ErrNotFound) {
		h.Errorf("unknown question: %v", err)
	}
}

func idsAreUniqueShortNamesAmongOpenQuestionsOfAChat(h *harness) {
	elsewhere := h.place()
	elsewhere.Chat = "-300"
	h.do(&bot.Change{Ask: []bot.Approval{{ID: "a", Short: "x", Session: session, Place: h.place()}}})
	h.refused(&bot.Change{Ask: []bot.Approval{{ID: "a", Session: session}}}, bot.ErrTaken)
	h.refused(&bot.Change{Ask: []bot.Approval{{ID: "b", Short: "x", Session: another, Place: h.place()}}}, bot.ErrTaken)
	h.do(&bot.Change{Ask: []bot.Approval{{ID: "b", Short: "x", Session: another, Place: elsewhere}}})
	h.do(&bot.Change{Decide: []bot.Decision{{ID: "a", State: bot.Denied}}})
	h.do(&bot.Change{Ask: []bot.Approval{{ID: "c", Short: "x", Session: session, Place: h.place()}}})
}

func theFirstDecisionCounts(h *harness) {
	h.do(&bot.Change{Ask: []bot.Approval{{ID: "a", Session: session, Hash: "h"}}})
	_, granted, err := h.GrantedInSession(h.Context(), session, "h")
	h.ok(err)
	same(h, "granted before", granted, false)
	applied := h.do(&bot.Change{Decide: []bot.Decision{{
		ID:     "a",
		State:  bot.Approved,
		Scope:  bot.Session,
		By:     "telegram:1",
		ByName: "Ann",
		Votes:  []string{"telegram:1"},
		At:     start,
	}}})
	same(h, "decided", applied.Decided, []bot.ApprovalState{bot.Approved})
	want := bot.Approval{
		ID: "a", Session: session, Hash: "h", State: bot.Approved, Scope: bot.Session, By: "telegram:1", ByName: "Ann",
		Votes: []string{"telegram:1"}, Needed: 1, Decided: start,
	}
	same(h, "question", h.approval("a"), want)
	for _, state := range []bot.ApprovalState{bot.Denied, bot.Expired, bot.Open} {
		h.refused(&bot.Change{Decide: []bot.Decision{{ID: "a", State: state, By: "telegram:2"}}}, bot.ErrDecided)
	}
	h.refused(&bot.Change{Decide: []bot.Decision{{ID: "unknown", State: bot.Denied}}}, bot.ErrNotFound)
	got, granted, err := h.GrantedInSession(h.Context(), session, "h")
	h.ok(err)
	same(h, "grant", got, want)
	same(h, "granted", granted, true)
	for _, other := range []bot.Approval{{Session: another, Hash: "h"}, {Session: session, Hash: "other"}} {
		_, granted, err = h.GrantedInSession(h.Context(), other.Session, other.Hash)
		h.ok(err)
		same(h, "granted elsewhere", granted, false)
	}
}

func questionsAboutAToolSinceATimeNewestFirst(h *harness) {
	elsewhere := h.place()
	elsewhere.Bot = "another"
	ask := func(id, tool string, place bot.Place, at time.Time) {
		h.do(&bot.Change{Ask: []bot.Approval{{
			ID:      id,
			Session: session,
			Place:   place,
			Tool:    tool,
			Created: at,
			Body:    json.RawMessage(`{}`),
		}}})
	}
	ask("old", "bash", h.place(), start)
	ask("one", "bash", h.place(), start.Add(time.Hour))
	ask("foreign", "bash", elsewhere, start.Add(time.Hour))
	ask("other", "write", h.place(), start.Add(time.Hour))
	ask("two", "bash", h.place(), start.Add(2*time.Hour))
	h.do(&bot.Change{Decide: []bot.Decision{{ID: "one", State: bot.Denied}}})
	look := func(limit int) (ids []string) {
		list, err := h.AskedSince(h.Context(), h.place().Channel, h.place().Bot, "bash", start, limit)
		h.ok(err)
		for _, a := range list {
			ids = append(ids, a.ID)
			same(h, "body of "+a.ID, string(a.Body), `{}`)
		}
		return ids
	}
	same(h, "all", look(0), []string{"two", "one"})
	same(h, "one", look(1), []string{"two"})
}

func anApprovalOnceGrantsNothingInTheSession(h *harness) {
	h.do(&bot.Change{
		Ask: []bot.Approval{{ID: "a", Session: session, Hash: "h"}, {ID: "b", Session: session, Hash: "h"}},
	})
	h.do(&bot.Change{Decide: []bot.Decision{
		{ID: "a", State: bot.Approved, Scope: bot.Once}, {ID: "b", State: bot.Denied, Scope: bot.Session},
	}})
	_, granted, err := h.GrantedInSession(h.Context(), session, "h")
	h.ok(err)
	same(h, "granted", granted, false)
}

func votesAddUpAndTheLastOneApproves(h *harness) {
	h.do(&bot.Change{Ask: []bot.Approval{{ID: "a", Session: session, Needed: 2}}})
	vote := func(by string, votes ...string) []bot.ApprovalState {
		return h.do(&bot.Change{
			Decide: []bot.Decision{{ID: "a", State: bot.Open, By: by, ByName: by, Votes: votes, At: start}},
		}).Decided
	}
	same(h, "first", vote("u1", "u1"), []bot.ApprovalState{bot.Open})
	same(h, "again", vote("u1"), []bot.ApprovalState{bot.Open})
	got := h.approval("a")
	if got.State != bot.Open || got.By != "" || len(got.Votes) != 1 || !got.Decided.IsZero() {
		h.Errorf("after one vote: %+v", got)
	}
	// The second presser has not seen the first vote.
	same(h, "second", vote("u2", "u2"), []bot.ApprovalState{bot.Approved})
	got = h.approval("a")
	same(h, "votes", got.Votes, []string{"u1", "u2"})
	if got.State != bot.Approved || got.Scope != bot.Once ||
		got.By != "u2" || got.ByName != "u2" || !got.Decided.Equal(start) {
		h.Errorf("after two votes: %+v", got)
	}
}

func openQuestionsOldestFirst(h *harness) {
	h.do(&bot.Change{Ask: []bot.Approval{
		{ID: "z", Session: session}, {ID: "y", Session: another}, {ID: "x", Session: session},
	}})
	h.do(&bot.Change{
		Ask:    []bot.Approval{{ID: "w", Session: session}},
		Decide: []bot.Decision{{ID: "z", State: bot.Expired}},
	})
	for of, want := range map[bot.SessionKey][]string{"": {"y", "x", "w"}, session: {"x", "w"}, "none": nil} {
		open, err := h.OpenApprovals(h.Context(), of)
		h.ok(err)
		var got []string
		for _, a := range open {
			got = append(got, a.ID)
		}
		same(h, "open of "+string(of), got, want)
	}
}

func cancelWithdrawsTheQuestionsOfATurnOrOfAll(h *harness) {
	h.do(&bot.Change{Ask: []bot.Approval{
		{ID: "a", Session: session, Turn: "t1"},
		{ID: "b", Session: session, Turn: "t2"},
		{ID: "c", Session: another, Turn: "t1"},
		{ID: "d", Session: session, Turn: "t1"},
	}, Decide: []bot.Decision{{ID: "d", State: bot.Denied}}})
	same(h, "turn", h.do(&bot.Change{
		Cancel: &bot.Cancel{Session: session, Turn: "t1", By: "u", At: start},
	}).Withdrawn, []string{"a"})
	if a := h.approval("a"); a.State != bot.Withdrawn || a.By != "u" || !a.Decided.Equal(start) {
		h.Errorf("withdrawn: %+v", a)
	}
	same(h, "all", h.do(&bot.Change{Cancel: &bot.Cancel{Session: session}}).Withdrawn, []string{"b"})
	same(h, "again", h.do(&bot.Change{Cancel: &bot.Cancel{Session: session}}).Withdrawn, nil)
	same(h, "other session", h.approval("c").State, bot.Open)
	same(h, "denied", h.approval("d").State, bot.Denied)
}
