package shell

import (
	"context"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// defaultEnvBlocklist returns the prefixes of variables that commands do not get (seed 003, tools.shell.env_blocklist).
func defaultEnvBlocklist() []string {
	return []string{"ZEPH_", "AWS_", "AZURE_", "GCP_", "GOOGLE_", "OPENAI_", "ANTHROPIC_", "HF_", "HUGGING"}
}

// jobEnvironment returns the environment of a command: what command.Passed lists of that of the process, without
// variables on the blocklist and those that look like a credential, and what it needs here. The temporary directory is
// inside the workspace, and so is the home directory of a command that a person approved. Others have one of their own;
// what they download and build is kept where it would be at home in the workspace.
func (r *Runner) jobEnvironment(j job) []string {
	if j.reading {
		return r.readingEnvironment(j)
	}
	keep := map[string]string{}
	for _, kv := range r.opts.Environ() {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || r.hidesVariable(name, value) {
			continue
		}
		keep[name] = value
	}
	home := j.ws
	if j.home != "" {
		home = j.home
		for name, dir := range map[string]string{
			"GOPATH": "go", "XDG_CACHE_HOME": ".cache", "npm_config_cache": ".npm",
		} {
			if keep[name] == "" {
				keep[name] = filepath.Join(j.ws, dir)
			}
		}
	}
	set := map[string]string{
		// commands of root must not change owners
		"HOME": home, "TMPDIR": r.tmpDir(j.ws), "TAR_OPTIONS": "--no-same-owner",
		"PWD": j.ws, "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
		"HISTFILE": "/dev/null",
	}
	maps.Copy(keep, set)
	keep["PATH"] = r.searchPath()
	for name, value := range r.opts.Toolchains.Env {
		if keep[name] == "" {
			keep[name] = value
		}
	}
	if keep["LANG"] == "" && keep["LC_ALL"] == "" {
		keep["LANG"] = "C.UTF-8"
	}
	env := make([]string, 0, len(keep))
	for name, value := range keep {
		env = append(env, name+"="+value)
	}
	slices.Sort(env)
	return env
}

// searchPath returns the PATH of commands: that of the process, and the directories of toolchains.
func (r *Runner) searchPath() string {
	path := "/usr/local/bin:/usr/bin:/bin"
	for _, kv := range r.opts.Environ() {
		if value, ok := strings.CutPrefix(kv, "PATH="); ok && value != "" {
			path = value
		}
	}
	return r.opts.Toolchains.Path(path)
}

// FindProgram looks for a program where commands run. path is where it is; "" = nowhere. usable is false if it is
// installed where commands may not look, such as below a home directory that is not granted.
func (r *Runner) FindProgram(ctx context.Context, name string) (path string, usable bool) {
	open := r.opts.Sandbox == SandboxOff || r.Level(ctx).Landlock == 0
	for _, dir := range filepath.SplitList(r.searchPath()) {
		if !filepath.IsAbs(dir) {
			continue
		}
		found, err := exec.LookPath(filepath.Join(dir, name))
		switch {
		case err != nil:
		case open || r.mayRead(found) && r.mayRead(sandbox.Canonical(found)):
			return found, true
		case path == "":
			path = found
		}
	}
	return path, false
}

// mayRead reports whether every command may read a path.
func (r *Runner) mayRead(path string) bool {
	granted := slices.Concat(sandbox.SystemDirs(), r.opts.ReadPaths, r.opts.Toolchains.Read, r.opts.AllowedPaths)
	return slices.ContainsFunc(granted, func(dir string) bool { return isBelow(path, dir) || isBelow(path, sandbox.Canonical(dir)) })
}

// hidesVariable reports whether commands do not get a variable.
func (r *Runner) hidesVariable(name, value string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range r.opts.EnvBlocklist {
		if prefix != "" && strings.HasPrefix(upper, strings.ToUpper(prefix)) {
			return true
		}
	}
	return !command.Passed(name) || redact.NamesSecret(name) || redact.HoldsCredential(value)
}

// WithheldVariables returns the sorted names of variables of this process that commands do not get. Most are harmless:
// no program needs them. It never returns values.
func (r *Runner) WithheldVariables() []string {
	names := []string{}
	for _, kv := range r.opts.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && r.hidesVariable(name, value) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// programPaths returns the shell program, so that the sandbox can start it from an unusual place too, and the directory
// of the git that replaces the machine's.
func (r *Runner) programPaths(j job) []string {
	var list []string
	if path, err := filepath.EvalSymlinks(r.shell[0]); err == nil {
		list = append(list, path)
	}
	if !j.exact && !j.reading { // others have the function alone
		if dir := r.gitDir(); dir != "" {
			list = append(list, dir)
		}
	}
	return list
}
