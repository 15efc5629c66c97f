package app

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/operator"
	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/cmd/internal/metrics"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/mcp"
)

// newOperator builds the operator's page; nil = the channel has no people who could sign in.
func (s *service) newOperator() *operator.Page {
	c, ch := s.core, s.ch
	if ch.people == nil {
		return nil
	}
	var servers func() []mcp.Status
	if c.servers != nil {
		servers = c.servers.Statuses
	}
	return operator.New(operator.Deps{
		About: operator.About{
			Channel:   ch.name,
			Bot:       ch.bot,
			Name:      ch.display,
			Owner:     c.owner,
			Version:   c.opts.Version,
			Started:   c.started,
			Processes: c.living.Names,
		},
		Store:  c.stores.Bot,
		Admin:  s.isAdmin,
		Redact: c.redactor.String,
		Plain:  chain.StripMarks,
		Sources: operator.Sources{
			Servers: servers, Audit: c.auditSearch(), Spent: c.metrics.Spent, Names: ch.called,
			Bars: s.bars, MonthBegan: s.meter.MonthBegan, Priceless: s.quotas.Priceless,
		},
		Effects: operator.Effects{
			Line:     func(call *tools.Call) []bot.Fact { return c.records.Due(call, nil) },
			Recorded: c.records.Settle, Wake: func(session bot.SessionKey) { s.dispatcher.Wake(session) },
			Deliver: func(place bot.Place) { s.outbox.Wake(place) },
		},
		Decisions: operator.Decisions{
			Card: s.broker.Card, Press: s.press, Quota: s.quotas.Manage,
			Apply: func(ctx context.Context, compute func() (turn.Effect, error)) error {
				return s.dispatcher.ApplyEffect(ctx, compute)
			},
		},
		Words:  c.words(),
		Now:    c.now,
		Log:    c.log.With().Str("component", "operator").Logger(),
		Listen: c.cfg.Metrics.Listen,
		Public: c.cfg.Metrics.PublicURL,
	})
}

// bars lists how much of the limits is used.
func (s *service) bars(ctx context.Context, sums []bot.Charge) ([]quota.Bar, error) {
	return s.meter.Bars(ctx, s.core.stores.Bot, sums)
}

// isAdmin asks the store for the roles that were given in the chat.
func (s *service) isAdmin(ctx context.Context, caller string) (bool, error) {
	rights, err := s.ch.rights(ctx, bot.Place{Channel: s.ch.name, Bot: s.ch.bot, Surface: bot.SurfaceBot}, "")
	return slices.Contains(rights.Admins, caller), err
}

// auditSearch searches the logs of all conversations of this service; nil = there are none in files.
func (c *Core) auditSearch() func(context.Context, operator.AuditQuery) (operator.AuditPage, error) {
	if !c.cfg.Audit.Enabled || c.cfg.Audit.Destination == "stdout" {
		return nil
	}
	return func(ctx context.Context, q operator.AuditQuery) (operator.AuditPage, error) {
		paths := []string{c.auditFile}
		if c.shared() {
			paths = c.opts.Layout().SharedLogs()
		}
		found, err := audit.Search(ctx, paths, audit.Query{
			Person: q.Person,
			Tool:   q.Tool,
			Result: q.Result,
			Since:  q.Since,
			Until:  q.Until,
			Next:   q.Next,
			Limit:  q.Limit,
		})
		page := operator.AuditPage{Next: found.Next, Back: found.Back}
		for i := range found.Lines {
			found.Lines[i].Args = nil // texts of a conversation, which the page shows on request only
			page.Lines = append(page.Lines, found.Lines[i])
		}
		return page, err
	}
}

// withTitles returns the names of people and those of groups, by id.
func withTitles(names, titles func() map[string]string) func() map[string]string {
	return func() map[string]string {
		all := names()
		maps.Copy(all, titles())
		return all
	}
}

// byCaller returns names by caller id instead of by id.
func byCaller(names func() map[string]string) func() map[string]string {
	return func() map[string]string {
		list := map[string]string{}
		for id, name := range names() {
			list[telegram.Name+":"+id] = name
		}
		return list
	}
}

// pageMount serves the operator's page. serving is empty until Telegram is connected.
func pageMount(serving *atomic.Pointer[service]) []metrics.Mount {
	page := http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s := serving.Load()
		if s == nil || s.page == nil {
			http.Error(rw, "Telegram is not connected yet", http.StatusServiceUnavailable)
			return
		}
		s.page.ServeHTTP(rw, r)
	})
	return []metrics.Mount{{Pattern: "/admin", Handler: page}, {Pattern: "/admin/", Handler: page}}
}
