package shell

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// neutralGit is a shell function that replaces git in a call that nobody has approved word for word. It prevents
// git from starting programs that a repository names.
//
//go:embed git.sh
var neutralGit string

// asProgram makes the function a program, which takes its own directory off the search path.
const asProgram = `
self=:${0%/*}:
path=:$PATH:
while case $path in *"$self"*) ;; *) false ;; esac do
	path=${path%%"$self"*}:${path#*"$self"}
done
PATH=${path#:}
PATH=${PATH%:}
git "$@"
`

// Environment variables of the function.
const (
	gitVariable = "GIT_NEUTRAL_FUNCTION" // passes it to the shell, so that the text of the command stays on its lines
	gitReads    = "GIT_ONLY_READS"       // "1": all git commands of the text only read
)

// guardGit returns what the shell runs for a job, a directory that comes first on its search path ("" = none), and
// additional variables. Whoever approves a call word for word wants the repository's hooks and filters; a rule or a
// standing approval is about the words, and not about every repository that gets into the workspace.
func (r *Runner) guardGit(j job) (run, first string, env []string) {
	if j.exact {
		return j.text, "", nil
	}
	if j.reading {
		env = append(env, gitReads+"=1")
	} else if dir := r.gitDir(); dir != "" {
		return j.text, dir, nil
	}
	run = `eval "$` + gitVariable + `"; unset ` + gitVariable + `; `
	if r.note == "" { // bash also hands it to those that it starts
		run += "export -f git; "
	}
	return run + j.text, "", append(env, gitVariable+"="+neutralGit)
}

// gitDir returns the directory of a program git that replaces the machine's; "" if no program can be started there. It
// is made when it is first needed, and removed by Shutdown.
func (r *Runner) gitDir() string {
	r.neutral.once.Do(func() {
		dir, err := makeGit(r.opts.SnapshotDir)
		if err != nil {
			r.log.Warn().Err(err).
				Msg("only git that the shell itself starts is kept from running what a repository names")
		}
		r.neutral.dir = dir
	})
	return r.neutral.dir
}

// makeGit makes the program in a directory of its own below a directory.
func makeGit(below string) (dir string, err error) {
	if dir, err = os.MkdirTemp(below, "zephbot-git-"); err != nil {
		return "", err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", err
	}
	name := filepath.Join(dir, "git")
	if err = os.WriteFile(name, []byte("#!/bin/sh\n"+neutralGit+asProgram), 0o600); err == nil {
		err = errors.Join(os.Chmod(name, 0o555), os.Chmod(dir, 0o755)) //nolint:gosec // other users may run commands
	}
	if err == nil {
		try := exec.Command(name) //nolint:noctx // ends at once, because it finds no git
		try.Env = []string{"PATH="}
		if err = try.Run(); !errors.Is(err, fs.ErrPermission) { // no program may be started from there
			return dir, nil
		}
	}
	return "", errors.Join(err, os.RemoveAll(dir))
}

// removeGit removes what gitDir has made.
func (r *Runner) removeGit() error {
	r.neutral.once.Do(func() {}) // it is not made any more
	if r.neutral.dir == "" {
		return nil
	}
	return os.RemoveAll(r.neutral.dir)
}

// commandLine returns the program with its arguments, and its environment.
func (r *Runner) commandLine(j job) (argv, env []string) {
	text, first, more := r.guardGit(j)
	env = append(r.jobEnvironment(j), more...)
	for i, kv := range env {
		if path, ok := strings.CutPrefix(kv, "PATH="); ok && first != "" {
			env[i] = "PATH=" + first + ":" + path
		}
	}
	return append(slices.Clone(r.shell), text), env
}
