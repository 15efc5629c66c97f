package deliver

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/bot"
)

// PacedSender is a Sender whose requests respect the budget, for what is sent without the outbox.
type PacedSender struct {
	bot.Sender
	Pacer bot.Pacer
}

// Send implements bot.Sender.
func (p PacedSender) Send(ctx context.Context, row *bot.Row) (string, error) {
	over, err := p.Pacer.Wait(ctx, row.Place, priority(row.Purpose))
	if err != nil {
		return "", &bot.SendError{Outcome: bot.NotSent, Err: err}
	}
	defer over()
	message, err := p.Sender.Send(ctx, row)
	if e, ok := errors.AsType[*bot.SendError](err); ok && e.Outcome == bot.Throttled {
		p.Pacer.Freeze(row.Place, e.RetryAfter)
	}
	return message, err
}
