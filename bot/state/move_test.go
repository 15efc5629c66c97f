package state_test

import (
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/state"
)

var group = &bot.Move{Channel: "telegram", Bot: "1", From: "-1", To: "-2"}

func TestRename(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"telegram/1/bot/-1/0/42":      "telegram/1/bot/-2/0/42",
		"telegram/1/business/-1/0/42": "telegram/1/business/-2/0/42",
		"telegram/1/bot/-1":           "telegram/1/bot/-2",
		"telegram/1/bot/-1/7/42/more": "telegram/1/bot/-2/7/42/more",
		"telegram/1/bot/-10/0/42":     "",
		"telegram/2/bot/-1/0/42":      "",
		"terminal/1/bot/-1/0/42":      "",
		"telegram/1/bot":              "",
		"":                            "",
	} {
		got, ok := state.Rename(group, key)
		if ok != (want != "") || (ok && got != want) || (!ok && got != key) {
			t.Errorf("%q becomes %q (%t), want %q", key, got, ok, want)
		}
		scope, scoped := state.RenameScope(group, "chat/"+key)
		if scoped != ok || scope != "chat/"+got {
			t.Errorf("scope of %q becomes %q (%t)", key, scope, scoped)
		}
	}
	if got, ok := state.RenameScope(group, "user/telegram/1/bot/-1"); ok || got != "user/telegram/1/bot/-1" {
		t.Errorf("the scope of a person becomes %q", got)
	}
}

func TestMoveRow(t *testing.T) {
	t.Parallel()
	old := bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: "-1", Group: true}
	row := bot.Row{ID: 3, Session: "telegram/1/bot/-1/0/42", Place: old, Message: "7", Edit: "8", ReplyTo: "9", EditRow: 2, Key: "k"}
	want := bot.Row{ID: 3, Session: "telegram/1/bot/-2/0/42", Place: old, EditRow: 2, Key: "k"}
	want.Place.Chat = "-2"
	got, moved := state.MoveRow(group, row)
	same(t, "row", got, want)
	same(t, "moved", moved, true)
	row.Session, row.Place.Chat = "telegram/1/bot/-3/0/42", "-3"
	got, moved = state.MoveRow(group, row)
	same(t, "a row of another chat", got, row)
	same(t, "another chat moved", moved, false)
}

func TestMerge(t *testing.T) {
	t.Parallel()
	chat := func(id string) bot.Place { return bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: id} }
	from := bot.Lane{Session: "telegram/1/bot/-1/0/42", Place: chat("-1"), State: bot.Idle, Fence: 7, Last: 3, Owner: "a", Until: noon}
	to := bot.Lane{Session: "telegram/1/bot/-2/0/42", Place: chat("-2"), State: bot.Idle, Fence: 4, Last: 10}
	busy := func(lane bot.Lane, turn string) bot.Lane {
		lane.State, lane.Turn, lane.Arrival = bot.Running, turn, 5
		return lane
	}
	result := func(lane bot.Lane, fence, last int64) bot.Lane {
		lane.Session, lane.Place, lane.Fence, lane.Last, lane.Owner, lane.Until = to.Session, to.Place, fence, last, "", time.Time{}
		lane.Workspace = "telegram_1_bot_-1_0_42"
		return lane
	}
	ended := busy(from, "old")
	kept, fresh := from, to
	kept.Workspace, fresh.Workspace = "telegram_1_bot_-1_0_42", "telegram_1_bot_-2_0_42"
	for name, tt := range map[string]struct {
		from, to bot.Lane
		met      bool
		want     state.Merged
	}{
		"alone":                             {from: from, want: state.Merged{Lane: result(from, 8, 3)}},
		"the old one's files are kept":      {from: kept, to: fresh, met: true, want: state.Merged{Lane: result(fresh, 8, 13), ShiftTo: 3}},
		"alone with a turn":                 {from: ended, want: state.Merged{Lane: result(ended, 8, 3)}},
		"both idle: the old one first":      {from: from, to: to, met: true, want: state.Merged{Lane: result(to, 8, 13), ShiftTo: 3}},
		"a turn in the new chat comes last": {from: from, to: busy(to, "new"), met: true, want: state.Merged{Lane: result(busy(to, "new"), 8, 13), ShiftTo: 3}},
		"a turn in the old chat comes last": {from: ended, to: to, met: true, want: state.Merged{Lane: result(ended, 8, 13), ShiftFrom: 10}},
		"both: the old one's is ended": {from: ended, to: busy(to, "new"), met: true, want: state.Merged{
			Lane: result(busy(to, "new"), 8, 14), ShiftTo: 4, Ended: &ended,
			End: journal.Entry{
				N: 4, Turn: "old", Kind: journal.EndEntry, At: noon, Reason: "cancelled",
				Text: "The group got a new id while this was being worked on, and the work was given up.",
			},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			same(t, "merged", state.Merge(group, tt.from, tt.to, tt.met, noon), tt.want)
		})
	}
}

// Only chats that the bot is in move: the same id on another surface is another chat.
func TestOtherSurfacesStay(t *testing.T) {
	t.Parallel()
	m := &bot.Move{Channel: "telegram", Bot: "1", From: "-1", To: "-2"}
	for surface, moves := range map[string]bool{"bot": true, "guest": false, "biz:c1": false} {
		if _, ok := state.Rename(m, "telegram/1/"+surface+"/-1/0/42"); ok != moves {
			t.Errorf("%s: renamed %v", surface, ok)
		}
		place := bot.Place{Channel: "telegram", Bot: "1", Surface: surface, Chat: "-1"}
		if _, ok := state.Relocate(m, place); ok != moves {
			t.Errorf("%s: relocated %v", surface, ok)
		}
		if _, ok := state.RenameScope(m, "chat/"+place.ChatKey()); ok != moves {
			t.Errorf("%s: charges moved %v", surface, ok)
		}
	}
}
