package app

import (
	"context"

	"github.com/zephbot/zephbot/bot"
)

// surely sends only while this process can be sure that its work is still its own: one that stood still for a while and
// wakes up sends nothing that others have sent meanwhile.
type surely struct {
	bot.Sender
	sure func(context.Context) error
}

// Send implements bot.Sender.
func (s surely) Send(ctx context.Context, row *bot.Row) (string, error) {
	if err := s.sure(ctx); err != nil {
		return "", &bot.SendError{Outcome: bot.NotSent, Err: err}
	}
	return s.Sender.Send(ctx, row)
}

// surelyLive does so with what is not an answer yet.
type surelyLive struct {
	bot.Live
	sure func(context.Context) error
}

// Draft implements bot.Live.
func (s surelyLive) Draft(ctx context.Context, place bot.Place, id int64, content bot.Content) error {
	if err := s.sure(ctx); err != nil {
		return &bot.SendError{Outcome: bot.NotSent, Err: err}
	}
	return s.Live.Draft(ctx, place, id, content)
}

// Revise implements bot.Live.
func (s surelyLive) Revise(ctx context.Context, place bot.Place, message string, content bot.Content) error {
	if err := s.sure(ctx); err != nil {
		return &bot.SendError{Outcome: bot.NotSent, Err: err}
	}
	return s.Live.Revise(ctx, place, message, content)
}

// Typing implements bot.Live.
func (s surelyLive) Typing(ctx context.Context, place bot.Place) error {
	if err := s.sure(ctx); err != nil {
		return &bot.SendError{Outcome: bot.NotSent, Err: err}
	}
	return s.Live.Typing(ctx, place)
}
