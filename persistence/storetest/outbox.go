package storetest

import (
	"errors"
	"time"

	"github.com/zephbot/zephbot/bot"
)

func isConflict(err error) bool { return errors.Is(err, bot.ErrConflict) }

// queue sends rows to the suite's chat.
func (h *harness) queue(rows ...bot.Row) []int64 {
	h.Helper()
	for i := range rows {
		rows[i].Session, rows[i].Place = session, h.place()
	}
	return h.do(&bot.Change{Send: rows}).Rows
}

func (h *harness) update(id int64, from, to bot.RowState, message string) bool {
	h.Helper()
	return h.do(&bot.Change{
		Rows: []bot.RowUpdate{{ID: id, From: []bot.RowState{from}, To: to, Message: message}},
	}).Moved[0]
}

func (h *harness) due(now time.Time) []bot.Row {
	h.Helper()
	rows, err := h.Due(h.Context(), channel, botID, now, 10)
	h.ok(err)
	return rows
}

func outboxTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"a row comes back whole":                             aRowComesBackWhole,
		"a doubled key is skipped and gives the old row":     aDoubledKeyIsSkippedAndGivesTheOldRow,
		"a row moves only from the states named":             aRowMovesOnlyFromTheStatesNamed,
		"due are pending rows whose time has come, in order": dueArePendingRowsWhoseTimeHasComeInOrder,
		"rows of a session, newest last":                     rowsOfASessionNewestLast,
	}
}

func aRowComesBackWhole(h *harness) {
	row := bot.Row{
		Session: session,
		Turn:    "t1",
		Place:   h.place(),
		Purpose: bot.Question,
		ReplyTo: "5",
		Edit:    "6",
		Query:   "7",
		Alert:   true,
		Key:     "k",
		Content: bot.Content{
			Text: "hé", Buttons: [][]bot.Button{{{Label: "Yes", Data: "y", Style: "success"}}},
			File: &bot.File{Name: "a.txt", Data: []byte{0, 255}},
		},
		NotBefore:   start,
		Created:     start.Add(1),
		Unconfirmed: 2,
	}
	id := h.do(&bot.Change{Send: []bot.Row{row}}).Rows[0]
	row.ID, row.State = id, bot.Pending
	same(h, "row", h.row(id), row)
	_, err := h.Row(h.Context(), id+1)
	if !errors.Is(err, bot.ErrNotFound) {
		h.Errorf("unknown row: %v", err)
	}
	keyed, err := h.RowOf(h.Context(), "k")
	h.ok(err)
	same(h, "row of its key", keyed, row)
	for _, key := range []string{"", "other"} {
		if _, err := h.RowOf(h.Context(), key); !errors.Is(err, bot.ErrNotFound) {
			h.Errorf("row of key %q: %v", key, err)
		}
	}
}

func aDoubledKeyIsSkippedAndGivesTheOldRow(h *harness) {
	first := h.queue(bot.Row{Key: "k", Content: bot.Content{Text: "one"}})
	h.update(first[0], bot.Pending, bot.Sent, "9")
	applied := h.do(&bot.Change{Send: []bot.Row{
		{Place: h.place(), Key: "k", Content: bot.Content{Text: "two"}},
		{Place: h.place(), Key: "n"},
		{Place: h.place(), Key: "n"},
		{Place: h.place()},
		{Place: h.place()},
	}})
	same(h, "skipped", applied.Skipped, []bool{true, false, true, false, false})
	r := applied.Rows
	if r[0] != first[0] || r[1] != r[2] || r[3] == r[4] || r[3] <= r[1] {
		h.Errorf("rows %v after %v", r, first)
	}
	same(h, "text", h.row(first[0]).Content.Text, "one")
}

func aRowMovesOnlyFromTheStatesNamed(h *harness) {
	id := h.queue(bot.Row{})[0]
	if h.update(id, bot.Sending, bot.Sent, "") {
		h.Error("a pending row moved from sending")
	}
	change := bot.RowUpdate{
		ID:          id,
		From:        []bot.RowState{bot.Sending, bot.Pending},
		To:          bot.Unknown,
		Message:     "9",
		NotBefore:   start,
		Attempts:    2,
		Unconfirmed: 1,
		Doubt:       start,
		Problem:     "p",
	}
	same(h, "moved", h.do(&bot.Change{Rows: []bot.RowUpdate{change}}).Moved, []bool{true})
	got := h.row(id)
	want := bot.Row{
		ID:          id,
		Session:     session,
		Place:       h.place(),
		State:       bot.Unknown,
		Message:     "9",
		NotBefore:   start,
		Attempts:    2,
		Unconfirmed: 1,
		Doubt:       start,
		Problem:     "p",
	}
	if want.Created = got.Created; got.Created.IsZero() {
		h.Error("a row has no creation time")
	}
	same(h, "row", got, want)
	same(h, "twice in one change", h.do(&bot.Change{Rows: []bot.RowUpdate{
		{
			ID:          id,
			From:        []bot.RowState{bot.Unknown},
			To:          bot.Pending,
			Attempts:    1,
			Unconfirmed: 2,
			Doubt:       start.Add(time.Hour),
		},
		{ID: id, From: []bot.RowState{bot.Unknown}, To: bot.Dead},
	}}).Moved, []bool{true, false})
	want.State, want.Attempts, want.Unconfirmed, want.NotBefore, want.Problem = bot.Pending, 3, 3, time.Time{}, ""
	same(h, "message and doubt stay", h.row(id), want)
	h.refused(
		&bot.Change{Rows: []bot.RowUpdate{{ID: 999, From: []bot.RowState{bot.Sent}, To: bot.Dead}}}, bot.ErrNotFound,
	)
	h.refused(&bot.Change{Rows: []bot.RowUpdate{{ID: id, To: bot.Dead}}}, bot.ErrInvalid)
}

func dueArePendingRowsWhoseTimeHasComeInOrder(h *harness) {
	rows := h.queue(bot.Row{}, bot.Row{NotBefore: start}, bot.Row{}, bot.Row{})
	h.do(&bot.Change{Send: []bot.Row{{Place: bot.Place{Channel: channel, Bot: "2"}}}})
	h.update(rows[2], bot.Pending, bot.Sending, "")
	same(h, "before", rowIDs(h.due(start.Add(-1))), []int64{rows[0], rows[3]})
	same(h, "then", rowIDs(h.due(start)), []int64{rows[0], rows[1], rows[3]})
	limited, err := h.Due(h.Context(), channel, botID, start, 1)
	h.ok(err)
	same(h, "limited", rowIDs(limited), rows[:1])
	stranded, err := h.Stranded(h.Context(), channel, botID)
	h.ok(err)
	same(h, "stranded", rowIDs(stranded), rows[2:3])
	stranded, err = h.Stranded(h.Context(), channel, "2")
	h.ok(err)
	same(h, "stranded of another bot", rowIDs(stranded), nil)
	h.update(rows[3], bot.Pending, bot.Unknown, "")
	lost, err := h.Lost(h.Context(), channel, botID)
	h.ok(err)
	same(h, "lost", rowIDs(lost), rows[3:])
	lost, err = h.Lost(h.Context(), channel, "2")
	h.ok(err)
	same(h, "lost of another bot", rowIDs(lost), nil)
}

func rowsOfASessionNewestLast(h *harness) {
	rows := h.queue(bot.Row{}, bot.Row{}, bot.Row{})
	got, err := h.Rows(h.Context(), session, 2)
	h.ok(err)
	same(h, "rows", rowIDs(got), rows[1:])
	got, err = h.Rows(h.Context(), another, 2)
	h.ok(err)
	same(h, "other session", rowIDs(got), nil)
}

func editTests() map[string]func(*harness) {
	return map[string]func(*harness){
		"an edit waits for its row, then knows the message": anEditWaitsForItsRowThenKnowsTheMessage,
		"an edit of a row that never got out is sent":       anEditOfARowThatNeverGotOutIsSent,
		"a placeholder belongs to its lane":                 aPlaceholderBelongsToItsLane,
	}
}

func anEditWaitsForItsRowThenKnowsTheMessage(h *harness) {
	placeholder := h.queue(bot.Row{Purpose: bot.Placeholder})[0]
	final := h.queue(bot.Row{Purpose: bot.Final, EditRow: placeholder})[0]
	same(h, "pending", rowIDs(h.due(start)), []int64{placeholder})
	h.update(placeholder, bot.Pending, bot.Sending, "")
	same(h, "sending", rowIDs(h.due(start)), nil)
	h.update(placeholder, bot.Sending, bot.Sent, "77")
	due := h.due(start)
	if len(due) != 1 || due[0].ID != final || due[0].Edit != "77" || due[0].EditRow != placeholder {
		h.Errorf("due after it was sent: %+v", due)
	}
}

func anEditOfARowThatNeverGotOutIsSent(h *harness) {
	for _, state := range []bot.RowState{bot.Dead, bot.Unknown} {
		placeholder := h.queue(bot.Row{})[0]
		final := h.queue(bot.Row{EditRow: placeholder})[0]
		h.update(placeholder, bot.Pending, state, "")
		due := h.due(start)
		if len(due) != 1 || due[0].ID != final || due[0].Edit != "" {
			h.Errorf("due after %s: %+v", state, due)
		}
		h.update(final, bot.Pending, bot.Sent, "1")
	}
}

func aPlaceholderBelongsToItsLane(h *harness) {
	state := bot.Running
	applied := h.do(&bot.Change{
		Lanes: []bot.LaneUpdate{{Session: session, State: &state}}, PlaceholderOf: session,
		Send: []bot.Row{{Session: session, Place: h.place(), Key: "p"}},
	})
	same(h, "live", h.lane(session).Live, applied.Rows[0])
	h.do(&bot.Change{PlaceholderOf: another, Send: []bot.Row{{Place: h.place(), Key: "p"}}})
	same(h, "live of a doubled key", h.lane(another).Live, applied.Rows[0])
	h.refused(&bot.Change{PlaceholderOf: session}, bot.ErrInvalid)
}
