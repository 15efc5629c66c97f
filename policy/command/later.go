package command

import (
	"iter"
	"slices"
	"strings"
)

// Later yields what unknown programs of the script may run: for each later word of a program that is not known to take
// data, its lower-case name as a command, and the words from there on. If a word is a text such as 'sudo id; ls', each
// command in it is yielded. An unknown wrapper therefore hides nothing.
func (s *Script) Later() iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for i := range s.Commands {
			c := &s.Commands[i]
			if !c.mayRunWords() {
				continue
			}
			for at := 1; at < len(c.Words); at++ {
				if !laterCommands(c.Words[at], c.Words[at:], yield) {
					return
				}
			}
		}
	}
}

// laterCommands yields the commands that one word may be or contain.
func laterCommands(text string, words []string, yield func(string, []string) bool) bool {
	if strings.HasPrefix(text, "-") || isAssignment(text) {
		_, value, ok := strings.Cut(text, "=")
		if !ok {
			return true
		}
		text = value
	}
	if !strings.ContainsAny(text, " \t\n;|&(){}`$,") {
		return text == "" || yield(strings.ToLower(baseName(text)), words)
	}
	for segment := range strings.FieldsFuncSeq(text,
		func(r rune) bool { return strings.ContainsRune("\n;|&(){}`$,", r) }) {
		fields := strings.Fields(segment)
		if len(fields) > 0 && !yield(strings.ToLower(baseName(fields[0])), fields) {
			return false
		}
	}
	return true
}

// mayRunWords reports whether a program may run its later words and is not otherwise followed.
func (c *Command) mayRunWords() bool {
	name := strings.ToLower(c.Name)
	if len(c.Words) < 2 || isReader(name) || isOfKind("takes", name) || name == "eval" {
		return false
	}
	d := c.judgeOptions()
	return d.table == nil || !d.row.followsCommand() || d.row.always ||
		slices.ContainsFunc(d.found, func(each Departure) bool { return each.Unknown })
}

// blockedLater returns the entry that blocks something an unknown program of the script may run; "" for none.
func blockedLater(s *Script, allowed []string) string {
	for name, words := range s.Later() {
		if !isVariant(name) {
			continue
		}
		if entry := blockedCommand(&Command{Name: name, Words: words}, allowed); entry != "" {
			return entry
		}
	}
	return ""
}

// networkLater returns the network command that an unknown program of the script may run. Names that are ordinary words
// count only in the position of a command.
func networkLater(s *Script) (name string, ok bool) {
	for name := range s.Later() {
		if usesNetwork(name) && isVariant(name) && !isListed("host links http https ftp dig ping", name) {
			return name, true
		}
	}
	return "", false
}

// isVariant reports whether a later word can be a program: sudo, nc.openbsd and mkfs.ext4 can; curl.py and sudo.log are
// more likely files.
func isVariant(name string) bool {
	stem, suffix, ok := strings.Cut(name, ".")
	return !ok || stem == "mkfs" || isListed("openbsd traditional exe com real distrib dpkg-dist bin", suffix)
}
