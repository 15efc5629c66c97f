// Package app builds the parts of the service from the configuration, starts them in order and stops them in reverse.
package app

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/zephbot/zephbot/bot/processes"
	"github.com/zephbot/zephbot/bot/rulebook"

	"github.com/zephbot/zephbot/bot/moves"

	"github.com/zephbot/zephbot/bot/facts"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"golang.org/x/sync/errgroup"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/cmd/internal/metrics"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/cmd/internal/ruleset"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
	reasons "github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/web"
)

// Options are what the program is given besides its configuration.
type Options struct {
	Config  *config.Config
	Version string
	Log     zerolog.Logger
	WorkDir string           // of the process: where the terminal's tools work
	Now     func() time.Time // nil = time.Now
	// Provider replaces the configured models, for tests and scenarios. nil = as configured.
	Provider llm.Provider
	// Internet replaces name resolution, connections and trusted roots of the web tools, for tests. It disables no
	// check.
	Internet Internet
	// Listen replaces how addresses are opened for incoming connections, for tests. nil = TCP.
	Listen func(ctx context.Context, address string) (net.Listener, error)
	// Mode is the name of the running command, such as "serve". It is shown to a process that is refused the directory.
	Mode string
	// Checked is set if a simulator runs this process, which has checked the configuration and warned already.
	Checked bool
	// AdminCode is a code for the first admin that the same program has just shown (access.KeepCode); "" = none.
	AdminCode string
	// Home is the state directory, if it is not data_dir itself.
	Home string
	// State is the directory for the state of the person's programs; "" = data_dir (see layout.Terminal).
	State string
	// Zone is the people's time zone if telegram.time_zone is not set; nil = UTC.
	Zone *time.Location
	// elicit asks the person at the terminal what a server wants to know; nil = such questions are declined.
	elicit func(context.Context, mcp.Elicitation) (mcp.Answer, error)
	// workspaces replaces where conversations work: recorded calls are judged and create nothing; nil = as configured.
	workspaces func(tools.Origin) (string, error)
	// level is the autonomy level of a call where its session has a stricter one than the rules; nil = never.
	level  func(*tools.Call) policy.Level
	noting *changes // takes what calls change, for the terminal; nil = nobody wants to know
	given  bool     // Now was given: it is the clock, also of the database
	// Hooks observe the database's commits: crash tests end the process in them.
	Hooks sql.Hooks
	// Erased is called after each step of erasing a person is stored, for tests. nil = nothing is.
	Erased func(step string)
	// Housekeeping is the time between two sweeps of expired data, for tests. 0 = an hour, and a minute from the start
	// to the first one.
	Housekeeping time.Duration
}

// Layout says where the state is.
func (o Options) Layout() layout.Layout { return layout.Layout{Config: o.Config, State: o.State} }

// Internet is the network of the web tools; the zero value is the real one.
type Internet struct {
	Resolver web.Resolver
	Dial     func(ctx context.Context, network, address string) (net.Conn, error)
	Roots    *x509.CertPool
}

// bucket returns a bucket of facts in the open store.
func (c *Core) bucket(name string) facts.Bucket {
	return facts.Bucket{Name: name, Store: c.stores.Bot, Now: c.now}
}

// keeper returns a Keeper for changes in the open store that must not be lost.
func (c *Core) keeper() facts.Keeper { return facts.Keeper{Store: c.stores.Bot, Log: c.log} }

// zone returns the time zone of the people; nil = UTC.
func (c *Core) zone() *time.Location {
	name := c.cfg.Telegram.TimeZone
	if name == "" {
		return c.opts.Zone
	}
	zone, err := time.LoadLocation(name)
	if err != nil { // the configuration was checked with the same list of zones
		c.log.Warn().Err(err).Str("key", "telegram.time_zone").Msg("unknown time zone; times are in UTC")
	}
	return zone
}

// words returns the sentences for people.
func (c *Core) words() texts.Words {
	return texts.Words{
		Zone: c.zone(), Language: c.cfg.Telegram.Language, ZoneAt: c.zoneAt, ClockAt: c.clockAt,
		LanguageAt: c.languageAt,
		Owner:      c.opts.Mode == layout.Chat || c.opts.Mode == layout.ACP,
	}
}

// OpenCore opens the stores and builds what needs them. The caller must close it.
func OpenCore(ctx context.Context, opts Options) (*Core, error) {
	if opts.given = opts.Now != nil; !opts.given {
		opts.Now = time.Now
	}
	c := newCore(opts)
	if err := c.open(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func newCore(opts Options) *Core {
	c := &Core{
		opts:        opts,
		cfg:         opts.Config,
		log:         opts.Log,
		now:         opts.Now,
		started:     opts.Now(),
		dir:         opts.Home,
		owner:       uuid.NewString(),
		observing:   observing{metrics: metrics.New(opts.Version)},
		guarding:    guarding{reader: command.NewReader()},
		connecting:  connecting{resync: make(chan struct{}, 1), elicit: opts.elicit},
		remembering: remembering{moves: &moves.Map{}},
	}
	c.models = providers.New(providers.Options{
		Config: c.cfg, Provider: c.opts.Provider, Now: c.now, Log: c.log, Observe: c.observeAttempt,
		Spent: func(provider string, usd float64) { c.metrics.Model(provider, 0, 0, 0, usd) },
	})
	c.living = processes.New(c.owner, c.shared())
	if c.dir == "" {
		c.dir = c.cfg.Path(c.cfg.DataDir)
	}
	return c
}

// open builds part by part; Close closes what was opened.
func (c *Core) open(ctx context.Context) error {
	err := c.openRules()
	if err != nil {
		return err
	}
	if err := c.openTracing(ctx); err != nil {
		return err
	}
	if c.provider, err = c.models.Route(); err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	var parts errgroup.Group // the sandbox is tested in a process of its own: the database opens in the meantime
	parts.Go(func() error { return c.openStores(ctx) })
	parts.Go(func() (err error) {
		c.kit, err = c.tools()
		return err
	})
	c.openFilter()
	if err := parts.Wait(); err != nil {
		return err
	}
	c.registry = c.kit.registry
	c.openNews()
	c.openUndo()
	c.personas = c.newPersonas()
	c.choices = c.newChoices()
	c.models.Learnt.Open(c.stores.Bot)
	if err := c.models.Learnt.Follow(ctx); err != nil {
		return err
	}
	if err := c.openZones(ctx); err != nil {
		return err
	}
	c.relocator(nil).Relocate(ctx)
	if err := c.choices.Follow(ctx); err != nil {
		return fmt.Errorf("read which models were chosen: %w", err)
	}
	if err := c.personas.Follow(ctx); err != nil {
		return fmt.Errorf("read which personas were chosen: %w", err)
	}
	if err := c.openChain(ctx); err != nil {
		return err
	}
	if err := c.openShelf(); err != nil {
		return err
	}
	if err := c.followSkills(ctx); err != nil {
		return err
	}
	for _, w := range c.warnings {
		c.log.Warn().Str("config", w).Msg("start")
	}
	if err := c.openAudit(); err != nil {
		return err
	}
	c.openRecords()
	c.records.Settle(ctx)
	return nil
}

// graceLearnt is how long the end of the program waits until what was learnt of model servers is stored.
const graceLearnt = 5 * time.Second

// openChain builds what is between the model and a tool: judge, stages, and the catalog that the model chooses from.
func (c *Core) openChain(ctx context.Context) (err error) {
	if c.judge, err = c.adversary(); err != nil {
		return fmt.Errorf("%w: tools.adversarial_policy: %w", config.ErrInvalid, err)
	}
	if err := c.openStages(ctx); err != nil {
		return err
	}
	if err := c.openMemory(ctx); err != nil {
		return err
	}
	if err := c.openServers(); err != nil {
		return err
	}
	if err := c.openCode(ctx); err != nil {
		return err
	}
	c.openBook()
	return c.openCatalog()
}

// openBook builds what applies the rules.
func (c *Core) openBook() {
	deps := rulebook.Deps{
		Policy:   c.policy,
		Off:      !c.cfg.Tools.Enabled,
		Judged:   c.judge != nil,
		Confined: c.kit.confined,
		Reading:  c.kit.reading,
		Sandbox:  c.kit.level,
		Commands: c.kit.commands,
		Files:    c.kit.files,
		Runner:   c.kit.runner,
		Tools:    c.registry,
		Servers:  c.servers,
		Env:      environment,
		Problem:  func(tool string) (reasons.Reason, bool) { return c.cfg.ToolProblem(tool, false) },
		Trust:    c.trust,
		Level:    c.opts.level,
		Now:      c.now,
		Log:      c.log,
	}
	if c.stores != nil {
		deps.Store = c.stores.Bot
	}
	c.book = rulebook.New(deps)
}

// openStores opens the database and Redis.
func (c *Core) openStores(ctx context.Context) (err error) {
	url := ""
	if c.opts.Home == "" { // the simulator and the terminal store their data in SQLite
		url = c.cfg.Database.URL.Reveal()
	}
	if c.stores, err = persistence.Open(ctx, persistence.Options{
		DataDir:     c.dir,
		Mode:        c.opts.Mode,
		DatabaseURL: url,
		Owner:       c.owner,
		Shared:      url != "" && c.shared(),
		Now:         c.now,
		Log:         c.log.With().Str("component", "store").Logger(),
		Hooks:       c.watched(c.opts.Hooks),
		BlobBytes:   c.cfg.Retention.MaxBlobBytes,
		Vector: persistence.Vector{
			Backend: c.cfg.Vector.Backend,
			URL:     c.cfg.Vector.URL,
			APIKey:  c.cfg.Vector.APIKey.Reveal(),
		},
	}); err != nil {
		return err
	}
	if c.redis, err = redis.Open(c.opts.Layout().Redis(c.log.With().Str("component", "redis").Logger())); err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return nil
}

// openRules builds what needs only the configuration: redaction and policy.
func (c *Core) openRules() error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("%w: cannot create data_dir %s: %w", config.ErrInvalid, c.dir, err)
	}
	var err error
	options := redact.Options{Secrets: c.cfg.Credentials()}
	if s := c.cfg.Tools.Filters.Security; s.Enabled {
		options.ExtraPatterns = s.ExtraPatterns
	}
	if c.redactor, err = redact.NewWith(options); err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	if c.globs, err = ruleset.Files(c.cfg); err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	if c.policy, err = ruleset.Build(ruleset.Source{
		Config:  c.cfg,
		Tools:   Tools(),
		WorkDir: c.opts.WorkDir,
		Files:   c.globs,
		Reader:  c.reader,
	}); err != nil {
		return fmt.Errorf("%w: %w", config.ErrInvalid, err)
	}
	return nil
}

// Close closes what OpenCore opened, in reverse order.
func (c *Core) Close() error {
	errs := []error{c.closeTracing(context.Background())}
	if c.documents != nil {
		c.documents.Close()
	}
	if c.kit != nil {
		c.kit.close()
	}
	errs = append(errs, c.closeCode())
	if c.audit != nil {
		errs = append(errs, c.audit.Close())
	}
	if c.redis != nil {
		errs = append(errs, c.redis.Close())
	}
	if c.stores != nil {
		storing, done := context.WithTimeout(context.Background(), graceLearnt)
		errs = append(errs, c.models.Learnt.Store(storing))
		done()
		errs = append(errs, c.stores.Close())
	}
	return errors.Join(errs...)
}

// runner builds the agent over a chain.
func (c *Core) runner(tools agent.Executor, budget agent.Budget, name string) *agent.Runner {
	system := func(turn *agent.Turn, withTools bool) string {
		return prompt.System(prompt.Options{
			Bot:      name,
			Operator: c.cfg.Agent.SystemPrompt,
			Chat:     turn.System,
			Persona:  turn.Persona,
			Own:      turn.Own,
			Group:    turn.Group,
			Shared:   turn.Shared,
			Channel:  turn.Origin.Channel,
			Agent:    turn.Origin.Agent,
			Tools:    withTools,
			Day:      c.now().In(c.zoneOf(turn.Origin.Caller)),
			Servers:  c.instructions(turn, withTools),
			Skills:   turn.Skills,
		})
	}
	return agent.NewRunner(
		agent.Deps{
			Provider:   c.provider,
			Tools:      tools,
			Budget:     budget,
			Catalog:    c.offering(),
			Blobs:      c.stores.Blobs,
			System:     system,
			Now:        c.now,
			Compaction: c.compaction(),
			Observe:    c.observePhase,
			Bot:        name,
		},
		agent.Limits{
			Iterations:    c.cfg.Agent.MaxToolIterations,
			Parallel:      c.cfg.Agent.MaxParallelTools,
			ContextTokens: c.cfg.Agent.ContextBudgetTokens,
		},
	)
}

// instructions returns what the MCP servers of a turn say about themselves.
func (c *Core) instructions(turn *agent.Turn, withTools bool) string {
	if !withTools {
		return ""
	}
	return c.servers.Instructions(func(tool string) bool { return !turn.Tools.Takes(tool) })
}
