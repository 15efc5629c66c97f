package deliver_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/deliver"
)

// made counts requests.
type made struct {
	bot.Live
	n int
}

func (m *made) Send(context.Context, *bot.Row) (string, error)               { m.n++; return "1", nil }
func (m *made) Draft(context.Context, bot.Place, int64, bot.Content) error   { m.n++; return nil }
func (m *made) Revise(context.Context, bot.Place, string, bot.Content) error { m.n++; return nil }
func (m *made) Typing(context.Context, bot.Place) error                      { m.n++; return nil }

// TestFencedSender: no request is made by a process that is not sure of its work, and each counts as not sent.
func TestFencedSender(t *testing.T) {
	t.Parallel()
	gone := errors.New("taken for dead")
	for _, cause := range []error{gone, nil} {
		m := &made{}
		sure := func(context.Context) error { return cause }
		live := deliver.FencedLive{Live: m, Sure: sure}
		_, sent := deliver.FencedSender{Sender: m, Sure: sure}.Send(t.Context(), &bot.Row{})
		for what, err := range map[string]error{
			"send": sent, "draft": live.Draft(t.Context(), bot.Place{}, 1, bot.Content{}), "revise": live.Revise(t.Context(), bot.Place{}, "1", bot.Content{}),
			"typing": live.Typing(t.Context(), bot.Place{}),
		} {
			if cause == nil && err != nil || cause != nil && (!errors.Is(err, gone) || bot.OutcomeOf(err) != bot.NotSent) {
				t.Errorf("%s, when the process is told %v: %v", what, cause, err)
			}
		}
		if want := map[bool]int{true: 4}[cause == nil]; m.n != want {
			t.Errorf("%d requests, want %d", m.n, want)
		}
	}
}
