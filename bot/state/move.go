package state

import (
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// movedText ends the turn that is cancelled when two sessions become one.
const movedText = "The group got a new id while this was being worked on, and the work was given up."

// Rename returns a key under the new id of a chat that moves: the key of a session, or any key that begins with the key
// of the chat. false = it belongs to another chat.
func Rename[K ~string](m *bot.Move, key K) (K, bool) {
	place, rest, ok := bot.CutChat(string(key))
	if !ok || !moves(m, &place) {
		return key, false
	}
	place.Chat = m.To
	return K(place.ChatKey() + rest), true
}

// moves reports whether a chat is the one that moves. The same id on another surface is another chat.
func moves(m *bot.Move, p *bot.Place) bool {
	return p.Channel == m.Channel && p.Bot == m.Bot && p.Chat == m.From && p.Ordinary()
}

// chargePrefix begins the scope of charges to a chat.
const chargePrefix = "chat/"

// RenameScope returns the scope of a charge under the new id of the chat.
func RenameScope(m *bot.Move, scope string) (string, bool) {
	key, ok := strings.CutPrefix(scope, chargePrefix)
	if !ok {
		return scope, false
	}
	key, ok = Rename(m, key)
	return chargePrefix + key, ok
}

// Relocate returns a place in the old chat with its new id.
func Relocate(m *bot.Move, place bot.Place) (bot.Place, bool) {
	if !moves(m, &place) {
		return place, false
	}
	place.Chat = m.To
	return place, true
}

// MoveRow moves an outbox row. Message ids of the old chat are not valid in the new one, so they are dropped: edits are
// sent as new messages.
func MoveRow(m *bot.Move, row bot.Row) (bot.Row, bool) {
	session, ok := Rename(m, row.Session)
	row.Session = session
	place, moved := Relocate(m, row.Place)
	if moved {
		row.Place, row.Message, row.Edit, row.ReplyTo = place, "", "", ""
	}
	return row, ok || moved
}

// Merged is the result of moving a session.
type Merged struct {
	Lane bot.Lane // under its new key; its lease is void
	// Ended is the lane of the old chat's turn, if that was cancelled: its open questions are withdrawn, the arrival
	// that began it is finished, and End is the last entry of the old journal, numbered. nil = no turn was cancelled.
	Ended *bot.Lane
	End   journal.Entry
	// What is added to the numbers of the entries of both journals, which become one; one of them is 0.
	ShiftFrom, ShiftTo int64
}

// Merge moves a session of the old chat, and merges it with that of the new chat if there is one (met). Both journals
// are kept: the one whose turn is in progress is last, else the old chat's is first. If both have a turn, the old
// chat's is ended.
func Merge(m *bot.Move, from, to bot.Lane, met bool, now time.Time) Merged {
	var merged Merged
	if !met {
		to = bot.Lane{}
	}
	if from.Turn != "" && to.Turn != "" {
		ended := from
		from.Last++
		merged.Ended, merged.End = &ended, journal.Entry{
			N: from.Last, Turn: from.Turn, Kind: journal.EndEntry, At: now, Reason: "cancelled", Text: movedText,
		}
		from.Turn = ""
	}
	merged.Lane = from
	if met && from.Turn == "" {
		merged.Lane, merged.ShiftTo = to, from.Last
	} else {
		merged.ShiftFrom = to.Last
	}
	merged.Lane.Session, _ = Rename(m, from.Session)
	merged.Lane.Workspace = from.WorkspaceID()
	merged.Lane.Fence = max(from.Fence, to.Fence) + 1
	merged.Lane.Last = from.Last + to.Last
	merged.Lane.Place, _ = Relocate(m, merged.Lane.Place)
	merged.Lane = Release(merged.Lane)
	return merged
}
