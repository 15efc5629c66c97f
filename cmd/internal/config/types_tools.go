package config

// Tools is the table [tools].
type Tools struct {
	Enabled                bool                    `toml:"enabled" default:"true" doc:"Offer tools to the model."`
	SummarizeOutput        bool                    `toml:"summarize_output" default:"false" doc:"Summarize output that is too long instead of truncating it."`
	MaxToolCallsPerSession *int                    `toml:"max_tool_calls_per_session" doc:"Maximum number of tool calls of one person in one conversation. Not set: no limit."`
	QuotaUnit              string                  `toml:"quota_unit" default:"batch" enum:"batch|call" doc:"What max_tool_calls_per_session counts."`
	Shell                  Shell                   `toml:"shell" doc:"The tool bash."`
	File                   File                    `toml:"file" doc:"The file tools."`
	Scrape                 Scrape                  `toml:"scrape" doc:"The tools web_scrape and fetch."`
	Web                    Web                     `toml:"web" doc:"Where the tools of the web may go unasked."`
	Egress                 Egress                  `toml:"egress" doc:"The record of every web request."`
	Permissions            map[string][]Permission `toml:"permissions" tools:"name" doc:"Rules by tool name; the first that matches decides; if none does, ask. Absent: derived from blocked_commands and confirm_patterns."`
	Policy                 Policy                  `toml:"policy" doc:"Rules that precede the permissions."`
	Authorization          Authorization           `toml:"authorization" doc:"Rules that follow those of [tools.policy]."`
	Adversarial            AdversarialPolicy       `toml:"adversarial_policy" doc:"A model that judges every call before it runs."`
	Filters                Filters                 `toml:"filters" doc:"Remove noise from command output."`
	Overflow               Overflow                `toml:"overflow" doc:"Storage of output that is too long for the model."`
	ResultCache            ResultCache             `toml:"result_cache" doc:"Answer repeated reading calls from a cache."`
	Dependencies           Dependencies            `toml:"dependencies" doc:"Tools that are offered only after others."`
	TAFC                   TAFC                    `toml:"tafc" doc:"A field for thoughts in the schema of complex tools."`
	Anomaly                Anomaly                 `toml:"anomaly" doc:"Block a tool that fails too often."`
	Diagnostics            Diagnostics             `toml:"diagnostics" doc:"The tool diagnostics."`
	Plan                   Plan                    `toml:"plan" doc:"The tool update_plan, with which a model shows the steps of a longer task."`
	Image                  Image                   `toml:"image" doc:"The tool generate_image, which models have where a provider has an image_model."`
	Retry                  Retry                   `toml:"retry" doc:"Retry reading calls that failed for a temporary reason."`
	Utility                Utility                 `toml:"utility" doc:"Skip calls that are unlikely to help."`
}

// Shell is the table [tools.shell].
type Shell struct {
	Timeout               int         `toml:"timeout" default:"30" min:"1" doc:"Time limit of a command, in seconds."`
	BlockedCommands       []string    `toml:"blocked_commands" doc:"Commands that are denied in addition to the built-in list."`
	AllowedCommands       []string    `toml:"allowed_commands" doc:"Entries to remove from the built-in list of denied commands."`
	AllowedPaths          []string    `toml:"allowed_paths" place:"granted" doc:"Directories in which commands may work, instead of the working directory; \".\" is the working directory. They run in it if it is listed, otherwise in the first entry. Empty: the working directory."`
	AllowNetwork          Reach       `toml:"allow_network" default:"true" enum:"true|false|all" doc:"Network access of commands: nothing (false), the internet but neither this machine, its link nor the metadata service of a cloud (true), or everything (all)."`
	Unasked               string      `toml:"unasked" default:"reading" enum:"reading|confined|nothing" doc:"Which commands run without a question if no rule for bash is configured, where the kernel keeps them from changing anything and from reaching anybody: those that evidently only read (reading), every command, which then asks if that is too little for it (confined), or none (nothing)."`
	AllowReading          bool        `toml:"allow_reading" default:"true" doc:"Older key: false is the same as unasked = \"nothing\"."`
	ConfirmPatterns       []string    `toml:"confirm_patterns" default:"@confirm_patterns" doc:"Text in a command that makes the bot ask first."`
	Preview               bool        `toml:"preview" default:"true" doc:"Run a command without effect before a person is asked about it, where the machine can, so that the question says what it would change."`
	Toolchains            Names       `toml:"toolchains" place:"granted" doc:"Compilers and package managers below the home directory that commands may use and not change: auto (those that are found: rustup, cargo, nvm, fnm, volta, bun, deno, pyenv, uv, pipx, mise, go), none, or a list of their directories. Never files with credentials. Empty: auto in the terminal and editors, none in serve and simulate."`
	EnvBlocklist          []string    `toml:"env_blocklist" default:"ZEPH_,AWS_,AZURE_,GCP_,GOOGLE_,OPENAI_,ANTHROPIC_,HF_,HUGGING" doc:"Prefixes of the names of environment variables that commands do not get. Of the others they get what compilers, package managers and the like need."`
	Sandbox               string      `toml:"sandbox" default:"auto" enum:"auto|required|off" doc:"auto: whatever the machine supports; required: refuse to run without a sandbox."`
	Transactional         bool        `toml:"transactional" default:"false" doc:"Take a snapshot before a command that writes; if the command fails, the model is told what it changed or, with auto_rollback, the changes are undone."`
	TransactionScope      []string    `toml:"transaction_scope" place:"pattern" doc:"Globs of the files in a snapshot. Empty: all."`
	AutoRollback          bool        `toml:"auto_rollback" default:"false" doc:"Restore the snapshot when the command fails."`
	AutoRollbackExitCodes []int       `toml:"auto_rollback_exit_codes" max:"255" doc:"Exit codes that count as failure. Empty: 2 and above."`
	SnapshotRequired      bool        `toml:"snapshot_required" default:"false" doc:"Do not run the command if the snapshot fails."`
	MaxSnapshotBytes      int64       `toml:"max_snapshot_bytes" default:"0" doc:"Maximum size of a snapshot, in bytes. 0: no limit."`
	MaxBackgroundRuns     int         `toml:"max_background_runs" default:"8" doc:"Maximum number of background commands at the same time. One person leaves a fourth of them (at least one) to others. 0: none."`
	BackgroundTimeoutSecs int         `toml:"background_timeout_secs" default:"1800" min:"1" doc:"Time limit of a background command, in seconds."`
	RiskChainThreshold    float64     `toml:"risk_chain_threshold" default:"0.7" idle:"the risk chain" doc:"Total risk at which a chain of commands is blocked."`
	CheckpointsEnabled    bool        `toml:"checkpoints_enabled" default:"false" idle:"undo by checkpoints" doc:"Keep snapshots for undo."`
	Limits                ShellLimits `toml:"limits" doc:"Resource limits of a command."`
	MaxCheckpoints        int         `toml:"max_checkpoints" default:"20" min:"1" idle:"undo by checkpoints" doc:"Maximum number of snapshots that are kept."`
}

// ShellLimits is the table [tools.shell.limits].
type ShellLimits struct {
	Processes   int   `toml:"processes" default:"512" doc:"Maximum number of processes of a command; the command is ended if it exceeds this. 0: no limit."`
	MemoryBytes int64 `toml:"memory_bytes" default:"0" min:"-1" doc:"Maximum memory of all processes of a command together; the command is ended if it exceeds this. 0: half of the machine's memory. -1: no limit."`
	FileBytes   int64 `toml:"file_bytes" default:"1073741824" doc:"Maximum size of a file that a command writes. 0: no limit."`
	OpenFiles   int   `toml:"open_files" default:"4096" doc:"Maximum number of open files of one process. 0: no limit."`
	CPUSeconds  int   `toml:"cpu_seconds" default:"7200" doc:"Maximum CPU time of one process. 0: no limit."`
	OutputBytes int64 `toml:"output_bytes" default:"268435456" doc:"Maximum output of a command; the command is ended if it exceeds this. 0: no limit."`
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
	AllowedPaths []string `toml:"allowed_paths" place:"granted" doc:"Directories that the file tools may use, instead of the working directory; \".\" is the working directory, in Telegram the workspace of the conversation, which in a group is one for each person unless telegram.groups.session is \"chat\". Empty: the working directory."`
	DenyRead     []string `toml:"deny_read" place:"pattern" doc:"Globs of files that neither the file tools nor commands may read; a relative one applies in every directory."`
	AllowRead    []string `toml:"allow_read" place:"pattern" doc:"Globs of exceptions to deny_read."`
}

// Scrape is the table [tools.scrape].
type Scrape struct {
	Timeout            int      `toml:"timeout" default:"15" min:"1" doc:"Time limit of a request, in seconds."`
	MaxBodyBytes       int64    `toml:"max_body_bytes" default:"1048576" min:"1" doc:"Maximum number of bytes of a page that are read."`
	AllowedDomains     []string `toml:"allowed_domains" form:"domain" doc:"Only these domains; \"*.x\" is one label before x. Empty: all public ones."`
	DeniedDomains      []string `toml:"denied_domains" form:"domain" doc:"Domains that are always refused."`
	IPIFilterThreshold float64  `toml:"ipi_filter_threshold" default:"0.6" max:"1" idle:"the injection filter" doc:"Score from which a page is marked as an attempt to instruct the model."`
}

// Web is the table [tools.web].
type Web struct {
	QuietHosts []string `toml:"quiet_hosts" default:"@quiet_hosts" form:"domain" doc:"Domains that are opened unasked whatever the model puts into their address: places whose visits no attacker sees, and which pass nothing on to other addresses. \"*.x\" is one label before x."`
}

// Egress is the table [tools.egress].
type Egress struct {
	Enabled          bool `toml:"enabled" default:"true" doc:"Write a line for every web request."`
	LogBlocked       bool `toml:"log_blocked" default:"true" doc:"Also log refused requests."`
	LogResponseBytes bool `toml:"log_response_bytes" default:"true" doc:"Include the size of the response."`
	LogHostsToTUI    bool `toml:"log_hosts_to_tui" default:"true" idle:"the terminal interface" doc:"Show the hosts in the terminal."`
}

// Permission is an entry of [[tools.permissions.TOOL]].
type Permission struct {
	Pattern string `toml:"pattern" place:"pattern" doc:"Glob for the command or the path, ignoring case. Words NAME=glob before a command name variables: the rule is about commands before which they are set. Required."`
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
	Paths        []string `toml:"paths" place:"pattern" doc:"Globs of paths; one must match. A relative one starts at the working directory."`
	Env          []string `toml:"env" doc:"Environment variables that must be set."`
	TrustLevel   string   `toml:"trust_level" enum:"trusted|verified|quarantined|blocked" doc:"Applies to callers with at least this trust level."`
	ArgsMatch    string   `toml:"args_match" doc:"Regular expression on the arguments, at most 1024 bytes."`
	Capabilities []string `toml:"capabilities" doc:"Reserved; not evaluated."`
	Comment      string   `toml:"comment" doc:"Note that appears in traces."`
}

// AdversarialPolicy is the table [tools.adversarial_policy].
type AdversarialPolicy struct {
	Enabled       bool     `toml:"enabled" default:"false" doc:"Turn the judge on."`
	Provider      string   `toml:"provider" alias:"policy_provider" form:"provider" doc:"Provider that judges. Empty: the primary."`
	BlockOnReject bool     `toml:"block_on_reject" default:"true" doc:"Block calls that it rejects; false: ask a person about them."`
	PolicyFile    string   `toml:"policy_file" place:"obeyed" doc:"Text file with one policy per line."`
	FailOpen      bool     `toml:"fail_open" default:"false" doc:"Let calls pass when the judge does not answer."`
	TimeoutMS     int      `toml:"timeout_ms" default:"3000" min:"1" doc:"Time limit of a judgement, in milliseconds."`
	ExemptTools   []string `toml:"exempt_tools" tools:"name" default:"memory_save,memory_search,read_overflow,load_skill,invoke_skill,schedule_deferred,list_tasks" doc:"Tools that are not judged."`
}

// Filters is the table [tools.filters].
type Filters struct {
	Enabled     bool            `toml:"enabled" default:"true" doc:"Turn the filters on."`
	FiltersPath string          `toml:"filters_path" place:"obeyed" doc:"A filters.toml, or its directory. Empty: next to the config file."`
	Security    FiltersSecurity `toml:"security" doc:"The search for credentials in output."`
}

// FiltersSecurity is the table [tools.filters.security].
type FiltersSecurity struct {
	Enabled       bool     `toml:"enabled" default:"true" doc:"Look for credentials in output."`
	ExtraPatterns []string `toml:"extra_patterns" doc:"Additional regular expressions for credentials."`
}

// Overflow is the table [tools.overflow].
type Overflow struct {
	Threshold        int   `toml:"threshold" default:"50000" min:"1" doc:"Maximum number of characters that the model sees."`
	RetentionDays    int   `toml:"retention_days" default:"7" min:"1" doc:"Days for which the whole output is kept."`
	MaxOverflowBytes int64 `toml:"max_overflow_bytes" default:"10485760" doc:"Maximum size of stored output, in bytes. 0: no limit."`
}

// ResultCache is the table [tools.result_cache].
type ResultCache struct {
	Enabled bool `toml:"enabled" default:"true" doc:"Turn the cache on."`
	TTLSecs int  `toml:"ttl_secs" default:"300" doc:"Seconds for which a result is kept. 0: as long as the conversation."`
}

// Dependencies is the table [tools.dependencies].
type Dependencies struct {
	Enabled       bool                  `toml:"enabled" default:"false" doc:"Turn the gate on."`
	BoostPerDep   float64               `toml:"boost_per_dep" default:"0.15" doc:"Bonus for each preferred tool that ran."`
	MaxTotalBoost float64               `toml:"max_total_boost" default:"0.2" doc:"Maximum bonus."`
	Rules         map[string]Dependency `toml:"rules" tools:"name" doc:"What a tool needs, by its name."`
}

// Dependency is a table [tools.dependencies.rules.TOOL].
type Dependency struct {
	Requires []string `toml:"requires" tools:"name" doc:"Tools that must have run; the tool is hidden until then."`
	Prefers  []string `toml:"prefers" tools:"name" doc:"Tools that, once they have run, make this one more likely to be offered."`
}

// TAFC is the table [tools.tafc].
type TAFC struct {
	Enabled             bool    `toml:"enabled" default:"false" doc:"Turn it on."`
	ComplexityThreshold float64 `toml:"complexity_threshold" default:"0.6" clamp:"0..1" doc:"Tools at least this complex get the field."`
}

// Anomaly is the table [tools.anomaly].
type Anomaly struct {
	Enabled               bool    `toml:"enabled" default:"true" doc:"Turn it on."`
	WindowSize            int     `toml:"window_size" default:"20" min:"1" doc:"Number of a tool's latest calls that are considered."`
	ErrorThreshold        float64 `toml:"error_threshold" default:"0.5" max:"1" doc:"Share of failures that causes a warning."`
	FailureThreshold      float64 `toml:"failure_threshold" alias:"critical_threshold" default:"0.7" max:"1" doc:"Share of failures that is critical."`
	AutoBlock             bool    `toml:"auto_block" default:"true" doc:"Block a tool that reaches failure_threshold."`
	ReasoningModelWarning bool    `toml:"reasoning_model_warning" default:"true" doc:"Name the model in reports of failures if it is a reasoning model."`
}

// Diagnostics is the table [tools.diagnostics].
type Diagnostics struct {
	MaxDiagnostics int `toml:"max_diagnostics" default:"50" min:"1" doc:"Maximum number of findings returned."`
}

// Plan is the table [tools.plan].
type Plan struct {
	Enabled bool `toml:"enabled" default:"true" doc:"Offer the tool to models."`
}

// Image is the table [tools.image].
type Image struct {
	AskAboveUSD float64 `toml:"ask_above_usd" default:"0.1" min:"0" doc:"A picture that may cost more USD than this, or whose price nobody knows, is made only after a person has approved it. 0: every one."`
}

// Retry is the table [tools.retry].
type Retry struct {
	MaxAttempts      int    `toml:"max_attempts" default:"2" doc:"Maximum number of retries of one call."`
	BaseMS           int    `toml:"base_ms" default:"500" doc:"Milliseconds before the first retry, doubled each time."`
	MaxMS            int    `toml:"max_ms" default:"5000" doc:"Maximum wait before a retry, in milliseconds."`
	BudgetSecs       int    `toml:"budget_secs" default:"30" doc:"Time limit for all retries together, in seconds. 0: no limit."`
	ReformatProvider string `toml:"parameter_reformat_provider" form:"provider" doc:"Provider that corrects wrong arguments. Empty: off."`
}

// Utility is the table [tools.utility].
type Utility struct {
	Enabled          bool     `toml:"enabled" default:"false" doc:"Turn the gate on."`
	Threshold        float64  `toml:"threshold" default:"0.1" doc:"Minimum utility of a call."`
	GainWeight       float64  `toml:"gain_weight" default:"1" doc:"Weight of the expected gain."`
	CostWeight       float64  `toml:"cost_weight" default:"0.5" doc:"Weight of the tokens used so far."`
	RedundancyWeight float64  `toml:"redundancy_weight" default:"0.3" doc:"Weight of having made the same call."`
	UncertaintyBonus float64  `toml:"uncertainty_bonus" default:"0.2" doc:"Bonus for early calls."`
	ExemptTools      []string `toml:"exempt_tools" tools:"name" default:"invoke_skill,load_skill" doc:"Tools that always pass."`
	HighGainTools    []string `toml:"high_gain_tools" tools:"name" doc:"Tools whose expected gain is always high."`
	UtilityWindow    int      `toml:"utility_window" default:"0" doc:"Number of latest calls that are considered. 0: the whole turn."`
}
