package telegramtest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"
)

// Kept is a message with everything the server knows about it, for a server that is to go on where another one ended.
type Kept struct {
	Body      models.Message `json:"body"`
	Date      time.Time      `json:"date"`
	EditedAt  time.Time      `json:"edited_at,omitzero"`
	Edits     int            `json:"edits,omitempty"`
	Deleted   bool           `json:"deleted,omitempty"`
	Plain     bool           `json:"plain,omitempty"` // a text, not media with a caption
	Reactions []string       `json:"reactions,omitempty"`
	After     int            `json:"after,omitempty"` // ephemeral: id of the message before it
}

// Keep returns all messages of a chat, those that one person alone sees included, for Restore.
func (s *Server) Keep(chatID int64) []Kept {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	out := make([]Kept, 0, len(c.order)+len(c.alone))
	for _, m := range slices.Concat(c.order, c.alone) {
		out = append(out, Kept{
			Body: m.body, Date: m.date, EditedAt: m.editedAt, Edits: m.edits, Deleted: m.deleted, Plain: m.plain,
			Reactions: slices.Clone(m.reactions), After: m.after,
		})
	}
	return out
}

// Restore puts messages of Keep into a chat that has none, with the ids they had. The bot is not told about them. Files
// and topics have to be restored before. The first message that no server can have made is an error.
func (s *Server) Restore(chatID int64, kept []Kept) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return misusef("restore: no chat %d", chatID)
	}
	for i := range kept {
		if err := s.restore(c, &kept[i]); err != nil {
			return err
		}
	}
	s.touch()
	return nil
}

// restore puts one message back. The lock is held.
func (s *Server) restore(c *chat, k *Kept) error {
	if err := s.possible(k); err != nil {
		return err
	}
	body := k.Body
	body.Chat = c.info
	m := &message{
		body: body, date: k.Date, editedAt: k.EditedAt, edits: k.Edits, deleted: k.Deleted, plain: k.Plain,
		reactions: slices.Clone(k.Reactions), after: k.After,
	}
	switch {
	case body.EphemeralMessageID != 0:
		c.alone = append(c.alone, m)
		return nil
	case body.ID != c.lastID+1:
		return misusef("restore: message %d cannot follow message %d", body.ID, c.lastID)
	case body.IsTopicMessage && c.topics[body.MessageThreadID] == nil:
		return misusef("restore: message %d is in a topic %d that there is not", body.ID, body.MessageThreadID)
	}
	c.messages[body.ID] = m
	c.order = append(c.order, m)
	c.lastID = body.ID
	return nil
}

// possible refuses what no person and no bot can have sent. The lock is held.
func (s *Server) possible(k *Kept) error {
	b := &k.Body
	from := b.From
	switch {
	case from == nil || from.ID != s.me.ID && s.users[from.ID].ID == 0:
		return misusef("restore: nobody that is known wrote message %d", b.ID)
	case k.Date.IsZero():
		return misusef("restore: message %d has no date", b.ID)
	}
	for _, part := range []struct {
		text     string
		entities []models.MessageEntity
	}{{b.Text, b.Entities}, {b.Caption, b.CaptionEntities}} {
		if fail := checkEntities(part.text, part.entities); fail != nil {
			return misusef("restore: message %d: %s", b.ID, fail.text)
		}
	}
	if a := attachment(*b); a != nil && a.FileID != "" && s.files[a.FileID] == nil {
		return misusef("restore: the file %q of message %d is missing", a.FileID, b.ID)
	}
	return nil
}

// KeptFile is a file with everything the server knows about it but its bytes.
type KeptFile struct {
	ID     string `json:"id"`
	Unique string `json:"unique"`
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	MIME   string `json:"mime,omitempty"`
	Size   int64  `json:"size"`
}

// Files lists everything that was sent or uploaded, for RestoreFile. FileData has the bytes.
func (s *Server) Files() []KeptFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]KeptFile, 0, len(s.files))
	for _, f := range s.files {
		out = append(out, KeptFile{
			ID: f.id, Unique: f.unique, Path: f.path, Kind: f.kind, Name: f.name, MIME: f.mime, Size: f.size,
		})
	}
	slices.SortFunc(out, func(a, b KeptFile) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// RestoreFile makes a file of Files known again. Links that getFile gave are no longer good.
func (s *Server) RestoreFile(f KeptFile, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var n int
	if _, err := fmt.Sscanf(f.Unique, "U%d", &n); err != nil || f.ID == "" || s.files[f.ID] != nil {
		return misusef("restore: %q with the number %q is no file that can be added", f.ID, f.Unique)
	}
	s.fileCount = max(s.fileCount, n) // ids given later must differ
	s.files[f.ID] = &stored{
		id: f.ID, unique: f.Unique, path: f.Path, kind: f.Kind, name: f.Name, mime: f.MIME, data: data, size: f.Size,
	}
	return nil
}

// RestoreTopics adds the topics that a forum does not have yet.
func (s *Server) RestoreTopics(chatID int64, topics []Topic) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || !c.info.IsForum {
		return misusef("restore: chat %d is no forum", chatID)
	}
	for _, t := range topics {
		if old := c.topics[t.ID]; old != nil {
			old.Name = t.Name
			continue
		}
		c.addTopic(t)
	}
	return nil
}
