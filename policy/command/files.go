package command

import (
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// Use is a set of what a command does with a file.
type Use uint8

// Bits of a Use.
const (
	// UseRead: its content is read.
	UseRead Use = 1 << iota
	// UseWrite: it is created or changed.
	UseWrite
	// UseMake: it is created as a directory.
	UseMake
	// UseRemove: it is removed.
	UseRemove
	// UseMove: it is renamed, or is the new name.
	UseMove
	// UseCopy: it is copied, or is the copy.
	UseCopy
)

// File is a path that a script may touch.
type File struct {
	// Path is as in the text: absolute, relative to one of Files.Bases, or "~/…" for the home directory.
	Path string
	Use  Use
	// Sure: the word is certainly a path. Otherwise it may be one.
	Sure bool
	// Within: the path is part of a longer word, such as code.
	Within bool
	// Pattern: it contains an unquoted * ? or [, which may expand to other names.
	Pattern bool
}

// Files are the paths that a script may touch, as far as the text shows.
type Files struct {
	List []File
	// Bases are the directories at which relative paths may start: "" is the working directory, others are where the
	// script changes to.
	Bases []string
	// Unknown says why some paths are not known; none if all are.
	Unknown reason.Reason
	// Deep is a command that may read files that it does not name; "" for none.
	Deep string
	// Objects is a git command that shows content from the repository; "" for none.
	Objects string
}

// maxFiles limits the paths of one script, maxBases its directories.
const (
	maxFiles = 256
	maxBases = 8
)

// Files finds the paths in the words and redirections of a script.
func (s Script) Files() Files {
	words := len(s.Redirects)
	for i := range s.Commands {
		words += len(s.Commands[i].Words)
	}
	f := files{script: &s, seen: make(map[File]bool, min(words, maxFiles))}
	f.out.Bases = []string{""}
	f.home = strings.Count(s.Text, "HOME") == strings.Count(s.Text, "$HOME")+strings.Count(s.Text, "${HOME}")
	f.pwd = strings.Count(s.Text, "PWD") == strings.Count(s.Text, "$PWD")+strings.Count(s.Text, "${PWD}")
	for i := range s.Commands {
		f.followDirectory(&s.Commands[i])
	}
	for i := range s.Commands {
		f.addCommand(&s.Commands[i])
	}
	for i := range s.Redirects {
		f.addRedirect(&s.Redirects[i])
	}
	if s.Problem != "" {
		f.addUnknown(reason.New(reason.FilesUnparsed))
	}
	return f.out
}

// files collects the results of one call of Script.Files.
type files struct {
	script    *Script
	out       Files
	seen      map[File]bool
	home, pwd bool // $HOME, $PWD are unchanged
}

func (f *files) addUnknown(why reason.Reason) {
	if f.out.Unknown.Code == "" {
		f.out.Unknown = why
	}
}

func (f *files) addDeep(c *Command) {
	if f.out.Deep == "" {
		f.out.Deep = clipText(c.Name)
	}
}

// addFile adds a path, once.
func (f *files) addFile(file File) {
	if file.Path == "" || file.Path == "-" || f.seen[file] {
		return
	}
	if len(f.out.List) == maxFiles {
		f.addUnknown(reason.New(reason.FilesMany))
		return
	}
	f.seen[file] = true
	if f.out.List == nil {
		f.out.List = make([]File, 0, min(8+len(f.script.Text)/16, maxFiles))
	}
	f.out.List = append(f.out.List, file)
}

// addBase adds a directory at which relative paths may start.
func (f *files) addBase(dir string) {
	if slices.Contains(f.out.Bases, dir) {
		return
	}
	if len(f.out.Bases) >= maxBases {
		f.addUnknown(reason.New(reason.GoesFar))
		return
	}
	// A relative directory can start at any of the previous ones.
	for _, b := range slices.Clone(f.out.Bases) {
		if b != "" && !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "~") && len(f.out.Bases) < maxBases {
			f.out.Bases = append(f.out.Bases, strings.TrimSuffix(b, "/")+"/"+dir)
		}
	}
	f.out.Bases = append(f.out.Bases, dir)
}

// followDirectory follows cd, pushd and the options by which commands change their directory.
func (f *files) followDirectory(c *Command) {
	if c.Name == "cd" || c.Name == "pushd" {
		at := 1
		for at < len(c.Words) && strings.HasPrefix(c.Words[at], "-") && c.Words[at] != "-" {
			at++
		}
		switch {
		case at >= len(c.Words):
			f.addBase("~")
		case c.Words[at] == "-":
			f.addUnknown(reason.New(reason.GoesBack))
		default:
			f.enterDirectory(c, at, c.Words[at])
		}
		return
	}
	for i := 1; i < len(c.Words); i++ {
		if !strings.HasPrefix(c.Words[i], "-") {
			continue
		}
		key, value, inline := strings.Cut(c.Words[i], "=")
		switch {
		case !isListed("-C --directory --chdir --cwd --prefix --work-tree --git-dir -w --workdir", key):
			if text, ok := strings.CutPrefix(c.Words[i], "-C"); ok && text != "" {
				f.enterDirectory(c, i, text)
			}
		case inline:
			f.enterDirectory(c, i, value)
		case i+1 < len(c.Words):
			f.enterDirectory(c, i+1, c.Words[i+1])
		}
	}
}

// enterDirectory handles the directory named by a word.
func (f *files) enterDirectory(c *Command, i int, text string) {
	if path, _, ok := f.path(text, c.markOf(i)&^MarkPattern); ok && c.markOf(i)&MarkPattern == 0 {
		f.addBase(path)
		return
	}
	f.addUnknown(reason.New(reason.GoesUnknown))
}

// path returns the meaning of a word: its text, with a home directory as "~".
func (f *files) path(text string, mark Mark) (path string, pattern, ok bool) {
	pattern = mark&MarkPattern != 0
	if mark&MarkExpansion != 0 {
		text, ok = f.expandSource(text)
		return text, pattern, ok
	}
	if mark&MarkTilde != 0 && text != "~" && !strings.HasPrefix(text, "~/") {
		return text, pattern, false
	}
	if mark&MarkTilde == 0 && strings.HasPrefix(text, "~") {
		text = "./" + text // quoted: a name that begins with a tilde
	}
	return text, pattern, true
}

// expandSource replaces $HOME and $PWD at the start of a word in source form.
func (f *files) expandSource(source string) (path string, ok bool) {
	text := strings.ReplaceAll(source, `"`, "")
	for _, v := range []struct {
		name, value string
		known       bool
	}{{"$HOME", "~", f.home}, {"${HOME}", "~", f.home}, {"$PWD", ".", f.pwd}, {"${PWD}", ".", f.pwd}} {
		rest, found := strings.CutPrefix(text, v.name)
		if found && v.known && (rest == "" || rest[0] == '/') {
			text = v.value + rest
			break
		}
	}
	return text, !strings.ContainsAny(text, "$`\\'*?[{(")
}

// wordPath adds the path that a whole word is.
func (f *files) wordPath(text string, mark Mark, use Use, sure bool) {
	path, pattern, ok := f.path(text, mark)
	if !ok {
		f.addUnknown(reason.New(reason.WordUnknown))
		return
	}
	f.addFile(File{Path: path, Use: use, Sure: sure, Pattern: pattern})
}

// addRedirect adds the file of a redirection.
func (f *files) addRedirect(r *Redirect) {
	if r.Target == "" || r.Target == "/dev/null" || r.Op == "<<<" {
		return
	}
	copies := (r.Op == ">&" || r.Op == "<&") && !r.Writes
	if copies && strings.Trim(r.Target, "0123456789-") == "" {
		return
	}
	use := UseRead
	if r.Writes {
		use = UseWrite
		if r.Op == "<>" {
			use |= UseRead
		}
	}
	mark := Mark(0)
	if r.Dynamic {
		mark = MarkExpansion
		if strings.HasPrefix(r.Target, "~") {
			mark = MarkTilde
		}
	}
	f.wordPath(r.Target, mark, use, true)
}

// addCommand adds what one command touches.
func (f *files) addCommand(c *Command) {
	if len(c.Words) == 0 {
		return
	}
	if strings.Contains(c.Words[0], "/") {
		f.wordPath(c.Words[0], c.markOf(0), UseRead, true)
	}
	switch {
	case isOfKind("names", c.Name):
		return
	case c.Name == "git":
		f.addGit(c)
	case f.addWriter(c):
	default:
		if !f.addReads(c) {
			f.addOther(c)
		}
	}
	// An expansion in a word was handled with the word.
	if c.Dynamic && (c.markOf(0)&MarkExpansion != 0 ||
		!slices.ContainsFunc(c.Marks, func(m Mark) bool { return m&MarkExpansion != 0 })) {
		f.addUnknown(reason.New(reason.WordsUnknown))
	}
}

// addReads adds the words of a command that reads only what these name, or below it. It returns false for others.
func (f *files) addReads(c *Command) bool {
	r := readings()[c.Name]
	if r == nil || c.Dynamic || c.Name != c.Words[0] ||
		r.language && (c.Name != "sed" || slices.ContainsFunc(c.Departures, Departure.mayRun)) {
		return false
	}
	words, skip := 0, c.skippedWords(r)
	for i := 1; i < len(c.Words); i++ {
		text, mark := c.Words[i], c.markOf(i)
		switch {
		case len(text) > 1 && text[0] == '-':
			f.addAny(text, mark, UseRead)
			if r.takesNext(text) {
				i++
			}
			continue
		case r.plain && mark&MarkPattern == 0:
			continue
		}
		if words++; words > skip {
			f.wordPath(text, mark, UseRead, true)
		}
	}
	if c.descendsBelow(r) {
		f.addDeep(c)
	}
	return true
}

// addOther adds every word of an unknown command.
func (f *files) addOther(c *Command) {
	for i := 1; i < len(c.Words); i++ {
		f.addAny(c.Words[i], c.markOf(i), UseRead)
	}
	if !f.onlyWraps(c) {
		f.addDeep(c)
	}
}

// onlyWraps reports whether the command only runs others, which are listed themselves.
func (f *files) onlyWraps(c *Command) bool {
	for i := range f.script.Commands {
		if via := f.script.Commands[i].Via; slices.ContainsFunc(via,
			func(v string) bool { return v == c.Name || strings.HasPrefix(v, c.Name+" ") }) {
			return true
		}
	}
	return false
}

// addAny adds what a word may name: itself, the value of an option, and pieces of code.
func (f *files) addAny(text string, mark Mark, use Use) {
	if mark&MarkExpansion != 0 {
		f.wordPath(text, mark, use, false)
		return
	}
	if !strings.HasPrefix(text, "-") {
		f.wordPath(text, mark, use, false)
	} else if len(text) > 2 && text[1] != '-' {
		f.wordPath(text[2:], mark, use, false)
	}
	if strings.ContainsAny(text, "=,:@") {
		for p := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("=,:@", r) }) {
			if strings.HasPrefix(p, "-") {
				continue
			}
			f.wordPath(p, mark&^MarkTilde|tildeMark(p), use, false)
		}
	}
	if !strings.ContainsAny(text, " \t\n\"'`();|&<>{}$") {
		return
	}
	for piece := range strings.FieldsFuncSeq(text,
		func(r rune) bool { return strings.ContainsRune(" \t\n\"'`();|&<>{}[]$=,:@\\", r) }) {
		f.addFile(File{Path: piece, Use: use, Within: true})
	}
}

// tildeMark returns the mark of a part that may be a home directory.
func tildeMark(part string) Mark {
	if part == "~" || strings.HasPrefix(part, "~/") {
		return MarkTilde
	}
	return 0
}
