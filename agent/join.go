package agent

// What a person says while their turn runs joins it.

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/tools"
)

// ErrRevised is the cancellation cause of a turn whose person has changed its message. The turn stays open: the next
// Run continues it with what its Journal, a TurnInbox, has read.
var ErrRevised = errors.New("the person has changed the message")

// ErrWithdrawn means that what a TurnInbox has told was withdrawn before it was stored.
var ErrWithdrawn = errors.New("what was said is withdrawn")

// What the model reads before a message that joined a turn.
var joinLabels = map[journal.Joining]string{
	journal.Edited:    "[the message of this turn was changed by its writer; it now reads]\n",
	journal.Meanwhile: "[said while you were working]\n",
	journal.Declined:  "[the person who declined this call says why]\n",
}

// notWanted is what the model reads for a call that did not run because the message that it was made for was changed.
const notWanted = "the person changed the message before this ran"

// reviseMessage returns the message of a turn as a later entry changes it.
func reviseMessage(said, edit *journal.Entry) *journal.Entry {
	e := *said
	e.Text = edit.Text
	return &e
}

// joinMessages journals what a person has said meanwhile. It reports whether the next step has to be derived again.
func (s *step) joinMessages(ctx context.Context, b *batch, open bool) (joined bool, err error) {
	l, ok := s.journal.(TurnInbox)
	if !ok {
		return false, nil
	}
	said, anew, err := l.ReadInbox(ctx)
	if err != nil || len(said) == 0 || open && !anew {
		return false, err
	}
	var entries []journal.Entry
	if open {
		if err := s.closeUses(ctx, b); err != nil {
			return false, err
		}
		for _, u := range s.state.openBatch().openUses() {
			entries = append(entries, s.endAbandoned(ctx, u)...)
			entries = append(entries, journal.Entry{
				Turn:     s.turn.ID,
				Kind:     journal.ResultEntry,
				At:       s.deps.Now(),
				Call:     u.Call,
				Tool:     u.Name,
				Text:     tools.Feedback(tools.Errorf(tools.Cancelled, notWanted)),
				Failed:   true,
				Category: string(tools.Cancelled),
			})
		}
	}
	kept, cancel := storingContext(ctx)
	defer cancel()
	if err := s.appendEntries(kept, append(entries, said...)...); err != nil {
		if errors.Is(err, ErrWithdrawn) {
			return false, nil
		}
		return false, err
	}
	return true, nil
}
