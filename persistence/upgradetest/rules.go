package upgradetest

import (
	"fmt"
	"regexp"
	"strings"
)

// Promise begins the line of a migration that says how a process of the previous version, which does not know the
// migration, is affected.
const Promise = "-- Old writers: "

var (
	comment  = regexp.MustCompile(`--[^\n]*`)
	body     = regexp.MustCompile(`(?s)\$(\w*)\$.*?\$\w*\$`)
	newTable = regexp.MustCompile(`(?i)\bcreate\s+table\s+(?:if\s+not\s+exists\s+)?"?(\w+)`)
	altered  = regexp.MustCompile(`(?i)^alter\s+table\s+(?:only\s+)?"?(\w+)`)
	unique   = regexp.MustCompile(`(?is)^create\s+unique\s+index\s+.*?\bon\s+(?:only\s+)?"?(\w+)`)
	added    = regexp.MustCompile(`(?is)\badd\s+column\b.*\bnot\s+null\b`)
	defaults = regexp.MustCompile(`(?i)\bdefault\b`)
)

// forbidden lists statements that remove or restrict something that a process of the previous version relies on.
var forbidden = []struct {
	what  *regexp.Regexp
	why   string
	known bool // only for tables that existed before
}{
	{
		regexp.MustCompile(`(?i)\bdrop\s+(table|column|function|sequence|view|schema|type)\b`),
		"removes what the version before uses",
		false,
	},
	{
		regexp.MustCompile(`(?i)\balter\s+table\b.*\bdrop\s+(?:constraint|default)\b`),
		"removes what the version before uses",
		true,
	},
	{regexp.MustCompile(`(?i)\brename\b`), "renames what the version before uses", false},
	{
		regexp.MustCompile(`(?i)\balter\s+(?:column\s+)?\w+\s+(?:set\s+data\s+)?type\b`),
		"changes a type that the version before knows",
		true,
	},
	{regexp.MustCompile(`(?i)\bset\s+not\s+null\b`), "refuses rows of the version before", true},
	{
		regexp.MustCompile(`(?i)\badd\s+(?:constraint|check|unique|primary|foreign|exclude)\b`),
		"may refuse rows of the version before",
		true,
	},
	{regexp.MustCompile(`(?i)\bcreate\s+or\s+replace\b`), "changes what the version before calls", false},
	{regexp.MustCompile(`(?i)\b(?:truncate|delete\s+from)\b`), "deletes what the version before wrote", false},
	{regexp.MustCompile(`(?i)\bcreate\s+(?:constraint\s+)?trigger\b`), "changes what the version before writes", true},
}

// Forbidden lists what a migration must not do, because processes of the previous version continue to run; none = no
// violation. text is its upward half.
func Forbidden(text string) []string {
	text = body.ReplaceAllString(comment.ReplaceAllString(text, ""), "''")
	created := map[string]bool{}
	for _, match := range newTable.FindAllStringSubmatch(text, -1) {
		created[strings.ToLower(match[1])] = true
	}
	var problems []string
	for statement := range strings.SplitSeq(text, ";") {
		statement = strings.Join(strings.Fields(statement), " ")
		problems = append(problems, forbiddenIn(statement, created)...)
	}
	return problems
}

func forbiddenIn(statement string, created map[string]bool) (problems []string) {
	complain := func(why string) { problems = append(problems, fmt.Sprintf("%q %s", statement, why)) }
	table := altered.FindStringSubmatch(statement)
	isNew := table != nil && created[strings.ToLower(table[1])]
	for _, rule := range forbidden {
		if rule.what.MatchString(statement) && (!rule.known || !isNew) {
			complain(rule.why)
		}
	}
	if !isNew && added.MatchString(statement) && !defaults.MatchString(statement) {
		complain("adds a column that the version before leaves out, and that has no default")
	}
	if match := unique.FindStringSubmatch(statement); match != nil && !created[strings.ToLower(match[1])] {
		complain("may refuse rows of the version before")
	}
	return problems
}

// Promised reports whether a migration says how processes of the previous version are affected.
func Promised(text string) bool {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, Promise); ok && len(strings.Fields(rest)) >= 3 {
			return true
		}
	}
	return false
}
