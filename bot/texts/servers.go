package texts

import (
	"fmt"
	"strings"

	"github.com/zephbot/zephbot/bot/visible"
)

// Server is a line of /mcp list.
type Server struct {
	ID      string
	State   string // connecting, connected, away, failed …: as the client says it
	Tools   int
	Trust   string
	Problem string // why it is not connected, in words
	Changed []string
	Dynamic bool // added in the chat
}

// ServerTool is a line of /mcp tools.
type ServerTool struct {
	Name        string
	Description string
}

// ServersOff says that there is no MCP client here.
func (Words) ServersOff(language string) string { return in(language).serversOff }

// ServersHelp says how /mcp is used.
func (Words) ServersHelp(language string) string { return in(language).serversHelp }

// Servers answers /mcp list.
func (Words) Servers(language string, list []Server) string {
	b := in(language)
	if len(list) == 0 {
		return b.serversNone
	}
	lines := []string{b.serversHead}
	for _, s := range list {
		state := s.State
		if word, ok := b.serverStates[s.State]; ok {
			state = word
		}
		line := fmt.Sprintf("• %s · %s · %s · %s", s.ID, state, b.serverTools.say(s.Tools), s.Trust)
		if s.Problem != "" {
			line += " · " + s.Problem
		}
		if len(s.Changed) > 0 {
			lines = append(lines, line)
			line = fmt.Sprintf(b.serverChanged, s.ID, strings.Join(s.Changed, ", "))
		}
		lines = append(lines, line)
	}
	return lined(lines)
}

// ServerTools answers /mcp tools.
func (Words) ServerTools(language, id string, list []ServerTool) string {
	b := in(language)
	lines := []string{id + " · " + b.serverTools.say(len(list))}
	for _, t := range list {
		line := "• " + t.Name
		if t.Description != "" {
			line += " – " + t.Description
		}
		lines = append(lines, line)
	}
	return lined(lines)
}

// ServerConnecting answers /mcp add and /mcp restart at once: how it went is told later.
func (Words) ServerConnecting(language, id string) string {
	return fmt.Sprintf(in(language).serverConnecting, id)
}

// SignIn shows the link with which an admin signs in to a server.
func (Words) SignIn(language, id, link string) string {
	return fmt.Sprintf(in(language).serverSignIn, id, link, id)
}

// ServerAdded says that a server is connected.
func (Words) ServerAdded(language, id string, tools int) string {
	b := in(language)
	return id + ": " + b.serverAdded.say(tools)
}

// ServerFailed says why something with a server did not work.
func (Words) ServerFailed(language, id, problem string) string {
	return fmt.Sprintf(in(language).serverFailed, visible.Name(id), visible.Controls(problem))
}

// ServerRemoved answers /mcp remove.
func (Words) ServerRemoved(language, id string, tools int) string {
	return id + ": " + in(language).serverRemoved.say(tools)
}

// ServerAccepted answers /mcp accept; no tools: nothing had changed.
func (Words) ServerAccepted(language, id string, tools []string) string {
	b := in(language)
	if len(tools) == 0 {
		return fmt.Sprintf(b.serverNothing, id)
	}
	return fmt.Sprintf(b.serverAccepted, id, visible.Name(strings.Join(tools, ", ")))
}

// ServerUnknown says that no server has this id.
func (Words) ServerUnknown(language, id string) string {
	return fmt.Sprintf(in(language).serverNone, id)
}

// ServerAway tells people who use a server that it has ended.
func (Words) ServerAway(language, id string) string { return fmt.Sprintf(in(language).serverAway, id) }

// ServerBack tells them that it is there again.
func (Words) ServerBack(language, id string, tools int) string {
	b := in(language)
	return fmt.Sprintf(b.serverBack, id, b.serverTools.say(tools))
}

// ServerChanged tells admins that tools are withdrawn until somebody accepts them.
func (Words) ServerChanged(language, id string, tools []string) string {
	return fmt.Sprintf(in(language).serverChanged, id, visible.Name(strings.Join(tools, ", ")))
}

// Blocked is a tool that was taken away because it failed too often.
type Blocked struct {
	Tool   string
	Reason string
}

// ToolsBlocked follows /tools when something is blocked.
func (Words) ToolsBlocked(language string, list []Blocked) string {
	lines := []string{in(language).toolsBlocked}
	for _, t := range list {
		lines = append(lines, "• "+t.Tool+" – "+t.Reason)
	}
	return lined(lines)
}

// Unblocked answers /tools unblock.
func (Words) Unblocked(language, tool string, was bool) string {
	b := in(language)
	if !was {
		return fmt.Sprintf(b.notBlocked, tool)
	}
	return fmt.Sprintf(b.unblocked, tool)
}
