package command

import (
	"slices"
	"strings"
)

// wrapper describes a program that runs the command after its own options.
type wrapper struct {
	short    string // one-letter options without a value
	value    string // one-letter options with a value, attached or in the next word
	attached string // one-letter options whose value can only be attached
	long     string // long options without a value, or with one after "="
	longVal  string // long options with a value, after "=" or in the next word
	skip     int    // words before the command: a duration, a lock file, a mask
	assign   bool   // NAME=value words are allowed before the command
	script   string // the option, short or long, whose value is shell code
	joined   bool   // the words are joined and run by a shell
	shell    bool   // without a command it starts a shell
}

// wrapperOf returns what is known about a program that runs the command after its own options.
func wrapperOf(name string) (wrapper, bool) {
	if strings.HasPrefix(name, "ld-linux") || strings.HasPrefix(name, "ld-musl") {
		name = "ld.so"
	}
	w, ok := wrappers()[name]
	return w, ok
}

// wrapped is the result of parsing the options of a wrapper.
type wrapped struct {
	at    int  // index of the first word of the command; len(words) if there is none
	known bool // every word before at was understood
	// names and values of variables for the command
	assigned [][2]string
	script   *word
	replace  string // xargs -I
	print    bool   // command -v: only prints
}

// wrapper follows a wrapper to the command that it runs.
func (f *finder) wrapper(name string, words []word, at place) {
	spec, _ := wrapperOf(name)
	got := spec.read(name, words)
	f.ownWords(name, words[1:got.at], got.known)
	for _, a := range got.assigned {
		f.exports(a[0], a[1], name)
	}
	if at.nest >= maxDepth {
		f.indirect("commands are nested too deeply to follow")
		return
	}
	if got.print {
		return
	}
	if got.script != nil {
		f.code(name, *got.script, at)
		if name != "env" && name != "genv" {
			return
		}
	}
	rest := words[got.at:]
	if name == "xargs" || name == "gxargs" {
		rest = fromInput(rest, got.replace)
	}
	switch {
	case len(rest) == 0:
		if spec.shell && got.script == nil {
			f.stdinProgram(name, at)
		}
	case spec.joined:
		f.joined(name, rest, at)
	default:
		f.command(rest, f.inner(name, at))
	}
}

// ownWords records what the words of a wrapper before its command may do.
func (f *finder) ownWords(name string, words []word, known bool) {
	// A pattern may expand to several words: timeout * ls.
	if !known || slices.ContainsFunc(words, func(w word) bool { return w.mark&MarkPattern != 0 }) {
		f.indirect("the options of " + name + " cannot be read for sure")
	}
	if (name == "time" || name == "gtime") && slices.ContainsFunc(words,
		func(w word) bool { return len(w.text) > 1 && w.text[0] == '-' && strings.Contains(w.text, "o") }) {
		f.indirect("time may write its figures to a file")
	}
}

// inner returns the place of the command that a wrapper runs. Its standard input stays the same, except below xargs.
func (f *finder) inner(name string, at place) place {
	below := at.below(name)
	if name == "xargs" {
		below.stdin = nil
	}
	return below
}

// fromInput marks what xargs takes from its input.
func fromInput(rest []word, replace string) []word {
	if len(rest) == 0 {
		return nil // xargs without a command is echo
	}
	rest = slices.Clone(rest)
	if replace == "" {
		return append(rest, word{mark: MarkExpansion, added: true})
	}
	for i := range rest {
		if strings.Contains(rest[i].text, replace) {
			rest[i].mark |= MarkExpansion
		}
	}
	return rest
}

// read finds the start of a wrapper's command.
func (s wrapper) read(name string, words []word) (got wrapped) {
	got.known = true
	skip, i, ended := s.skip, 1, false
	for i < len(words) {
		w := words[i]
		switch {
		case w.dynamic() && (skip > 0 || strings.HasPrefix(w.text, "-")):
			got.known = false
		case ended || len(w.text) < 2 || w.text[0] != '-':
		case w.text == "--":
			ended = true
			i++
			continue
		default:
			i += s.option(name, words, i, &got)
			continue
		}
		switch {
		case w.text == "-" && takesDash(name):
		case s.assign && strings.IndexByte(w.text, '=') >= 0:
			// env takes everything with a = for a variable, also a-b=1.
			got.sets(w)
		case skip == 0:
			got.at = i
			return got
		default:
			skip--
		}
		i++
	}
	got.at = len(words)
	return got
}

// takesDash reports whether a single dash is an option of the wrapper: an empty environment, a login.
func takesDash(name string) bool { return name == "env" || name == "su" }

// sets records NAME=value before the command.
func (got *wrapped) sets(w word) {
	name, value, _ := strings.Cut(w.text, "=")
	got.known = got.known && !w.dynamic() && isName(name)
	got.assigned = append(got.assigned, [2]string{name, value})
}

// option parses the option at i and returns how many words it takes.
func (s wrapper) option(name string, words []word, i int, got *wrapped) int {
	text := words[i].text
	if strings.HasPrefix(text, "--") {
		return s.longOption(words, i, got)
	}
	for j := 1; j < len(text); j++ {
		c := text[j]
		switch {
		case strings.IndexByte(s.value, c) >= 0:
			value, used := text[j+1:], 1
			mark := words[i].mark
			if value == "" && i+1 < len(words) {
				value, used, mark = words[i+1].text, 2, words[i+1].mark
			}
			s.set(string(c), word{text: value, mark: mark}, got)
			if c == 'I' {
				got.replace = value
			}
			return used
		case strings.IndexByte(s.attached, c) >= 0:
			if c == 'i' {
				got.replace = "{}"
				if j+1 < len(text) {
					got.replace = text[j+1:]
				}
			}
			return 1
		case strings.IndexByte(s.short, c) < 0:
			got.known = false
			return 1
		case name == "command" && c != 'p':
			got.print = true
		}
	}
	return 1
}

// longOption parses a long option; GNU programs accept any unambiguous prefix.
func (s wrapper) longOption(words []word, i int, got *wrapped) int {
	key, value, inline := strings.Cut(words[i].text[2:], "=")
	takes, bare := longMatch(s.longVal, key), longMatch(s.long, key)
	switch {
	case takes == "" && bare == "" || takes != "" && bare != "" && takes != key && bare != key:
		got.known = false
		return 1
	case bare != "":
		if bare == "replace" {
			got.replace = "{}"
			if inline {
				got.replace = value
			}
		}
		return 1
	case inline:
		s.set(takes, word{text: value, mark: words[i].mark}, got)
		return 1
	case i+1 < len(words):
		s.set(takes, words[i+1], got)
	}
	return 2
}

// set stores the value of the option that contains shell code.
func (s wrapper) set(option string, value word, got *wrapped) {
	if value.dynamic() {
		got.known = false
	}
	if s.script != "" && listed(s.script, option) {
		got.script = &value
	}
}

// longMatch returns the entry of a list separated by blanks that key equals or begins; "" for none.
func longMatch(list, key string) string {
	found := ""
	for entry := range strings.FieldsSeq(list) {
		if entry == key {
			return entry
		}
		if found == "" && key != "" && strings.HasPrefix(entry, key) {
			found = entry
		}
	}
	return found
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
