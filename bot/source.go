package bot

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Source says where an arrival came from, and thereby in which form it is stored: each source has one Decoder
// (dispatch.Parts.Decoders). Ids of arrivals are unique within a channel across all sources, so a source of our own
// puts its name before them.
type Source string

// The sources. A channel's own updates have the channel's name.
const (
	FromTelegram Source = "telegram" // an update of the Bot API
	FromTerminal Source = "terminal" // a Message (EncodeMessage)
	FromACP      Source = "acp"      // a Message, from an editor
	FromEdit     Source = "edited"   // a Message: how an edited one reads now
	FromAgain    Source = "again"    // a Message: one that is answered once more
	FromStranger Source = "stranger" // a Message: what somebody wrote before they were admitted
	FromUnheard  Source = "unheard"  // a Message without its content: one that was not for the bot
	FromSchedule Source = "schedule" // a Message: the text of a task that is due, of its owner
	FromHook     Source = "hook"     // a Message: what the call of a hook begins, of its owner
)

// Unsent reports whether nobody has just sent what arrived: it began by itself, in the name of its owner.
func (s Source) Unsent() bool { return s == FromSchedule || s == FromHook }

// ErrForeign means that an arrival was stored by another version of the program: this one does not know its source or
// the version of its form.
var ErrForeign = errors.New("another version of the program stored this")

// messageVersion is the version of the form in which a Message is stored. Adding a field keeps it; changing the meaning
// of one increments it.
const messageVersion = 1

// storedMessage is a Message with the version of its form. Version 0 was written by terminals before there were
// versions, with the same fields.
type storedMessage struct {
	Version int `json:"v"`
	Message
}

// EncodeMessage returns the stored form of a message from a source of our own.
func EncodeMessage(m *Message) ([]byte, error) {
	if err := m.validate(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(storedMessage{Version: messageVersion, Message: *m})
	if err != nil {
		return nil, fmt.Errorf("message: %w", err)
	}
	return raw, nil
}

// MessageDecoder decodes what EncodeMessage returns. The error is ErrForeign for a version that it does not know. Pure
// and safe for concurrent use.
type MessageDecoder struct{}

// Decode implements Decoder.
func (MessageDecoder) Decode(raw []byte) (Message, error) {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return Message{}, fmt.Errorf("message: %w", err)
	}
	if head.Version < 0 || head.Version > messageVersion {
		err := fmt.Errorf("message has version %d, known is %d: %w", head.Version, messageVersion, ErrForeign)
		return Message{}, err
	}
	var stored storedMessage
	if err := json.Unmarshal(raw, &stored); err != nil {
		return Message{}, fmt.Errorf("message: %w", err)
	}
	if err := stored.validate(); err != nil {
		return Message{}, err
	}
	return stored.Message, nil
}

// validate checks for what every message has.
func (m *Message) validate() error {
	if m.ID == "" || m.Kind == "" || m.Place.Channel == "" || m.Place.Chat == "" {
		return errors.New("message: id, kind, channel and chat are required")
	}
	return nil
}
