package command

import (
	"slices"
	"strings"
)

// FileName is the name, in a command, of a file whose content determines what the command does.
type FileName struct {
	// Name is a word, or the name of a file that the program reads by itself ("Makefile").
	Name string
	// Optional: the word may not be a file name, and counts only if such a file exists.
	Optional bool
	// Pattern: the last part of Name is a pattern of the shell, which stands for all files that match.
	Pattern bool
}

// maxNamed limits the files named by one script.
const maxNamed = 64

// Names returns the files whose content determines what the commands of a script do: programs named by a path, the
// words of interpreters and of unknown programs, and what build tools read by themselves. It leaves out the words of
// programs that are known to take them as data. ok is false if the names do not identify the files, because a command
// changes the directory in between or there are too many.
func (s Script) Names() (list []FileName, ok bool) {
	ok = true
	for i := range s.Commands {
		cmd := &s.Commands[i]
		ok = ok && !movesDirectory(cmd)
		list = cmd.appendFiles(list)
	}
	slices.SortStableFunc(list, func(a, b FileName) int { return strings.Compare(a.Name, b.Name) })
	list = slices.CompactFunc(list, func(a, b FileName) bool { return a.Name == b.Name })
	if len(list) > maxNamed {
		return list[:maxNamed], false
	}
	return list, ok
}

// movesDirectory reports whether a command runs another one in a different directory, or below a different root.
func movesDirectory(cmd *Command) bool {
	name := strings.ToLower(cmd.Name)
	switch name {
	case "cd", "pushd", "popd", "chroot", "unshare", "nsenter", "proot", "bwrap", "run0", "systemd-run", "firejail",
		"capsh", "parallel":
		return true
	case "npm", "pnpm", "yarn", "bun", "make", "gmake",
		"just", "task", "ninja", "cmake", "env", "genv", "sudo", "doas", "go", "cargo", "poetry", "uv", "pdm":
		return slices.ContainsFunc(cmd.Words[1:], func(word string) bool { return movesBy(name, word) })
	}
	return false
}

// movesBy reports whether a word is an option of the program for the directory to work in.
func movesBy(name, word string) bool {
	if len(word) < 2 || word[0] != '-' {
		return false
	}
	switch word[1] {
	case 'C':
		return true
	case 'D':
		return name == "sudo" || name == "doas"
	case 'w':
		return name == "npm" || name == "pnpm"
	case '-':
		key, _, _ := strings.Cut(word[2:], "=")
		return isListed("chdir directory prefix cwd dir wd working-directory root workspace manifest-path", key)
	}
	return false
}

// appendFiles appends the names in one command.
func (c *Command) appendFiles(list []FileName) []FileName {
	if strings.Contains(c.Words[0], "/") {
		list = append(list, FileName{Name: c.Words[0]})
	}
	name := strings.ToLower(c.Name)
	implicit := facts()[fact{"implicit", name}]
	if len(c.Words) > 1 && isListed("docker podman", name) && !isListed("build compose buildx", c.Words[1]) {
		return list
	}
	for _, each := range implicit {
		list = append(list, FileName{Name: each})
	}
	if isOfKind("data", name) && (name != "go" || len(c.Words) < 2 || c.Words[1] != "run") {
		return list
	}
	list = append(list, c.Values...)
	for i, word := range c.Words[1:] {
		if name := namedBy(c.Words[i], word, len(implicit) > 0); name != "" {
			list = append(list, FileName{Name: name, Optional: true, Pattern: c.markOf(i+1)&MarkPattern != 0})
		}
	}
	return list
}

// namedBy returns the file that a word may name; "" for none. For a build tool, words that are not values of options
// are targets, which are often files that the tool itself makes.
func namedBy(before, word string, build bool) string {
	if word == "" {
		return ""
	}
	if word[0] != '-' {
		if build && (before == "" || before[0] != '-' || strings.Contains(before, "=")) {
			return ""
		}
		return word
	}
	if _, value, found := strings.Cut(word, "="); found {
		return value
	}
	if len(word) > 2 && word[1] != '-' {
		return word[2:]
	}
	return ""
}

// PrefixWords returns how many leading words a rule "these words and any others" for a command has: its program, and
// its subcommand if it has any. It returns 0 if such a rule is never offered, because the other words determine what
// runs, or because that is not known.
func PrefixWords(words []string) int {
	if len(words) == 0 {
		return 0
	}
	if isOfKind("prefix", words[0]) {
		return 1
	}
	if len(words) > 1 && slices.Contains(facts()[fact{"subcommands", words[0]}], words[1]) {
		return 2
	}
	return 0
}
