// Package privacy gives people what is stored about them, and erases it.
//
// A Place is somewhere that personal data is stored, and does both for what is there. The tables of the database are
// places too: a row belongs to a person, mentions them, or does neither, which is decided row by row from its content
// (Subject). Erasing is a job that is stored as a fact with what is done already, so that it is finished wherever it
// was interrupted, and repeats nothing that would count twice.
package privacy

import (
	"errors"
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot"
)

// Person is somebody on a channel.
type Person struct {
	Channel string `json:"channel"` // "telegram", "terminal"
	ID      string `json:"id"`      // on the channel
}

// Channels on which there are people.
const (
	telegram = "telegram"
	terminal = "terminal"
)

// errPerson marks texts that name nobody.
var errPerson = errors.New("not the id of a person")

// ParsePerson reads a caller id: telegram:42, a number for telegram:…, or terminal:local.
func ParsePerson(text string) (Person, error) {
	channel, id, ok := strings.Cut(strings.TrimSpace(text), ":")
	if !ok {
		channel, id = telegram, channel
	}
	wrong := func(why string) (Person, error) {
		return Person{}, fmt.Errorf("%q is %w: %s", text, errPerson, why)
	}
	switch {
	case channel == telegram && strings.HasPrefix(id, "-"):
		return wrong("negative numbers are groups, and a group is nobody")
	case channel == telegram &&
		(id == "" || strings.Trim(id, "0123456789") != "" || strings.HasPrefix(id, "0") || len(id) > 19):
		return wrong("on Telegram it is a number, such as telegram:42; a @name can change its owner and does not do")
	case channel == terminal && (id == "" || strings.ContainsAny(id, "/\x00 ")):
		return wrong("at the terminal it is terminal:local, unless --caller says otherwise")
	case channel != telegram && channel != terminal:
		return wrong("there are telegram:NUMBER and terminal:local")
	}
	return Person{Channel: channel, ID: id}, nil
}

// personOf returns the sender of a message; false if nobody may act in it.
func personOf(msg *bot.Message) (Person, bool) {
	return Person{Channel: msg.Place.Channel, ID: msg.Person}, msg.Caller != "" && msg.Person != "" && !msg.FromBot
}

// Caller returns the caller id.
func (p Person) Caller() string { return p.Channel + ":" + p.ID }

// Owns reports whether a conversation is the person's alone: in their private chat, their own in a group, or any at the
// terminal, where there is nobody else.
func (p Person) Owns(session bot.SessionKey) bool {
	switch {
	case session.Channel() != p.Channel:
		return false
	case p.Channel == terminal:
		return true
	}
	return session.Person() == p.ID || session.Chat() == p.ID
}

// private reports whether a chat is the person's private chat.
func (p Person) private(channel, chat string) bool {
	return channel == p.Channel && (chat == p.ID || channel == terminal)
}

// inKey reports whether a key has the person's id, or caller id, as one of its parts.
func (p Person) inKey(key string) bool {
	key = "/" + key + "/"
	return strings.Contains(key, "/"+p.ID+"/") || strings.Contains(key, "/"+p.Caller()+"/")
}

// named reports whether a text contains the person's caller id, or their id as a word of its own.
func (p Person) named(text string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], p.ID)
		if at < 0 {
			return false
		}
		at += from
		end := at + len(p.ID)
		if (at == 0 || !continuesWord(text[at-1])) && (end == len(text) || !continuesWord(text[end])) {
			return true
		}
		from = end
	}
}

// continuesWord reports whether a byte continues a number or a name: what is next to it is not an id of its own.
func continuesWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' ||
		c >= 'A' && c <= 'Z' || c == '-' || c == '_' || c == '.' || c >= 0x80
}
