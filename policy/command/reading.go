package command

import (
	"strings"
	"sync"
)

// reading says with which arguments a command certainly only reads.
type reading struct {
	flags  string // one-letter flags without a value
	values string // one-letter flags with a value other than a path
	paths  string // one-letter flags with a value that is a path
	long   string // long flags, separated by blanks, with or without "=value"; the value is not a path
	count  bool   // -5 is a number
	plain  bool   // the words are not paths: echo, seq
	most   int    // maximum number of words besides flags; 0 = any number
	skip   int    // words before the paths: the pattern of grep
	any    bool   // no flag can do harm, so patterns may be anywhere
	prefix string // every word besides flags must start with it, such as + for date
}

// readingNames lists the commands of the table for people; readingRule is its content.
const readingNames = "ls pwd date wc head tail cat stat du df file which type echo true false : basename dirname realpath readlink sort uniq cut tr nl tac rev grep egrep fgrep rg " +
	"diff cmp comm column fold expand paste join seq id whoami groups uname uptime free md5sum sha1sum sha256sum sha512sum cksum b2sum od hexdump strings base64 tree printf test [ sleep find sed git cd"

// ReadingCommands returns the commands that ReadsOnly knows.
func ReadingCommands() []string { return strings.Fields(readingNames) }

// reads reports whether name is in the table of reading commands.
func reads(name string) bool { return readers()[name] }

// readers is readingNames as a set.
var readers = sync.OnceValue(func() map[string]bool { return lookup(readingNames) })

// lookup converts a list separated by blanks to a set.
func lookup(list string) map[string]bool {
	set := map[string]bool{}
	for entry := range strings.FieldsSeq(list) {
		set[entry] = true
	}
	return set
}

// ReadsOnly reports whether every command of the script is a known reading command with harmless flags, nothing is
// redirected except to /dev/null or between descriptors, and nothing is indirect. paths are all words that may be
// paths, as in the text; after a leading "cd DIR", relative ones are also returned as DIR/word. The caller has to check
// them.
func ReadsOnly(s Script) (paths []string, ok bool) {
	if !s.Certain() || len(s.Commands) == 0 || !redirectsNothing(s.Redirects) {
		return nil, false
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
		found, ok := c.reads()
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

// ReadsGit reports whether the script contains git commands that all only read, whatever else it does.
func ReadsGit(s Script) bool {
	found := false
	for i := range s.Commands {
		c := &s.Commands[i]
		if !strings.EqualFold(c.Name, "git") {
			continue
		}
		if _, ok := c.readsGit(); !ok || c.Dynamic || c.Words[0] != "git" {
			return false
		}
		found = true
	}
	return found
}

// redirectsNothing reports whether all redirections go to /dev/null or copy a descriptor.
func redirectsNothing(list []Redirect) bool {
	for _, red := range list {
		harmless := red.Target == "/dev/null" || red.Op == ">&" && !red.Writes
		if !harmless || red.Dynamic {
			return false
		}
	}
	return true
}

// entersDir reports whether cd changes to one directory, named in the text, for everything that follows.
func (c *Command) entersDir() bool {
	return c.Depth == 0 && len(c.Words) == 2 && c.Words[1] != "" && !strings.HasPrefix(c.Words[1], "-") &&
		c.mark(1) == 0
}

// mark returns the Mark of one word.
func (c *Command) mark(i int) Mark {
	if c.Marks == nil {
		return 0
	}
	return c.Marks[i]
}

// reads checks one command and returns the words that may be paths.
func (c *Command) reads() (paths []string, ok bool) {
	switch c.Name {
	case "git":
		return c.readsGit()
	case "find":
		return c.readsFind()
	case "sed":
		return c.readsSed()
	}
	rule, ok := readingRule(c.Name)
	if !ok {
		return nil, false
	}
	return c.follow(rule, 1)
}

// follow checks the words from index from against a rule.
func (c *Command) follow(rule reading, from int) (paths []string, ok bool) {
	ended, words := false, 0
	for i := from; i < len(c.Words); i++ {
		text, mark := c.Words[i], c.mark(i)
		if mark&MarkPattern != 0 && !tame(text, ended || rule.any || rule.plain) || mark&MarkTilde != 0 {
			return nil, false
		}
		switch {
		case ended || rule.takes(text):
			words++
			path, fine := rule.word(words, text, mark)
			if !fine {
				return nil, false
			}
			if path {
				paths = append(paths, text)
			}
		case text == "--":
			ended = true
		default:
			value, used, fine := rule.flag(c.Words[i:])
			if !fine && !rule.forgives(c.Name) {
				return nil, false
			}
			if value != "" {
				paths = append(paths, value)
			}
			i += used
		}
	}
	return paths, true
}

// takes reports whether a word is not a flag.
func (r reading) takes(text string) bool {
	return len(text) < 2 || text[0] != '-' || r.plain && r.flags == "" && r.values == ""
}

// word checks the nth word that is not a flag, from 1, and returns whether it may be a path.
func (r reading) word(n int, text string, mark Mark) (path, ok bool) {
	switch {
	case r.most != 0 && n > r.most:
		return false, false
	case n <= r.skip:
		return false, true
	}
	return !r.plain || mark&MarkPattern != 0, strings.HasPrefix(text, r.prefix)
}

// forgives reports whether a flag that is not in the rule is harmless: echo prints it, and seq takes it for a number or
// fails.
func (r reading) forgives(name string) bool { return name == "echo" || r.plain && r.count }

// flag checks one word of flags. path is a value that may be a path, and used is how many following words it takes.
func (r reading) flag(words []string) (path string, used int, ok bool) {
	text := words[0]
	if strings.HasPrefix(text, "--") {
		key, _, _ := strings.Cut(text[2:], "=")
		return "", 0, listed(r.long, key)
	}
	if r.count && strings.Trim(text[1:], "0123456789") == "" {
		return "", 0, true
	}
	for j := 1; j < len(text); j++ {
		letter := text[j : j+1]
		switch {
		case strings.Contains(r.flags, letter):
		case strings.Contains(r.values, letter), strings.Contains(r.paths, letter):
			value := text[j+1:]
			if value == "" {
				if len(words) == 1 {
					return "", 0, false
				}
				value, used = words[1], 1
			}
			if strings.Contains(r.paths, letter) {
				path = value
			}
			return path, used, true
		default:
			return "", 0, false
		}
	}
	return "", 0, true
}

// tame reports whether a pattern can only expand to files below the directory that it names: only the last component
// contains it, which does not begin with a dot, and it cannot become a flag.
func tame(text string, anywhere bool) bool {
	dir, last := "", text
	if at := strings.LastIndexByte(text, '/'); at >= 0 {
		dir, last = text[:at], text[at+1:]
	}
	if strings.ContainsAny(dir, "*?[") || strings.HasPrefix(last, ".") {
		return false
	}
	return anywhere || dir != "" || strings.IndexByte("*?[", text[0]) < 0
}

// contained reports whether the shell leaves the word at i unchanged, or can only expand it to files below the
// directory that it names.
func (c *Command) contained(i int) bool {
	mark := c.mark(i)
	return mark == 0 || mark&MarkTilde == 0 && tame(c.Words[i], false)
}

// readsFind accepts the tests and prints of find, and no actions.
func (c *Command) readsFind() (paths []string, ok bool) {
	expression := false
	for i := 1; i < len(c.Words); i++ {
		text := c.Words[i]
		if !c.contained(i) {
			return nil, false
		}
		switch {
		case listed("-name -iname -path -ipath -wholename -iwholename -regex -iregex -type -maxdepth -mindepth -size -mtime -mmin -atime -amin -ctime -cmin -perm -user -group -regextype -links -inum -printf", text):
			expression = true
			i++
			if i >= len(c.Words) || c.mark(i) != 0 {
				return nil, false
			}
		case text == "-newer" && i+1 < len(c.Words) && c.mark(i+1) == 0:
			expression = true
			i++
			paths = append(paths, c.Words[i])
		case listed("-print -print0 -ls -prune -empty -not -o -or -a -and -true -false -depth -xdev -mount -readable -writable -executable -daystart -H -P ! ( ) ,", text):
			expression = expression || len(text) != 2 || text == "-o" || text == "-a"
		case expression || strings.HasPrefix(text, "-"):
			return nil, false
		default:
			paths = append(paths, text)
		}
	}
	return paths, true
}

// readsSed accepts sed with scripts that only print and substitute.
func (c *Command) readsSed() (paths []string, ok bool) {
	script := false
	for i := 1; i < len(c.Words); i++ {
		text := c.Words[i]
		if !c.contained(i) {
			return nil, false
		}
		switch {
		case !script && listed("-n -E -r -u -z -nE -En -nr", text):
		case text == "-e" && i+1 < len(c.Words) && sedShows(c.Words[i+1]):
			script = true
			i++
		case len(text) > 1 && text[0] == '-':
			return nil, false
		case !script:
			if !sedShows(text) {
				return nil, false
			}
			script = true
		default:
			paths = append(paths, text)
		}
	}
	return paths, script
}

// readsGit accepts reading git commands with flags that neither run a program nor write.
func (c *Command) readsGit() (paths []string, ok bool) {
	i := 1
	for i < len(c.Words) && listed("--no-pager -P --no-optional-locks --literal-pathspecs", c.Words[i]) {
		i++
	}
	if i >= len(c.Words) {
		return nil, false
	}
	rule, ok := gitRule(c.Words[i])
	if !ok {
		return nil, false
	}
	return c.follow(rule, i+1)
}
