package guard

import (
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/zephbot/zephbot/policy/redact"
)

// loaders are variables that make a program load foreign code: the list of seed 001, and the debugging variables of our
// own library. They match exactly.
var loaders = []string{
	"LD_PRELOAD", "LD_LIBRARY_PATH", "LD_AUDIT", "LD_PROFILE",
	"DYLD_INSERT_LIBRARIES", "DYLD_LIBRARY_PATH", "DYLD_FRAMEWORK_PATH", "DYLD_FALLBACK_LIBRARY_PATH",
	"BASH_ENV", "ENV", "CDPATH", "GLOBIGNORE",
	"PYTHONPATH", "PYTHONSTARTUP", "RUBYLIB", "RUBYOPT",
	"NODE_OPTIONS", "NODE_PATH", "PERL5LIB", "PERL5OPT", "JAVA_TOOL_OPTIONS",
	"MCPGODEBUG",
}

// secrets are variables that hold credentials although their names do not suggest it. Suggestive names are found by
// redact.NamesSecret, and our own by the prefix ZEPH_.
var secrets = []string{
	"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AZURE_CLIENT_SECRET", "GCP_SERVICE_ACCOUNT_KEY",
	"GOOGLE_APPLICATION_CREDENTIALS", "DATABASE_URL", "REDIS_URL", "GITHUB_TOKEN", "GITLAB_TOKEN", "NPM_TOKEN",
	"CARGO_REGISTRY_TOKEN", "DOCKER_PASSWORD", "VAULT_TOKEN", "SSH_AUTH_SOCK",
}

// base lists the variables that an isolated server inherits.
var base = []string{
	"PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR", "XDG_RUNTIME_DIR",
	"XDG_CONFIG_HOME",
}

// functions is the prefix with which bash exports functions to its children.
const functions = "BASH_FUNC_"

// Environment returns the environment of a server's process. It removes from the inherited variables those that load
// code, our own ZEPH_* and credentials; with isolated, it keeps only ten base names. The configured variables are added
// last: they may hold a credential on purpose, but one that loads code is an error. The result is sorted by name. It is
// never nil, because os/exec takes nil for "inherit everything".
func Environment(inherited []string, configured map[string]string, isolated bool) ([]string, error) {
	if err := checkConfigured(configured); err != nil {
		return nil, err
	}
	env := map[string]string{}
	for _, kv := range inherited {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || strings.ContainsRune(kv, 0) || stripped(name, value) {
			continue
		}
		if isolated && !slices.Contains(base, name) {
			continue
		}
		env[name] = value
	}
	maps.Copy(env, configured)
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	sort.Strings(list)
	return list, nil
}

// Withheld returns the sorted names of inherited variables that a server does not get because of their name or value.
// It never returns values.
func Withheld(inherited []string) []string {
	names := []string{}
	for _, kv := range inherited {
		if name, value, ok := strings.Cut(kv, "="); ok && name != "" && stripped(name, value) && !loads(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// checkConfigured returns an error for variables that load code or are not valid. Errors never contain values, which
// may be secret.
func checkConfigured(configured map[string]string) error {
	names := make([]string, 0, len(configured))
	for name := range configured {
		names = append(names, name)
	}
	sort.Strings(names) // so that the same error is reported every time
	for _, name := range names {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("env: %s cannot be the name of a variable", shown(name))
		case strings.ContainsRune(configured[name], 0):
			return fmt.Errorf("env: the value of %s has a NUL byte in it", shown(name))
		case loads(name):
			return fmt.Errorf("env: %s is not allowed: it makes the server's process load foreign code; remove it",
				name)
		}
	}
	return nil
}

func loads(name string) bool {
	return slices.Contains(loaders, name) || strings.HasPrefix(name, functions)
}

// stripped reports whether an inherited variable is withheld from servers.
func stripped(name, value string) bool {
	return loads(name) || strings.HasPrefix(name, "ZEPH_") || slices.Contains(secrets, name) ||
		redact.NamesSecret(name) || redact.HoldsCredential(value)
}
