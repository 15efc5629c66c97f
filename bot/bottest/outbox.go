package bottest

import (
	"fmt"
	"slices"

	"github.com/zephbot/zephbot/bot"
)

func (t *step) send() error {
	for i := range t.change.Send {
		row := t.change.Send[i]
		if old, ok := t.keys[row.Key]; ok && row.Key != "" {
			t.applied.Rows = append(t.applied.Rows, old)
			t.applied.Skipped = append(t.applied.Skipped, true)
			continue
		}
		content, err := copied(row.Content)
		if err != nil {
			return err
		}
		t.counters.row++
		row.ID, row.Content = t.counters.row, content
		if row.Created.IsZero() {
			row.Created = t.Now()
		}
		row.NotBefore, row.Created, row.Doubt = utc(row.NotBefore), utc(row.Created), utc(row.Doubt)
		if row.State == "" {
			row.State = bot.Pending
		}
		put(t, t.rows, row.ID, row)
		if row.Key != "" {
			put(t, t.keys, row.Key, row.ID)
		}
		t.applied.Rows = append(t.applied.Rows, row.ID)
		t.applied.Skipped = append(t.applied.Skipped, false)
	}
	return nil
}

func (t *step) cards() error {
	for _, card := range t.change.Cards {
		a, ok := t.approvals[card.Approval]
		if !ok {
			return fmt.Errorf("card of question %s: %w", card.Approval, bot.ErrNotFound)
		}
		a.Row = t.applied.Rows[card.Send]
		put(t, t.approvals, card.Approval, a)
	}
	return nil
}

func (t *step) rowUpdates() error {
	for i := range t.change.Rows {
		u := &t.change.Rows[i]
		row, ok := t.rows[u.ID]
		if !ok {
			return fmt.Errorf("row %d: %w", u.ID, bot.ErrNotFound)
		}
		moved := slices.Contains(u.From, row.State)
		t.applied.Moved = append(t.applied.Moved, moved)
		if !moved {
			continue
		}
		row.State = u.To
		if u.Message != "" {
			row.Message = u.Message
		}
		row.NotBefore = utc(u.NotBefore)
		row.Attempts += u.Attempts
		if row.Doubt.IsZero() {
			row.Doubt = utc(u.Doubt)
		}
		row.Problem = u.Problem
		put(t, t.rows, row.ID, row)
	}
	return nil
}

func (t *step) placeholder() error {
	session := t.change.PlaceholderOf
	if session == "" {
		return nil
	}
	lane := t.lane(session)
	lane.Live = t.applied.Rows[0]
	put(t, t.lanes, session, lane)
	return nil
}
