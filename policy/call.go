package policy

// A call as the rules see it: its inputs, its scripts, and what its tool states about itself.

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/command"
)

// call is a request in the form that the permissions need.
type call struct {
	req          *Request
	tool         string
	act          act.Act
	names        act.Names
	inputs       []string // never empty
	scripts      []*command.Reading
	reader       *command.Reader
	touchedList  []touched
	touchedKnown bool
}

func (s *Set) newCall(r *Request) *call {
	tool := s.Canonical(r.Tool)
	c := &call{req: r, tool: tool, act: s.does(r, tool), names: s.names, inputs: r.Inputs, reader: s.reader}
	if len(c.inputs) == 0 {
		c.inputs = argumentInputs(c.runs(), r.Args)
	}
	if c.runs() {
		c.scripts = make([]*command.Reading, 0, len(c.inputs))
		for _, text := range c.inputs {
			c.scripts = append(c.scripts, c.reader.Read(text))
		}
	}
	return c
}

// argumentInputs returns the inputs of a call whose tool did not describe them. Without any, it returns the empty text.
func argumentInputs(commands bool, args map[string]any) []string {
	keys := []string{"command"}
	if !commands {
		keys = []string{"file_path", "path", "source", "destination", "url", "uri"}
	}
	var out []string
	for _, key := range keys {
		if v, ok := args[key].(string); ok {
			out = append(out, v)
		}
	}
	if v, ok := args["query"].(string); ok && len(out) == 0 && !commands {
		out = append(out, v)
	}
	if len(out) == 0 {
		out = append(out, "")
	}
	return out
}

// dir returns the working directory of the call; "" if it is not known.
func (c *call) dir() string {
	if c.req.Dir == "" && len(c.req.InsidePaths) > 0 {
		return c.req.InsidePaths[0]
	}
	return c.req.Dir
}

// isMCP reports whether a tool belongs to an MCP server, by its qualified name.
func isMCP(tool string) bool { return strings.Contains(tool, ":") }

// Canonical returns the name by which the rules know a tool, see [act.Names.Canonical].
func (s *Set) Canonical(tool string) string { return s.names.Canonical(tool) }

// does returns the act of a request's tool. A tool of an MCP server is not believed.
func (s *Set) does(r *Request, tool string) act.Act {
	switch {
	case isMCP(tool):
		return act.Unknown
	case r.Says != nil:
		return r.Says.Act
	}
	return s.names.Act(tool)
}

// runs reports whether the call runs commands.
func (c *call) runs() bool { return c.act == act.Runs }

// builtinAllow reports whether a tool without rules runs without asking.
func (c *call) builtinAllow() bool {
	if isMCP(c.tool) {
		return c.req.TrustedServer && c.req.ReadOnly
	}
	return c.act.Free() && !c.req.Costly
}

// contained reports whether a call uses only what the session has already seen: it reads files again, or the session's
// own memory. A model that obeys a hostile text must not, without a person, read anything else or carry anything out.
// What a command reads is not known precisely enough.
func (c *call) contained() bool {
	switch c.act {
	case act.Recalls, act.Asks, act.Plans, act.Delegates: // a sub-agent's calls are judged with the same flag
		return true
	}
	return c.act.ReadsFiles() && len(c.req.Paths) > 0 && !slices.ContainsFunc(c.req.Paths, func(path string) bool {
		return !slices.Contains(c.req.Touched, path)
	})
}

// doer is a tool that does to files what commands can do too, so that its rules apply to commands.
type doer struct {
	use  command.Use
	tool string
	verb act.Verb
}

// doers returns these tools, in the given order.
func doers(list []act.Tool) []doer {
	var out []doer
	for i := range list {
		if use := useOf(list[i].Act); use != 0 {
			out = append(out, doer{use: use, tool: list[i].Name, verb: list[i].Verb})
		}
	}
	return out
}

// useOf returns what an act does to a file, in the terms of package command; 0 = nothing for which commands are judged.
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
