package turn

import (
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
)

// Reply answers a command in its chat; in a group, as a reply to its message.
func (c *Call) Reply(content bot.Content) Effect {
	content.Language = c.Message.Language
	if content.Entities == nil {
		content.Text, content.Entities = render.Sentence(content.Text)
	}
	row := bot.Row{Session: c.Session, Place: c.Message.Place, Purpose: bot.Reply, Content: content}
	if row.Place.Group {
		row.ReplyTo = c.Message.Message
	}
	return Effect{Change: bot.Change{Send: []bot.Row{row}}}
}

// ReplyText is Reply with a text.
func (c *Call) ReplyText(text string) Effect { return c.Reply(bot.Content{Text: text}) }

// ReplyAside answers a command with what concerns nobody but its sender.
func (c *Call) ReplyAside(content bot.Content) Effect {
	e := c.Reply(content)
	e.Change.Send[0] = e.Change.Send[0].Aside(c.Message)
	return e
}
