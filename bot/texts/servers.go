package texts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/policy/reason"
)

// Server is a line of /mcp list.
type Server struct {
	ID      string
	State   string // connecting, connected, away, failed …: as the client reports it
	Tools   int
	Trust   string
	Problem string // why it is not connected, in words
	Changed []string
	Fresh   []string // new tools that wait to be accepted
	Held    bool     // the instructions have changed and wait to be accepted
	Dropped int      // tools that are not offered at all
	Dynamic bool     // added in a chat
	Fit, Of int      // tools that the model can be shown at once, out of those that it may use
	Budget  int      // tokens that the definitions of all servers' tools may take together; 0 = no limit
}

// ServerTool is a line of /mcp tools.
type ServerTool struct {
	Name        string
	Description string // or why it is not offered
	Dropped     bool   // it is not offered
}

// ServersOff says that there is no MCP client.
func (w Words) ServersOff(language string) string { return w.in(language).Servers.Off }

// ServersHelp says how /mcp is used.
func (w Words) ServersHelp(language string) string { return w.in(language).Servers.Help }

// Servers answers /mcp list.
func (w Words) Servers(language string, list []Server) string {
	b := w.in(language)
	if len(list) == 0 {
		return b.Servers.None
	}
	lines := []string{b.Servers.Head}
	for _, s := range list {
		state := s.State
		if word, ok := b.Servers.States[s.State]; ok {
			state = word
		}
		line := fmt.Sprintf(
			"• %s · %s · %s · %s",
			visible.Name(s.ID), state, b.Servers.Tools.say(s.Tools), w.Said(language, reason.Trust(s.Trust)),
		)
		if s.Problem != "" {
			line += " · " + visible.Name(s.Problem)
		}
		lines = append(append(lines, line), serverWaits(b, s.ID, s.Changed, s.Fresh, s.Held)...)
		if s.Dropped > 0 {
			lines = append(lines, b.Servers.Dropped.say(s.Dropped))
		}
		if s.Fit < s.Of {
			lines = append(lines, fmt.Sprintf(b.Servers.Fits, s.Fit, s.Of, s.Budget))
		}
	}
	return strings.Join(lines, "\n")
}

// ServerTools answers /mcp tools: those that are offered, and those that are not, with the reason.
func (w Words) ServerTools(language, id string, list []ServerTool) string {
	b := w.in(language)
	offered := 0
	for _, t := range list {
		if !t.Dropped {
			offered++
		}
	}
	lines := []string{visible.Name(id) + " · " + b.Servers.Tools.say(offered)}
	for _, t := range list {
		line := "• " + visible.Name(t.Name)
		if t.Dropped {
			line = "✗ " + visible.Name(t.Name)
		}
		if t.Description != "" {
			line += " – " + visible.Name(t.Description)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// ServerConnecting replies to /mcp add and /mcp restart at once: the result follows later.
func (w Words) ServerConnecting(language, id string) string {
	return fmt.Sprintf(w.in(language).Servers.Connecting, id)
}

// SignIn shows the link with which an admin signs in to a server.
func (w Words) SignIn(language, id, link string) string {
	return fmt.Sprintf(w.in(language).Servers.SignIn, id, link, id)
}

// SignInAgain says that the link of a sign-in has changed.
func (w Words) SignInAgain(language string) string { return w.in(language).Servers.SignInAgain }

// Late says that a command has waited for too long to be performed.
func (w Words) Late(language string) string { return w.in(language).Servers.Late }

// ServerAdded says that a server is connected.
func (w Words) ServerAdded(language, id string, tools int) string {
	b := w.in(language)
	return id + ": " + b.Servers.Added.say(tools)
}

// ServerFailed says why something with a server did not work.
func (w Words) ServerFailed(language, id string, problem reason.Reason) string {
	return fmt.Sprintf(w.in(language).Servers.Failed, visible.Name(id), w.Said(language, problem.Map(visible.Controls)))
}

// ServerRemoved answers /mcp remove.
func (w Words) ServerRemoved(language, id string, tools int) string {
	return id + ": " + w.in(language).Servers.Removed.say(tools)
}

// ServerAccepted answers /mcp accept; no tools: nothing had changed.
func (w Words) ServerAccepted(language, id string, tools []string) string {
	b := w.in(language)
	if len(tools) == 0 {
		return fmt.Sprintf(b.Changes.Nothing, id)
	}
	return fmt.Sprintf(b.Changes.Accepted, id, visible.Name(strings.Join(tools, ", ")))
}

// ServerUnknown says that no server has this id.
func (w Words) ServerUnknown(language, id string) string {
	return fmt.Sprintf(w.in(language).Servers.Unknown, id)
}

// ServerAway tells people who use a server that it has ended.
func (w Words) ServerAway(language, id string) string {
	return fmt.Sprintf(w.in(language).Servers.Away, id)
}

// ServerBack tells them that it is back.
func (w Words) ServerBack(language, id string, tools int) string {
	b := w.in(language)
	return fmt.Sprintf(b.Servers.Back, id, b.Servers.Tools.say(tools))
}

// ServerWaits tells people which changes of a server wait until an admin accepts them: changed tools, new ones, the
// instructions.
func (w Words) ServerWaits(language, id string, changed, fresh []string, held bool) string {
	return strings.Join(serverWaits(w.in(language), id, changed, fresh, held), "\n")
}

func serverWaits(b *book, id string, changed, fresh []string, held bool) []string {
	id = visible.Name(id)
	var lines []string
	if len(changed) > 0 {
		lines = append(lines, fmt.Sprintf(b.Changes.Changed, id, visible.Name(strings.Join(changed, ", "))))
	}
	if len(fresh) > 0 {
		lines = append(lines, fmt.Sprintf(b.Changes.Fresh, id, visible.Name(strings.Join(fresh, ", "))))
	}
	if held {
		lines = append(lines, fmt.Sprintf(b.Changes.Held, id))
	}
	return lines
}

// ServerChange is one change that waits to be accepted, in the server's words; Tool "" = the instructions.
type ServerChange struct {
	Tool     string
	New      bool
	Old, Now []string // lines
}

// Limits of what ServerPending shows.
const maxPendingLines = 400

// ServerPending shows what would be accepted, as removed and added lines, and how; no code: nothing waits.
func (w Words) ServerPending(language, id, code string, changes []ServerChange) string {
	b := w.in(language)
	if code == "" {
		return fmt.Sprintf(b.Changes.Nothing, id)
	}
	id = visible.Name(id)
	lines := []string{fmt.Sprintf(b.Changes.Pending, id)}
	left, hidden := maxPendingLines, 0
	for _, c := range changes {
		head := visible.Name(c.Tool)
		if head == "" {
			head = id + ": " + b.Changes.Words
		}
		if c.New {
			head += " (" + b.Changes.IsNew + ")"
		}
		lines = append(lines, "• "+head)
		diff := append(without("- ", c.Old, c.Now), without("+ ", c.Now, c.Old)...)
		shown := min(len(diff), left)
		for _, line := range diff[:shown] {
			lines = append(lines, visible.Name(line))
		}
		left, hidden = left-shown, hidden+len(diff)-shown
	}
	if hidden > 0 {
		lines = append(lines, fmt.Sprintf(b.Changes.More, hidden))
	}
	return strings.Join(append(lines, fmt.Sprintf(b.Changes.Accept, id, code)), "\n")
}

// without returns the lines of list that other lacks, each as often as list has more of them.
func without(mark string, list, other []string) []string {
	have := map[string]int{}
	for _, line := range other {
		have[line]++
	}
	var out []string
	for _, line := range list {
		if have[line] > 0 {
			have[line]--
			continue
		}
		out = append(out, mark+line)
	}
	return out
}

// ServerLong replaces a schema that is too long to be shown.
func (w Words) ServerLong(language string) string { return w.in(language).Changes.Long }

// ServerPrograms says that programs are not added from the chat, and what would change that.
func (w Words) ServerPrograms(language string) string { return w.in(language).Servers.Programs }

// ServerNobody says that there is nobody to ask about a server.
func (w Words) ServerNobody(language string) string { return w.in(language).Servers.Nobody }

// ServerProposal is what a card about /mcp add shows.
type ServerProposal struct {
	ID      string
	Program []string // words of the command line
	URL     string
	Env     []string // names of variables that it receives
	Holds   string   // how it is confined; "" for a URL
}

// ServerAdd is what has to be decided: every word of a command line on a line of its own, so that none can look like
// two.
func (w Words) ServerAdd(language string, p ServerProposal) string {
	b := w.in(language)
	lines := []string{fmt.Sprintf(b.Proposal.Add, p.ID)}
	if p.URL != "" {
		lines = append(lines, fmt.Sprintf(b.Proposal.URL, p.URL))
	}
	for i, word := range p.Program {
		word = strconv.Quote(word)
		if i == 0 {
			word = fmt.Sprintf(b.Proposal.Program, word)
		} else {
			word = "· " + word
		}
		lines = append(lines, word)
	}
	if len(p.Env) > 0 {
		lines = append(lines, fmt.Sprintf(b.Proposal.Env, strings.Join(p.Env, ", ")))
	}
	if p.Holds != "" {
		lines = append(lines, fmt.Sprintf(b.Proposal.Holds, p.Holds))
	}
	return strings.Join(lines, "\n")
}

// Unblocked answers /tools unblock.
func (w Words) Unblocked(language, tool string, was bool) string {
	b := w.in(language)
	if !was {
		return fmt.Sprintf(b.Blocked.NotBlocked, visible.Name(tool))
	}
	return fmt.Sprintf(b.Blocked.Unblocked, tool)
}

// Meant suggests another name for a misspelt one.
func (w Words) Meant(language, name string) string {
	return fmt.Sprintf(w.in(language).Blocked.Meant, visible.Name(name))
}
