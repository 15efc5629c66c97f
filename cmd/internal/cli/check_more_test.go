package cli_test

import "testing"

const (
	telegramAdmin = "[telegram]\ntoken = \"" + goodToken + "\"\nadmins = [1]\n"
	someModel     = "[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\nbase_url = \"http://localhost:1/v1\"\n"
)

// TestConfigCheckMore: mistakes that a start does not notice, by class: settings without effect, numbers that contradict
// each other, addresses, servers, directories that tools cannot reach, variables of the environment.
func TestConfigCheckMore(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]checkCase{
		// Without effect.
		"tasks that nothing runs": {
			conf: "[scheduler]\nenabled = false\n[[scheduler.tasks]]\nname = \"a\"\ncron = \"1 * * * *\"\ntask = \"x\"\nowner = 1\n", warn: []string{"zephbot.toml:4: scheduler.tasks[0].name: has no effect: scheduler.enabled is false"},
		},
		"limits of a memory that is off": {
			conf: "[memory]\nenabled = false\n[memory.limits]\nentries = 3\nsearch_results = 2\n", warn: []string{"zephbot.toml:4: memory.limits.entries: has no effect: memory.enabled is false"},
		},
		"an audit that is off":      {conf: "[audit]\nenabled = false\ndestination = \"a.jsonl\"\n", warn: []string{"zephbot.toml:3: audit.destination: has no effect"}},
		"off and at its defaults":   {conf: "[audit]\nenabled = false\nrequired = true\n[memory]\nenabled = false\nsemantic = true\n"},
		"an index that is off":      {conf: "[index]\nenabled = false\nlanguages = [\"go\"]\n"},
		"pace of a real model":      {conf: someModel + "pace = \"1s\"\n", warn: []string{"zephbot.toml:5: llm.providers[0].pace: has no effect: it is for type offline"}},
		"a model of none":           {conf: "[[llm.providers]]\nname = \"main\"\ntype = \"offline\"\nmodel = \"m\"\n", warn: []string{"zephbot.toml:4: llm.providers[0].model: has no effect: this provider has type offline, the built-in model without intelligence; set its type to that of your model (ZEPH_LLM_PROVIDERS_MAIN_TYPE)"}},
		"the wire of Anthropic":     {conf: "[[llm.providers]]\nname = \"main\"\ntype = \"anthropic\"\nmodel = \"m\"\napi_key = \"k\"\nwire = \"chat\"\n", warn: []string{"llm.providers[0].wire: has no effect"}},
		"bots that are not heard":   {conf: telegramAdmin + "allowed_bots = [\"@x_bot\"]\n" + offlineModel, warn: []string{"zephbot.toml:4: telegram.allowed_bots: has no effect: telegram.bot_to_bot is false"}},
		"a store that is not used":  {conf: "[vector]\nurl = \"http://x:6334\"\n", warn: []string{"zephbot.toml:2: vector.url: has no effect: vector.backend"}},
		"a search without a server": {conf: "[web_search]\napi_key = \"k\"\n", warn: []string{"zephbot.toml:1: web_search: has no effect"}},
		"a port that nobody needs":  {conf: "[telegram]\nwebhook_listen = \":9000\"\n", warn: []string{"zephbot.toml:2: telegram.webhook_listen: has no effect without telegram.webhook_url"}},
		"headers for a program":     {conf: "[mcp]\nallowed_commands = [\"sh\"]\n[[mcp.servers]]\nid = \"a\"\ncommand = \"sh\"\nheaders = { A = \"b\" }\n", warn: []string{"zephbot.toml:6: mcp.servers[0].headers: has no effect"}},
		"a program for an address":  {conf: "[[mcp.servers]]\nid = \"a\"\nurl = \"https://x.example\"\nargs = [\"b\"]\nenv = { A = \"b\" }\n", warn: []string{"mcp.servers[0].args: has no effect", "mcp.servers[0].env: has no effect"}},
		// Numbers and ids.
		"a day that is longer than a month": {conf: "[quotas.user]\nusd_per_day = 10\nusd_per_month = 5\nturns_per_day = 1\n", warn: []string{"zephbot.toml:2: quotas.user.usd_per_day: 10 is more than usd_per_month (5)"}},
		"of a chat": {
			conf: telegramAdmin + "allowed_chats = [-5]\n[telegram.chats.\"-5\".quota]\ntokens_per_day = 10\ntokens_per_month = 5\n" + offlineModel, warn: []string{"telegram.chats.-5.quota.tokens_per_day: 10 is more than"},
		},
		"no room for an answer":      {conf: "[quotas.bot]\ntokens_per_day = 1000\n" + someModel, warn: []string{"zephbot.toml:2: quotas.bot.tokens_per_day: 1000 tokens a day are fewer than the 4096 that one answer of m may have"}},
		"no room for a conversation": {conf: someModel + "context_tokens = 1000\n", want: []string{"@/zephbot.toml:5: llm.providers[0].context_tokens: 1000 leaves no room"}},
		"silence that is too long":   {conf: "[llm]\ntimeout = \"10s\"\nidle_timeout = \"60s\"\n" + offlineModel, warn: []string{"zephbot.toml:3: llm.idle_timeout: has no effect"}},
		"a name of an example":       {conf: "[telegram]\nallowed_users = [\"@your_name\"]\n", want: []string{"@/zephbot.toml:2: telegram.allowed_users: "}},
		"a person as a group":        {conf: "[telegram]\nallowed_chats = [123]\n", warn: []string{"zephbot.toml:2: telegram.allowed_chats: 123 is the id of a person"}},
		"files that are too large":   {conf: "[telegram]\nmax_upload_bytes = 2000000000\n", warn: []string{"zephbot.toml:2: telegram.max_upload_bytes: Telegram itself takes 52428800 bytes"}},
		// Addresses and secrets.
		"an address with a method":      {conf: "[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\nbase_url = \"http://localhost:1/v1/chat/completions/\"\n", want: []string{"@/zephbot.toml:4: llm.providers[0].base_url: ends with /chat/completions, which is added by itself; write http://localhost:1/v1"}},
		"an address with a query":       {conf: "[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\nbase_url = \"https://x.example/v1?key=1\"\n", want: []string{"@/zephbot.toml:4: llm.providers[0].base_url: must look like"}},
		"another vendor's address":      {conf: "[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\napi_key = \"k\"\nbase_url = \"https://api.anthropic.com\"\n", warn: []string{"zephbot.toml:5: llm.providers[0].base_url: is Anthropic's"}},
		"a key in clear text":           {conf: "[[llm.providers]]\nname = \"main\"\nmodel = \"m\"\napi_key = \"k\"\nbase_url = \"http://x.example/v1\"\n", warn: []string{"zephbot.toml:5: llm.providers[0].base_url: the key travels in clear text"}},
		"a token in clear text":         {conf: telegramAdmin + "api_url = \"http://bot.example.com\"\n" + offlineModel, warn: []string{"zephbot.toml:4: telegram.api_url: the token travels in clear text"}},
		"a key that is missing":         {conf: "[[llm.providers]]\nname = \"main\"\ntype = \"anthropic\"\nmodel = \"m\"\n", want: []string{"@/zephbot.toml:1: llm.providers[0].api_key: is empty; set it here, or ZEPH_LLM_PROVIDERS_MAIN_API_KEY"}},
		"a method before a query":       {conf: "[[llm.providers]]\nname = \"main\"\napi_key = \"k\"\nbase_url = \"https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21\"\nmodel = \"m\"\n", want: []string{"@/zephbot.toml:4: llm.providers[0].base_url: ends with /chat/completions, which is added by itself; write https://r.openai.azure.com/openai/deployments/d?api-version=2024-10-21"}},
		"Azure without a path":          {conf: "[[llm.providers]]\nname = \"main\"\nbase_url = \"https://r.openai.azure.com\"\nmodel = \"m\"\n", env: []string{"ZEPH_LLM_PROVIDERS_MAIN_API_KEY=k"}, warn: []string{"llm.providers[0].base_url: has no path; Azure's addresses end with /openai/v1"}},
		"Gemini's key missing":          {conf: "[[llm.providers]]\nname = \"main\"\npreset = \"gemini\"\nmodel = \"m\"\n", warn: []string{"llm.providers[0].api_key: is empty; https://generativelanguage.googleapis.com/v1beta/openai refuses requests without a key: set it here, or ZEPH_LLM_PROVIDERS_MAIN_API_KEY or GEMINI_API_KEY"}},
		"a key missing, no preset":      {conf: "[[llm.providers]]\nname = \"main\"\nbase_url = \"https://openrouter.ai/api/v1\"\nmodel = \"m\"\n", warn: []string{"llm.providers[0].api_key: is empty; https://openrouter.ai/api/v1 refuses requests without a key: set it here, or ZEPH_LLM_PROVIDERS_MAIN_API_KEY"}},
		"a key with a line break":       {env: []string{"ZEPH_LLM_PROVIDERS_MAIN_MODEL=m", "ZEPH_LLM_PROVIDERS_MAIN_API_KEY=planted\n"}, want: []string{"ZEPH_LLM_PROVIDERS_MAIN_API_KEY: has spaces or line breaks around it; take them out"}},
		"two listeners":                 {conf: telegramAdmin + "webhook_url = \"https://x.example/y\"\n[metrics]\nlisten = \"127.0.0.1:8443\"\n" + offlineModel, want: []string{"@/zephbot.toml:1: telegram.webhook_listen: has the same port as metrics.listen"}},
		"an address that is none":       {conf: "[metrics]\nlisten = \"256.1.1.1:9090\"\n", want: []string{"@/zephbot.toml:2: metrics.listen: 256.1.1.1 is no address"}},
		"an address of another machine": {conf: "[metrics]\nlisten = \"192.0.2.1:9090\"\n", want: []string{"@/zephbot.toml:2: metrics.listen: 192.0.2.1 is no address of this machine"}},
		// Servers and directories.
		"a server's directory": {conf: "[mcp]\nallowed_commands = [\"sh\"]\n[[mcp.servers]]\nid = \"a\"\ncommand = \"sh\"\ndir = \"/nowhere/at/all\"\n", want: []string{"@/zephbot.toml:6: mcp.servers[0].dir: /nowhere/at/all is no directory"}},
		"a server's script":    {conf: "[mcp]\nallowed_commands = [\"sh\"]\n[[mcp.servers]]\nid = \"a\"\ncommand = \"sh\"\nargs = [\"-x\", \"/nowhere/x.js\"]\n", want: []string{"@/zephbot.toml:6: mcp.servers[0].args: /nowhere/x.js does not exist"}},
		"tools that are not offered": {
			conf: "[[mcp.servers]]\nid = \"a\"\nurl = \"https://x.example\"\ntool_allowlist = [\"b\"]\nexpected_tools = [\"b\", \"c\"]\n", warn: []string{"zephbot.toml:5: mcp.servers[0].expected_tools: c is not in tool_allowlist"},
		},
		"a language server": {conf: "[[mcp.servers]]\nid = \"gopls\"\nurl = \"https://x.example\"\n[index.lsp]\nserver = \"goplz\"\n", want: []string{"@/zephbot.toml:5: index.lsp.server: goplz is none of mcp.servers; did you mean gopls?"}},
		"what it is asked": {
			conf: "[[mcp.servers]]\nid = \"gopls\"\nurl = \"https://x.example\"\n[index.lsp]\nserver = \"gopls\"\nsymbols = \"go_search {\"\n", want: []string{"@/zephbot.toml:6: index.lsp.symbols: want the name of a tool and a JSON object"},
		},
		"data_dir for tools": {
			conf: "data_dir = \".\"\n[tools.file]\nallowed_paths = [\".\", \"/\"]\n[index]\npaths = [\"/usr\"]\n", warn: nil,
		},
		"a directory in data_dir": {
			conf: "data_dir = \"/usr\"\n[tools.shell]\nallowed_paths = [\"/usr/bin\"]\n", want: []string{"@/zephbot.toml:3: tools.shell.allowed_paths: /usr/bin is in /usr, which tools cannot reach"},
		},
		"an index of what nobody may read": {conf: "[index]\npaths = [\"/usr\"]\n", warn: []string{"zephbot.toml:2: index.paths: /usr is not in tools.file.allowed_paths"}},
		"a byte order mark":                {conf: "\xef\xbb\xbf[agent]\nconcurency = 3\n", want: []string{"@/zephbot.toml:2: agent.concurency: unknown key; did you mean agent.concurrency?"}},
		// The environment.
		"a wrong number": {env: []string{"ZEPH_AGENT_CONCURRENCY=many"}, want: []string{"ZEPH_AGENT_CONCURRENCY: wanted an integer, found the string \"many\" (sets agent.concurrency)"}},
		"a wrong list":   {env: []string{"ZEPH_TELEGRAM_ADMINS=ann"}, want: []string{"ZEPH_TELEGRAM_ADMINS: wanted a list of numeric ids such as 4711, separated by commas"}},
		"a wrong word":   {env: []string{"ZEPH_LOG_LEVEL=loud"}, want: []string{"ZEPH_LOG_LEVEL: \"loud\" is not allowed; allowed: trace"}},
		"a wrong time":   {env: []string{"ZEPH_LLM_TIMEOUT=120"}, want: []string{"ZEPH_LLM_TIMEOUT: wanted a duration such as \"10m\""}},
		"a wrong URL":    {env: []string{"ZEPH_DATABASE_URL=postgres//u:planted@x"}, want: []string{"ZEPH_DATABASE_URL: this value is not allowed"}},
		"a letter":       {env: []string{"ZEPH_AGENT_CONCURENCY=3", "ZEPH_TELEGRAM__TOKEN=x"}, want: []string{"ZEPH_AGENT_CONCURENCY: names no known key; did you mean ZEPH_AGENT_CONCURRENCY?", "ZEPH_TELEGRAM__TOKEN: names no known key; did you mean ZEPH_TELEGRAM_TOKEN?"}},
		"a prefix": {
			env: []string{"zeph_telegram_token=x", "ZEPHBOT_LOG_LEVEL=debug", "ZEPHYR_BASE=/x"}, want: []string{"ZEPHBOT_LOG_LEVEL: is not read, because", "zeph_telegram_token: is not read, because our variables begin with ZEPH_ and are in upper case; did you mean ZEPH_TELEGRAM_TOKEN?"},
		},
		"words": {
			env: []string{"ZEPH_TOKEN=x", "ZEPH_QUOTAS_USER_TURNS=3", "ZEPH_FOO=1"}, warn: []string{
				"ZEPH_TOKEN: names no known key; the closest is ZEPH_TELEGRAM_TOKEN", "ZEPH_QUOTAS_USER_TURNS: names no known key; the closest is ZEPH_QUOTAS_USER_TURNS_PER_DAY", "ZEPH_FOO: names no known key; docs/config.md",
			},
		},
		"an entry of a list": {env: []string{"ZEPH_MCP_SERVERS_GITHUB_URL=x"}, warn: []string{"ZEPH_MCP_SERVERS_GITHUB_URL: names no known key: entries of [[mcp.servers]] cannot be set in the environment"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.check(t)
		})
	}
}
