package command

import (
	"slices"
	"strings"
	"sync"
)

// Use is a set of what a command does with a file.
type Use uint8

// The bits of a Use.
const (
	// UseRead: its content is read.
	UseRead Use = 1 << iota
	// UseWrite: it is made or changed.
	UseWrite
	// UseMake: it is a directory that is made.
	UseMake
	// UseRemove: it is taken away.
	UseRemove
	// UseMove: it gets another name, or is the other name.
	UseMove
	// UseCopy: it is copied, or is the copy.
	UseCopy
)

// File is a path that a script may touch.
type File struct {
	// Path is what the text names: absolute, relative to one of Files.Bases, or "~/…" for the home directory.
	Path string
	Use  Use
	// Sure: the word is a path. Otherwise it may be one.
	Sure bool
	// Within: the path is a piece of a word that holds more, such as code.
	Within bool
	// Pattern: unquoted * ? or [ in it may become other names.
	Pattern bool
}

// Files are the paths that a script may touch, as far as its text tells.
type Files struct {
	List []File
	// Bases are where relative paths may start: "" is the working directory, others are where the script goes to.
	Bases []string
	// Unknown says why not all paths can be known; "" when they are.
	Unknown string
	// Deep names a command that may read files which it does not name; "" when there is none.
	Deep string
	// Objects names a git command that shows content out of the repository; "" when there is none.
	Objects string
}

// maxFiles bounds the paths of one script, maxBases the directories it goes to.
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
		f.enters(&s.Commands[i])
	}
	for i := range s.Commands {
		f.command(&s.Commands[i])
	}
	for i := range s.Redirects {
		f.redirect(&s.Redirects[i])
	}
	if s.Problem != "" {
		f.unknown("the text cannot be parsed")
	}
	return f.out
}

// files collects what one call of Script.Files finds.
type files struct {
	script    *Script
	out       Files
	seen      map[File]bool
	home, pwd bool // $HOME, $PWD are what they were at the start
}

func (f *files) unknown(why string) {
	if f.out.Unknown == "" {
		f.out.Unknown = why
	}
}

func (f *files) deep(c *Command) {
	if f.out.Deep == "" {
		f.out.Deep = clip(c.Name)
	}
}

// add notes a path once.
func (f *files) add(file File) {
	if file.Path == "" || file.Path == "-" || f.seen[file] {
		return
	}
	if len(f.out.List) == maxFiles {
		f.unknown("it names too many files")
		return
	}
	f.seen[file] = true
	if f.out.List == nil {
		f.out.List = make([]File, 0, min(8+len(f.script.Text)/16, maxFiles))
	}
	f.out.List = append(f.out.List, file)
}

// base notes a directory that relative paths may start at.
func (f *files) base(dir string) {
	if slices.Contains(f.out.Bases, dir) {
		return
	}
	if len(f.out.Bases) >= maxBases {
		f.unknown("it goes to too many directories")
		return
	}
	// A relative directory starts at any of those before it.
	for _, b := range slices.Clone(f.out.Bases) {
		if b != "" && !strings.HasPrefix(dir, "/") && !strings.HasPrefix(dir, "~") && len(f.out.Bases) < maxBases {
			f.out.Bases = append(f.out.Bases, strings.TrimSuffix(b, "/")+"/"+dir)
		}
	}
	f.out.Bases = append(f.out.Bases, dir)
}

// enters follows cd, pushd and the options by which commands change their directory.
func (f *files) enters(c *Command) {
	if c.Name == "cd" || c.Name == "pushd" {
		at := 1
		for at < len(c.Words) && strings.HasPrefix(c.Words[at], "-") && c.Words[at] != "-" {
			at++
		}
		switch {
		case at >= len(c.Words):
			f.base("~")
		case c.Words[at] == "-":
			f.unknown("it goes back to a directory")
		default:
			f.enter(c, at, c.Words[at])
		}
		return
	}
	for i := 1; i < len(c.Words); i++ {
		if !strings.HasPrefix(c.Words[i], "-") {
			continue
		}
		key, value, inline := strings.Cut(c.Words[i], "=")
		switch {
		case !listed("-C --directory --chdir --cwd --prefix --work-tree --git-dir -w --workdir", key):
			if text, ok := strings.CutPrefix(c.Words[i], "-C"); ok && text != "" {
				f.enter(c, i, text)
			}
		case inline:
			f.enter(c, i, value)
		case i+1 < len(c.Words):
			f.enter(c, i+1, c.Words[i+1])
		}
	}
}

// enter notes the directory that a word names.
func (f *files) enter(c *Command, i int, text string) {
	if path, _, ok := f.path(text, c.mark(i)&^MarkPattern); ok && c.mark(i)&MarkPattern == 0 {
		f.base(path)
		return
	}
	f.unknown("it goes to a directory that is not known before it runs")
}

// path is what a word becomes: its text, with a home directory as "~".
func (f *files) path(text string, mark Mark) (path string, pattern, ok bool) {
	pattern = mark&MarkPattern != 0
	if mark&MarkExpansion != 0 {
		text, ok = f.expand(text)
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

// expand undoes $HOME and $PWD at the start of a word, which is given as it is written.
func (f *files) expand(source string) (path string, ok bool) {
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

// wordPath notes the path that a whole word is.
func (f *files) wordPath(text string, mark Mark, use Use, sure bool) {
	path, pattern, ok := f.path(text, mark)
	if !ok {
		f.unknown("a word is not known before it runs")
		return
	}
	f.add(File{Path: path, Use: use, Sure: sure, Pattern: pattern})
}

// redirect notes the file of a redirection.
func (f *files) redirect(r *Redirect) {
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

// command notes what one command touches.
func (f *files) command(c *Command) {
	if len(c.Words) == 0 {
		return
	}
	if strings.Contains(c.Words[0], "/") {
		f.wordPath(c.Words[0], c.mark(0), UseRead, true)
	}
	switch {
	case namers()[c.Name]:
		return
	case c.Name == "git":
		f.git(c)
	case f.writer(c):
	default:
		if paths, ok := c.namedReads(); ok {
			f.reads(c, paths)
			return
		}
		f.other(c)
	}
	// An expansion in a word was looked at with the word.
	if c.Dynamic && (c.mark(0)&MarkExpansion != 0 || !slices.ContainsFunc(c.Marks, func(m Mark) bool { return m&MarkExpansion != 0 })) {
		f.unknown("its words are not known before it runs")
	}
}

// namesOnly are commands that look at names, sizes and times of files, at no content, and print what they are given.
const namesOnly = "ls stat test [ du df realpath readlink basename dirname which type pwd cd pushd popd echo printf true false : date seq whoami id groups uname uptime free " +
	"sleep kill tree find exit return export unset set shift wait umask ulimit alias unalias hash jobs local declare typeset readonly break continue getopts hostname nproc ps " +
	"arch tty clear tput chmod chown chgrp"

// namers is namesOnly for a look-up.
var namers = sync.OnceValue(func() map[string]bool { return lookup(namesOnly) })

// namedReads are the paths of a reading command that reads what it names and nothing else.
func (c *Command) namedReads() (paths []string, ok bool) {
	if c.Dynamic || !reads(c.Name) || c.Name != c.Words[0] {
		return nil, false
	}
	return c.reads()
}

// reads notes the paths of a reading command.
func (f *files) reads(c *Command, paths []string) {
	for _, p := range paths { // most are words of their own, some the value inside of one
		mark := Mark(0)
		for i, w := range c.Words {
			if w == p {
				mark |= c.mark(i)
			}
		}
		f.wordPath(p, mark, UseRead, true)
	}
	if recursive(c) {
		f.deep(c)
	}
}

// recursive reports a reading command that goes down into directories.
func recursive(c *Command) bool {
	switch c.Name {
	case "rg":
		return true
	case "grep", "egrep", "fgrep", "diff":
		return slices.ContainsFunc(c.Words, func(w string) bool {
			return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "rR") || strings.Contains(w, "recursive")
		})
	}
	return false
}

// other notes every word of a command that nobody knows.
func (f *files) other(c *Command) {
	for i := 1; i < len(c.Words); i++ {
		f.any(c.Words[i], c.mark(i), UseRead)
	}
	if !f.wraps(c) {
		f.deep(c)
	}
}

// wraps reports that the command only runs others, which are listed themselves.
func (f *files) wraps(c *Command) bool {
	for i := range f.script.Commands {
		if via := f.script.Commands[i].Via; slices.ContainsFunc(via, func(v string) bool { return v == c.Name || strings.HasPrefix(v, c.Name+" ") }) {
			return true
		}
	}
	return false
}

// any notes what a word may name: itself, the value of an option, and the pieces of code.
func (f *files) any(text string, mark Mark, use Use) {
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
			f.wordPath(p, mark&^MarkTilde|tilde(p), use, false)
		}
	}
	if !strings.ContainsAny(text, " \t\n\"'`();|&<>{}$") {
		return
	}
	for piece := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`();|&<>{}[]$=,:@\\", r) }) {
		f.add(File{Path: piece, Use: use, Within: true})
	}
}

// tilde is the mark of a part that may be a home directory.
func tilde(part string) Mark {
	if part == "~" || strings.HasPrefix(part, "~/") {
		return MarkTilde
	}
	return 0
}

// writer notes the files of the well-known commands that write.
func (f *files) writer(c *Command) bool {
	switch c.Name {
	case "tee", "touch", "truncate", "mkfifo":
		f.all(c, UseWrite)
	case "mkdir":
		f.all(c, UseMake)
	case "rm", "unlink", "rmdir", "shred":
		f.all(c, UseRemove)
	case "mv":
		f.pairs(c, UseRead|UseMove|UseRemove, UseWrite|UseMove)
		f.deep(c) // what it moves has another name for the commands after it
	case "cp", "install", "ln", "rsync":
		f.pairs(c, UseRead|UseCopy, UseWrite|UseCopy)
		if c.Name == "rsync" || c.Name == "ln" || slices.ContainsFunc(c.Words, copiesTree) {
			f.deep(c)
		}
	case "dd":
		f.dd(c)
	case "sed":
		if !slices.ContainsFunc(c.Words, func(w string) bool { return strings.HasPrefix(w, "-i") || strings.HasPrefix(w, "--in-place") }) {
			return false
		}
		for i := 1; i < len(c.Words); i++ {
			f.any(c.Words[i], c.mark(i), UseRead|UseWrite)
		}
	default:
		return false
	}
	return true
}

// dd notes the files of if= and of=.
func (f *files) dd(c *Command) {
	for i, w := range c.Words {
		if path, ok := strings.CutPrefix(w, "if="); ok {
			f.wordPath(path, c.mark(i), UseRead, true)
		} else if path, ok := strings.CutPrefix(w, "of="); ok {
			f.wordPath(path, c.mark(i), UseWrite, true)
		}
	}
}

// copiesTree reports an option of cp that goes down into directories.
func copiesTree(w string) bool {
	return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "rRa") || w == "--recursive" || w == "--archive"
}

// operands are the indexes of the words that are no options.
func operands(c *Command) []int {
	var list []int
	ended := false
	for i := 1; i < len(c.Words); i++ {
		switch w := c.Words[i]; {
		case !ended && w == "--":
			ended = true
		case ended || len(w) < 2 || w[0] != '-':
			list = append(list, i)
		}
	}
	return list
}

// all notes every operand for one use.
func (f *files) all(c *Command, use Use) {
	for _, i := range operands(c) {
		f.wordPath(c.Words[i], c.mark(i), use, true)
	}
}

// pairs notes sources and the destination of cp and mv. The destination may be a directory, in which the source keeps its name.
func (f *files) pairs(c *Command, from, to Use) {
	target, mark, list := destination(c, operands(c))
	if target == "" {
		return
	}
	into := strings.TrimSuffix(target, "/") + "/"
	for _, i := range list {
		f.wordPath(c.Words[i], c.mark(i), from, true)
		name := strings.TrimSuffix(c.Words[i], "/")
		f.wordPath(into+name[strings.LastIndexByte(name, '/')+1:], mark|c.mark(i), to, true)
		if slices.Contains(c.Words, "--parents") {
			f.wordPath(into+strings.TrimPrefix(name, "/"), mark|c.mark(i), to, true)
		}
	}
	if len(list) == 0 { // ln TARGET, install -d DIR
		to |= from
	}
	f.wordPath(target, mark, to, true)
}

// destination finds where cp and mv put things: the last operand, or the value of -t. The rest of the operands are sources.
func destination(c *Command, list []int) (target string, mark Mark, sources []int) {
	for i := 1; i < len(c.Words); i++ {
		w := c.Words[i]
		value, inline := strings.CutPrefix(w, "--target-directory=")
		if !inline && len(w) > 2 {
			value, inline = strings.CutPrefix(w, "-t")
		}
		switch {
		case inline:
			return value, c.mark(i), list
		case (w == "-t" || w == "--target-directory") && i+1 < len(c.Words):
			return c.Words[i+1], c.mark(i + 1), slices.DeleteFunc(list, func(at int) bool { return at == i+1 })
		}
	}
	if len(list) == 0 {
		return "", 0, nil
	}
	last := list[len(list)-1]
	return c.Words[last], c.mark(last), list[:len(list)-1]
}

// git notes the words of a git command, and whether it shows content that is kept in the repository.
func (f *files) git(c *Command) {
	sub := 1
	for sub < len(c.Words) && strings.HasPrefix(c.Words[sub], "-") {
		if listed("-C -c --git-dir --work-tree --namespace --exec-path --config-env", c.Words[sub]) {
			sub++
		}
		sub++
	}
	if sub >= len(c.Words) {
		return
	}
	for i := sub + 1; i < len(c.Words); i++ {
		f.any(c.Words[i], c.mark(i), UseRead)
	}
	if !showsNothing(c.Words[sub:]) && f.out.Objects == "" {
		f.out.Objects = "git " + clip(c.Words[sub])
	}
}

// showsNothing reports a git command that prints names, messages and counts, but no content of files.
func showsNothing(words []string) bool {
	has := func(list string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			key, _, _ := strings.Cut(w, "=")
			return listed(list, key)
		})
	}
	patch := has("-p -u --patch --patch-with-stat --cc -c -L -v --verbose --word-diff --color-words -U --unified --raw-diff") ||
		slices.ContainsFunc(words, func(w string) bool {
			return len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w, "puLUSGv") || strings.HasPrefix(w, "--patch") || strings.HasPrefix(w, "--word-diff")
		})
	switch words[0] {
	case "status", "branch", "tag", "remote", "rev-parse", "ls-files", "describe", "shortlog", "fetch", "push", "pull", "config", "init", "merge-base", "rev-list",
		"ls-tree", "reflog", "version", "help", "count-objects", "for-each-ref", "name-rev", "symbolic-ref", "check-ignore", "gc", "prune", "rm", "mv", "ls-remote":
		return true
	case "add", "log", "commit", "whatchanged":
		return !patch
	case "diff", "show":
		return !patch && has("--stat --shortstat --numstat --name-only --name-status --dirstat --summary --quiet --no-patch -s")
	}
	return false
}
