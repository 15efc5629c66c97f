package policy

import "strings"

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
		"diagnostics", "read_overflow", "memory_search", "list_tasks":
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

// changes says whether the call may change something. An untrusted server's
// word that its tool only reads does not count.
func (c *call) changes() bool {
	if isMCP(c.tool) {
		return !c.req.TrustedServer || !c.req.ReadOnly
	}
	switch c.tool {
	case "bash":
		return !c.reads()
	case "fetch", "web_scrape":
		return false
	}
	return !readingTool(c.tool) && !c.req.ReadOnly
}
