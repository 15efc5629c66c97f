package app

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/tracing"
	"github.com/zephbot/zephbot/persistence/sql"
)

// The phases of a turn whose durations are measured, besides those of agent.
const (
	queuePhase   = "queue"   // from the arrival of a message to the beginning of its turn
	modelPhase   = "model"   // each attempt to call a model
	deliverPhase = "deliver" // from when an answer is stored until it has been sent
)

// observe updates the metrics.
func (s *service) observe(o dispatch.Observation) {
	m := s.core.metrics
	switch o.What {
	case "update":
		m.Update(o.Kind)
	case "turn":
		m.Turn(o.Kind)
	case "queue":
		m.Phase(queuePhase, o.Duration)
		now := s.core.now()
		s.core.tracer.Queued(o.Turn, now.Add(-o.Duration), now)
	case "end":
		now := s.core.now()
		s.core.tracer.Turn(tracing.Ended{
			Turn: o.Turn, Session: o.Session, Channel: s.ch.name, Outcome: o.Kind, Reason: o.Reason,
			From: now.Add(-o.Duration), To: now, Stats: o.Stats,
		})
		if o.Reason != "" {
			m.Ended(o.Reason)
		}
	}
}

// observePhase measures a phase of a run.
func (c *Core) observePhase(ctx context.Context, phase string, took time.Duration) {
	if phase == agent.ContextPhase { // the calls of tools are spans of their own
		c.tracer.Phase(ctx, phase, took)
	}
	c.metrics.Phase(phase, took)
}

// observeAttempt measures a call of a model.
func (c *Core) observeAttempt(ctx context.Context, a route.Attempt) {
	if c.tracer != nil {
		c.tracer.Asked(ctx, c.tracedModel(a.Provider), a)
	}
	kind := ""
	if a.Err != nil {
		kind = string(llm.KindOf(a.Err))
	}
	c.metrics.Asked(a.Provider, kind)
	c.metrics.Model(a.Provider, a.Usage.Input, a.Usage.CachedInput, a.Usage.Output, a.USD)
	c.metrics.Phase(modelPhase, a.Duration)
}

// watched adds the metrics to the hooks of the database.
func (c *Core) watched(hooks sql.Hooks) sql.Hooks {
	hooks.Took = c.metrics.Committed
	return hooks
}

// throttled counts the delays that the Bot API requested.
func (c *Core) throttled(place bot.Place, wait time.Duration) {
	c.metrics.Throttled(wait)
	c.log.Warn().Str("chat", place.Chat).Str("wait", wait.Round(time.Millisecond).String()).
		Msg("rate limited by Telegram")
}

// counted counts decisions.
type counted struct {
	*approval.Broker
	core *Core
}

// Press implements turn.Approvals.
func (a counted) Press(ctx context.Context, msg *bot.Message) (turn.Effect, error) {
	e, err := a.Broker.Press(ctx, msg)
	return a.counting(ctx, e), err
}

// Explain implements turn.Explanations.
func (a counted) Explain(ctx context.Context, msg *bot.Message, at time.Time) (turn.Effect, error) {
	e, err := a.Broker.Explain(ctx, msg, at)
	return a.counting(ctx, e), err
}

// Command implements command.Questions.
func (a counted) Command(ctx context.Context, call *turn.Call, state bot.ApprovalState) (turn.Effect, error) {
	e, err := a.Broker.Command(ctx, call, state)
	return a.counting(ctx, e), err
}

// Withdraw implements turn.Approvals.
func (a counted) Withdraw(ctx context.Context, session bot.SessionKey, turn, by string, change *bot.Change) error {
	before := len(change.Decide)
	err := a.Broker.Withdraw(ctx, session, turn, by, change)
	a.count(ctx, change.Decide[before:])
	return err
}

// Expired implements turn.Approvals.
func (a counted) Expired(ctx context.Context, now time.Time) ([]turn.Effect, error) {
	effects, err := a.Broker.Expired(ctx, now)
	for _, e := range effects {
		a.count(ctx, e.Change.Decide)
	}
	return effects, err
}

// counting counts the decisions of an Effect. Whether a vote decides is known when it is stored.
func (a counted) counting(ctx context.Context, e turn.Effect) turn.Effect {
	a.count(ctx, e.Change.Decide)
	votes, then := e.Change.Decide, e.Then
	if then == nil {
		return e
	}
	e.Then = func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
		for i, state := range applied.Decided {
			if i < len(votes) && votes[i].State == bot.Open && state != bot.Open {
				decided := votes[i]
				decided.State = state
				a.count(ctx, []bot.Decision{decided})
			}
		}
		return then(ctx, applied)
	}
	return e
}

func (a counted) count(ctx context.Context, list []bot.Decision) {
	for _, d := range list {
		if d.State == bot.Open { // a vote
			continue
		}
		a.core.metrics.Approval(string(d.State))
		if a.core.tracer == nil {
			continue
		}
		if asked, err := a.core.stores.Bot.Approval(ctx, d.ID); err == nil {
			a.core.tracer.Decided(&asked, d)
		}
	}
}

// gauges registers values that are read when the metrics are requested.
func (s *service) gauges() {
	m := s.core.metrics
	m.Gauge("sessions_active", "Sessions being worked on in this process.", func() float64 {
		return float64(s.dispatcher.Working())
	})
	m.Gauge("queue_depth", "Sessions waiting for a worker in this process.", func() float64 {
		return float64(s.dispatcher.Queued())
	})
	m.GaugesBy("mcp_servers", "MCP servers by state.", "state", s.core.serverCounts)
	s.core.counters()
	s.core.vitals(s.ch)
}
