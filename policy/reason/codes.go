package reason

// Code says which reason it is. Codes are stored and logged: one that was released keeps its name and its arguments.
type Code string

// Codes, each with its English sentence in english.
const (
	SourceBlocked         Code = "source_blocked"
	SourceQuarantined     Code = "source_quarantined"
	CommandNever          Code = "command_never"
	CommandBlocked        Code = "command_blocked"
	NetworkOff            Code = "network_off"
	ReadsInside           Code = "reads_inside"
	TriedHarmless         Code = "tried_harmless"
	Tried                 Code = "tried"
	WantedMore            Code = "wanted_more"
	WantedRefused         Code = "wanted_refused"
	WantedNetwork         Code = "wanted_network"
	WantedWrite           Code = "wanted_write"
	WantedCreate          Code = "wanted_create"
	WantedDelete          Code = "wanted_delete"
	WantedMove            Code = "wanted_move"
	WantedProperties      Code = "wanted_properties"
	AutonomyFull          Code = "autonomy_full"
	AutonomyReadonly      Code = "autonomy_readonly"
	WayNetwork            Code = "way_network"
	WayServer             Code = "way_server"
	WayPages              Code = "way_pages"
	WayAddress            Code = "way_address"
	ContentFlagged        Code = "content_flagged"
	MemoryForeign         Code = "memory_foreign"
	PolicyDenies          Code = "policy_denies"
	PolicyDefault         Code = "policy_default"
	RuleDeniesUse         Code = "rule_denies_use"
	RuleDenies            Code = "rule_denies"
	RuleAllows            Code = "rule_allows"
	RuleAsks              Code = "rule_asks"
	RuleAsksThis          Code = "rule_asks_this"
	NoRule                Code = "no_rule"
	NoRuleThis            Code = "no_rule_this"
	NoRuleOn              Code = "no_rule_on"
	NoRuleOnThis          Code = "no_rule_on_this"
	CostsMore             Code = "costs_more"
	NoApprovalNeeded      Code = "no_approval_needed"
	MayUseDenied          Code = "may_use_denied"
	ReadAsks              Code = "read_asks"
	ShowsRepository       Code = "shows_repository"
	ShowsRepositoryThis   Code = "shows_repository_this"
	MayReadDenied         Code = "may_read_denied"
	MayReadDeniedThis     Code = "may_read_denied_this"
	FilesUncertain        Code = "files_uncertain"
	FilesUncertainThis    Code = "files_uncertain_this"
	RunsUncertain         Code = "runs_uncertain"
	RunsUncertainThis     Code = "runs_uncertain_this"
	GrantedSession        Code = "granted_session"
	GrantedAlways         Code = "granted_always"
	GrantSpent            Code = "grant_spent"
	OptionUnnamed         Code = "option_unnamed"
	OptionUnnamedThis     Code = "option_unnamed_this"
	VariableUnnamed       Code = "variable_unnamed"
	VariableUnnamedThis   Code = "variable_unnamed_this"
	RedirectionWrites     Code = "redirection_writes"
	RedirectionWritesThis Code = "redirection_writes_this"
	ConfirmPattern        Code = "confirm_pattern"
	StartupFile           Code = "startup_file"
	StartupFileThis       Code = "startup_file_this"
	CallsUsedUp           Code = "calls_used_up"
	ToolHidden            Code = "tool_hidden"
	ToolNotOfPersona      Code = "tool_not_of_persona"
	ToolNotOffered        Code = "tool_not_offered"
	JudgeFailed           Code = "judge_failed"
	JudgeRefuses          Code = "judge_refuses"
	This                  Code = "this"
	Name                  Code = "name"
	UseTool               Code = "use_tool"
	VerbRead              Code = "verb_read"
	VerbWrite             Code = "verb_write"
	VerbEdit              Code = "verb_edit"
	VerbCreate            Code = "verb_create"
	VerbDelete            Code = "verb_delete"
	VerbMove              Code = "verb_move"
	VerbCopy              Code = "verb_copy"
	FromCommand           Code = "from_command"
	FromBackground        Code = "from_a_command_in_the_background"
	FromFile              Code = "from_file"
	FromFiles             Code = "from_files"
	FromNames             Code = "from_names_of_files"
	FromSearch            Code = "from_web_search"
	FromMemory            Code = "from_memory"
	FromForwarded         Code = "from_a_forwarded_message"
	FromQuoted            Code = "from_a_quoted_message"
	FromTalk              Code = "from_what_was_said_in_the_group"
	FromAttached          Code = "from_an_attached_file"
	FromDocument          Code = "from_document"
	FromSpeech            Code = "from_a_recording"
	FromRecording         Code = "from_recording"
	FromItem              Code = "from_item"
	FromHook              Code = "from_hook"
	FromAgent             Code = "from_sub_agent"
	FromSummary           Code = "from_the_summary_of_the_conversation"
	FromSeveral           Code = "from_several_sources"
	WordUnknown           Code = "word_unknown"
	WordsUnknown          Code = "words_unknown"
	GoesBack              Code = "goes_back"
	GoesUnknown           Code = "goes_unknown"
	GoesFar               Code = "goes_far"
	FilesMany             Code = "files_many"
	DirectoryUnknown      Code = "directory_unknown"
	TextUnparsed          Code = "text_unparsed"
	FilesUnparsed         Code = "files_unparsed"
	TextLong              Code = "text_long"
	TextNul               Code = "text_nul"
	TextBrackets          Code = "text_brackets"
	TextReturn            Code = "text_return"
	TextEncoding          Code = "text_encoding"
	TextReadings          Code = "text_readings"
	TextUnplain           Code = "text_unplain"
	TextNested            Code = "text_nested"
	GivenUnparsed         Code = "given_unparsed"
	GivenUnknown          Code = "given_unknown"
	NameExpands           Code = "name_expands"
	NameEmpty             Code = "name_empty"
	ArithmeticRuns        Code = "arithmetic_runs"
	ArrayDeclared         Code = "array_declared"
	ArrayValue            Code = "array_value"
	OptionDoes            Code = "option_does"
	OptionsUnread         Code = "options_unread"
	OptionExpands         Code = "option_expands"
	OptionsUnknown        Code = "options_unknown"
	OptionReading         Code = "option_reading"
	ShellOption           Code = "shell_option"
	ShellGrammar          Code = "shell_grammar"
	ShellStartup          Code = "shell_startup"
	ShellTextless         Code = "shell_textless"
	ShellFile             Code = "shell_file"
	ShellInput            Code = "shell_input"
	CommandsBehind        Code = "commands_behind"
	Assignment            Code = "assignment"
	ProgramUnknown        Code = "program_unknown"
	SourcesFile           Code = "sources_file"
	ChangesMeaning        Code = "changes_meaning"
	SetsCalculated        Code = "sets_calculated"
	SetsRuns              Code = "sets_runs"
	SetsReading           Code = "sets_reading"
	SetsPrograms          Code = "sets_programs"
	VariableUnknown       Code = "variable_unknown"
	VariableRenamed       Code = "variable_renamed"
	FunctionExported      Code = "function_exported"
	NameRuns              Code = "name_runs"
	RunsCode              Code = "runs_code"
	TestUnknown           Code = "test_unknown"
	RedirectionNetwork    Code = "redirection_network"
	RedirectionUnknown    Code = "redirection_unknown"

	// Notes on cards: where a call runs, with which limits.
	Note                Code = "note"
	RememberedAlone     Code = "remembered_alone"
	RememberedGroup     Code = "remembered_group"
	DeletedAlone        Code = "deleted_alone"
	DeletedGroup        Code = "deleted_group"
	SubAgent            Code = "sub_agent"
	AgentBudget         Code = "agent_budget"
	AgentMoney          Code = "agent_money"
	CostsUpTo           Code = "costs_up_to"
	CostUnknown         Code = "cost_unknown"
	ChangesPicture      Code = "changes_picture"
	InTerminal          Code = "in_terminal"
	InWorkspace         Code = "in_workspace"
	InAllowedPath       Code = "in_allowed_path"
	WithNetwork         Code = "with_network"
	WithoutNetwork      Code = "without_network"
	InBackground        Code = "in_background"
	NewFile             Code = "new_file"
	ReplacesByte        Code = "replaces_byte"
	ReplacesBytes       Code = "replaces_bytes"
	FileSize            Code = "file_size"
	IsLink              Code = "is_link"
	IsSpecial           Code = "is_special"
	IsDirectory         Code = "is_directory"
	EmptyDirectory      Code = "empty_directory"
	HoldsFiles          Code = "holds_files"
	HoldsDirectories    Code = "holds_directories"
	HoldsOthers         Code = "holds_others"
	EntriesAtLeast      Code = "entries_at_least"
	EveryOccurrence     Code = "every_occurrence"
	WithCaption         Code = "with_caption"
	AsksHost            Code = "asks_host"
	OfConversation      Code = "of_conversation"
	OfServer            Code = "of_server"
	TrustTrusted        Code = "trust_trusted"
	TrustUntrusted      Code = "trust_untrusted"
	TrustSandboxed      Code = "trust_sandboxed"
	MayAskModel         Code = "may_ask_model"
	ServerSays          Code = "server_says"
	ServerSaysDoubtful  Code = "server_says_doubtful"
	HintReads           Code = "hint_reads"
	HintChanges         Code = "hint_changes"
	HintDestroys        Code = "hint_destroys"
	HintDestroysNothing Code = "hint_destroys_nothing"
	HintRepeatable      Code = "hint_repeatable"
	HintOpen            Code = "hint_open"
	HintClosed          Code = "hint_closed"

	// Why a stage or a tool refuses a call.
	ToolNotGiven         Code = "tool_not_given"
	AgentDelegates       Code = "agent_delegates"
	NoConversation       Code = "no_conversation"
	ToolFails            Code = "tool_fails"
	CallsFailed          Code = "calls_failed"
	NobodyToAsk          Code = "nobody_to_ask"
	NobodyAnswers        Code = "nobody_answers"
	JudgeRefused         Code = "judge_refused"
	JudgeAbsent          Code = "judge_absent"
	OffLimits            Code = "off_limits"
	MayNotRead           Code = "may_not_read"
	OutsideDirectory     Code = "outside_directory"
	LinkedNotWritten     Code = "linked_not_written"
	LinkedNotRead        Code = "linked_not_read"
	LinkLeadsOut         Code = "link_leads_out"
	HoldsDirectory       Code = "holds_directory"
	HoldsService         Code = "holds_service"
	NotCopied            Code = "not_copied"
	CopyMayNotRead       Code = "copy_may_not_read"
	CopyNotRegular       Code = "copy_not_regular"
	CopyLeadsOut         Code = "copy_leads_out"
	HidesCredential      Code = "hides_credential"
	DirectoryReplaced    Code = "directory_replaced"
	DirectoryMoved       Code = "directory_moved"
	FilesChanged         Code = "files_changed"
	ShuttingDown         Code = "shutting_down"
	RunsFull             Code = "runs_full"
	RunsFullForOne       Code = "runs_full_for_one"
	CallImpossible       Code = "call_impossible"
	CallUnpermitted      Code = "call_unpermitted"
	ApprovalDeclined     Code = "approval_declined"
	ApprovalExpired      Code = "approval_expired"
	ApprovalCancelled    Code = "approval_cancelled"
	ToolsOff             Code = "tools_off"
	CallChanged          Code = "call_changed"
	FileChangedApproved  Code = "file_changed_approved"
	FilesChangedApproved Code = "files_changed_approved"
	AuditUnwritable      Code = "audit_unwritable"
	IndexUnreadable      Code = "index_unreadable"
	SpaceUsedUp          Code = "space_used_up"
	DiskReserved         Code = "disk_reserved"
	SkillChanged         Code = "skill_changed"
	SkillUnaccepted      Code = "skill_unaccepted"
	ScheduleElsewhere    Code = "schedule_elsewhere"
	ScheduleNowhere      Code = "schedule_nowhere"
	ScheduleOutside      Code = "schedule_outside"
	SchedulePeople       Code = "schedule_people"
	ScheduleMade         Code = "schedule_made"
	ScheduleFullForOne   Code = "schedule_full_for_one"
	ScheduleFull         Code = "schedule_full"
	TaskOfOther          Code = "task_of_other"

	// Why an address is refused.
	URLRefused          Code = "url_refused"
	AddressPrivate      Code = "address_private"
	URLEmpty            Code = "url_empty"
	URLLong             Code = "url_long"
	URLCharacters       Code = "url_characters"
	URLUnparsed         Code = "url_unparsed"
	URLSchemeless       Code = "url_schemeless"
	URLScheme           Code = "url_scheme"
	URLHostless         Code = "url_hostless"
	URLUser             Code = "url_user"
	URLPort             Code = "url_port"
	URLUnusualAddress   Code = "url_unusual_address"
	URLUnusualNumbers   Code = "url_unusual_numbers"
	HostInvalid         Code = "host_invalid"
	HostWithoutDomain   Code = "host_without_domain"
	HostPrivate         Code = "host_private"
	DeniedDomainsWrong  Code = "denied_domains_wrong"
	AllowedDomainsWrong Code = "allowed_domains_wrong"
	DomainDenied        Code = "domain_denied"
	DomainUnlisted      Code = "domain_unlisted"

	// What is wrong with a question about the rules.
	NamesNoTool   Code = "names_no_tool"
	MatchesNoTool Code = "matches_no_tool"
	NamesNoToolOf Code = "names_no_tool_of"
	NamesNoServer Code = "names_no_server"
	DidYouMean    Code = "did_you_mean"
	OrServerTool  Code = "or_server_tool"
	NotJSON       Code = "not_json"
	NotJSONObject Code = "not_json_object"

	// What the kernel enforces.
	NoSandbox        Code = "no_sandbox"
	Sandbox          Code = "sandbox"
	SandboxComplete  Code = "sandbox_complete"
	SandboxPartial   Code = "sandbox_partial"
	SandboxNone      Code = "sandbox_none"
	SandboxHas       Code = "sandbox_has"
	SandboxLacks     Code = "sandbox_lacks"
	SandboxWhy       Code = "sandbox_why"
	SandboxRoot      Code = "sandbox_root"
	SandboxProcesses Code = "sandbox_processes"
	SandboxModes     Code = "sandbox_modes"
	SandboxTable     Code = "sandbox_table"
	SandboxNetwork   Code = "sandbox_network"
	SandboxSockets   Code = "sandbox_sockets"
	SandboxReading   Code = "sandbox_reading"
	SandboxLinux     Code = "sandbox_linux"
	SandboxHelper    Code = "sandbox_helper"
	SandboxOff       Code = "sandbox_off"

	// What is wrong with the database, and what to do.
	DiskFull         Code = "disk_full"
	DatabaseReadOnly Code = "database_read_only"
	DatabaseDamaged  Code = "database_damaged"
	DatabaseForeign  Code = "database_foreign"
	DiskFails        Code = "disk_fails"
	DatabaseUnopened Code = "database_unopened"
	DatabaseDenied   Code = "database_denied"
	DatabaseBusy     Code = "database_busy"
	MemoryShort      Code = "memory_short"
	DatabaseFailed   Code = "database_failed"
	DatabaseLost     Code = "database_lost"

	// Why something with an MCP server does not work.
	ServerTaken        Code = "server_taken"
	URLFollowed        Code = "url_followed"
	ServerConfigured   Code = "server_configured"
	SignInUnasked      Code = "sign_in_unasked"
	SignInUnwanted     Code = "sign_in_unwanted"
	SignInWaits        Code = "sign_in_waits"
	ServerBusy         Code = "server_busy"
	ProgramMissing     Code = "program_missing"
	ServiceStops       Code = "service_stops"
	ServerUnapproved   Code = "server_unapproved"
	OfThisServer       Code = "of_this_server"
	ServerToolDenied   Code = "server_tool_denied"
	ServerToolUnlisted Code = "server_tool_unlisted"
	ServerCallsFull    Code = "server_calls_full"
	ServerScopeless    Code = "server_scopeless"
	ServerToolOther    Code = "server_tool_other"
	ServerMoved        Code = "server_moved"
	ServersFull        Code = "servers_full"
	ServerPrivate      Code = "server_private"
	SignInPort         Code = "sign_in_port"
	SignInAddress      Code = "sign_in_address"
	ProgramUnstarted   Code = "program_unstarted"
	ProgramsFromChat   Code = "programs_from_chat"
	ProgramsNone       Code = "programs_none"
	ProgramsListed     Code = "programs_listed"
	ProgramUnnamed     Code = "program_unnamed"
	ProgramPath        Code = "program_path"
	ProgramUnlisted    Code = "program_unlisted"
	ServerUnnamed      Code = "server_unnamed"
	ServerNameLong     Code = "server_name_long"
	ServerNameForm     Code = "server_name_form"
	CallerMissing      Code = "caller_missing"
	CallerUnprintable  Code = "caller_unprintable"
)

// english returns the sentences of all codes. %s are the arguments, in their order; {of} is the reason inside it, {:of}
// the same behind a colon, or nothing; {} is a detail that has no translation.
func english() map[Code]string {
	return map[Code]string{
		SourceBlocked:     "The source of this call is blocked.",
		SourceQuarantined: "The source of this call is quarantined and may only use tools that read.",
		CommandNever:      "The command %s is never allowed here.",
		CommandBlocked:    "The command %s is blocked by the operator.",
		NetworkOff:        "Network commands such as %s are switched off.",
		ReadsInside:       "The command only reads inside the allowed paths.",
		TriedHarmless:     "The command is tried where it can change nothing.",
		Tried:             "It was tried where it can change nothing, and {of}.",
		WantedMore:        "needed more than a command gets that nobody was asked about",
		WantedRefused:     "failed there",
		WantedNetwork:     "wanted to reach the network",
		WantedWrite:       "wanted to write %s",
		WantedCreate:      "wanted to create %s",
		WantedDelete:      "wanted to delete %s",
		WantedMove:        "wanted to move %s",
		WantedProperties:  "wanted to change the properties of %s",
		AutonomyFull:      "The autonomy level is full, so nothing is asked.",
		AutonomyReadonly:  "The autonomy level is readonly: only files and web pages may be read.",
		WayNetwork:        "After text from %s, the network command %s may carry something of this conversation out.",
		WayServer:         "After text from %s, this may carry something of this conversation to the server %s.",
		WayPages: "This turn has opened several pages of %s; which ones are chosen may carry something of " +
			"this conversation there.",
		WayAddress: "I put this address together myself, after text from %s; it may carry something of this " +
			"conversation to %s.",
		ContentFlagged: "Content from %s tried to give instructions in this conversation, so this needs a " +
			"person's approval.",
		MemoryForeign: "This conversation contains text from %s, and these are not your own words, so keeping " +
			"them needs a person's approval.",
		PolicyDenies:     "A policy rule denies this.",
		PolicyDefault:    "No policy rule allows this.",
		RuleDeniesUse:    "A rule denies {of} %s.",
		RuleDenies:       "A rule denies %s.",
		RuleAllows:       "A rule allows %s.",
		RuleAsks:         "A rule wants a person to approve %s.",
		RuleAsksThis:     "A rule wants a person to approve this.",
		NoRule:           "No rule allows %s.",
		NoRuleThis:       "No rule allows this.",
		NoRuleOn:         "No rule allows {of} %s.",
		CostsMore:        "This may cost more than is spent here without a question.",
		NoApprovalNeeded: "This tool needs no approval.",
		MayUseDenied:     "This may include {of} %s, which a rule denies.",
		ReadAsks:         "To read %s needs a person's approval.",
		ShowsRepository:  "%s shows what the repository keeps, also of files that may not be read.",
		MayReadDenied:    "%s may read files that need approval or may not be read.",
		FilesUncertain:   "It is not certain which files %s reads{:of}.",
		RunsUncertain:    "It is not certain what %s runs{:of}.",
		GrantedSession:   "%s was approved for this conversation.",
		GrantedAlways:    "A rule that an admin stored allows %s.",
		GrantSpent:       "The rule that allowed this was used up or revoked a moment ago.",
		OptionUnnamed:    "%s {}, and the rule does not name it.",
		VariableUnnamed: "%s is set, which may decide what programs do, and the rule does not name it " +
			"with this value.",
		RedirectionWrites:   "%s writes its output to %s.",
		ConfirmPattern:      "Commands with %s run only if a person approves them.",
		StartupFile:         "%s is obeyed by {}: its content decides what later commands do.",
		CallsUsedUp:         "The tool calls of this conversation are used up.",
		ToolHidden:          "The tool %s is not permitted in this chat.",
		ToolNotOfPersona:    "The tool %s is not one of the persona %s.",
		ToolNotOffered:      "The tool %s was not offered in this step.",
		JudgeFailed:         "The safety check could not be made.",
		JudgeRefuses:        "The safety check would have refused this: %s",
		MayReadDeniedThis:   "This command may read files that need approval or may not be read.",
		ShowsRepositoryThis: "This command shows what the repository keeps, also of files that may not be read.",
		FilesUncertainThis:  "It is not certain which files this command reads{:of}.",
		RunsUncertainThis:   "It is not certain what this command runs{:of}.",
		NoRuleOnThis:        "No rule allows this.",
		OptionUnnamedThis:   "An option {}, and the rule does not name it.",
		VariableUnnamedThis: "A variable is set that may decide what programs do, and the rule does not name it " +
			"with this value.",
		RedirectionWritesThis: "This command writes its output to %s.",
		StartupFileThis:       "This command writes a file that is obeyed by {}: its content decides what later commands do.",
		This:                  "this",
		Name:                  "%s",
		UseTool:               "using %s on",
		VerbRead:              "reading",
		VerbWrite:             "writing",
		VerbEdit:              "editing",
		VerbCreate:            "creating",
		VerbDelete:            "deleting",
		VerbMove:              "moving",
		VerbCopy:              "copying",
		FromCommand:           "the output of a command",
		FromBackground:        "a command in the background",
		FromFile:              "the file %s",
		FromFiles:             "files",
		FromNames:             "names of files",
		FromSearch:            "web search",
		FromMemory:            "what was remembered",
		FromForwarded:         "a forwarded message",
		FromQuoted:            "a quoted message",
		FromTalk:              "what was said in the group",
		FromAttached:          "an attached file",
		FromDocument:          "the document %s",
		FromSpeech:            "a recording",
		FromRecording:         "a recording",
		FromItem:              "a contact, place, poll or the like",
		FromHook:              "a call of the hook %s",
		FromAgent:             "the sub-agent %s",
		FromSummary:           "the summary of the conversation",
		FromSeveral:           "several sources",
		WordUnknown:           "a word is not known before it runs",
		WordsUnknown:          "its words are not known before it runs",
		GoesBack:              "it goes back to a directory",
		GoesUnknown:           "it goes to a directory that is not known before it runs",
		GoesFar:               "it goes to too many directories",
		FilesMany:             "it names too many files",
		DirectoryUnknown:      "its working directory is not known",
		TextUnparsed:          "{}",
		FilesUnparsed:         "the text cannot be parsed",
		TextLong:              "the command is longer than 64 KiB",
		TextNul:               "the command contains a NUL byte",
		TextBrackets:          "the command has too many nested brackets",
		TextReturn:            "the text contains a carriage return",
		TextEncoding:          "the text is not valid UTF-8",
		TextReadings:          "two readings of the text differ about what runs",
		TextUnplain:           "the text has {}, which shells may read differently",
		TextNested:            "commands are nested too deeply to follow",
		GivenUnparsed:         "the text given to %s cannot be parsed: {}",
		GivenUnknown:          "the text given to %s is not known before it runs",
		NameExpands:           "the command name %s comes from an expansion or a pattern",
		NameEmpty:             "a command name is empty before expansion",
		ArithmeticRuns:        "arithmetic may run code that is hidden in a value",
		ArrayDeclared:         "the value that a declaration gives to an array may be run as code",
		ArrayValue:            "the value that %s gives to an array may be run as code",
		OptionDoes:            "%s {}",
		OptionsUnread:         "the options of %s cannot be read for sure",
		OptionExpands:         "an expansion among the words of %s may be an option that starts a program",
		OptionsUnknown:        "%s gets options that are not known before",
		OptionReading:         "%s %s changes how the shell reads the text",
		ShellOption:           "an option of %s changes how the shell reads the text",
		ShellGrammar:          "%s has another grammar than bash",
		ShellStartup:          "the shell reads a start-up file",
		ShellTextless:         "%s -c has no text",
		ShellFile:             "%s runs a file that is not known before",
		ShellInput:            "%s reads what it runs from its input",
		CommandsBehind: "the commands that %s reads may read the lines behind them, which are commands " +
			"no more then",
		Assignment:         "an assignment",
		ProgramUnknown:     "%s runs a program that is not known before",
		SourcesFile:        "%s runs the commands of a file in this shell",
		ChangesMeaning:     "%s changes what commands mean or runs code",
		SetsCalculated:     "{of} sets %s, whose value bash calculates",
		SetsRuns:           "{of} sets %s, which decides what runs",
		SetsReading:        "{of} sets %s, which decides how the shell reads characters",
		SetsPrograms:       "{of} sets %s, which may decide what programs do",
		VariableUnknown:    "the variable that %s sets is not known before",
		VariableRenamed:    "a variable becomes a name for another",
		FunctionExported:   "a function is handed to other shells",
		NameRuns:           "%s runs code hidden in the name of a variable",
		RunsCode:           "%s -C runs code",
		TestUnknown:        "test may look at a variable that is not known before",
		RedirectionNetwork: "a redirection opens a network connection",
		RedirectionUnknown: "a redirection reads a file that is not known before, or opens a network connection",

		// Notes on cards: where a call runs, with which limits.
		Note:                "{.of}",
		RememberedAlone:     "remembered for you alone",
		RememberedGroup:     "remembered for everybody in this group",
		DeletedAlone:        "deleted for you, for good",
		DeletedGroup:        "deleted for everybody in this group, for good",
		SubAgent:            "a sub-agent",
		AgentBudget:         "%s steps, %s tool calls, %s tokens",
		AgentMoney:          "at most %s USD",
		CostsUpTo:           "costs up to %s USD",
		CostUnknown:         "nobody knows what it costs",
		ChangesPicture:      "changes a picture of this conversation",
		InTerminal:          "in the editor's terminal, outside the sandbox",
		InWorkspace:         "in the workspace",
		InAllowedPath:       "in the allowed path %s",
		WithNetwork:         "network on",
		WithoutNetwork:      "network off",
		InBackground:        "in the background",
		NewFile:             "new file",
		ReplacesByte:        "replaces a file of 1 byte",
		ReplacesBytes:       "replaces a file of %s bytes",
		FileSize:            "size: %s B",
		IsLink:              "link",
		IsSpecial:           "special file",
		IsDirectory:         "directory",
		EmptyDirectory:      "empty directory",
		HoldsFiles:          "files: %s",
		HoldsDirectories:    "directories: %s",
		HoldsOthers:         "links and special files: %s",
		EntriesAtLeast:      "entries: at least %s, not everything could be counted",
		EveryOccurrence:     "every occurrence",
		WithCaption:         "with the caption %s",
		AsksHost:            "asks %s",
		OfConversation:      "an output of this conversation",
		OfServer:            "server %s",
		TrustTrusted:        "trusted",
		TrustUntrusted:      "untrusted",
		TrustSandboxed:      "sandboxed",
		MayAskModel:         "it may ask the model during the call",
		ServerSays:          "The server says: {of}.",
		ServerSaysDoubtful:  "The server says: {of}. It is not a trusted server.",
		HintReads:           "it only reads",
		HintChanges:         "it changes things",
		HintDestroys:        "it may destroy what exists",
		HintDestroysNothing: "it destroys nothing",
		HintRepeatable:      "repeating it changes nothing more",
		HintOpen:            "it reaches other systems",
		HintClosed:          "it stays within the server",

		// Why a stage or a tool refuses a call.
		ToolNotGiven:     "The tool %s was not given to the sub-agent %s.",
		AgentDelegates:   "A sub-agent cannot delegate: %s is not a tool of %s.",
		NoConversation:   "There is no conversation here in which a sub-agent could work.",
		ToolFails:        "The tool %s is blocked for %s more min because it failed too often ({of}).",
		CallsFailed:      "%s of the last %s calls failed, the last one with %s",
		NobodyToAsk:      "This call needs the approval of a person, and nobody can be asked here.",
		NobodyAnswers:    "Nobody is there who could answer a question in this turn.",
		JudgeRefused:     "This call was refused by the safety check.",
		JudgeAbsent:      "The safety check could not be made, so this call was not run.",
		OffLimits:        "%s is off limits: files are reached only in {}",
		MayNotRead:       "%s may not be read here",
		OutsideDirectory: "%s is outside the working directory: only files inside it can be sent",
		LinkedNotWritten: "%s has several names (hard links) and is not written",
		LinkedNotRead:    "%s has several names (hard links), one of which may not be read here",
		LinkLeadsOut:     "%s is a link that would lead out of the allowed places",
		HoldsDirectory:   "%s is a working directory or holds one; it cannot be {}",
		HoldsService:     "%s holds files of this service; it cannot be {}",
		NotCopied:        "%s is not copied: {of}",
		CopyMayNotRead:   "it may not be read here",
		CopyNotRegular:   "not a regular file",
		CopyLeadsOut:     "a link that would lead out of the allowed places",
		HidesCredential: "%s is not changed: %s stands for a credential that was hidden from you, and writing " +
			"it would destroy what is really there",
		DirectoryReplaced: "the working directory or an allowed path was replaced by a link",
		DirectoryMoved:    "the working directory or an allowed path moved during the call",
		FilesChanged: "the command was not run: the files changed, and what it may not read can no longer be " +
			"kept away from it",
		ShuttingDown: "the bot is shutting down: no new background runs",
		RunsFull:     "%s background runs are active, which is the limit",
		RunsFullForOne: "%s background runs of this person are active, which is the limit; the rest is for " +
			"other people",
		CallImpossible:      "%s",
		CallUnpermitted:     "This call was not permitted.",
		ApprovalDeclined:    "The user declined this call.",
		ApprovalExpired:     "Nobody decided in time whether this call may run, so it did not.",
		ApprovalCancelled:   "The question about this call was cancelled.",
		ToolsOff:            "Tools are switched off here.",
		CallChanged:         "This call did not run: %s changed after it was permitted.",
		FileChangedApproved: "nothing was done: %s changed just after a person had approved what would be done to it",
		FilesChangedApproved: "the command was not run: its files changed just after a person had approved what it " +
			"would do to them",
		AuditUnwritable: "The audit log cannot be written at the moment, and nothing is run without a record.",
		IndexUnreadable: "none of the directories of [index] paths may be read in this conversation",
		SpaceUsedUp: "the files of this conversation may take %s (workspaces.max_bytes), and there is no " +
			"room for that",
		DiskReserved:      "the disk is almost full: %s stay free for the bot (workspaces.reserve_bytes)",
		SkillChanged:      "The skill %s has changed since it was accepted, so it cannot be used.",
		SkillUnaccepted:   "The skill %s cannot be used: no admin has accepted it as it is now.",
		ScheduleElsewhere: "tasks can be scheduled in Telegram only: here nobody would run them",
		ScheduleNowhere:   "nothing can be scheduled from here: there is no conversation that a task could run in",
		ScheduleOutside:   "nothing can be scheduled in chats that the bot is not a member of",
		SchedulePeople:    "only people can schedule tasks",
		ScheduleMade: "runs of tasks have made %s tasks of this person, which is the most; the person can " +
			"ask for more",
		ScheduleFullForOne: "this person has %s scheduled tasks, which is the most that one person may have",
		ScheduleFull:       "there are %s scheduled tasks, which is the most (scheduler.max_tasks)",
		TaskOfOther:        "the task %s belongs to %s; only they or an admin of the bot can cancel it",

		// Why an address is refused.
		URLRefused:          "The URL is not allowed.",
		AddressPrivate:      "The address is not a public one.",
		URLEmpty:            "The URL is empty.",
		URLLong:             "The URL is too long.",
		URLCharacters:       "The URL contains white space, a backslash or a control character.",
		URLUnparsed:         "The URL cannot be parsed.",
		URLSchemeless:       "The URL must begin with https://.",
		URLScheme:           "Only https URLs are allowed.",
		URLHostless:         "The URL has no host.",
		URLUser:             "A URL with a user name or password is not allowed.",
		URLPort:             "The port of the URL is not between 1 and 65535.",
		URLUnusualAddress:   "The address in the URL is not a plain IPv6 address.",
		URLUnusualNumbers:   "An address must be written as four decimal numbers.",
		HostInvalid:         "The host name in the URL is not valid.",
		HostWithoutDomain:   "The host name is not a public one: it has no domain.",
		HostPrivate:         "The host name belongs to a private network.",
		DeniedDomainsWrong:  "The list of denied domains is wrong, so nothing may be fetched.",
		AllowedDomainsWrong: "The list of allowed domains is wrong, so nothing may be fetched.",
		DomainDenied:        "This domain is denied.",
		DomainUnlisted:      "This domain is not on the list of allowed domains.",

		// What is wrong with a question about the rules.
		NamesNoTool:   "%s names no tool{of}",
		MatchesNoTool: "%s matches no tool{of}",
		NamesNoToolOf: "%s names no tool of the server %s{of}",
		NamesNoServer: "%s: there is no server %s{of}",
		DidYouMean:    " (did you mean %s?)",
		OrServerTool:  "; a tool of an MCP server is written server:tool",
		NotJSON:       "these arguments are not JSON: %s",
		NotJSONObject: "the arguments are not a JSON object: %s",

		// What the kernel enforces.
		NoSandbox: "file tools confined by the kernel (os.Root), shell by approval and rules only; commands " +
			"that only read ask like others",
		Sandbox:          "kernel sandbox: {~of}",
		SandboxComplete:  "commands are confined completely; kernel sandbox: {~of}",
		SandboxPartial:   "commands are confined in part; kernel sandbox: {~of}",
		SandboxNone:      "none",
		SandboxHas:       "{+of}",
		SandboxLacks:     "; but {of}",
		SandboxWhy:       " ({of})",
		SandboxRoot:      "a root of its own",
		SandboxProcesses: "a process namespace",
		SandboxModes:     "modes, owners and times of files outside can be changed",
		SandboxTable:     "the processes of a command share the table of the machine",
		SandboxNetwork:   `no network unless allow_network is "all"`,
		SandboxSockets:   "no Unix sockets",
		SandboxReading:   "commands that only read ask like others",
		SandboxLinux:     "only Linux has one, this is %s",
		SandboxHelper:    "this program is not set up as its own helper",
		SandboxOff:       `tools.shell.sandbox is "off"`,

		// What is wrong with the database, and what to do.
		DiskFull:         "the disk is full; free some space, nothing was stored",
		DatabaseReadOnly: "the database cannot be written; check owner and permissions of the file and its directory",
		DatabaseDamaged:  "the database is damaged; stop the program and restore a backup",
		DatabaseForeign:  "the file is not a database; move it away or restore a backup",
		DiskFails:        "the disk reports an error; check the disk",
		DatabaseUnopened: "the file cannot be opened; check that the directory exists and may be written",
		DatabaseDenied:   "access to the database is denied; check owner and permissions of the file",
		DatabaseBusy:     "another program holds the database; close it",
		MemoryShort:      "there is not enough memory",
		DatabaseFailed:   "the database failed",
		DatabaseLost:     "the connection to the database was lost",

		// Why something with an MCP server does not work.
		ServerTaken:        "there is a server %s already; /mcp remove %s takes it away",
		URLFollowed:        "nothing may follow the URL",
		ServerConfigured:   "it is in the configuration; remove it there",
		SignInUnasked:      "nobody began this sign-in",
		SignInUnwanted:     "it requires no sign-in; oauth.enabled in its configuration enables that",
		SignInWaits:        "a sign-in to %s is waiting already; open the link that was sent",
		ServerBusy:         "server %s is being changed at this moment; try again",
		ProgramMissing:     "command %s was not found in PATH; install it or correct the configuration",
		ServiceStops:       "the service is stopping",
		ServerUnapproved:   "it was not approved: {}",
		OfThisServer:       "server %s: {of}",
		ServerToolDenied:   "the policy of this server denies the tool %s",
		ServerToolUnlisted: "the policy of this server does not list the tool %s",
		ServerCallsFull:    "too many calls of the server %s within a minute; the next is possible in %s",
		ServerScopeless:    "the server %s has one connection per %s, and this call has none",
		ServerToolOther: "the tool %s is another one for this person than the one that was offered; it " +
			"is not called",
		ServerMoved: "the server %s wants to be reached at another address (%s); only the configured one is used",
		ServersFull: "the limit of servers that may be added is reached (%s of %s); remove one first",
		ServerPrivate: `server %s: {of} A server on this machine or in the local network needs trust_level = ` +
			`"trusted" in the configuration.`,
		SignInPort: "port %s of this machine, which the sign-in to %s comes back to, cannot be used; another " +
			"sign-in may be waiting on it: end that, or set oauth.callback_port to another port or to 0",
		SignInAddress:    "the server %s names an address for the sign-in that may not be used{:of}",
		ProgramUnstarted: "the program %s of server %s could not be started",
		ProgramsFromChat: "programs are not started from the chat: mcp.chat_commands is false",
		ProgramsNone:     "nothing is permitted: mcp.allowed_commands is empty",
		ProgramsListed:   "permitted are %s (mcp.allowed_commands)",
		ProgramUnnamed:   "no command is given; {of}",
		ProgramPath: "command %s has a path in it: write the bare name of a program, it is looked up " +
			"in PATH; {of}",
		ProgramUnlisted:   "command %s is not allowed; {of}",
		ServerUnnamed:     "a server needs an id",
		ServerNameLong:    "server id %s is %s bytes long; the limit is %s",
		ServerNameForm:    "server id %s: use letters, digits, _ . and - only",
		CallerMissing:     `%s needs the id of a caller and there is none: set scope to "session" or "caller"`,
		CallerUnprintable: "%s: the caller's id %s may hold printable ASCII characters only",
	}
}
