package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
)

func (h *harness) fact(bucket, key string, now time.Time) string {
	h.Helper()
	value, err := h.Fact(h.Context(), bucket, key, now)
	h.ok(err)
	return value
}

func factTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"facts are set, replaced, deleted, expire": factsAreSetReplacedDeletedExpire,
		"facts of a bucket by prefix":              factsOfABucketByPrefix,
		"a fact is set if absent or expired":       aFactIsSetIfAbsentOrExpired,
		"a fact is changed from what it was":       aChangeExpectsFacts,
		"a charge counts once":                     aChargeCountsOnce,
	}
}

func factsAreSetReplacedDeletedExpire(h *harness) {
	same(h, "absent", h.fact("b", "k", start), "")
	h.do(&bot.Change{
		Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "1"}, {Bucket: "b", Key: "k2", Value: "2", Expires: start}},
	})
	same(h, "set", h.fact("b", "k", farFuture), "1")
	same(h, "other bucket", h.fact("c", "k", start), "")
	same(h, "before its end", h.fact("b", "k2", start.Add(-1)), "2")
	same(h, "at its end", h.fact("b", "k2", start), "")
	h.do(&bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "3"}, {Bucket: "b", Key: "k2", Value: "4"}}})
	same(h, "replaced", h.fact("b", "k", start), "3")
	same(h, "expiry replaced", h.fact("b", "k2", start), "4")
	h.do(&bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k"}, {Bucket: "b", Key: "never"}}})
	same(h, "deleted", h.fact("b", "k", start), "")
}

func factsOfABucketByPrefix(h *harness) {
	for _, key := range []string{"b/2", "a/1", "b/10", "b", "b%", "c"} {
		h.do(&bot.Change{Facts: []bot.Fact{{Bucket: "x", Key: key, Value: "v"}, {Bucket: "y", Key: key, Value: "v"}}})
	}
	h.do(&bot.Change{Facts: []bot.Fact{{Bucket: "x", Key: "b/1", Value: "v", Expires: start}}})
	for prefix, want := range map[string][]string{
		"b/": {"b/10", "b/2"}, "": {"a/1", "b", "b%", "b/10", "b/2", "c"}, "b%": {"b%"}, "d": nil, "é": nil,
	} {
		facts, err := h.FactsOf(h.Context(), "x", prefix, start)
		h.ok(err)
		var keys []string
		for _, fact := range facts {
			keys = append(keys, fact.Key)
		}
		same(h, "keys of "+prefix, keys, want)
	}
	facts, err := h.FactsOf(h.Context(), "x", "b/1", start.Add(-1))
	h.ok(err)
	same(h, "whole", facts, []bot.Fact{
		{Bucket: "x", Key: "b/1", Value: "v", Expires: start}, {Bucket: "x", Key: "b/10", Value: "v"},
	})
}

func aFactIsSetIfAbsentOrExpired(h *harness) {
	set := func(value string, expires time.Time) bool {
		return h.do(&bot.Change{FactsIf: []bot.Fact{{Bucket: "b", Key: "k", Value: value, Expires: expires}}}).Set[0]
	}
	same(h, "absent", set("1", longAgo), true)
	same(h, "expired", set("2", farFuture), true)
	same(h, "alive", set("3", farFuture), false)
	same(h, "value", h.fact("b", "k", start), "2")
	h.do(&bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "4"}}})
	same(h, "without end", set("5", farFuture), false)
	same(h, "twice in one change", h.do(&bot.Change{FactsIf: []bot.Fact{
		{Bucket: "b", Key: "n", Value: "1"}, {Bucket: "b", Key: "n", Value: "2"},
	}}).Set, []bool{true, false})
	h.refused(&bot.Change{FactsIf: []bot.Fact{{Bucket: "b", Key: "x"}}}, bot.ErrInvalid)
}

func aChangeExpectsFacts(h *harness) {
	change := func(was, value string) *bot.Change {
		return &bot.Change{Facts: []bot.Fact{
			{Bucket: "b", Key: "k", Value: value, Was: &was},
			{Bucket: "b", Key: "beside", Value: value},
		}}
	}
	h.refused(change("1", "2"), bot.ErrConflict)
	h.do(change("", "1"))
	h.refused(change("", "2"), bot.ErrConflict)
	h.refused(change("2", "3"), bot.ErrConflict)
	same(h, "what is beside it", h.fact("b", "beside", start), "1")
	h.do(change("1", "2"))
	same(h, "value", h.fact("b", "k", start), "2")
	h.do(&bot.Change{Facts: []bot.Fact{{Bucket: "b", Key: "k", Value: "3", Expires: longAgo}}})
	h.refused(change("3", "4"), bot.ErrConflict)
	h.do(change("", "4"))
	none, four := "", "4"
	h.refused(&bot.Change{Facts: []bot.Fact{
		{Bucket: "b", Key: "other", Value: "1", Was: &none},
		{Bucket: "b", Key: "k", Value: "5", Was: &none},
	}}, bot.ErrConflict)
	h.do(&bot.Change{Facts: []bot.Fact{
		{Bucket: "b", Key: "other", Value: "1", Was: &none},
		{Bucket: "b", Key: "k", Value: "4", Was: &four},
	}})
	h.do(change("4", ""))
	h.refused(change("4", "5"), bot.ErrConflict)
}

func aChargeCountsOnce(h *harness) {
	charges := []bot.Charge{
		{Key: "c", Scope: "user/telegram:42", Unit: "tokens", Day: "2026-03-02", N: 5},
		{Key: "b", Scope: "user/telegram:42", Unit: "turns", Day: "2026-03-02", N: -1},
		{Key: "z", Scope: "bot/telegram/1", Unit: "turns", Day: "2026-03-01", N: 1},
	}
	h.do(&bot.Change{Charges: charges})
	h.do(&bot.Change{Charges: []bot.Charge{{Key: "c", Day: "2026-03-03", N: 100}}})
	got, err := h.Charges(h.Context(), "2026-03-01")
	h.ok(err)
	same(h, "all", got, []bot.Charge{charges[2], charges[1], charges[0]})
	got, err = h.Charges(h.Context(), "2026-03-02")
	h.ok(err)
	same(h, "since", got, []bot.Charge{charges[1], charges[0]})
	h.do(&bot.Change{
		Charges: []bot.Charge{{Key: "more", Scope: "user/telegram:42", Unit: "tokens", Day: "2026-03-02", N: 2}},
	})
	for _, want := range []bot.Charge{
		{Scope: "user/telegram:42", Unit: "tokens", Day: "2026-03-02", N: 7},
		{Scope: "user/telegram:42", Unit: "turns", Day: "2026-03-02", N: -1},
		{Scope: "user/telegram:42", Unit: "tokens", Day: "2026-03-03"},
		{Scope: "user/telegram:4", Unit: "tokens", Day: "2026-03-02"},
	} {
		used, err := h.Used(h.Context(), want.Scope, want.Unit, want.Day)
		h.ok(err)
		same(h, fmt.Sprint("used ", want), used, want.N)
	}
	used, err := h.Used(h.Context(), "bot/telegram/1", "turns", "2026-03-02", "2026-03-01", "2026-02-28")
	h.ok(err)
	same(h, "used on several days", used, int64(1))
	h.do(&bot.Change{Charges: []bot.Charge{ // keys that are there already, in the store or in the Change, count once
		{Key: "more", Scope: "bot/telegram/1", Unit: "turns", Day: "2026-03-02", N: 100},
		{Key: `odd "key" ä`, Scope: "bot/telegram/1", Unit: "turns", Day: "2026-03-02", N: 1 << 53},
		{Key: `odd "key" ä`, Scope: "bot/telegram/1", Unit: "turns", Day: "2026-03-02", N: 100},
	}})
	used, err = h.Used(h.Context(), "bot/telegram/1", "turns", "2026-03-01", "2026-03-02")
	h.ok(err)
	same(h, "used after several charges", used, int64(1<<53+1))
	used, err = h.Used(h.Context(), "bot/telegram/1", "turns")
	h.ok(err)
	same(h, "used on no day", used, int64(0))
}

func inspectTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"counts":                      countsMatch,
		"lanes by session":            lanesBySession,
		"what waits, in pages":        whatWaitsInPages,
		"rows by state, newest first": rowsByStateNewestFirst,
		"charges are added up":        chargesAreAddedUp,
	}
}

func whatWaitsInPages(h *harness) {
	seqs := h.arrive(session, "1", "2", "3", "4")
	h.do(&bot.Change{Done: seqs[:1], Dead: []bot.DeadLetter{{Seq: seqs[1]}}, Arrive: []bot.Arrival{
		{Channel: channel, Bot: botID, ID: "5", Session: another, Express: true, Raw: []byte("x")},
		{Channel: channel, Bot: botID, ID: "6"},
		{Channel: channel, Bot: "2", ID: "7", Session: session},
	}})
	page, err := h.Backlog(h.Context(), channel, botID, 0, 3)
	h.ok(err)
	same(h, "the first page", ids(page), []string{"3", "4", "5"})
	if page[0].Raw != nil || page[0].Session != session || !page[2].Express || page[0].Source != bot.FromTelegram {
		h.Errorf("what waits: %+v", page)
	}
	page, err = h.Backlog(h.Context(), channel, botID, page[2].Seq, 3)
	h.ok(err)
	same(h, "the second page", ids(page), []string{"6"})
}

func rowsByStateNewestFirst(h *harness) {
	rows := h.queue(bot.Row{Purpose: bot.Final}, bot.Row{
		Purpose: bot.Final,
	}, bot.Row{Purpose: bot.Notice}, bot.Row{Purpose: bot.Reply}, bot.Row{Purpose: bot.Question}, bot.Row{})
	for i, problem := range map[int]string{1: "too old", 2: "too old", 3: "", 4: "no net"} {
		h.do(&bot.Change{
			Rows: []bot.RowUpdate{{ID: rows[i], From: []bot.RowState{bot.Pending}, To: bot.Dead, Problem: problem}},
		})
	}
	got := func(state bot.RowState, before int64, limit int) []int64 {
		list, err := h.RowsIn(h.Context(), channel, botID, state, before, limit)
		h.ok(err)
		var ids []int64
		for i := range list {
			ids = append(ids, list[i].ID)
		}
		return ids
	}
	same(h, "pending", got(bot.Pending, 0, 0), []int64{rows[5], rows[0]})
	same(h, "pending below", got(bot.Pending, rows[5], 1), []int64{rows[0]})
	same(h, "given up", got(bot.Dead, 0, 0), []int64{rows[4], rows[1]})
	same(h, "given up, one", got(bot.Dead, 0, 1), []int64{rows[4]})
	same(h, "unknown", got(bot.Unknown, 0, 0), nil)
	if _, err := h.RowsIn(h.Context(), channel, botID, bot.Sent, 0, 1); !errors.Is(err, bot.ErrInvalid) {
		h.Errorf("sent rows: %v", err)
	}
}

func chargesAreAddedUp(h *harness) {
	h.do(&bot.Change{Charges: []bot.Charge{
		{Key: "a", Scope: "user/x", Unit: "turns", Day: "2026-03-01", N: 1},
		{Key: "b", Scope: "user/x", Unit: "turns", Day: "2026-03-01", N: 1},
		{Key: "c", Scope: "user/x", Unit: "tokens", Day: "2026-03-01", N: 70},
		{Key: "d", Scope: "user/x", Unit: "turns", Day: "2026-03-02", N: 1},
		{Key: "e", Scope: "user/x", Unit: "turns", Day: "2026-02-27", N: 9},
	}})
	sums, err := h.Sums(h.Context(), "2026-03-01")
	h.ok(err)
	same(h, "sums", sums, []bot.Charge{
		{Scope: "user/x", Unit: "tokens", Day: "2026-03-01", N: 70},
		{Scope: "user/x", Unit: "turns", Day: "2026-03-01", N: 2},
		{Scope: "user/x", Unit: "turns", Day: "2026-03-02", N: 1},
	})
}

func countsMatch(h *harness) {
	for name, state := range map[bot.SessionKey]bot.LaneState{
		"a": bot.Idle,
		"b": bot.Running,
		"c": bot.Parked,
		"d": bot.Waiting,
		"e": bot.Waiting,
	} {
		h.turnOf(name, state, "t", 0)
	}
	seqs := h.arrive(session, "1", "2", "3", "4")
	h.do(&bot.Change{
		Done: seqs[:1], Dead: []bot.DeadLetter{{Seq: seqs[1]}},
		Arrive: []bot.Arrival{
			{Channel: channel, Bot: botID, ID: "5", Session: session, Express: true},
			{Channel: channel, Bot: botID, ID: "6"},
			{Channel: channel, Bot: "2", ID: "7", Session: session},
		},
	})
	rows := h.queue(bot.Row{}, bot.Row{}, bot.Row{}, bot.Row{}, bot.Row{})
	for i, state := range []bot.RowState{bot.Sending, bot.Unknown, bot.Sent, bot.Dead} {
		h.update(rows[i], bot.Pending, state, "")
	}
	counts, err := h.Counts(h.Context(), channel, botID)
	h.ok(err)
	same(h, "counts", counts, bot.Counts{
		Running:     1,
		Parked:      1,
		Waiting:     2,
		Queued:      4,
		Undelivered: 2,
		Lost:        1,
		Sessions:    5,
		DeadLetters: 1,
	})
	counts, err = h.Counts(h.Context(), channel, "2")
	h.ok(err)
	same(h, "counts of another bot", counts, bot.Counts{Queued: 1})
	dead, err := h.DeadLetters(h.Context(), 1)
	h.ok(err)
	same(h, "dead letters", ids(dead), []string{"2"})
}

func lanesBySession(h *harness) {
	for _, name := range []bot.SessionKey{"b", "c", "a"} {
		h.claim(name, 0)
	}
	h.do(&bot.Change{Claim: &bot.Claim{
		Session: "other", Place: bot.Place{Channel: channel, Bot: "2"}, Owner: owner, Now: start, Until: farFuture,
	}})
	for limit, want := range map[int][]bot.SessionKey{0: {"a", "b", "c"}, 2: {"a", "b"}} {
		lanes, err := h.Lanes(h.Context(), channel, botID, limit)
		h.ok(err)
		var names []bot.SessionKey
		for _, lane := range lanes {
			names = append(names, lane.Session)
		}
		same(h, "lanes", names, want)
	}
}
