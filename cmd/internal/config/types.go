package config

import (
	"time"

	"github.com/zephbot/zephbot/policy/act"
)

// Config is the whole configuration of zephbot. Every field is one key or table of the config file.
//
// The tags of a field are its documentation and its rules, and everything else is derived from them:
//
//	toml     the name of the key
//	default  the value when nobody sets the key, written as in an environment variable
//	doc      one line for people
//	enum     the allowed words, separated by "|"; enumfold the same without regard to case
//	min, max the allowed range (numbers, durations, each item of a list); without min nothing may be negative
//	clamp    "low..high": values outside are moved inside and told as a warning
//	url      the allowed schemes, separated by "|"
//	tools    names of tools: "name", "glob" of such names, "bare" (also as a server calls it), or "server" (only as the server calls it)
//	form     what a word, a key of a table or an address must look like; "language": one that there are texts for
//	place    what a key that names files is to the tools: "obeyed" (the program keeps it or reads it again at its next start, so no tool and
//	         no child reaches it), "granted" (tools work in it), "pattern" (it says which files a rule is about), "none" (it names no file)
//	alias    other spellings of the key, separated by "|"
//	idle     the part that reads this key is not built yet; the value is its name. Remove the tag when it is.
//
// A Config is not changed after Load; it may be read by many goroutines.
type Config struct {
	DataDir    string     `toml:"data_dir" default:"./data" place:"obeyed" doc:"Directory of the database, the audit log and downloads. Not set: the terminal uses the user's state directory ($XDG_STATE_HOME/zephbot) instead."`
	Telegram   Telegram   `toml:"telegram" doc:"The Telegram bot: who may talk to it, and how it answers."`
	Groups     Groups     `toml:"groups" doc:"What the bot knows of the talk in groups (docs/group-context.md)."`
	LLM        LLM        `toml:"llm" doc:"Which models answer."`
	Agent      Agent      `toml:"agent" doc:"Limits of one turn of a conversation."`
	Session    Session    `toml:"session" doc:"Stored conversations."`
	Security   Security   `toml:"security" doc:"What the agent may do without asking."`
	Tools      Tools      `toml:"tools" doc:"The tools, and the checks that every tool call passes."`
	MCP        MCP        `toml:"mcp" doc:"Model Context Protocol servers."`
	Workspaces Workspaces `toml:"workspaces" doc:"The working directories of the conversations."`
	Redis      Redis      `toml:"redis" doc:"Quotas, caches and send budgets."`
	Database   Database   `toml:"database" doc:"Messages, journals, approvals."`
	Retention  Retention  `toml:"retention" doc:"How long data that is no longer needed is kept."`
	Vector     Vector     `toml:"vector" doc:"Where embeddings are stored."`
	Index      Index      `toml:"index" doc:"The code index that search_code uses."`
	Scheduler  Scheduler  `toml:"scheduler" doc:"Scheduled tasks."`
	Triggers   Triggers   `toml:"triggers" doc:"Where other programs begin turns (docs/hooks.md)."`
	Hooks      []Hook     `toml:"hooks" doc:"Hooks that exist from the start; admins make others with /hooks."`
	Memory     Memory     `toml:"memory" doc:"What the agent remembers between conversations."`
	Skills     Skills     `toml:"skills" doc:"Instructions and scripts for certain kinds of work (docs/skills.md)."`
	WebSearch  WebSearch  `toml:"web_search" doc:"The tool web_search."`
	Quotas     Quotas     `toml:"quotas" doc:"How much people may use."`
	Audit      Audit      `toml:"audit" doc:"The record of every tool call."`
	Metrics    Metrics    `toml:"metrics" doc:"Prometheus metrics and health checks."`
	Tracing    Tracing    `toml:"tracing" doc:"OpenTelemetry traces of turns (docs/observability.md)."`
	Log        Log        `toml:"log" doc:"The log of the program."`

	Personas map[string]Persona `toml:"personas" form:"persona" doc:"Ways to answer that chats and topics can choose in /settings (docs/personas.md)."`

	// File is the config file that was read, "" if there was none.
	File string `toml:"-"`
	// Warnings are what Load found unusual but not wrong, in the order of the file.
	Warnings Problems `toml:"-"`

	home, workDir string
	places        []string // where a config file is searched for
	origins       map[string]Origin
	tools         []act.Tool // what our own tools say of themselves
}

// Telegram is the table [telegram].
type Telegram struct {
	Token               Secret        `toml:"token" doc:"Bot token from @BotFather. Empty: no Telegram."`
	APIURL              string        `toml:"api_url" default:"https://api.telegram.org" url:"https|http" doc:"Bot API server; change it for a local or a test server."`
	MaxUploadBytes      int64         `toml:"max_upload_bytes" default:"52428800" clamp:"1..2097152000" doc:"Bytes of a file that may be sent to a chat. Telegram takes 50 MB, a Bot API server of your own 2000 MB."`
	AllowedUsers        Refs          `toml:"allowed_users" form:"user" doc:"Who may talk to the bot: numeric ids or \"@name\". Empty: nobody. \"*\": everyone."`
	Admins              []int64       `toml:"admins" min:"1" doc:"Numeric ids of the people who manage approvals, MCP and quotas."`
	AllowedChats        Refs          `toml:"allowed_chats" form:"chat" doc:"Ids of the groups the bot works in. Empty: no group. \"*\": every group."`
	Approvers           []int64       `toml:"approvers" min:"1" doc:"Numeric ids of people who may approve besides the person who asked."`
	ApprovalTimeout     time.Duration `toml:"approval_timeout" default:"10m" min:"1s" doc:"A question that nobody answers in this time is denied."`
	ApprovalsRequired   int           `toml:"approvals_required" default:"1" min:"1" doc:"How many people must approve. If more than one must, the person who asked does not count."`
	ApprovalByRequester bool          `toml:"approval_by_requester" default:"true" doc:"Whether people may approve their own requests if one approval is enough."`
	ApprovalRuleDays    int           `toml:"approval_rule_days" default:"90" min:"0" max:"3650" doc:"A rule that an admin stores with Always… ends after so many days, unless an admin keeps it longer; its chat is told a week before. 0: it does not end."`
	StreamIntervalMS    int           `toml:"stream_interval_ms" default:"3000" clamp:"500..3600000" doc:"Milliseconds between two edits of a growing answer; at least 500. The longer it grows, the more, up to 2.5 times as many, and more still while the budget of the chat is low."`
	MergeMS             int           `toml:"merge_ms" default:"600" min:"0" max:"10000" doc:"Milliseconds within which the next message of a person counts to the one before. Nobody waits for this after an ordinary message: only after a forwarded one and a part of a long text is the next one awaited. 0: each message is a turn of its own, except for albums."`
	Busy                string        `toml:"busy" default:"queue" enum:"queue|steer|interrupt" doc:"What becomes of a text that a person sends while their own question is being worked on. queue: it is answered afterwards. steer: it is read before the next call of the model, without a turn of its own. interrupt: it ends the work, and is answered next. While a question waits for a decision, texts wait too."`
	MaxParts            int           `toml:"max_parts" default:"6" clamp:"2..100" doc:"Messages of one answer. A longer answer ends with a file that has all of it; what was said before is its beginning."`
	Language            string        `toml:"language" form:"language" doc:"Language of what the bot says where a person's is not known: notices to a chat, news. Empty: English."`
	TimeZone            string        `toml:"time_zone" form:"zone" doc:"Zone of the times in messages, such as \"Europe/Berlin\"; Telegram does not tell a person's. \"Local\": the machine's. Empty: UTC; in the terminal and the simulator the machine's."`
	WebhookURL          string        `toml:"webhook_url" url:"https|http" place:"none" doc:"Public https address at which Telegram delivers updates; a proxy, ingress or platform before webhook_listen holds the certificate. http only with a Bot API server of your own. Empty: polling."`
	WebhookListen       string        `toml:"webhook_listen" default:":8443" form:"listen" place:"none" doc:"Address the webhook listens on, in clear text. Only the path of webhook_url answers there."`
	WebhookSecret       Secret        `toml:"webhook_secret" doc:"Secret that Telegram sends with every update: 1 to 256 of A-Z, a-z, 0-9, _ and -. Empty: made from the token, the same in every process."`
	AllowedTools        []string      `toml:"allowed_tools" tools:"name" doc:"Tools that Telegram chats may use. Empty: all."`
	BlockquoteMinLines  int           `toml:"expandable_blockquote_min_lines" default:"10" min:"0" doc:"Quotes of this many lines, and blocks of output of twice as many, are collapsed until the reader opens them. A long line counts as several. 0: never."`
	RichMessages        bool          `toml:"rich_messages" default:"false" doc:"Send answers with tables, formulas or headings as rich messages, where they fit into one message and none was growing before. Clients of Telegram from before June 2026 show a notice to update instead."`
	GuestMode           bool          `toml:"guest_mode" default:"false" doc:"Answer people who are admitted where they mention the bot in chats that it is not in. BotFather has a switch for it too."`
	BotToBot            bool          `toml:"bot_to_bot" default:"false" doc:"Answer other bots in groups, where they mention or answer this one or use a command with its name. BotFather has a switch for it too."`
	AllowedBots         Refs          `toml:"allowed_bots" form:"user" doc:"Bots that are answered: numeric ids or \"@name\". Empty: all."`
	MaxBotChainDepth    int           `toml:"max_bot_chain_depth" default:"3" min:"1" doc:"Bot messages in a row after which the bot is silent in a chat, until a person says something. Of one bot it answers at most 20 messages a minute."`

	Limits TelegramLimits  `toml:"limits" doc:"The bot's own send budget; 0 = none. A 429 from Telegram is always obeyed."`
	Groups TelegramGroups  `toml:"groups" doc:"How the bot behaves in groups."`
	Roles  TelegramRoles   `toml:"roles" doc:"Restrictions of the roles. A person has the highest role that the configuration or an admin in the chat gives them."`
	Chats  map[string]Chat `toml:"chats" form:"chatkey" doc:"Settings of one group (\"-100123\") or topic (\"-100123/7\"); missing keys are inherited."`
}

// TelegramRoles is the table [telegram.roles].
type TelegramRoles struct {
	User     TelegramRole `toml:"user" doc:"People who talk to the bot."`
	Approver TelegramRole `toml:"approver" doc:"People who also approve what others ask for."`
	Admin    TelegramRole `toml:"admin" doc:"People who manage approvals, people and servers."`
}

// TelegramRole is a table of [telegram.roles].
type TelegramRole struct {
	AllowedTools []string `toml:"allowed_tools" tools:"name" doc:"Tools that people with this role may use, among those of the chat. Empty: all."`
}

// TelegramLimits is the table [telegram.limits].
type TelegramLimits struct {
	PerSecond         int `toml:"per_second" default:"30" doc:"Messages a second, all chats together."`
	PerChatPerSecond  int `toml:"per_chat_per_second" default:"1" doc:"Messages a second to one chat."`
	PerGroupPerMinute int `toml:"per_group_per_minute" default:"20" doc:"Messages a minute to one group."`
}

// TelegramGroups is the table [telegram.groups].
type TelegramGroups struct {
	Session string `toml:"session" default:"user" enum:"user|chat" place:"none" doc:"One conversation per person (user), with a directory of its own, or one for the whole chat (chat)."`
	Trigger string `toml:"trigger" default:"mention" enum:"mention|all" doc:"Answer when mentioned or replied to (mention), or every message (all)."`
}

// Groups is the table [groups].
type Groups struct {
	Context  bool `toml:"context" default:"false" doc:"Let admins switch on, with /settings in a group or topic, that what people say there to each other is kept for a while and given to turns that are addressed later. Nothing is kept anywhere else. The bot sees such messages only with privacy mode off at @BotFather, or as an admin of the group."`
	Messages int  `toml:"context_messages" default:"40" min:"2" max:"500" doc:"How many messages are kept of a group or topic; the oldest are dropped."`
	Bytes    int  `toml:"context_bytes" default:"8000" min:"1000" max:"100000" doc:"How much text is kept of a group or topic."`
	Hours    int  `toml:"context_hours" default:"24" min:"1" max:"720" doc:"How long it is kept."`
}

// Chat is a table [telegram.chats."ID"]. Zero values inherit from [telegram], [telegram.groups] and [quotas.chat].
type Chat struct {
	SystemPrompt      string    `toml:"system_prompt" doc:"System prompt of this chat. Empty: the one of [agent]."`
	AllowedTools      []string  `toml:"allowed_tools" tools:"name" doc:"Tools this chat may use. Empty: those of [telegram]."`
	Skills            *[]string `toml:"skills" doc:"Names of the accepted skills that this chat may use. Not set: all."`
	Trigger           string    `toml:"trigger" enum:"mention|all" doc:"As in [telegram.groups]."`
	Session           string    `toml:"session" enum:"user|chat" doc:"As in [telegram.groups]."`
	ApprovalsRequired int       `toml:"approvals_required" doc:"As in [telegram]. 0: inherited."`
	Approvers         []int64   `toml:"approvers" min:"1" doc:"As in [telegram]. Empty: inherited."`
	Quota             *Limits   `toml:"quota" doc:"Limits of this chat instead of [quotas.chat]."`
}

// Persona is a table [personas.NAME].
type Persona struct {
	Instructions string    `toml:"instructions" doc:"What the model is told of the persona, after the system prompts of [agent] and of the chat; at most 8000 bytes. It allows nothing: rules, approvals and quotas stay as they are."`
	Model        string    `toml:"model" place:"none" doc:"Name of the provider that answers, or its model. Empty: as it is without the persona."`
	Tools        *[]string `toml:"tools" tools:"name" doc:"Tools that the persona has, of those that the chat and its people may use. Not set: all of them."`
	Voice        string    `toml:"voice" doc:"Voice of spoken answers. Empty: as it is without the persona."`
}

// LLM is the table [llm].
type LLM struct {
	Primary   string        `toml:"primary" default:"main" doc:"Name of the provider that answers."`
	Fallback  []string      `toml:"fallback" doc:"Names of the providers that are tried, in this order, when the primary one fails."`
	Choices   []string      `toml:"choices" doc:"Names of the providers that people can choose with /model, besides the primary one. Empty: those of fallback."`
	Embedding string        `toml:"embedding" doc:"Name of the provider that computes embeddings. Empty: none."`
	Timeout   time.Duration `toml:"timeout" default:"120s" min:"1s" doc:"Total time limit of one model call: waiting, retries, fallbacks and the stream."`
	Idle      time.Duration `toml:"idle_timeout" default:"60s" doc:"How long a provider may be silent, before or during its answer, before the next attempt begins. 0: no limit but timeout. Raise it for a model that thinks for a long time before its first word."`
	Ollama    Ollama        `toml:"ollama" doc:"Old location of a setting of Ollama providers."`
	Providers []Provider    `toml:"providers" doc:"The models. If there are none, simulate uses the built-in offline model."`
}

// Ollama is the table [llm.ollama] (seed 004). Load applies it to every provider of type ollama.
type Ollama struct {
	ToolUse *bool `toml:"tool_use" doc:"Same as tool_use of every provider of type ollama."`
}

// Provider is an entry of [[llm.providers]].
type Provider struct {
	Name                      string        `toml:"name" form:"name" doc:"Name by which the rest of the config calls this provider. Required."`
	Type                      string        `toml:"type" default:"openai" form:"api" enum:"openai|anthropic|ollama|offline" doc:"Kind of API; openai is any OpenAI-compatible server."`
	Preset                    string        `toml:"preset" form:"preset" enum:"openai|azure|anthropic|gemini|deepseek|mistral|xai|groq|openrouter|together|fireworks|cerebras|moonshot|zai|dashscope|minimax|ollama|lmstudio|llamacpp|sglang|vllm|litellm" doc:"Server whose API this is: it sets base_url, what the server accepts, and the variable in which its vendor keeps the key (OPENAI_API_KEY, GEMINI_API_KEY, …), unless api_key is set. Empty: the server is recognised by the host of base_url. docs/models.md lists them."`
	BaseURL                   string        `toml:"base_url" default:"https://api.openai.com/v1" url:"https|http" doc:"Address of the API; each preset and type has its own default. Azure's addresses of deployments end with ?api-version=…."`
	APIKey                    Secret        `toml:"api_key" doc:"Key of the API."`
	APIKeys                   []Secret      `toml:"api_keys" doc:"More keys of the API. A key that is asked too often or has no credit rests, and the next one is asked."`
	Model                     string        `toml:"model" doc:"Model that answers. Required, except for type offline."`
	EmbeddingModel            string        `toml:"embedding_model" doc:"Model that computes embeddings."`
	EmbeddingUSDPerMTok       *float64      `toml:"embedding_usd_per_mtok" min:"0" doc:"Price of a million tokens of texts that are embedded, in USD; 0: they cost nothing. Not set: by a table; servers on machines of your own cost nothing."`
	TranscriptionModel        string        `toml:"transcription_model" place:"none" doc:"Model that writes down voice messages and audio files (POST /audio/transcriptions), for types openai and ollama. The first provider that has one is asked, the primary before the others. Empty: it has none."`
	TranscriptionUSDPerMinute *float64      `toml:"transcription_usd_per_minute" doc:"Price of a minute of a recording in USD; 0: it costs nothing. Not set: by a table; servers on machines of your own cost nothing."`
	SpeechModel               string        `toml:"speech_model" place:"none" doc:"Model that speaks answers as voice messages (POST /audio/speech), for types openai and ollama. It has to make Opus or MP3. The first provider that has one is asked, the primary before the others. Empty: it has none."`
	SpeechVoice               string        `toml:"speech_voice" default:"alloy" doc:"Voice of speech_model, by the name that its server gives it."`
	SpeechUSDPerMChar         *float64      `toml:"speech_usd_per_mchar" min:"0" doc:"Price of a million characters that speech_model speaks, in USD; 0: they cost nothing. Not set: by a table; servers on machines of your own cost nothing."`
	ImageModel                string        `toml:"image_model" place:"none" doc:"Model that makes and changes pictures (POST /images/generations and /images/edits), for types openai and ollama; it gives models the tool generate_image. The first provider that has one is asked, the primary before the others. Empty: it has none."`
	ImageQuality              string        `toml:"image_quality" default:"medium" enum:"auto|low|medium|high" doc:"Quality of the pictures of models that have several (gpt-image). auto: the vendor chooses."`
	ImageUSD                  *float64      `toml:"image_usd" min:"0" doc:"Price of a picture of image_model in USD; 0: it costs nothing. Not set: by a table, or by the tokens that the server counts; servers on machines of your own cost nothing."`
	MaxTokens                 int           `toml:"max_tokens" default:"4096" min:"1" doc:"Longest answer, in tokens."`
	ContextTokens             int           `toml:"context_tokens" default:"0" min:"0" doc:"Size of the model's context window in tokens, the answer included, if it is smaller than agent.context_budget_tokens; a longer conversation is shortened for this provider. 0: as the server lists it or a table of models says, else as agent.context_budget_tokens, until the provider says that a conversation is too long."`
	Pace                      time.Duration `toml:"pace" default:"0s" min:"0s" doc:"Only for type offline: how long it waits before each word. The simulator takes 45ms, so that an answer can be seen to grow."`
	ToolUse                   bool          `toml:"tool_use" default:"true" doc:"Use the API's tool calls; false: fenced blocks in the text."`
	InputUSDPerMTok           *float64      `toml:"input_usd_per_mtok" doc:"Price of a million input tokens in USD; 0: they cost nothing. Not set: by a table of what vendors publish; servers on machines of your own cost nothing. Where neither says it and USD are limited, turns are refused."`
	OutputUSDPerMTok          *float64      `toml:"output_usd_per_mtok" doc:"Price of a million output tokens in USD, thinking included. Not set: by the table too."`

	CachedInputUSDPerMTok *float64 `toml:"cached_input_usd_per_mtok" doc:"Price of a million input tokens read from the vendor's cache, in USD. Not set: by the table too; for a model that is not in it, or with a price of input_usd_per_mtok, a tenth of that for anthropic, else the same."`
	Accepts               []string `toml:"accepts" place:"none" doc:"What the model takes besides text: image, file (PDF, over anthropic and OpenAI's Responses), or text alone for nothing else. Empty: by a table of well-known models; an unknown one takes text only. What it does not take it is told in words."`
	Wire                  string   `toml:"wire" default:"auto" enum:"auto|chat|responses" doc:"Which of OpenAI's APIs is used, for type openai. auto: chat completions, and Responses for models that take tools only there."`
}

// Agent is the table [agent].
type Agent struct {
	MaxToolIterations   int        `toml:"max_tool_iterations" default:"10" min:"1" max:"100" doc:"Maximum number of model calls with tools in one turn."`
	ContextBudgetTokens int        `toml:"context_budget_tokens" default:"128000" min:"1000" doc:"Size of the model's context window, in tokens."`
	SystemPrompt        string     `toml:"system_prompt" doc:"Text that precedes every conversation. Empty: the built-in one."`
	MaxParallelTools    int        `toml:"max_parallel_tools" default:"4" min:"1" doc:"Maximum number of reading tools of one turn that run at the same time, including those of its sub-agents."`
	Concurrency         int        `toml:"concurrency" default:"1024" min:"1" doc:"Maximum number of turns that run at the same time; fewer if memory is short (they may use a quarter of GOMEMLIMIT or of the machine's memory, judged by the latest turns). One person gets at most a quarter of them. Also the maximum number of concurrent requests to one provider; its 429s lower that."`
	ToolFilter          ToolFilter `toml:"tool_filter" doc:"Show the model only the tools that are relevant to the question."`
}

// ToolFilter is the table [agent.tool_filter].
type ToolFilter struct {
	Enabled       bool     `toml:"enabled" default:"false" doc:"Turn the filter on."`
	TopK          int      `toml:"top_k" default:"0" doc:"Maximum number of tools to show. 0: all above the threshold."`
	MinSimilarity float64  `toml:"min_similarity" default:"0.3" max:"1" doc:"Minimum similarity of a tool to the question."`
	AlwaysOn      []string `toml:"always_on" tools:"name" default:"bash,read,edit,memory_search,memory_save" doc:"Tools that are always shown."`
}

// Session is the table [session].
type Session struct {
	Recap Recap `toml:"recap" doc:"A reminder of a conversation, with /recap and when it is resumed. The model has 5 seconds for it."`
}

// Recap is the table [session.recap] (seed 001).
type Recap struct {
	OnResume         bool   `toml:"on_resume" default:"true" doc:"Remind people of a private conversation when they come back to it after a day, and at the terminal when they open it, unless it was summed up before. Nobody is reminded in a group unless they ask with /recap."`
	Provider         string `toml:"recap_provider" form:"provider" doc:"Provider that writes recaps. Empty: the model of the conversation."`
	MaxTokens        int    `toml:"max_tokens" default:"500" min:"1" doc:"Longest recap, in tokens."`
	MaxInputMessages int    `toml:"max_input_messages" default:"50" doc:"Maximum number of messages that it summarizes. 0: no recap."`
}

// Security is the table [security].
type Security struct {
	AutonomyLevel string `toml:"autonomy_level" default:"supervised" enum:"readonly|supervised|full" doc:"readonly: reading tools only; supervised: by the rules, else ask; full: never ask."`
}

// Workspaces is the table [workspaces].
type Workspaces struct {
	Dir          string `toml:"dir" place:"obeyed" doc:"Directory of the working directories. Empty: data_dir/workspaces."`
	Shared       bool   `toml:"shared" default:"false" doc:"The directory is on a volume that every process of the service can access, so that several processes can use one database. Requires dir, database.url and redis.url; see docs/postgresql.md. The terminal and the simulator ignore it."`
	MaxBytes     int64  `toml:"max_bytes" default:"1073741824" doc:"Maximum total size of the files of one conversation, in bytes. 0: no limit."`
	ReserveBytes int64  `toml:"reserve_bytes" default:"268435456" doc:"Bytes of the disk that are kept free for the bot's own files, at most an eighth of the disk. 0: none."`
}

// Redis is the table [redis].
type Redis struct {
	URL      Secret `toml:"url" form:"redis" doc:"redis://, rediss://, cluster or sentinel URL; docs/redis.md lists the forms. Empty: embedded in the process."`
	CAFile   string `toml:"ca_file" place:"obeyed" doc:"PEM file with the certificate authorities for verifying a TLS server. Empty: those of the system."`
	CertFile string `toml:"cert_file" place:"obeyed" doc:"PEM file with the client certificate, for a server that requires one. Empty: none."`
	KeyFile  string `toml:"key_file" place:"obeyed" doc:"PEM file with the key of cert_file."`
}

// Database is the table [database].
type Database struct {
	URL Secret `toml:"url" form:"postgres" doc:"postgres:// URL of PostgreSQL 14 or later, for serve. Empty: SQLite in data_dir. The terminal and the simulator always use SQLite."`
}

// Retention is the table [retention]. Data that is still needed is never deleted.
type Retention struct {
	Journal int `toml:"journal" default:"365" min:"0" max:"36500" doc:"Days for which the text of a conversation is kept after /new or /clear has begun another one, and questions after their decision. 0: forever. The current conversation and its approvals are always kept. If nothing was said since /new, the session is also deleted after that time, once there is no record of a message sent in it."`
	Outbox  int `toml:"outbox" default:"90" min:"0" max:"36500" doc:"Days for which a record of each sent message is kept. 0: forever. Its text is deleted after 30 days in any case."`
	Blobs   int `toml:"blobs" default:"30" min:"0" max:"36500" doc:"Days for which the files of a conversation are kept (output of tools, long commands on cards). 0: as long as the conversation."`
	Audit   int `toml:"audit" default:"0" min:"0" max:"36500" doc:"Days for which lines of the audit log are kept; whole files are deleted, and the log records how far. 0: forever."`

	MaxBlobBytes int64 `toml:"max_blob_bytes" default:"2147483648" min:"0" doc:"Maximum total size of all kept files, in bytes. A file that does not fit is refused, and the person is told. 0: no limit."`
}

// Vector is the table [vector].
type Vector struct {
	Backend string `toml:"backend" default:"embedded" enum:"embedded|qdrant" doc:"Where embeddings are stored."`
	URL     string `toml:"url" url:"https|http" doc:"Address of Qdrant."`
	APIKey  Secret `toml:"api_key" doc:"Key of Qdrant."`
}

// Index is the table [index].
type Index struct {
	Enabled   bool     `toml:"enabled" default:"false" doc:"Store the index of the code, and keep it up to date. Without it, search_code reads the files when it is called, and remembers them until the process ends."`
	AutoIndex bool     `toml:"auto_index" default:"true" doc:"Index the directories in paths at startup; in the terminal without paths, the working directory. Other directories are indexed at their first search."`
	Paths     []string `toml:"paths" place:"granted" doc:"Directories to search instead of the working directory and tools.file.allowed_paths. They must be inside of these: a conversation finds nothing that its file tools may not read. Empty: the working directory of the conversation, and allowed_paths."`
	Languages []string `toml:"languages" enum:"go|rust|python|javascript|typescript|java|c|cpp|ruby|bash|toml|json|yaml|markdown" doc:"Languages to index. Empty: all of them."`
	Watch     bool     `toml:"watch" default:"true" doc:"Watch the indexed directories, so that a search does not have to look for changed files. Where not all of them can be watched, each search looks."`
	LSP       IndexLSP `toml:"lsp" doc:"A language server that answers search_code through an MCP server."`
}

// IndexLSP is the table [index.lsp]. The other keys name a tool of the server and its arguments as a JSON object, in
// which $symbol, $file, $line and $column are replaced.
type IndexLSP struct {
	Server     string `toml:"server" doc:"Id of an MCP server, see mcp.servers. Empty: none. A tool of it that needs an approval is not asked."`
	Symbols    string `toml:"symbols" default:"go_search {\"query\": \"$symbol\"}" place:"none" doc:"How symbols are searched: the name of a tool, and its arguments as a JSON object, in which $symbol is replaced. The default is for gopls. Empty: not at all."`
	References string `toml:"references" default:"go_symbol_references {\"file\": \"$file\", \"symbol\": \"$symbol\"}" place:"none" doc:"How the uses of a symbol are found; $symbol is qualified (Type.Method), $name is not; $file (absolute), $line and $column (from 1) say where it is declared. Empty: by the text of the files."`
	Definition string `toml:"definition" place:"none" doc:"How the declaration of a symbol is found; $file, $line and $column say where it is used. Empty: not at all."`
	Hover      string `toml:"hover" place:"none" doc:"How a symbol is explained; $file, $line and $column say where it is declared. Empty: not at all."`
}

// Scheduler is the table [scheduler].
type Scheduler struct {
	Enabled  bool   `toml:"enabled" default:"true" doc:"Run scheduled tasks and offer the schedule tools."`
	TickSecs int    `toml:"tick_secs" default:"60" min:"1" doc:"A task begins when it is due; besides, all tasks are looked at after so many seconds."`
	MaxTasks int    `toml:"max_tasks" default:"100" min:"1" doc:"Maximum number of stored tasks; one person can have 25."`
	Tasks    []Task `toml:"tasks" doc:"Tasks that exist from the start."`
}

// Task is an entry of [[scheduler.tasks]].
type Task struct {
	Name  string `toml:"name" doc:"Name of the task, at most 128 characters. Required."`
	Cron  string `toml:"cron" doc:"When it runs repeatedly, in telegram.time_zone: 5 or 6 fields, at most 64 characters."`
	RunAt string `toml:"run_at" doc:"When it runs once: an ISO 8601 time, in telegram.time_zone unless it has an offset."`
	Kind  string `toml:"kind" default:"custom" doc:"Kind of task, at most 64 characters; custom passes the text to the agent, reminder sends it as it is."`
	Task  string `toml:"task" doc:"Text for the agent, or of the reminder, at most 512 characters."`
	Owner int64  `toml:"owner" default:"0" min:"0" doc:"Id of the person in whose name it runs. 0: the first of telegram.admins."`
	Chat  string `toml:"chat" doc:"Where it runs: a group (\"-100123\") or a topic (\"-100123/7\"). Empty: the private chat of its owner."`
}

// Triggers is the table [triggers].
type Triggers struct {
	Listen       string `toml:"listen" form:"listen" place:"none" doc:"Address at which hooks are called, in clear text, such as \"127.0.0.1:8444\"; a proxy before it holds the certificate. The same as telegram.webhook_listen: both share it. Empty: no hook can be called."`
	URL          string `toml:"url" url:"https|http" place:"none" doc:"Public address that leads to listen, such as https://bot.example.com; the path /hooks/NAME follows it. /hooks shows it."`
	MaxBodyBytes int64  `toml:"max_body_bytes" default:"262144" clamp:"1024..1048576" doc:"Bytes that a call may bring."`
	PerMinute    int    `toml:"per_minute" default:"30" clamp:"1..10000" doc:"Calls of one hook that a process accepts in a minute."`
}

// Hook is an entry of [[hooks]].
type Hook struct {
	Name   string   `toml:"name" doc:"Name of the hook in its address: 1 to 32 of a-z, 0-9, _ and -. Required."`
	Secret Secret   `toml:"secret" doc:"Secret that its callers know, at least 16 characters. Required."`
	Prompt string   `toml:"prompt" doc:"What the agent is asked when it is called, at most 2000 characters. {{.alerts.0.status}} names a value of the JSON that a call brings, {{body}} all of it, {{event}} the kind of event. A prompt that names nothing is followed by all of it. Required."`
	When   []string `toml:"when" doc:"What must be true of a call to begin a turn, each like event=pull_request or .pull_request.merged=true, named as in prompt. Empty: every call begins one."`
	Owner  int64    `toml:"owner" default:"0" min:"0" doc:"Id of the person in whose name it runs, and who pays. 0: the first of telegram.admins."`
	Chat   string   `toml:"chat" doc:"Where it runs: a group (\"-100123\") or a topic (\"-100123/7\"). Empty: the private chat of its owner."`
}

// Memory is the table [memory].
type Memory struct {
	Enabled  bool         `toml:"enabled" default:"true" doc:"Offer the memory tools."`
	Semantic bool         `toml:"semantic" default:"true" doc:"Search by meaning where embeddings exist."`
	Limits   MemoryLimits `toml:"limits" doc:"Limits of the memory tools."`
}

// MemoryLimits is the table [memory.limits].
type MemoryLimits struct {
	Entries       int `toml:"entries" default:"1000" min:"1" doc:"Maximum number of entries of one person."`
	ContentBytes  int `toml:"content_bytes" default:"4096" min:"1" doc:"Maximum size of an entry, in bytes."`
	SearchResults int `toml:"search_results" default:"5" min:"1" max:"20" doc:"Number of search results unless the model asks for more."`
}

// Quotas is the table [quotas].
type Quotas struct {
	OnRedisDown string `toml:"on_redis_down" default:"deny" enum:"deny|allow" doc:"No longer used: while Redis is away, the ledger in the database decides (docs/redis.md)."`
	Payer       string `toml:"payer" default:"user" enum:"user|chat|both" doc:"Who pays in a group: the person who writes, the group, or both. Limits that are set for a single chat hold there whoever pays."`
	User        Limits `toml:"user" doc:"Limits of each person. 0: no limit."`
	Chat        Limits `toml:"chat" doc:"Limits of each chat. 0: no limit."`
	Bot         Limits `toml:"bot" doc:"Limits of the whole bot. 0: no limit."`
}

// Limits is a table of [quotas].
type Limits struct {
	TurnsPerDay    int     `toml:"turns_per_day" default:"0" min:"0" doc:"Turns a day. Days and months begin at midnight in telegram.time_zone."`
	TurnsPerMonth  int     `toml:"turns_per_month" default:"0" min:"0" doc:"Turns a month."`
	TokensPerDay   int     `toml:"tokens_per_day" default:"0" min:"0" doc:"Tokens a day, read and written. A call of the model needs room for its longest answer (max_tokens)."`
	TokensPerMonth int     `toml:"tokens_per_month" default:"0" min:"0" doc:"Tokens a month."`
	USDPerDay      float64 `toml:"usd_per_day" default:"0" min:"0" doc:"USD a day, at the prices of llm.providers. What a model would answer whose price nobody knows is refused."`
	USDPerMonth    float64 `toml:"usd_per_month" default:"0" min:"0" doc:"USD a month."`
}

// Audit is the table [audit].
type Audit struct {
	Enabled         bool   `toml:"enabled" default:"true" doc:"Write the audit log."`
	Destination     string `toml:"destination" place:"obeyed" doc:"File path, or stdout. Empty: data_dir/audit.jsonl."`
	Required        bool   `toml:"required" default:"true" doc:"Refuse tool calls while the audit log cannot be written."`
	MaxBytes        int64  `toml:"max_bytes" default:"67108864" min:"0" doc:"Size in bytes at which the log continues in a new file. 0: no limit."`
	Rotate          string `toml:"rotate" default:"size" enum:"size|day" place:"none" doc:"When the log continues in a new file: at max_bytes (size), or every day too (day). With retention.audit it does so every day."`
	ToolRiskSummary bool   `toml:"tool_risk_summary" default:"false" idle:"the risk summary" doc:"Add a summary of the tools' risks."`
}

// Metrics is the table [metrics].
type Metrics struct {
	Listen    string `toml:"listen" form:"listen" doc:"Address of /metrics, /healthz, /readyz and the operator's page /admin, such as \"127.0.0.1:9090\". Empty: off."`
	PublicURL string `toml:"public_url" url:"https|http" place:"none" doc:"Address at which people reach the operator's page (/admin) from elsewhere, such as https://zeph.example.org; a proxy before listen holds the certificate and leaves Host as it is. Empty: the page answers on this machine only, for instance through ssh -L."`
	Pprof     bool   `toml:"pprof" default:"false" doc:"Serve profiles of the running program below /debug/pprof/ on the same address, for go tool pprof. Whoever reaches it can slow the service down: config check warns if the address is not one of this machine."`
}

// Tracing is the table [tracing].
type Tracing struct {
	Endpoint    string            `toml:"endpoint" url:"https|http" place:"none" doc:"OTLP collector for traces over HTTP, such as \"http://127.0.0.1:4318\"; without a path, /v1/traces. Empty: off."`
	SampleRatio float64           `toml:"sample_ratio" default:"1.0" min:"0" max:"1" doc:"Share of the turns that are traced."`
	Headers     map[string]Secret `toml:"headers" doc:"HTTP headers sent to the collector, such as a key."`
}

// Log is the table [log].
type Log struct {
	Level  string `toml:"level" default:"info" enum:"trace|debug|info|warn|error" doc:"Lowest level that is logged."`
	Format string `toml:"format" default:"console" enum:"console|json" doc:"Format of log lines: for people (console) or for machines (json)."`
}
