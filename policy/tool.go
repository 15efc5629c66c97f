package policy

import (
	"slices"
	"strings"
)

// CanonicalTool gives the name a tool is known by: white space is trimmed and
// the aliases shell, sh (bash), read_file (read), write_file (write) and glob
// (find_path) are resolved. Letters of a tool of our own match in either case;
// the qualified name of an MCP tool, server:tool, stays as it is.
func CanonicalTool(name string) string {
	name = strings.TrimSpace(name)
	if strings.Contains(name, ":") {
		return name
	}
	name = strings.ToLower(name)
	switch name {
	case "shell", "sh":
		return "bash"
	case "read_file":
		return "read"
	case "write_file":
		return "write"
	case "glob":
		return "find_path"
	}
	return name
}

// isMCP tells a tool of an MCP server by its qualified name.
func isMCP(tool string) bool { return strings.Contains(tool, ":") }

// readonlyTool is the list of autonomy level readonly (tools that read files
// and the web).
func readonlyTool(tool string) bool {
	switch tool {
	case "read", "find_path", "grep", "list_directory", "web_scrape", "fetch":
		return true
	}
	return false
}

// readingTool names the tools of our own that change nothing and send nothing
// out.
func readingTool(tool string) bool {
	switch tool {
	case "read", "grep", "find_path", "list_directory", "search_code",
		"diagnostics", "read_overflow", "memory_search", "list_tasks", "tool_search":
		return true
	}
	return false
}

// builtinAllow says whether a tool without rules runs without asking.
func builtinAllow(r *Request, tool string) bool {
	if isMCP(tool) {
		return r.TrustedServer && r.ReadOnly
	}
	switch tool {
	case "fetch", "web_scrape", "memory_save", "cancel_task":
		return true
	}
	return readingTool(tool) || strings.HasPrefix(tool, "schedule_")
}

// contained says whether a call stays within what the conversation has already
// seen: it reads again what was read, or the conversation's own memory. A model
// that obeys a hostile text must not get at anything else, nor carry anything
// out, without a person; what a command reads is not known well enough.
func (c *call) contained() bool {
	switch c.tool {
	case "read_overflow", "memory_search", "list_tasks", "tool_search":
		return true
	case "read", "grep", "find_path", "list_directory", "search_code", "diagnostics":
		return len(c.req.Paths) > 0 && !slices.ContainsFunc(c.req.Paths, func(path string) bool {
			return !slices.Contains(c.req.Touched, path)
		})
	}
	return false
}
