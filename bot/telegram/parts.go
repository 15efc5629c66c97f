package telegram

import (
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

// PartsWords are the sentences of an answer that has more parts than may be sent. size is that of the whole answer, in
// bytes. They are Markdown.
type PartsWords interface {
	// Beginning is the first paragraph: only the beginning follows, and then a file with everything.
	Beginning(language string, size int64) string
	// WholeAnswer is the caption of that file.
	WholeAnswer(language string, size int64) string
	// NoRest is said instead of the file where a chat takes none.
	NoRest(language string) string
}

// Compose implements bot.Composer.
func (c *Client) Compose(markdown string, to bot.Place, language string) []bot.Content {
	parts := c.opts.Folding.Markdown(markdown)
	if len(parts) > c.opts.MaxParts && c.opts.MaxParts > 0 && !to.Guest() { // a guest sends only the first one
		return c.shortened(markdown, language)
	}
	list := contents(parts)
	if c.opts.Rich && len(list) == 1 { // what fits into one message can be sent as text too
		if rich, ok := render.Rich(markdown); ok {
			list[0].Rich = rich
		}
	}
	return list
}

// shortened returns the beginning of an answer, which says so, and a file with all of it: as many messages as may be
// sent. The file is in its row, so that it is stored with the messages.
func (c *Client) shortened(markdown, language string) []bot.Content {
	words, size := c.opts.Words, int64(len(markdown))
	beginning := c.opts.Folding.Markdown(words.Beginning(language, size) + "\n\n" + markdown)
	list := contents(beginning[:c.opts.MaxParts-1])
	return append(list, bot.Content{
		Text:    words.WholeAnswer(language, size),
		File:    &bot.File{Name: "answer.txt", Type: "text/plain", Data: []byte(markdown)},
		Instead: words.NoRest(language),
	})
}

func contents(parts []render.Message) []bot.Content {
	var list []bot.Content
	for _, m := range parts {
		list = append(list, bot.Content{Text: m.Text, Entities: m.Entities})
	}
	return list
}
