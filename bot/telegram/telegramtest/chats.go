package telegramtest

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"
)

// generalTopic is the id of a forum's General topic.
const generalTopic = 1

// chat is one conversation with everything that is in it.
type chat struct {
	info       models.Chat
	members    map[int64]models.ChatMemberType
	bot        models.ChatMemberType // what the bot is in it
	blocked    bool                  // private chat: the person blocked the bot
	topics     map[int]*Topic
	topicOrder []int
	lastID     int
	messages   map[int]*message
	order      []*message
	draft      *Draft
	actions    map[int]ChatAction // by thread
	alone      []*message         // ephemeral: each is seen by its receiver alone
	migratedTo int64
	instance   string // callback_query.chat_instance
}

// message is a stored message; body is what Telegram would send as JSON.
type message struct {
	body      models.Message
	date      time.Time
	editedAt  time.Time
	edits     int
	deleted   bool
	reactions []string
	plain     bool // text message, not media with a caption
	after     int  // ephemeral: id of the message before it
}

func newChat(info models.Chat) *chat {
	return &chat{
		info:     info,
		members:  map[int64]models.ChatMemberType{},
		bot:      models.ChatMemberTypeMember,
		topics:   map[int]*Topic{},
		messages: map[int]*message{},
		actions:  map[int]ChatAction{},
		instance: strconv.FormatInt(info.ID*7919+104729, 10),
	}
}

func (c *chat) private() bool { return c.info.Type == models.ChatTypePrivate }

// general says whether id is the General topic of a forum, which is addressed without an id.
func (c *chat) general(id int) bool { return c.info.IsForum && id == generalTopic }

func (c *chat) addTopic(t Topic) {
	c.topics[t.ID] = &t
	c.topicOrder = append(c.topicOrder, t.ID)
}

// put gives the message the next id, which is never used again, and stores it.
func (c *chat) put(body models.Message, now time.Time) *message {
	c.lastID++
	body.ID = c.lastID
	body.Date = int(now.Unix())
	body.Chat = c.info
	m := &message{body: body, date: now}
	c.messages[body.ID] = m
	c.order = append(c.order, m)
	return m
}

// find returns a message that is still there.
func (c *chat) find(id int) *message {
	m := c.messages[id]
	if m == nil || m.deleted {
		return nil
	}
	return m
}

// clearFor ends the draft of the chat and the chat action of the thread: a message by the bot does both.
func (c *chat) clearFor(thread int) {
	c.draft = nil
	delete(c.actions, thread)
}

// member says what the user is in the chat, for getChatMember.
func (c *chat) member(user models.User) models.ChatMember {
	kind, ok := c.members[user.ID]
	if !ok {
		kind = models.ChatMemberTypeLeft
	}
	return chatMember(user, kind)
}

func chatMember(user models.User, kind models.ChatMemberType) models.ChatMember {
	out := models.ChatMember{Type: kind}
	switch kind {
	case models.ChatMemberTypeOwner:
		out.Owner = &models.ChatMemberOwner{User: &user}
	case models.ChatMemberTypeAdministrator:
		out.Administrator = &models.ChatMemberAdministrator{
			User: user, CanManageChat: true, CanDeleteMessages: true, CanManageTopics: true, CanPinMessages: true,
			CanRestrictMembers: true, CanInviteUsers: true,
		}
	case models.ChatMemberTypeMember:
		out.Member = &models.ChatMemberMember{User: &user}
	case models.ChatMemberTypeBanned:
		out.Banned = &models.ChatMemberBanned{User: &user}
	default:
		out.Type = models.ChatMemberTypeLeft
		out.Left = &models.ChatMemberLeft{User: &user}
	}
	return out
}

// present says whether the kind can read and write in the chat.
func present(kind models.ChatMemberType) bool {
	switch kind {
	case models.ChatMemberTypeOwner, models.ChatMemberTypeAdministrator, models.ChatMemberTypeMember:
		return true
	}
	return false
}

// lookupChat resolves a chat_id parameter: a number or the @username of a group.
func (s *Server) lookupChat(id string) (*chat, *apiError) {
	id = strings.TrimSpace(id)
	if id == "" {
		return nil, badRequest("chat_id is empty")
	}
	if name, ok := strings.CutPrefix(id, "@"); ok {
		for _, c := range s.chats {
			if !c.private() && strings.EqualFold(c.info.Username, name) {
				return c, nil
			}
		}
		return nil, badRequest(chatNotFound)
	}
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		return nil, badRequest(chatNotFound)
	}
	if c := s.chats[n]; c != nil {
		return c, nil
	}
	if _, known := s.users[n]; known && n != anonymousAdminID && n != channelSenderID {
		return nil, forbidden("bot can't initiate conversation with a user")
	}
	return nil, badRequest(chatNotFound)
}

// readable resolves the chat of a request the bot may look at.
func (s *Server) readable(r *request) (*chat, *apiError) {
	if r.text("business_connection_id") != "" {
		return s.businessChat(r)
	}
	c, fail := s.lookupChat(r.text("chat_id"))
	if fail != nil {
		return nil, fail
	}
	if c.migratedTo != 0 {
		return nil, &apiError{
			code:      400,
			text:      "Bad Request: group chat was upgraded to a supergroup chat",
			migrateTo: c.migratedTo,
		}
	}
	kind := "group"
	if c.info.Type == models.ChatTypeSupergroup {
		kind = "supergroup"
	}
	switch {
	case c.private() && c.blocked:
		return nil, forbidden(userBlocked)
	case c.bot == models.ChatMemberTypeBanned:
		return nil, forbidden("bot was kicked from the " + kind + " chat")
	case !c.private() && !present(c.bot):
		return nil, forbidden("bot is not a member of the " + kind + " chat")
	}
	return c, nil
}

// thread resolves message_thread_id for a send. General is addressed without an id: sending with 1 is refused.
func (c *chat) thread(r *request) (int, *apiError) {
	id := r.number("message_thread_id")
	if id == 0 {
		return 0, nil
	}
	if c.general(id) || c.topics[id] == nil {
		return 0, badRequest(threadNotFound)
	}
	return id, nil
}

// Chat returns what the chat shows, oldest first, deleted messages included and marked.
func (s *Server) Chat(chatID int64) []Shown {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	out := make([]Shown, len(c.order))
	for i, m := range c.order {
		out[i] = s.shown(m)
	}
	return out
}

// Message returns one message of a chat as it is shown.
func (s *Server) Message(chatID int64, messageID int) (Shown, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.messages[messageID] == nil {
		return Shown{}, false
	}
	return s.shown(c.messages[messageID]), true
}

func (s *Server) shown(m *message) Shown {
	b := m.body
	out := Shown{
		MessageID:  b.ID,
		Text:       b.Text,
		Rich:       b.RichMessage != nil,
		Entities:   slices.Clone(b.Entities),
		Thread:     b.MessageThreadID,
		Changed:    Changed{Edited: m.edits > 0, EditedAt: m.editedAt, Edits: m.edits},
		Date:       m.date,
		Deleted:    m.deleted,
		Reactions:  slices.Clone(m.reactions),
		Attachment: attachment(b),
		Service:    service(b),
		Album:      b.MediaGroupID,
		Alone:      Alone{Ephemeral: b.EphemeralMessageID, After: m.after},
	}
	if b.Caption != "" {
		out.Text, out.Entities = b.Caption, slices.Clone(b.CaptionEntities)
	}
	if b.From != nil {
		out.From, out.FromBot, out.Name = b.From.ID, b.From.ID == s.me.ID, fullName(*b.From)
	}
	if b.SenderChat != nil {
		out.SenderChat, out.Name = b.SenderChat.ID, b.SenderChat.Title
	}
	if b.ReplyToMessage != nil {
		out.ReplyTo = b.ReplyToMessage.ID
	}
	if b.Quote != nil {
		out.Quote = b.Quote.Text
	}
	if b.ReplyMarkup != nil {
		for _, row := range b.ReplyMarkup.InlineKeyboard {
			out.Keyboard = append(out.Keyboard, slices.Clone(row))
		}
	}
	return out
}

func fullName(u models.User) string { return strings.TrimSpace(u.FirstName + " " + u.LastName) }

func service(b models.Message) string {
	switch {
	case b.MigrateToChatID != 0:
		return "migrate_to_chat_id"
	case b.MigrateFromChatID != 0:
		return "migrate_from_chat_id"
	case b.ForumTopicCreated != nil:
		return "forum_topic_created"
	case b.ForumTopicEdited != nil:
		return "forum_topic_edited"
	case len(b.NewChatMembers) > 0:
		return "new_chat_members"
	case b.LeftChatMember != nil:
		return "left_chat_member"
	}
	return ""
}

// Draft returns the preview the chat shows now.
func (s *Server) Draft(chatID int64) (Draft, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil || c.liveDraft(s.opt.Now()) == nil {
		return Draft{}, false
	}
	out := *c.draft
	out.Entities = slices.Clone(out.Entities)
	return out, true
}

func (c *chat) liveDraft(now time.Time) *Draft {
	if c.draft != nil && !now.Before(c.draft.Until) {
		c.draft = nil
	}
	return c.draft
}

// Typing returns the chat actions shown now, by thread.
func (s *Server) Typing(chatID int64) []ChatAction {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	now := s.opt.Now()
	var out []ChatAction
	for _, a := range c.actions {
		if now.Before(a.Until) {
			out = append(out, a)
		}
	}
	slices.SortFunc(out, func(a, b ChatAction) int { return cmp.Compare(a.Thread, b.Thread) })
	return out
}

// Topics returns the topics of a forum in order of creation.
func (s *Server) Topics(chatID int64) []Topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.chats[chatID]
	if c == nil {
		return nil
	}
	var out []Topic
	for _, id := range c.topicOrder {
		out = append(out, *c.topics[id])
	}
	return out
}
