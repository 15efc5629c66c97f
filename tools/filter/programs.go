package filter

import (
	"path"
	"slices"
	"strings"
)

// isTransparent reports whether a program runs another one and passes its output on.
func isTransparent(name string) bool {
	switch name {
	case "env", "time", "timeout", "gtimeout", "nice", "ionice", "nohup", "stdbuf", "setsid", "sudo", "doas", "command",
		"exec", "builtin", "unbuffer", "chronic", "taskset", "chrt", "caffeinate", "watchdog":
		return true
	}
	return false
}

// isShell reports whether a program is a shell with the option -c for a script.
func isShell(name string) bool {
	switch name {
	case "bash", "sh", "zsh", "dash", "ksh", "ash":
		return true
	}
	return false
}

// isSilent reports whether a command prints nothing when it succeeds.
func isSilent(words []string) bool {
	switch words[0] {
	case "cd", "pushd", "popd", "export", "set", "unset", "shopt", "source", ".", "true", "false", ":", "umask",
		"ulimit", "alias", "unalias", "trap", "touch", "mkdir", "rm", "rmdir", "cp", "mv", "ln", "chmod", "chown",
		"sleep", "test", "[", "[[", "read", "wait", "exit", "return", "break", "continue", "shift", "local", "declare",
		"readonly", "typeset", "kill", "deactivate", "activate", "truncate", "exec", "getopts", "mkfifo", "sync",
		"disown", "hash":
		return !slices.ContainsFunc(words[1:], func(w string) bool {
			return w == "-v" || w == "--verbose" || w == "-x"
		})
	case "eval":
		return false
	case "git":
		return len(words) > 1 && (words[1] == "add" || words[1] == "config" && len(words) > 3)
	case "nvm", "conda", "sdk", "asdf", "mise":
		return len(words) > 1 && (words[1] == "use" || words[1] == "activate" || words[1] == "shell")
	}
	return false
}

// lineStage reports whether a stage of a pipe outputs only unchanged lines of its input.
func lineStage(words []string) bool {
	args := words[1:]
	switch words[0] {
	case "tail", "head", "cat", "tee", "less", "more", "sort", "uniq", "ts", "unbuffer", "tac":
		return words[0] != "uniq" || !slices.ContainsFunc(args,
			func(w string) bool { return strings.HasPrefix(w, "-c") })
	case "grep", "egrep", "fgrep", "rg":
		return !slices.ContainsFunc(args, changesLines)
	case "sed":
		return len(args) == 2 && args[0] == "-n" || len(args) == 1 &&
			(args[0] == "1d" || args[0] == "$d" || args[0] == "/^$/d")
	}
	return false
}

// changesLines reports whether an option makes grep print something other than lines.
func changesLines(w string) bool {
	if strings.HasPrefix(w, "--") {
		return w == "--count" || w == "--only-matching" || w == "--quiet" || w == "--files-with-matches" ||
			w == "--line-number"
	}
	return strings.HasPrefix(w, "-") && strings.ContainsAny(w, "lqcon") && !strings.ContainsAny(w, "0123456789")
}

// isSearch reports whether a program only lists what it finds. File names and errors in its output do not mean that it
// failed.
func isSearch(words []string) bool {
	switch words[0] {
	case "grep", "egrep", "fgrep", "rg", "ag", "find", "fd", "fdfind", "locate", "ls", "tree", "du", "df", "ps", "tar",
		"bsdtar", "unzip", "zipinfo":
		return true
	case "git":
		return len(words) > 1 && (words[1] == "grep" || words[1] == "log" || words[1] == "diff" || words[1] == "show")
	}
	return false
}

// unwrapRunner removes a runner: python -m, npx, poetry run …; nil when there is none.
func unwrapRunner(words []string) []string {
	if len(words) < 2 {
		return nil
	}
	name, args := words[0], words[1:]
	skip := 0
	switch name {
	case "python", "python2", "python3", "py", "pypy", "pypy3":
		return pythonModule(args)
	case "npx", "bunx", "uvx":
		skip = countFlags(args, "-p --package -c --call")
	case "pipx", "poetry", "pipenv", "uv", "pdm", "hatch", "rye":
		return cutRunner(args, "run")
	case "bundle", "mise", "direnv":
		return cutRunner(args, "exec")
	case "pnpm", "yarn", "npm", "bun":
		return nodeRunner(name, args)
	case "coverage":
		if args[0] != "run" {
			return nil
		}
		return unwrapRunner(append([]string{"python"}, args[1:]...))
	default:
		return nil
	}
	if skip >= len(args) {
		return nil
	}
	return baseWords(args[skip:])
}

// pythonModule parses python [options] -m module.
func pythonModule(args []string) []string {
	skip := 0
	for skip < len(args) && strings.HasPrefix(args[skip], "-") && args[skip] != "-m" {
		if args[skip] == "-c" {
			return nil
		}
		skip++
		if args[skip-1] == "-W" || args[skip-1] == "-X" {
			skip++
		}
	}
	if skip+1 >= len(args) || args[skip] != "-m" {
		return nil
	}
	return args[skip+1:]
}

// cutRunner removes "run [flags]".
func cutRunner(args []string, verb string) []string {
	if args[0] != verb {
		return nil
	}
	skip := 1 + countFlags(args[1:], "-p --python --with -e --env --extra --group --directory")
	if skip >= len(args) {
		return nil
	}
	return baseWords(args[skip:])
}

// nodeRunner parses pnpm exec jest, npm exec -- jest, yarn jest, pnpm vitest.
func nodeRunner(name string, args []string) []string {
	if args[0] == "exec" || args[0] == "dlx" || args[0] == "x" {
		skip := 1 + countFlags(args[1:], "-p --package -w --workspace")
		if skip >= len(args) {
			return nil
		}
		return baseWords(args[skip:])
	}
	if name == "npm" {
		return nil
	}
	switch args[0] {
	case "jest", "vitest", "mocha", "eslint", "tsc", "prettier", "playwright", "ava", "tap":
		return args
	}
	return nil
}

func baseWords(words []string) []string {
	words = slices.Clone(words)
	words[0] = path.Base(words[0])
	return words
}

// countFlags returns the number of leading options. valued lists those with a separate value.
func countFlags(args []string, valued string) int {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i], "-") {
		if args[i] == "--" {
			return i + 1
		}
		if slices.Contains(strings.Fields(valued), args[i]) {
			i++
		}
		i++
	}
	return i
}

// globalOptions returns the options with a value that a program accepts before its subcommand.
func globalOptions(name string) (valued string, known bool) {
	switch name {
	case "git":
		return "-C -c --git-dir --work-tree --namespace --exec-path --config-env", true
	case "kubectl", "helm", "oc":
		return "-n --namespace --context --kubeconfig --cluster -s --server --user --as --token -l", true
	case "docker", "podman":
		return "-H --host -c --context --config -l --log-level", true
	case "docker-compose":
		return "-f --file -p --project-name --env-file --profile", true
	case "npm", "pnpm", "yarn", "bun":
		return "--prefix -C --dir --cwd -w --workspace --filter -F", true
	case "go":
		return "-C", true
	case "cargo":
		return "--manifest-path --color --config -Z -C", true
	case "terraform", "tofu":
		return "", true
	}
	return "", false
}

// withoutGlobals removes the options between a program and its subcommand: git -C dir status; nil when there are none.
func withoutGlobals(words []string) []string {
	if len(words) < 3 {
		return nil
	}
	valued, known := globalOptions(words[0])
	if !known {
		return nil
	}
	n := countFlags(words[1:], valued)
	if words[0] == "cargo" && n == 0 && strings.HasPrefix(words[1], "+") {
		n = 1 + countFlags(words[2:], valued)
	}
	if 1+n >= len(words) {
		return nil
	}
	out := append([]string{words[0]}, words[1+n:]...)
	if (out[0] == "docker" || out[0] == "podman") && len(out) > 3 && out[1] == "compose" {
		if m := countFlags(out[2:], "-f --file -p --project-name --env-file --profile"); m > 0 && 2+m < len(out) {
			out = append([]string{out[0], "compose"}, out[2+m:]...)
		}
	}
	if len(out) == len(words) {
		return nil
	}
	return out
}
