package policy

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
)

// isMCP tells a tool of an MCP server by its qualified name.
func isMCP(tool string) bool { return strings.Contains(tool, ":") }

// Canonical returns the name that the rules know a tool by, see [act.Names.Canonical].
func (s *Set) Canonical(tool string) string { return s.names.Canonical(tool) }

// does returns what the tool of a request says that it does. A tool of an MCP server
// is not believed.
func (s *Set) does(r *Request, tool string) act.Act {
	switch {
	case isMCP(tool):
		return act.Unknown
	case r.Says != nil:
		return r.Says.Act
	}
	return s.names.Act(tool)
}

// runs reports that the call runs commands.
func (c *call) runs() bool { return c.act == act.Runs }

// builtinAllow reports whether a tool without rules runs without asking.
func (c *call) builtinAllow() bool {
	if isMCP(c.tool) {
		return c.req.TrustedServer && c.req.ReadOnly
	}
	return c.act.Free()
}

// contained reports whether a call stays within what the conversation has already
// seen: it reads again what was read, or the conversation's own memory. A model
// that obeys a hostile text must not get at anything else, nor carry anything
// out, without a person; what a command reads is not known well enough.
func (c *call) contained() bool {
	if c.act == act.Recalls {
		return true
	}
	return c.act.ReadsFiles() && len(c.req.Paths) > 0 && !slices.ContainsFunc(c.req.Paths, func(path string) bool {
		return !slices.Contains(c.req.Touched, path)
	})
}

// doer is a tool that does to a file what commands do too: its rules hold for
// them.
type doer struct {
	use  command.Use
	tool string
	verb act.Verb
}

// doers finds them among the tools, in their order.
func doers(list []act.Tool) []doer {
	var out []doer
	for i := range list {
		if use := useOf(list[i].Act); use != 0 {
			out = append(out, doer{use: use, tool: list[i].Name, verb: list[i].Verb})
		}
	}
	return out
}

// useOf returns what an act does to a file, in the terms of commands; 0 = nothing
// that rules for commands are taken from.
func useOf(a act.Act) command.Use {
	switch a {
	case act.ReadsFile:
		return command.UseRead
	case act.WritesFile:
		return command.UseWrite
	case act.MakesDirectory:
		return command.UseMake
	case act.RemovesPath:
		return command.UseRemove
	case act.MovesPath:
		return command.UseMove
	case act.CopiesPath:
		return command.UseCopy
	}
	return 0
}
