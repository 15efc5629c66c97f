package servers

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
)

// ErrNoServer means that no server has the id.
var ErrNoServer = errors.New("no such server")

// Feature returns /mcp.
func (d *Handler) Feature() feature.Feature {
	return feature.Feature{
		Name:     "servers",
		Commands: []feature.Command{{Name: "mcp", Audience: feature.Admins, Run: d.Command}},
		Follow:   d.Follow,
	}
}

// Command answers /mcp.
func (d *Handler) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	w, language := d.deps.Words, call.Message.Language
	words := strings.Fields(call.Message.Args)
	verb, id := "list", ""
	if len(words) > 0 {
		verb = strings.ToLower(words[0])
	}
	if len(words) > 1 {
		id = words[1]
	}
	if beginsJob(verb, len(words)) {
		begun, err := d.Begin(ctx, call, verb, id, words[2:])
		if err != nil {
			return d.refuseCommand(call, id, err), nil
		}
		if len(begun.Change.Ask) > 0 || verb == "remove" || verb == "accept" { // the result is the reply
			return begun, nil
		}
		e := call.ReplyText(w.ServerConnecting(language, id))
		e.Change.Facts, e.Then = begun.Change.Facts, begun.Then
		return e, nil
	}
	answer, err := d.showServers(ctx, language, verb, id, len(words))
	if err != nil {
		return d.refuseCommand(call, id, err), nil
	}
	return call.ReplyText(answer), nil
}

// refuseCommand tells the admin what is wrong.
func (d *Handler) refuseCommand(call *turn.Call, id string, err error) turn.Effect {
	w, language := d.deps.Words, call.Message.Language
	switch {
	case errors.Is(err, errUsage):
		return call.ReplyText(w.Usage(language, call.Message.Args, []string{
			"list", "tools", "add", "accept", "signin", "restart", "remove",
		}, w.ServersHelp(language)))
	case errors.Is(err, ErrNoServer):
		return call.ReplyText(w.ServerUnknown(language, id))
	default:
		return call.ReplyText(w.ServerFailed(language, id, reason.OfError(err)))
	}
}

// errUsage means that the syntax of a command is wrong.
var errUsage = errors.New("usage")

// showServers handles the verbs that take no time; n is the number of words. Errors are
// for the admin; none is internal.
func (d *Handler) showServers(ctx context.Context, language, verb, id string, n int) (string, error) {
	w := d.deps.Words
	switch {
	case verb == "list" && n <= 1:
		list := d.List()
		return w.Servers(language, list) + d.asideOf(language, func(tool string) bool {
			return slices.ContainsFunc(list, func(s texts.Server) bool { return strings.HasPrefix(tool, s.ID+":") })
		}), nil
	case n != 2:
		return "", errUsage
	case verb == "tools":
		list, err := d.Tools(id)
		if err != nil {
			return "", err
		}
		return w.ServerTools(language, id, list) + d.asideOf(language, func(tool string) bool {
			return strings.HasPrefix(tool, id+":")
		}), nil
	case verb == "accept":
		code, list, err := d.Pending(ctx, language, id)
		return w.ServerPending(language, id, code, list), err
	default:
		return "", errUsage
	}
}

// asideOf lists, below an answer, which of some tools the servers of models refuse; "" = none. Only admins use /mcp.
func (d *Handler) asideOf(language string, wanted func(tool string) bool) string {
	if d.deps.Aside == nil {
		return ""
	}
	list := slices.DeleteFunc(d.deps.Aside(), func(a texts.SetAside) bool { return !wanted(a.Tool) })
	if len(list) == 0 {
		return ""
	}
	return "\n" + d.deps.Words.ToolsAside(language, list)
}

// beginsJob reports whether a verb with this number of words starts something that takes a while.
func beginsJob(verb string, words int) bool {
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
