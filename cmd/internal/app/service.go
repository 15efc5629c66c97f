package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/llm/pay"
	"github.com/zephbot/zephbot/bot/blocks"
	"github.com/zephbot/zephbot/bot/processes"
	"github.com/zephbot/zephbot/bot/rulebook"

	"github.com/zephbot/zephbot/bot/memory"
	"github.com/zephbot/zephbot/bot/moves"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/choice"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/halt"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/recap"
	"github.com/zephbot/zephbot/bot/receipt"
	"github.com/zephbot/zephbot/bot/refusal"
	"github.com/zephbot/zephbot/bot/schedule"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/bot/sign"
	"github.com/zephbot/zephbot/bot/skills"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/zone"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/tools"
)

// Time limits of a shutdown; together they are below the 30 s that platforms allow.
const (
	graceTurns  = 18 * time.Second
	graceOutbox = 5 * time.Second
	graceAudit  = 2 * time.Second
)

// arrivals says what becomes of messages that come close together.
type arrivals struct {
	merge time.Duration // window in which messages of one person are one
	busy  dispatch.Busy // what becomes of a text that arrives during a turn
}

// channel is what a service needs from the channel that it serves.
type channel struct {
	name, bot string
	display   string // the bot's name, for its prompt
	decoders  map[bot.Source]bot.Decoder
	composer  bot.Composer
	sender    bot.Sender
	arrivals
	files bot.Files // gives what came along; nil: it is known by name only
	showing
	guard     turn.Guard
	people    *access.Desk // admits people in the chat; nil = nobody does
	rights    servers.Rights
	reach     func(ctx context.Context, place bot.Place, caller string) (bool, error)
	admins    func() []string
	operators func() []bot.Place              // where admins are told of what cannot be stored; nil = nowhere
	follow    func(ctx context.Context) error // reads again who was admitted; nil = nobody is
	limits    deliver.Limits
	nobody    bool          // there is nobody to ask: questions are denied
	once      bool          // one message is answered, and nothing else is said
	grace     time.Duration // how long a shutdown waits for turns; 0 = graceTurns
}

// showing is how a channel shows what is not an answer.
type showing struct {
	live    bot.Live // nil: progress is shown by watch
	watch   func(turn.Watched) turn.Progress
	reactor bot.Reactor // shows signs on messages that wait; nil = there are none
}

// service is a running channel: dispatcher and outbox on top of the core.
type service struct {
	core       *Core
	ch         channel
	dispatcher *dispatch.Dispatcher
	outbox     *deliver.Outbox
	commands   *command.Table
	broker     *approval.Broker
	meter      *quota.Meter
	desk       *servers.Desk // handles /mcp
	moves      *moves.Relocator
	recap      *recap.Desk
	signs      *sign.Desk                  // signs on messages that wait; nil = the channel has none
	pacing     func(context.Context) error // shares the send budget with other processes; nil = there are none
	log        zerolog.Logger
}

func newService(c *Core, ch channel) (*service, error) {
	ch.sender = deliver.Surely{Sender: ch.sender, Sure: c.stores.Sure}
	if ch.live != nil {
		ch.live = deliver.SurelyLive{Live: ch.live, Sure: c.stores.Sure}
	}
	s := (&service{core: c, ch: ch, log: c.log}).recalling()
	words := c.words()
	store := s.watchMoves()
	pacer, pacing, err := c.pacer(ch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	s.pacing = pacing
	files, err := c.attachments(ch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	broker := approval.New(approval.Deps{
		Store: store, Rights: servers.OnlyAdmins(ch.rights), Reach: ch.reach, Words: words, Now: c.now, Blobs: c.stores.Blobs, Covers: c.book.Covers, Alive: c.book.Alive, Record: c.records.Settle,
		Line: func(e approval.RuleEvent) []bot.Fact { return c.book.Line(e, c.records.Due) },
	}, c.cfg.Telegram.ApprovalTimeout)
	s.broker = broker
	decided := counted{broker, c}
	s.desk = s.newDesk(decided)
	questions := servers.Questions{Broker: decided, Desk: s.desk}
	s.meter = quota.New(c.meterOptions(), c.redis, store, words, c.now, c.metrics.Denied)
	c.payer = s.meter.PayerOf
	quotas := &quota.Manager{
		Meter: s.meter, Facts: store, Words: words, Now: c.now, Admins: ch.admins, Priceless: priceless(c.cfg), Record: c.quotaLine, Recorded: c.records.Settle,
	}
	deps := command.Deps{
		Store: store, Questions: questions, Policy: rulebook.Answers{Book: c.book, Chain: c.unasked}, Usage: s.meter.Usage, Quotas: quotas, About: s.about(), Admins: ch.admins, Words: words, Now: c.now,
		Blocks: c.blockedTools(), Servers: s.desk, Behind: background{c}, Model: c.choices.Command, Memory: s.memoryCommand(), Schedule: s.openPlan(store), Zone: c.zones.Command,
		Decides: ch.decides, Skills: c.skillCommand(), Recap: s.recap.Command,
	}
	why := refusal.Desk{Store: store, Words: words}
	deps.Refusals = why
	if ch.people != nil {
		deps.People = ch.people
	}
	s.commands = command.New(deps)
	s.outbox = deliver.NewOutbox(deliver.Deps{
		Store: store, Sender: ch.sender, Pacer: pacer, Words: words, Language: func(row *bot.Row) string { return row.Content.Language }, Now: c.now, Log: c.log.With().Str("component", "outbox").Logger(),
		Observe: s.delivered,
	}, deliver.Options{Channel: ch.name, Bot: ch.bot, Shared: c.shared()})
	chain := c.chain(broker)
	if ch.nobody {
		chain = c.chain(nil)
	}
	runner := c.runner(executor{chain: chain, audit: c.audit, metrics: c.metrics, undo: c.undo}, s.meter, ch.display)
	grace := cmp.Or(ch.grace, graceTurns)
	offered := deliver.Offered{Store: store, Outbox: s.outbox}
	s.dispatcher = dispatch.New(dispatch.Parts{
		Store: offered, Decoders: ch.decoders, Composer: ch.composer, Runner: runner, Guard: ch.guard, Meter: s.meter, Commands: s.commands,
		Approvals: questions, Buttons: s.buttons(store, why), Outbox: offered, Direct: deliver.Paced{Sender: ch.sender, Pacer: pacer}, Operators: ch.operators, Progress: c.progress(ch, pacer), Words: words, Log: c.log.With().Str("component", "dispatcher").Logger(), Now: c.now,
		Receiving: dispatch.Receiving{Workspace: c.dirs().ID, Attachments: files, Typing: c.typing(ch, pacer), Signs: s.newSigns(pacer), Memory: c.recalls(), Resumed: s.recap.Resumed, Schedule: s.scheduled()},
		Observe:   s.observe, News: c.news.Read, Model: c.choices.Of,
	}, dispatch.Options{
		Channel: ch.name, Bot: ch.bot, Owner: c.owner, Concurrency: c.cfg.Agent.Concurrency, Memory: turnMemory(), Grace: grace, Merge: ch.merge, Busy: ch.busy, Shared: c.shared(),
	})
	return s, nil
}

// buttons returns the buttons below answers, and what handles them and others.
func (s *service) buttons(store bot.Store, why refusal.Desk) dispatch.Buttons {
	c, ch := s.core, s.ch
	receipts := c.receipts(ch, store)
	stops := halt.Desk{Store: store, Words: c.words(), Rights: ch.rights}
	b := dispatch.Buttons{
		Pressers: map[string]turn.Presser{
			refusal.Prefix: why, receipt.Prefix: receipts, choice.Prefix: c.choices, halt.Prefix: stops,
		},
		Below: below(why.Buttons, receipts.Buttons), Stop: stops.Buttons,
	}
	if c.skillDesk != nil {
		b.Pressers[skills.Prefix] = c.skillDesk
	}
	if c.memory != nil {
		b.Pressers[memory.Prefix] = s.memories()
	}
	if ch.people != nil {
		b.Pressers[access.Prefix] = ch.people
	}
	if b.Pressers[zone.Prefix] = c.zones; c.plan != nil {
		b.Pressers[schedule.Prefix] = c.plan
	}
	return b
}

// watchMoves is the store with what follows when a group gets a new id.
func (s *service) watchMoves() moves.Watched {
	c := s.core
	s.moves = c.relocator(func() {
		s.meter.Forget()
		c.choices.Forget()
		c.movedMemory()
		if c.plan != nil {
			c.plan.Forget()
		}
	})
	return moves.Watched{Store: c.stores.Bot, Moved: func(ctx context.Context) {
		s.moves.Relocate(ctx)
		if err := s.followLimits(ctx); err != nil {
			c.log.Warn().Err(err).Msg("limits of a group that moved not read; tried again within a second")
		}
		if err := c.choices.Follow(ctx); err != nil {
			s.log.Error().Err(err).Msg("which models were chosen is not read")
		}
		if err := c.followMemory(ctx); err != nil {
			s.log.Error().Err(err).Msg("what is remembered is not known")
		}
	}}
}

// progress returns how turns are shown, either by the channel itself or by growing messages; nil = not at all.
func (c *Core) progress(ch channel, pacer bot.Pacer) func(turn.Watched) turn.Progress {
	if ch.watch != nil || ch.live == nil {
		return ch.watch
	}
	return func(w turn.Watched) turn.Progress {
		return deliver.NewProgress(
			deliver.ProgressDeps{Live: ch.live, Pacer: pacer, Words: c.words(), Now: c.now},
			deliver.Spec{Place: w.Place, Draft: w.Draft, Language: w.Language, Placeholder: w.Placeholder, Buttons: w.Buttons, Gone: w.Gone},
			deliver.ProgressOptions{Interval: time.Duration(c.cfg.Telegram.StreamIntervalMS) * time.Millisecond},
		)
	}
}

func (s *service) about() command.About {
	c := s.core
	return command.About{
		Model: c.modelLineOf, Sandbox: c.kit.level, Embedded: c.redis.Embedded(), Engine: c.database(), Version: c.opts.Version, Started: c.started,
		Servers: c.connected, Filters: c.filtered.sum, Redis: c.counting, Processes: c.living.Names, Unset: c.unset,
		Tools: func(place bot.Place) []string {
			var names []string
			for _, d := range c.usable("", tools.Only(s.ch.guard.Rules(place).Allowed)) {
				names = append(names, d.Name)
			}
			return names
		},
	}
}

// delivered receives the outcome of each attempt to deliver. If a chat is gone, it ends the work for that chat.
func (s *service) delivered(row bot.Row, outcome string) {
	if outcome == string(bot.Gone) && row.Purpose != bot.Toast {
		s.dispatcher.Gone(row.Place)
	}
}

// run serves until ctx ends or intake fails. It starts outbox and dispatcher before the intake, and stops them in
// reverse order, so that what was accepted is still worked on and what was answered is still sent.
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
	for name, run := range s.aside() {
		part(&out, name, func() error { return run(outCtx) })
	}
	s.core.tell = s.desk.Tell(outCtx)
	tell := s.teller()
	s.core.told = func(e blocks.Event) { tell.Tell(outCtx, e) }
	mcpCtx, endMCP := context.WithCancel(outCtx)
	defer endMCP()
	var clients sync.WaitGroup
	part(&clients, "mcp", func() error { return s.core.servers.Run(mcpCtx) })
	if in := s.core.signIns; in != nil {
		part(&clients, "sign-ins", func() error { return in.Run(mcpCtx) })
	}
	part(&clients, "index of tools", func() error { return s.core.resyncing(pay.With(mcpCtx, s.meter.House(s.ch.name, s.ch.bot))) })
	if s.core.shared() {
		s.desk.Open(mcpCtx, nil) // jobs that nobody performs are found by the regular check
		part(&clients, "what others store", func() error { return s.follow(mcpCtx) })
	} else {
		s.desk.Open(mcpCtx, s.desk.Begun(outCtx))
	}
	part(&work, "dispatcher", func() error {
		if err := s.meter.Follow(workCtx, s.core.stores.Bot); err != nil { // before the first turn is charged
			return err
		}
		return s.dispatcher.Run(workCtx)
	})
	part(&out, "housekeeping", func() error { return s.sweep(outCtx) })
	err := intake(ctx)
	endWork()
	work.Wait()
	s.desk.Close(endMCP)
	clients.Wait()
	s.drain(outCtx)
	endOut()
	out.Wait()
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// drain sends what is still to be sent, and writes what is due to the audit log: a process that ended in order leaves
// neither to the next one.
func (s *service) drain(ctx context.Context) {
	sending, done := context.WithTimeout(ctx, graceOutbox)
	defer done()
	if err := s.outbox.Drain(sending); err != nil {
		s.log.Warn().Err(err).Msg("answers left in the outbox; the next process sends them")
	}
	if ctx.Err() != nil { // it was buried
		return
	}
	recording, done := context.WithTimeout(ctx, graceAudit)
	defer done()
	s.core.records.Settle(recording)
}

// aside returns what not every service has, by name.
func (s *service) aside() map[string]func(ctx context.Context) error {
	parts := map[string]func(ctx context.Context) error{"recaps": s.recap.Run, "code index": s.core.indexes, "passages of code": s.embedsCode}
	if s.signs != nil {
		parts["signs"] = s.signs.Run
	}
	if s.pacing != nil {
		parts["send budget"] = s.pacing
	}
	if c := s.core; c.library != nil {
		parts["skills"] = func(ctx context.Context) error { return c.library.Follow(ctx, skillsEvery) }
	}
	if s.core.plan != nil {
		parts["schedule"] = s.core.plan.Run
	}
	return parts
}

// follow keeps what this process remembers in step with what other processes have stored, until ctx ends.
func (s *service) follow(ctx context.Context) error {
	c := s.core
	return processes.Follow(ctx, s.log, func(ctx context.Context) error {
		living, err := c.stores.Living(ctx)
		if err == nil && c.living.Learn(living) {
			c.records.Settle(ctx) // of a process that is gone
		}
		return err
	}, s.followLimits, s.moves.Follow, s.followPeople, c.choices.Follow, s.followPlan, c.followSkills, c.followMemory, c.news.Follow, background{c}.follow, s.desk.Follow, s.recap.Follow)
}

// whenBuried ends the work of a process that was declared dead, because nothing that it does counts any more. stop ends
// the watch.
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

// When the service deletes expired data: soon after its start, so that one that is restarted often does so too, and
// then every hour.
const (
	firstSweep = time.Minute
	sweepEvery = time.Hour
)

// sweep deletes expired data regularly.
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
			if err := s.core.undo.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.log.Error().Err(err).Msg("old copies of changed files not removed")
			}
			s.core.metrics.Swept(err == nil)
			timer.Reset(cmp.Or(own, sweepEvery))
		}
	}
}
