package config

// MCP is the table [mcp].
type MCP struct {
	AllowedCommands       []string `toml:"allowed_commands" default:"npx,uvx,node,python,python3" form:"command" place:"none" doc:"Programs that may be started as servers; names without a path."`
	ChatCommands          bool     `toml:"chat_commands" default:"false" doc:"Let admins add programs as servers from the chat; each needs an approval."`
	MaxDynamicServers     int      `toml:"max_dynamic_servers" default:"10" doc:"Maximum number of servers added from the chat."`
	MaxDescriptionBytes   int      `toml:"max_description_bytes" default:"2048" min:"1" doc:"Maximum length of a tool's description, in bytes."`
	MaxInstructionsBytes  int      `toml:"max_instructions_bytes" default:"2048" min:"1" doc:"Maximum length of a server's instructions, in bytes."`
	OutputSchemaHintBytes int      `toml:"output_schema_hint_bytes" default:"1024" min:"1" doc:"Maximum length of an output schema in a description, in bytes."`
	MaxDefinitionShare    float64  `toml:"max_definition_share" default:"0.2" min:"0.01" max:"1" doc:"Share of agent.context_budget_tokens that the definitions of all servers' tools may use together; tool_search finds the rest."`
	Sampling              bool     `toml:"sampling" default:"false" doc:"Let servers ask the model."`
	ElicitationEnabled    bool     `toml:"elicitation_enabled" default:"false" doc:"Let servers ask the person, in the terminal."`
	ElicitationTimeout    int      `toml:"elicitation_timeout" alias:"elicitation_timeout_secs" default:"120" min:"1" doc:"Seconds to wait for an answer."`
	ElicitationQueue      int      `toml:"elicitation_queue_capacity" default:"16" min:"1" doc:"Maximum number of waiting questions; further ones are declined."`
	ElicitationWarnFields bool     `toml:"elicitation_warn_sensitive_fields" default:"true" doc:"Warn before fields that look like secrets."`
	LockToolList          bool     `toml:"lock_tool_list" default:"false" doc:"Ignore changes of the tool lists after startup."`
	DefaultEnvIsolation   bool     `toml:"default_env_isolation" default:"false" doc:"Start servers with an almost empty environment."`
	MaxConnectAttempts    int      `toml:"max_connect_attempts" default:"3" min:"1" max:"10" doc:"Attempts to connect at startup."`
	StartupRetryBackoffMS int      `toml:"startup_retry_backoff_ms" default:"1000" min:"1" doc:"Milliseconds before the second attempt, doubled each time."`
	ToolTimeoutSecs       *int     `toml:"tool_timeout_secs" min:"1" doc:"Time limit of a tool call, in seconds. Not set: the timeout of the server."`

	Pruning          MCPPruning       `toml:"pruning" doc:"A model selects the tools."`
	ToolDiscovery    ToolDiscovery    `toml:"tool_discovery" doc:"Which of the servers' tools the model sees."`
	TrustCalibration TrustCalibration `toml:"trust_calibration" idle:"the score of servers" doc:"A score for the behaviour of servers."`
	Servers          []MCPServer      `toml:"servers" doc:"The servers."`
}

// MCPPruning is the table [mcp.pruning].
type MCPPruning struct {
	Enabled         bool     `toml:"enabled" default:"false" doc:"Turn it on."`
	MaxTools        int      `toml:"max_tools" default:"15" doc:"Maximum number of tools to keep. 0: no limit."`
	Provider        string   `toml:"pruning_provider" form:"provider" doc:"Provider that selects. Empty: the primary."`
	MinToolsToPrune int      `toml:"min_tools_to_prune" default:"10" doc:"If there are fewer tools than this, all are kept."`
	AlwaysInclude   []string `toml:"always_include" tools:"bare" doc:"Tools that are always kept."`
}

// ToolDiscovery is the table [mcp.tool_discovery] (seed 001).
type ToolDiscovery struct {
	Strategy         string   `toml:"strategy" default:"Embedding" enumfold:"Embedding|Llm|None" doc:"How tools are ranked."`
	TopK             int      `toml:"top_k" default:"10" doc:"Maximum number of tools in a turn."`
	MinSimilarity    float64  `toml:"min_similarity" default:"0.3" max:"1" doc:"Minimum similarity of a tool to the question."`
	Provider         string   `toml:"embedding_provider" form:"provider" doc:"Provider of the embeddings. Empty: llm.embedding."`
	AlwaysInclude    []string `toml:"always_include" tools:"bare" doc:"Tools that are always shown: a bare name or server:tool."`
	MinToolsToFilter int      `toml:"min_tools_to_filter" default:"5" doc:"A server with fewer tools shows them all."`
	Strict           bool     `toml:"strict" default:"false" doc:"Show no tool instead of all when ranking fails."`
}

// TrustCalibration is the table [mcp.trust_calibration].
type TrustCalibration struct {
	Enabled            bool    `toml:"enabled" default:"false" doc:"Turn it on."`
	ProbeOnConnect     bool    `toml:"probe_on_connect" default:"true" doc:"Check a server when it connects."`
	MonitorInvocations bool    `toml:"monitor_invocations" default:"true" doc:"Count successes and failures."`
	PersistScores      bool    `toml:"persist_scores" default:"true" doc:"Store the scores."`
	DecayRatePerDay    float64 `toml:"decay_rate_per_day" default:"0.01" max:"1" doc:"How fast a good score decays."`
	InjectionPenalty   float64 `toml:"injection_penalty" default:"0.25" max:"1" doc:"Penalty for an injected instruction."`
	VerifierProvider   string  `toml:"verifier_provider" form:"provider" doc:"Provider that checks servers. Empty: none."`
}

// MCPServer is an entry of [[mcp.servers]]. It has either a command or a url.
type MCPServer struct {
	ID                 string                  `toml:"id" form:"server" doc:"Id of the server, the part before the colon in its tools' names. Required."`
	Command            string                  `toml:"command" place:"none" doc:"Program to start; must be in mcp.allowed_commands."`
	Args               []string                `toml:"args" place:"obeyed" doc:"Its arguments."`
	Dir                string                  `toml:"dir" place:"obeyed" doc:"Directory it starts in, which should be one of its roots. Empty: one of its own."`
	Env                map[string]Secret       `toml:"env" doc:"Environment variables it gets."`
	URL                string                  `toml:"url" url:"https|http" doc:"Address of a server on the network."`
	Headers            map[string]Secret       `toml:"headers" doc:"HTTP headers sent to it."`
	Timeout            int                     `toml:"timeout" default:"30" min:"1" doc:"Time limit for connecting and for each call, in seconds."`
	StartupTimeout     *int                    `toml:"startup_timeout" min:"1" doc:"Time limit for connecting, in seconds, if that may take longer than a call."`
	TrustLevel         string                  `toml:"trust_level" default:"untrusted" enum:"trusted|untrusted|sandboxed" doc:"How far the server is trusted."`
	ToolAllowlist      *[]string               `toml:"tool_allowlist" tools:"server" doc:"Tools that are offered. Not set: all (sandboxed: none)."`
	ExpectedTools      []string                `toml:"expected_tools" tools:"server" doc:"Tools the server should have; others are dropped."`
	Roots              []MCPRoot               `toml:"roots" doc:"Directories the server may use."`
	ToolMetadata       map[string]ToolMetadata `toml:"tool_metadata" tools:"server" idle:"the data flow policy of tools" doc:"What a tool does, by its name."`
	ElicitationEnabled *bool                   `toml:"elicitation_enabled" doc:"Overrides mcp.elicitation_enabled."`
	EnvIsolation       *bool                   `toml:"env_isolation" doc:"Overrides mcp.default_env_isolation."`
	Scope              string                  `toml:"scope" default:"shared" enum:"shared|session|caller" doc:"One connection for all, or one per conversation or person."`
	Confine            string                  `toml:"confine" default:"on" enum:"on|off" place:"none" doc:"Whether the kernel restricts its program: files to a directory of its own, its roots, and the directories in its arguments; network access as set by network. off: it has the rights of the bot."`
	Network            string                  `toml:"network" default:"" enum:"|off|internet|all" doc:"Network access of its program: off, internet (neither this machine nor the local network), or all. Empty: all if trusted, internet if untrusted, off if sandboxed."`
	Read               []string                `toml:"read" place:"granted" doc:"Directories and files that its program may only read, besides its own directory, its package and its roots."`
	Policy             MCPPolicy               `toml:"policy" doc:"Limits of its tools."`
	OAuth              OAuth                   `toml:"oauth" doc:"Sign-in with OAuth 2.1."`
}

// MCPRoot is an entry of roots.
type MCPRoot struct {
	URI  string `toml:"uri" url:"file" place:"granted" doc:"file:// address of the directory. Required."`
	Name string `toml:"name" doc:"Name shown to the server."`
}

// ToolMetadata is a table of tool_metadata.
type ToolMetadata struct {
	DataSensitivity string   `toml:"data_sensitivity" enum:"none|low|medium|high" doc:"How sensitive the data of the tool is."`
	Capabilities    []string `toml:"capabilities" doc:"What the tool can do."`
}

// MCPPolicy is the table policy of a server.
type MCPPolicy struct {
	AllowedTools *[]string    `toml:"allowed_tools" tools:"server" doc:"Tools that may be called. Not set: all."`
	DeniedTools  []string     `toml:"denied_tools" tools:"server" doc:"Tools that may not be called."`
	RateLimit    MCPRateLimit `toml:"rate_limit" doc:"How often tools may be called."`
}

// MCPRateLimit is the table policy.rate_limit of a server.
type MCPRateLimit struct {
	MaxCallsPerMinute int `toml:"max_calls_per_minute" default:"0" doc:"Maximum number of calls per minute. 0: no limit."`
}

// OAuth is the table oauth of a server.
type OAuth struct {
	Enabled      bool     `toml:"enabled" default:"false" doc:"Sign in with OAuth."`
	TokenStorage string   `toml:"token_storage" default:"vault" enum:"vault|memory" doc:"Where tokens are kept."`
	Scopes       []string `toml:"scopes" doc:"Scopes to ask for."`
	CallbackPort int      `toml:"callback_port" default:"18766" max:"65535" doc:"Local port of the callback. 0: any."`
	ClientName   string   `toml:"client_name" default:"zephbot" doc:"Client name for the registration."`
	ClientID     string   `toml:"client_id" doc:"Id of an already registered client."`
	ClientSecret Secret   `toml:"client_secret" doc:"Its secret."`
}
