package command

import (
	_ "embed"
	"slices"
	"strings"
	"sync"
)

// readingText lists the programs that read; see there.
//
//go:embed reading.txt
var readingText string

// reading is one line of the list.
type reading struct {
	skip, most                  int // most: -1 = any number
	values                      string
	plain, expression, language bool
	deep                        string // "-" = always, "" = never, else the sign of it
	signs                       []string
}

// readings returns the list.
var readings = sync.OnceValue(func() map[string]*reading {
	list := map[string]*reading{}
	for line := range strings.Lines(readingText) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		name, rest := fields[0], fields[1:]
		if name == "git" {
			name, rest = "git "+rest[0], rest[1:]
		}
		r := &reading{most: -1}
		for _, each := range rest {
			r.addWord(each)
		}
		list[name] = r
	}
	return list
})

// addWord adds one word of a line.
func (r *reading) addWord(text string) {
	key, value, _ := strings.Cut(text, "=")
	switch {
	case key == "skip":
		r.skip = int(value[0] - '0')
	case key == "most":
		r.most = int(value[0] - '0')
	case key == "values":
		r.values = value
	case text == "plain":
		r.plain = true
	case text == "expression":
		r.expression = true
	case text == "language":
		r.language = true
	case text == "deep":
		r.deep = "-"
	case strings.HasPrefix(text, "deep"):
		r.deep = strings.TrimPrefix(text, "deep")
	default:
		r.signs = append(r.signs, text)
	}
}

// ReadingCommands returns the commands that [ReadsOnly] knows.
func ReadingCommands() []string {
	list := []string{"git"}
	for name := range readings() {
		if !strings.HasPrefix(name, "git ") {
			list = append(list, name)
		}
	}
	return list
}

// isReader reports whether name is a program that reads.
func isReader(name string) bool { return name == "git" || readings()[name] != nil }

// wordSet converts a list separated by blanks to a set.
func wordSet(list string) map[string]bool {
	set := map[string]bool{}
	for entry := range strings.FieldsSeq(list) {
		set[entry] = true
	}
	return set
}

// ReadsOnly reports whether every command of the script is one whose ordinary use is to read, without a sign that it
// writes, nothing is redirected except from files, to /dev/null or between descriptors, and nothing is indirect. It
// does not promise that they only read. paths are the words that may be paths, as in the text; after a leading "cd
// DIR", relative ones are also returned as DIR/word. The caller has to check them.
func ReadsOnly(s Script) (paths []string, ok bool) {
	if !s.Followed() || len(s.Commands) == 0 {
		return nil, false
	}
	for _, red := range s.Redirects {
		if red.Op == "<" && !red.Dynamic {
			paths = append(paths, red.Target)
		} else if !red.dropsOutput() {
			return nil, false
		}
	}
	dir := ""
	for i := range s.Commands {
		c := &s.Commands[i]
		if c.Dynamic || len(c.Via) > 0 || c.Name != c.Words[0] {
			return nil, false
		}
		if c.Name == "cd" {
			if i > 0 || !c.entersDir() {
				return nil, false
			}
			dir = c.Words[1]
			paths = append(paths, dir)
			continue
		}
		found, ok := c.readPaths()
		if !ok {
			return nil, false
		}
		for _, path := range found {
			paths = append(paths, path)
			if dir != "" && !strings.HasPrefix(path, "/") {
				paths = append(paths, strings.TrimSuffix(dir, "/")+"/"+path)
			}
		}
	}
	return paths, true
}

// redirectsNothing reports whether all redirections go to /dev/null or copy a descriptor.
func redirectsNothing(list []Redirect) bool {
	return !slices.ContainsFunc(list, func(red Redirect) bool { return !red.dropsOutput() })
}

// dropsOutput reports whether a redirection goes to /dev/null or copies a descriptor.
func (r Redirect) dropsOutput() bool {
	return !r.Dynamic && (r.Target == "/dev/null" || r.Op == ">&" && !r.Writes)
}

// entersDir reports whether cd changes to one directory, named in the text, for everything that follows.
func (c *Command) entersDir() bool {
	return c.Depth == 0 && len(c.Words) == 2 && c.Words[1] != "" && !strings.HasPrefix(c.Words[1], "-") &&
		c.markOf(1) == 0
}

// markOf returns the Mark of one word.
func (c *Command) markOf(i int) Mark {
	if c.Marks == nil {
		return 0
	}
	return c.Marks[i]
}

// readerEntry returns the entry of a command and the index of its first word.
func (c *Command) readerEntry() (r *reading, from int) {
	if c.Name != "git" {
		return readings()[c.Name], 1
	}
	from = 1
	for from < len(c.Words) && isListed("--no-pager -P --no-optional-locks --literal-pathspecs -C", c.Words[from]) {
		if c.Words[from] == "-C" {
			from++
		}
		from++
	}
	if from >= len(c.Words) {
		return nil, from
	}
	return readings()["git "+c.Words[from]], from + 1
}

// readPaths returns the words that may be paths; ok is false if the command is not known to read, or
// there is a sign that it writes.
func (c *Command) readPaths() (paths []string, ok bool) {
	r, from := c.readerEntry()
	if r == nil {
		return nil, false
	}
	for i := 2; i < from; i++ { // git -C DIR
		if c.Words[i-1] == "-C" {
			paths = append(paths, c.Words[i])
		}
		if c.markOf(i) != 0 {
			return nil, false
		}
	}
	words, skip, options, ended := 0, c.skippedWords(r), false, false
	for i := from; i < len(c.Words); i++ {
		text, mark := c.Words[i], c.markOf(i)
		if mark&MarkTilde != 0 || mark&MarkPattern != 0 && !isTame(text) {
			return nil, false
		}
		switch {
		case text == "--" && !ended:
			ended = true
		case !ended && len(text) > 1 && text[0] == '-':
			if r.signsWrite(text) {
				return nil, false
			}
			options = true
			if value := r.optionPath(text); value != "" {
				paths = append(paths, value)
			}
			if r.takesNext(text) {
				i++
			}
		default:
			words++
			if r.most >= 0 && words > r.most {
				return nil, false
			}
			if words > skip && (!r.plain || mark&MarkPattern != 0) && !(options && r.expression) &&
				(!r.language || leadsElsewhere(text)) {
				paths = append(paths, text)
			}
		}
	}
	return paths, true
}

// skippedWords returns how many words are no paths: the pattern or the script, unless an option gives it.
func (c *Command) skippedWords(r *reading) int {
	for _, w := range c.Words[1:] {
		if len(w) < 2 || w[0] != '-' {
			continue
		}
		key, _, _ := strings.Cut(w, "=")
		if w[1] != '-' && strings.ContainsAny(w, "ef") || isListed("--regexp --expression --file --from-file", key) {
			return 0
		}
	}
	return r.skip
}

// signsWrite reports whether an option is a sign that the command writes.
func (r *reading) signsWrite(option string) bool {
	for _, sign := range r.signs {
		if hasSign(option, sign) {
			return true
		}
	}
	return false
}

// hasSign reports whether an option is one of a list's signs: a letter behind one dash, or the beginning of the word.
func hasSign(option, sign string) bool {
	if len(sign) == 2 {
		return option[1] != '-' && strings.IndexByte(option, sign[1]) > 0
	}
	return strings.HasPrefix(option, sign)
}

// takesNext reports whether the last letter of an option takes the next word.
func (r *reading) takesNext(option string) bool {
	return option[1] != '-' && strings.IndexByte(r.values, option[len(option)-1]) >= 0
}

// optionPath returns the value of an option that seems to be a path elsewhere; "" for none.
func (r *reading) optionPath(option string) string {
	value := option[2:]
	if option[1] == '-' {
		_, value, _ = strings.Cut(option, "=")
	} else if strings.IndexByte(r.values, option[1]) >= 0 {
		return ""
	}
	if leadsElsewhere(value) {
		return value
	}
	return ""
}

// leadsElsewhere reports whether a word begins like a path that leads out of the directory, or leads there.
func leadsElsewhere(text string) bool {
	return strings.HasPrefix(text, "/") || text == ".." ||
		strings.HasPrefix(text, "../") || strings.Contains(text, "/../") ||
		strings.HasSuffix(text, "/..")
}

// isTame reports whether a pattern can only expand to files below the directory that it names: only the last component
// contains it, which does not begin with a dot.
func isTame(text string) bool {
	dir, last := "", text
	if at := strings.LastIndexByte(text, '/'); at >= 0 {
		dir, last = text[:at], text[at+1:]
	}
	return !strings.ContainsAny(dir, "*?[") && !strings.HasPrefix(last, ".")
}

// descendsBelow reports whether a reading command reads files that its words do not name.
func (c *Command) descendsBelow(r *reading) bool {
	if r.deep == "" || r.deep == "-" {
		return r.deep == "-"
	}
	for _, w := range c.Words[1:] {
		if len(w) > 1 && w[0] == '-' && (hasSign(w, r.deep) || hasSign(w, strings.ToUpper(r.deep)) ||
			r.deep == "-r" && strings.HasPrefix(w, "--") && strings.Contains(w, "recursive")) {
			return true
		}
	}
	return false
}
