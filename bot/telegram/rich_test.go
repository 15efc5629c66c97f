package telegram_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const withTable = "# Files\n|name|size|\n|-|-:|\n|a|1|\n\nso $x_1$"

// rich is a client that sends rich messages.
func rich(t *testing.T) (*world, *telegram.Client) {
	t.Helper()
	w := setup(t, 0)
	return w, newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url, Rich: true})
}

// sendAll sends an answer in private and returns whether it is a rich message, and how many requests it took.
func sendAll(t *testing.T, w *world, c *telegram.Client, markdown string) (isRich bool, requests int) {
	t.Helper()
	list := c.Compose(markdown, place("11"), "en")
	if len(list) != 1 {
		t.Fatalf("%d messages", len(list))
	}
	before := len(w.Calls())
	id, err := c.Send(t.Context(), &bot.Row{Place: place("11"), Purpose: bot.Final, Content: list[0]})
	if err != nil {
		t.Fatal(err)
	}
	requests = len(w.Calls()) - before
	for _, m := range w.Chat(ann) {
		if fmt.Sprint(m.MessageID) == id {
			if !strings.Contains(m.Text, "Files") {
				t.Errorf("it says %q", m.Text)
			}
			return m.Rich, requests
		}
	}
	t.Fatal("no such message")
	return false, 0
}

func TestRichMessages(t *testing.T) {
	t.Parallel()
	check := func(t *testing.T, w *world, c *telegram.Client, markdown string, wantRich bool, wantRequests int) {
		t.Helper()
		if isRich, n := sendAll(t, w, c, markdown); isRich != wantRich || n != wantRequests {
			t.Errorf("rich: %t after %d requests, want %t after %d", isRich, n, wantRich, wantRequests)
		}
	}
	t.Run("asked for", func(t *testing.T) {
		t.Parallel()
		w, c := rich(t)
		check(t, w, c, withTable, true, 1)
		check(t, w, c, "the Files", false, 1)
		check(t, w, w.client, withTable, false, 1) // not asked for
	})
	t.Run("an older server", func(t *testing.T) {
		t.Parallel()
		w, c := rich(t)
		w.NoRich()
		check(t, w, c, withTable, false, 2)
		check(t, w, c, withTable, false, 1) // it is remembered
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		w, c := rich(t)
		w.AddFault(telegramtest.Fault{Method: "sendRichMessage", Kind: telegramtest.Fault400, Description: "Bad Request: RICH_MESSAGE_INVALID", Count: 1})
		check(t, w, c, withTable, false, 2)
		check(t, w, c, withTable, false, 1)
	})
	t.Run("unknown outcome", func(t *testing.T) { // nothing else is sent
		t.Parallel()
		w, c := rich(t)
		w.AddFault(telegramtest.Fault{Method: "sendRichMessage", Kind: telegramtest.FaultCut, Count: 1})
		before := len(w.Calls())
		_, err := c.Send(t.Context(), &bot.Row{Place: place("11"), Purpose: bot.Final, Content: c.Compose(withTable, place("11"), "en")[0]})
		if n := len(w.Calls()) - before; bot.OutcomeOf(err) != bot.Vague || n != 1 {
			t.Errorf("%d requests, %v", n, err)
		}
	})
	t.Run("a quotation that is not found", func(t *testing.T) {
		t.Parallel()
		w, c := rich(t)
		asked, err := w.Post(ann, ann, telegramtest.Message{Text: "hello"})
		if err != nil {
			t.Fatal(err)
		}
		content := c.Compose(withTable, place("11"), "en")[0]
		content.Quote = "bye"
		if _, err := c.Send(t.Context(), &bot.Row{
			Place: place("11"), Purpose: bot.Final, ReplyTo: fmt.Sprint(asked.MessageID), Content: content,
		}); err != nil {
			t.Fatal(err)
		}
		check(t, w, c, withTable, true, 1) // the form was not at fault
	})
	t.Run("longer than a message", func(t *testing.T) {
		t.Parallel()
		_, c := rich(t)
		for _, content := range c.Compose(withTable+strings.Repeat("\n\nword", 1000), place("11"), "en") {
			if content.Rich != nil {
				t.Errorf("a part is rich: %s", content.Rich)
			}
		}
	})
}

// The server takes every kind of block that an answer can have.
func TestRichBlocksAreAccepted(t *testing.T) {
	t.Parallel()
	w, c := rich(t)
	for i, markdown := range []string{
		"# Files **b** _i_ ~~s~~ ||p|| `c` [l](https://x.org) <https://y.org> $x$",
		"Files\n- [x] a\n  1. b\n     > c\n- [ ] d\n  ```go\n  x\n  ```",
		"Files\n$$\na\n$$\n\n---\n\n|a|b|\n|:-:|-|\n|**x**||\n|1|2|3|",
		"# Files\n-\n- a\n\n<div>x</div>\n\n[r]: https://x.org",
		"# Files\n\n![](https://x.org/a.png) [a](javascript:x)",
	} {
		if isRich, n := sendAll(t, w, c, markdown); !isRich || n != 1 {
			t.Errorf("%d: rich %t after %d requests: %s", i, isRich, n, c.Compose(markdown, place("11"), "en")[0].Rich)
		}
	}
}

// The fake refuses what Telegram would refuse.
func TestTheFakeIsStrictAboutRichMessages(t *testing.T) {
	t.Parallel()
	w, c := rich(t)
	deep := `{"type":"paragraph","text":"a"}`
	for range 17 {
		deep = `{"type":"blockquote","blocks":[` + deep + `]}`
	}
	row := `[` + strings.TrimSuffix(strings.Repeat(`{"align":"left","valign":"top"},`, 21), ",") + `]`
	for name, blocks := range map[string]string{
		"no blocks": "", "nothing to see": `{"type":"divider"}`, "too deep": deep,
		"too long":         `{"type":"paragraph","text":"` + strings.Repeat("a", 32769) + `"}`,
		"too many":         strings.TrimSuffix(strings.Repeat(`{"type":"paragraph","text":"a"},`, 501), ","),
		"too wide":         `{"type":"table","cells":[` + row + `]}`,
		"unknown kind":     `{"type":"haiku","text":"a"}`,
		"unknown field":    `{"type":"paragraph","text":"a","colour":"red"}`,
		"a wrong field":    `{"type":"paragraph","text":"a","size":1}`,
		"no size":          `{"type":"heading","text":"a"}`,
		"unknown span":     `{"type":"paragraph","text":{"type":"loud","text":"a"}}`,
		"link to nowhere":  `{"type":"paragraph","text":{"type":"url","text":"a","url":"x"}}`,
		"item of nothing":  `{"type":"list","items":[{"blocks":[]}]}`,
		"cells of nothing": `{"type":"table","cells":[[{"text":"a"}]]}`,
	} {
		raw := json.RawMessage(`{"blocks":[` + blocks + `]}`)
		before := len(w.Calls())
		_, err := c.Send(t.Context(), &bot.Row{Place: place("11"), Content: bot.Content{Text: "plain", Rich: raw}})
		if n := len(w.Calls()) - before; n != 2 || err != nil {
			t.Errorf("%s: %d requests, %v", name, n, err)
		}
		c = newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url, Rich: true}) // one that remembers no refusal
	}
}
