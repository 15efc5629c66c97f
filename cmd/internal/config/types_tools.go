package config

// Tools is the table [tools].
type Tools struct {
	Enabled                bool                    `toml:"enabled" default:"true" doc:"Offer tools to the model at all."`
	SummarizeOutput        bool                    `toml:"summarize_output" default:"false" doc:"Summarise output that is too long instead of cutting it."`
	MaxToolCallsPerSession *int                    `toml:"max_tool_calls_per_session" doc:"Tool calls of one person in one conversation. Not set: no limit."`
	QuotaUnit              string                  `toml:"quota_unit" default:"batch" enum:"batch|call" doc:"What max_tool_calls_per_session counts."`
	Shell                  Shell                   `toml:"shell" doc:"The tool bash."`
	File                   File                    `toml:"file" doc:"The file tools."`
	Scrape                 Scrape                  `toml:"scrape" doc:"The tools web_scrape and fetch."`
	Egress                 Egress                  `toml:"egress" doc:"The record of every web request."`
	Permissions            map[string][]Permission `toml:"permissions" tools:"name" doc:"Rules by tool name; the first that matches decides, else ask. Absent: made of blocked_commands and confirm_patterns."`
	Policy                 Policy                  `toml:"policy" doc:"Rules that stand before the permissions."`
	Authorization          Authorization           `toml:"authorization" doc:"Rules that follow those of [tools.policy]."`
	Adversarial            AdversarialPolicy       `toml:"adversarial_policy" doc:"A model that judges every call before it runs."`
	Filters                Filters                 `toml:"filters" doc:"Take the noise out of command output."`
	Overflow               Overflow                `toml:"overflow" doc:"Where output goes that is too long for the model."`
	ResultCache            ResultCache             `toml:"result_cache" doc:"Answer a repeated reading call from memory."`
	Dependencies           Dependencies            `toml:"dependencies" doc:"Tools that are offered only after others."`
	TAFC                   TAFC                    `toml:"tafc" doc:"A field for thoughts in the schema of complex tools."`
	Anomaly                Anomaly                 `toml:"anomaly" doc:"Block a tool that fails too often."`
	Diagnostics            Diagnostics             `toml:"diagnostics" idle:"the diagnostics tool" doc:"The tool diagnostics."`
	Retry                  Retry                   `toml:"retry" doc:"Repeat reading calls that failed for a passing reason."`
	Utility                Utility                 `toml:"utility" doc:"Skip calls that promise little."`
}

// Shell is the table [tools.shell].
type Shell struct {
	Timeout               int         `toml:"timeout" default:"30" min:"1" doc:"Seconds a command may run."`
	BlockedCommands       []string    `toml:"blocked_commands" doc:"Commands that are denied besides the built-in list."`
	AllowedCommands       []string    `toml:"allowed_commands" doc:"Entries to take off the built-in list of denied commands."`
	AllowedPaths          []string    `toml:"allowed_paths" place:"granted" doc:"Directories commands may work in, instead of the working directory; \".\" is the working directory. They run in it when it is among them, else in the first. Empty: the working directory."`
	AllowNetwork          Reach       `toml:"allow_network" default:"true" enum:"true|false|all" doc:"What commands may reach: nothing (false), the internet but neither this machine, its link nor the metadata service of a cloud (true), or everything (all)."`
	AllowReading          bool        `toml:"allow_reading" default:"true" doc:"Run harmless reading commands without asking, where the sandbox is active and no bash rule is configured."`
	ConfirmPatterns       []string    `toml:"confirm_patterns" default:"@confirm_patterns" doc:"Texts in a command that make the bot ask first."`
	EnvBlocklist          []string    `toml:"env_blocklist" default:"ZEPH_,AWS_,AZURE_,GCP_,GOOGLE_,OPENAI_,ANTHROPIC_,HF_,HUGGING" doc:"Beginnings of environment variable names that commands do not get."`
	Sandbox               string      `toml:"sandbox" default:"auto" enum:"auto|required|off" doc:"auto: what the machine can do; required: refuse to run without."`
	Transactional         bool        `toml:"transactional" default:"false" doc:"Take a snapshot before a command that writes; when the command fails, the model is told what it left behind, or with auto_rollback it is undone."`
	TransactionScope      []string    `toml:"transaction_scope" place:"pattern" doc:"Globs of the files in a snapshot. Empty: all."`
	AutoRollback          bool        `toml:"auto_rollback" default:"false" doc:"Restore the snapshot when the command fails."`
	AutoRollbackExitCodes []int       `toml:"auto_rollback_exit_codes" max:"255" doc:"Exit codes that count as failure. Empty: 2 and above."`
	SnapshotRequired      bool        `toml:"snapshot_required" default:"false" doc:"Do not run when the snapshot fails."`
	MaxSnapshotBytes      int64       `toml:"max_snapshot_bytes" default:"0" doc:"Largest snapshot in bytes. 0: no limit."`
	MaxBackgroundRuns     int         `toml:"max_background_runs" default:"8" doc:"Commands in the background at the same time. 0: none."`
	BackgroundTimeoutSecs int         `toml:"background_timeout_secs" default:"1800" min:"1" doc:"Seconds a command in the background may run."`
	RiskChainThreshold    float64     `toml:"risk_chain_threshold" default:"0.7" idle:"the risk chain" doc:"Sum of risks at which a chain of commands is blocked."`
	CheckpointsEnabled    bool        `toml:"checkpoints_enabled" default:"false" idle:"undo by checkpoints" doc:"Keep snapshots for undo."`
	Limits                ShellLimits `toml:"limits" doc:"What a command may use at most."`
	MaxCheckpoints        int         `toml:"max_checkpoints" default:"20" min:"1" idle:"undo by checkpoints" doc:"Snapshots that are kept."`
}

// ShellLimits is the table [tools.shell.limits].
type ShellLimits struct {
	Processes   int   `toml:"processes" default:"512" doc:"Processes of a command at one time; over it the command is ended. 0: no limit."`
	MemoryBytes int64 `toml:"memory_bytes" default:"0" min:"-1" doc:"Memory of all processes of a command together; over it the command is ended. 0: half of what this machine has. -1: no limit."`
	FileBytes   int64 `toml:"file_bytes" default:"1073741824" doc:"Largest file that a command may write. 0: no limit."`
	OpenFiles   int   `toml:"open_files" default:"4096" doc:"Files that one process may have open. 0: no limit."`
	CPUSeconds  int   `toml:"cpu_seconds" default:"7200" doc:"Processor time of one process. 0: no limit."`
	OutputBytes int64 `toml:"output_bytes" default:"268435456" doc:"What a command may print; over it the command is ended. 0: no limit."`
}

// Reach is what a command may reach over the network.
type Reach string

// Reaches: nothing, the internet without this machine and its local network, everything.
const (
	ReachNone     Reach = "false"
	ReachInternet Reach = "true"
	ReachAll      Reach = "all"
)

// File is the table [tools.file].
type File struct {
	AllowedPaths []string `toml:"allowed_paths" place:"granted" doc:"Directories the file tools may use, instead of the working directory; \".\" is the working directory, in Telegram the workspace of the chat. Empty: the working directory."`
	DenyRead     []string `toml:"deny_read" place:"pattern" doc:"Globs of files that may not be read, by the file tools or by commands; a relative one holds in every directory."`
	AllowRead    []string `toml:"allow_read" place:"pattern" doc:"Globs of exceptions from deny_read."`
}

// Scrape is the table [tools.scrape].
type Scrape struct {
	Timeout            int      `toml:"timeout" default:"15" min:"1" doc:"Seconds a request may take."`
	MaxBodyBytes       int64    `toml:"max_body_bytes" default:"1048576" min:"1" doc:"Bytes of a page that are read."`
	AllowedDomains     []string `toml:"allowed_domains" form:"domain" doc:"Only these domains; \"*.x\" is one label before x. Empty: all public ones."`
	DeniedDomains      []string `toml:"denied_domains" form:"domain" doc:"Never these domains."`
	IPIFilterThreshold float64  `toml:"ipi_filter_threshold" default:"0.6" max:"1" idle:"the injection filter" doc:"Score at which a page is marked as an attempt to instruct the model."`
}

// Egress is the table [tools.egress].
type Egress struct {
	Enabled          bool `toml:"enabled" default:"true" doc:"Write a line for every web request."`
	LogBlocked       bool `toml:"log_blocked" default:"true" doc:"Also for refused requests."`
	LogResponseBytes bool `toml:"log_response_bytes" default:"true" doc:"With the size of the answer."`
	LogHostsToTUI    bool `toml:"log_hosts_to_tui" default:"true" idle:"the terminal interface" doc:"Show the hosts in the terminal."`
}

// Permission is an entry of [[tools.permissions.TOOL]].
type Permission struct {
	Pattern string `toml:"pattern" place:"pattern" doc:"Glob on the command or the path, without regard to case. Required."`
	Action  string `toml:"action" enum:"allow|ask|deny" doc:"What happens when it matches. Required."`
}

// Policy is the table [tools.policy].
type Policy struct {
	Enabled       bool   `toml:"enabled" default:"false" doc:"Turn the rules on."`
	DefaultEffect string `toml:"default_effect" default:"deny" enum:"allow|deny" doc:"What happens when no rule matches."`
	Evaluation    string `toml:"evaluation" default:"first_match" enum:"first_match|deny_wins" doc:"The first rule that matches decides, or any deny does."`
	File          string `toml:"policy_file" place:"obeyed" doc:"TOML file with [[rules]] that replaces the rules here; at most 256 KiB."`
	Provider      string `toml:"policy_provider" form:"provider" doc:"Provider for checks by a model. Empty: none."`
	Rules         []Rule `toml:"rules" doc:"The rules, at most 256."`
}

// Authorization is the table [tools.authorization] (OAP).
type Authorization struct {
	Enabled bool   `toml:"enabled" default:"false" doc:"Turn the rules on."`
	Rules   []Rule `toml:"rules" doc:"The rules; those of [tools.policy] come first."`
}

// Rule is an entry of [[tools.policy.rules]] and [[tools.authorization.rules]]; all conditions must hold.
type Rule struct {
	Effect       string   `toml:"effect" alias:"action" enum:"allow|deny" doc:"What happens when the rule matches. Required."`
	Tool         Names    `toml:"tool" tools:"glob" alias:"tools" doc:"Glob of the tool name, or a list of them. Required."`
	Paths        []string `toml:"paths" place:"pattern" doc:"Globs of paths; one must match. A relative one is meant from the working directory."`
	Env          []string `toml:"env" doc:"Environment variables that must be set."`
	TrustLevel   string   `toml:"trust_level" enum:"trusted|verified|quarantined|blocked" doc:"Holds for callers trusted at least this much."`
	ArgsMatch    string   `toml:"args_match" doc:"Regular expression on the arguments, at most 1024 bytes."`
	Capabilities []string `toml:"capabilities" doc:"Reserved; not evaluated."`
	Comment      string   `toml:"comment" doc:"Note that appears in traces."`
}

// AdversarialPolicy is the table [tools.adversarial_policy].
type AdversarialPolicy struct {
	Enabled       bool     `toml:"enabled" default:"false" doc:"Turn the judge on."`
	Provider      string   `toml:"provider" alias:"policy_provider" form:"provider" doc:"Provider that judges. Empty: the primary."`
	BlockOnReject bool     `toml:"block_on_reject" default:"true" doc:"Block what it rejects; false: ask a person about it."`
	PolicyFile    string   `toml:"policy_file" place:"obeyed" doc:"Text file with one policy a line."`
	FailOpen      bool     `toml:"fail_open" default:"false" doc:"Let calls pass when the judge does not answer."`
	TimeoutMS     int      `toml:"timeout_ms" default:"3000" min:"1" doc:"Milliseconds it may take."`
	ExemptTools   []string `toml:"exempt_tools" tools:"name" default:"memory_save,memory_search,read_overflow,load_skill,invoke_skill,schedule_deferred,list_tasks" doc:"Tools that are not judged."`
}

// Filters is the table [tools.filters].
type Filters struct {
	Enabled     bool            `toml:"enabled" default:"true" doc:"Turn the filters on."`
	FiltersPath string          `toml:"filters_path" place:"obeyed" doc:"A filters.toml, or the directory that holds it. Empty: beside the config file."`
	Security    FiltersSecurity `toml:"security" doc:"The search for credentials in output."`
}

// FiltersSecurity is the table [tools.filters.security].
type FiltersSecurity struct {
	Enabled       bool     `toml:"enabled" default:"true" doc:"Look for credentials in output."`
	ExtraPatterns []string `toml:"extra_patterns" doc:"More regular expressions that mean a credential."`
}

// Overflow is the table [tools.overflow].
type Overflow struct {
	Threshold        int   `toml:"threshold" default:"50000" min:"1" doc:"Characters the model sees at most."`
	RetentionDays    int   `toml:"retention_days" default:"7" min:"1" doc:"Days the whole output is kept."`
	MaxOverflowBytes int64 `toml:"max_overflow_bytes" default:"10485760" doc:"Largest output that is kept, in bytes. 0: no limit."`
}

// ResultCache is the table [tools.result_cache].
type ResultCache struct {
	Enabled bool `toml:"enabled" default:"true" doc:"Turn the cache on."`
	TTLSecs int  `toml:"ttl_secs" default:"300" doc:"Seconds a result is kept. 0: as long as the conversation."`
}

// Dependencies is the table [tools.dependencies].
type Dependencies struct {
	Enabled       bool                  `toml:"enabled" default:"false" doc:"Turn the gate on."`
	BoostPerDep   float64               `toml:"boost_per_dep" default:"0.15" doc:"Bonus for each preferred tool that ran."`
	MaxTotalBoost float64               `toml:"max_total_boost" default:"0.2" doc:"Largest bonus."`
	Rules         map[string]Dependency `toml:"rules" tools:"name" doc:"What a tool needs, by its name."`
}

// Dependency is a table [tools.dependencies.rules.TOOL].
type Dependency struct {
	Requires []string `toml:"requires" tools:"name" doc:"Tools that must have run; the tool is hidden until then."`
	Prefers  []string `toml:"prefers" tools:"name" doc:"Tools that make this one more likely when they ran."`
}

// TAFC is the table [tools.tafc].
type TAFC struct {
	Enabled             bool    `toml:"enabled" default:"false" doc:"Turn it on."`
	ComplexityThreshold float64 `toml:"complexity_threshold" default:"0.6" clamp:"0..1" doc:"Tools at least this complex get the field."`
}

// Anomaly is the table [tools.anomaly].
type Anomaly struct {
	Enabled               bool    `toml:"enabled" default:"true" doc:"Turn it on."`
	WindowSize            int     `toml:"window_size" default:"20" min:"1" doc:"Calls of a tool that are looked at."`
	ErrorThreshold        float64 `toml:"error_threshold" default:"0.5" max:"1" doc:"Share of failures that gives a warning."`
	FailureThreshold      float64 `toml:"failure_threshold" alias:"critical_threshold" default:"0.7" max:"1" doc:"Share of failures that is critical."`
	AutoBlock             bool    `toml:"auto_block" default:"true" doc:"Block a tool that is critical."`
	ReasoningModelWarning bool    `toml:"reasoning_model_warning" default:"true" doc:"Say when a reasoning model makes the failures."`
}

// Diagnostics is the table [tools.diagnostics].
type Diagnostics struct {
	MaxDiagnostics int `toml:"max_diagnostics" default:"50" min:"1" doc:"Most findings that are returned."`
}

// Retry is the table [tools.retry].
type Retry struct {
	MaxAttempts      int    `toml:"max_attempts" default:"2" doc:"Repetitions of one call."`
	BaseMS           int    `toml:"base_ms" default:"500" doc:"Milliseconds before the first repetition, doubled each time."`
	MaxMS            int    `toml:"max_ms" default:"5000" doc:"Longest wait in milliseconds."`
	BudgetSecs       int    `toml:"budget_secs" default:"30" doc:"Seconds all repetitions may take. 0: no limit."`
	ReformatProvider string `toml:"parameter_reformat_provider" form:"provider" doc:"Provider that mends wrong arguments. Empty: off."`
}

// Utility is the table [tools.utility].
type Utility struct {
	Enabled          bool     `toml:"enabled" default:"false" doc:"Turn the gate on."`
	Threshold        float64  `toml:"threshold" default:"0.1" doc:"Least utility of a call."`
	GainWeight       float64  `toml:"gain_weight" default:"1" doc:"Weight of the expected gain."`
	CostWeight       float64  `toml:"cost_weight" default:"0.5" doc:"Weight of the tokens used so far."`
	RedundancyWeight float64  `toml:"redundancy_weight" default:"0.3" doc:"Weight of having made the same call."`
	UncertaintyBonus float64  `toml:"uncertainty_bonus" default:"0.2" doc:"Bonus of early calls."`
	ExemptTools      []string `toml:"exempt_tools" tools:"name" default:"invoke_skill,load_skill" doc:"Tools that always pass."`
	HighGainTools    []string `toml:"high_gain_tools" tools:"name" doc:"Tools that always promise much."`
	UtilityWindow    int      `toml:"utility_window" default:"0" doc:"Calls that are looked back at. 0: the whole turn."`
}
