package config_test

import (
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/texts/languages"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

func TestProblems(t *testing.T) {
	t.Parallel()
	provider := "[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\n"
	tests := []struct {
		name, text string
		want       []string
	}{
		{"syntax", "data_dir = \"a\"\n[telegram\n", []string{"zephbot.toml:2: not valid TOML at column 10: expected ']' to close table name"}},
		{"unknown key", "[tools.shell]\ntimeot = 3", []string{"zephbot.toml:2: tools.shell.timeot: unknown key; did you mean tools.shell.timeout?"}},
		{"unknown table", "[tool.shell]\n", []string{"zephbot.toml:1: tool: unknown key; did you mean tools?"}},
		{"capital letter", "Data_Dir = 'x'", []string{"zephbot.toml:1: Data_Dir: unknown key; did you mean data_dir?"}},
		{"wrong table", "\nmax_tool_iterations = 3", []string{"zephbot.toml:2: max_tool_iterations: unknown key; did you mean agent.max_tool_iterations?"}},
		{"nothing near", "[log]\nzzzzzzzz = 3", []string{"zephbot.toml:2: log.zzzzzzzz: unknown key; known in [log]: level, format"}},
		{"in an entry", provider + "modell = 'x'", []string{"zephbot.toml:4: llm.providers[0].modell: unknown key; did you mean llm.providers[0].model?"}},
		{"in an inline table", "[telegram]\nchats = { \"-1\" = { triger = \"all\" } }", []string{`zephbot.toml:2: telegram.chats.-1.triger: unknown key; did you mean telegram.chats.-1.trigger?`}},
		{"quoted key", "\"a.b\" = 1", []string{`zephbot.toml:1: "a.b": unknown key; zephbot has nothing of this name, so take it out (docs/config.md lists what there is)`}},
		{"text for a number", "[tools.shell]\n\ntimeout = \"30s\"", []string{`zephbot.toml:3: tools.shell.timeout: wanted an integer, found the string "30s"`}},
		{"number for a text", "data_dir = 5", []string{"zephbot.toml:1: data_dir: wanted a string, found the integer 5"}},
		{"fraction for an integer", "[agent]\nconcurrency = 1.5", []string{"zephbot.toml:2: agent.concurrency: wanted an integer, found the number 1.5"}},
		{"number for a duration", "[llm]\ntimeout = 30", []string{`zephbot.toml:2: llm.timeout: wanted a duration such as "10m", found the integer 30`}},
		{"bad duration", "[llm]\ntimeout = '3 days'", []string{`zephbot.toml:2: llm.timeout: wanted a duration such as "10m", found the string "3 days"`}},
		{"text for a list", "[telegram]\nadmins = 'ann'", []string{`zephbot.toml:2: telegram.admins: wanted a list of numeric ids such as 4711, found the string "ann"`}},
		{"text in a list of integers", "[telegram]\nadmins = [1, '@ann']", []string{`zephbot.toml:2: telegram.admins: wanted a list of numeric ids such as 4711, found the string "@ann"`}},
		{"text for a bool", "[audit]\nenabled = 'yes'", []string{`zephbot.toml:2: audit.enabled: wanted true or false, found the string "yes"`}},
		{"date", "data_dir = 2026-01-02", []string{"zephbot.toml:1: data_dir: wanted a string, found a date or time"}},
		{"text for a table", "telegram = 'x'", []string{"zephbot.toml:1: telegram: wanted a table, found a string"}},
		{"table for a list of tables", "[llm.providers]\nname = 'x'", []string{"zephbot.toml:1: llm.providers: wanted a list of tables ([[llm.providers]]), found a table"}},
		{"text in a list of tables", "[llm]\nproviders = ['x']", []string{"zephbot.toml:2: llm.providers[0]: wanted a table, found a string"}},
		{"secret of the wrong type", "[telegram]\ntoken = 123456", []string{"zephbot.toml:2: telegram.token: wanted a string, found an integer"}},
		{"enum", "[security]\nautonomy_level = 'supervized'", []string{`zephbot.toml:2: security.autonomy_level: "supervized" is not allowed; allowed: readonly, supervised, full (did you mean supervised?)`}},
		{"negative", "[tools.shell]\nmax_snapshot_bytes = -1", []string{"zephbot.toml:2: tools.shell.max_snapshot_bytes: -1 is not allowed; allowed: 0 or more"}},
		{"too large", "[agent]\nmax_tool_iterations = 101", []string{"zephbot.toml:2: agent.max_tool_iterations: 101 is not allowed; allowed: 1 to 100"}},
		{"too short", "[llm]\ntimeout = '-2s'", []string{`zephbot.toml:2: llm.timeout: "-2s" is not allowed; allowed: 1s or more`}},
		{"not a number", "[tools.retry]\n[tools.utility]\nthreshold = nan", []string{"zephbot.toml:3: tools.utility.threshold: nan is not allowed; allowed: a finite number"}},
		{"exit code", "[tools.shell]\nauto_rollback_exit_codes = [2, 256]", []string{"zephbot.toml:2: tools.shell.auto_rollback_exit_codes: 256 is not allowed; allowed: 0 to 255"}},
		{"user", "[telegram]\nallowed_users = [7, 'ann']", []string{`zephbot.toml:2: telegram.allowed_users: "ann" is not allowed; allowed: a numeric id, "@name" or "*"`}},
		{"persona", "[personas.\"-x\"]\n[personas.tutor]\nmodel = \"gpd\"\ntools = [\"raed\"]\ninstructions = \"\"\"" + strings.Repeat("ю", 4001) + "\"\"\"\n[[llm.providers]]\nname = \"main\"\nmodel = \"gpt\"\n", []string{
			`zephbot.toml:1: personas.-x: "-x" is no name of a persona; allowed: letters, digits, spaces, "_", ".", "'" and "-", at most 32, letters or digits first`,
			`zephbot.toml:3: personas.tutor.model: "gpd" names no provider; configured: main`,
			"zephbot.toml:5: personas.tutor.instructions: has 8002 bytes; allowed: at most 8000",
		}},
		{"chat", "[telegram.chats.friends]\n", []string{`zephbot.toml:1: telegram.chats.friends: "friends" is no chat; allowed: "-100123" for a chat, "-100123/7" for a topic`}},
		{"url", "[telegram]\napi_url = 'ftp://x'", []string{`zephbot.toml:2: telegram.api_url: "ftp://x" is not allowed; allowed: a URL that begins with https:// or http://`}},
		{"url without host", "[telegram]\napi_url = 'https://'", []string{`zephbot.toml:2: telegram.api_url: "https://" is not allowed; allowed: a URL that begins with https:// or http://`}},
		{"url with a password", "[telegram]\napi_url = 'ftp://u:hunter2@x'", []string{`zephbot.toml:2: telegram.api_url: this URL is not allowed; allowed: a URL that begins with https:// or http://`}},
		{"redis url", "[redis]\nurl = 'http://:hunter2@x'", []string{"zephbot.toml:2: redis.url: this value is not allowed; allowed: a URL that begins with redis:// or rediss:// (also redis+cluster://, redis+sentinel://, unix://)"}},
		{"zone", "[telegram]\ntime_zone = 'Mars'", []string{`zephbot.toml:2: telegram.time_zone: "Mars" is not allowed; allowed: a time zone that this machine knows, such as "Europe/Berlin", or "Local" for the machine's own`}},
		{"language", "[telegram]\nlanguage = 'tlh'", []string{`zephbot.toml:2: telegram.language: "tlh" is not allowed; allowed: ` + strings.Join(languages.Tags(), ", ")}},
		{"listen", "[metrics]\nlisten = '9090'", []string{`zephbot.toml:2: metrics.listen: "9090" is not allowed; allowed: an address and a port such as "127.0.0.1:9090" or ":8443"`}},
		{"port", "[metrics]\nlisten = ':99999'", []string{`zephbot.toml:2: metrics.listen: ":99999" is not allowed; allowed: an address and a port such as "127.0.0.1:9090" or ":8443"`}},
		{"no model", "[[llm.providers]]\nname = 'main'", []string{"zephbot.toml:1: llm.providers[0].model: is empty; a provider of type openai needs the name of a model (ZEPH_LLM_PROVIDERS_MAIN_MODEL)"}},
		{"no model and a wrong type", "[[llm.providers]]\nname = 'main'\ntype = 'openay'", []string{`zephbot.toml:3: llm.providers[0].type: "openay" is not allowed; allowed: openai, anthropic, ollama, offline (did you mean openai?)`}},
		{"two providers of one name", provider + provider, []string{`zephbot.toml:5: llm.providers[1].name: "main" is the name of an earlier provider too; names must differ`}},
		{"primary", provider + "[llm]\nprimary = 'mian'", []string{`zephbot.toml:5: llm.primary: "mian" names no provider; configured: main (did you mean main?)`}},
		{"primary without providers", "[llm]\nprimary = 'x'", []string{`zephbot.toml:2: llm.primary: "x" names no provider; no [[llm.providers]] is configured`}},
		{"default primary is missing", "[[llm.providers]]\nname = 'local'\nmodel = 'm'", []string{`zephbot.toml:2: llm.primary: is not set, and is "main" then, which names no provider; configured: local; write primary = "local" under [llm], or set ZEPH_LLM_PRIMARY`}},
		{"empty primary", "[llm]\nprimary = ''", []string{"zephbot.toml:2: llm.primary: is empty; it must name a provider"}},
		{"fallback", provider + "[llm]\nfallback = ['x', 'main', 'x']", []string{
			`zephbot.toml:5: llm.fallback: "x" names no provider; configured: main`,
			`zephbot.toml:5: llm.fallback: "main" is the primary provider already; name others`,
			`zephbot.toml:5: llm.fallback: "x" names no provider; configured: main`,
			`zephbot.toml:5: llm.fallback: "x" stands there twice`,
		}},
		{"transcription", "[[llm.providers]]\nname = 'main'\ntype = 'anthropic'\nmodel = 'm'\ntranscription_model = 't'\n", []string{"zephbot.toml:5: llm.providers[0].transcription_model: a provider of type anthropic cannot write down speech; leave it empty here and set it at one of type openai"}},
		{"embedding", provider + "[llm]\nembedding = 'main'", []string{"zephbot.toml:1: llm.providers[0].embedding_model: is empty; llm.embedding names this provider"}},
		{"judge", provider + "[tools.adversarial_policy]\nprovider = 'fast'", []string{`zephbot.toml:5: tools.adversarial_policy.provider: "fast" names no provider; configured: main`}},
		{"two servers of one id", "[[mcp.servers]]\nid='a'\nurl='https://a'\n[[mcp.servers]]\nid='a'\nurl='https://b'", []string{`zephbot.toml:5: mcp.servers[1].id: "a" is the id of an earlier server too; ids must differ`}},
		{"server of nothing", "[[mcp.servers]]\nid='a'\nroots=[{name='x'}]", []string{
			"zephbot.toml:1: mcp.servers[0]: needs either command or url, and not both", "zephbot.toml:3: mcp.servers[0].roots[0].uri: is missing; it is required",
		}},
		{"permission", "[[tools.permissions.bash]]\npattern = 'x'\n[[tools.permissions.bash]]\naction = 'denied'", []string{
			"zephbot.toml:1: tools.permissions.bash[0].action: is missing; it is required",
			"zephbot.toml:3: tools.permissions.bash[1].pattern: is missing; it is required",
			`zephbot.toml:4: tools.permissions.bash[1].action: "denied" is not allowed; allowed: allow, ask, deny`,
		}},
		{"rule", "[[tools.policy.rules]]\ncomment = 'x'", []string{"zephbot.toml:1: tools.policy.rules[0].effect: is missing; it is required", "zephbot.toml:1: tools.policy.rules[0].tool: is missing; it is required"}},
		{"cron of a task", "[[scheduler.tasks]]\nname='a'\ntask='x'\ncron='0 25 * * *'", []string{"zephbot.toml:4: scheduler.tasks[0].cron: the hour \"25\" of the cron expression is not possible: it may be 0 to 23; lists (1,15), ranges (1-5), steps (*/10) and * too"}},
		{"zone of a task", "[[scheduler.tasks]]\nname='a'\ntask='x'\ncron='TZ=UTC 0 9 * * *'", []string{"zephbot.toml:4: scheduler.tasks[0].cron: a cron expression has no \"=\": write five fields, such as \"0 9 * * 1-5\" for nine on working days; it applies in the person's time zone"}},
		{"date of a task", "[[scheduler.tasks]]\nname='a'\ntask='x'\nrun_at='2026-02-30T10:00'", []string{"zephbot.toml:4: scheduler.tasks[0].run_at: \"2026-02-30T10:00\": there is no such date"}},
		{"time of a task", "[[scheduler.tasks]]\nname='a'\ntask='x'\nrun_at='+2m'", []string{"zephbot.toml:4: scheduler.tasks[0].run_at: \"+2m\" is not a time: write it like \"2026-12-24T18:00\""}},
		{"chat of a task", "[[scheduler.tasks]]\nname='a'\ntask='x'\ncron='0 9 * * *'\nchat='team'", []string{"zephbot.toml:5: scheduler.tasks[0].chat: \"team\" is neither a group (\"-100123\") nor a topic of one (\"-100123/7\"); leave it out for the private chat of the owner"}},
		{"text of a task", "[[scheduler.tasks]]\nname='a'\ncron='0 9 * * *'", []string{"zephbot.toml:1: scheduler.tasks[0]: task is empty"}},
		{"owner of a task", "[telegram]\ntoken='1:x'\n[[scheduler.tasks]]\nname='a'\ntask='x'\ncron='0 9 * * *'", []string{"zephbot.toml:3: scheduler.tasks[0].owner: there are no telegram.admins; name the person in whose name it runs"}},
		{"task", "[[scheduler.tasks]]\nname='" + strings.Repeat("n", 129) + "'", []string{"zephbot.toml:1: scheduler.tasks[0]: needs either cron or run_at, and not both", "zephbot.toml:2: scheduler.tasks[0].name: has 129 characters; allowed: 128"}},
		{"qdrant", "[vector]\nbackend = 'qdrant'", []string{`zephbot.toml:1: vector.url: is empty; backend "qdrant" needs the address of Qdrant`}},
		{"two spellings", "[tools.adversarial_policy]\nprovider = ''\npolicy_provider = 'b'", []string{"zephbot.toml:3: tools.adversarial_policy.policy_provider: is another spelling of tools.adversarial_policy.provider, which is also set, to something else; keep one of them"}},
		{"two places", "[memory]\nvector_backend = 'qdrant'\n[vector]\nbackend = 'embedded'", []string{"zephbot.toml:2: memory.vector_backend: is another spelling of vector.backend, which is also set, to something else; keep one of them"}},
		{"accepts", "[[llm.providers]]\nname='main'\nmodel='m'\naccepts=['images']", []string{`zephbot.toml:4: llm.providers[0].accepts: "images" is nothing that a model takes; allowed: text, image, file`}},
		{"two places for ollama", "[llm.ollama]\ntool_use = true\n[[llm.providers]]\nname='main'\ntype='ollama'\nmodel='m'\ntool_use=false", []string{"zephbot.toml:2: llm.ollama.tool_use: is another spelling of llm.providers[0].tool_use, which is also set, to something else; keep one of them"}},
		{"all at once", "dta_dir = 1\n[log]\nlevel = 3\nformat = 'xml'", []string{
			"zephbot.toml:1: dta_dir: unknown key; did you mean data_dir?",
			"zephbot.toml:3: log.level: wanted a string, found the integer 3",
			`zephbot.toml:4: log.format: "xml" is not allowed; allowed: console, json`,
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, problems(t, tt.text)); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestManyUnknownKeysAreAllNamed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 500 {
		b.WriteString("key" + strings.Repeat("x", i) + " = 1\n")
	}
	if got := problems(t, b.String()); len(got) != 500 {
		t.Errorf("%d problems, want 500", len(got))
	}
}

func TestOtherSpellings(t *testing.T) {
	t.Parallel()
	c := load(t, `
[tools.adversarial_policy]
policy_provider = "main"
[tools.anomaly]
critical_threshold = 0.9
[memory]
vector_backend = "embedded"
[mcp]
elicitation_timeout_secs = 60
[mcp.tool_discovery]
strategy = "embedding"
[llm.ollama]
tool_use = false
[[llm.providers]]
name = "main"
type = "ollama"
model = "m"
[[tools.authorization.rules]]
action = "allow"
tools = ["read_file", "list_directory"]
comment = "Read-only filesystem access"
[[tools.authorization.rules]]
effect = "deny"
action = "deny"
tool = "bash"
tools = ["bash"]
`)
	got := []any{
		c.Tools.Adversarial.Provider, c.Tools.Anomaly.FailureThreshold, c.MCP.ElicitationTimeout, c.LLM.Providers[0].ToolUse,
		c.LLM.Providers[0].BaseURL, c.Tools.Authorization.Rules[0].Effect, []string(c.Tools.Authorization.Rules[0].Tool),
		c.Tools.Authorization.Rules[1].Effect, []string(c.Tools.Authorization.Rules[1].Tool),
	}
	want := []any{
		"main", 0.9, 60, false, "http://localhost:11434", "allow", []string{"read_file", "list_directory"}, "deny", []string{"bash"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
	if c := load(t, "[memory]\nvector_backend = 'qdrant'\n[vector]\nurl = 'http://q'"); c.Vector.Backend != "qdrant" {
		t.Errorf("vector.backend = %q, want qdrant", c.Vector.Backend)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"idle at its default", "[vector]\nbackend = 'embedded'\n[scheduler]\ntick_secs = 60", nil},
		{"idle key", "[tools.shell]\nmax_checkpoints = 3", []string{"zephbot.toml:2: tools.shell.max_checkpoints: has no effect yet: undo by checkpoints is not part of this version"}},
		{"task", "[telegram]\nadmins = [1]\n[[scheduler.tasks]]\nname = 'a'\ncron = '0 9 * * *'\ntask = 'x'\nchat = '-100/7'", nil},
		{"working quota", "[quotas.user]\nturns_per_day = 2\ntokens_per_month = 9\nusd_per_day = 0.5\n[telegram.chats.-1.quota]\nusd_per_month = 1", nil},
		{"fast stream", "[telegram]\nstream_interval_ms = 100", []string{"zephbot.toml:2: telegram.stream_interval_ms: 100 is outside 500 to 3600000; 500 is used"}},
		{"complexity", "[tools.tafc]\ncomplexity_threshold = inf", []string{"zephbot.toml:2: tools.tafc.complexity_threshold: inf is outside 0 to 1; 0.6 is used"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, warnings(load(t, tt.text))); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
	if c := load(t, "[tools.tafc]\ncomplexity_threshold = 7"); c.Tools.TAFC.ComplexityThreshold != 1 {
		t.Errorf("threshold = %v, want 1", c.Tools.TAFC.ComplexityThreshold)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	const text = "[[llm.providers]]\nname = 'my-gpt'\nmodel = 'm'\n[llm]\nprimary = 'my-gpt'\n[telegram.chats.-100]\n[[mcp.servers]]\nid='gh'\nurl='https://gh'\nheaders = { X-Key = '' }"
	c := load(t, text, "ZEPH_TELEGRAM_TOKEN=1:a", "ZEPH_AGENT_MAX_TOOL_ITERATIONS= 5 ", "ZEPH_TELEGRAM_ALLOWED_USERS=1, @ann_b ,", "ZEPH_TELEGRAM_ADMINS=1,2",
		"ZEPH_LLM_TIMEOUT=5s", "ZEPH_AUDIT_ENABLED=FALSE", "ZEPH_TOOLS_TAFC_COMPLEXITY_THRESHOLD=0.5", "ZEPH_TOOLS_FILTERS_SECURITY_ENABLED=0",
		"ZEPH_TOOLS_MAX_TOOL_CALLS_PER_SESSION=9", "ZEPH_LLM_PROVIDERS_MY_GPT_API_KEY=k", "ZEPH_LLM_PROVIDERS_MY_GPT_MODEL=n",
		"ZEPH_TELEGRAM_CHATS__100_TRIGGER=all", "ZEPH_MCP_SERVERS_GH_HEADERS_X_KEY=h", "ZEPH_TOOLS_ANOMALY_CRITICAL_THRESHOLD=0.8",
		"ZEPH_DATA_DIR=", "ZEPH_LLM_OLLAMA_TOOL_USE=true", "OTHER=1", "ZEPH_REDIS_URL=redis://:p@r", "broken")
	got := []any{
		c.Telegram.Token.Reveal(), c.Agent.MaxToolIterations, []string(c.Telegram.AllowedUsers), c.Telegram.Admins, c.LLM.Timeout.String(),
		c.Audit.Enabled, c.Tools.TAFC.ComplexityThreshold, c.Tools.Filters.Security.Enabled, *c.Tools.MaxToolCallsPerSession,
		c.LLM.Providers[0].APIKey.Reveal(), c.LLM.Providers[0].Model, c.Telegram.Chats["-100"].Trigger, c.MCP.Servers[0].Headers["X-Key"].Reveal(),
		c.Tools.Anomaly.FailureThreshold, c.DataDir, *c.LLM.Ollama.ToolUse, c.Redis.URL.Reveal(),
	}
	want := []any{
		"1:a", 5, []string{"1", "@ann_b"}, []int64{1, 2}, "5s", false, 0.5, false, 9, "k", "n", "all", "h", 0.8, "./data", true, "redis://:p@r",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("config (-want +got):\n%s", diff)
	}
}

func TestEnvironmentAloneMakesProviders(t *testing.T) {
	t.Parallel()
	c := load(t, "", "ZEPH_LLM_PROVIDERS_MAIN_API_KEY=k", "ZEPH_LLM_PROVIDERS_MAIN_MODEL=m", "ZEPH_LLM_PROVIDERS_MAIN_EMBEDDING_MODEL=e", "ZEPH_LLM_PROVIDERS_LOCAL_TYPE=offline")
	if len(c.LLM.Providers) != 2 || c.LLM.Providers[0].Name != "local" || c.LLM.Providers[1].Name != "main" {
		t.Fatalf("providers = %+v", c.LLM.Providers)
	}
	if p := c.LLM.Providers[1]; p.APIKey.Reveal() != "k" || p.Model != "m" || p.EmbeddingModel != "e" || p.MaxTokens != 4096 {
		t.Errorf("main = %+v", p)
	}
}

func TestEnvironmentProblems(t *testing.T) {
	t.Parallel()
	got := problems(t, "[[llm.providers]]\nname='a-b'\nmodel='m'\n[[llm.providers]]\nname='a_b'\nmodel='m'\n[llm]\nprimary='a-b'",
		"ZEPH_AGENT_CONCURRENCY=many", "ZEPH_LLM_TIMEOUT=5", "ZEPH_TELEGRAM_ADMINS=1,x", "ZEPH_SECURITY_AUTONOMY_LEVEL=none", "ZEPH_LLM_PROVIDERS_A_B_API_KEY=hunter2",
		"ZEPH_TOOLS_ANOMALY_CRITICAL_THRESHOLD=0.8", "ZEPH_TOOLS_ANOMALY_FAILURE_THRESHOLD=0.9", "ZEPH_REDIS_URL=hunter2")
	want := []string{
		`ZEPH_LLM_TIMEOUT: wanted a duration such as "10m", found the string "5" (sets llm.timeout)`,
		`ZEPH_AGENT_CONCURRENCY: wanted an integer, found the string "many" (sets agent.concurrency)`,
		`ZEPH_TELEGRAM_ADMINS: wanted a list of numeric ids such as 4711, separated by commas, found the string "1,x" (sets telegram.admins)`,
		`ZEPH_LLM_PROVIDERS_A_B_API_KEY: could mean llm.providers[0].api_key or llm.providers[1].api_key; rename one of them in the file`,
		`ZEPH_TOOLS_ANOMALY_CRITICAL_THRESHOLD: is another spelling of ZEPH_TOOLS_ANOMALY_FAILURE_THRESHOLD, which is also set, to something else; keep one of them`,
		`ZEPH_SECURITY_AUTONOMY_LEVEL: "none" is not allowed; allowed: readonly, supervised, full`,
		"ZEPH_REDIS_URL: this value is not allowed; allowed: a URL that begins with redis:// or rediss:// (also redis+cluster://, redis+sentinel://, unix://)",
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestUnknownVariables(t *testing.T) {
	t.Parallel()
	got := warnings(load(t, "[[llm.providers]]\nname = \"main\"\ntype = \"offline\"\n", "ZEPH_SOMETHING_ELSE_ALTOGETHER=1", "ZEPH_LLM_PROVIDERS_FAST_API_KEY=k"))
	want := []string{
		"ZEPH_LLM_PROVIDERS_FAST_API_KEY: has no effect: there is no provider of this name; set ZEPH_LLM_PROVIDERS_FAST_MODEL too, or add it to the file",
		"ZEPH_SOMETHING_ELSE_ALTOGETHER: names no known key; docs/config.md lists the variables",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
}

// TestMistypedVariables: a variable that is nearly the name of a key is refused, as a key of the file is.
func TestMistypedVariables(t *testing.T) {
	t.Parallel()
	for name, meant := range map[string]string{
		"ZEPH_TELEGRAM_TOKN": "ZEPH_TELEGRAM_TOKEN", "ZEPH_TELEGRAM_ALLOWED_USER": "ZEPH_TELEGRAM_ALLOWED_USERS", "ZEPH_DATADIR": "ZEPH_DATA_DIR",
		"ZEPH_SECURITY_AUTONOMY": "", "ZEPH_TOOLS_SHELL_TIME_OUT": "ZEPH_TOOLS_SHELL_TIMEOUT",
	} {
		_, err := config.Load(config.Source{Env: []string{name + "=hunter2"}, ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist }})
		if meant == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if want := name + ": names no known key; did you mean " + meant + "?"; err == nil || err.Error() != want {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
