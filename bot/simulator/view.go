package simulator

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	defaultMessages = 200
	maxMessages     = 5000
	shownAnswers    = 30
)

// View is everything one person sees, with one conversation open.
type View struct {
	Version  uint64         `json:"version"`
	Now      time.Time      `json:"now"`
	Me       int64          `json:"me"`
	Chat     int64          `json:"chat"`
	Thread   int            `json:"thread"`
	BotName  string         `json:"bot_name"`
	BotUser  string         `json:"bot_user"`
	Bot      BotStatus      `json:"bot"`
	Pending  int            `json:"pending"` // updates that the bot has not fetched
	People   []Person       `json:"people"`
	Chats    []ChatRow      `json:"chats"`
	Messages []ViewMessage  `json:"messages"`
	More     bool           `json:"more"` // there are older messages
	Draft    *ViewDraft     `json:"draft,omitempty"`
	Typing   string         `json:"typing,omitempty"` // chat action shown now
	Until    time.Time      `json:"until,omitzero"`   // when draft or typing ends: look again at that time
	Answers  []ViewAnswer   `json:"answers"`
	Faults   map[string]int `json:"faults"`
	Commands []ViewCommand  `json:"commands"`
}

// ChatRow is one line of the list of chats.
type ChatRow struct {
	Chat     int64     `json:"chat"`
	Thread   int       `json:"thread"`
	Title    string    `json:"title"`
	Group    string    `json:"group,omitempty"`    // title of the group if this is a topic
	Subtitle string    `json:"subtitle,omitempty"` // who is in it
	Unread   int       `json:"unread"`
	LastName string    `json:"last_name,omitempty"`
	LastText string    `json:"last_text,omitempty"`
	LastAt   time.Time `json:"last_at,omitzero"`
	Typing   bool      `json:"typing,omitempty"`
}

// ViewMessage is a message with the one that it replies to.
type ViewMessage struct {
	telegramtest.Shown
	Reply   *ReplyTo       `json:"reply,omitempty"`
	Unseen  bool           `json:"unseen,omitempty"`  // the first message that the person has not read
	Topic   string         `json:"topic,omitempty"`   // service message: name of the topic
	Reacted []ViewReaction `json:"reacted,omitempty"` // of people; those of the bot are in Shown
	Ticks   int            `json:"ticks,omitempty"`   // of one's own message: 1 = Telegram has it, 2 = the bot has fetched it
}

// ViewReaction is one person's reaction to a message.
type ViewReaction struct {
	ID    int64  `json:"id"`
	Name  string `json:"name"`
	Emoji string `json:"emoji"`
}

// ReplyTo is the head of the message that was replied to.
type ReplyTo struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
	Text string `json:"text"`
	// Picture is the file of a photo, which is shown small beside the text; "" = there is none.
	Picture string `json:"picture,omitempty"`
}

// replyTo is the head of a message that was replied to.
func replyTo(m *telegramtest.Shown) *ReplyTo {
	if m.Deleted {
		return &ReplyTo{ID: m.MessageID, Name: m.Name, Text: "deleted message"}
	}
	to := &ReplyTo{ID: m.MessageID, Name: m.Name, Text: head(m)}
	if m.Attachment != nil && m.Attachment.Kind == kindPhoto {
		to.Picture = m.Attachment.FileID
	}
	return to
}

// ViewDraft is a growing answer.
type ViewDraft struct {
	telegramtest.Draft
}

// ViewAnswer is the answer to a press.
type ViewAnswer struct {
	Seq   int    `json:"seq"`
	ID    string `json:"id"`
	Text  string `json:"text"`
	Alert bool   `json:"alert,omitempty"`
}

// ViewCommand is one entry of the command menu.
type ViewCommand struct {
	Command string `json:"command"`
	Text    string `json:"text"`
}

// view builds what the person sees. limit is the number of messages, 0 for the default.
func (w *world) view(me, chat int64, topic, limit int) (*View, error) {
	i := slices.IndexFunc(People(), func(p Person) bool { return p.ID == me })
	if i < 0 {
		return nil, fmt.Errorf("there is no person %d: want one of %d, %d, %d, %d", me, Ann, Ben, Cy, Dora)
	}
	if !inChat(me, chat) {
		return nil, fmt.Errorf("%s is not in chat %d", People()[i].Name, chat)
	}
	switch {
	case limit <= 0:
		limit = defaultMessages
	case limit > maxMessages:
		limit = maxMessages
	}
	topic = threadOf(topic)
	version, _ := w.hub.currentVersion()
	out := &View{
		Version: version,
		Now:     w.now(),
		Me:      me,
		Chat:    chat,
		Thread:  topic,
		People:  People(),
		Faults:  w.armedFaults(),
	}
	out.Pending = w.fake.PendingUpdates()
	all := w.books()
	for i := range out.People {
		for _, row := range w.rows(out.People[i].ID, all) {
			out.People[i].Unread += row.Unread
			if out.People[i].ID == me {
				out.Chats = append(out.Chats, row)
			}
		}
	}
	w.fill(out, all[chat], limit)
	out.Answers = w.answers(me)
	return out, nil
}

// books reads all chats once.
func (w *world) books() map[int64][]telegramtest.Shown {
	out := map[int64][]telegramtest.Shown{}
	for _, g := range groupIDs() {
		out[g] = w.fake.Chat(g)
	}
	for _, p := range People() {
		out[p.ID] = w.fake.Chat(p.ID)
	}
	return out
}

// rows returns the list of chats of one person: the private one, the topics of the forum, the other group.
func (w *world) rows(me int64, all map[int64][]telegramtest.Shown) []ChatRow {
	rows := []ChatRow{w.row(me, ChatRow{Chat: me, Title: "Zeph", Subtitle: "bot"}, all[me])}
	if inChat(me, Team) {
		for _, t := range w.fake.Topics(Team) {
			rows = append(rows, w.row(me, ChatRow{
				Chat: Team, Thread: threadOf(t.ID), Title: t.Name, Group: "Team", Subtitle: "Ann, Ben, Cy, Zeph",
			}, all[Team]))
		}
	}
	if inChat(me, Garden) {
		rows = append(rows, w.row(me, ChatRow{Chat: Garden, Title: "Garden", Subtitle: "Ann, Dora, Zeph"}, all[Garden]))
	}
	return rows
}

func (w *world) row(me int64, row ChatRow, messages []telegramtest.Shown) ChatRow {
	w.mu.Lock()
	seen := w.reads[readKey(me, row.Chat, row.Thread)]
	w.mu.Unlock()
	for i := range messages {
		m := &messages[i]
		if m.Deleted || threadOf(m.Thread) != row.Thread || m.Service != "" {
			continue
		}
		row.LastName, row.LastText, row.LastAt = m.Name, head(m), m.Date
		if m.MessageID > seen && m.From != me {
			row.Unread++
		}
	}
	for _, a := range w.fake.Typing(row.Chat) {
		row.Typing = row.Typing || threadOf(a.Thread) == row.Thread
	}
	if _, ok := w.fake.Draft(row.Chat); ok && row.Chat == me {
		row.Typing = true
	}
	return row
}

// head returns the beginning of a message for lists and replies.
func head(m *telegramtest.Shown) string {
	const most = 120
	text := []rune(m.Text)
	if len(text) > most {
		text = append(text[:most], '…')
	}
	switch {
	case len(text) > 0:
		return string(text)
	case m.Attachment != nil && m.Attachment.Name != "":
		return "📎 " + m.Attachment.Name
	case m.Attachment != nil:
		return kindName(m.Attachment.Kind)
	}
	return ""
}

// kindName stands for a file without a name.
func kindName(kind string) string {
	switch kind {
	case kindPhoto:
		return "Photo"
	case kindVideo:
		return "Video"
	case kindVoice:
		return "Voice message"
	case "video_note":
		return "Video message"
	}
	return kind
}

// messages adds the messages of the open conversation, with what they reply to, and marks the first unread one.
func (w *world) messages(out *View, messages []telegramtest.Shown, seen int) {
	byID := make(map[int]*telegramtest.Shown, len(messages))
	names := map[int]string{}
	for _, t := range w.fake.Topics(out.Chat) {
		names[t.ID] = t.Name
	}
	out.Messages = []ViewMessage{}
	waiting := w.fake.Unfetched(out.Chat)
	marked := false
	for i := range messages {
		m := &messages[i]
		byID[m.MessageID] = m
		if m.Deleted || threadOf(m.Thread) != out.Thread {
			continue
		}
		vm := ViewMessage{Shown: *m, Topic: names[m.MessageID], Reacted: w.reactionsOf(out.Chat, m.MessageID)}
		if to := byID[m.ReplyTo]; to != nil {
			vm.Reply = replyTo(to)
		}
		if m.From == out.Me && m.Service == "" {
			vm.Ticks = 2
			if slices.Contains(waiting, m.MessageID) {
				vm.Ticks = 1
			}
		}
		if !marked && m.MessageID > seen && m.From != out.Me {
			vm.Unseen, marked = true, true
		}
		out.Messages = append(out.Messages, vm)
	}
	w.aside(out)
}

// aside adds what the person alone sees, where it was said.
func (w *world) aside(out *View) {
	for _, m := range w.fake.Ephemeral(out.Chat, out.Me) {
		if threadOf(m.Thread) != out.Thread {
			continue
		}
		at := slices.IndexFunc(out.Messages, func(o ViewMessage) bool {
			return o.Ephemeral == 0 && o.MessageID > m.After || o.Ephemeral != 0 && o.After > m.After
		})
		if at < 0 {
			at = len(out.Messages)
		}
		vm := ViewMessage{Shown: m}
		if to, ok := w.fake.Message(out.Chat, m.ReplyTo); ok && m.ReplyTo != 0 {
			vm.Reply = replyTo(&to)
		}
		out.Messages = slices.Insert(out.Messages, at, vm)
	}
}

// fill adds the open conversation.
func (w *world) fill(out *View, messages []telegramtest.Shown, limit int) {
	w.mu.Lock()
	seen := w.reads[readKey(out.Me, out.Chat, out.Thread)]
	w.mu.Unlock()
	w.messages(out, messages, seen)
	if cut := len(out.Messages) - limit; cut > 0 {
		out.Messages, out.More = out.Messages[cut:], true
	}
	if d, ok := w.fake.Draft(out.Chat); ok && threadOf(d.Thread) == out.Thread {
		out.Draft, out.Until = &ViewDraft{Draft: d}, d.Until
	}
	for _, a := range w.fake.Typing(out.Chat) {
		if threadOf(a.Thread) == out.Thread && out.Draft == nil {
			out.Typing, out.Until = a.Action, a.Until
		}
	}
	out.Commands = w.commands(out.Me, out.Chat)
}

// answers returns the last answers to presses of the person. Their numbers only increase.
func (w *world) answers(me int64) []ViewAnswer {
	out := []ViewAnswer{}
	for i, a := range w.fake.CallbackAnswers() {
		if a.User == me {
			out = append(out, ViewAnswer{Seq: i + 1, ID: a.ID, Text: a.Text, Alert: a.ShowAlert})
		}
	}
	return out[max(0, len(out)-shownAnswers):]
}

// commands returns the menu that Telegram would show: the narrowest scope that has one, in the person's language or
// else without one (Bot API BotCommandScope).
func (w *world) commands(me, chat int64) []ViewCommand {
	language := ""
	for _, p := range People() {
		if p.ID == me {
			language = p.Language
		}
	}
	id := strconv.FormatInt(chat, 10)
	scopes := []string{"chat:" + id, "all_private_chats", "default"}
	if chat < 0 {
		scopes = []string{
			"chat_member:" + id + ":" + strconv.FormatInt(me, 10), "chat:" + id, "all_group_chats", "default",
		}
	}
	menus := w.fake.Commands()
	out := []ViewCommand{}
	for _, scope := range scopes {
		for _, key := range []string{scope + "/" + language, scope} {
			for _, c := range menus[key] {
				out = append(out, ViewCommand{Command: c.Command, Text: c.Description})
			}
			if len(out) > 0 {
				slices.SortStableFunc(out, func(a, b ViewCommand) int { return cmp.Compare(a.Command, b.Command) })
				return out
			}
		}
	}
	return out
}
