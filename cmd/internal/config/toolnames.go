package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/policy/reason"
)

// Kinds of tool names, the values of the tag "tools".
const (
	toolName = "name" // of a tool of our own, or server:tool
	toolGlob = "glob" // of such names
	// a name, or the name that a server gives its tool, which is unknown until it is connected
	toolBare   = "bare"
	toolServer = "server" // what a server calls its tool
)

// ToolProblem returns what is wrong with the name of a tool, or with a glob of such names; none = nothing. A qualified
// name, server:tool, has to begin with the id of a configured server; sure is false if the server may still be added in
// a chat, so that the name may be right. The names of our own tools are those of Source.Tools.
func (c *Config) ToolProblem(name string, glob bool) (problem reason.Reason, sure bool) {
	server, _, qualified := strings.Cut(strings.TrimSpace(name), ":")
	if qualified {
		return c.serverProblem(name, server, glob)
	}
	canonical := strings.ToLower(strings.TrimSpace(name))
	names := func(tool act.Tool) bool {
		return tool.Name == canonical || slices.Contains(tool.Aliases, canonical) ||
			glob && matches(canonical, tool.Name)
	}
	if c.tools == nil || slices.ContainsFunc(c.tools, names) {
		return reason.Reason{}, true
	}
	var known []string
	for _, tool := range c.tools {
		known = append(known, tool.Name)
	}
	problem = reason.New(reason.NamesNoTool, shorten(name))
	if glob && strings.ContainsAny(name, "*?[{") {
		problem.Code = reason.MatchesNoTool
	}
	if near, ok := nearest.Nearest(canonical, known); ok {
		problem = problem.With(reason.New(reason.DidYouMean, near))
	} else if len(c.MCP.Servers) > 0 || c.MCP.MaxDynamicServers > 0 {
		problem = problem.With(reason.New(reason.OrServerTool))
	}
	return problem, true
}

// matches reports whether a glob of a rule covers a name. An invalid glob is refused by the rules themselves.
func matches(glob, name string) bool {
	g, err := policy.CompileGlob(glob, true)
	return err != nil || g.Match(name)
}

// serverProblem checks the part of a qualified name before the colon.
func (c *Config) serverProblem(name, server string, glob bool) (problem reason.Reason, sure bool) {
	var ids []string
	for _, s := range c.MCP.Servers {
		if s.ID == server || glob && matches(server, s.ID) {
			return reason.Reason{}, true
		}
		ids = append(ids, s.ID)
	}
	if glob && strings.ContainsAny(server, "*?[{") {
		return reason.Reason{}, true // of any server
	}
	problem = reason.New(reason.NamesNoServer, shorten(name), shorten(server))
	if near, ok := nearest.Nearest(server, ids); ok {
		return problem.With(reason.New(reason.DidYouMean, near)), true
	}
	return problem, c.MCP.MaxDynamicServers == 0
}

// toolNames checks all names of tools.
func (k *checker) toolNames() {
	walk(k.c, func(l leaf) {
		if l.tools == "" || k.bad[l.key] {
			return
		}
		for _, name := range textsOf(l.value) {
			k.toolName(l.key, l.tools, name)
		}
	})
	for _, tool := range slices.Sorted(maps.Keys(k.c.Tools.Permissions)) {
		k.toolName(join("tools.permissions", tool), toolName, tool)
	}
	for _, tool := range slices.Sorted(maps.Keys(k.c.Tools.Dependencies.Rules)) {
		k.toolName(join("tools.dependencies.rules", tool), toolName, tool)
	}
	for i, s := range k.c.MCP.Servers {
		for _, tool := range slices.Sorted(maps.Keys(s.ToolMetadata)) {
			k.toolName(join(join(item("mcp.servers", i), "tool_metadata"), tool), toolServer, tool)
		}
	}
}

func (k *checker) toolName(key, kind, name string) {
	if kind == toolServer {
		if server, own, ok := strings.Cut(name, ":"); ok {
			k.wrong(key, "%s: here a tool has the name that the server gives it; write %s without %s", shorten(name),
				shorten(own), shorten(server+":"))
		}
		return
	}
	if kind == toolBare && !strings.Contains(name, ":") {
		return
	}
	problem, sure := k.c.ToolProblem(name, kind == toolGlob)
	switch {
	case !problem.Known():
	case strings.HasPrefix(key, "tools.dependencies.rules."):
		// an order of tools that do not exist lets nothing happen, and people bring such rules from elsewhere
		k.warn(key, "%s; the rule waits for such a tool", problem)
	case sure:
		k.wrong(key, "%s", problem)
	default:
		k.warn(key, "%s; it counts once such a server is added in the chat", problem)
	}
}

// textsOf returns the texts of a list, which may be absent.
func textsOf(v reflect.Value) []string {
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return nil
		}
		v = v.Elem()
	}
	var list []string
	for i := range v.Len() {
		list = append(list, v.Index(i).String())
	}
	return list
}
