package app

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot/blocks"
	"github.com/zephbot/zephbot/bot/processes"
	"github.com/zephbot/zephbot/bot/record"
	"github.com/zephbot/zephbot/bot/rulebook"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/recall"
	"github.com/zephbot/zephbot/bot/choice"
	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/news"
	"github.com/zephbot/zephbot/bot/search"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/metrics"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/cmd/internal/tracing"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/document"
	"github.com/zephbot/zephbot/tools/filter"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/undo"
)

// Core is what all commands that run tools share: stores, policy, tools, model.
type Core struct {
	opts    Options
	cfg     *config.Config
	log     zerolog.Logger
	now     func() time.Time
	started time.Time
	dir     string // of state
	owner   string
	stores  *persistence.Stores
	redis   *redis.Store
	guarding
	thinking
	shaping
	connecting
	remembering
	recording
	registry *tools.Registry
	kit      *kit
	// documents reads those that people send; nil on a channel without files.
	documents *document.Reader
	passing   bool     // for one command line: nothing is stored
	warnings  []string // about what was read at startup
	observing
}

// observing is for operators: metrics and traces.
type observing struct {
	metrics *metrics.Metrics
	tracer  *tracing.Tracer // nil = off
}

// guarding is what decides about calls and texts.
type guarding struct {
	redactor *redact.Redactor
	policy   *policy.Set
	globs    *pathrule.Rules  // deny_read and allow_read
	reader   *command.Reader  // parses the texts of commands, for everything that needs that
	judge    tools.Middleware // nil = off
	book     *rulebook.Book   // the rules, applied to what the service knows
}

// thinking holds the models.
type thinking struct {
	provider llm.Provider    // all models as one; nil = this process needs none
	models   *providers.Set  // of the configuration
	choices  *choice.Choices // made by people
	personas *choice.Personas
	// payer pays for what is asked for a turn by its id, while the turn is under way; set before anything runs
	payer func(turn string) cost.Payer
}

// shaping is what tools are offered and how their results are processed.
type shaping struct {
	stages   *stages
	catalog  *catalog.Catalog
	engine   *filter.Engine
	filtered tally
	skilling
}

// connecting holds the MCP servers and what is told about them.
type connecting struct {
	servers *mcp.Manager
	signIns *servers.SignIns // nil = no server requires a sign-in
	resync  chan struct{}    // signals that the index of tools is outdated
	tell    func(mcp.Notice) // tells people; nil = nobody; set before the client runs
	elicit  func(context.Context, mcp.Elicitation) (mcp.Answer, error)
}

// recording is the audit log of this process.
type recording struct {
	audit     *audit.Log
	auditFile string       // its path; "" = none
	records   *record.Book // of what is no call of a tool; nil where nothing is stored
}

// remembering is what is stored besides conversations.
type remembering struct {
	living   *processes.Living // that work on the same database
	news     *news.Ledger      // for the models of sessions
	moves    *moves.Map        // groups with new ids
	code     indexing          // of the code of workspaces
	undo     *undo.Store       // of files that calls change; nil where nothing is stored
	memory   *memory.Store     // between conversations; nil = off
	searcher *search.Searcher
	compared *recall.Index      // what was said, by meaning; nil = by words only
	meanings *meanings          // of memories; nil = they are searched by words
	told     func(blocks.Event) // told to people; nil = nobody; set before turns run
	planning
}
