package command

import (
	"slices"
	"strings"
)

// writer handles the well-known commands that write files. It returns false for others.
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
		f.deep(c) // what it moves has another name for the following commands
	case "cp", "install", "ln", "rsync":
		f.pairs(c, UseRead|UseCopy, UseWrite|UseCopy)
		if c.Name == "rsync" || c.Name == "ln" || slices.ContainsFunc(c.Words, copiesTree) {
			f.deep(c)
		}
	case "dd":
		f.dd(c)
	case "sed":
		if !slices.ContainsFunc(c.Words, func(w string) bool {
			return strings.HasPrefix(w, "-i") || strings.HasPrefix(w, "--in-place")
		}) {
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

// dd adds the files of if= and of=.
func (f *files) dd(c *Command) {
	for i, w := range c.Words {
		if path, ok := strings.CutPrefix(w, "if="); ok {
			f.wordPath(path, c.mark(i), UseRead, true)
		} else if path, ok := strings.CutPrefix(w, "of="); ok {
			f.wordPath(path, c.mark(i), UseWrite, true)
		}
	}
}

// copiesTree reports whether an option makes cp descend into directories.
func copiesTree(w string) bool {
	return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "rRa") ||
		w == "--recursive" || w == "--archive"
}

// operands returns the indexes of the words that are not options.
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

// all adds every operand with one use.
func (f *files) all(c *Command, use Use) {
	for _, i := range operands(c) {
		f.wordPath(c.Words[i], c.mark(i), use, true)
	}
}

// pairs adds sources and destination of cp and mv. The destination may be a directory, in which the source keeps its
// name.
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

// destination returns the destination of cp and mv: the last operand, or the value of -t. The other operands are
// sources.
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

// git adds the words of a git command, and records whether it shows content from the repository.
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

// showsNothing reports whether a git command prints names, messages and counts, but no content of files.
func showsNothing(words []string) bool {
	has := func(list string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			key, _, _ := strings.Cut(w, "=")
			return listed(list, key)
		})
	}
	patch := has("-p -u --patch --patch-with-stat --cc -c -L -v --verbose --word-diff --color-words -U --unified --raw-diff") ||
		slices.ContainsFunc(words, func(w string) bool {
			return len(w) > 1 && w[0] == '-' && w[1] != '-' && strings.ContainsAny(w, "puLUSGv") ||
				strings.HasPrefix(w, "--patch") || strings.HasPrefix(w, "--word-diff")
		})
	switch words[0] {
	case "status", "branch", "tag", "remote", "rev-parse", "ls-files", "describe", "shortlog", "fetch", "push", "pull",
		"config", "init", "merge-base", "rev-list", "ls-tree", "reflog", "version", "help", "count-objects",
		"for-each-ref", "name-rev", "symbolic-ref", "check-ignore", "gc", "prune", "rm", "mv", "ls-remote":
		return true
	case "add", "log", "commit", "whatchanged":
		return !patch
	case "diff", "show":
		return !patch &&
			has("--stat --shortstat --numstat --name-only --name-status --dirstat --summary --quiet --no-patch -s")
	}
	return false
}
