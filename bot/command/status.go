package command

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
)

// About is what /status and /tools show.
type About struct {
	Model    func(session bot.SessionKey) string
	Persona  func(session bot.SessionKey) string // "" = none; may be nil
	Sandbox  reason.Reason
	Embedded bool   // counters are kept in the process
	Engine   string // of the database, as people call it
	Version  string
	Started  time.Time
	Tools    func(session bot.SessionKey, place bot.Place) []texts.Tool
	Unset    func() []texts.Unset // tools that are absent because a key is not set; may be nil
	// Aside lists tools that servers of models refuse, which are not offered to them; may be nil.
	Aside func() []texts.SetAside
	// Fenced reports whether the model of a conversation takes no tools, so that it writes
	// its calls as text; may be nil.
	Fenced  func(session bot.SessionKey) bool
	Servers func() texts.Connected // may be nil
	Filters func() texts.Filtered  // may be nil
	// Processes returns the processes that use the same database, this one first. May be nil.
	Processes func() []string
	// Previews says whether questions about commands show what they would do; may be nil.
	Previews func(ctx context.Context) texts.Previews
	// Redis asks the server for its state; it returns nil if there is no server. May be nil.
	Redis func(ctx context.Context) *texts.Redis
}

// Status shows the state of a conversation and of the service, and which tools there are. Safe for concurrent use.
type Status struct {
	Store  Store
	About  About
	Blocks Blocks          // nil = nothing is ever blocked
	Admins func() []string // names or ids, for refusals
	Words  texts.Words
	Now    func() time.Time
}

// Feature returns /status and /tools.
func (s *Status) Feature() feature.Feature {
	return feature.Feature{Name: "status", Commands: []feature.Command{
		{Name: "status", Shows: true, Run: s.answerStatus},
		{Name: "tools", Shows: true, Run: s.answerTools},
	}}
}

func (s *Status) answerStatus(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	place, about := call.Message.Place, s.About
	lane, err := s.Store.Lane(ctx, call.Session)
	if err != nil {
		return turn.Effect{}, err
	}
	waiting, err := s.Store.Tickets(ctx, string(call.Session))
	if err != nil {
		return turn.Effect{}, err
	}
	state := texts.Status{
		Model:   about.Model(call.Session),
		Lane:    lane,
		Waiting: len(waiting),
	}
	for _, t := range s.usableTools(call) {
		state.Tools = append(state.Tools, t.Name)
	}
	if lane.Turn != "" { // it still counts the message that it began with
		state.Waiting = max(0, state.Waiting-1)
	}
	if !lane.Since.IsZero() {
		state.Since = s.Now().Sub(lane.Since)
	}
	if about.Persona != nil {
		state.Persona = about.Persona(call.Session)
	}
	if about.Fenced != nil {
		state.Fenced = about.Fenced(call.Session)
	}
	if about.Servers != nil {
		state.Servers = about.Servers()
	}
	if call.Admin {
		if state.Details, err = s.adminDetails(ctx, place); err != nil {
			return turn.Effect{}, err
		}
	}
	return call.ReplyText(s.Words.Status(call.Message.Language, state)), nil
}

// adminDetails returns what /status shows to admins.
func (s *Status) adminDetails(ctx context.Context, place bot.Place) (*texts.Details, error) {
	about := s.About
	counts, err := s.Store.Counts(ctx, place.Channel, place.Bot)
	if err != nil {
		return nil, err
	}
	// Arrivals in progress do not wait: each turn holds the arrival that it began with, and this command is one itself.
	counts.Queued = max(0, counts.Queued-counts.Running-counts.Parked-counts.Waiting-1)
	d := &texts.Details{
		Counts: counts, Sandbox: about.Sandbox, Embedded: about.Embedded, Engine: about.Engine, Version: about.Version,
		Up: s.Now().Sub(about.Started),
	}
	if about.Previews != nil {
		d.Previews = about.Previews(ctx)
	}
	if about.Filters != nil {
		d.Filters = about.Filters()
	}
	if about.Processes != nil {
		d.Processes = about.Processes()
	}
	if about.Redis != nil {
		d.Redis = about.Redis(ctx)
	}
	return d, nil
}
