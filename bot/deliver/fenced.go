package deliver

import (
	"context"

	"github.com/zephbot/zephbot/bot"
)

// FencedSender sends only while this process can be sure that its work is still its own: one that stood still for a
// while and wakes up sends nothing that others have sent meanwhile. What it does not send counts as not sent.
type FencedSender struct {
	bot.Sender
	Sure func(context.Context) error // nil error = it is
}

// Send implements bot.Sender.
func (s FencedSender) Send(ctx context.Context, row *bot.Row) (string, error) {
	if err := unsure(ctx, s.Sure); err != nil {
		return "", err
	}
	return s.Sender.Send(ctx, row)
}

// FencedLive is FencedSender for what is not an answer yet.
type FencedLive struct {
	bot.Live
	Sure func(context.Context) error // nil error = it is
}

// Draft implements bot.Live.
func (s FencedLive) Draft(ctx context.Context, place bot.Place, id int64, content bot.Content) error {
	if err := unsure(ctx, s.Sure); err != nil {
		return err
	}
	return s.Live.Draft(ctx, place, id, content)
}

// Revise implements bot.Live.
func (s FencedLive) Revise(ctx context.Context, place bot.Place, message string, content bot.Content) error {
	if err := unsure(ctx, s.Sure); err != nil {
		return err
	}
	return s.Live.Revise(ctx, place, message, content)
}

// Typing implements bot.Live.
func (s FencedLive) Typing(ctx context.Context, place bot.Place) error {
	if err := unsure(ctx, s.Sure); err != nil {
		return err
	}
	return s.Live.Typing(ctx, place)
}

func unsure(ctx context.Context, sure func(context.Context) error) error {
	if err := sure(ctx); err != nil {
		return &bot.SendError{Outcome: bot.NotSent, Err: err}
	}
	return nil
}
