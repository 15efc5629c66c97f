package telegramtest

import (
	"slices"
	"strings"
	"time"

	"github.com/go-telegram/bot/models"
)

const (
	draftLife  = 30 * time.Second
	actionLife = 5 * time.Second
)

// sendMessageDraft shows a preview in a private chat. The same id animates, another one replaces; an empty text is the
// "Thinking…" placeholder.
func sendMessageDraft(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	if !c.private() {
		return nil, badRequest("TEXTDRAFT_PEER_INVALID")
	}
	id := r.number("draft_id")
	if id == 0 {
		return nil, badRequest("draft identifier must be non-zero")
	}
	thread, fail := c.thread(r)
	if fail != nil {
		return nil, fail
	}
	text, entities, fail := r.formatted("text", "entities")
	switch {
	case fail != nil:
		return nil, fail
	case units(text) > maxText:
		return nil, badRequest(textTooLong)
	}
	now := s.opt.Now()
	frames := 1
	if old := c.liveDraft(now); old != nil && old.ID == id {
		frames = old.Frames + 1
	}
	c.draft = &Draft{
		ID: id, Text: text, Entities: entities, Thread: thread, CanStop: r.flag("can_stop"),
		KeepOnStop: r.flag("keep_on_stop"), Frames: frames, Until: now.Add(draftLife),
	}
	return true, nil
}

// sendChatAction shows "typing…" for five seconds. Unlike a send it takes General's id 1.
func sendChatAction(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	action := models.ChatAction(r.text("action"))
	known := []models.ChatAction{
		models.ChatActionTyping, models.ChatActionUploadPhoto, models.ChatActionRecordVideo,
		models.ChatActionUploadVideo, models.ChatActionRecordVoice, models.ChatActionUploadVoice,
		models.ChatActionUploadDocument, models.ChatActionChooseSticker, models.ChatActionFindLocation,
		models.ChatActionRecordVideoNote, models.ChatActionUploadVideoNote,
	}
	if !slices.Contains(known, action) {
		return nil, badRequest("wrong parameter action in request")
	}
	thread := r.number("message_thread_id")
	if thread != 0 && c.topics[thread] == nil {
		return nil, badRequest(threadNotFound)
	}
	if c.general(thread) {
		thread = 0
	}
	c.actions[thread] = ChatAction{Thread: thread, Action: string(action), Until: s.opt.Now().Add(actionLife)}
	return true, nil
}

// reactionEmoji are the reactions Bot API 10.3 lists under ReactionTypeEmoji.
const reactionEmoji = "❤ 👍 👎 🔥 🥰 👏 😁 🤔 🤯 😱 🤬 😢 🎉 🤩 🤮 💩 🙏 👌 🕊 🤡 🥱 🥴 😍 🐳 ❤‍🔥 🌚 🌭 💯 🤣 ⚡ 🍌 🏆 💔 🤨 😐 🍓 🍾 💋 🖕 😈 😴 😭 " +
	"🤓 👻 👨‍💻 👀 🎃 🙈 😇 😨 🤝 ✍ 🤗 🫡 🎅 🎄 ☃ 💅 🤪 🗿 🆒 💘 🙉 🦄 😘 💊 🙊 😎 👾 🤷‍♂ 🤷 🤷‍♀ 😡"

// setMessageReaction replaces the bot's reaction on a message; a bot has at most one.
func setMessageReaction(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	var list []models.ReactionType
	if _, fail := r.decode("reaction", &list); fail != nil {
		return nil, fail
	}
	m := c.find(r.number("message_id"))
	if m == nil {
		return nil, badRequest("message to react not found")
	}
	if len(list) > 1 {
		return nil, badRequest("REACTIONS_TOO_MANY")
	}
	var set []string
	for _, one := range list {
		// Clients add U+FE0F to some of them; the list has none.
		if one.ReactionTypeEmoji == nil ||
			!slices.Contains(
				strings.Fields(reactionEmoji), strings.ReplaceAll(one.ReactionTypeEmoji.Emoji, "\ufe0f", ""),
			) {
			return nil, badRequest("REACTION_INVALID")
		}
		set = append(set, one.ReactionTypeEmoji.Emoji)
	}
	m.reactions = set
	return true, nil
}
