package command

import (
	"cmp"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// judgeOptions compares a command with the table of its program, and returns what it found; without a table, nothing.
// Only what the tables list is harmless: an option that is unknown, abbreviated or hidden in an expansion departs.
func (c *Command) judgeOptions() (d departing) {
	name := strings.ToLower(c.Name)
	if table := tableOf(name); table != nil {
		d = departing{command: c, table: table, title: name}
		d.judgeWords()
	}
	return d
}

// followInner judges the words of a command by the table of its program, and follows the commands among them.
func (f *finder) followInner(d departing, words []word, at place) {
	ends := d.row.followsCommand()
	for _, each := range d.found {
		if each.Starts || ends && strings.HasSuffix(each.Why, effectOf("|writes")) {
			f.addDoubt(reason.Reason{Code: reason.OptionDoes, Args: []string{clipText(each.Option)}, Detail: each.Why})
		}
		if ends && each.Unknown {
			f.addIndirect(reason.New(reason.OptionsUnread, d.title))
		}
	}
	options := words[1:min(d.end, len(words))]
	if len(words) > len(d.command.Words) {
		options = words[1:]
	}
	for _, w := range options {
		if d.row.starts && w.maySplit() && (w.added || d.row.execs || strings.IndexByte("-$`\"", w.text[0]) >= 0) {
			f.addDoubt(reason.New(reason.OptionExpands, d.title))
		}
	}
	for _, set := range d.sets {
		name, value, _ := strings.Cut(set.text, "=")
		f.recordExport(name, value, d.title)
	}
	for _, code := range d.codes {
		f.followCode(d.title, code, at)
	}
	for _, exec := range d.execs {
		f.runInner(d.title+" "+words[exec[0]].text, markPlaceholders(words[exec[0]+1:exec[1]], "{"), at)
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
		f.addIndirect(reason.New(reason.OptionsUnread, d.title))
	}
	if len(d.codes) > 0 && !d.row.sets {
		return
	}
	if d.title == "xargs" || d.title == "gxargs" {
		if rest = markPlaceholders(markPlaceholders(rest, "{}"), cmp.Or(d.replace, "{}")); d.replace == "" {
			rest = append(rest, word{mark: MarkExpansion, added: true})
		}
	}
	switch {
	case d.row.joined:
		if at := slices.IndexFunc(rest, func(w word) bool {
			return strings.HasPrefix(w.text, ":::")
		}); d.row.always && at >= 0 {
			rest = rest[:at] // of parallel: what follows is its input
		}
		f.followJoined(d.title, rest, at)
	case len(rest) > 0 && !rest[0].added:
		f.runInner(d.title, rest, at)
	case d.row.shell:
		f.stdinProgram(d.title, at)
	}
}

// maySplit reports whether the shell may make several words of w, or change it to an option.
func (w word) maySplit() bool {
	return w.added || w.isDynamic() && (w.text[0] != '"' || strings.Contains(w.text, "@"))
}

// markPlaceholders marks the words in which a program replaces a text, such as {}.
func markPlaceholders(words []word, text string) []word {
	words = slices.Clone(words)
	for i := range words {
		if strings.Contains(words[i].text, text) {
			words[i].mark |= MarkExpansion
		}
	}
	return words
}

// runInner follows words that run as a command of their own. Their standard input stays the same,
// except where the program reads it.
func (f *finder) runInner(via string, words []word, at place) {
	if len(words) == 0 {
		return
	}
	if at.nest >= maxDepth {
		f.addIndirect(reason.New(reason.TextNested))
		return
	}
	at = at.belowWrapper(via)
	if strings.HasSuffix(via, "xargs") || strings.Contains(via, " -") {
		at.stdin = nil
	}
	f.recordCommand(words, at)
}

// isListed reports whether a list separated by blanks contains entry.
func isListed(list, entry string) bool {
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
