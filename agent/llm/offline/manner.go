package offline

import "strings"

// personaRE and calledRE find in a prompt whom it is to speak as, and what a person has said that they are called.
var (
	personaRE = lazyExpression(`\nThis chat has chosen you to speak as ([^\n]+?)\. What is said above`)
	calledRE  = lazyExpression(`(?i)\n\[in the words of the person\](?:\n> .*)*?\n> .*?\b(?:call me|my name is) ([\p{L}\p{N}]+)`)
)

// blockRE matches a Markdown text that begins with a heading, a list, a quotation, a table or code.
var blockRE = lazyExpression("^(?:#{1,6} |>|[-*+] |\\d+[.)] |\\||```)")

// mannered puts before an answer who speaks and to whom, so that it can be seen that a prompt says so.
func mannered(system, text string) string {
	var who []string
	if m := personaRE().FindStringSubmatch(system); m != nil {
		who = append(who, m[1])
	}
	if m := calledRE().FindStringSubmatch(system); m != nil {
		who = append(who, "to "+m[1])
	}
	if len(who) == 0 {
		return text
	}
	space := " "
	if blockRE().MatchString(text) { // which has to begin a line
		space = "\n\n"
	}
	return strings.Join(who, ", ") + ":" + space + text
}
