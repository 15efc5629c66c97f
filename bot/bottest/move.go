package bottest

import (
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// rename gives the key under the new chat id: a session's, or any key that begins with the key of the chat.
func rename(m *bot.Move, key string) (string, bool) {
	parts := strings.SplitN(key, "/", 5) // channel, bot, surface, chat, rest
	if len(parts) < 4 || parts[0] != m.Channel || parts[1] != m.Bot || parts[3] != m.From {
		return key, false
	}
	parts[3] = m.To
	return strings.Join(parts, "/"), true
}

func relocate(m *bot.Move, place *bot.Place) bool {
	if place.Channel != m.Channel || place.Bot != m.Bot || place.Chat != m.From {
		return false
	}
	place.Chat = m.To
	return true
}

func (t *step) move() error {
	m := t.change.Move
	if m == nil {
		return nil
	}
	for _, old := range sortedKeys(t.lanes) {
		if session, ok := rename(m, old); ok {
			if err := t.moveLane(m, old, session); err != nil {
				return err
			}
		}
	}
	for seq, a := range t.arrivals {
		if session, ok := rename(m, a.Session); ok && a.state != done {
			a.Session = session
			put(t, t.arrivals, seq, a)
		}
	}
	for id, a := range t.approvals {
		session, ok := rename(m, a.Session)
		a.Session = session
		if relocate(m, &a.Place) || ok {
			put(t, t.approvals, id, a)
		}
	}
	for id, row := range t.rows {
		session, ok := rename(m, row.Session)
		row.Session = session
		if relocate(m, &row.Place) {
			row.Message, row.Edit, row.ReplyTo = "", "", ""
			ok = true
		}
		if ok {
			put(t, t.rows, id, row)
		}
	}
	t.moveKeys(m)
	return nil
}

// moveLane moves one session, its journal too.
func (t *step) moveLane(m *bot.Move, old, session string) error {
	from := t.lanes[old]
	to, met := t.lanes[session]
	fromJournal, toJournal := t.journal[old], t.journal[session]
	merged, first, second := from, toJournal, fromJournal
	if met {
		if from.Turn != "" && to.Turn != "" {
			ended, err := t.endTurn(from)
			if err != nil {
				return err
			}
			fromJournal = append(slices.Clone(fromJournal), ended)
			from.Turn = ""
		}
		if from.Turn == "" {
			merged, first, second = to, fromJournal, toJournal
		}
		merged.Fence = max(from.Fence, to.Fence)
	}
	merged.Session, merged.Owner, merged.Until = session, "", time.Time{}
	merged.Fence++
	relocate(m, &merged.Place)
	journal := slices.Concat(first, second)
	for i := range journal {
		journal[i].N = int64(i + 1)
	}
	merged.Last = int64(len(journal))
	drop(t, t.lanes, old)
	drop(t, t.journal, old)
	put(t, t.lanes, session, merged)
	put(t, t.journal, session, journal)
	return nil
}

// endTurn ends the turn of a lane whose session meets another turn: only one can go on.
func (t *step) endTurn(lane bot.Lane) (journal.Entry, error) {
	for id, a := range t.approvals {
		if a.Session == lane.Session && a.State == bot.Open {
			a.State, a.Decided = bot.Withdrawn, utc(t.Now())
			put(t, t.approvals, id, a)
		}
	}
	if a, ok := t.arrivals[lane.Arrival]; ok && a.state == waiting {
		a.state = done
		put(t, t.arrivals, a.Seq, a)
	}
	return copied(journal.Entry{
		Turn: lane.Turn, Kind: journal.EndEntry, At: utc(t.Now()), Reason: "cancelled",
		Text: "The group got a new id while this was being worked on, and the work was given up.",
	})
}

// moveKeys moves facts and charges.
func (t *step) moveKeys(m *bot.Move) {
	for old, fact := range t.facts {
		key, ok := rename(m, old.key)
		if !ok {
			continue
		}
		drop(t, t.facts, old)
		to := factKey{old.bucket, key}
		if _, met := t.facts[to]; !met {
			fact.Key = key
			put(t, t.facts, to, fact)
		}
	}
	for key, charge := range t.charges {
		scope, ok := strings.CutPrefix(charge.Scope, "chat/")
		if !ok {
			continue
		}
		if scope, ok = rename(m, scope); ok {
			charge.Scope = "chat/" + scope
			put(t, t.charges, key, charge)
		}
	}
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
