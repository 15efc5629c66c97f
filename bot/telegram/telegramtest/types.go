package telegramtest

import (
	"maps"
	"slices"
	"time"

	"github.com/go-telegram/bot/models"
)

// Button is one key of an inline keyboard.
type Button = models.InlineKeyboardButton

// Ids Telegram uses for senders that are not people (spec: Message.from of anonymous senders).
const (
	anonymousAdminID int64 = 1087968824 // GroupAnonymousBot
	channelSenderID  int64 = 136817688  // Channel_Bot
)

// User is a person, or another bot.
type User struct {
	ID                            int64
	FirstName, LastName, Username string // Username without "@"
	Language                      string // IETF tag, as in language_code
	Bot                           bool
}

// Topic is a forum topic. ID 1 is General and exists in every forum.
type Topic struct {
	ID   int
	Name string
}

// Group is a basic group, or a supergroup when its id starts with -100 (always with Forum).
type Group struct {
	ID       int64
	Title    string
	Username string // public name without "@"
	Forum    bool
	Topics   []Topic
	Members  []int64 // user ids; admins are members without being named here
	Admins   []int64 // the bot's own id makes the bot an admin
	NoBot    bool    // the bot is not in the group (yet)
}

// File is something a person sends. Data may be empty; Size, when larger, is what Telegram says the file weighs, so
// that a test can send 3 GB.
type File struct {
	Name, MIME    string
	Data          []byte
	Size          int64
	Width, Height int
	Duration      int    // seconds
	Emoji         string // sticker
	Still         []byte // video, video note, animation: its thumbnail, a JPEG
}

// Message is what a person sends: Text, or one attachment with Text as its caption.
type Message struct {
	Text     string
	Entities []models.MessageEntity // besides bot_command, mention and url, which the server finds itself
	Thread   int                    // topic; 0 or 1 is General
	ReplyTo  int                    // message id in the same chat
	Quote    string                 // the part of ReplyTo that is quoted

	Photo, Document, Voice, Audio, Video, Sticker, VideoNote, Animation *File

	Location *models.Location
	Contact  *models.Contact
	Venue    *models.Venue
	Poll     *models.Poll
	Dice     *models.Dice

	// messages with the same value are one album: 2 to 10 photos and videos, or files of one other kind
	MediaGroup    string
	ForwardOrigin *models.MessageOrigin
	ViaBot        *User
}

// Changed tells how often the text of a message was changed, and when last.
type Changed struct {
	Edited   bool      `json:"edited,omitempty"`
	EditedAt time.Time `json:"edited_at,omitzero"`
	Edits    int       `json:"edits,omitempty"`
}

// Alone is the place of a message that one person alone sees: it has no MessageID, and follows the message After.
type Alone struct {
	Ephemeral int `json:"ephemeral,omitempty"` // its id
	After     int `json:"after,omitempty"`
}

// Shown is a message as the people of the chat see it.
type Shown struct {
	Changed
	Alone
	MessageID  int                    `json:"message_id"`
	From       int64                  `json:"from"` // user id, or the bot's
	FromBot    bool                   `json:"from_bot"`
	Name       string                 `json:"name"`
	SenderChat int64                  `json:"sender_chat,omitempty"` // anonymous admin, or a channel
	Text       string                 `json:"text"`                  // or the caption
	Entities   []models.MessageEntity `json:"entities,omitempty"`
	Keyboard   [][]Button             `json:"keyboard,omitempty"`
	Thread     int                    `json:"thread,omitempty"`
	ReplyTo    int                    `json:"reply_to,omitempty"`
	Quote      string                 `json:"quote,omitempty"`
	Rich       bool                   `json:"rich,omitempty"` // a rich message; Text is its text without formatting
	Date       time.Time              `json:"date"`
	Deleted    bool                   `json:"deleted,omitempty"`
	Reactions  []string               `json:"reactions,omitempty"` // set by the bot
	Attachment *Attachment            `json:"attachment,omitempty"`
	Service    string                 `json:"service,omitempty"` // kind of a service message, e.g. "migrate_to_chat_id"
	Album      string                 `json:"album,omitempty"`   // media_group_id
}

// Attachment is the media of a message.
type Attachment struct {
	Kind   string `json:"kind"` // document, photo, voice, audio, video, sticker, location, contact
	Name   string `json:"name,omitempty"`
	MIME   string `json:"mime,omitempty"`
	FileID string `json:"file_id,omitempty"`
	Size   int64  `json:"size,omitempty"`

	Width    int `json:"width,omitempty"`
	Height   int `json:"height,omitempty"`
	Duration int `json:"duration,omitempty"` // seconds
}

// Draft is the preview sendMessageDraft shows for 30 seconds (Bot API 9.3).
type Draft struct {
	ID         int                    `json:"id"`
	Text       string                 `json:"text"` // empty: "Thinking…"
	Entities   []models.MessageEntity `json:"entities,omitempty"`
	Thread     int                    `json:"thread,omitempty"`
	CanStop    bool                   `json:"can_stop,omitempty"`
	KeepOnStop bool                   `json:"keep_on_stop,omitempty"`
	Frames     int                    `json:"frames"` // how often this draft id was written
	Until      time.Time              `json:"until"`
}

// ChatAction is a running "typing…" line.
type ChatAction struct {
	Thread int       `json:"thread,omitempty"`
	Action string    `json:"action"`
	Until  time.Time `json:"until"`
}

// CallbackAnswer is one accepted answerCallbackQuery.
type CallbackAnswer struct {
	ID        string    `json:"id"`
	User      int64     `json:"user"` // who pressed
	Chat      int64     `json:"chat"`
	Message   int       `json:"message"`
	Data      string    `json:"data"` // what was pressed
	Text      string    `json:"text,omitempty"`
	ShowAlert bool      `json:"show_alert,omitempty"`
	At        time.Time `json:"at"`
}

// Call is one method call of the bot. Secrets are not in it: the token is part of the URL only.
type Call struct {
	N      uint64 `json:"n"` // in order of arrival, from 1
	Method string `json:"method"`
	Chat   int64  `json:"chat,omitempty"` // chat_id when it is a number
	// message_id of the request, or of the message that was made
	Message    int               `json:"message,omitempty"`
	Status     int               `json:"status"` // 0: the connection was cut or left hanging
	At         time.Time         `json:"at"`
	Params     map[string]string `json:"params,omitempty"` // values as sent; JSON values as JSON text
	Error      string            `json:"error,omitempty"`  // description of the refusal
	RetryAfter int               `json:"retry_after,omitempty"`
	Executed   bool              `json:"executed"`           // it had its effect, whatever the answer was
	Fault      string            `json:"fault,omitempty"`    // kind of the fault that hit it
	Phase      string            `json:"phase,omitempty"`    // "before" or "after", in OnCall only
	Returned   int               `json:"returned,omitempty"` // getUpdates: how many updates it returned
}

// At is a location to send.
func At(latitude, longitude float64) *models.Location {
	return &models.Location{Latitude: latitude, Longitude: longitude}
}

// Card is a contact to send.
func Card(name, phone string) *models.Contact {
	return &models.Contact{FirstName: name, PhoneNumber: phone}
}

// Venue is a place with a name to send.
func Venue(title, address string, latitude, longitude float64) *models.Venue {
	return &models.Venue{Title: title, Address: address, Location: *At(latitude, longitude)}
}

// Poll is a question to send, with the number of votes that each option has.
func Poll(question string, options map[string]int) *models.Poll {
	p := &models.Poll{ID: "poll", Question: question, Type: "regular"}
	for _, text := range slices.Sorted(maps.Keys(options)) {
		p.Options = append(p.Options, models.PollOption{Text: text, VoterCount: options[text]})
		p.TotalVoterCount += options[text]
	}
	return p
}

// Dice is a thrown die to send.
func Dice(emoji string, value int) *models.Dice { return &models.Dice{Emoji: emoji, Value: value} }

// Hidden is the origin of a forwarded message whose author hides his account.
func Hidden(name string) *models.MessageOrigin {
	return &models.MessageOrigin{
		Type: models.MessageOriginTypeHiddenUser,
		MessageOriginHiddenUser: &models.MessageOriginHiddenUser{
			Type:           models.MessageOriginTypeHiddenUser,
			SenderUserName: name,
		},
	}
}
