// Package servers is what people do with MCP servers in a chat: /mcp and its jobs, sign-ins, what people and models are
// told about a server, and servers that ask the model. The client of the servers is tools/mcp.
package servers

import (
	"context"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/catalog"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
)

// Store is what a Handler reads (bot.Store); it writes through a Keeper.
type Store interface {
	bot.Facts
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
	Approval(ctx context.Context, id string) (bot.Approval, error)
}

// Broker puts questions to people (approval.Broker).
type Broker interface {
	turn.Approvals
	approval.Questions
	approve.Lookup
}

// Audit records what people did with servers.
type Audit interface {
	// Record writes a line about something that has ended.
	Record(call *tools.Call, err error)
	// Due returns the facts of a line, which is written once they are stored.
	Due(call *tools.Call, err error) []bot.Fact
	// Settle writes the lines that are due.
	Settle(ctx context.Context)
}

// News records which sessions have news (news.Ledger).
type News interface{ Note(session bot.SessionKey) }

// Setup is the configuration of servers.
type Setup struct {
	Channel, Bot    string                  // of the chats that are served
	Owner           string                  // name of this process: what another one has begun was interrupted
	Shared          bool                    // other processes use the same store
	Lives           func(owner string) bool // reports whether one of them lives; required if Shared
	Nobody          bool                    // there is nobody to ask: no server can be added
	Programs        bool                    // programs may be added, too
	AllowedCommands []string
	Patience        time.Duration // how long a question waits
}

// Deps are the dependencies of a Handler. All but SignIns are required.
type Deps struct {
	Setup
	Client  Client
	SignIns *SignIns // nil = no server wants a sign-in
	Store   Store
	Keeper  facts.Keeper
	Moves   *moves.Map
	News    News
	Broker  Broker
	Audit   Audit
	// Aside lists tools that servers of models refuse, which are not offered to them; may be nil.
	Aside     func() []texts.SetAside
	Words     texts.Words
	Shares    func() (map[string]catalog.Share, int)         // of what a model is shown
	EndGrants func(ctx context.Context, server string) error // ends the standing approvals for a server's tools
	Send      func(ctx context.Context, row bot.Row, facts ...bot.Fact)
	Wake      func(place bot.Place) // announces that a row was stored
	Now       func() time.Time
	Log       zerolog.Logger
}

// Handler handles /mcp. What takes a while is done in the background, between Open and Close. Safe for concurrent use.
type Handler struct {
	deps Deps

	aside     sync.Mutex      // guards asideCtx
	asideCtx  context.Context //nolint:containedctx // of Open, for work that commands start; nil before and after
	asideWork sync.WaitGroup
	doing     map[string]bool // by message: jobs that are being performed
}

// New returns a Handler.
func New(deps Deps) *Handler { return &Handler{deps: deps, doing: map[string]bool{}} }

// Open lets commands start background work until Close is called or ctx ends, and resumes jobs that an earlier process
// has begun.
func (d *Handler) Open(ctx context.Context, begun []Job) {
	d.aside.Lock()
	defer d.aside.Unlock()
	d.asideCtx = ctx
	d.asideWork.Go(func() { d.resumeJobs(ctx, begun) })
}

// Close stops accepting such work, has end stop what it needs, and waits for it.
func (d *Handler) Close(end func()) {
	d.aside.Lock()
	d.asideCtx = nil
	d.aside.Unlock()
	end()
	d.asideWork.Wait()
}

// startBeside runs work that a command started, until the service stops. The work reports its own errors.
func (d *Handler) startBeside(work func(ctx context.Context)) error {
	d.aside.Lock()
	defer d.aside.Unlock()
	if d.asideCtx == nil {
		return reason.Err(reason.ServiceStops)
	}
	ctx := d.asideCtx
	d.asideWork.Go(func() { work(ctx) })
	return nil
}
