package shell

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/redact"
)

// DefaultEnvBlocklist returns the prefixes of variables that commands do not get (seed 003, tools.shell.env_blocklist).
func DefaultEnvBlocklist() []string {
	return []string{"ZEPH_", "AWS_", "AZURE_", "GCP_", "GOOGLE_", "OPENAI_", "ANTHROPIC_", "HF_", "HUGGING"}
}

// unwanted reports whether a variable changes how a shell starts, leads to an agent that holds keys, or points out of
// the workspace.
func unwanted(name string) bool {
	switch name {
	case "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PROMPT_COMMAND", "IFS", "PS4", "CDPATH", "SSH_AUTH_SOCK",
		"SSH_AGENT_PID", "SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS",
		"XAUTHORITY", "DISPLAY", "WAYLAND_DISPLAY", "DOCKER_HOST", "KUBECONFIG", "HOME", "TMPDIR", "TMP", "TEMP", "PWD",
		"OLDPWD", "HISTFILE", "NOTIFY_SOCKET", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "CREDENTIALS_DIRECTORY",
		"GOCOVERDIR", "PGPASSFILE":
		return true
	}
	return false
}

// environment returns the environment of a command. It is that of the process without variables on the blocklist,
// without those that look like a credential, and without those that load code into programs. The temporary directory is
// inside the workspace, and so is the home directory of a command that a person approved. Others have one of their own;
// what they download and build is kept where it would be at home in the workspace.
func (r *Runner) environment(j job, tmp string) []string {
	keep := map[string]string{}
	for _, kv := range r.opts.Environ() {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || r.hidden(name, value) {
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
		"HOME": home, "TMPDIR": tmp, "TAR_OPTIONS": "--no-same-owner", // commands of root must not change owners
		"PWD": j.ws, "TERM": "dumb", "PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0",
		"HISTFILE": "/dev/null",
	}
	maps.Copy(keep, set)
	if keep["PATH"] == "" {
		keep["PATH"] = "/usr/local/bin:/usr/bin:/bin"
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

// hidden reports whether commands do not get a variable.
func (r *Runner) hidden(name, value string) bool {
	upper := strings.ToUpper(name)
	for _, prefix := range r.opts.EnvBlocklist {
		if prefix != "" && strings.HasPrefix(upper, strings.ToUpper(prefix)) {
			return true
		}
	}
	return unwanted(upper) || loader(upper) || redact.NamesSecret(name) || redact.HoldsCredential(value)
}

// withheld returns the sorted names of variables that commands do not get because of their name or value. It never
// returns values.
func (r *Runner) withheld() []string {
	names := []string{}
	for _, kv := range r.opts.Environ() {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && r.hidden(name, value) &&
			!unwanted(strings.ToUpper(name)) && !loader(strings.ToUpper(name)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// loader reports whether the variable makes the dynamic loader, a shell or an interpreter load code.
func loader(name string) bool {
	for _, prefix := range []string{"LD_", "DYLD_", "BASH_FUNC_", "XDG_"} { // XDG_ points out of the workspace
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return name == "NODE_OPTIONS" || name == "PYTHONSTARTUP" || name == "PERL5OPT" || name == "RUBYOPT"
}

// shellDir returns the directory of the shell program, so that the sandbox can start it from an unusual place too.
func (r *Runner) shellDir() []string {
	path, err := filepath.EvalSymlinks(r.shell[0])
	if err != nil {
		return nil
	}
	return []string{path}
}
