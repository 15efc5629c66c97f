package telegram_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// A quotation that the server does not find in the message is left out, and the reply arrives all the same.
func TestQuote(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ quote, want string }{
		"the beginning":    {"what is", "what is"},
		"nothing":          {"", ""},
		"not in it":        {"something else", ""},
		"formatted better": {"What is", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, 0)
			asked, err := w.Post(ann, ann, telegramtest.Message{Text: "what is in the logs?"})
			if err != nil {
				t.Fatal(err)
			}
			id, err := w.client.Send(t.Context(), &bot.Row{
				Place: place("11"), Purpose: bot.Final, ReplyTo: strconv.Itoa(asked.MessageID),
				Content: bot.Content{Text: "Three files", Quote: row.quote},
			})
			if err != nil {
				t.Fatal(err)
			}
			n, _ := strconv.Atoi(id)
			m, ok := w.Message(ann, n)
			if !ok || m.ReplyTo != asked.MessageID || m.Quote != row.want {
				t.Errorf("sent: %+v", m)
			}
		})
	}
}

func TestReact(t *testing.T) {
	t.Parallel()
	w := setup(t, 0)
	asked, err := w.Post(ann, ann, telegramtest.Message{Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	id := strconv.Itoa(asked.MessageID)
	for _, emoji := range []string{"👀", "👀", "👌", "", ""} {
		if err := w.client.React(t.Context(), place("11"), id, emoji); err != nil {
			t.Errorf("%q: %v", emoji, err)
		}
		if m, _ := w.Message(ann, asked.MessageID); strings.Join(m.Reactions, "") != emoji {
			t.Errorf("reactions %q, want %q", m.Reactions, emoji)
		}
	}
	business := place("11")
	business.Surface = "business"
	for name, err := range map[string]error{
		"not in the list": w.client.React(t.Context(), place("11"), id, "✅"),
		"no message":      w.client.React(t.Context(), place("11"), "999", "👀"),
		"another surface": w.client.React(t.Context(), business, id, "👀"),
	} {
		if bot.OutcomeOf(err) != bot.Refused && bot.OutcomeOf(err) != bot.Missing {
			t.Errorf("%s: %v", name, err)
		}
	}
}
