package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/providers"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools/filter"
)

// Use is what a configuration is checked for.
type Use struct {
	Telegram bool // people talk to it over Telegram
	Model    bool // a model answers
	Terminal bool // it runs at the terminal, with the terminal's state
}

// Findings are the results of Check, each in the order of the file.
type Findings struct {
	Problems config.Problems // nothing can start with this configuration
	Faults   config.Problems // it starts, but the first use of something fails
	Warnings config.Problems // unusual, but perhaps intended
}

// ready is the first step of every mode: it refuses a configuration with which nothing can start, and warns once about
// what is unusual or will fail.
func ready(opts Options, use Use) error {
	if opts.Checked {
		return nil
	}
	use.Model = use.Model && opts.Provider == nil
	found := Check(opts, use)
	if len(found.Problems) > 0 {
		return found.Problems
	}
	for _, w := range slices.Concat(found.Faults, found.Warnings) {
		opts.Log.Warn().Str("config", w.String()).Msg("start")
	}
	return nil
}

// Check finds what start or first use would find in a configuration that config.Load has read: files, patterns,
// programs, directories, and settings that contradict each other. It changes nothing. Findings.Warnings begin with
// those of Load.
func Check(opts Options, use Use) Findings {
	k := &inspector{c: opts.Config, opts: opts}
	k.found.Warnings = append(k.found.Warnings, opts.Config.Warnings...)
	k.rules()
	k.patterns()
	k.files()
	k.directories(use)
	k.servers()
	k.skills()
	k.contradictions()
	k.observation()
	k.reachable()
	k.languageServer()
	k.listeners()
	k.addresses()
	if use.Model {
		k.models()
	}
	if use.Telegram {
		k.sharing()
		k.operatorPage()
		k.telegram()
	}
	f := k.found
	return Findings{Problems: f.Problems.Sorted(), Faults: f.Faults.Sorted(), Warnings: f.Warnings.Sorted()}
}

// Try builds everything that a start builds, in a temporary directory, and returns what made that impossible.
func Try(opts Options) (found Findings, err error) {
	home, err := os.MkdirTemp("", "zephbot-check-")
	if err != nil {
		return found, fmt.Errorf("directory for the check: %w", err)
	}
	defer func() { _ = os.RemoveAll(home) }() // the system removes left-overs
	cfg := *opts.Config
	cfg.Audit.Enabled = false
	opts.Config, opts.Home, opts.Log, opts.Now = &cfg, home, zerolog.Nop(), now(opts)
	b := &Bench{core: newCore(opts)}
	b.core.passing = true
	k := &inspector{c: opts.Config, opts: opts}
	k.refuse("", b.open(context.Background()))
	for _, w := range b.core.warnings {
		k.found.Warnings = append(k.found.Warnings, config.Problem{Text: w})
	}
	return k.found, b.Close()
}

// inspector collects the findings.
type inspector struct {
	c     *config.Config
	opts  Options
	found Findings
}

func (k *inspector) wrong(key, format string, args ...any) {
	k.found.Problems = append(k.found.Problems, k.c.Problem(key, fmt.Sprintf(format, args...)))
}

func (k *inspector) fault(key, format string, args ...any) {
	k.found.Faults = append(k.found.Faults, k.c.Problem(key, fmt.Sprintf(format, args...)))
}

func (k *inspector) warn(key, format string, args ...any) {
	k.found.Warnings = append(k.found.Warnings, k.c.Problem(key, fmt.Sprintf(format, args...)))
}

// refuse reports the errors of a part one by one: at the key that they name, else at key.
func (k *inspector) refuse(key string, err error) {
	for _, one := range leaves(err) {
		k.found.Problems = append(k.found.Problems, k.locate(key, one.Error()))
	}
}

// leaves splits joined errors.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var list []error
		for _, one := range joined.Unwrap() {
			if !errors.Is(one, config.ErrInvalid) || one.Error() != config.ErrInvalid.Error() {
				list = append(list, leaves(one)...)
			}
		}
		// of "configuration: index.lsp.symbols: …", the key is only in the whole text
		if whole, ok := strings.CutPrefix(err.Error(), config.ErrInvalid.Error()+": "); ok && len(list) == 1 {
			return []error{errors.New(whole)}
		}
		return list
	}
	return []error{err}
}

// locate splits "tools.permissions.bash[0].pattern: …" and "rules.toml:7 rules[2].tool: …" into place and problem.
func (k *inspector) locate(key, text string) config.Problem {
	where, rest, ok := strings.Cut(text, ": ")
	if !ok {
		return k.c.Problem(key, text)
	}
	name, of, ok := strings.Cut(where, " rules[")
	if i := strings.LastIndexByte(name, ':'); ok && i > 0 { // of a file of its own
		if line, err := strconv.Atoi(name[i+1:]); err == nil {
			return config.Problem{File: name[:i], Line: line, Key: "rules[" + of, Text: rest}
		}
	}
	if k.c.Set(where) || config.IsKey(where) || strings.HasPrefix(where, "tools.") && !strings.ContainsAny(where, " ") {
		return k.c.Problem(where, rest)
	}
	return k.c.Problem(key, text)
}

// rules reads the rules and the policy file like a start.
func (k *inspector) rules() {
	globs, err := pathrule.New(expand(k.c.Path, k.c.Tools.File.DenyRead, "*/"), expand(k.c.Path, k.c.Tools.File.AllowRead, ""))
	k.refuse("tools.file", err)
	_, err = buildPolicy(k.c, k.opts.WorkDir, globs, command.NewReader())
	k.refuse("tools.policy.policy_file", err)
}

// patterns checks the expressions that other parts compile.
func (k *inspector) patterns() {
	for _, err := range leaves(checkScope(k.c.Tools.Shell.TransactionScope)) {
		k.wrong("tools.shell.transaction_scope", "%s", err)
	}
}

// files checks the files that other parts read.
func (k *inspector) files() {
	if a := k.c.Tools.Adversarial; a.Enabled && a.PolicyFile != "" {
		if text := unreadableFile(k.c.Path(a.PolicyFile), maxJudgeFile); text != "" {
			k.wrong("tools.adversarial_policy.policy_file", "%s %s", a.PolicyFile, text)
		}
	}
	f := k.c.Tools.Filters
	if !f.Enabled {
		return
	}
	configured, beside := "", ""
	if f.FiltersPath != "" {
		configured = k.c.Path(f.FiltersPath)
	}
	if k.c.File != "" {
		beside = filepath.Dir(k.c.Path(k.c.File))
	}
	path := filter.Find(configured, beside)
	if path == "" {
		return
	}
	_, problems := filter.Load(path)
	for _, p := range problems {
		k.found.Faults = append(k.found.Faults, k.filterFault(p))
	}
}

// filterFault attributes a problem of a filter rule to its file.
func (k *inspector) filterFault(p filter.Problem) config.Problem {
	text := p.What
	if p.Do != "" {
		text += "; " + p.Do
	}
	if p.File == "" {
		return k.c.Problem("tools.filters", text)
	}
	return config.Problem{File: p.File, Key: p.Rule, Text: text}
}

// unreadableFile returns why a file cannot be read; "" = it can.
func unreadableFile(path string, limit int64) string {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "does not exist; make it, or correct the path"
	case err != nil:
		return "cannot be looked at: " + reason(err)
	case info.IsDir():
		return "is a directory; name a file in it"
	case info.Size() > limit:
		return fmt.Sprintf("has %d bytes; at most %d are read", info.Size(), limit)
	}
	f, err := os.Open(path)
	if err != nil {
		return "cannot be read: " + reason(err) + "; change its owner or its mode"
	}
	_ = f.Close() // nothing was written
	return ""
}

// reason returns an error of the file system without the path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// models builds the models like a start.
func (k *inspector) models() {
	m := providers.New(providers.Options{Config: k.c, Log: zerolog.Nop(), Now: k.opts.Now})
	if len(k.c.LLM.Providers) == 0 {
		_, err := m.Route()
		k.refuse("llm.providers", err)
		return
	}
	for i, p := range k.c.LLM.Providers {
		at := fmt.Sprintf("llm.providers[%d]", i)
		if _, err := m.NewProvider(p); err != nil {
			k.provider(at, &p, err)
		}
		if p.MaxTokens >= k.c.Agent.ContextBudgetTokens {
			k.warn(at+".max_tokens", "an answer of %d tokens leaves nothing of agent.context_budget_tokens (%d) for the conversation; lower it, or raise that",
				p.MaxTokens, k.c.Agent.ContextBudgetTokens)
		}
		if providers.LimitsMoney(k.c) {
			k.missingPrices(m, at, &k.c.LLM.Providers[i])
		}
		if p.Keys()[0] == "" && wantsKey(&p) {
			k.warn(at+".api_key", "is empty; %s refuses requests without a key: set it here, or %s", p.BaseURL, providers.KeyVariables(&p))
		}
	}
	k.tightLimits(m.Offers())
	if _, _, err := m.Embedder(""); err != nil {
		k.wrong("llm.embedding", "%s", err)
	}
	if name := k.c.MCP.ToolDiscovery.Provider; name != "" {
		if _, _, err := m.Embedder(name); err != nil {
			k.wrong("mcp.tool_discovery.embedding_provider", "%s", err)
		}
	}
}

// wantsKey says whether a server is known to refuse requests without a key: one of a vendor, by the table of dialects or by
// the usual form of such addresses. What runs on this machine, also in the place of a vendor, has keys or not.
func wantsKey(p *config.Provider) bool {
	u, err := url.Parse(p.BaseURL)
	if err != nil || u.Host == "" || p.Type != "anthropic" && p.Type != "openai" || onMachine(u.Hostname()) {
		return false
	}
	d := providers.DialectOf(*p)
	return d.Key != "" && d.Port == 0 || u.Scheme == "https" && strings.HasPrefix(u.Hostname(), "api.")
}

// missingPrice says what happens without the price of a model, after the key that would set it.
func missingPrice(model, consequence string) string {
	return fmt.Sprintf("is not set, and nobody knows the price of %s (%s): %s", model, cost.PricesAsOf(), consequence)
}

// tightLimits warns about limits of the configuration that let no turn begin.
func (k *inspector) tightLimits(offers spend.Offers) {
	limits := providers.ConfiguredLimits(k.c)
	for _, table := range sortedKeys(limits) {
		of := providers.QuotaLimits(limits[table])
		for _, key := range []struct {
			name string
			of   quota.Of
		}{
			{"usd_per_day", quota.Of{Unit: quota.USD, Window: quota.Day}},
			{"usd_per_month", quota.Of{Unit: quota.USD, Window: quota.Month}},
			{"tokens_per_day", quota.Of{Unit: quota.Tokens, Window: quota.Day}},
			{"tokens_per_month", quota.Of{Unit: quota.Tokens, Window: quota.Month}},
		} {
			if text := quota.TooTight(key.of, of[key.of], offers); text != "" {
				k.warn(table+"."+key.name, "%s", text)
			}
		}
	}
}

// missingPrices reports what is refused because nobody knows its price and USD are limited.
func (k *inspector) missingPrices(m *providers.Set, at string, p *config.Provider) {
	l := k.c.LLM
	if model := m.Offers().Unpriced()[p.Name]; model != "" {
		missing, other := "input_usd_per_mtok", "; set it and output_usd_per_mtok, also to 0"
		switch {
		case p.InputUSDPerMTok != nil:
			missing, other = "output_usd_per_mtok", "; set it, also to 0"
		case p.OutputUSDPerMTok != nil:
			other = "; set it, also to 0"
		}
		consequence := "turns that it would answer are refused to whoever has a limit of USD"
		if slices.Contains(l.Fallback, p.Name) && l.Primary != p.Name && !slices.Contains(l.Choices, p.Name) {
			consequence = "this fallback is not asked for whoever has a limit of USD"
		}
		k.fault(at+"."+missing, "%s", missingPrice(model, consequence+other))
	}
	if cost := m.MinuteCost(p); cost.Unpriced != "" {
		k.fault(at+".transcription_usd_per_minute", "%s", missingPrice(cost.Unpriced, "voice messages of whoever has a limit of USD are not written down; set it, also to 0"))
	}
	used := l.Embedding == p.Name || k.c.MCP.ToolDiscovery.Provider == p.Name
	if cost := m.EmbeddingCost(p); cost.Unpriced != "" && used {
		k.fault(at+".embedding_usd_per_mtok", "%s", missingPrice(cost.Unpriced, "embeddings for whoever has a limit of USD are refused; set it, also to 0"))
	}
}

// provider reports an error of a provider at the setting that it begins with.
func (k *inspector) provider(at string, p *config.Provider, err error) {
	text := strings.TrimPrefix(err.Error(), "provider "+p.Name+": ")
	setting, rest, _ := strings.Cut(text, " ")
	if slices.Contains([]string{"api_key", "base_url", "model"}, setting) {
		at, text = at+"."+setting, rest
	}
	if setting == "api_key" && p.Keys()[0] == "" {
		text += "; set it here, or " + providers.KeyVariables(p)
	}
	k.wrong(at, "%s", text)
}

// telegram checks the token and who may do what.
func (k *inspector) telegram() {
	t := k.c.Telegram
	if t.Token != "" {
		client, err := telegram.NewClient(telegram.Options{Token: t.Token.Reveal(), APIURL: t.APIURL})
		if err != nil {
			k.refuse("telegram.token", trimmed(err))
		} else {
			client.Close()
		}
		if len(t.AllowedUsers) == 0 && len(t.Admins) == 0 {
			k.warn("telegram.allowed_users", "names nobody, nor does telegram.admins: only people who were admitted in the chat may talk to this bot; add yourself to telegram.admins, or send the bot the code that serve shows")
		}
	}
	k.webhook(t)
	k.everybody()
	k.approvals("telegram.approvals_required", t.ApprovalsRequired, nil)
	for _, id := range sortedKeys(t.Chats) {
		chat, at := t.Chats[id], config.Entry("telegram.chats", id)
		group, _, _ := strings.Cut(id, "/")
		if strings.HasPrefix(group, "-") && !slices.Contains(t.AllowedChats, group) && !slices.Contains(t.AllowedChats, "*") {
			k.warn(at, "has no effect: %s is not in telegram.allowed_chats", group)
		}
		if chat.ApprovalsRequired > 0 || len(chat.Approvers) > 0 {
			required, key := chat.ApprovalsRequired, at+".approvals_required"
			if required == 0 {
				required, key = t.ApprovalsRequired, at
			}
			k.approvals(key, required, k.approversOf(id))
		}
	}
}

// trimmed removes the key from an error that begins with it, because the place contains it.
func trimmed(err error) error {
	if rest, ok := strings.CutPrefix(err.Error(), "telegram.token "); ok {
		return errors.New("telegram.token: " + rest)
	}
	return err
}
