package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/agent/llm/offline"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/footprint"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/cmd/internal/metrics"
	"github.com/zephbot/zephbot/persistence/archive"
)

// Serve runs the Telegram service. It returns when ctx has ended and everything has stopped, or with the error that
// made it impossible to serve.
func Serve(ctx context.Context, opts Options) error {
	cfg := opts.Config
	if cfg.Telegram.Token == "" {
		return errors.Join(
			config.ErrInvalid,
			errors.New("no Telegram token: `zephbot setup` asks for it and checks it; or set ZEPH_TELEGRAM_TOKEN or "+
				"telegram.token; `zephbot simulate` needs none"),
		)
	}
	opts.Mode = layout.Serve
	if err := Ready(opts, check.Use{Telegram: true, Model: true}); err != nil {
		return err
	}
	c, err := OpenCore(ctx, opts)
	if err != nil {
		return unlessTold(ctx, err)
	}
	err = c.serveTelegram(ctx)
	return errors.Join(unlessTold(ctx, err), c.Close())
}

// unlessTold drops the error of a start that was cancelled because the process was told to stop.
func unlessTold(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func (c *Core) serveTelegram(ctx context.Context) error {
	cfg := c.cfg
	client, err := telegram.NewClient(telegram.Options{
		Token:    cfg.Telegram.Token.Reveal(),
		APIURL:   cfg.Telegram.APIURL,
		Files:    c.stores.Blobs,
		Rich:     cfg.Telegram.RichMessages,
		Folding:  render.Folding{Quotes: cfg.Telegram.BlockquoteMinLines, Output: 2 * cfg.Telegram.BlockquoteMinLines},
		MaxParts: cfg.Telegram.MaxParts,
		Words:    c.words(),
		Observe:  c.observeRequest,
	})
	if err != nil {
		return errors.Join(config.ErrInvalid, err)
	}
	defer client.Close()
	c.tellRestored()
	defer c.watchEnd(ctx, telegram.Name, client.ID())()
	rules := accessOptions(c, client.ID())
	rules.Connection = client.Connection
	guard := access.New(rules, c.stores.Bot, c.words(), c.now)
	c.clientLanguage = guard.LanguageOf
	if err := guard.Follow(ctx); err != nil {
		return err
	}
	var serving atomic.Pointer[service]
	in, err := c.intake(ctx, client, callsOf(&serving))
	if err != nil {
		return err
	}
	defer in.end()
	allowed, err := guard.Summary(ctx)
	if err != nil {
		return err
	}
	c.banner(in.words+", bot id "+client.ID(), allowed)
	c.counting(ctx) // logs that Redis does not work
	stopHTTP, err := c.serveHTTP(ctx, c.health(ctx, &serving), c.mounts(&serving))
	if err != nil {
		return err
	}
	defer stopHTTP()
	stopHooks, err := c.serveHooks(ctx, &serving)
	if err != nil {
		return err
	}
	defer stopHooks()
	me, err := c.whoAmI(ctx, client)
	if err != nil || ctx.Err() != nil {
		return err
	}
	guard.SetName(me.Username)
	c.log.Info().Str("bot", "@"+me.Username).Msg("connected to Telegram")
	if cfg.Telegram.GuestMode && !me.GuestQuery {
		c.log.Warn().Str("key", "telegram.guest_mode").
			Msg("guest mode is off at @BotFather: nobody can mention this bot in chats that it is not in")
	}
	if err := c.offer(ctx, guard, me.Username); err != nil {
		return err
	}
	s, err := c.telegramService(client, guard, me)
	if err != nil {
		return err
	}
	s.gauges()
	serving.Store(s)
	return s.run(ctx, func(ctx context.Context) error {
		return s.takeIn(ctx, in, c.menus(client, s, guard), c.profiles(client))
	})
}

// tellRestored says, at the first start after a restore, what that means for people.
func (c *Core) tellRestored() {
	note, err := archive.TakeNote(c.dir)
	if note != nil {
		c.log.Warn().Time("backup", note.Created).Time("restored", note.Restored).Msg(
			"this state is that of a backup: what people wrote after it is not known, and what waited at that moment " +
				"is done now, perhaps for the second time (docs/upgrades.md)")
	}
	if err != nil {
		c.log.Warn().Err(err).Msg("the note about a restore")
	}
}

// telegramService builds the service for a bot. It makes no request.
func (c *Core) telegramService(client *telegram.Client, guard *access.Guard, me telegram.Me) (*service, error) {
	cfg := c.cfg
	return newService(c, channel{
		name:    telegram.Name,
		bot:     client.ID(),
		display: me.Name,
		decoders: map[bot.Source]bot.Decoder{
			bot.FromTelegram: telegram.Decoder{ID: me.ID, Username: me.Username, Bots: cfg.Telegram.BotToBot},
		},
		composer: client,
		sender:   client,
		incoming: incoming{files: client},
		arrivals: arrivals{
			merge: time.Duration(cfg.Telegram.MergeMS) * time.Millisecond,
			busy:  dispatch.Busy(cfg.Telegram.Busy),
		},
		showing:   showing{live: client, reactor: client},
		guard:     guard,
		people:    access.NewAdmissions(guard, c.stores.Bot, me.Username),
		rights:    guard.Rights,
		admins:    guard.Admins,
		welcome:   guard.Welcome,
		follow:    guard.Follow,
		operators: func() []bot.Place { return operators(client.ID(), guard.Operators()) },
		presence: presence{
			reach: guard.Reach,
			gone: func(ctx context.Context, place bot.Place, person string) (bool, error) {
				return client.Left(ctx, place.Chat, person)
			},
			hidden: !me.ReadsAll,
			names:  byCaller(withTitles(guard.Names, guard.Titles)),
			called: byCaller(withTitles(guard.Called, guard.Titles)),
		},
		limits: deliver.Limits{
			PerSecond: cfg.Telegram.Limits.PerSecond, PerChatPerSecond: cfg.Telegram.Limits.PerChatPerSecond,
			PerGroupPerMinute: cfg.Telegram.Limits.PerGroupPerMinute,
		},
		probe: func(ctx context.Context) error {
			_, err := client.Me(ctx)
			return err
		},
	})
}

// takeIn accepts updates until ctx ends, and keeps the command menus and the bot's profile meanwhile.
func (s *service) takeIn(ctx context.Context, in intake, menus *telegram.Menus, profiles *telegram.Profiles) error {
	menuCtx, endMenus := context.WithCancel(ctx)
	defer endMenus()
	var keeping sync.WaitGroup // menus are nice to have and must not hold up the first poll
	keeping.Go(func() { footprint.Keep(menuCtx) })
	keeping.Go(func() { menus.Run(menuCtx) })
	keeping.Go(func() { profiles.Run(menuCtx) })
	err := in.run(ctx, accepting(s.dispatcher))
	s.log.Info().Msg("stopping")
	endMenus()
	keeping.Wait()
	return err
}

// operators returns the private chats of the admins.
func operators(botID string, admins []string) []bot.Place {
	var list []bot.Place
	for _, id := range admins {
		list = append(list, telegram.Private(botID, id))
	}
	return list
}

// health returns the health checks of a process that serves until ctx ends.
func (c *Core) health(ctx context.Context, serving *atomic.Pointer[service]) metrics.Health {
	return metrics.Health{
		// Everything that starts, ends or reads a turn takes the lock that this waits for.
		Alive: func() {
			if s := serving.Load(); s != nil {
				s.dispatcher.Working()
			}
		},
		Ready: func(request context.Context) error {
			switch {
			case ctx.Err() != nil:
				return errors.New("stopping")
			case serving.Load() == nil:
				return errors.New("telegram is not connected")
			}
			return c.ready(request)
		},
	}
}

// ready returns why the service cannot do its job.
func (c *Core) ready(ctx context.Context) error {
	if !c.stores.Alive() {
		return errors.New(
			"the database has not heard of this process for too long: others may have gone on with its work",
		)
	}
	if _, err := c.stores.Bot.Counts(ctx, telegram.Name, ""); err != nil {
		return errors.New("the database does not respond")
	}
	if err := c.stores.Healthy(ctx); err != nil {
		return fmt.Errorf("nothing can be stored: %w", err)
	}
	return nil
}

// whoAmI asks Telegram for the bot's name until it succeeds: nothing is lost in the meantime. A wrong token ends it.
func (c *Core) whoAmI(ctx context.Context, client *telegram.Client) (telegram.Me, error) {
	for failures := 0; ; failures++ {
		me, err := client.Me(ctx)
		if err == nil {
			return me, nil
		}
		if strings.Contains(strings.ToLower(err.Error()), "unauthorized") ||
			strings.Contains(err.Error(), "not found") {
			return me, errors.Join(
				config.ErrInvalid, errors.New("telegram does not accept the token: check telegram.token or "+
					"ZEPH_TELEGRAM_TOKEN, as @BotFather gave it"),
			)
		}
		wait := min(time.Second<<min(failures, 5), 30*time.Second)
		if failures&(failures+1) == 0 {
			c.log.Warn().Str("error", telegram.Cause(err)).Str("wait", wait.Round(time.Millisecond).String()).Str("api_url", c.cfg.Telegram.APIURL).
				Msg("telegram is not reachable; trying again")
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return me, nil
		case <-timer.C:
		}
	}
}

// postgresName is what people call PostgreSQL.
const postgresName = "PostgreSQL"

// database is the name of the database engine, as people call it.
func (c *Core) database() string {
	if c.cfg.Database.URL != "" && c.opts.Home == "" {
		return postgresName
	}
	return "SQLite"
}

// storesAt says where the service keeps its state.
func (c *Core) storesAt() string {
	stores, counters, files := c.database(), "; counters on the Redis server", "; files in "+c.dir
	if c.redis.Embedded() {
		counters = "; counters in the process"
	}
	if stores != postgresName {
		stores, files = stores+" in "+c.dir, ""
	}
	return stores + counters + files
}

// banner logs at startup what this process is, and warns about insecure settings with the key to change.
func (c *Core) banner(channel, allowed string) {
	info := func(key, value string) { c.log.Info().Str(key, value).Msg("start") }
	info("zephbot", c.opts.Version)
	info("channel", channel)
	info("allowed", allowed)
	simulated := check.Loopback(c.cfg.Telegram.APIURL)
	if name := c.models.Primary(); strings.HasPrefix(name, offline.ModelName) && !simulated {
		c.log.Warn().Str("model", name+": it has no intelligence; llm.providers chooses a real one").Msg("start")
	} else {
		info("model", name)
	}
	info("stores", c.storesAt())
	if c.kit.confined {
		info("sandbox", c.kit.level.String())
	} else {
		c.log.Warn().Str("sandbox", c.kit.level.String()).Msg("start")
	}
	if text := c.withheldVariables(); text != "" {
		info("environment", text)
	}
	info("audit", c.auditTo())
	warn := func(when bool, text string) {
		if when {
			c.log.Warn().Str("insecure", text).Msg("start")
		}
	}
	warn(slices.Contains(
		c.cfg.Telegram.AllowedUsers, access.Everyone,
	), "everyone may talk to this bot (telegram.allowed_users)")
	warn(slices.Contains(
		c.cfg.Telegram.AllowedChats, access.Everyone,
	), "the bot works in every group (telegram.allowed_chats)")
	warn(c.cfg.Security.AutonomyLevel == "full", "tools run without asking (security.autonomy_level)")
	warn(strings.HasPrefix(c.cfg.Telegram.APIURL, "http://") && !simulated, "the token travels in clear text (telegram.api_url)")
}

func ids(list []int64) []string {
	out := make([]string, len(list))
	for i, id := range list {
		out[i] = strconv.FormatInt(id, 10)
	}
	return out
}

// canonical returns a list of tools without aliases.
func (c *Core) canonical(list []string) []string {
	out := make([]string, len(list))
	for i, tool := range list {
		out[i] = c.policy.Canonical(tool)
	}
	return out
}

func accessOptions(c *Core, botID string) access.Options {
	t := c.cfg.Telegram
	o := access.Options{
		Channel:             telegram.Name,
		Bot:                 botID,
		Private:             func(person string) bot.Place { return telegram.Private(botID, person) },
		Line:                c.personLine,
		Allowance:           quota.Allowance,
		Record:              c.records.Settle,
		Living:              c.livingNow,
		ByRole:              c.roleTools(),
		Guests:              t.GuestMode,
		Bots:                access.Bots{On: t.BotToBot, Allowed: t.AllowedBots, Depth: t.MaxBotChainDepth},
		Users:               t.AllowedUsers,
		Admins:              ids(t.Admins),
		Chats:               t.AllowedChats,
		Approvers:           ids(t.Approvers),
		ApprovalsRequired:   t.ApprovalsRequired,
		ApprovalByRequester: t.ApprovalByRequester,
		AllowedTools:        c.canonical(t.AllowedTools),
		SharedSession:       t.Groups.Session == "chat",
		AnyMessage:          t.Groups.Trigger == "all",
		ByChat:              map[string]access.Chat{},
	}
	for id, chat := range t.Chats {
		o.ByChat[id] = access.Chat{
			System:            chat.SystemPrompt,
			AllowedTools:      c.canonical(chat.AllowedTools),
			Trigger:           chat.Trigger,
			Session:           chat.Session,
			Approvers:         ids(chat.Approvers),
			ApprovalsRequired: chat.ApprovalsRequired,
		}
	}
	return o
}
