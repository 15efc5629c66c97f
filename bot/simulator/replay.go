package simulator

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// pressLife is how long Telegram keeps a press that nobody has fetched (telegram-bot-api Client.cpp).
const pressLife = 150 * time.Second

// placeholder is the text of a message until its edit is replayed.
const placeholder = "…"

// replay rebuilds a stored world in a new one by repeating all actions with the clock turned back. The ids come out the
// same, and anything that the Bot API would not accept is found here and not later.
type replay struct {
	w    *world
	m    *memory
	disk *store
}

func (r *replay) run(ctx context.Context) error {
	r.w.silent.Store(true)
	defer func() {
		r.w.past.Store(nil)
		r.w.silent.Store(false)
	}()
	// The bot has received all this once: nothing of it becomes an update again.
	if err := r.call(ctx, "getUpdates", map[string]any{"allowed_updates": []string{"poll"}, "timeout": 0}); err != nil {
		return err
	}
	for _, e := range r.messages() {
		r.w.past.Store(&e.m.Date)
		if err := r.message(ctx, e.chat, e.m); err != nil {
			return fmt.Errorf("chat %d, message %d: %w", e.chat, e.m.MessageID, err)
		}
	}
	if err := r.pushes(ctx); err != nil {
		return err
	}
	if err := r.changes(ctx); err != nil {
		return err
	}
	r.w.past.Store(nil)
	if err := r.call(ctx, "getUpdates", map[string]any{"allowed_updates": []string{}, "timeout": 0}); err != nil {
		return err
	}
	return r.rest()
}

type entry struct {
	chat int64
	m    *telegramtest.Shown
}

// messages returns all messages in the order in which they were written.
func (r *replay) messages() []entry {
	var all []entry
	for chat, list := range r.m.Chats {
		for i := range list {
			all = append(all, entry{chat, &list[i]})
		}
	}
	slices.SortStableFunc(all, func(a, b entry) int {
		if a.chat == b.chat {
			return cmp.Compare(a.m.MessageID, b.m.MessageID)
		}
		return cmp.Or(a.m.Date.Compare(b.m.Date), cmp.Compare(a.chat, b.chat))
	})
	return all
}

func (r *replay) message(ctx context.Context, chat int64, m *telegramtest.Shown) error {
	var got int
	var err error
	switch {
	case m.Service == "forum_topic_created" && !m.FromBot:
		name := ""
		for _, t := range r.m.Topics {
			if t.ID == m.MessageID {
				name = t.Name
			}
		}
		got, err = r.w.fake.StartTopic(m.From, chat, name)
	case m.Service != "":
		return fmt.Errorf("cannot repeat a service message %q", m.Service)
	case m.FromBot:
		got, err = r.bot(ctx, chat, m)
	default:
		got, err = r.person(chat, m)
	}
	if err != nil {
		return err
	}
	if got != m.MessageID {
		return fmt.Errorf("it was created as %d", got)
	}
	return nil
}

// person writes a person's message again.
func (r *replay) person(chat int64, m *telegramtest.Shown) (int, error) {
	out := telegramtest.Message{Text: first(m), Thread: m.Thread, ReplyTo: m.ReplyTo, Quote: m.Quote}
	if m.Attachment != nil {
		info, data, err := r.file(m.Attachment)
		if err != nil {
			return 0, err
		}
		out.Document = &telegramtest.File{Name: info.Name, MIME: info.MIME, Data: data, Size: m.Attachment.Size}
	}
	said, err := r.w.fake.Post(m.From, chat, out)
	return said.MessageID, err
}

// first returns the text that a message had before its edits, which is not known.
func first(m *telegramtest.Shown) string {
	if m.Edited {
		return placeholder
	}
	return m.Text
}

func (r *replay) file(a *telegramtest.Attachment) (fileInfo, []byte, error) {
	info, ok := r.m.Files[a.FileID]
	if !ok {
		return info, nil, fmt.Errorf("the file %q is not stored", a.FileID)
	}
	data, err := r.disk.bytes(info.Sum)
	return info, data, err
}

// bot creates the bot's message again.
func (r *replay) bot(ctx context.Context, chat int64, m *telegramtest.Shown) (int, error) {
	params := map[string]any{"chat_id": chat}
	if m.Thread != 0 {
		params["message_thread_id"] = m.Thread
	}
	if m.ReplyTo != 0 {
		reply := map[string]any{"message_id": m.ReplyTo, "allow_sending_without_reply": true}
		if m.Quote != "" && r.intact(chat, m.ReplyTo) {
			reply["quote"] = m.Quote
		}
		params["reply_parameters"] = reply
	}
	if !m.Edited && len(m.Keyboard) > 0 {
		params["reply_markup"] = map[string]any{"inline_keyboard": m.Keyboard}
	}
	text, entities := "text", "entities"
	if m.Attachment != nil {
		text, entities = "caption", "caption_entities"
	}
	if t := first(m); t != "" {
		params[text] = t
	}
	if !m.Edited && len(m.Entities) > 0 {
		params[entities] = m.Entities
	}
	raw, err := r.send(ctx, params, m.Attachment)
	if err != nil {
		return 0, err
	}
	var made struct {
		ID int `json:"message_id"`
	}
	if err := json.Unmarshal(raw, &made); err != nil {
		return 0, fmt.Errorf("read the message made: %w", err)
	}
	return made.ID, nil
}

// intact reports whether a message still has its original text, so that it can be quoted.
func (r *replay) intact(chat int64, message int) bool {
	return slices.ContainsFunc(r.m.Chats[chat], func(m telegramtest.Shown) bool {
		return m.MessageID == message && !m.Edited
	})
}

func (r *replay) send(ctx context.Context, params map[string]any, a *telegramtest.Attachment) (json.RawMessage, error) {
	switch {
	case a == nil:
		return r.w.call(ctx, "sendMessage", params)
	case a.Kind == "location":
		var lat, long float64
		if _, err := fmt.Sscanf(a.Name, "%g, %g", &lat, &long); err != nil {
			return nil, fmt.Errorf("location %q: %w", a.Name, err)
		}
		params["latitude"], params["longitude"] = lat, long
		return r.w.call(ctx, "sendLocation", params)
	}
	info, data, err := r.file(a)
	if err != nil {
		return nil, err
	}
	return r.w.upload(ctx, params, info, data)
}

// pushes presses the buttons again, in order: the ids of presses are counted, and one that the bot has yet to answer
// needs its id.
func (r *replay) pushes(ctx context.Context) error {
	for _, p := range r.m.Presses {
		r.w.past.Store(&p.At)
		id, err := r.w.fake.Press(p.User, p.Chat, p.Message, p.Data)
		if err != nil {
			return fmt.Errorf("press of %q: %w", p.Data, err)
		}
		if id != p.ID {
			return fmt.Errorf("press of %q: its id %s came back as %s", p.Data, p.ID, id)
		}
		if !p.Answered {
			continue
		}
		if err := r.call(ctx, "answerCallbackQuery", map[string]any{"callback_query_id": id}); err != nil {
			return err
		}
	}
	r.w.presses = slices.Clone(r.m.Presses)
	return nil
}

// changes repeats edits, reactions and deletions, in the order of the edits.
func (r *replay) changes(ctx context.Context) error {
	all := r.messages()
	slices.SortStableFunc(all, func(a, b entry) int { return a.m.EditedAt.Compare(b.m.EditedAt) })
	for _, e := range all {
		if err := r.change(ctx, e.chat, e.m); err != nil {
			return fmt.Errorf("chat %d, change of message %d: %w", e.chat, e.m.MessageID, err)
		}
	}
	return nil
}

func (r *replay) change(ctx context.Context, chat int64, m *telegramtest.Shown) error {
	if m.Edited {
		r.w.past.Store(&m.EditedAt)
		if err := r.edit(ctx, chat, m); err != nil {
			return err
		}
	}
	if len(m.Reactions) > 0 {
		set := []map[string]string{}
		for _, emoji := range m.Reactions {
			set = append(set, map[string]string{"type": "emoji", "emoji": emoji})
		}
		params := map[string]any{"chat_id": chat, "message_id": m.MessageID, "reaction": set}
		if err := r.call(ctx, "setMessageReaction", params); err != nil {
			return err
		}
	}
	if m.Deleted {
		return r.w.fake.DeleteMessage(chat, m.MessageID)
	}
	return nil
}

func (r *replay) edit(ctx context.Context, chat int64, m *telegramtest.Shown) error {
	if m.Text == placeholder && len(m.Keyboard) == 0 {
		return nil // there is nothing to change it to
	}
	if !m.FromBot {
		_, err := r.w.fake.EditText(m.From, chat, m.MessageID, m.Text)
		return err
	}
	params := map[string]any{"chat_id": chat, "message_id": m.MessageID}
	if len(m.Keyboard) > 0 {
		params["reply_markup"] = map[string]any{"inline_keyboard": m.Keyboard}
	}
	method, text, entities := "editMessageText", "text", "entities"
	if m.Attachment != nil {
		method, text, entities = "editMessageCaption", "caption", "caption_entities"
	}
	params[text] = m.Text
	if len(m.Entities) > 0 {
		params[entities] = m.Entities
	}
	return r.call(ctx, method, params)
}

// rest restores what is not in the chats.
func (r *replay) rest() error {
	w, m := r.w, r.m
	now := w.now()
	old := map[string]bool{}
	for _, p := range m.Presses {
		old[p.ID] = now.Sub(p.At) >= pressLife
	}
	for _, raw := range m.Pending {
		var u struct {
			Callback struct {
				ID string `json:"id"`
			} `json:"callback_query"`
		}
		if err := json.Unmarshal(raw, &u); err != nil {
			return fmt.Errorf("waiting update: %w", err)
		}
		if old[u.Callback.ID] {
			continue
		}
		if _, err := w.fake.RawUpdate(raw); err != nil {
			return fmt.Errorf("waiting update: %w", err)
		}
	}
	w.nextUpdate = m.NextUpdate
	if m.Reads != nil {
		w.reads = m.Reads
	}
	w.callMu.Lock()
	w.calls = slices.Clone(m.Calls)
	for _, c := range m.Calls {
		w.callN = max(w.callN, c.N)
	}
	w.callMu.Unlock()
	if problems := w.fake.Problems(); len(problems) > 0 {
		return errors.New(strings.Join(problems, "; "))
	}
	return nil
}

func (r *replay) call(ctx context.Context, method string, params map[string]any) error {
	_, err := r.w.call(ctx, method, params)
	return err
}
