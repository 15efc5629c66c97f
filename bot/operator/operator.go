// Package operator is the operator's page: what the service does, what waits and what went wrong, on a web page for
// admins. A person signs in by a link for one use that the bot sends them (/admin). The page reads the store, and so
// shows the work of all processes. It changes three things: dead letters are retried or dropped, open questions are
// decided, and limits are set, the latter two on the same paths as in the chat.
//
// The page and the server speak JSON (http.go). Every answer passes the redactor, and texts of conversations are given
// only for a request of their own, which is put on record.
package operator

import (
	"context"
	"net/http"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
)

// PageSize is the number of rows of one answer.
const PageSize = 50

// Deps are the dependencies of a Page. Those of Words and Listen are for the command.
type Deps struct {
	About
	Store bot.Store
	// Admin reports whether a caller id is an admin's at this moment.
	Admin func(ctx context.Context, caller string) (bool, error)
	// Redact removes secrets from a text.
	Redact func(text string) string
	// Plain returns what a model reads of a result as people read it; nil = as it is.
	Plain func(text string) string
	Sources
	Effects
	Decisions
	Words  texts.Words
	Now    func() time.Time
	Log    zerolog.Logger
	Listen string // metrics.listen; "" = there is no page
	Public string // metrics.public_url; "" = the page is reached on this machine only
}

// About says whose page it is.
type About struct {
	Channel, Bot string
	Name         string // of the bot
	Owner        string // of this process
	Version      string
	Started      time.Time
	// Processes lists those that work on the same database, this one first.
	Processes func() []string
}

// Sources are what the page shows besides the store. A source may be nil: then there is nothing to show.
type Sources struct {
	Servers func() []mcp.Status
	// Bars lists how much of the limits is used, given the sums of the charges since the day that MonthBegan returns.
	Bars       func(ctx context.Context, sums []bot.Charge) ([]quota.Bar, error)
	MonthBegan func() string
	// Audit searches the audit logs.
	Audit func(ctx context.Context, q AuditQuery) (AuditPage, error)
	// Spent returns the USD that each provider has cost since this process began.
	Spent func() map[string]float64
	// Priceless names the models whose price nobody knows: what they cost is not in any sum.
	Priceless []string
	// Names returns the names of people by caller id, as far as they are known.
	Names func() map[string]string
}

// AuditQuery selects lines of the audit logs; what is empty selects all.
type AuditQuery struct {
	Person, Tool, Result string
	Since, Until         time.Time
	Next                 string // of the page before
	Limit                int
}

// AuditPage is what was found, newest first. A page may end early, with Next, because a search is bounded.
type AuditPage struct {
	Lines []any // objects with the fields that panels.js shows
	Next  string
	Back  time.Time // how far the search has come
}

// Effects are what follows from what the page changes.
type Effects struct {
	// Line makes the facts of an audit line, which are stored with what it describes; Recorded writes what is stored.
	Line     func(call *tools.Call) []bot.Fact
	Recorded func(ctx context.Context)
	Wake     func(session bot.SessionKey)
	Deliver  func(place bot.Place)
}

// Page serves the page and answers /admin. It is safe for concurrent use and starts no goroutines.
type Page struct {
	deps    Deps
	handler http.Handler
	tries   tries
}

// New returns a Page.
func New(deps Deps) *Page {
	if deps.Names == nil {
		deps.Names = func() map[string]string { return nil }
	}
	p := &Page{deps: deps}
	p.handler = p.routes()
	return p
}

// Feature returns /admin, which is off where there is no page; p is nil where nobody could sign in.
func (p *Page) Feature(words texts.Words) feature.Feature {
	return feature.Feature{Name: "operator", Off: p == nil || p.deps.Listen == "", Commands: []feature.Command{
		{Name: "admin", Audience: feature.Admins, Private: true, Run: p.Command, OffText: words.OperatorOff},
	}}
}

// recordChange stores a Change with its audit line, and has the line written.
func (p *Page) recordChange(ctx context.Context, change *bot.Change, call *tools.Call) (*bot.Applied, error) {
	if p.deps.Line != nil {
		change.Facts = append(change.Facts, p.deps.Line(call)...)
	}
	applied, err := p.deps.Store.Apply(ctx, change)
	if err == nil && p.deps.Recorded != nil {
		p.deps.Recorded(ctx)
	}
	return applied, err
}
