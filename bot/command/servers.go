package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/nearest"
)

// ErrNoServer means that no server has the id.
var ErrNoServer = errors.New("no such server")

// Servers is the MCP client as /mcp uses it. Its errors, including ErrNoServer, are sentences for the admin who reads
// them.
type Servers interface {
	List() []texts.Server
	Tools(id string) ([]texts.ServerTool, error)
	// Begin starts a change. verb is "add", "restart", "remove", "accept" or "signin"; target is the command line, the
	// URL, the code that Pending has shown, or the address that a browser was redirected to. Mistakes that are visible
	// at once are returned as an error. The Effect holds what is stored with the reply, and what begins once it is
	// stored; the result is sent to the chat later, also after a restart. If somebody has to decide first, the Effect
	// holds the question, which is then the reply.
	Begin(ctx context.Context, call *turn.Call, verb, id string, target []string) (turn.Effect, error)
	// Pending returns the changes of a server that wait to be accepted, and the code that identifies exactly these; ""
	// if there are none.
	Pending(ctx context.Context, language, id string) (code string, list []texts.ServerChange, err error)
}

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

// mcp runs /mcp.
func (t *Table) mcp(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	w, language := t.deps.Words, call.Message.Language
	if t.deps.Servers == nil {
		return t.say(call, w.ServersOff(language)), nil
	}
	words := strings.Fields(call.Message.Args)
	verb, id := "list", ""
	if len(words) > 0 {
		verb = strings.ToLower(words[0])
	}
	if len(words) > 1 {
		id = words[1]
	}
	if begins(verb, len(words)) {
		begun, err := t.deps.Servers.Begin(ctx, call, verb, id, words[2:])
		if err != nil {
			return t.refuse(call, id, err), nil
		}
		if len(begun.Change.Ask) > 0 || verb == "remove" || verb == "accept" { // the result is the reply
			return begun, nil
		}
		e := t.say(call, w.ServerConnecting(language, id))
		e.Change.Facts, e.Then = begun.Change.Facts, begun.Then
		return e, nil
	}
	answer, err := t.served(ctx, language, verb, id, len(words))
	if err != nil {
		return t.refuse(call, id, err), nil
	}
	return t.say(call, answer), nil
}

// refuse tells the admin what is wrong.
func (t *Table) refuse(call *turn.Call, id string, err error) turn.Effect {
	w, language := t.deps.Words, call.Message.Language
	switch {
	case errors.Is(err, errUsage):
		return t.say(call, w.ServersHelp(language))
	case errors.Is(err, ErrNoServer):
		return t.say(call, w.ServerUnknown(language, id))
	default:
		return t.say(call, w.ServerFailed(language, id, err.Error()))
	}
}

// errUsage means that the syntax of a command is wrong.
var errUsage = errors.New("usage")

// served handles the verbs that take no time; n is the number of words. Errors are for the admin; none is internal.
func (t *Table) served(ctx context.Context, language, verb, id string, n int) (string, error) {
	w := t.deps.Words
	switch {
	case verb == "list" && n <= 1:
		list := t.deps.Servers.List()
		return w.Servers(language, list) + t.asideOf(language, func(tool string) bool {
			return slices.ContainsFunc(list, func(s texts.Server) bool { return strings.HasPrefix(tool, s.ID+":") })
		}), nil
	case n != 2:
		return "", errUsage
	case verb == "tools":
		list, err := t.deps.Servers.Tools(id)
		if err != nil {
			return "", err
		}
		return w.ServerTools(language, id, list) + t.asideOf(language, func(tool string) bool { return strings.HasPrefix(tool, id+":") }), nil
	case verb == "accept":
		code, list, err := t.deps.Servers.Pending(ctx, language, id)
		return w.ServerPending(language, id, code, list), err
	default:
		return "", errUsage
	}
}

// asideOf lists, below an answer, which of some tools the servers of models refuse; "" = none. Only admins use /mcp.
func (t *Table) asideOf(language string, wanted func(tool string) bool) string {
	if t.deps.About.Aside == nil {
		return ""
	}
	list := slices.DeleteFunc(t.deps.About.Aside(), func(a texts.SetAside) bool { return !wanted(a.Tool) })
	if len(list) == 0 {
		return ""
	}
	return "\n" + t.deps.Words.ToolsAside(language, list)
}

// begins reports whether a verb with this number of words starts something that takes a while.
func begins(verb string, words int) bool {
	switch verb {
	case "add":
		return words >= 3
	case "restart", "remove":
		return words == 2
	case "accept":
		return words == 3
	case "signin":
		return words == 2 || words == 3
	default:
		return false
	}
}

// blockedNames lists the names that /tools unblock accepts.
func (t *Table) blockedNames() []string {
	var names []string
	for _, b := range t.deps.Blocks.Blocked("", "", true) {
		names = append(names, b.Tool)
	}
	return names
}

// tools runs /tools and /tools unblock NAME.
func (t *Table) tools(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	w, msg := t.deps.Words, call.Message
	words := strings.Fields(msg.Args)
	if len(words) == 2 && strings.EqualFold(words[0], "unblock") && t.deps.Blocks != nil {
		if !call.Admin {
			return t.aside(call, w.AdminsOnly(msg.Language, t.deps.Admins())), nil
		}
		return t.unblock(ctx, call, words[1])
	}
	text := w.Tools(msg.Language, t.usable(call))
	if t.deps.About.Unset != nil && call.Admin {
		text += w.ToolsUnset(msg.Language, t.deps.About.Unset())
	}
	if t.deps.Blocks != nil {
		if list := t.deps.Blocks.Blocked(call.Session, call.Message.Caller, call.Admin); len(list) > 0 {
			text += "\n" + w.ToolsBlocked(msg.Language, list)
		}
	}
	if t.deps.About.Aside != nil && call.Admin {
		if list := t.deps.About.Aside(); len(list) > 0 {
			text += "\n" + w.ToolsAside(msg.Language, list)
		}
	}
	return t.say(call, text), nil
}

// unblock runs /tools unblock NAME. The end of the block is stored together with the reply, so that a crash leaves
// either both or neither.
func (t *Table) unblock(ctx context.Context, call *turn.Call, tool string) (turn.Effect, error) {
	w, language, names := t.deps.Words, call.Message.Language, t.blockedNames()
	if slices.Contains(names, tool) {
		e := t.say(call, w.Unblocked(language, tool, true))
		e.Change.Facts = t.deps.Blocks.Lifted(tool)
		e.Then = func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
			_, err := t.deps.Blocks.Unblock(ctx, tool)
			return turn.Effect{}, err
		}
		return e, nil
	}
	was, err := t.deps.Blocks.Unblock(ctx, tool) // another process may have blocked it
	if err != nil {
		return turn.Effect{}, err
	}
	text := w.Unblocked(language, tool, was)
	if near, ok := nearest.Nearest(tool, names); ok && !was {
		text += " " + w.Meant(language, near)
	}
	return t.say(call, text), nil
}
