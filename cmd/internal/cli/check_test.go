package cli_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/cmd/internal/cli"
)

const (
	offlineModel = "[[llm.providers]]\nname = \"main\"\ntype = \"offline\"\n"
	goodToken    = "123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

// checkCase is a configuration and what `config check` says of it.
type checkCase struct {
	conf  string
	env   []string
	files map[string]string
	want  []string // beginnings of lines on stderr, all of them; @ is the working directory
	warn  []string // parts of lines on stdout
}

// TestConfigCheck: everything that start or first use would find is found, with file, line and key, all at once, and
// with exit code 2.
func TestConfigCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]checkCase{
		"nothing": {},
		"observation": {
			conf: "[tracing]\nendpoint = \"https://me:hidden@collector:4318\"\nheaders = { X-Key = \"k\" }\n",
			want: []string{"@/zephbot.toml:2: tracing.endpoint: must contain no password"},
		},
		"observation of nothing": {
			conf: "[metrics]\npprof = true\n[tracing]\nheaders = { X-Key = \"k\" }\n",
			warn: []string{"metrics.pprof: has no effect without metrics.listen", "tracing.headers: have no effect without tracing.endpoint"},
		},
		"profiles for everybody": {
			conf: "[metrics]\nlisten = \":9090\"\npprof = true\n[tracing]\nendpoint = \"http://collector:4318\"\nheaders = { X-Key = \"k\" }\n",
			warn: []string{"metrics.pprof: whoever reaches :9090 can", "tracing.headers: travel in clear text to collector:4318"},
		},
		"a permission": {
			conf: "[[tools.permissions.bash]]\npattern = \"[\"\naction = \"deny\"\n[[tools.permissions.read]]\npattern = \"a[\"\naction = \"allow\"\n",
			want: []string{"@/zephbot.toml:2: tools.permissions.bash[0].pattern: ", "@/zephbot.toml:5: tools.permissions.read[0].pattern: "},
		},
		"expressions": {
			conf: "[tools.policy]\nenabled = true\n[[tools.policy.rules]]\neffect = \"deny\"\ntool = \"bash\"\nargs_match = \"(\"\n[tools.filters.security]\nextra_patterns = [\"(\", \"a\", \"[\"]\n",
			want: []string{
				"@/zephbot.toml:6: tools.policy.rules[0].args_match: ", "@/zephbot.toml:8: tools.filters.security.extra_patterns: pattern 1",
				"@/zephbot.toml:8: tools.filters.security.extra_patterns: pattern 3",
			},
		},
		"globs of files": {
			conf: "[tools.file]\ndeny_read = [\"*.pem\", \"[\"]\n[tools.shell]\ntransactional = true\ntransaction_scope = [\"{a\"]\n",
			want: []string{"@/zephbot.toml:2: tools.file.deny_read[1]: ", "@/zephbot.toml:5: tools.shell.transaction_scope: "},
		},
		"empty commands": {
			conf: "[tools.shell]\nblocked_commands = [\"\"]\n",
			want: []string{"@/zephbot.toml:2: tools.shell.blocked_commands[0]: is empty"},
		},
		"policy file away": {
			conf: "[tools.policy]\nenabled = true\npolicy_file = \"rules.toml\"\n",
			want: []string{"@/zephbot.toml:3: tools.policy.policy_file: "},
		},
		"policy file elsewhere": {
			conf: "[tools.policy]\nenabled = true\npolicy_file = \"/etc/passwd\"\n",
			want: []string{"@/zephbot.toml:3: tools.policy.policy_file: "},
		},
		"policy file broken": {
			conf:  "[tools.policy]\nenabled = true\npolicy_file = \"rules.toml\"\n",
			files: map[string]string{"rules.toml": "[[rules]]\neffect = \"deny\"\ntool = \"bash\"\n\n[[rules]]\neffect = \"maybe\"\ntool = \"bsh\"\nargs_match = \"(\"\n"},
			want:  []string{"@/rules.toml:5: rules[1].effect: ", "@/rules.toml:5: rules[1].args_match: "},
		},
		"policy file with unknown tools": {
			conf:  "[tools.policy]\nenabled = true\npolicy_file = \"rules.toml\"\n",
			files: map[string]string{"rules.toml": "[[rules]]\neffect = \"deny\"\ntool = \"bsh\"\n"},
			want:  []string{"@/rules.toml:1: rules[0].tool: \"bsh\" names no tool (did you mean bash?)"},
		},
		"policies of the judge": {
			conf: "[tools.adversarial_policy]\nenabled = true\npolicy_file = \"judge.txt\"\n" + offlineModel,
			want: []string{"@/zephbot.toml:3: tools.adversarial_policy.policy_file: judge.txt does not exist"},
		},
		"filters away": {
			conf: "[tools.filters]\nfilters_path = \"rules\"\n",
			want: []string{"@/rules: "},
		},
		"filters broken": {
			files: map[string]string{"filters.toml": "rules = 3\n", "zephbot.toml": "\n"},
			want:  []string{"@/filters.toml: "},
		},
		"programs": {
			conf: "[[mcp.servers]]\nid = \"a\"\ncommand = \"uvx\"\nenv = { PATH = \"/nowhere\" }\n[[mcp.servers]]\nid = \"b\"\ncommand = \"bash\"\n[[mcp.servers]]\nid = \"c\"\ncommand = \"/bin/npx\"\n",
			want: []string{
				"@/zephbot.toml:3: mcp.servers[0].command: uvx was not found in PATH", "@/zephbot.toml:7: mcp.servers[1].command: command \"bash\" is not allowed",
				"@/zephbot.toml:10: mcp.servers[2].command: command \"/bin/npx\" has a path in it",
			},
		},
		"roots": {
			conf: "[[mcp.servers]]\nid = \"a\"\nurl = \"https://example.com\"\nroots = [{ uri = \"file:///nowhere/at/all\" }]\n",
			want: []string{"@/zephbot.toml:4: mcp.servers[0].roots[0].uri: /nowhere/at/all is no directory"},
		},
		"what a server may read": {
			conf: "[[mcp.servers]]\nid = \"a\"\nurl = \"https://example.com\"\nread = [\"~\", \"/nowhere/at/all\"]\n",
			want: []string{"@/zephbot.toml:4: mcp.servers[0].read[1]: /nowhere/at/all cannot be read: no such file or directory"},
		},
		"directories": {
			conf:  "data_dir = \"file/below\"\n[workspaces]\ndir = \"file\"\n[audit]\ndestination = \"file/audit.jsonl\"\n",
			files: map[string]string{"file": ""},
			want: []string{
				"@/zephbot.toml:1: data_dir: @/file/below cannot be used", "@/zephbot.toml:3: workspaces.dir: @/file cannot be used: @/file is a file",
				"@/zephbot.toml:5: audit.destination: ",
			},
		},
		"audit into a directory": {
			conf: "[audit]\ndestination = \".\"\n", want: []string{"@/zephbot.toml:2: audit.destination: . is a directory"},
		},
		"no token shape": {
			conf: "[telegram]\ntoken = \"nonsense\"\nallowed_users = [1]\n" + offlineModel, want: []string{"@/zephbot.toml:2: telegram.token: "},
		},
		"a webhook that Telegram cannot reach": {
			conf: "[telegram]\ntoken = \"" + goodToken + "\"\nallowed_users = [1]\nwebhook_url = \"http://bot.example.com/x\"\n" + offlineModel,
			want: []string{"@/zephbot.toml:4: telegram.webhook_url: Telegram delivers to https addresses only"},
		},
		"several processes with nothing in common": {
			conf: "[telegram]\ntoken = \"" + goodToken + "\"\nallowed_users = [1]\n[workspaces]\nshared = true\n" + offlineModel,
			want: []string{
				"@/zephbot.toml:5: workspaces.shared: several processes need one database", "@/zephbot.toml:5: workspaces.shared: several processes need one Redis server",
				"@/zephbot.toml:5: workspaces.shared: workspaces.dir is empty",
			},
		},
		"several processes": {
			conf: "[workspaces]\ndir = \"files\"\nshared = true\n[database]\nurl = \"postgres://zephbot@db/zephbot\"\n[redis]\nurl = \"redis://redis\"\n[audit]\ndestination = \"a.jsonl\"\n" +
				"[[mcp.servers]]\nid = \"docs\"\nurl = \"https://docs.example/mcp\"\noauth.enabled = true\noauth.token_storage = \"memory\"\n",
			warn: []string{
				"zephbot.toml:9: audit.destination: every process writes a chain of its own",
				"mcp.servers[0].oauth.token_storage: in memory, a sign-in is known to the process",
			},
		},
		"a webhook at another port": {
			conf: "[telegram]\ntoken = \"" + goodToken + "\"\nallowed_users = [1]\nwebhook_url = \"https://bot.example.com:9000/x\"\nwebhook_secret = \"with space\"\n" + offlineModel,
			want: []string{"@/zephbot.toml:4: telegram.webhook_url: Telegram delivers to the ports 443", "@/zephbot.toml:5: telegram.webhook_secret: Telegram takes 1 to 256"},
		},
		"a token and no model": {
			conf: "[telegram]\ntoken = \"" + goodToken + "\"\nallowed_users = [1]\n", want: []string{"@/zephbot.toml: llm.providers: no model is configured"},
		},
		"names": {
			conf: "[llm]\nprimary = \"man\"\nfallback = [\"other\"]\nembedding = \"main\"\n" + offlineModel,
			want: []string{
				"@/zephbot.toml:2: llm.primary: \"man\" names no provider", "@/zephbot.toml:3: llm.fallback: \"other\" names no provider",
				"@/zephbot.toml:4: llm.embedding: provider \"main\" cannot compute embeddings",
			},
		},
		"load and use at once": {
			conf: "[log]\nlevel = \"loud\"\n[tools.shell]\ntimeot = 3\ntransactional = true\ntransaction_scope = [\"{\"]\n[[mcp.servers]]\nid = \"a\"\ncommand = \"bash\"\n",
			env:  []string{"ZEPH_TELEGRAM_TOKN=x"},
			want: []string{
				"@/zephbot.toml:2: log.level: ", "@/zephbot.toml:4: tools.shell.timeot: unknown key; did you mean tools.shell.timeout?",
				"@/zephbot.toml:6: tools.shell.transaction_scope: ", "@/zephbot.toml:9: mcp.servers[0].command: ",
				"ZEPH_TELEGRAM_TOKN: names no known key; did you mean ZEPH_TELEGRAM_TOKEN?",
			},
		},
		"said once": {
			conf: "[security]\nautonomy_level = \"none\"\n[[tools.permissions.bash]]\naction = \"deny\"\n[[llm.providers]]\nname = \"main\"\ntype = \"nonsense\"\nmodel = \"m\"\n",
			want: []string{
				"@/zephbot.toml:2: security.autonomy_level: ", "@/zephbot.toml:3: tools.permissions.bash[0].pattern: is missing", "@/zephbot.toml:7: llm.providers[0].type: ",
			},
		},
		"more approvals than approvers": {
			conf: "[telegram]\nallowed_users = [1, 2]\nadmins = [1]\napprovers = [2, 1]\napprovals_required = 3\n",
			want: []string{"@/zephbot.toml:5: telegram.approvals_required: 3 people must approve, but only 2 may"},
		},
		"the one who asks does not count": {
			conf: "[telegram]\nallowed_users = [1, 2]\napprovers = [1, 2]\napprovals_required = 2\n",
			want: []string{"@/zephbot.toml:4: telegram.approvals_required: 2 people must approve, and of the 2 who may, the one who asks does not count"},
		},
		"approvals of a chat": {
			conf: "[telegram]\nallowed_users = [1]\nadmins = [1]\nallowed_chats = [-5]\n[telegram.chats.\"-5\"]\napprovals_required = 4\napprovers = [7]\n",
			want: []string{"@/zephbot.toml:6: telegram.chats.-5.approvals_required: 4 people must approve, but only 2 may"},
		},
		"nobody approves": {
			conf: "[telegram]\nallowed_users = [1]\napproval_by_requester = false\n", want: []string{"@/zephbot.toml:3: telegram.approval_by_requester: nobody"},
		},
		"one approver": {
			conf: "[telegram]\nadmins = [1]\napproval_by_requester = false\n", want: []string{"@/zephbot.toml:3: telegram.approval_by_requester: only one person"},
		},
		"from the environment": {
			env: []string{"ZEPH_TELEGRAM_APPROVALS_REQUIRED=2", "ZEPH_TELEGRAM_ADMINS=1"}, want: []string{"ZEPH_TELEGRAM_APPROVALS_REQUIRED: 2 people must approve, but only one may"},
		},
		"everybody may do everything": {
			conf: "[telegram]\nallowed_users = [\"*\"]\n[security]\nautonomy_level = \"full\"\n", want: []string{"@/zephbot.toml:2: telegram.allowed_users: \"*\" lets everyone"},
		},
		"no call at all": {
			conf: "[tools]\nmax_tool_calls_per_session = 0\n", want: []string{"@/zephbot.toml:2: tools.max_tool_calls_per_session: 0 lets no tool run"},
		},
		"limits": {
			conf: "[llm]\ntimeout = \"0s\"\n[agent]\nconcurrency = -1\nmax_tool_iterations = 0\n[telegram.limits]\nper_second = -3\n",
			want: []string{
				"@/zephbot.toml:2: llm.timeout: ", "@/zephbot.toml:4: agent.concurrency: ", "@/zephbot.toml:5: agent.max_tool_iterations: ", "@/zephbot.toml:7: telegram.limits.per_second: ",
			},
		},
		"a URL that is none": {
			conf: "[database]\nurl = \"postgres://u:hunter2@host:port/y\"\n", want: []string{"@/zephbot.toml:2: database.url: it is not a PostgreSQL URL"},
		},
		"a foreign database": {
			conf: "[database]\nurl = \"mysql://x/y\"\n", want: []string{"@/zephbot.toml:2: database.url: "},
		},
		"a circle of tools": {
			conf: "[tools.dependencies]\nenabled = true\n[tools.dependencies.rules.edit]\nrequires = [\"read\"]\n[tools.dependencies.rules.read]\nrequires = [\"grep\", \"edit\"]\n",
			want: []string{"@/zephbot.toml:4: tools.dependencies.rules.edit.requires: edit waits for itself", "@/zephbot.toml:6: tools.dependencies.rules.read.requires: read waits for itself"},
		},
		"warnings": {
			conf: "[telegram]\ntoken = \"" + goodToken + "\"\n[telegram.chats.\"-9\"]\ntrigger = \"all\"\n[tools.shell]\nauto_rollback = true\n[tools.policy]\npolicy_file = \"rules.toml\"\n" +
				"[tools.anomaly]\nerror_threshold = 0.9\n[tools.file]\nallow_read = [\"/x\"]\n[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\nmax_tokens = 200000\n",
			files: map[string]string{"rules.toml": "[[rules]]\neffect = \"deny\"\ntool = \"bash\"\n"},
			warn: []string{
				"zephbot.toml:3: telegram.chats.-9: applies only if an admin has admitted the group in the chat, which is not looked up here: telegram.allowed_chats does not list -9", "zephbot.toml:6: tools.shell.auto_rollback: has no effect",
				"tools.policy: its rules are not in force", "error_threshold: 0.9 is above", "allow_read: has no effect", "max_tokens: an answer of 200000", "api_key: is empty",
			},
		},
		"two of three approvers": {
			conf: "[telegram]\nallowed_users = [1, 2, 9]\napprovers = [1, 2]\napprovals_required = 2\n", warn: []string{"when one of the 2 who may approve asks"},
		},
		"full asks nobody":     {conf: "[telegram]\nadmins = [1]\napprovals_required = 5\n[security]\nautonomy_level = \"full\"\n"},
		"everybody with rules": {conf: "[telegram]\nallowed_users = [\"*\"]\nallowed_tools = [\"fetch\"]\n[security]\nautonomy_level = \"full\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}

// check runs `config check`.
func (c *checkCase) check(t *testing.T) {
	t.Helper()
	w := here(t)
	w.env = c.env
	if c.conf != "" {
		c.files = withFile(c.files, "zephbot.toml", c.conf)
	}
	for file, text := range c.files {
		if err := os.WriteFile(filepath.Join(w.dir, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code := w.run(t, "config", "check")
	want := cli.Fine
	if len(c.want) > 0 {
		want = cli.Usage
	}
	said := strings.Split(strings.TrimSuffix(w.err.String(), "\n"), "\n")
	if w.err.Len() == 0 {
		said = nil
	}
	if code != want || len(said) != len(c.want) {
		t.Fatalf("exit %d, want %d; %d lines, want %d:\n%s%s", code, want, len(said), len(c.want), w.err.String(), w.out.String())
	}
	for i, begin := range c.want {
		begin = "zephbot: " + strings.ReplaceAll(strings.ReplaceAll(begin, "@/zephbot.toml", "zephbot.toml"), "@", w.dir)
		if !strings.HasPrefix(said[i], begin) {
			t.Errorf("line %d is %q, want %q…", i, said[i], begin)
		}
	}
	for _, part := range c.warn {
		if strings.Count(w.out.String(), part) != 1 {
			t.Errorf("%q once in:\n%s", part, w.out.String())
		}
	}
	if n := strings.Count(w.out.String(), "warning: "); n != len(c.warn) {
		t.Errorf("%d warnings, want %d:\n%s", n, len(c.warn), w.out.String())
	}
}

func withFile(files map[string]string, name, text string) map[string]string {
	all := map[string]string{name: text}
	maps.Copy(all, files)
	return all
}

// TestChecksAtStart: every mode makes the same checks before it begins.
func TestChecksAtStart(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"serve"}, {"simulate"}, {"chat", "--once", "hello"}, {"tools", "list"}, {"tools", "call", "read", "{}"}, {"policy", "check", "read", "{}"}, {"mcp", "list"}, {}} {
		w := here(t)
		w.env = append(w.env, "ZEPH_TELEGRAM_TOKEN="+goodToken)
		if err := os.WriteFile(filepath.Join(w.dir, "zephbot.toml"), []byte("[tools.filters.security]\nextra_patterns = [\"(\"]\n"+offlineModel), 0o600); err != nil {
			t.Fatal(err)
		}
		code := w.run(t, args...)
		if code != cli.Usage || !strings.Contains(w.err.String(), "zephbot: zephbot.toml:2: tools.filters.security.extra_patterns: ") {
			t.Errorf("%v: exit %d, %s", args, code, w.err.String())
		}
	}
}

// TestWarningsInEveryMode: what is strange, and what will fail at its first use, is said once by every mode, and the
// mode goes on.
func TestWarningsInEveryMode(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"chat", "--once", "hello"}, {"tools", "list"}, {"tools", "call", "list_directory", `{"path":"."}`}, {"policy", "check", "read", `{"path":"a"}`}} {
		w := here(t)
		w.env = append(w.env, "ZEPH_SOMETHING_ELSE_ALTOGETHER=1")
		conf := "[tools.shell]\nauto_rollback = true\n[tools.filters]\nfilters_path = \"nowhere.toml\"\n" + offlineModel
		if err := os.WriteFile(filepath.Join(w.dir, "zephbot.toml"), []byte(conf), 0o600); err != nil {
			t.Fatal(err)
		}
		code := w.run(t, args...)
		for _, part := range []string{"zephbot.toml:2: tools.shell.auto_rollback: has no effect", "nowhere.toml", "ZEPH_SOMETHING_ELSE_ALTOGETHER: names no known key"} {
			if code != cli.Fine || strings.Count(w.err.String(), part) != 1 {
				t.Errorf("%v: exit %d, %q once in:\n%s", args, code, part, w.err.String())
			}
		}
	}
}

// TestInit: the file to begin with is short, passes the check without a word, and keeps every default.
func TestInit(t *testing.T) {
	t.Parallel()
	w := here(t)
	w.run(t, "config", "init", "-")
	if n := strings.Count(w.out.String(), "\n"); n < 40 || n > 90 {
		t.Errorf("%d lines", n)
	}
	if code := w.run(t, "config", "init"); code != cli.Fine {
		t.Fatal(w.err.String())
	}
	if code := w.run(t, "config", "check"); code != cli.Fine || strings.Contains(w.out.String(), "warning") || w.err.Len() > 0 {
		t.Errorf("exit %d: %s%s", code, w.out.String(), w.err.String())
	}
	if code := w.run(t, "chat", "--once", "hello"); code != cli.Fine || w.err.Len() > 0 {
		t.Errorf("exit %d: %s", code, w.err.String())
	}
	w.env = nil
	if w.run(t, "config", "print", "--changed"); strings.Count(w.out.String(), "# zephbot.toml:") != 2 {
		t.Errorf("it changes more than the model:\n%s", w.out.String())
	}
	if w.run(t, "config", "init", "--all", "-"); strings.Count(w.out.String(), "\n") < 500 {
		t.Error("--all does not write all")
	}
	// Its examples hold too.
	raw, err := os.ReadFile(filepath.Join(w.dir, "zephbot.toml"))
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for line := range strings.Lines(string(raw)) {
		rest, ok := strings.CutPrefix(line, "# ")
		if ok && (strings.HasPrefix(rest, "[") || strings.Contains(rest, " = \"") || strings.Contains(rest, " = [")) && !strings.HasPrefix(rest, " ") {
			line = rest
		}
		text += line
	}
	if err := os.WriteFile(filepath.Join(w.dir, "zephbot.toml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if w.run(t, "config", "check"); strings.Contains(w.err.String(), "TOML") || strings.Contains(w.err.String(), "unknown") {
		t.Errorf("the examples: %s", w.err.String())
	}
}
