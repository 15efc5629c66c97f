package shell

import (
	_ "embed"
	"slices"

	"github.com/zephbot/zephbot/policy/command"
)

// readingGit is a shell function that replaces git in scripts whose git commands only read. It prevents git from
// starting programs that a repository names.
//
//go:embed reading.sh
var readingGit string

// readingVariable is the environment variable that passes the function to the shell. The text of the command therefore
// stays on its lines, and so do the line numbers in messages of bash.
const readingVariable = "GIT_READING_FUNCTION"

// guard returns what the shell runs for a text, and additional variables. A script whose git commands only read gets a
// git that does not run programs named by the repository, because nobody was asked about those. A command that changes
// something was approved, and keeps its hooks and filters.
func (r *Runner) guard(text string) (run string, env []string) {
	if !command.ReadsGit(r.opts.Reader.Read(text).Script) {
		return text, nil
	}
	return `eval "$` + readingVariable + `"; unset ` + readingVariable + `; ` +
		text, []string{readingVariable + "=" + readingGit}
}

// commandLine returns the program with its arguments, and its environment.
func (r *Runner) commandLine(j job) (argv, env []string) {
	text, more := r.guard(j.text)
	return append(slices.Clone(r.shell), text), append(r.environment(j, tmpDir(j.ws)), more...)
}
