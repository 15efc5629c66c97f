package command

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// judge compares a command with the table of its program, and returns what it found; without a table, nothing. Only what the
// tables list is harmless: an option that is unknown, abbreviated or hidden in an expansion departs.
func (c *Command) judge() (d departing) {
	name := strings.ToLower(c.Name)
	if table := tableOf(name); table != nil {
		d = departing{command: c, table: table, title: name}
		d.run()
	}
	return d
}

// follow judges the words of a command by the table of its program, and follows the commands among them.
func (f *finder) follow(d departing, words []word, at place) {
	ends := d.row.follows()
	for _, each := range d.found {
		if each.Starts || ends && strings.HasSuffix(each.Why, effectOf("|writes")) {
			f.doubt(reason.Reason{Code: reason.OptionDoes, Args: []string{clip(each.Option)}, Detail: each.Why})
		}
		if ends && each.Unknown {
			f.indirect(reason.New(reason.OptionsUnread, d.title))
		}
	}
	options := words[1:min(d.end, len(words))]
	if len(words) > len(d.command.Words) {
		options = words[1:]
	}
	for _, w := range options {
		if d.row.starts && w.splits() && (w.added || d.row.execs || strings.IndexByte("-$`\"", w.text[0]) >= 0) {
			f.doubt(reason.New(reason.OptionExpands, d.title))
		}
	}
	for _, set := range d.sets {
		name, value, _ := strings.Cut(set.text, "=")
		f.exports(name, value, d.title)
	}
	for _, code := range d.codes {
		f.code(d.title, code, at)
	}
	for _, exec := range d.execs {
		f.inner(d.title+" "+words[exec[0]].text, placeholders(words[exec[0]+1:exec[1]], "{"), at)
	}
	if !ends {
		return
	}
	// A pattern may expand to several words: timeout * ls.
	own, rest := words[1:], []word(nil)
	if d.from > 0 {
		own, rest = words[1:d.from], words[d.from:]
	}
	if slices.ContainsFunc(own, func(w word) bool { return w.mark&^MarkTilde != 0 }) {
		f.indirect(reason.New(reason.OptionsUnread, d.title))
	}
	if len(d.codes) > 0 && !d.row.sets {
		return
	}
	if d.title == "xargs" || d.title == "gxargs" {
		if rest = placeholders(placeholders(rest, "{}"), cmp.Or(d.replace, "{}")); d.replace == "" {
			rest = append(rest, word{mark: MarkExpansion, added: true})
		}
	}
	switch {
	case d.row.joined:
		if at := slices.IndexFunc(rest, func(w word) bool { return strings.HasPrefix(w.text, ":::") }); d.row.always && at >= 0 {
			rest = rest[:at] // of parallel: what follows is its input
		}
		f.joined(d.title, rest, at)
	case len(rest) > 0 && !rest[0].added:
		f.inner(d.title, rest, at)
	case d.row.shell:
		f.stdinProgram(d.title, at)
	}
}

// splits reports whether the shell may make several words of w, or change it to an option.
func (w word) splits() bool {
	return w.added || w.dynamic() && (w.text[0] != '"' || strings.Contains(w.text, "@"))
}

// placeholders marks the words in which a program replaces a text, such as {}.
func placeholders(words []word, text string) []word {
	words = slices.Clone(words)
	for i := range words {
		if strings.Contains(words[i].text, text) {
			words[i].mark |= MarkExpansion
		}
	}
	return words
}

// inner follows words that run as a command of their own. Their standard input stays the same, except where the program
// reads it.
func (f *finder) inner(via string, words []word, at place) {
	if len(words) == 0 {
		return
	}
	if at.nest >= maxDepth {
		f.indirect(reason.New(reason.TextNested))
		return
	}
	at = at.below(via)
	if strings.HasSuffix(via, "xargs") || strings.Contains(via, " -") {
		at.stdin = nil
	}
	f.command(words, at)
}

// listed reports whether a list separated by blanks contains entry.
func listed(list, entry string) bool {
	if entry == "" || strings.IndexByte(entry, ' ') >= 0 {
		return false
	}
	for from := 0; ; {
		at := strings.Index(list[from:], entry)
		if at < 0 {
			return false
		}
		at += from
		from = at + len(entry)
		if (at == 0 || list[at-1] == ' ') && (from == len(list) || list[from] == ' ') {
			return true
		}
	}
}

// isAssignment reports whether text has the form NAME=value.
func isAssignment(text string) bool {
	at := strings.IndexByte(text, '=')
	return at > 0 && isName(text[:at])
}

// isName reports whether text is a variable name.
func isName(text string) bool {
	for i := range len(text) {
		c := text[i]
		if c != '_' && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}
