package guard_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

func TestEnvironment(t *testing.T) {
	t.Parallel()
	inherited := []string{
		"PATH=/usr/bin", "HOME=/home/b", "LANG=C", "FOO=1", "EMPTY=", "EQ=a=b", "FOO=2", "broken", "=x", "NUL=a\x00b",
		"ZEPH_TELEGRAM_TOKEN=s", "ZEPH_LOG_LEVEL=debug", "GITHUB_TOKEN=s", "AWS_SECRET_ACCESS_KEY=s", "SSH_AUTH_SOCK=/s", "DATABASE_URL=x",
		"MY_APIKEY=s", "OPENAI_API_KEY=s", "db_password=s", "MIRROR=https://u:p@host/x", "ODD=https://[u:p@host", "SITE=https://host/x@y",
		"LD_PRELOAD=/x.so", "NODE_OPTIONS=--require x", "MCPGODEBUG=x=1", "BASH_FUNC_ls%%=() { :; }", "ENV=/x", "ld_preload=x",
	}
	for _, c := range []struct {
		name       string
		inherited  []string
		configured map[string]string
		isolated   bool
		want       []string
	}{
		{"inherited is cleaned", inherited, nil, false, []string{"EMPTY=", "EQ=a=b", "FOO=2", "HOME=/home/b", "LANG=C", "PATH=/usr/bin", "SITE=https://host/x@y", "ld_preload=x"}},
		{"isolated", inherited, map[string]string{"NODE_ENV": "test"}, true, []string{"HOME=/home/b", "LANG=C", "NODE_ENV=test", "PATH=/usr/bin"}},
		{"configured wins", []string{"PATH=/usr/bin", "FOO=1"}, map[string]string{"PATH": "/x", "FOO": ""}, false, []string{"FOO=", "PATH=/x"}},
		{"configured wins, isolated", []string{"PATH=/usr/bin"}, map[string]string{"PATH": "/x"}, true, []string{"PATH=/x"}},
		{"an explicit credential passes", []string{"GITHUB_TOKEN=inherited"}, map[string]string{"GITHUB_TOKEN": "mine", "ZEPH_X": "1"}, false, []string{"GITHUB_TOKEN=mine", "ZEPH_X=1"}},
		{"matching is exact", nil, map[string]string{"ld_preload": "x"}, false, []string{"ld_preload=x"}},
		{"usual names", nil, map[string]string{"PATH": "/p", "HOME": "/h", "NODE_ENV": "x"}, false, []string{"HOME=/h", "NODE_ENV=x", "PATH=/p"}},
		{"nothing", nil, nil, true, []string{}},
		{
			"ten base names",
			[]string{"PATH=1", "HOME=1", "USER=1", "LANG=1", "LC_ALL=1", "TERM=1", "SHELL=1", "TMPDIR=1", "XDG_RUNTIME_DIR=1", "XDG_CONFIG_HOME=1", "XDG_DATA_HOME=1"},
			nil, true,
			[]string{"HOME=1", "LANG=1", "LC_ALL=1", "PATH=1", "SHELL=1", "TERM=1", "TMPDIR=1", "USER=1", "XDG_CONFIG_HOME=1", "XDG_RUNTIME_DIR=1"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := guard.Environment(c.inherited, c.configured, c.isolated)
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

// TestAttackCredentialInVariable has credentials in variables whose names do not suggest them. Configured variables are
// passed on.
func TestAttackCredentialInVariable(t *testing.T) {
	t.Parallel()
	key := "sk_" + "live_" + strings.Repeat("aB3d", 6)
	inherited := []string{"PAYMENTS=" + key, "HOOK=https://hooks.slack.com/services/T0000/B0000/" + strings.Repeat("x1", 12), "PEM=-----BEGIN PRIVATE KEY-----\nMIIB\n-----END PRIVATE KEY-----", "LANG=C", "GH_TOKEN=x", "LD_PRELOAD=/x"}
	got, err := guard.Environment(inherited, map[string]string{"MINE": key}, false)
	if diff := cmp.Diff([]string{"LANG=C", "MINE=" + key}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"GH_TOKEN", "HOOK", "PAYMENTS", "PEM"}, guard.Withheld(inherited)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestListedVariables has the two lists of seed 001's security page, name by name.
func TestListedVariables(t *testing.T) {
	t.Parallel()
	loaders := strings.Fields(`LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT LD_PROFILE DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH DYLD_FRAMEWORK_PATH
		DYLD_FALLBACK_LIBRARY_PATH BASH_ENV ENV CDPATH GLOBIGNORE PYTHONPATH PYTHONSTARTUP RUBYLIB RUBYOPT NODE_OPTIONS NODE_PATH PERL5LIB PERL5OPT
		JAVA_TOOL_OPTIONS MCPGODEBUG BASH_FUNC_evil%% BASH_FUNC_`)
	secrets := strings.Fields(`ZEPH_CLAUDE_API_KEY ZEPH_OPENAI_API_KEY ZEPH_TELEGRAM_TOKEN ZEPH_DISCORD_TOKEN ZEPH_SLACK_BOT_TOKEN ZEPH_SLACK_SIGNING_SECRET
		ZEPH_A2A_AUTH_TOKEN AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN AZURE_CLIENT_SECRET GCP_SERVICE_ACCOUNT_KEY GOOGLE_APPLICATION_CREDENTIALS DATABASE_URL
		REDIS_URL GITHUB_TOKEN GITLAB_TOKEN NPM_TOKEN CARGO_REGISTRY_TOKEN DOCKER_PASSWORD VAULT_TOKEN SSH_AUTH_SOCK`)
	for _, name := range slices.Concat(loaders, secrets) {
		if got, err := guard.Environment([]string{name + "=x"}, nil, false); err != nil || len(got) > 0 {
			t.Errorf("%s is inherited: %v %v", name, got, err)
		}
	}
	for _, name := range loaders {
		_, err := guard.Environment(nil, map[string]string{name: "hunter2"}, true)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range secrets {
		if got, err := guard.Environment(nil, map[string]string{name: "x"}, true); err != nil || len(got) != 1 {
			t.Errorf("%s is not passed on: %v %v", name, got, err)
		}
	}
	for name, value := range map[string]string{"": "x", "A=B": "x", "A\x00": "x", "A": "a\x00secret"} {
		if _, err := guard.Environment(nil, map[string]string{name: value}, false); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", name, err)
		}
	}
}
