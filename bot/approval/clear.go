package approval

import (
	"context"
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// clearMark is the choice of the button *Not an order: clear the mark*.
const clearMark = "c"

// approveFlagged approves a call that is asked about only because a text was flagged, and clears the mark of the source that the
// card names: what it says is no order. Only admins may, because it counts for everybody in the conversation. The mark
// is cleared by the journal entry of the call's result (journal.Entry.Cleared), so a turn that is stopped before keeps it.
func (b *Broker) approveFlagged(
	ctx context.Context, a *bot.Approval, msg *bot.Message, say func(text string, alert bool) bot.Row,
) (turn.Effect, error) {
	rights, err := b.deps.Rights(ctx, a.Place, a.Tool)
	if err != nil {
		return turn.Effect{}, err
	}
	if !slices.Contains(rights.Admins, msg.Caller) {
		return turn.Effect{Change: bot.Change{Send: []bot.Row{say(b.deps.Words.AdminsClear(msg.Language), true)}}}, nil
	}
	return b.decideQuestion(ctx, a, msg, bot.Approved, bot.Cleared, say)
}
