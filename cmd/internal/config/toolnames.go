package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/policy/reason"
)

// KnownTools returns the names of our own tools, including those that are not built yet: a rule about them is not a
// mistake.
func KnownTools() []string {
	return []string{
		"bash", "read", "write", "edit", "grep", "find_path", "list_directory", "create_directory", "delete_path",
		"move_path", "copy_path",
		"fetch", "web_scrape", "read_overflow",
		"search_code", "diagnostics", "memory_search", "memory_save", "memory_forget", "schedule_periodic",
		"schedule_deferred", "list_tasks",
		"cancel_task", "send_file", "use_skill", "load_skill", "invoke_skill", "delegate", "web_search", "search_tools",
		"find_tools", "tool_search",
	}
}

// aliases returns other names of tools, as the tools state them.
func aliases() []string { return []string{"shell", "sh", "read_file", "write_file", "glob"} }

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
// a chat, so that the name may be right.
func (c *Config) ToolProblem(name string, glob bool) (problem reason.Reason, sure bool) {
	server, _, qualified := strings.Cut(strings.TrimSpace(name), ":")
	if qualified {
		return c.serverProblem(name, server, glob)
	}
	canonical := strings.ToLower(strings.TrimSpace(name))
	known := KnownTools()
	if slices.Contains(known, canonical) || slices.Contains(aliases(), canonical) ||
		glob && slices.ContainsFunc(known, func(k string) bool { return matches(canonical, k) }) {
		return reason.Reason{}, true
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
