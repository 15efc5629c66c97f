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
		ok = ok && !moves(cmd)
		list = cmd.files(list)
	}
	slices.SortStableFunc(list, func(a, b FileName) int { return strings.Compare(a.Name, b.Name) })
	list = slices.CompactFunc(list, func(a, b FileName) bool { return a.Name == b.Name })
	if len(list) > maxNamed {
		return list[:maxNamed], false
	}
	return list, ok
}

// moves reports whether a command runs another one in a different directory, or below a different root.
func moves(cmd *Command) bool {
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
		return listed("chdir directory prefix cwd dir wd working-directory root workspace manifest-path", key)
	}
	return false
}

// files appends the names in one command.
func (c *Command) files(list []FileName) []FileName {
	if strings.Contains(c.Words[0], "/") {
		list = append(list, FileName{Name: c.Words[0]})
	}
	name := strings.ToLower(c.Name)
	implicit := implicitFiles(name)
	if len(c.Words) > 1 && listed("docker podman", name) && !listed("build compose buildx", c.Words[1]) {
		return list
	}
	for _, each := range implicit {
		list = append(list, FileName{Name: each})
	}
	if namesData(name) && (name != "go" || len(c.Words) < 2 || c.Words[1] != "run") {
		return list
	}
	list = append(list, c.Values...)
	for i, word := range c.Words[1:] {
		if name := namedBy(c.Words[i], word, len(implicit) > 0); name != "" {
			list = append(list, FileName{Name: name, Optional: true, Pattern: c.mark(i+1)&MarkPattern != 0})
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

// implicitFiles returns the files in its working directory that a program reads and obeys. A missing file counts as
// well.
func implicitFiles(name string) []string {
	switch name {
	case "make", "gmake":
		return []string{"GNUmakefile", "makefile", "Makefile"}
	case "npm", "pnpm", "yarn", "bun":
		return []string{"package.json", ".npmrc"}
	case "just":
		return []string{"justfile", "Justfile", ".justfile"}
	case "task":
		return []string{"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml"}
	case "rake":
		return []string{"Rakefile", "rakefile", "Rakefile.rb", "rakefile.rb"}
	case "cargo":
		return []string{"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config"}
	case "pytest", "py.test":
		return []string{"conftest.py", "pytest.ini", "pyproject.toml", "setup.cfg", "tox.ini"}
	case "tox":
		return []string{"tox.ini", "pyproject.toml", "setup.cfg"}
	case "nox":
		return []string{"noxfile.py"}
	case "invoke", "inv":
		return []string{"tasks.py"}
	case "mvn":
		return []string{"pom.xml"}
	}
	return moreImplicitFiles(name)
}

// moreImplicitFiles is the rest of the table.
func moreImplicitFiles(name string) []string {
	switch name {
	case "gradle", "gradlew":
		return []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}
	case "ant":
		return []string{"build.xml"}
	case "cmake", "ctest":
		return []string{"CMakeLists.txt"}
	case "meson":
		return []string{"meson.build"}
	case "ninja":
		return []string{"build.ninja"}
	case "scons":
		return []string{"SConstruct"}
	case "vagrant":
		return []string{"Vagrantfile"}
	case "pre-commit":
		return []string{".pre-commit-config.yaml"}
	case "docker-compose", "docker", "podman":
		return []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile"}
	case "poetry", "uv", "hatch", "pip", "pip3", "pdm":
		return []string{"pyproject.toml", "setup.py", "setup.cfg"}
	case "composer":
		return []string{"composer.json"}
	case "bundle":
		return []string{"Gemfile"}
	}
	return nil
}

// namesData reports whether a program reads or changes the files that it names, and runs none of them.
func namesData(name string) bool {
	switch name {
	case "[", "ar", "base64", "basename", "bunzip2", "bzip2", "cat", "chgrp", "chmod", "chown", "cksum", "clang",
		"clang++", "cmp", "column", "comm", "cp", "cut", "date", "dd", "df", "diff", "dirname", "du", "echo", "expand",
		"expr", "false", "file", "fmt", "fold", "g++", "gcc", "cc", "c++", "git", "go", "gofmt", "gofumpt", "grep",
		"egrep", "fgrep", "rg", "gunzip", "gzip", "head", "hexdump", "iconv", "id", "install", "jq", "join", "kill",
		"ld", "less", "ln", "ls", "md5sum", "mkdir", "mkfifo", "mktemp", "more", "mv", "nl", "nm", "objdump", "od",
		"paste", "patch", "pgrep", "pkill", "ps", "pwd", "readlink", "realpath", "rm", "rmdir", "rustc", "seq",
		"sha1sum", "sha256sum", "sha512sum", "shred", "shuf", "sleep", "sort", "split", "stat", "strip", "sum", "sync",
		"tac", "tail", "tar", "tee", "test", "touch", "tr", "tree", "true", "truncate", "tsc", "type", "uname",
		"unexpand", "uniq", "unlink", "unxz", "unzip", "uptime", "wc", "which", "who", "whoami", "xxd", "xz", "yes",
		"zip", "zstd", "systemctl", "journalctl", "kubectl", "gh":
		return true
	}
	return false
}

// PrefixWords returns how many leading words a rule "these words and any others" for a command has: its program, and
// its subcommand if it has any. It returns 0 if such a rule is never offered, because the other words determine what
// runs, or because that is not known.
func PrefixWords(words []string) int {
	if len(words) == 0 {
		return 0
	}
	switch words[0] {
	case "mkdir", "touch", "cp", "mv", "gzip", "gunzip", "zip", "unzip", "diff", "cmp", "jq", "tree", "du", "df",
		"gofmt", "gofumpt", "journalctl", "sha256sum", "md5sum", "stat", "wc", "head", "tail", "cat", "ls", "grep",
		"cut", "uniq", "tr", "echo", "ps", "file":
		return 1
	}
	if len(words) > 1 && listed(subcommands(words[0]), words[1]) {
		return 2
	}
	return 0
}

// PrefixCovers reports whether the words after a prefix are data: none of them is an option that is known to start a
// program, to write elsewhere or to load settings. Unknown options are left to the rules.
func PrefixCovers(program string, rest []string) bool {
	if program != "git" {
		return true
	}
	const risky = "config-env edit-description exec exec-path ext-diff git-dir interactive open-files-in-pager output receive-pack recurse-submodules " +
		"template textconv upload-pack work-tree"
	for _, word := range rest {
		word = strings.TrimPrefix(word, "'") // words that need quotes have some
		if key, ok := strings.CutPrefix(word, "--"); ok {
			key, _, _ = strings.Cut(strings.TrimSuffix(key, "'"), "=")
			if longMatch(risky, key) != "" {
				return false
			}
		} else if len(word) > 1 && word[0] == '-' && strings.ContainsAny(word, "xiO") {
			return false
		}
	}
	return true
}

// subcommands returns the subcommands of a program whose further words are data, separated by blanks.
func subcommands(program string) string {
	switch program {
	case "git":
		return "add blame branch checkout cherry-pick commit describe diff fetch log merge mv pull push rebase reset restore revert rm shortlog show stash status switch tag"
	case "go":
		return "build doc fmt list mod test version vet"
	case "gh", "glab":
		return "issue label pr release run search workflow"
	case "kubectl":
		return "annotate describe explain get label logs rollout scale top"
	case "docker", "podman":
		return "images inspect logs ps pull push restart rmi start stats stop tag top version"
	case "systemctl":
		return "is-active is-enabled list-units reload restart start status stop"
	}
	return ""
}
