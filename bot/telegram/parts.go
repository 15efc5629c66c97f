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
		return c.shortenedContents(markdown, language)
	}
	list := contentsOf(parts)
	if c.opts.Rich && len(list) == 1 { // what fits into one message can be sent as text too
		if rich, ok := render.Rich(markdown); ok {
			list[0].Rich = rich
		}
	}
	return list
}

// Divide implements bot.Composer.
func (c *Client) Divide(content bot.Content, to bot.Place, language string) []bot.Content {
	if content.File != nil || len(content.Rich) > 0 || to.Guest() || render.Length(content.Text) <= render.MaxLength {
		return []bot.Content{content}
	}
	text := render.Message{Text: content.Text, Entities: content.Entities}
	parts := render.Split(text)
	list := contentsOf(parts)
	if len(parts) > c.opts.MaxParts && c.opts.MaxParts > 0 {
		lead := render.Markdown(c.opts.Words.Beginning(language, int64(len(content.Text))))[0]
		list = c.wholeContents(render.Split(lead.Above(text)), content.Text, language)
	}
	last := 0
	for i := range list {
		list[i].Only, list[i].Language = content.Only, content.Language
		if list[i].File == nil {
			last = i
		}
	}
	list[0].Quote, list[last].Buttons = content.Quote, content.Buttons
	return list
}

// shortenedContents returns the beginning of an answer, which says so, and a file with all of it.
func (c *Client) shortenedContents(markdown, language string) []bot.Content {
	lead := c.opts.Words.Beginning(language, int64(len(markdown)))
	return c.wholeContents(c.opts.Folding.Markdown(lead+"\n\n"+markdown), markdown, language)
}

// wholeContents returns as many messages as may be sent: the first parts of a text, and a file with all of it. The file
// is in its row, so that it is stored with the messages.
func (c *Client) wholeContents(parts []render.Message, text, language string) []bot.Content {
	words := c.opts.Words
	return append(contentsOf(parts[:c.opts.MaxParts-1]), bot.Content{
		Text:    words.WholeAnswer(language, int64(len(text))),
		File:    &bot.File{Name: "answer.txt", Type: "text/plain", Data: []byte(text)},
		Instead: words.NoRest(language),
	})
}

func contentsOf(parts []render.Message) []bot.Content {
	var list []bot.Content
	for _, m := range parts {
		list = append(list, bot.Content{Text: m.Text, Entities: m.Entities})
	}
	return list
}
