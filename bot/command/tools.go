package command

import (
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/nearest"
)

// Blocks are the tools that were blocked because they failed too often.
type Blocks interface {
	// Blocked lists the tools that a person may not use in a conversation now; all = also those of other people and
	// conversations.
	Blocked(session bot.SessionKey, caller string, all bool) []texts.Blocked
	// Lifted unblocks a tool in every conversation at once, and returns the facts to be stored with the reply that says
	// so. If they cannot be stored, the block returns. Unblock follows, and does the same in the store without them.
	Lifted(tool string) []bot.Fact
	Unblock(ctx context.Context, tool string) (was bool, err error)
}

// usableTools lists the tools that the caller may use here.
func (s *Status) usableTools(call *turn.Call) []texts.Tool {
	list := s.About.Tools(call.Session, call.Message.Place)
	if call.Allowed == nil {
		return list
	}
	return slices.DeleteFunc(list, func(t texts.Tool) bool { return !call.Allowed(t.Name) })
}

// blockedNames lists the names that /tools unblock accepts.
func (s *Status) blockedNames() []string {
	var names []string
	for _, b := range s.Blocks.Blocked("", "", true) {
		names = append(names, b.Tool)
	}
	return names
}

// answerTools runs /tools and /tools unblock NAME.
func (s *Status) answerTools(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	w, msg := s.Words, call.Message
	words := strings.Fields(msg.Args)
	if len(words) == 2 && strings.EqualFold(words[0], "unblock") && s.Blocks != nil {
		if !call.Admin {
			return call.ReplyAside(bot.Content{Text: w.AdminsOnly(msg.Language, s.Admins())}), nil
		}
		return s.unblockTool(ctx, call, words[1])
	}
	text := w.Tools(msg.Language, s.usableTools(call))
	if s.About.Unset != nil && call.Admin {
		text += w.ToolsUnset(msg.Language, s.About.Unset())
	}
	if s.Blocks != nil {
		if list := s.Blocks.Blocked(call.Session, call.Message.Caller, call.Admin); len(list) > 0 {
			text += "\n" + w.ToolsBlocked(msg.Language, list)
		}
	}
	if s.About.Aside != nil && call.Admin {
		if list := s.About.Aside(); len(list) > 0 {
			text += "\n" + w.ToolsAside(msg.Language, list)
		}
	}
	return call.ReplyText(text), nil
}

// unblockTool runs /tools unblock NAME. The end of the block is stored together with the reply, so that a crash leaves
// either both or neither.
func (s *Status) unblockTool(ctx context.Context, call *turn.Call, tool string) (turn.Effect, error) {
	w, language, names := s.Words, call.Message.Language, s.blockedNames()
	if slices.Contains(names, tool) {
		e := call.ReplyText(w.Unblocked(language, tool, true))
		e.Change.Facts = s.Blocks.Lifted(tool)
		e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
			_, err := s.Blocks.Unblock(ctx, tool)
			return turn.Effect{}, err
		}
		return e, nil
	}
	was, err := s.Blocks.Unblock(ctx, tool) // another process may have blocked it
	if err != nil {
		return turn.Effect{}, err
	}
	text := w.Unblocked(language, tool, was)
	if near, ok := nearest.Nearest(tool, names); ok && !was {
		text += " " + w.Meant(language, near)
	}
	return call.ReplyText(text), nil
}
