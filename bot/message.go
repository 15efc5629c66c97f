// Package bot carries messages to the agent and answers back to people: inbox, lanes, dispatcher, outbox. It
// knows the API of no vendor; a Channel does. Anything that a person would miss is in the Store before it takes effect.
package bot

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
)

// Kind is what arrived.
type Kind string

// The kinds of arrivals. One that the channel does not understand is Ignored: stored, counted, finished.
const (
	Text     Kind = "text"    // a message (a caption or an attachment counts)
	Press    Kind = "press"   // a button
	StopTap  Kind = "stop"    // the Stop button of a draft
	Member   Kind = "member"  // the bot was added, removed, blocked or unblocked
	Migrated Kind = "migrate" // a group got a new id: Message.Target is the new chat
	Edited   Kind = "edited"  // an earlier message was changed
	// A person has connected the bot to their business account, or disconnected it: Message.Target is the connection.
	Connection Kind = "connection"
	Ignored    Kind = "ignored"
)

// Place is where a message was written and where its answer is sent.
type Place struct {
	Channel string `json:"channel"`          // "telegram", "terminal"
	Bot     string `json:"bot"`              // the bot's own id on the channel
	Surface string `json:"surface"`          // SurfaceBot, SurfaceGuest or that of a business account
	Chat    string `json:"chat"`             // chat id as text
	Thread  string `json:"thread,omitempty"` // topic id; "" = none
	Group   bool   `json:"group,omitempty"`  // more than one person reads
}

// ChatKey returns the key of the chat without its topic, for send budgets, order of delivery and quotas of chats.
func (p Place) ChatKey() string {
	return strings.Join([]string{p.Channel, p.Bot, p.Surface, p.Chat}, "/")
}

// Message is a decoded arrival.
type Message struct {
	// The channel's id of the arrival (update id); with Channel and Bot it identifies duplicates.
	ID    string `json:"id"`
	Kind  Kind   `json:"kind"`
	Place Place  `json:"place"`
	// "telegram:42"; "" = nobody who may act (channel identities, service messages)
	Caller   string `json:"caller"`
	Person   string `json:"person"`             // id of the person on the channel, "42"
	Name     string `json:"name,omitempty"`     // display name, chosen by its owner: untrusted
	Called   string `json:"-"`                  // with the id, if others have the same name (turn.Verdict); "" = as Name
	Username string `json:"username,omitempty"` // without @
	// IETF tag: the language that the person has chosen, or the one that their client states
	Language string `json:"language,omitempty"`
	Told     string `json:"-"`                  // what the client states, where the person has chosen another one
	Title    string `json:"title,omitempty"`    // of the group: chosen by its members, untrusted
	FromBot  bool   `json:"from_bot,omitempty"` // Caller is another bot
	Text     string `json:"text,omitempty"`
	// "clear" of "/clear@bot now"; "" = none, or meant for another bot
	Command string `json:"command,omitempty"`
	Args    string `json:"args,omitempty"` // what follows the command
	// Id of the message on the channel: the one to reply to, or the one with the button. Of a guest's
	// question, the id to answer it with.
	Message string       `json:"message,omitempty"`
	Reply   *Quote       `json:"reply,omitempty"`
	Files   []Attachment `json:"files,omitempty"`
	Data    string       `json:"data,omitempty"`  // of a pressed button
	Query   string       `json:"query,omitempty"` // id to answer a press with
	// Shown, of a press: the channel says that the message has this button, so that nobody made it up.
	Shown bool `json:"shown,omitempty"`
	// Unplaced, of a press: the channel says neither in which message the button was nor where that is. Place is the
	// person's own chat.
	Unplaced bool `json:"unplaced,omitempty"`
	// Unnamed: somebody wrote in the name of the group or of a channel, so that nobody knows who.
	Unnamed bool   `json:"unnamed,omitempty"`
	Target  string `json:"target,omitempty"` // new chat id of a migration
	// of Member: joined, left, blocked, unblocked; of Connection: connected, mute, disconnected
	Status string `json:"status,omitempty"`
	// somebody else's message that was passed on; people forward several at once
	Forwarded bool `json:"forwarded,omitempty"`
	// Hook is the hook whose call this is: Text has the words of its prompt and, quoted, what the caller sent; "" = none
	Hook string `json:"hook,omitempty"`
	// in a group: meant for the bot (mention, reply, command); always true in private
	Addressed bool `json:"addressed"`
	// The messages that this one was put together from, in order; none = it is as it came.
	Heard []journal.Heard `json:"heard,omitempty"`
	At    time.Time       `json:"at"`
}

// Signature returns what others are told of who wrote a message: the name, with the id if it does not tell who, or the
// caller id.
func (m *Message) Signature() string { return cmp.Or(m.Called, m.Name, m.Caller) }

// Quote is the message that was replied to: an untrusted quotation that never gives access to another session.
type Quote struct {
	ID     string `json:"id"`
	Author string `json:"author"`
	Caller string `json:"caller,omitempty"` // who that is, as in Message.Caller; "" = not known
	Own    bool   `json:"own"`              // written by this bot
	Text   string `json:"text"`
	// Elsewhere: it was written in another chat or topic than the reply. Chat is its title, "" = not told.
	Elsewhere bool   `json:"elsewhere,omitempty"`
	Chat      string `json:"chat,omitempty"`
	// Files are what came with it: read like those of the reply, and paid by who replies.
	Files []Attachment `json:"files,omitempty"`
}

// The kinds of attachments that have a content, as people call them. What else there is, a place or a poll, is said in
// Note.
const (
	Photo     = "photo"
	Document  = "document"
	Voice     = "voice message"
	Audio     = "audio file"
	Video     = "video"
	VideoNote = "video message"
	Animation = "animation"
)

// Part is the kind of what came along, for the model.
func (a *Attachment) Part() llm.PartKind {
	switch {
	case a.MIME != "":
		return llm.KindOfType(a.MIME)
	case a.Kind == Photo:
		return llm.ImagePart
	case a.ID == "": // nothing to download: a place, a contact, a poll
		return llm.TextPart
	default:
		return llm.FilePart
	}
}

// Attachment is a file that was sent with a message.
type Attachment struct {
	Kind string `json:"kind"`         // one of the kinds above, or what people call it: location, contact, poll
	ID   string `json:"id,omitempty"` // by which the channel gives the content; "" = there is none
	Name string `json:"name,omitempty"`
	MIME string `json:"mime,omitempty"`
	Size int64  `json:"size,omitempty"` // bytes; 0 = unknown
	Note string `json:"note,omitempty"` // what can be said in words: "52.5, 13.4", a sticker's emoji
	// Seconds is how long a recording lasts; 0 = it is none, or unknown
	Seconds int `json:"seconds,omitempty"`
	// Album is the id that the messages of one album share (Bot API Message.media_group_id); "" = it came alone
	Album string `json:"album,omitempty"`
	// Still is the picture that stands for what cannot be read itself: a frame of a video, what a sticker looks like;
	// "" = there is none
	Still string `json:"still,omitempty"`
}

// HasFiles reports whether something has to be read before a turn begins: what came with the message, or with the one
// that it replies to.
func (m *Message) HasFiles() bool {
	return len(m.Files) > 0 || m.Reply != nil && slices.ContainsFunc(m.Reply.Files, func(a Attachment) bool {
		return a.ID != "" || a.Still != ""
	})
}

// Album is the id of the album that a message belongs to; "" = none.
func (m *Message) Album() string {
	for i := range m.Files {
		if m.Files[i].Album != "" {
			return m.Files[i].Album
		}
	}
	return ""
}
