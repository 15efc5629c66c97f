package deliver_test

import (
	"context"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/facts"
)

// TestMailer: a row and its facts are stored together, once however often they are sent, and the outbox is woken; what
// is not stored wakes nobody.
func TestMailer(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	woken := 0
	m := deliver.Mailer{Keeper: facts.Keeper{Store: store, Log: zerolog.Nop()}, Wake: func(bot.Place) { woken++ }, Log: zerolog.Nop()}
	row := bot.Row{Session: "telegram/7/bot/1/0/0", Place: bot.Place{Channel: "telegram", Bot: "7", Chat: "1"}, Purpose: bot.Reply, Key: "k", Content: bot.Content{Text: "x"}}
	for range 2 {
		m.Send(t.Context(), row, bot.Fact{Bucket: "b", Key: "k", Value: "v"})
	}
	rows, err := store.Rows(t.Context(), row.Session, 10)
	if err != nil || len(rows) != 1 || woken != 2 {
		t.Errorf("%d rows, woken %d times, %v", len(rows), woken, err)
	}
	if v, err := store.Fact(t.Context(), "b", "k", time.Now()); v != "v" || err != nil {
		t.Errorf("fact %q, %v", v, err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	m.Keeper.Store = refuses{}
	m.Send(over, row)
	if woken != 2 {
		t.Error("woken for what is not stored")
	}
}

// refuses takes no Change.
type refuses struct{}

func (refuses) Apply(context.Context, *bot.Change) (*bot.Applied, error) {
	return nil, bot.ErrInvalid
}
