package shell

import (
	_ "embed"
	"slices"

	"github.com/zephbot/zephbot/policy/command"
)

// readingGit is a shell function that stands in place of git in scripts whose git commands only read. It starts nothing
// that a repository names.
//
//go:embed reading.sh
var readingGit string

// readingVariable hands the function to the shell. The text of the command stays on its line, and so do the numbers in
// what bash says about it.
const readingVariable = "GIT_READING_FUNCTION"

// guard is what the shell runs for a text, and the variables it needs besides: a script whose git commands only read
// gets a git that runs no program which the repository names, since nobody was asked about it. What changes something
// was allowed by somebody, and keeps its hooks and filters.
func (r *Runner) guard(text string) (run string, env []string) {
	if !command.ReadsGit(r.opts.Reader.Read(text).Script) {
		return text, nil
	}
	return `eval "$` + readingVariable + `"; unset ` + readingVariable + `; ` +
		text, []string{readingVariable + "=" + readingGit}
}

// commandLine is the program with its arguments, and its environment.
func (r *Runner) commandLine(j job) (argv, env []string) {
	text, more := r.guard(j.text)
	return append(slices.Clone(r.shell), text), append(r.environment(j.ws, tmpDir(j.ws)), more...)
}
