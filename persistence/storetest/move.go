package storetest

import (
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

var groupMove = &bot.Move{Channel: channel, Bot: botID, From: "-100", To: "-200"}

func moveTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"a group's state is found under its new id":        aGroupsStateIsFoundUnderItsNewId,
		"who held a moved lane has lost it":                whoHeldAMovedLaneHasLostIt,
		"two journals become one, the old chat's first":    twoJournalsBecomeOneTheOldChatsFirst,
		"joined journals are read anew":                    joinedJournalsAreReadAnew,
		"the journal with the turn in progress comes last": theJournalWithTheTurnInProgressComesLast,
		"of two turns the old chat's is ended":             ofTwoTurnsTheOldChatsIsEnded,
		"a move to nowhere is refused":                     aMoveToNowhereIsRefused,
	}
}

func aGroupsStateIsFoundUnderItsNewId(h *harness) {
	rows := h.furnish()
	h.do(&bot.Change{Move: groupMove})
	place := h.place()
	place.Chat = "-200"
	same(h, "old lane", h.lane(session), bot.Lane{Session: session, State: bot.Idle})
	same(h, "lane", h.lane(moved), bot.Lane{
		Session:   moved,
		Place:     place,
		Workspace: "telegram_1_bot_-100_0_42",
		State:     bot.Parked,
		Turn:      "t1",
		Fence:     2,
		Last:      2,
		Arrival:   1,
	})
	same(h, "old journal", h.journal(session), nil)
	same(h, "journal", texts(h.journal(moved)), []string{"one", "two"})
	queue, err := h.Next(h.Context(), moved, 10)
	h.ok(err)
	same(h, "queue", ids(queue), []string{"1"})
	dead, err := h.DeadLetters(h.Context(), 10)
	h.ok(err)
	same(h, "dead letter", dead[0].Session, moved)
	a := h.approval("a")
	same(h, "question", []any{a.Session, a.Place}, []any{bot.SessionKey(moved), place})
	got, err := h.Rows(h.Context(), moved, 10)
	h.ok(err)
	same(h, "rows", rowIDs(got), rows)
	for _, row := range got {
		if row.Message != "" || row.Edit != "" || row.ReplyTo != "" || row.Place != place {
			h.Errorf("row after the move: %+v", row)
		}
	}
	same(h, "fact", []string{
		h.fact("b", "telegram/1/bot/-200", start),
		h.fact("b", moved, start),
		h.fact("b", session, start),
		h.fact("c", "telegram/1/bot/-1000", start),
	}, []string{"chat", "session", "", "other"})
	charges, err := h.Charges(h.Context(), "")
	h.ok(err)
	same(h, "charges", []string{charges[0].Scope, charges[1].Scope}, []string{
		"chat/telegram/1/bot/-200",
		"chat/telegram/1/bot/-1000",
	})
	same(h, "lane of another chat", h.lane("telegram/1/bot/-1000/0/42").Fence, int64(1))
}

func whoHeldAMovedLaneHasLostIt(h *harness) {
	h.claim(session, 0)
	h.do(&bot.Change{Lease: &bot.Lease{Session: session, Fence: 1}, Move: groupMove})
	h.refused(&bot.Change{Lease: &bot.Lease{Session: session, Fence: 1}}, bot.ErrLost)
	h.refused(&bot.Change{Lease: &bot.Lease{Session: moved, Fence: 1}}, bot.ErrLost)
	h.claim(moved, 2)
}

func twoJournalsBecomeOneTheOldChatsFirst(h *harness) {
	h.say(session, "", "old 1", "old 2")
	h.say(moved, "", "new 1", "new 2", "new 3")
	h.do(&bot.Change{Facts: []bot.Fact{
		{Bucket: "b", Key: session, Value: "old"}, {Bucket: "b", Key: moved, Value: "new"},
	}})
	h.do(&bot.Change{Move: groupMove})
	h.merged("old 1", "old 2", "new 1", "new 2", "new 3")
	same(h, "fact", []string{h.fact("b", moved, start), h.fact("b", session, start)}, []string{"new", ""})
}

func theJournalWithTheTurnInProgressComesLast(h *harness) {
	h.say(session, "t1", "old 1", "old 2")
	h.say(moved, "", "new 1")
	h.do(&bot.Change{Move: groupMove})
	h.merged("new 1", "old 1", "old 2")
	same(h, "turn", h.lane(moved).Turn, "t1")
}

func ofTwoTurnsTheOldChatsIsEnded(h *harness) {
	seqs := h.arrive(session, "1", "2")
	h.say(session, "t1", "old")
	h.say(moved, "t2", "new")
	h.do(&bot.Change{
		Lanes: []bot.LaneUpdate{{Session: session, Arrival: &seqs[0]}},
		Ask:   []bot.Approval{{ID: "a", Session: session, Turn: "t1"}, {ID: "b", Session: moved, Turn: "t2"}},
	})
	h.do(&bot.Change{Move: groupMove})
	entries := h.journal(moved)
	if len(entries) != 3 || entries[0].Text != "old" || entries[2].Text != "new" {
		h.Fatalf("journal %v", texts(entries))
	}
	if e := entries[1]; e.Kind != journal.EndEntry || e.Turn != "t1" || e.Reason != "cancelled" || e.N != 2 {
		h.Errorf("end of the old turn: %+v", e)
	}
	same(h, "turn", h.lane(moved).Turn, "t2")
	same(h, "questions", []bot.ApprovalState{h.approval("a").State, h.approval("b").State}, []bot.ApprovalState{
		bot.Withdrawn,
		bot.Open,
	})
	queue, err := h.Next(h.Context(), moved, 10)
	h.ok(err)
	same(h, "queue", ids(queue), []string{"2"})
	h.do(&bot.Change{Append: &bot.Append{Session: moved, After: 3, Entries: []journal.Entry{said("t2", "more")}}})
}

func aMoveToNowhereIsRefused(h *harness) {
	h.refused(&bot.Change{Move: &bot.Move{Channel: channel, Bot: botID, From: "-100", To: "-100"}}, bot.ErrInvalid)
}

// furnish fills the group with everything that a move affects and returns its outbox rows.
func (h *harness) furnish() []int64 {
	h.Helper()
	seqs := h.arrive(session, "1", "2", "3")
	h.do(&bot.Change{Done: seqs[1:2], Dead: []bot.DeadLetter{{Seq: seqs[2]}}})
	h.turnOf(session, bot.Parked, "t1", seqs[0])
	rows := h.queue(bot.Row{ReplyTo: "3"}, bot.Row{Edit: "4"})
	h.update(rows[0], bot.Pending, bot.Sent, "5")
	h.do(&bot.Change{
		Append: &bot.Append{Session: session, Entries: []journal.Entry{said("t1", "one"), said("t1", "two")}},
		Ask:    []bot.Approval{{ID: "a", Session: session, Place: h.place()}},
		Facts: []bot.Fact{
			{Bucket: "b", Key: "telegram/1/bot/-100", Value: "chat"},
			{Bucket: "b", Key: session, Value: "session"},
			{Bucket: "c", Key: "telegram/1/bot/-1000", Value: "other"},
		},
		Charges: []bot.Charge{
			{Key: "1", Scope: "chat/telegram/1/bot/-100", Day: "2026-03-01", N: 1},
			{Key: "2", Scope: "chat/telegram/1/bot/-1000", Day: "2026-03-01", N: 1},
		},
	})
	other := h.place()
	other.Chat = "-1000"
	h.do(&bot.Change{Claim: &bot.Claim{
		Session: "telegram/1/bot/-1000/0/42",
		Place:   other,
		Owner:   owner,
		Now:     start,
		Until:   farFuture,
	}})
	return rows
}

// say writes entries to a session that has a turn.
func (h *harness) say(session bot.SessionKey, turn string, lines ...string) {
	h.Helper()
	var entries []journal.Entry
	for _, line := range lines {
		entries = append(entries, said("t", line))
	}
	h.do(&bot.Change{
		Append: &bot.Append{Session: session, Entries: entries},
		Lanes:  []bot.LaneUpdate{{Session: session, Turn: &turn}},
	})
}

// merged checks the journal of the moved session and that it can be continued.
func (h *harness) merged(want ...string) {
	h.Helper()
	entries := h.journal(moved)
	same(h, "journal", texts(entries), want)
	for i, entry := range entries {
		same(h, "number", entry.N, int64(i+1))
	}
	h.do(&bot.Change{
		Append: &bot.Append{Session: moved, After: int64(len(want)), Entries: []journal.Entry{said("t", "more")}},
	})
	same(h, "last", h.lane(moved).Last, int64(len(want)+1))
}

// joinedJournalsAreReadAnew: a ConversationState that was written before another journal was put in
// front does not include that one.
func joinedJournalsAreReadAnew(h *harness) {
	h.do(&bot.Change{Append: &bot.Append{Session: session, Entries: []journal.Entry{
		said("f", "fetch"),
		{Turn: "f", Kind: journal.ResultEntry, At: start, Source: "a page", Flagged: true},
		{Turn: "f", Kind: journal.AnswerEntry, At: start},
	}}})
	h.turns(moved, 30, always)
	same(h, "before", h.tail(moved, 0).Before.Suspicious, "")
	h.do(&bot.Change{Move: groupMove})
	tail := h.tail(moved, 0)
	same(h, "suspicious", tail.Before.Suspicious, "a page")
	same(h, "counted", tail.Before.N, int64(61))
	same(h, "last turn", texts(tail.Entries), []string{"say 29", "answer 29"})
}
