package bot

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
)

// Purpose is why a row is sent; it decides about priority and about what is done when it is unknown whether the row
// arrived.
type Purpose string

// The purposes, in order of priority.
const (
	Final       Purpose = "final"       // an answer: repeated and marked while its outcome is unknown
	Question    Purpose = "question"    // an approval card: repeated, all copies decide the same row
	Reply       Purpose = "reply"       // reply to a command: repeated and marked while its outcome is unknown
	Record      Purpose = "record"      // edit of a card after its decision
	Notice      Purpose = "notice"      // "I will get to this …": dropped if unknown, unless it contains a file
	Placeholder Purpose = "placeholder" // ⏳ of a long answer in a group: dropped if unknown
	Toast       Purpose = "toast"       // reply to a button press: best effort, valid for seconds
)

// RowState is the state of an outbox row.
type RowState string

// States of a row: pending → sending → sent | unknown | dead. Sending is stored before the one request that cannot be
// repeated.
const (
	Pending RowState = "pending"
	Sending RowState = "sending"
	Sent    RowState = "sent"
	Unknown RowState = "unknown" // somebody waits for it; it may not have arrived, and they have not been told yet
	Dead    RowState = "dead"    // given up: nobody waits for it, or they have been told
)

// Vital reports whether somebody waits for the row: it is repeated while its outcome is unknown, and people are told if
// it is lost.
func (r *Row) Vital() bool {
	return r.Purpose == Final || r.Purpose == Reply || r.Purpose == Question ||
		(r.Purpose == Notice && r.Content.File != nil)
}

// Content is what a person sees.
type Content struct {
	Text     string          `json:"text"`
	Entities []render.Entity `json:"entities,omitempty"`
	Buttons  [][]Button      `json:"buttons,omitempty"`
	File     *File           `json:"file,omitempty"` // sent with Text as its caption
	// Instead is the text that is sent if the file is refused; "" = a general one.
	Instead string `json:"instead,omitempty"`
	// More are the other files of an album, whose first one is File: they are sent in one request, with one caption.
	More []File `json:"more,omitempty"`
	// of the reader, an IETF tag; for marks that are added on the way out
	Language string `json:"language,omitempty"`
	// Only is the id of the one person of a group whom it concerns: where the channel can show it to them
	// alone, it does. "" = everybody.
	Only string `json:"only,omitempty"`
	// Quote is the part of the message replied to (Row.ReplyTo) that is quoted, exactly as it was written there. Where
	// the channel does not find it, the reply goes out without it.
	Quote string `json:"quote,omitempty"`
	// Rich is the same in a richer form of the channel's (Bot API InputRichMessage); nil = there is none. Text and
	// Entities are what is shown where it cannot be.
	Rich json.RawMessage `json:"rich,omitempty"`
}

// AddPages adds a row of buttons that turn the pages of a list, where there is a page before or behind this one. Pages
// count from 0; data returns what a button carries that leads to page n.
func (c *Content) AddPages(before, behind string, page int, more bool, data func(n int) string) {
	var row []Button
	if page > 0 {
		row = append(row, Button{Label: before, Data: data(page - 1)})
	}
	if more {
		row = append(row, Button{Label: behind, Data: data(page + 1)})
	}
	if len(row) > 0 {
		c.Buttons = append(c.Buttons, row)
	}
}

// Button is an inline button. Data is at most 64 bytes (Bot API).
type Button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	Style string `json:"style,omitempty"` // success, danger, primary; "" = plain
	Gray  bool   `json:"gray,omitempty"`  // shown, but inactive: a decision already made
}

// Row is one thing to deliver.
type Row struct {
	ID      int64      `json:"id"` // assigned by the store, increasing
	Session SessionKey `json:"session"`
	Turn    string     `json:"turn"`
	Place   Place      `json:"place"`
	Purpose Purpose    `json:"purpose"`
	Content Content    `json:"content"`
	ReplyTo string     `json:"reply_to,omitempty"` // the message to reply to, or ReplyToRow
	Edit    string     `json:"edit,omitempty"`     // id of a message to edit instead of sending a new one
	// Row whose message is edited once it is known; if that row was never sent, this one is sent instead.
	EditRow int64  `json:"edit_row,omitempty"`
	Query   string `json:"query,omitempty"` // Toast: id of the press
	Alert   bool   `json:"alert,omitempty"` // Toast: show it as a pop-up
	// Unique if set: a second insert with the same key is ignored (retries, resumed steps).
	Key      string   `json:"key,omitempty"`
	State    RowState `json:"state"`
	Message  string   `json:"message,omitempty"` // id on the channel once sent
	Attempts int      `json:"attempts"`
	// How many requests for a new message may have arrived, although their answers were lost.
	Unconfirmed int `json:"unconfirmed,omitempty"`
	// Since when it is unknown whether it arrived: what is sent from then on is marked for the reader.
	Doubt     time.Time `json:"doubt"`
	NotBefore time.Time `json:"not_before"`
	Created   time.Time `json:"created"` // the store's time if zero
	Problem   string    `json:"problem,omitempty"`
}

// rowPrefix begins a Row.ReplyTo that names a row instead of a message.
const rowPrefix = "row:"

// ReplyToRow is a Row.ReplyTo that means the message of an earlier row of the chat, which may not be known yet: it is
// looked up when the row is sent.
func ReplyToRow(id int64) string { return rowPrefix + strconv.FormatInt(id, 10) }

// RepliedRow returns the row that a Row.ReplyTo means; ok is false if it is a message.
func RepliedRow(replyTo string) (id int64, ok bool) {
	text, ok := strings.CutPrefix(replyTo, rowPrefix)
	if !ok {
		return 0, false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	return id, err == nil
}

// RowUpdate changes a row's state; it takes effect only from one of the From states (compare and set; From must not be
// empty). For an unknown row the error is ErrNotFound.
type RowUpdate struct {
	ID          int64
	From        []RowState
	To          RowState
	Message     string // not changed if ""
	NotBefore   time.Time
	Attempts    int       // added
	Unconfirmed int       // added
	Doubt       time.Time // an earlier one is kept
	Problem     string
}

// Aside returns a reply as one that concerns nobody but the sender of a message: a refusal, or numbers of their own.
func (r Row) Aside(msg *Message) Row {
	if msg.Place.Group {
		r.Content.Only = msg.Person
	}
	return r
}
