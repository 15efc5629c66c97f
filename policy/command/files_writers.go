package command

import (
	"slices"
	"strings"
)

// addWriter handles the well-known commands that write files. It returns false for others.
func (f *files) addWriter(c *Command) bool {
	switch c.Name {
	case "tee", "touch", "truncate", "mkfifo":
		f.addAll(c, UseWrite)
	case "mkdir":
		f.addAll(c, UseMake)
	case "rm", "unlink", "rmdir", "shred":
		f.addAll(c, UseRemove)
	case "mv":
		f.addPairs(c, UseRead|UseMove|UseRemove, UseWrite|UseMove)
		f.addDeep(c) // what it moves has another name for the following commands
	case "cp", "install", "ln", "rsync":
		f.addPairs(c, UseRead|UseCopy, UseWrite|UseCopy)
		if c.Name == "rsync" || c.Name == "ln" || slices.ContainsFunc(c.Words, copiesTree) {
			f.addDeep(c)
		}
	case "dd":
		f.addDD(c)
	case "sed":
		if !slices.ContainsFunc(c.Words, func(w string) bool {
			return strings.HasPrefix(w, "-i") || strings.HasPrefix(w, "--in-place")
		}) {
			return false
		}
		for i := 1; i < len(c.Words); i++ {
			f.addAny(c.Words[i], c.markOf(i), UseRead|UseWrite)
		}
	default:
		return false
	}
	return true
}

// addDD adds the files of if= and of=.
func (f *files) addDD(c *Command) {
	for i, w := range c.Words {
		if path, ok := strings.CutPrefix(w, "if="); ok {
			f.wordPath(path, c.markOf(i), UseRead, true)
		} else if path, ok := strings.CutPrefix(w, "of="); ok {
			f.wordPath(path, c.markOf(i), UseWrite, true)
		}
	}
}

// copiesTree reports whether an option makes cp descend into directories.
func copiesTree(w string) bool {
	return strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--") && strings.ContainsAny(w, "rRa") ||
		w == "--recursive" || w == "--archive"
}

// operandIndexes returns the indexes of the words that are not options.
func operandIndexes(c *Command) []int {
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

// addAll adds every operand with one use.
func (f *files) addAll(c *Command, use Use) {
	for _, i := range operandIndexes(c) {
		f.wordPath(c.Words[i], c.markOf(i), use, true)
	}
}

// addPairs adds sources and destination of cp and mv. The destination may be a directory, in which the source keeps its
// name.
func (f *files) addPairs(c *Command, from, to Use) {
	target, mark, list := copyDestination(c, operandIndexes(c))
	if target == "" {
		return
	}
	into := strings.TrimSuffix(target, "/") + "/"
	for _, i := range list {
		f.wordPath(c.Words[i], c.markOf(i), from, true)
		name := strings.TrimSuffix(c.Words[i], "/")
		f.wordPath(into+name[strings.LastIndexByte(name, '/')+1:], mark|c.markOf(i), to, true)
		if slices.Contains(c.Words, "--parents") {
			f.wordPath(into+strings.TrimPrefix(name, "/"), mark|c.markOf(i), to, true)
		}
	}
	if len(list) == 0 { // ln TARGET, install -d DIR
		to |= from
	}
	f.wordPath(target, mark, to, true)
}

// copyDestination returns the destination of cp and mv: the last operand, or the value of -t. The other operands are
// sources.
func copyDestination(c *Command, list []int) (target string, mark Mark, sources []int) {
	for i := 1; i < len(c.Words); i++ {
		w := c.Words[i]
		value, inline := strings.CutPrefix(w, "--target-directory=")
		if !inline && len(w) > 2 {
			value, inline = strings.CutPrefix(w, "-t")
		}
		switch {
		case inline:
			return value, c.markOf(i), list
		case (w == "-t" || w == "--target-directory") && i+1 < len(c.Words):
			return c.Words[i+1], c.markOf(i + 1), slices.DeleteFunc(list, func(at int) bool { return at == i+1 })
		}
	}
	if len(list) == 0 {
		return "", 0, nil
	}
	last := list[len(list)-1]
	return c.Words[last], c.markOf(last), list[:len(list)-1]
}

// addGit adds the words of a git command, and records whether it shows content from the repository.
func (f *files) addGit(c *Command) {
	sub := 1
	for sub < len(c.Words) && strings.HasPrefix(c.Words[sub], "-") {
		if isListed("-C -c --git-dir --work-tree --namespace --exec-path --config-env", c.Words[sub]) {
			sub++
		}
		sub++
	}
	if sub >= len(c.Words) {
		return
	}
	for i := sub + 1; i < len(c.Words); i++ {
		f.addAny(c.Words[i], c.markOf(i), UseRead)
	}
	if !showsNothing(c.Words[sub:]) && f.out.Objects == "" {
		f.out.Objects = "git " + clipText(c.Words[sub])
	}
}

// showsNothing reports whether a git command prints names, messages and counts, but no content of files.
func showsNothing(words []string) bool {
	has := func(list string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			key, _, _ := strings.Cut(w, "=")
			return isListed(list, key)
		})
	}
	patch := has(
		"-p -u --patch --patch-with-stat --cc -c -L -v --verbose --word-diff --color-words -U --unified --raw-diff",
	) ||
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
