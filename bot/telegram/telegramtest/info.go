package telegramtest

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/go-telegram/bot/models"
)

const (
	maxCommands         = 100
	maxCommandText      = 256
	closeTooEarly       = 10 * time.Minute
	maxName             = 64
	maxDescription      = 512
	maxShortDescription = 120
)

var commandName = expression(`^[a-z0-9_]{1,32}$`)

func getMe(s *Server, _ *request) (any, *apiError) { return s.me, nil }

func logOut(s *Server, _ *request) (any, *apiError) {
	s.loggedOut = true
	s.kickPoll("terminated by logOut")
	return true, nil
}

// closeBot is the method close; it is refused in the first ten minutes after the server started.
func closeBot(s *Server, _ *request) (any, *apiError) {
	if left := closeTooEarly - s.opt.Now().Sub(s.started); left > 0 {
		return nil, tooMany(int((left + time.Second - 1) / time.Second))
	}
	return true, nil
}

func getChat(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	raw, fail := encode(c.info)
	if fail != nil {
		return nil, fail
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		return nil, badRequest(chatNotFound)
	}
	out["accent_color_id"] = 0
	out["max_reaction_count"] = 11
	out["accepted_gift_types"] = models.AcceptedGiftTypes{}
	return out, nil
}

func getChatMember(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	id, err := r.integer("user_id")
	u, known := s.users[id]
	switch {
	case err != nil:
		return nil, badRequest("invalid user_id specified")
	case id == s.me.ID:
		m := chatMember(s.me, c.bot)
		return &m, nil
	case !known:
		return nil, badRequest("PARTICIPANT_ID_INVALID")
	}
	m := c.member(u)
	return &m, nil
}

func getChatAdministrators(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	if c.private() {
		return nil, badRequest("there are no administrators in the private chat")
	}
	out := []*models.ChatMember{}
	if c.bot == models.ChatMemberTypeAdministrator {
		m := chatMember(s.me, c.bot)
		out = append(out, &m)
	}
	for _, id := range slices.Sorted(maps.Keys(c.members)) {
		if k := c.members[id]; k == models.ChatMemberTypeAdministrator || k == models.ChatMemberTypeOwner {
			m := chatMember(s.users[id], k)
			out = append(out, &m)
		}
	}
	return out, nil
}

func getChatMemberCount(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	return len(c.members) + 1, nil
}

// leaveChat takes the bot out of a group by its own will: later calls say "not a member".
func leaveChat(s *Server, r *request) (any, *apiError) {
	c, fail := s.readable(r)
	if fail != nil {
		return nil, fail
	}
	if c.private() {
		return nil, badRequest("chat not found")
	}
	c.put(models.Message{From: &s.me, LeftChatMember: &s.me}, s.opt.Now())
	s.changeBot(c, s.me, models.ChatMemberTypeLeft)
	return true, nil
}

// scope names a command scope: "default", "all_private_chats", "chat:-100123", "chat_member:-100123:7", with "/de"
// behind it for a language.
func (s *Server) scope(r *request) (string, *apiError) {
	var in struct {
		Type   string          `json:"type"`
		ChatID json.RawMessage `json:"chat_id"`
		UserID int64           `json:"user_id"`
	}
	if _, fail := r.decode("scope", &in); fail != nil {
		return "", fail
	}
	name := cmp.Or(in.Type, "default")
	switch name {
	case "default", "all_private_chats", "all_group_chats", "all_chat_administrators":
	case "chat", "chat_administrators", "chat_member":
		var id string
		if err := json.Unmarshal(in.ChatID, &id); err != nil {
			id = string(in.ChatID)
		}
		c, fail := s.lookupChat(id)
		if fail != nil {
			return "", fail
		}
		name += ":" + strconv.FormatInt(c.info.ID, 10)
		if in.Type == "chat_member" {
			name += ":" + strconv.FormatInt(in.UserID, 10)
		}
	default:
		return "", badRequest("can't parse BotCommandScope: unsupported type specified")
	}
	if lang := r.text("language_code"); lang != "" {
		if len(lang) != 2 {
			return "", badRequest("invalid language code specified")
		}
		name += "/" + lang
	}
	return name, nil
}

func setMyCommands(s *Server, r *request) (any, *apiError) {
	var list []models.BotCommand
	if _, fail := r.decode("commands", &list); fail != nil {
		return nil, fail
	}
	if len(list) > maxCommands {
		return nil, badRequest("BOT_COMMANDS_TOO_MUCH")
	}
	for _, c := range list {
		switch {
		case !commandName().MatchString(c.Command):
			return nil, badRequest("BOT_COMMAND_INVALID")
		case c.Description == "" || len([]rune(c.Description)) > maxCommandText:
			return nil, badRequest("BOT_COMMAND_DESCRIPTION_INVALID")
		}
	}
	scope, fail := s.scope(r)
	if fail != nil {
		return nil, fail
	}
	if len(list) == 0 {
		delete(s.commands, scope)
		return true, nil
	}
	s.commands[scope] = list
	return true, nil
}

func getMyCommands(s *Server, r *request) (any, *apiError) {
	scope, fail := s.scope(r)
	if fail != nil {
		return nil, fail
	}
	return append([]models.BotCommand{}, s.commands[scope]...), nil
}

func deleteMyCommands(s *Server, r *request) (any, *apiError) {
	scope, fail := s.scope(r)
	if fail != nil {
		return nil, fail
	}
	delete(s.commands, scope)
	return true, nil
}

// Commands returns the command menus by scope: "default", "all_private_chats", "all_group_chats", "chat:-100123",
// "chat_member:-100123:7" and so on, with "/de" behind it for a language.
func (s *Server) Commands() map[string][]models.BotCommand {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string][]models.BotCommand, len(s.commands))
	for k, v := range s.commands {
		out[k] = slices.Clone(v)
	}
	return out
}

// setAbout makes the method that sets one of the bot's texts; getAbout the one that reads it. Both are keyed by the
// parameter's name and the language.
func setAbout(param string, limit int) func(*Server, *request) (any, *apiError) {
	return func(s *Server, r *request) (any, *apiError) {
		text := r.text(param)
		if len([]rune(text)) > limit {
			return nil, badRequestf("%s is too long", param)
		}
		s.about[param+"/"+r.text("language_code")] = text
		return true, nil
	}
}

func getAbout(param string) func(*Server, *request) (any, *apiError) {
	return func(s *Server, r *request) (any, *apiError) {
		text, ok := s.about[param+"/"+r.text("language_code")]
		if !ok {
			text = s.about[param+"/"]
		}
		return map[string]string{param: text}, nil
	}
}

// About returns a text set by setMyName, setMyDescription or setMyShortDescription: param is "name", "description" or
// "short_description".
func (s *Server) About(param, language string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.about[param+"/"+language]
}
