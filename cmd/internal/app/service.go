package app

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot/moves"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/footprint"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/halt"
	"github.com/zephbot/zephbot/bot/hook"
	"github.com/zephbot/zephbot/bot/inquiry"
	"github.com/zephbot/zephbot/bot/operator"
	"github.com/zephbot/zephbot/bot/preference"
	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/recap"
	"github.com/zephbot/zephbot/bot/servers"
	"github.com/zephbot/zephbot/bot/sign"
	"github.com/zephbot/zephbot/bot/speech"
	"github.com/zephbot/zephbot/bot/talk"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
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
	incoming
	showing
	guard  turn.Guard
	people *access.Admissions // admits people in the chat; nil = nobody does
	rights servers.Rights
	presence
	admins    func() []string
	welcome   func(ctx context.Context, call *turn.Call) (turn.Effect, bool, error) // answers /start of who is new; nil = none
	operators func() []bot.Place                                                    // where admins are told of what cannot be stored; nil = nowhere
	follow    func(ctx context.Context) error                                       // reads again who was admitted; nil = nobody is
	limits    deliver.Limits
	probe     func(ctx context.Context) error // whether the channel answers; nil = it is in this process
	nobody    bool                            // there is nobody to ask: questions are denied
	silent    bool                            // nobody can answer a question: a program runs the channel
	once      bool                            // one message is answered, and nothing else is said
	patience  time.Duration                   // how long a model may be unavailable; 0 = 10 minutes
	unreached time.Duration                   // how long a model's server may take no connection; 0 = patience
	grace     time.Duration                   // how long a shutdown waits for turns; 0 = graceTurns
}

// incoming is what comes along with messages.
type incoming struct {
	files   bot.Files                                    // gives it; nil: it is known by name only
	receive func(next turn.Attachments) turn.Attachments // reads some of it itself; nil = nothing
}

// presence is who reads where, and who has left.
type presence struct {
	reach  func(ctx context.Context, place bot.Place, caller string) (bool, error)
	gone   func(ctx context.Context, place bot.Place, person string) (bool, error) // who has left a group; nil = nobody
	hidden bool                                                                    // the channel shows the bot what is meant for it alone
	// What people are called, by caller id; nil = none are known. called adds the id where several have one name.
	names, called func() map[string]string
}

// showing is how a channel shows what is not an answer.
type showing struct {
	live    bot.Live // nil: progress is shown by watch
	watch   func(turn.Watched) turn.Progress
	calls   func(next agent.Executor) agent.Executor // shows calls and their results; nil = only as progress
	reactor bot.Reactor                              // shows signs on messages that wait; nil = there are none
}

// service is a running channel: dispatcher and outbox on top of the core.
type service struct {
	core          *Core
	ch            channel
	dispatcher    *dispatch.Dispatcher
	outbox        *deliver.Outbox
	features      feature.List
	commands      *command.Table
	broker        *approval.Broker
	press         func(ctx context.Context, msg *bot.Message) (turn.Effect, error) // of a button of a question
	quotas        *quota.Manager
	meter         *quota.Meter
	serverHandler *servers.Handler // handles /mcp
	moves         *moves.Relocator
	recap         *recap.Handler
	speech        *speech.Handler             // nil = nothing speaks here
	talk          *talk.Keeper                // of groups
	page          *operator.Page              // nil = the channel has none
	hooks         *hook.Hooks                 // nil = none can be called
	signs         *sign.Reactions             // signs on messages that wait; nil = the channel has none
	privacy       *privacy.Handler            // handles /export and /forget
	pacing        func(context.Context) error // shares the send budget with other processes; nil = there are none
	undecided     chan struct{}               // gets a value when questions have ended without a yes
	log           zerolog.Logger
}

func newService(c *Core, ch channel) (*service, error) {
	ch.sender = deliver.FencedSender{Sender: c.tracedSender(ch.sender), Sure: c.stores.Sure}
	if ch.live != nil {
		ch.live = deliver.FencedLive{Live: ch.live, Sure: c.stores.Sure}
	}
	s := (&service{core: c, ch: ch, log: c.log}).recalling()
	words := c.words()
	words.OtherModels = c.offersOther()
	words.Patience = ch.patience
	store := s.watchMoves()
	pacer, pacing, err := c.pacer(ch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	s.pacing = pacing
	files, err := c.attachments(ch)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	if ch.receive != nil {
		files = ch.receive(files)
	}
	desk := inquiry.New(inquiry.Deps{
		Store: store, Words: words, Now: c.now, Messages: ch.people != nil, Shared: c.shared(),
		Zone: func(caller string) *time.Location {
			zone, _ := c.zones.For(caller)
			return zone
		},
	})
	broker := approval.New(approval.Deps{
		Inquiries: desk,
		Store:     store,
		Rights:    servers.OnlyAdmins(ch.rights),
		Reach:     ch.reach,
		Called:    ch.called,
		Words:     words,
		Now:       c.now,
		Replies:   ch.people != nil,
		Names:     c.moves.Names,
		Blobs:     c.stores.Blobs,
		Covers:    c.book.Covers,
		Personal:  c.book.Personal,
		Alive:     c.book.Alive,
		RuleDays:  c.cfg.Telegram.ApprovalRuleDays,
		Apply:     store.Apply,
		Hides:     c.own.Hides,
		Redact:    c.redactor.String,
		Record:    c.records.Settle,
		Line:      func(e approval.RuleEvent) []bot.Fact { return c.book.Line(e, c.records.Due) },
	}, c.cfg.Telegram.ApprovalTimeout)
	s.broker = broker
	decided := counted{broker, c}
	s.serverHandler = s.newServerHandler(decided)
	questions := servers.Questions{Broker: decided, Jobs: s.serverHandler}
	s.press = questions.Press
	limits := c.meterOptions()
	limits.Admin = func(ctx context.Context, place bot.Place, caller string) bool {
		if ch.people == nil { // the terminal and editors have one person, who can change the configuration
			return true
		}
		rights, err := ch.rights(ctx, place, "")
		return err == nil && slices.Contains(rights.Admins, caller)
	}
	s.meter = quota.New(limits, c.redis, store, words, c.now, c.metrics.Denied)
	c.payer = s.meter.PayerOf
	s.quotas = s.newQuotas(store)
	s.privacy = s.private()
	s.page = s.newOperator()
	s.openPlan(store)
	if err := s.openHooks(store); err != nil {
		return nil, err
	}
	s.talk = c.openTalk(ch)
	signs := s.newSigns(pacer)
	stops := halt.Button{Store: store, Words: words, Rights: ch.rights}
	if s.speech, err = s.newSpeech(); err != nil {
		return nil, fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	s.features = append(s.listFeatures(store, questions, stops), desk.Feature())
	s.commands = command.New(s.features, command.Deps{
		Decides: ch.decides, Admins: ch.admins, Welcome: s.welcome(store), Words: c.words(),
	})
	s.outbox = deliver.NewOutbox(deliver.Deps{
		Store:    store,
		Sender:   ch.sender,
		Pacer:    pacer,
		Words:    words,
		Language: func(row *bot.Row) string { return row.Content.Language },
		Now:      c.now,
		Log:      c.log.With().Str("component", "outbox").Logger(),
		Observe:  s.delivered,
		Probe:    ch.probe,
		Again:    broker.Again,
	}, deliver.Options{Channel: ch.name, Bot: ch.bot, Shared: c.shared()})
	chain := c.chain(broker)
	if ch.nobody {
		chain = c.chain(nil)
	}
	var calls agent.Executor = executor{
		chain: chain, audit: c.audit, metrics: c.metrics, tracer: c.tracer, undo: c.undo, runner: c.kit.runner,
	}
	if ch.calls != nil {
		calls = ch.calls(calls)
	}
	runner := c.tracedRunner(c.runner(calls, s.meter, ch.display))
	grace := cmp.Or(ch.grace, graceTurns)
	offered := deliver.OfferingStore{Store: store, Outbox: s.outbox}
	s.dispatcher = dispatch.New(dispatch.Parts{
		Store:        offered,
		Decoders:     ch.decoders,
		Composer:     ch.composer,
		Runner:       runner,
		Guard:        ch.guard,
		Meter:        s.meter,
		Commands:     following{s.commands, c.followChoices},
		Approvals:    questions,
		Explanations: c.own.Listening(decided),
		Buttons: dispatch.Buttons{
			Pressers: s.features.Pressers(), Below: s.features.Below, After: s.features.After, Beside: s.features.Beside,
			Stop: stops.Buttons,
		},
		Outbox:    offered,
		Direct:    deliver.PacedSender{Sender: ch.sender, Pacer: pacer},
		Operators: ch.operators,
		Progress:  c.progress(ch, pacer),
		Words:     words,
		Log:       c.log.With().Str("component", "dispatcher").Logger(),
		Now:       c.now,
		Receiving: dispatch.Receiving{
			Workspace:   c.dirs().ID,
			Attachments: files,
			Typing:      c.typing(ch, pacer),
			Waits:       c.waits(ch, pacer),
			Signs:       signs,
			Memory:      c.recalls(),
			Resumed:     s.recap.Resumed,
			Runs:        s.runs(),
			Personal:    c.own,
			Talk:        s.heard(),
			Speech:      s.spoken(),
		},
		Observers: dispatch.Observers{Observe: s.observe, Trace: c.turnTrace()},
		News:      c.news.Read,
		Manner:    c.manner,
	}, dispatch.Options{
		Channel:     ch.name,
		Bot:         ch.bot,
		Owner:       c.owner,
		Concurrency: c.cfg.Agent.Concurrency,
		Memory:      footprint.TurnMemory(),
		Grace:       grace,
		GiveUp:      ch.patience,

		GiveUpUnreached: ch.unreached,
		Merge:           ch.merge,
		Busy:            ch.busy,
		Shared:          c.shared(),
		Unattended:      ch.silent || ch.nobody,
	})
	return s, nil
}

// watchMoves is the store with what follows when a group gets a new id.
func (s *service) watchMoves() moves.Watched {
	c := s.core
	s.moves = c.relocator(func() { s.features.Moved() })
	s.undecided = make(chan struct{}, 1)
	return moves.Watched{Store: undecided{c.stores.Bot, s.undecided}, Moved: func(ctx context.Context) {
		s.moves.Relocate(ctx)
		if err := s.features.FollowMoved(ctx); err != nil {
			s.log.Error().Err(err).
				Msg("what is stored about a group that moved is not read; tried again within a second where " +
					"processes share")
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
			deliver.Spec{
				Place:       w.Place,
				Draft:       w.Draft,
				Language:    w.Language,
				Placeholder: w.Placeholder,
				Buttons:     w.Buttons,
				Gone:        w.Gone,
			},
			deliver.ProgressOptions{Interval: time.Duration(c.cfg.Telegram.StreamIntervalMS) * time.Millisecond},
		)
	}
}

// settings returns /settings.
func (s *service) settings() feature.Feature {
	c := s.core
	scribe, _ := c.models.Transcriber() // a mistake in its settings was reported at the start
	return preference.Settings{
		Preferences: c.own,
		Model:       c.modelLineOf,
		Zone: func(msg *bot.Message) string {
			caller := msg.Caller
			if msg.Place.Group { // it has that of the bot
				caller = ""
			}
			_, name := c.zones.For(caller)
			return name
		},
		Several:  c.choices.Several,
		Sections: []preference.Section{c.personas.Setting()},
		Heard:    scribe != nil,
		Speaks:   s.speech != nil,
		Default:  string(cmp.Or(s.ch.busy, dispatch.Queue)),
		Context:  s.switched(),
		Run: func(ctx context.Context, call *turn.Call) (turn.Effect, error) {
			return s.commands.Run(ctx, call)
		},
	}.Feature()
}

func (s *service) about() command.About {
	c := s.core
	return command.About{
		Model:     c.modelLineOf,
		Sandbox:   c.kit.level,
		Embedded:  c.redis.Embedded(),
		Engine:    c.database(),
		Version:   c.opts.Version,
		Started:   c.started,
		Servers:   c.connected,
		Filters:   c.filtered.sum,
		Redis:     c.counting,
		Processes: c.living.Names,
		Unset:     c.unset,
		Aside:     c.models.SetAside,
		Fenced:    c.fencedFor,
		Previews:  c.previewing,
		Persona: func(session bot.SessionKey) string {
			persona, _ := c.personas.Of(session)
			return persona.Name
		},
		Tools: func(session bot.SessionKey, place bot.Place) []texts.Tool {
			overlay := tools.Only(s.ch.guard.Rules(place).Allowed)
			if narrow := c.personas.Manner(session).Narrow; narrow != nil {
				overlay = narrow(overlay)
			}
			var list []texts.Tool
			for _, d := range c.usable(tools.Origin{}, overlay) {
				list = append(list, texts.Tool{Name: d.Name, Offered: d.Description})
			}
			return list
		},
	}
}

// delivered receives the outcome of each attempt to deliver. If a chat is gone, it ends the work for that chat.
func (s *service) delivered(row bot.Row, outcome string, asked time.Time) {
	if outcome == string(bot.Sent) && row.Purpose == bot.Final && !row.Created.IsZero() {
		s.core.metrics.Phase(deliverPhase, max(0, s.core.now().Sub(row.Created)))
	}
	if outcome == string(bot.Gone) && row.Purpose != bot.Toast {
		s.dispatcher.Gone(row.Place, asked)
	}
}
