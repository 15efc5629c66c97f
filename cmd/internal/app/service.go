package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/zephbot/zephbot/bot/moves"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/metrics"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/tools"
)

// Times of a shutdown; together they stay below the 30 s that platforms give.
const (
	graceTurns  = 18 * time.Second
	graceOutbox = 5 * time.Second
)

// channel is what a service needs of the channel it serves.
type channel struct {
	name, bot string
	display   string // the bot's name, for its prompt
	decoders  map[bot.Source]bot.Decoder
	composer  bot.Composer
	sender    bot.Sender
	live      bot.Live // nil: progress is shown by watch
	watch     func(turn.Watched) turn.Progress
	guard     turn.Guard
	rights    func(bot.Place, string) approval.Rights
	admins    func() []string
	operators []bot.Place // where admins are told of what cannot be stored
	limits    deliver.Limits
	nobody    bool          // there is nobody to ask: questions are denials
	grace     time.Duration // how long a shutdown waits for turns; 0 = graceTurns
}

// service is a channel at work: dispatcher and outbox over the core.
type service struct {
	core       *Core
	ch         channel
	dispatcher *dispatch.Dispatcher
	outbox     *deliver.Outbox
	commands   *command.Table
	broker     *approval.Broker
	meter      *quota.Meter
	desk       *servers.Desk               // answers /mcp
	pacing     func(context.Context) error // keeps the send budget with other processes; nil = there are none
	log        zerolog.Logger
}

func newService(c *Core, ch channel) (*service, error) {
	ch.sender = surely{ch.sender, c.stores.Sure}
	if ch.live != nil {
		ch.live = surelyLive{ch.live, c.stores.Sure}
	}
	s := &service{core: c, ch: ch, log: c.log}
	words := c.words()
	store := moves.Watched{Store: c.stores.Bot, Moved: func(ctx context.Context) {
		c.relocate(ctx)
		s.meter.Forget() // the charges have moved; the counters follow them
	}}
	pacer, pacing, err := c.pacer(ch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s.pacing = pacing
	broker := approval.New(approval.Deps{
		Store: store, Rights: servers.OnlyAdmins(ch.rights), Words: words, Now: c.now, Blobs: c.stores.Blobs, Covers: c.covers, Alive: c.alive, Line: c.ruleLine, Record: c.settleAudit,
	}, c.cfg.Telegram.ApprovalTimeout)
	s.broker = broker
	decided := counted{broker, c}
	s.desk = s.newDesk(decided)
	questions := servers.Questions{Broker: decided, Desk: s.desk}
	s.meter = quota.New(quota.Options{
		Limits: quota.Limits{
			User: int64(c.cfg.Quotas.User.TurnsPerDay), Chat: int64(c.cfg.Quotas.Chat.TurnsPerDay), Bot: int64(c.cfg.Quotas.Bot.TurnsPerDay),
		},
		ByChat: chatQuotas(c), Payer: c.cfg.Quotas.Payer, AllowOnDown: c.cfg.Quotas.OnRedisDown == "allow",
	}, c.redis, store, words, c.now, c.metrics.Denied)
	s.commands = command.New(command.Deps{
		Store: store, Questions: questions, Policy: rulebook{c}, Usage: s.meter.Usage, About: s.about(), Admins: ch.admins, Words: words, Now: c.now,
		Blocks: c.blockedTools(), Servers: s.desk, Behind: background{c},
	})
	s.outbox = deliver.NewOutbox(deliver.Deps{
		Store: store, Sender: ch.sender, Pacer: pacer, Words: words, Language: func(row *bot.Row) string { return row.Content.Language }, Now: c.now, Log: c.log.With().Str("component", "outbox").Logger(),
		Observe: s.delivered,
	}, deliver.Options{Channel: ch.name, Bot: ch.bot, Shared: c.shared()})
	chain := c.chain(broker, c.request)
	if ch.nobody {
		chain = c.chain(nil, c.request)
	}
	runner := c.runner(executor{chain: chain, audit: c.audit, metrics: c.metrics}, ch.display)
	grace := cmp.Or(ch.grace, graceTurns)
	offered := deliver.Offered{Store: store, Outbox: s.outbox}
	s.dispatcher = dispatch.New(dispatch.Parts{
		Store: offered, Decoders: ch.decoders, Workspace: c.dirs().ID, Composer: ch.composer, Runner: runner, Guard: ch.guard, Meter: s.meter, Commands: s.commands,
		Approvals: questions, Outbox: offered, Direct: deliver.Paced{Sender: ch.sender, Pacer: pacer}, Operators: ch.operators, Progress: c.progress(ch, pacer), Words: words, Log: c.log.With().Str("component", "dispatcher").Logger(), Now: c.now,
		Observe: s.observe, News: c.news.Read,
	}, dispatch.Options{
		Channel: ch.name, Bot: ch.bot, Owner: c.owner, Concurrency: c.cfg.Agent.Concurrency, Memory: turnMemory(), Grace: grace, Shared: c.shared(),
	})
	return s, nil
}

// progress shows turns under way, as the channel does it itself or by messages that grow; nil = not at all.
func (c *Core) progress(ch channel, pacer bot.Pacer) func(turn.Watched) turn.Progress {
	if ch.watch != nil || ch.live == nil {
		return ch.watch
	}
	return func(w turn.Watched) turn.Progress {
		return deliver.NewProgress(
			deliver.ProgressDeps{Live: ch.live, Pacer: pacer, Words: c.words(), Now: c.now},
			deliver.Spec{Place: w.Place, Draft: w.Draft, Language: w.Language, Placeholder: w.Placeholder, Gone: w.Gone},
			deliver.ProgressOptions{Interval: time.Duration(c.cfg.Telegram.StreamIntervalMS) * time.Millisecond},
		)
	}
}

func chatQuotas(c *Core) map[string]int64 {
	byChat := map[string]int64{}
	for id, chat := range c.cfg.Telegram.Chats {
		if chat.Quota != nil {
			byChat[id] = int64(chat.Quota.TurnsPerDay)
		}
	}
	return byChat
}

func (s *service) about() command.About {
	c := s.core
	return command.About{
		Model: c.modelLine(), Sandbox: c.kit.level, Embedded: c.redis.Embedded(), Engine: c.database(), Version: c.opts.Version, Started: c.started,
		Servers: c.connected, Filters: c.filtered.sum, Redis: c.counting, Processes: c.together,
		Tools: func(place bot.Place) []string {
			var names []string
			for _, d := range c.usable("", tools.Only(s.ch.guard.Rules(place).Allowed)) {
				names = append(names, d.Name)
			}
			return names
		},
	}
}

// observe feeds the metrics.
func (s *service) observe(o dispatch.Observation) {
	m := s.core.metrics
	switch o.What {
	case "update":
		m.Update(o.Kind)
	case "turn":
		m.Turn(o.Kind)
	case "queue":
		m.Phase("queue", o.Duration)
	}
}

// delivered hears what became of each attempt to deliver. What is refused because the chat is gone ends the work that
// goes on for it.
func (s *service) delivered(row bot.Row, outcome string) {
	if outcome == string(bot.Gone) && row.Purpose != bot.Toast {
		s.dispatcher.Gone(row.Place)
	}
}

// throttled counts what the Bot API told us to wait.
func (c *Core) throttled(place bot.Place, wait time.Duration) {
	c.metrics.Throttled(wait)
	c.log.Warn().Str("chat", place.Chat).Dur("wait", wait).Msg("told to slow down")
}

// counted counts decisions.
type counted struct {
	*approval.Broker
	core *Core
}

// Press implements turn.Approvals.
func (a counted) Press(ctx context.Context, msg *bot.Message) (turn.Effect, error) {
	e, err := a.Broker.Press(ctx, msg)
	a.count(e.Change.Decide)
	return e, err
}

// Expired implements turn.Approvals.
func (a counted) Expired(ctx context.Context, now time.Time) ([]turn.Effect, error) {
	effects, err := a.Broker.Expired(ctx, now)
	for _, e := range effects {
		a.count(e.Change.Decide)
	}
	return effects, err
}

func (a counted) count(list []bot.Decision) {
	for _, d := range list {
		if d.State != bot.Open {
			a.core.metrics.Approval(string(d.State))
		}
	}
}

// run serves until ctx ends or intake fails: outbox and dispatcher first, then the intake; ended in reverse, so that
// what was accepted is still worked on and what was answered is still sent.
func (s *service) run(ctx context.Context, intake func(ctx context.Context) error) error {
	outCtx, endOut := context.WithCancel(context.WithoutCancel(ctx))
	defer endOut()
	workCtx, endWork := context.WithCancel(context.WithoutCancel(ctx))
	defer endWork()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var out, work sync.WaitGroup
	part := func(wg *sync.WaitGroup, name string, run func() error) {
		wg.Go(func() {
			if err := run(); err != nil {
				cancel(fmt.Errorf("%s: %w", name, err))
			}
		})
	}
	defer s.whenBuried(func() {
		cancel(persistence.ErrBuried)
		endOut()
	})()
	part(&out, "outbox", func() error { return s.outbox.Run(outCtx) })
	if s.pacing != nil {
		part(&out, "send budget", func() error { return s.pacing(outCtx) })
	}
	s.core.tell, s.core.told = s.desk.Tell(outCtx), s.tellBlocks(outCtx)
	mcpCtx, endMCP := context.WithCancel(outCtx)
	defer endMCP()
	var clients sync.WaitGroup
	part(&clients, "mcp", func() error { return s.core.servers.Run(mcpCtx) })
	if in := s.core.signIns; in != nil {
		part(&clients, "sign-ins", func() error { return in.Run(mcpCtx) })
	}
	part(&clients, "index of tools", func() error { return s.core.resyncing(mcpCtx) })
	if s.core.shared() {
		s.desk.Open(mcpCtx, nil) // what nobody carries out is found by looking
		part(&clients, "what others store", func() error { return s.following(mcpCtx) })
	} else {
		s.desk.Open(mcpCtx, s.desk.Begun(outCtx))
	}
	part(&work, "dispatcher", func() error { return s.dispatcher.Run(workCtx) })
	part(&out, "housekeeping", func() error { return s.sweep(outCtx) })
	err := intake(ctx)
	endWork()
	work.Wait()
	s.desk.Close(endMCP)
	clients.Wait()
	drain, done := context.WithTimeout(outCtx, graceOutbox)
	if drainErr := s.outbox.Drain(drain); drainErr != nil {
		s.log.Warn().Err(drainErr).Msg("answers left in the outbox; the next start sends them")
	}
	done()
	endOut()
	out.Wait()
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// whenBuried ends the work of a process that was taken for dead: nothing that it does counts any more. stop ends the
// watch.
func (s *service) whenBuried(end func()) (stop func()) {
	var watching sync.WaitGroup
	over := make(chan struct{})
	watching.Go(func() {
		select {
		case <-s.core.stores.Buried():
			s.log.Error().Err(persistence.ErrBuried).Msg("stopping at once")
			s.dispatcher.Abandon()
			end()
		case <-over:
		}
	})
	return func() {
		close(over)
		watching.Wait()
	}
}

// When the service forgets what is no longer needed: soon after its start, so that one that is restarted often does so
// too, and then by the hour.
const (
	firstSweep = time.Minute
	sweepEvery = time.Hour
)

// sweep forgets, again and again, what is no longer needed.
func (s *service) sweep(ctx context.Context) error {
	const day = 24 * time.Hour
	keep := persistence.Retention{
		Journal: time.Duration(s.core.cfg.Retention.Journal) * day, Outbox: time.Duration(s.core.cfg.Retention.Outbox) * day,
		Blobs: time.Duration(s.core.cfg.Retention.Blobs) * day,
	}
	own := s.core.opts.Housekeeping
	timer := time.NewTimer(cmp.Or(own, firstSweep))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
			err := s.core.stores.Sweep(ctx, s.core.now(), keep)
			if err != nil && ctx.Err() == nil {
				s.log.Error().Err(err).Msg("old rows not removed")
			}
			s.core.metrics.Swept(err == nil)
			timer.Reset(cmp.Or(own, sweepEvery))
		}
	}
}

// serveHTTP serves metrics and health checks until ctx ends; no address, no server.
func (c *Core) serveHTTP(ctx context.Context, health metrics.Health) (stop func(), err error) {
	if c.cfg.Metrics.Listen == "" {
		return func() {}, nil
	}
	listener, err := c.listen(ctx, "metrics.listen", c.cfg.Metrics.Listen)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: c.metrics.Handler(health), ReadHeaderTimeout: 5 * time.Second, WriteTimeout: 15 * time.Second}
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			c.log.Error().Err(err).Msg("metrics server ended")
		}
	})
	c.log.Info().Str("metrics", "http://"+listener.Addr().String()+"/metrics").Msg("start")
	return func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer cancel()
		if err := server.Shutdown(end); err != nil {
			_ = server.Close() // it is ending anyway
		}
		wg.Wait()
	}, nil
}

// gauges are read when somebody looks at the metrics.
func (s *service) gauges() {
	s.core.metrics.Gauge("sessions_active", "Sessions being worked on in this process.", func() float64 { return float64(s.dispatcher.Working()) })
	s.core.metrics.GaugesBy("mcp_servers", "MCP servers by state.", "state", s.core.serverCounts)
	if r := s.core.redis; !r.Embedded() {
		s.core.metrics.Gauge("redis_up", "1 when the last operation on the Redis server worked, else 0.", func() float64 {
			if r.Health().State == redis.Fine {
				return 1
			}
			return 0
		})
	}
	s.core.metrics.Gauge("queue_depth", "Sessions waiting for a worker in this process.", func() float64 { return float64(s.dispatcher.Queued()) })
}
