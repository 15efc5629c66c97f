package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/cmd/internal/config"
)

// keyDefaults is the contract: every key and its default as TOML, "" where a key is not set. It is written out, so that
// a change of a name or a default is seen.
func keyDefaults() [][2]string {
	return [][2]string{
		{"data_dir", `"./data"`},
		{"telegram.token", `""`},
		{"telegram.api_url", `"https://api.telegram.org"`},
		{"telegram.max_upload_bytes", `52428800`},
		{"telegram.allowed_users", `[]`},
		{"telegram.admins", `[]`},
		{"telegram.allowed_chats", `[]`},
		{"telegram.approvers", `[]`},
		{"telegram.approval_timeout", `"10m"`},
		{"telegram.approvals_required", `1`},
		{"telegram.approval_by_requester", `true`},
		{"telegram.stream_interval_ms", `3000`},
		{"telegram.merge_ms", `600`},
		{"telegram.busy", `"queue"`},
		{"telegram.max_parts", "6"},
		{"telegram.language", `""`},
		{"telegram.time_zone", `""`},
		{"telegram.webhook_url", `""`},
		{"telegram.webhook_listen", `":8443"`},
		{"telegram.webhook_secret", `""`},
		{"telegram.allowed_tools", `[]`},
		{"telegram.expandable_blockquote_min_lines", `10`},
		{"telegram.rich_messages", `false`},
		{"telegram.guest_mode", `false`},
		{"telegram.bot_to_bot", `false`},
		{"telegram.allowed_bots", `[]`},
		{"telegram.max_bot_chain_depth", `3`},
		{"telegram.limits.per_second", `30`},
		{"telegram.limits.per_chat_per_second", `1`},
		{"telegram.limits.per_group_per_minute", `20`},
		{"telegram.groups.session", `"user"`},
		{"telegram.groups.trigger", `"mention"`},
		{"telegram.roles.user.allowed_tools", `[]`},
		{"telegram.roles.approver.allowed_tools", `[]`},
		{"telegram.roles.admin.allowed_tools", `[]`},
		{"telegram.chats.<key>.system_prompt", `""`},
		{"telegram.chats.<key>.allowed_tools", `[]`},
		{"telegram.chats.<key>.skills", ``},
		{"telegram.chats.<key>.trigger", `""`},
		{"telegram.chats.<key>.session", `""`},
		{"telegram.chats.<key>.approvals_required", `0`},
		{"telegram.chats.<key>.approvers", `[]`},
		{"telegram.chats.<key>.quota.turns_per_day", `0`},
		{"telegram.chats.<key>.quota.turns_per_month", `0`},
		{"telegram.chats.<key>.quota.tokens_per_day", `0`},
		{"telegram.chats.<key>.quota.tokens_per_month", `0`},
		{"telegram.chats.<key>.quota.usd_per_day", `0.0`},
		{"telegram.chats.<key>.quota.usd_per_month", `0.0`},
		{"llm.primary", `"main"`},
		{"llm.fallback", `[]`},
		{"llm.choices", `[]`},
		{"llm.embedding", `""`},
		{"llm.timeout", `"120s"`},
		{"llm.idle_timeout", `"60s"`},
		{"llm.ollama.tool_use", ``},
		{"llm.providers[].name", `""`},
		{"llm.providers[].type", `"openai"`},
		{"llm.providers[].preset", `""`},
		{"llm.providers[].base_url", `"https://api.openai.com/v1"`},
		{"llm.providers[].api_key", `""`},
		{"llm.providers[].api_keys", "[]"},
		{"llm.providers[].model", `""`},
		{"llm.providers[].embedding_model", `""`},
		{"llm.providers[].embedding_usd_per_mtok", ""},
		{"llm.providers[].transcription_model", `""`},
		{"llm.providers[].transcription_usd_per_minute", ""},
		{"llm.providers[].max_tokens", `4096`},
		{"llm.providers[].context_tokens", `0`},
		{"llm.providers[].pace", `"0s"`},
		{"llm.providers[].tool_use", `true`},
		{"llm.providers[].input_usd_per_mtok", ``},
		{"llm.providers[].output_usd_per_mtok", ``},
		{"llm.providers[].cached_input_usd_per_mtok", ``},
		{"llm.providers[].accepts", `[]`},
		{"llm.providers[].wire", `"auto"`},
		{"agent.max_tool_iterations", `10`},
		{"agent.context_budget_tokens", `128000`},
		{"agent.system_prompt", `""`},
		{"agent.max_parallel_tools", `4`},
		{"agent.concurrency", `1024`},
		{"agent.tool_filter.enabled", `false`},
		{"agent.tool_filter.top_k", `0`},
		{"agent.tool_filter.min_similarity", `0.3`},
		{"agent.tool_filter.always_on", `["bash", "read", "edit", "memory_search", "memory_save"]`},
		{"session.recap.on_resume", `true`},
		{"session.recap.recap_provider", `""`},
		{"session.recap.max_tokens", `500`},
		{"session.recap.max_input_messages", `50`},
		{"security.autonomy_level", `"supervised"`},
		{"tools.enabled", `true`},
		{"tools.summarize_output", `false`},
		{"tools.max_tool_calls_per_session", ``},
		{"tools.quota_unit", `"batch"`},
		{"tools.shell.timeout", `30`},
		{"tools.shell.blocked_commands", `[]`},
		{"tools.shell.allowed_commands", `[]`},
		{"tools.shell.allowed_paths", `[]`},
		{"tools.shell.allow_network", `true`},
		{"tools.shell.unasked", `"reading"`},
		{"tools.shell.allow_reading", `true`},
		{"tools.shell.confirm_patterns", "[\"rm \", \"git push -f\", \"git push --force\", \"drop table\", \"drop database\", \"truncate \", \"$(\", \"`\", \"<(\", \">(\", \"<<<\", \"eval \"]"},
		{"tools.shell.preview", `true`},
		{"tools.shell.env_blocklist", `["ZEPH_", "AWS_", "AZURE_", "GCP_", "GOOGLE_", "OPENAI_", "ANTHROPIC_", "HF_", "HUGGING"]`},
		{"tools.shell.sandbox", `"auto"`},
		{"tools.shell.transactional", `false`},
		{"tools.shell.transaction_scope", `[]`},
		{"tools.shell.auto_rollback", `false`},
		{"tools.shell.auto_rollback_exit_codes", `[]`},
		{"tools.shell.snapshot_required", `false`},
		{"tools.shell.max_snapshot_bytes", `0`},
		{"tools.shell.max_background_runs", `8`},
		{"tools.shell.background_timeout_secs", `1800`},
		{"tools.shell.risk_chain_threshold", `0.7`},
		{"tools.shell.checkpoints_enabled", `false`},
		{"tools.shell.max_checkpoints", `20`},
		{"tools.shell.limits.processes", `512`},
		{"tools.shell.limits.memory_bytes", `0`},
		{"tools.shell.limits.file_bytes", `1073741824`},
		{"tools.shell.limits.open_files", `4096`},
		{"tools.shell.limits.cpu_seconds", `7200`},
		{"tools.shell.limits.output_bytes", `268435456`},
		{"tools.file.allowed_paths", `[]`},
		{"tools.file.deny_read", `[]`},
		{"tools.file.allow_read", `[]`},
		{"tools.scrape.timeout", `15`},
		{"tools.scrape.max_body_bytes", `1048576`},
		{"tools.scrape.allowed_domains", `[]`},
		{"tools.scrape.denied_domains", `[]`},
		{"tools.scrape.ipi_filter_threshold", `0.6`},
		{"tools.web.quiet_hosts", `["api.github.com", "raw.githubusercontent.com", "developer.mozilla.org", "docs.python.org", "doc.rust-lang.org", "docs.rs", "go.dev", "pkg.go.dev", "www.rfc-editor.org"]`},
		{"tools.egress.enabled", `true`},
		{"tools.egress.log_blocked", `true`},
		{"tools.egress.log_response_bytes", `true`},
		{"tools.egress.log_hosts_to_tui", `true`},
		{"tools.permissions.<key>[].pattern", `""`},
		{"tools.permissions.<key>[].action", `""`},
		{"tools.policy.enabled", `false`},
		{"tools.policy.default_effect", `"deny"`},
		{"tools.policy.evaluation", `"first_match"`},
		{"tools.policy.policy_file", `""`},
		{"tools.policy.policy_provider", `""`},
		{"tools.policy.rules[].effect", `""`},
		{"tools.policy.rules[].tool", `[]`},
		{"tools.policy.rules[].paths", `[]`},
		{"tools.policy.rules[].env", `[]`},
		{"tools.policy.rules[].trust_level", `""`},
		{"tools.policy.rules[].args_match", `""`},
		{"tools.policy.rules[].capabilities", `[]`},
		{"tools.policy.rules[].comment", `""`},
		{"tools.authorization.enabled", `false`},
		{"tools.authorization.rules[].effect", `""`},
		{"tools.authorization.rules[].tool", `[]`},
		{"tools.authorization.rules[].paths", `[]`},
		{"tools.authorization.rules[].env", `[]`},
		{"tools.authorization.rules[].trust_level", `""`},
		{"tools.authorization.rules[].args_match", `""`},
		{"tools.authorization.rules[].capabilities", `[]`},
		{"tools.authorization.rules[].comment", `""`},
		{"tools.adversarial_policy.enabled", `false`},
		{"tools.adversarial_policy.provider", `""`},
		{"tools.adversarial_policy.block_on_reject", `true`},
		{"tools.adversarial_policy.policy_file", `""`},
		{"tools.adversarial_policy.fail_open", `false`},
		{"tools.adversarial_policy.timeout_ms", `3000`},
		{"tools.adversarial_policy.exempt_tools", `["memory_save", "memory_search", "read_overflow", "load_skill", "invoke_skill", "schedule_deferred", "list_tasks"]`},
		{"tools.filters.enabled", `true`},
		{"tools.filters.filters_path", `""`},
		{"tools.filters.security.enabled", `true`},
		{"tools.filters.security.extra_patterns", `[]`},
		{"tools.overflow.threshold", `50000`},
		{"tools.overflow.retention_days", `7`},
		{"tools.overflow.max_overflow_bytes", `10485760`},
		{"tools.result_cache.enabled", `true`},
		{"tools.result_cache.ttl_secs", `300`},
		{"tools.dependencies.enabled", `false`},
		{"tools.dependencies.boost_per_dep", `0.15`},
		{"tools.dependencies.max_total_boost", `0.2`},
		{"tools.dependencies.rules.<key>.requires", `[]`},
		{"tools.dependencies.rules.<key>.prefers", `[]`},
		{"tools.tafc.enabled", `false`},
		{"tools.tafc.complexity_threshold", `0.6`},
		{"tools.anomaly.enabled", `true`},
		{"tools.anomaly.window_size", `20`},
		{"tools.anomaly.error_threshold", `0.5`},
		{"tools.anomaly.failure_threshold", `0.7`},
		{"tools.anomaly.auto_block", `true`},
		{"tools.anomaly.reasoning_model_warning", `true`},
		{"tools.diagnostics.max_diagnostics", `50`},
		{"tools.retry.max_attempts", `2`},
		{"tools.retry.base_ms", `500`},
		{"tools.retry.max_ms", `5000`},
		{"tools.retry.budget_secs", `30`},
		{"tools.retry.parameter_reformat_provider", `""`},
		{"tools.utility.enabled", `false`},
		{"tools.utility.threshold", `0.1`},
		{"tools.utility.gain_weight", `1.0`},
		{"tools.utility.cost_weight", `0.5`},
		{"tools.utility.redundancy_weight", `0.3`},
		{"tools.utility.uncertainty_bonus", `0.2`},
		{"tools.utility.exempt_tools", `["invoke_skill", "load_skill"]`},
		{"tools.utility.high_gain_tools", `[]`},
		{"tools.utility.utility_window", `0`},
		{"mcp.allowed_commands", `["npx", "uvx", "node", "python", "python3"]`},
		{"mcp.chat_commands", `false`},
		{"mcp.max_dynamic_servers", `10`},
		{"mcp.max_description_bytes", `2048`},
		{"mcp.max_instructions_bytes", `2048`},
		{"mcp.output_schema_hint_bytes", `1024`},
		{"mcp.max_definition_share", `0.2`},
		{"mcp.sampling", `false`},
		{"mcp.elicitation_enabled", `false`},
		{"mcp.elicitation_timeout", `120`},
		{"mcp.elicitation_queue_capacity", `16`},
		{"mcp.elicitation_warn_sensitive_fields", `true`},
		{"mcp.lock_tool_list", `false`},
		{"mcp.default_env_isolation", `false`},
		{"mcp.max_connect_attempts", `3`},
		{"mcp.startup_retry_backoff_ms", `1000`},
		{"mcp.tool_timeout_secs", ``},
		{"mcp.pruning.enabled", `false`},
		{"mcp.pruning.max_tools", `15`},
		{"mcp.pruning.pruning_provider", `""`},
		{"mcp.pruning.min_tools_to_prune", `10`},
		{"mcp.pruning.always_include", `[]`},
		{"mcp.tool_discovery.strategy", `"Embedding"`},
		{"mcp.tool_discovery.top_k", `10`},
		{"mcp.tool_discovery.min_similarity", `0.3`},
		{"mcp.tool_discovery.embedding_provider", `""`},
		{"mcp.tool_discovery.always_include", `[]`},
		{"mcp.tool_discovery.min_tools_to_filter", `5`},
		{"mcp.tool_discovery.strict", `false`},
		{"mcp.trust_calibration.enabled", `false`},
		{"mcp.trust_calibration.probe_on_connect", `true`},
		{"mcp.trust_calibration.monitor_invocations", `true`},
		{"mcp.trust_calibration.persist_scores", `true`},
		{"mcp.trust_calibration.decay_rate_per_day", `0.01`},
		{"mcp.trust_calibration.injection_penalty", `0.25`},
		{"mcp.trust_calibration.verifier_provider", `""`},
		{"mcp.servers[].id", `""`},
		{"mcp.servers[].command", `""`},
		{"mcp.servers[].args", `[]`},
		{"mcp.servers[].dir", `""`},
		{"mcp.servers[].url", `""`},
		{"mcp.servers[].timeout", `30`},
		{"mcp.servers[].startup_timeout", ``},
		{"mcp.servers[].trust_level", `"untrusted"`},
		{"mcp.servers[].tool_allowlist", ``},
		{"mcp.servers[].expected_tools", `[]`},
		{"mcp.servers[].elicitation_enabled", ``},
		{"mcp.servers[].env_isolation", ``},
		{"mcp.servers[].scope", `"shared"`},
		{"mcp.servers[].confine", `"on"`},
		{"mcp.servers[].network", `""`},
		{"mcp.servers[].env.<key>", ``},
		{"mcp.servers[].headers.<key>", ``},
		{"mcp.servers[].roots[].uri", `""`},
		{"mcp.servers[].roots[].name", `""`},
		{"mcp.servers[].tool_metadata.<key>.data_sensitivity", `""`},
		{"mcp.servers[].tool_metadata.<key>.capabilities", `[]`},
		{"mcp.servers[].policy.allowed_tools", ``},
		{"mcp.servers[].policy.denied_tools", `[]`},
		{"mcp.servers[].policy.rate_limit.max_calls_per_minute", `0`},
		{"mcp.servers[].oauth.enabled", `false`},
		{"mcp.servers[].oauth.token_storage", `"vault"`},
		{"mcp.servers[].oauth.scopes", `[]`},
		{"mcp.servers[].oauth.callback_port", `18766`},
		{"mcp.servers[].oauth.client_name", `"zephbot"`},
		{"mcp.servers[].oauth.client_id", `""`},
		{"mcp.servers[].oauth.client_secret", `""`},
		{"workspaces.dir", `""`},
		{"workspaces.shared", `false`},
		{"workspaces.max_bytes", `1073741824`},
		{"workspaces.reserve_bytes", `268435456`},
		{"redis.url", `""`},
		{"redis.ca_file", `""`},
		{"redis.cert_file", `""`},
		{"redis.key_file", `""`},
		{"database.url", `""`},
		{"retention.journal", `365`},
		{"retention.outbox", `90`},
		{"retention.blobs", `30`},
		{"retention.audit", `0`},
		{"retention.max_blob_bytes", `2147483648`},
		{"vector.backend", `"embedded"`},
		{"vector.url", `""`},
		{"vector.api_key", `""`},
		{"index.enabled", `false`},
		{"index.auto_index", `true`},
		{"index.paths", `[]`},
		{"index.languages", `[]`},
		{"index.watch", `true`},
		{"index.lsp.server", `""`},
		{"index.lsp.symbols", `"go_search {\"query\": \"$symbol\"}"`},
		{"index.lsp.references", `"go_symbol_references {\"file\": \"$file\", \"symbol\": \"$symbol\"}"`},
		{"index.lsp.definition", `""`},
		{"index.lsp.hover", `""`},
		{"scheduler.enabled", `true`},
		{"scheduler.tick_secs", `60`},
		{"scheduler.max_tasks", `100`},
		{"scheduler.tasks[].name", `""`},
		{"scheduler.tasks[].cron", `""`},
		{"scheduler.tasks[].run_at", `""`},
		{"scheduler.tasks[].kind", `"custom"`},
		{"scheduler.tasks[].task", `""`},
		{"scheduler.tasks[].owner", `0`},
		{"scheduler.tasks[].chat", `""`},
		{"memory.enabled", `true`},
		{"memory.semantic", `true`},
		{"memory.limits.entries", `1000`},
		{"memory.limits.content_bytes", `4096`},
		{"memory.limits.search_results", `5`},
		{"skills.enabled", `true`},
		{"skills.paths", `[]`},
		{"web_search.backend", `""`},
		{"web_search.url", `""`},
		{"web_search.api_key", `""`},
		{"web_search.max_results", `8`},
		{"web_search.timeout", `15`},
		{"quotas.on_redis_down", `"deny"`},
		{"quotas.payer", `"user"`},
		{"quotas.user.turns_per_day", `0`},
		{"quotas.user.turns_per_month", `0`},
		{"quotas.user.tokens_per_day", `0`},
		{"quotas.user.tokens_per_month", `0`},
		{"quotas.user.usd_per_day", `0.0`},
		{"quotas.user.usd_per_month", `0.0`},
		{"quotas.chat.turns_per_day", `0`},
		{"quotas.chat.turns_per_month", `0`},
		{"quotas.chat.tokens_per_day", `0`},
		{"quotas.chat.tokens_per_month", `0`},
		{"quotas.chat.usd_per_day", `0.0`},
		{"quotas.chat.usd_per_month", `0.0`},
		{"quotas.bot.turns_per_day", `0`},
		{"quotas.bot.turns_per_month", `0`},
		{"quotas.bot.tokens_per_day", `0`},
		{"quotas.bot.tokens_per_month", `0`},
		{"quotas.bot.usd_per_day", `0.0`},
		{"quotas.bot.usd_per_month", `0.0`},
		{"audit.enabled", `true`},
		{"audit.destination", `""`},
		{"audit.required", "true"},
		{"audit.max_bytes", `67108864`},
		{"audit.rotate", `"size"`},
		{"audit.tool_risk_summary", `false`},
		{"metrics.listen", `""`},
		{"metrics.public_url", `""`},
		{"metrics.pprof", `false`},
		{"tracing.endpoint", `""`},
		{"tracing.sample_ratio", `1.0`},
		{"tracing.headers.<key>", ""},
		{"log.level", `"info"`},
		{"log.format", `"console"`},
	}
}

func TestKeysHaveTheContractsDefaults(t *testing.T) {
	t.Parallel()
	var got [][2]string
	for _, k := range config.Keys() {
		got = append(got, [2]string{k.Name, k.Default})
	}
	if diff := cmp.Diff(keyDefaults(), got); diff != "" {
		t.Errorf("keys and defaults (-want +got):\n%s", diff)
	}
}

func TestDefaultMatchesKeys(t *testing.T) {
	t.Parallel()
	c := config.Default()
	text := printed(t, &c, false)
	for _, k := range config.Keys() {
		if strings.ContainsAny(k.Name, "<[") || k.Default == "" || strings.HasPrefix(k.Name, "telegram.chats") {
			continue
		}
		line := k.Name[strings.LastIndexByte(k.Name, '.')+1:] + " = " + k.Default + "  # default\n"
		if !strings.Contains(text, line) {
			t.Errorf("Default does not hold %s = %s", k.Name, k.Default)
		}
	}
}

func TestKeysAreDocumentedAndTheirVariablesDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, k := range config.Keys() {
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") || strings.Contains(k.Doc, "\n") {
			t.Errorf("%s: documentation %q is no sentence on one line", k.Name, k.Doc)
		}
		if k.Type == "" {
			t.Errorf("%s has no type", k.Name)
		}
		if k.Env == "" {
			continue
		}
		if other, twice := seen[k.Env]; twice {
			t.Errorf("%s and %s have the same variable %s", k.Name, other, k.Env)
		}
		seen[k.Env] = k.Name
	}
	for _, name := range []string{"ZEPH_TELEGRAM_TOKEN", "ZEPH_AGENT_MAX_TOOL_ITERATIONS", "ZEPH_LLM_PROVIDERS_<NAME>_API_KEY"} {
		if seen[name] == "" {
			t.Errorf("no key has the variable %s", name)
		}
	}
}

func TestDocHasEveryKey(t *testing.T) {
	t.Parallel()
	doc := string(config.Doc())
	for _, k := range config.Keys() {
		name := "| `" + strings.TrimPrefix(strings.TrimPrefix(k.Name, k.Table), ".") + "` |"
		if !strings.Contains(doc, name) {
			t.Errorf("the reference lacks %s", k.Name)
		}
		if k.Env != "" && !strings.Contains(doc, "`"+k.Env+"`") {
			t.Errorf("the reference lacks %s", k.Env)
		}
	}
	for line := range strings.SplitSeq(doc, "\n") {
		if strings.HasPrefix(line, "|") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 6 {
			t.Errorf("not five cells: %s", line)
		}
	}
}
