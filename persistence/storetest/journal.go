package storetest

import (
	"encoding/json"
	"fmt"
	"sync"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
	"github.com/zephbot/zephbot/policy/netrule"
)

func journalTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"entries are numbered and come back whole":        entriesAreNumberedAndComeBackWhole,
		"who does not know the last entry may not append": whoDoesNotKnowTheLastEntryMayNotAppend,
		"a conversation begins at its last reset":         aConversationBeginsAtItsLastReset,
		"a conversation begins at its last summary":       aConversationBeginsAtItsLastSummary,
		"the end of a journal is read alone":              theEndOfAJournalIsReadAlone,
		"a summary comes along with the end":              aSummaryComesAlongWithTheEnd,
		"what was said is read across conversations":      whatWasSaidIsReadAcrossConversations,
		"the conversations of a chat are listed":          theConversationsOfAChatAreListed,
		"a summary keeps what it says":                    aSummaryKeepsWhatItSays,
	}
}

func entriesAreNumberedAndComeBackWhole(h *harness) {
	entries := []journal.Entry{
		{
			Turn: "t1", Kind: journal.UserEntry, At: start, Text: "hé\x00llo", Speaker: "Ann", Caller: "telegram:42",
			Quote: &journal.Quote{Author: "Bob", Own: true, Text: "q"},
		},
		{
			Turn: "t1", Kind: journal.AssistantEntry, At: start, Model: "m", USD: 0.25, Usage: llm.Usage{},
			Uses: []journal.Use{{
				Call:     "2.0",
				Model:    "x",
				Name:     "read",
				Args:     json.RawMessage(`{"path":"a"}`),
				ReadOnly: true,
			}},
		},
		{
			Turn:     "t1",
			Kind:     journal.ResultEntry,
			At:       start,
			Call:     "2.0",
			Tool:     "read",
			Failed:   true,
			Category: "timeout",
			Millis:   7,
		},
		{Turn: "t2", Kind: journal.UserEntry, At: start, Text: "go on", Scheduled: true},
		{
			Turn:   "t2",
			Kind:   journal.ResultEntry,
			At:     start,
			Call:   "4.0",
			Tool:   "fetch",
			Wrote:  true,
			Opened: []string{"a.example"},
			Seen:   netrule.KeysOf("https://a.example/"),
			State: &journal.ConversationState{
				N:     5,
				Said:  netrule.KeysOf("https://b.example/"),
				Seen:  netrule.KeysOf("https://a.example/"),
				Wrote: true,
				Made:  []string{"/w/a"},
			},
		},
	}
	h.do(&bot.Change{Append: &bot.Append{Session: session, Entries: entries[:1]}})
	h.do(&bot.Change{Append: &bot.Append{Session: session, After: 1, Entries: entries[1:]}})
	for i := range entries {
		entries[i].N = int64(i + 1)
	}
	same(h, "journal", h.journal(session), entries)
	tail, err := h.Journal(h.Context(), session, 2)
	h.ok(err)
	same(h, "tail", tail, entries[2:])
	same(h, "last", h.lane(session).Last, int64(5))
	same(h, "other session", h.journal(another), nil)
}

// whatWasSaidIsReadAcrossConversations: newest first, without what tools did, also before a conversation was left; a text
// that looks like an entry of another kind is none.
func whatWasSaidIsReadAcrossConversations(h *harness) {
	answer := func(text string) journal.Entry {
		return journal.Entry{Turn: "t", Kind: journal.AnswerEntry, At: start, Text: text}
	}
	h.do(&bot.Change{Append: &bot.Append{Session: session, Entries: []journal.Entry{
		said("t1", "zażółć 日本"),
		{Turn: "t1", Kind: journal.AssistantEntry, At: start, Text: `"kind":"user"`, Uses: []journal.Use{{
			Call: "2.0", Name: "x", Args: json.RawMessage(`{"kind":"user"}`),
		}}},
		{Turn: "t1", Kind: journal.ResultEntry, At: start, Call: "2.0", Tool: "x", Text: "output"},
		answer("one"),
		{Turn: "reset", Kind: journal.SummaryEntry, At: start, Parted: true},
		said("t2", "two"),
		{Turn: "t2", Kind: journal.SummaryEntry, At: start, Keeps: 1, Text: "shortened"},
		answer("three"),
	}}})
	h.do(&bot.Change{Append: &bot.Append{Session: another, Entries: []journal.Entry{said("t", "elsewhere")}}})
	for _, c := range []struct {
		from, before int64
		want         []string
	}{
		{0, 1 << 40, []string{"three", "two", "", "one", "zażółć 日本"}},
		{5, 8, []string{"two", ""}},
		{1, 1, nil},
		{9, 99, nil},
	} {
		got, err := h.Past(h.Context(), session, c.from, c.before)
		h.ok(err)
		same(h, "said", texts(got), c.want)
	}
	got, err := h.Past(h.Context(), session, 5, 6)
	h.ok(err)
	same(h, "the beginning of a conversation", got, []journal.Entry{
		{N: 5, Turn: "reset", Kind: journal.SummaryEntry, At: start, Parted: true},
	})
}

func theConversationsOfAChatAreListed(h *harness) {
	for _, key := range []bot.SessionKey{another, session, moved} {
		h.do(&bot.Change{Append: &bot.Append{Session: key, Entries: []journal.Entry{said("t", "x")}}})
	}
	list := func(chat string, limit int) (sessions []bot.SessionKey) {
		lanes, err := h.InChat(h.Context(), chat, limit)
		h.ok(err)
		for i := range lanes {
			sessions = append(sessions, lanes[i].Session)
			same(h, "last", lanes[i].Last, int64(1))
		}
		return sessions
	}
	same(h, "of a chat", list(h.place().ChatKey(), 0), []bot.SessionKey{session, another})
	same(h, "at most", list(h.place().ChatKey(), 1), []bot.SessionKey{session})
	same(h, "of no chat", list("telegram/1/bot/-1", 0), nil)
}

func whoDoesNotKnowTheLastEntryMayNotAppend(h *harness) {
	h.do(&bot.Change{Append: &bot.Append{Session: session, Entries: []journal.Entry{said("t", "one")}}})
	for _, after := range []int64{0, 2} {
		h.refused(&bot.Change{
			Append: &bot.Append{Session: session, After: after, Entries: []journal.Entry{said("t", "two")}},
		}, bot.ErrConflict)
	}
	h.refused(&bot.Change{Append: &bot.Append{Session: session, After: 0}}, bot.ErrConflict)
	same(h, "journal", texts(h.journal(session)), []string{"one"})
}

func atomicTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"a change with one refused part changes nothing": aChangeWithOneRefusedPartChangesNothing,
	}
}

func aChangeWithOneRefusedPartChangesNothing(h *harness) {
	seqs := h.arrive(session, "1")
	h.do(&bot.Change{
		Ask:  []bot.Approval{{ID: "a", Session: session}},
		Send: []bot.Row{{Session: session, Place: h.place(), Key: "k"}},
	})
	state := bot.Running
	whole := func() *bot.Change {
		return &bot.Change{
			Claim:   &bot.Claim{Session: another, Place: h.place(), Owner: owner, Now: start, Until: farFuture},
			Arrive:  []bot.Arrival{{Channel: channel, Bot: botID, ID: "2", Session: session}},
			Done:    seqs,
			Append:  &bot.Append{Session: session, Entries: []journal.Entry{said("t", "x")}},
			Lanes:   []bot.LaneUpdate{{Session: session, State: &state}},
			Ask:     []bot.Approval{{ID: "b", Session: session}},
			Decide:  []bot.Decision{{ID: "a", State: bot.Approved}},
			Cancel:  &bot.Cancel{Session: session},
			Send:    []bot.Row{{Session: session, Place: h.place(), Key: "new"}},
			Cards:   []bot.Card{{Approval: "b"}},
			Rows:    []bot.RowUpdate{{ID: 1, From: []bot.RowState{bot.Pending}, To: bot.Sending}},
			Facts:   []bot.Fact{{Bucket: "b", Key: "k", Value: "v"}},
			FactsIf: []bot.Fact{{Bucket: "b", Key: "if", Value: "v"}},
			Charges: []bot.Charge{{Key: "c", Day: "2026-03-01", N: 1}},
		}
	}
	for name, spoil := range map[string]func(*bot.Change){
		"claim":  func(c *bot.Change) { c.Claim.Fence = 9 },
		"lease":  func(c *bot.Change) { c.Lease = &bot.Lease{Session: session, Fence: 9} },
		"done":   func(c *bot.Change) { c.Done = append(c.Done, 999) },
		"append": func(c *bot.Change) { c.Append.After = 9 },
		"ask":    func(c *bot.Change) { c.Ask = append(c.Ask, bot.Approval{ID: "a", Session: session}) },
		"decide": func(c *bot.Change) { c.Decide = append(c.Decide, bot.Decision{ID: "a", State: bot.Denied}) },
		"card":   func(c *bot.Change) { c.Cards = append(c.Cards, bot.Card{Approval: "unknown"}) },
		"row": func(c *bot.Change) {
			c.Rows = append(c.Rows, bot.RowUpdate{ID: 999, From: []bot.RowState{bot.Sent}, To: bot.Dead})
		},
		"wrong": func(c *bot.Change) { c.Charges = append(c.Charges, bot.Charge{}) },
	} {
		change := whole()
		spoil(change)
		if applied, err := h.Apply(h.Context(), change); err == nil {
			h.Fatalf("%s: a spoiled change did %+v", name, applied)
		}
		h.untouched(name, seqs[0])
	}
	applied := h.do(whole())
	if applied.Seqs[0] == 0 || applied.Skipped[0] || !applied.Set[0] ||
		!applied.Moved[0] || len(applied.Withdrawn) != 1 {
		h.Errorf("the unspoiled change did %+v", applied)
	}
}

// untouched checks that a refused change left no trace.
func (h *harness) untouched(name string, seq int64) {
	h.Helper()
	queue, err := h.Next(h.Context(), session, 10)
	h.ok(err)
	if len(queue) != 1 || queue[0].Seq != seq {
		h.Errorf("%s: queue is %+v", name, queue)
	}
	same(h, name+": lane", h.lane(session), bot.Lane{Session: session, State: bot.Idle})
	same(h, name+": claimed lane", h.lane(another), bot.Lane{Session: another, State: bot.Idle})
	same(h, name+": journal", h.journal(session), nil)
	open, err := h.OpenApprovals(h.Context(), "")
	h.ok(err)
	if len(open) != 1 || open[0].ID != "a" {
		h.Errorf("%s: open questions %+v", name, open)
	}
	rows, err := h.Rows(h.Context(), session, 10)
	h.ok(err)
	if len(rows) != 1 || rows[0].State != bot.Pending {
		h.Errorf("%s: rows %+v", name, rows)
	}
	facts, err := h.FactsOf(h.Context(), "b", "", start)
	h.ok(err)
	same(h, name+": facts", facts, nil)
	charges, err := h.Charges(h.Context(), "")
	h.ok(err)
	same(h, name+": charges", charges, nil)
}

func concurrencyTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"many writers at once lose nothing": manyWritersAtOnceLoseNothing,
	}
}

func manyWritersAtOnceLoseNothing(h *harness) {
	const writers, each = 8, 10
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() { h.appender(w, each) })
	}
	wg.Go(func() {
		for range each {
			if _, err := h.Counts(h.Context(), channel, botID); err != nil {
				h.Errorf("counts: %v", err)
			}
		}
	})
	wg.Wait()
	entries := h.journal(session)
	if len(entries) != writers*each {
		h.Fatalf("%d entries, want %d", len(entries), writers*each)
	}
	seen := map[string]bool{}
	for i, entry := range entries {
		if entry.N != int64(i+1) || seen[entry.Text] {
			h.Errorf("entry %d: number %d, text %s again: %v", i, entry.N, entry.Text, seen[entry.Text])
		}
		seen[entry.Text] = true
	}
}

// appender appends to one journal concurrently with others, and retries after each conflict.
func (h *harness) appender(writer, entries int) {
	for i := 0; i < entries; {
		lane, err := h.Lane(h.Context(), session)
		if err != nil {
			h.Errorf("lane: %v", err)
			return
		}
		text := string(rune('a'+writer)) + string(rune('a'+i))
		_, err = h.Apply(h.Context(), &bot.Change{
			Append: &bot.Append{Session: session, After: lane.Last, Entries: []journal.Entry{said("t", text)}},
		})
		switch {
		case err == nil:
			i++
		case !isConflict(err):
			h.Errorf("append: %v", err)
			return
		}
	}
}

func aConversationBeginsAtItsLastReset(h *harness) {
	entries := []journal.Entry{
		{Turn: "t1", Kind: journal.UserEntry, At: start, Text: "old"},
		{Turn: "r1", Kind: journal.ResetEntry, At: start},
		{Turn: "t2", Kind: journal.UserEntry, At: start, Text: "older"},
		{Turn: "r2", Kind: journal.ResetEntry, At: start},
		{Turn: "t3", Kind: journal.UserEntry, At: start, Text: "new"},
	}
	h.do(&bot.Change{Append: &bot.Append{Session: session, Entries: entries}})
	for i := range entries {
		entries[i].N = int64(i + 1)
	}
	same(h, "journal", h.journal(session), entries[3:])
	tail, err := h.Journal(h.Context(), session, 4)
	h.ok(err)
	same(h, "tail", tail, entries[4:])
	early, err := h.Journal(h.Context(), session, 1)
	h.ok(err)
	same(h, "asked for more", early, entries[3:])
}

// turns writes turns of two entries each; the ends of some turns carry a ConversationState.
func (h *harness) turns(session bot.SessionKey, n int, carry func(turn int) bool) {
	h.Helper()
	after := h.lane(session).Last
	soFar := journal.ConversationState{}
	for i := range n {
		turn := fmt.Sprint("t", i)
		entries := []journal.Entry{
			said(turn, fmt.Sprint("say ", i)),
			{Turn: turn, Kind: journal.AnswerEntry, At: start, Text: fmt.Sprint("answer ", i)},
		}
		for k := range entries {
			entries[k].N = after + int64(k+1)
		}
		if soFar = soFar.After(entries...); carry(i) {
			entries[1].State = &soFar
		}
		h.do(&bot.Change{Append: &bot.Append{Session: session, After: after, Entries: entries}})
		after += 2
	}
}

func (h *harness) tail(session bot.SessionKey, room int) journal.Tail {
	h.Helper()
	tail, err := h.Tail(h.Context(), session, room)
	h.ok(err)
	return tail
}

func always(int) bool { return true }

func never(int) bool { return false }

func aConversationBeginsAtItsLastSummary(h *harness) {
	entries := []journal.Entry{
		said("t1", "old"),
		{
			Turn:  "s1",
			Kind:  journal.SummaryEntry,
			At:    start,
			Text:  "what was",
			State: &journal.ConversationState{Batches: 3, Suspicious: "a page"},
		},
		said("t2", "new"),
	}
	h.do(&bot.Change{Append: &bot.Append{Session: session, Entries: entries}})
	for i := range entries {
		entries[i].N = int64(i + 1)
	}
	same(h, "journal", h.journal(session), entries[1:])
	same(h, "tail", h.tail(session, 1<<20), journal.Tail{Entries: entries[1:]})
}

func theEndOfAJournalIsReadAlone(h *harness) {
	h.turns(session, 40, always)
	h.turns(another, 40, never)
	// The last entry carries it, or all entries before the last turn are counted.
	for session, before := range map[bot.SessionKey]int64{session: 80, another: 78} {
		whole, last := h.tail(session, 1<<20), h.tail(session, 0)
		same(h, "whole", whole.Entries, h.journal(session))
		same(h, "last turn", last.Entries, h.journal(session)[78:])
		same(h, "standing before it", last.Before.N, before)
		some := h.tail(session, 6000)
		if n := len(some.Entries); n%2 != 0 || n < 4 || n > 12 {
			h.Errorf("%d entries of some 500 bytes fit into 6000", n)
		}
	}
	same(h, "nothing", h.tail("telegram/1/bot/-100/0/44", 1<<20), journal.Tail{})
}

func aSummaryComesAlongWithTheEnd(h *harness) {
	h.turns(session, 3, never)
	h.do(&bot.Change{Append: &bot.Append{
		Session: session,
		After:   6,
		Entries: []journal.Entry{{Turn: "s", Kind: journal.SummaryEntry, At: start, Text: "what was"}},
	}})
	soFar := journal.ConversationState{N: 7, Began: 7, Summary: 7}
	for i := range 20 {
		turn, after := fmt.Sprint("u", i), int64(7+2*i)
		entries := []journal.Entry{said(turn, "say"), {Turn: turn, Kind: journal.AnswerEntry, At: start}}
		soFar.N = after + 2
		said := soFar
		entries[1].State = &said
		h.do(&bot.Change{Append: &bot.Append{Session: session, After: after, Entries: entries}})
	}
	tail := h.tail(session, 0)
	if len(tail.Entries) != 3 || tail.Entries[0].Text != "what was" ||
		tail.Entries[0].N != 7 || tail.Entries[1].Turn != "u19" {
		h.Errorf("tail %+v", tail)
	}
	same(h, "before", tail.Before, journal.ConversationState{N: 47, Began: 7, Summary: 7})
}

// aSummaryKeepsWhatItSays: a summary within a conversation is read with the entries that it keeps, and the others stay
// for exports. What counts goes on counting, also when the group gets a new id and its journal is joined with another.
func aSummaryKeepsWhatItSays(h *harness) {
	h.turns(session, 3, always)
	flagged := journal.Entry{
		Turn:    "f",
		Kind:    journal.ResultEntry,
		At:      start,
		Source:  "a page",
		Flagged: true,
		Tool:    "fetch",
		Failed:  true,
	}
	question := said("u", "and now?")
	sum := journal.Entry{N: 9, Turn: "u", Kind: journal.SummaryEntry, At: start, Text: "what was", Keeps: 1}
	soFar := journal.ConversationState{N: 9, Summary: 9, Suspicious: "a page", Turn: "u", Caller: question.Caller}
	sum.State = &soFar
	h.do(&bot.Change{Append: &bot.Append{Session: session, After: 6, Entries: []journal.Entry{flagged, question, sum}}})
	tail := h.tail(session, 1<<20)
	if len(tail.Entries) != 2 || tail.Entries[0].N != 8 || tail.Entries[1].Keeps != 1 {
		h.Errorf("read: %+v", tail.Entries)
	}
	same(h, "state", tail.StateAt(9), soFar)
	if all := h.journal(session); len(all) != 9 || all[0].N != 1 {
		h.Errorf("%d entries are left for an export", len(all))
	}
	moved, _ := state.Rename(groupMove, bot.SessionKey(session))
	h.turns(moved, 1, never)
	h.do(&bot.Change{Move: groupMove})
	joined := h.tail(moved, 1<<20)
	if at := joined.StateAt(joined.Last()); at.Suspicious != "a page" || at.Summary == 0 || joined.Last() != 11 {
		h.Errorf("after the move: %+v", at)
	}
	if summary, first := journal.Summary(joined.Entries); summary == nil ||
		summary.Text != "what was" || joined.Entries[first].Text != "and now?" {
		h.Errorf("after the move the model reads %+v", joined.Entries)
	}
}
