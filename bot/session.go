package bot

import (
	"fmt"
	"strings"
)

// SessionKey names a conversation: CHANNEL/BOT/SURFACE/CHAT/THREAD/PERSON, where "0" stands for no thread and for a
// conversation that no person has alone. Place.SessionKey makes one, and its methods are the only code that takes one
// apart. It names no directory (Lane.Workspace does that), and packages below bot (tools, agent) hold it as text that
// they compare and never read. The zero value belongs to no conversation.
//
// Keys that name something else than a conversation (the questions of a command) have other forms; their parts are "".
type SessionKey string

// sessionParts is how many parts a session's key has.
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

// none is what a key says for a thread or a person that is not there.
const none = "0"

// SessionKey names the conversation: chat, topic and, where each person of a group has one of their own, the person.
// person "" = it is everybody's.
func (p Place) SessionKey(person string) SessionKey {
	part := func(s string) string {
		if s == "" {
			return none
		}
		return s
	}
	return SessionKey(p.ChatKey() + "/" + part(p.Thread) + "/" + part(person))
}

// ParseSessionKey reads the key of a conversation that comes from outside of the service.
func ParseSessionKey(text string) (SessionKey, error) {
	key := SessionKey(text)
	if !key.Valid() {
		return "", fmt.Errorf("%q names no session: CHANNEL/BOT/SURFACE/CHAT/THREAD/PERSON is its form", text)
	}
	return key, nil
}

// Valid says whether the key names a conversation: it has six parts, and none of them is empty.
func (k SessionKey) Valid() bool {
	if strings.Count(string(k), "/") != sessionParts-1 {
		return false
	}
	return !strings.HasPrefix(string(k), "/") && !strings.HasSuffix(string(k), "/") && !strings.Contains(string(k), "//")
}

// String is the key as text.
func (k SessionKey) String() string { return string(k) }

// part gives one part and where it begins; "" when the key does not have six.
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

// Channel is the channel of the conversation.
func (k SessionKey) Channel() string { return k.named(channelPart) }

// Chat is the id of its chat.
func (k SessionKey) Chat() string { return k.named(chatPart) }

// Thread is the id of its topic; "" = none.
func (k SessionKey) Thread() string { return k.absent(threadPart) }

// Person is the id of the person that it belongs to; "" = everybody in the chat.
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

// ChatKey is the key of its chat (Place.ChatKey).
func (k SessionKey) ChatKey() string {
	chat, at := k.part(chatPart)
	return string(k)[:at+len(chat)]
}

// InChat says whether the conversation is in a chat (Place.ChatKey).
func (k SessionKey) InChat(chat string) bool {
	return len(k) > len(chat) && strings.HasPrefix(string(k), chat) && k[len(chat)] == '/'
}

// Place is where the conversation is; whether more than one person reads there, the key does not say. ok is false when
// it names no conversation.
func (k SessionKey) Place() (place Place, ok bool) {
	if !k.Valid() {
		return Place{}, false
	}
	place, _, ok = CutChat(string(k))
	place.Thread = k.Thread()
	return place, ok
}

// WithChat is the key of the same conversation under another id of its chat. A key that names no conversation stays as
// it is.
func (k SessionKey) WithChat(id string) SessionKey {
	chat, at := k.part(chatPart)
	if chat == "" || chat == id {
		return k
	}
	return k[:at] + SessionKey(id) + k[at+len(chat):]
}

// CutChat reads a key that begins with that of a chat (Place.ChatKey): the chat, as the part of a Place that names one,
// and what follows, "" or with its slash. ok is false when the key is too short to name a chat.
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

// ScopeRange gives the bounds of the session keys that belong to a scope: a session's own key, or every session of a
// chat (Place.ChatKey). low is part of it, high is not.
func ScopeRange(scope string) (low, high SessionKey) {
	if strings.Count(scope, "/") >= sessionParts-1 {
		return SessionKey(scope), SessionKey(scope + "\x00")
	}
	return SessionKey(scope + "/"), SessionKey(scope + "0") // the sign after the slash
}

// WorkspaceID makes an id of a workspace: what may be the name of a directory on every system. An id is made into
// itself.
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
