package bot

import (
	"fmt"
	"strings"
)

// SessionKey is the key of a conversation: CHANNEL/BOT/SURFACE/CHAT/THREAD/PERSON, where "0" means no thread, or that
// the conversation is not one person's own. Place.SessionKey makes one, and its methods are the only code that parses
// one. It names no directory (Lane.Workspace does), and the packages below bot (tools, agent) treat it as text that
// they compare and never parse. The zero value belongs to no conversation.
//
// Keys of things other than conversations (the questions of a command) have other forms; their parts are "".
type SessionKey string

// sessionParts is the number of parts of a session's key.
const sessionParts = 6

// The parts of a key, in their order.
const (
	channelPart = iota
	botPart
	surfacePart
	chatPart
	threadPart
	personPart
)

// none is the part of a key for a thread or a person that there is not.
const none = "0"

// SessionKey returns the key of the conversation: chat, topic and, where each person of a group has one of their own,
// the person. An empty person means that everybody in the chat shares it.
func (p Place) SessionKey(person string) SessionKey {
	part := func(s string) string {
		if s == "" {
			return none
		}
		return s
	}
	return SessionKey(p.ChatKey() + "/" + part(p.Thread) + "/" + part(person))
}

// ParseSessionKey parses the key of a conversation that comes from outside the service.
func ParseSessionKey(text string) (SessionKey, error) {
	key := SessionKey(text)
	if !key.Valid() {
		return "", fmt.Errorf("%q is not the key of a session (CHANNEL/BOT/SURFACE/CHAT/THREAD/PERSON)", text)
	}
	return key, nil
}

// Valid reports whether the key is one of a conversation: it has six parts, and none of them is empty.
func (k SessionKey) Valid() bool {
	if strings.Count(string(k), "/") != sessionParts-1 {
		return false
	}
	return !strings.HasPrefix(string(k), "/") && !strings.HasSuffix(string(k), "/") &&
		!strings.Contains(string(k), "//")
}

// String returns the key as text.
func (k SessionKey) String() string { return string(k) }

// part returns one part and its offset; "" if the key does not have six parts.
func (k SessionKey) part(n int) (part string, at int) {
	if strings.Count(string(k), "/") != sessionParts-1 {
		return "", 0
	}
	rest := string(k)
	for range n {
		i := strings.IndexByte(rest, '/') + 1
		at, rest = at+i, rest[i:]
	}
	if i := strings.IndexByte(rest, '/'); i >= 0 {
		rest = rest[:i]
	}
	return rest, at
}

// Channel returns the channel of the conversation.
func (k SessionKey) Channel() string { return k.named(channelPart) }

// Chat returns the id of its chat.
func (k SessionKey) Chat() string { return k.named(chatPart) }

// Thread returns the id of its topic; "" = none.
func (k SessionKey) Thread() string { return k.absent(threadPart) }

// Person returns the id of the person that it belongs to; "" = everybody in the chat.
func (k SessionKey) Person() string { return k.absent(personPart) }

func (k SessionKey) named(n int) string {
	part, _ := k.part(n)
	return part
}

func (k SessionKey) absent(n int) string {
	part := k.named(n)
	if part == none {
		return ""
	}
	return part
}

// ChatKey returns the key of its chat (Place.ChatKey).
func (k SessionKey) ChatKey() string {
	chat, at := k.part(chatPart)
	return string(k)[:at+len(chat)]
}

// InChat reports whether the conversation is in a chat (Place.ChatKey).
func (k SessionKey) InChat(chat string) bool {
	return len(k) > len(chat) && strings.HasPrefix(string(k), chat) && k[len(chat)] == '/'
}

// Place returns where the conversation is. Place.Group is not set, since the key does not contain it. ok is false if
// the key is not one of a conversation.
func (k SessionKey) Place() (place Place, ok bool) {
	if !k.Valid() {
		return Place{}, false
	}
	place, _, ok = CutChat(string(k))
	place.Thread = k.Thread()
	return place, ok
}

// WithChat returns the key of the same conversation under another id of its chat. A key that is not one of a
// conversation is returned unchanged.
func (k SessionKey) WithChat(id string) SessionKey {
	chat, at := k.part(chatPart)
	if chat == "" || chat == id {
		return k
	}
	return k[:at] + SessionKey(id) + k[at+len(chat):]
}

// CutChat splits a key that begins with that of a chat (Place.ChatKey): it returns the chat, as a Place with only the
// fields that identify it, and the rest, "" or with its leading slash. ok is false if the key is too short to contain a
// chat.
func CutChat(key string) (place Place, rest string, ok bool) {
	for _, part := range []*string{&place.Channel, &place.Bot, &place.Surface} {
		if *part, key, ok = strings.Cut(key, "/"); !ok {
			return Place{}, "", false
		}
	}
	end := strings.IndexByte(key, '/')
	if end < 0 {
		end = len(key)
	}
	place.Chat = key[:end]
	return place, key[end:], true
}

// ScopeRange returns the bounds of the session keys that belong to a scope: a session's own key, or every session of a
// chat (Place.ChatKey). low is included, high is not.
func ScopeRange(scope string) (low, high SessionKey) {
	if strings.Count(scope, "/") >= sessionParts-1 {
		return SessionKey(scope), SessionKey(scope + "\x00")
	}
	return SessionKey(scope + "/"), SessionKey(scope + "0") // the character after the slash
}

// WorkspaceID returns a workspace id made from text, which can be the name of a directory on every system. For an id it
// returns the id itself.
func WorkspaceID(text string) string {
	id := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r == '-' {
			return r
		}
		return '_'
	}, strings.ToLower(text))
	if id == "" {
		return "none"
	}
	return id
}
