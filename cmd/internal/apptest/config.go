package apptest

import "strings"

// base admits the people of the scene. telegram.limits are off, and a counter that does not respond in time on a busy
// machine lets a turn pass: a scenario tests order and content, not timing.
const base = `
data_dir = %q
[telegram]
token = %q
api_url = %q
allowed_users = [1001, 1002, 1003]
admins = [1001]
allowed_chats = [-2001, -1001000000077]
webhook_url = %q
merge_ms = 0
[telegram.limits]
per_second = 0
per_chat_per_second = 0
per_group_per_minute = 0
[quotas]
on_redis_down = "allow"
[tools.shell]
sandbox = "off"
[database]
url = %q
`

// sharing is what processes share in addition to the database.
const sharing = `
[redis]
url = %q
[workspaces]
dir = %q
shared = true
`

// merge merges a scenario's tables into the base: keys of a table that the base has are added to that table.
func merge(base, extra string) string {
	head, tables := split(base)
	extraHead, extraTables := split(extra)
	var b strings.Builder
	b.WriteString(head + extraHead)
	seen := map[string]bool{}
	for _, name := range tables.order {
		b.WriteString(name + "\n" + override(tables.body[name], extraTables.body[name]))
		seen[name] = true
	}
	for _, name := range extraTables.order {
		if !seen[name] {
			b.WriteString(name + "\n" + extraTables.body[name])
		}
	}
	return b.String()
}

// override removes lines of a table that another text sets too.
func override(base, extra string) string {
	set := map[string]bool{}
	for line := range strings.Lines(extra) {
		if key, _, ok := strings.Cut(line, "="); ok {
			set[strings.TrimSpace(key)] = true
		}
	}
	var b strings.Builder
	for line := range strings.Lines(base) {
		if key, _, ok := strings.Cut(line, "="); !ok || !set[strings.TrimSpace(key)] {
			b.WriteString(line)
		}
	}
	return b.String() + extra
}

type tableSet struct {
	order []string
	body  map[string]string
}

// split splits TOML text at its table headers; each array of tables remains one piece.
func split(text string) (head string, set tableSet) {
	set.body = map[string]string{}
	name := ""
	for line := range strings.Lines(text) {
		if trimmed := strings.TrimSpace(line); strings.HasPrefix(trimmed, "[") && !strings.Contains(trimmed, "=") {
			name = trimmed
			if strings.HasPrefix(name, "[[") {
				name += strings.Repeat(" ", len(set.order)) // each entry separately
			}
			if _, ok := set.body[name]; !ok {
				set.order = append(set.order, name)
			}
			continue
		}
		if name == "" {
			head += line
		} else {
			set.body[name] += line
		}
	}
	return head, set
}
