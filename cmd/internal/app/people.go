package app

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/visible"
	"github.com/zephbot/zephbot/tools"
)

// offer shows the code of the first admin where there is no admin.
func (c *Core) offer(ctx context.Context, guard *access.Guard, username string) error {
	shown, err := access.KeptCode(c.dir)
	if err != nil {
		c.log.Warn().Err(err).Msg("the link of zephbot setup makes nobody admin")
	}
	code, err := guard.Offer(ctx, c.owner, shown)
	if err != nil {
		return err
	}
	if code == "" { // there is an admin
		return access.ForgetCode(c.dir)
	}
	code = cmp.Or(c.opts.AdminCode, code) // nobody is shown two
	c.log.Info().Str("first_admin", "there is no admin yet: send /start "+code+
		" to @"+username+", or open "+access.Link(username, code)).Msg("start")
	return nil
}

// roleTools are the allow-lists of the roles that have one.
func (c *Core) roleTools() map[access.Role][]string {
	lists := map[access.Role][]string{}
	roles := c.cfg.Telegram.Roles
	for role, list := range map[access.Role][]string{
		access.User:     roles.User.AllowedTools,
		access.Approver: roles.Approver.AllowedTools,
		access.Admin:    roles.Admin.AllowedTools,
	} {
		if len(list) > 0 {
			lists[role] = c.canonical(list)
		}
	}
	return lists
}

// operators are the chats where admins are told of what concerns the whole service.
func (s *service) operators() []bot.Place {
	if s.ch.operators == nil {
		return nil
	}
	return s.ch.operators()
}

// personLine is what the audit says of a person or group that was admitted or removed in the chat.
func (c *Core) personLine(e access.Event) []bot.Fact {
	what := map[string]any{"id": e.Entry.ID, "name": e.Entry.Name}
	if e.Entry.Role != "" {
		what["role"] = e.Entry.Role
	}
	if e.Verb == "remove" {
		what["admitted_by"], what["admitted_at"] = e.Entry.By, e.Entry.At
	}
	args, err := json.Marshal(what)
	if err != nil {
		c.log.Error().Err(err).Msg("admission not recorded")
		return nil
	}
	c.log.Info().Str("verb", e.Verb).Str("id", e.Entry.ID).Str("name", visible.Name(e.Entry.Name)).
		Str("role", string(e.Entry.Role)).Str("by", e.By).Msg("who may talk to the bot")
	return c.records.Due(&tools.Call{
		ID: e.ID, Tool: "people_" + e.Verb, Args: args, Trail: &tools.Trail{ApprovedBy: e.By, Rule: "people"},
		Origin: tools.Origin{
			Channel: e.Place.Channel,
			Session: string(e.Place.SessionKey("")),
			Chat:    e.Place.ChatKey(),
			Caller:  e.By,
			Admin:   true,
		},
	}, nil)
}

// livingNow returns which processes run at this moment.
func (c *Core) livingNow(ctx context.Context) (func(owner string) bool, error) {
	if !c.shared() {
		return c.living.Lives, nil
	}
	owners, err := c.stores.Living(ctx)
	return func(owner string) bool { return slices.Contains(owners, owner) }, err
}

// welcome is the channel's, and has the limits read that an invitation may have set.
func (s *service) welcome(facts bot.Facts) func(ctx context.Context, call *turn.Call) (turn.Effect, bool, error) {
	if s.ch.welcome == nil {
		return nil
	}
	return func(ctx context.Context, call *turn.Call) (turn.Effect, bool, error) {
		e, ok, err := s.ch.welcome(ctx, call)
		if err != nil || !ok {
			return e, ok, err
		}
		return e, true, s.meter.Follow(ctx, facts)
	}
}
