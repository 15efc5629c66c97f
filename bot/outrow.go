package bot

import (
	"time"

	"github.com/zephbot/zephbot/bot/render"
)

// Purpose says why a row is sent; it decides priority and what is done when nobody knows whether it arrived.
type Purpose string

// The purposes, in order of priority.
const (
	Final       Purpose = "final"       // an answer: repeated and marked while its outcome is unknown
	Question    Purpose = "question"    // an approval card: repeated, all copies decide the same row
	Reply       Purpose = "reply"       // answer to a command: repeated and marked while its outcome is unknown
	Record      Purpose = "record"      // edit of a card after its decision
	Notice      Purpose = "notice"      // "I will get to this …": dropped when unknown, unless it brings a file
	Placeholder Purpose = "placeholder" // ⏳ of a long answer in a group: dropped when unknown
	Toast       Purpose = "toast"       // answer to a button press: best effort, valid for seconds
)

// RowState is the state of an outbox row.
type RowState string

// The life of a row: pending → sending → sent | unknown | dead. Sending is stored before the one request that cannot be
// repeated.
const (
	Pending RowState = "pending"
	Sending RowState = "sending"
	Sent    RowState = "sent"
	Unknown RowState = "unknown" // somebody waits for it, it may not have arrived, and they have not been told yet
	Dead    RowState = "dead"    // given up: nobody waits for it, or they were told
)

// Vital says that somebody waits for the row: it is repeated while its outcome is unknown, and its loss is told.
func (r *Row) Vital() bool {
	return r.Purpose == Final || r.Purpose == Reply || r.Purpose == Question || (r.Purpose == Notice && r.Content.File != nil)
}

// Content is what a person will see.
type Content struct {
	Text     string          `json:"text"`
	Entities []render.Entity `json:"entities,omitempty"`
	Buttons  [][]Button      `json:"buttons,omitempty"`
	File     *File           `json:"file,omitempty"` // sent with Text as its caption
	// of the reader, an IETF tag; for marks that are added on the way out
	Language string `json:"language,omitempty"`
	// Only is the id of the one person of a group whom it concerns: where the channel can show it to them alone, it does.
	// "" = everybody.
	Only string `json:"only,omitempty"`
}

// Button is an inline button. Data is at most 64 bytes (Bot API).
type Button struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	Style string `json:"style,omitempty"` // success, danger, primary; "" = plain
	Gray  bool   `json:"gray,omitempty"`  // shown but dead: a decision already made
}

// Row is one thing to deliver.
type Row struct {
	ID      int64      `json:"id"` // given by the store, increasing
	Session SessionKey `json:"session"`
	Turn    string     `json:"turn"`
	Place   Place      `json:"place"`
	Purpose Purpose    `json:"purpose"`
	Content Content    `json:"content"`
	ReplyTo string     `json:"reply_to,omitempty"` // message to answer, in groups
	Edit    string     `json:"edit,omitempty"`     // message id to edit instead of sending
	// row whose message is edited once it is known; when that row never got out, it is replaced by a send
	EditRow int64  `json:"edit_row,omitempty"`
	Query   string `json:"query,omitempty"` // Toast: id of the press
	Alert   bool   `json:"alert,omitempty"` // Toast: as a pop-up
	// unique when set: a second insert with the same key is ignored (retries, resumed steps)
	Key      string   `json:"key,omitempty"`
	State    RowState `json:"state"`
	Message  string   `json:"message,omitempty"` // id on the channel once sent
	Attempts int      `json:"attempts"`
	// since when nobody knows whether it arrived: what is sent from then on is marked for the reader
	Doubt     time.Time `json:"doubt"`
	NotBefore time.Time `json:"not_before"`
	Created   time.Time `json:"created"` // by the clock of the store when zero
	Problem   string    `json:"problem,omitempty"`
}

// RowUpdate moves a row on; it takes effect only from one of the From states (compare and set, From must not be empty).
// An unknown row is ErrNotFound.
type RowUpdate struct {
	ID        int64
	From      []RowState
	To        RowState
	Message   string // kept when ""
	NotBefore time.Time
	Attempts  int       // added
	Doubt     time.Time // the first one stays
	Problem   string
}
