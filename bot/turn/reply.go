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

// ShowCard puts a card in place of the one whose button was pressed, and answers the press.
func (c *Call) ShowCard(toast bot.Row, content bot.Content) Effect {
	msg := c.Message
	row := bot.Row{Session: c.Session, Place: msg.Place, Purpose: bot.Record, Edit: msg.Message, Content: content}
	if msg.Message == "" {
		row.Purpose = bot.Reply
	}
	return Effect{Change: bot.Change{Send: []bot.Row{toast, row}}}
}

// Toast answers a press with a text; "" with none.
func (c *Call) Toast(text string) bot.Row {
	return bot.Row{
		Place: c.Message.Place, Purpose: bot.Toast, Query: c.Message.Query, Content: bot.Content{Text: text},
	}
}

// PopUp answers a press with a text that has to be closed.
func (c *Call) PopUp(text string) Effect {
	row := c.Toast(text)
	row.Alert = true
	return Effect{Change: bot.Change{Send: []bot.Row{row}}}
}
