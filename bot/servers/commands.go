package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// List lists the servers.
func (d *Handler) List() []texts.Server {
	var list []texts.Server
	shares, budget := d.deps.Shares()
	for _, st := range d.deps.Client.Statuses() {
		share := shares[st.ID]
		list = append(list, texts.Server{
			Fit: share.Fit, Of: share.Of, Budget: budget,
			ID: st.ID, State: string(st.State), Tools: len(st.Tools), Trust: string(st.Trust), Problem: st.Problem,
			Changed: st.Withdrawn, Fresh: st.Fresh, Held: st.Held,
			Dropped: len(st.Dropped), Dynamic: st.Dynamic,
		})
	}
	return list
}

// maxToolLine limits the description of a tool in /mcp tools, in characters.
const maxToolLine = 120

// Tools lists the tools of a server, also those that it may not offer.
func (d *Handler) Tools(id string) ([]texts.ServerTool, error) {
	if !d.knowsServer(id) {
		return nil, ErrNoServer
	}
	var list []texts.ServerTool
	for _, d := range d.deps.Client.Tools(id) {
		line, _, _ := strings.Cut(strings.TrimSpace(d.Description), "\n")
		if r := []rune(line); len(r) > maxToolLine {
			line = string(r[:maxToolLine]) + "…"
		}
		list = append(list, texts.ServerTool{Name: d.Name, Description: line})
	}
	for _, st := range d.deps.Client.Statuses() {
		if st.ID != id {
			continue
		}
		for _, d := range st.Dropped {
			list = append(list, texts.ServerTool{
				Name: guard.Qualified(id, d.Tool), Description: d.Reason, Dropped: true,
			})
		}
	}
	return list, nil
}

func (d *Handler) knowsServer(id string) bool {
	_, ok := d.statusOf(id)
	return ok
}

// checkProposal returns what is obviously wrong with /mcp add. A refusal is recorded in the audit.
func (d *Handler) checkProposal(call *turn.Call, id string, target []string) error {
	server, err := d.parseServer(id, target)
	if err == nil && !d.knowsServer(id) {
		if err = d.deps.Client.Check(server); err != nil {
			err = &reason.Error{Reason: errorSentence(err)}
		}
	}
	switch {
	case err != nil:
	case !isURL(target[0]) && !d.deps.Programs:
		err = errors.New(d.deps.Words.ServerPrograms(call.Message.Language))
	case d.knowsServer(id):
		err = reason.Err(reason.ServerTaken, id, id)
	case d.deps.Nobody:
		err = errors.New(d.deps.Words.ServerNobody(call.Message.Language))
	default:
		return nil
	}
	return d.withAudit(call, "add", addArgs(id, target), "", func() error { return blockedError(err) })
}

// blockedError is an error that the audit counts as blocked.
func blockedError(err error) error {
	return &tools.Error{Category: tools.PolicyBlocked, Message: err.Error(), Reason: reason.OfError(err), Err: err}
}

func addArgs(id string, target []string) map[string]any {
	if isURL(target[0]) {
		return map[string]any{"id": id, "url": target[0]}
	}
	return map[string]any{"id": id, "command": target[0], "args": target[1:]}
}

func isURL(word string) bool {
	return strings.HasPrefix(word, "http://") || strings.HasPrefix(word, "https://")
}

// withAudit does what a command asks for, and records it in the audit like the call of a tool: tool "/mcp VERB", the
// arguments, who asked, who approved. It returns the error in words for the person.
func (d *Handler) withAudit(call *turn.Call, verb string, args map[string]any, by string, work func() error) error {
	err := work()
	d.deps.Audit.Record(mcpCall(call, verb, args, by, err), err)
	var denied *tools.Error
	var e *guard.Error
	if errors.As(err, &denied) && !errors.As(err, &e) && denied.Err != nil && denied.Denied() {
		return denied.Err
	}
	return err
}

// mcpCall returns a command of /mcp as a call for the audit.
func mcpCall(call *turn.Call, verb string, args map[string]any, by string, err error) *tools.Call {
	raw, jsonErr := json.Marshal(args)
	if jsonErr != nil {
		raw = json.RawMessage("{}")
	}
	id, _ := args["id"].(string)
	c := &tools.Call{
		ID: call.Message.ID, Tool: "/mcp " + verb, Args: raw, Trail: &tools.Trail{ApprovedBy: by, MCPServer: id},
		Origin: tools.Origin{
			Channel: call.Message.Place.Channel, Session: string(call.Session), Chat: call.Message.Place.ChatKey(),
			Caller: call.Message.Caller, Admin: call.Admin,
		},
	}
	if e, ok := errors.AsType[*guard.Error](err); ok {
		c.Trail.MCPErrorCode = string(e.Code)
	}
	return c
}

// parseServer parses what follows /mcp add ID.
func (d *Handler) parseServer(id string, target []string) (mcp.Server, error) {
	server := mcp.Server{ID: id, Trust: guard.Untrusted}
	if err := guard.ServerID(id); err != nil {
		return server, err
	}
	first := target[0]
	if isURL(first) {
		if len(target) > 1 {
			return server, reason.Err(reason.URLFollowed)
		}
		server.URL = first
		return server, nil
	}
	server.Command, server.Args = first, target[1:]
	return server, guard.Command(first, d.deps.AllowedCommands)
}

// Pending returns the changes of a server that wait to be accepted, and the code that identifies exactly these; "" if
// there are none.
func (d *Handler) Pending(ctx context.Context, language, id string) (string, []texts.ServerChange, error) {
	if !d.knowsServer(id) {
		return "", nil, ErrNoServer
	}
	w := d.deps.Words
	p, err := d.deps.Client.Pending(ctx, id)
	if err != nil {
		return "", nil, &reason.Error{Reason: errorSentence(err)}
	}
	list := make([]texts.ServerChange, len(p.Changes))
	for i, c := range p.Changes {
		list[i] = texts.ServerChange{
			Tool: c.Tool, New: c.New, Old: shownLines(w, language, c.Old), Now: shownLines(w, language, c.Now),
		}
	}
	return p.Code, list, nil
}

// shownLines returns the lines by which a person compares two states of a tool.
func shownLines(w texts.Words, language string, s mcp.Shown) []string {
	var lines []string
	add := func(head, text string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); strings.TrimSpace(line) != "" {
				lines = append(lines, head+line)
			}
		}
	}
	add("", s.Title)
	add("", s.Description)
	for _, part := range []struct{ head, schema string }{{"← ", s.Input}, {"→ ", s.Output}} {
		var b bytes.Buffer
		switch {
		case part.schema == "":
		case json.Indent(&b, []byte(part.schema), "", " ") == nil:
			add(part.head, b.String())
		default:
			add(part.head, w.ServerLong(language))
		}
	}
	add("", s.Hints)
	return lines
}

// errorSentence returns an error in words for people: the client's explanation if there is
// one, else the error's own text.
func errorSentence(err error) reason.Reason {
	var e *guard.Error
	switch why := reason.OfError(err); {
	case why.Code != "" || !errors.As(err, &e) || e.Message == "":
		return why
	case e.Reason.Code != "":
		return e.Reason
	}
	return reason.Plain(e.Message + " (" + string(e.Code) + ")")
}
