package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/zephbot/zephbot/agent/reformat"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/agent/summary"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/anomaly"
	"github.com/zephbot/zephbot/tools/cache"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/decode"
	"github.com/zephbot/zephbot/tools/filter"
	"github.com/zephbot/zephbot/tools/overflow"
)

// Buckets of facts of the stages.
const (
	mendedBucket = "mended" // corrected arguments by session and call
	secretBucket = "secret" // keys that are generated once
	staleBucket  = "stale"  // conversations whose cached results are out of date
)

// staleFor is longer than a cached result can live.
const staleFor = cache.MaxTTL + time.Hour

// mendedFor is how long corrected arguments are kept: longer than any turn lives.
const mendedFor = 7 * 24 * time.Hour

// stages are the parts of the chain that determine what the model sees.
type stages struct {
	decode   decode.Options
	quota    tools.Middleware
	warn     tools.Middleware
	marker   *chain.Marker
	cache    *cache.Cache
	overflow tools.Middleware
	filter   tools.Middleware
	retry    tools.Middleware
	anomaly  *anomaly.Detector
}

// openStages builds the stages. c.kit, c.redactor, c.provider and the stores (nil on the command line) must be set.
func (c *Core) openStages(ctx context.Context) (err error) {
	s := &stages{}
	if s.marker, err = c.marker(ctx); err != nil {
		return err
	}
	s.filter = c.filters()
	if c.cfg.Tools.Filters.Security.Enabled {
		s.warn = chain.WarnRedacted
	}
	if err = c.openOverflow(s); err != nil {
		return err
	}
	if s.anomaly, err = c.anomalies(ctx); err != nil {
		return err
	}
	if s.decode, err = c.decoding(); err != nil {
		return fmt.Errorf("%w: tools.retry.parameter_reformat_provider: %w", config.ErrInvalid, err)
	}
	s.quota, s.cache, s.retry = c.quotas(), c.caching(), c.retries()
	c.stages = s
	return nil
}

// marker builds the stage that marks foreign content. Its key is generated once and stored, so that equal content has
// equal marks after a restart.
func (c *Core) marker(ctx context.Context) (*chain.Marker, error) {
	key := make([]byte, chain.MarkerKeySize)
	if _, err := rand.Read(key); err != nil {
		return nil, fmt.Errorf("key of the marks: %w", err)
	}
	if c.stores != nil {
		stored, err := c.bucket(secretBucket).Once(ctx, "mark", hex.EncodeToString(key))
		if err == nil {
			key, err = hex.DecodeString(stored)
		}
		if err != nil {
			return nil, fmt.Errorf("key of the marks: %w", err)
		}
	}
	return chain.NewMarker(chain.MarkerOptions{Key: key})
}

// openFilter loads the rules of tools.filters. Those in a file are compiled here, the built-in ones at the first
// output.
func (c *Core) openFilter() {
	f := c.cfg.Tools.Filters
	dir := ""
	if c.cfg.File != "" {
		dir = filepath.Dir(c.cfg.Path(c.cfg.File))
	}
	configured := f.FiltersPath
	if configured != "" {
		configured = c.cfg.Path(configured)
	}
	var rules *filter.Rules // the built-in ones
	if path := filter.Find(configured, dir); path != "" {
		rules, _ = filter.Load(path) // Check reports what is wrong with them
	}
	c.engine = filter.NewEngine(filter.Options{Rules: rules, Disabled: !f.Enabled, Quiet: true})
}

func (c *Core) filters() tools.Middleware {
	return filter.New(c.engine, filter.Hooks{Observe: func(st filter.Stats) {
		c.metrics.Filtered(st.CharsIn, st.CharsOut, st.Level.String())
		c.filtered.add(st)
	}})
}

// overflowThreshold is how many characters of an output a model gets at most: tools.overflow.threshold, or what a
// fifth of a small window holds.
func (c *Core) overflowThreshold() int {
	const share, perToken, least = 0.20, 3.5, 1000
	return min(c.cfg.Tools.Overflow.Threshold, max(int(float64(c.cfg.Agent.ContextBudgetTokens)*share*perToken), least))
}

// openOverflow builds the stage, and registers the tool that reads what was stored.
func (c *Core) openOverflow(s *stages) error {
	o := c.cfg.Tools.Overflow
	options := overflow.Options{
		Threshold: c.overflowThreshold(),
		Retention: time.Duration(o.RetentionDays) * 24 * time.Hour,
		MaxBytes:  o.MaxOverflowBytes,
		Now:       c.now,
		Log:       c.log.With().Str("component", "overflow").Logger(),
	}
	if c.stores != nil {
		options.Store = c.stores.Overflow
	} else {
		options.Store = overflow.NewMemory(0)
	}
	if c.cfg.Tools.SummarizeOutput && c.provider != nil {
		options.Summarize = summary.New(spend.NewModel("summary", c.provider))
	}
	reader, err := overflow.Tool(options)
	if err != nil {
		return fmt.Errorf("read_overflow: %w", err)
	}
	s.overflow = overflow.New(options)
	if c.stores == nil { // this process reads nothing back, and no other one has its memory
		s.overflow = overflow.Whole
	}
	return c.registry.Add(reader)
}

// shapeBackground passes the result of a background run through the stages that every output passes. If that fails,
// nothing is shown rather than a secret.
func (c *Core) shapeBackground(ctx context.Context, call *tools.Call, result *tools.Result) string {
	handler := func(context.Context, *tools.Call) (*tools.Result, error) { return result, nil }
	for _, stage := range []tools.Middleware{
		chain.NewRedact(c.redactor),
		c.stages.filter,
		c.stages.overflow,
		c.stages.warn,
	} {
		if stage != nil {
			handler = stage(handler)
		}
	}
	shown, err := handler(ctx, call)
	if err != nil {
		c.log.Error().Err(err).Str("call", call.ID).Msg("output of a background run was not processed")
		return ""
	}
	return shown.Text
}

func (c *Core) quotas() tools.Middleware {
	limit := c.cfg.Tools.MaxToolCallsPerSession
	var list []tools.Middleware
	if limit != nil {
		list = append(list, chain.NewQuota(chain.QuotaOptions{Max: *limit, Unit: c.cfg.Tools.QuotaUnit}))
	}
	if u := c.cfg.Tools.Utility; u.Enabled {
		list = append(list, chain.NewUtility(chain.UtilityOptions{
			Threshold:        u.Threshold,
			GainWeight:       u.GainWeight,
			CostWeight:       u.CostWeight,
			RedundancyWeight: u.RedundancyWeight,
			UncertaintyBonus: u.UncertaintyBonus,
			ExemptTools:      c.canonical(u.ExemptTools),
			HighGainTools:    c.canonical(u.HighGainTools),
			Seen: func(call *tools.Call) chain.UtilityHistory {
				past := make([]chain.PastCall, len(call.Earlier))
				for i, e := range call.Earlier {
					past[i] = chain.PastCall{Tool: e.Tool, Args: e.Args, Text: e.Text}
				}
				return chain.ReadUtilityHistory(past, call, u.UtilityWindow)
			},
			Observe: func(_ string, d chain.UtilityDecision) { c.metrics.Utility(string(d)) },
		}))
	}
	switch len(list) {
	case 0:
		return nil
	case 1:
		return list[0]
	default:
		return func(next tools.Handler) tools.Handler { return list[0](list[1](next)) }
	}
}

func (c *Core) caching() *cache.Cache {
	r := c.cfg.Tools.ResultCache
	if !r.Enabled {
		return nil
	}
	o := cache.Options{
		TTL: time.Duration(r.TTLSecs) * time.Second, Scope: conversation, Observe: c.metrics.Cached, Now: c.now,
		Live: func(call *tools.Call) bool {
			// at the terminal, a person works in the same directory
			return own(call.Origin.Channel) || background{c}.any(call.Origin.Session)
		},
		Log: c.log.With().Str("component", "cache").Logger(),
	}
	if c.redis != nil {
		o.Store = c.redis.Cache()
		if c.stores != nil && !c.redis.Embedded() {
			o.Notes = facts.Notes{
				Bucket: facts.Bucket{Name: staleBucket, Store: c.stores.Bot, Now: c.now, For: staleFor},
			}
		}
	} else {
		o.Store = cache.NewMemory(c.now)
	}
	return cache.New(o)
}

// conversation returns an id of a session since its beginning, or its last /clear; "" outside a session.
func conversation(call *tools.Call) string {
	if call.BatchN == 0 {
		return ""
	}
	return conversationOf(call.Origin.Session, call.Began)
}

// conversationOf is the id of a session since an entry of its journal.
func conversationOf(session string, began int64) string {
	return session + "#" + strconv.FormatInt(began, 10)
}

func (c *Core) retries() tools.Middleware {
	r := c.cfg.Tools.Retry
	o := chain.RetryOptions{
		Max:    r.MaxAttempts,
		Base:   time.Duration(r.BaseMS) * time.Millisecond,
		Cap:    time.Duration(r.MaxMS) * time.Millisecond,
		Budget: time.Duration(r.BudgetSecs) * time.Second,
		Now:    c.now,
		Observe: func(tool string, n int, _ bool) {
			for range n {
				c.metrics.Retried(tool)
			}
		},
	}
	if o.Max == 0 {
		o.Max = -1 // none; the stage's own zero means its default
	}
	return chain.NewRetry(o)
}

func (c *Core) decoding() (decode.Options, error) {
	o := decode.Options{Hides: func(d tools.Definition) bool { return c.policy.Hides(d.Name, d.Says) }}
	if c.stores != nil {
		o.Memory = facts.Bucket{Name: mendedBucket, Store: c.stores.Bot, Now: c.now, For: mendedFor}
	}
	if name := c.cfg.Tools.Retry.ReformatProvider; name != "" {
		model, err := c.models.Helper("reformat", name)
		if err != nil {
			return o, err
		}
		o.Reformat = reformat.New(reformat.Options{
			Model:   model,
			Timeout: time.Duration(c.cfg.Tools.Retry.BudgetSecs) * time.Second,
			Redact:  c.redactor.String,
			Now:     c.now,
		})
	}
	return o, nil
}

// shape adds the stages to the options of a chain.
func (s *stages) shape(o *chain.Options) {
	o.Warn = s.warn
	o.Decode = s.decode
	o.Quota = s.quota
	o.Mark = s.marker.Middleware
	o.Overflow = s.overflow
	o.Filter = s.filter
	o.Retry = s.retry
	if s.cache != nil {
		o.Cache = s.cache.Middleware
	}
	if s.anomaly != nil {
		o.Block, o.Anomaly = s.anomaly.Block, s.anomaly.Middleware
	}
}

// tally sums up what the filter has done since the start, for /status.
type tally struct {
	mu      sync.Mutex
	in, out int
}

func (t *tally) add(st filter.Stats) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.in, t.out = t.in+st.CharsIn, t.out+st.CharsOut
}

// sum returns the totals.
func (t *tally) sum() texts.Filtered {
	t.mu.Lock()
	defer t.mu.Unlock()
	return texts.Filtered{In: t.in, Out: t.out}
}
