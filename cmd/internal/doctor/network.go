package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/tools/mcp"
)

// Times of the checks of Telegram.
const (
	skewed    = time.Minute     // a clock that is wrong by more is reported
	rivalHold = 6 * time.Second // how long another program that polls has to make itself known
)

// database reads the schema version.
func (d *doctor) database(ctx context.Context) []Row {
	const about = "database"
	engine, url := "SQLite", d.c.Database.URL.Reveal()
	if url != "" {
		engine = "PostgreSQL"
		if err := persistence.CheckURL(url); err != nil {
			return []Row{fail(about, "%v", err)("correct database.url")}
		}
	}
	schema, err := persistence.ReadSchema(ctx, d.dir, url)
	switch {
	case err != nil && url == "":
		return []Row{
			fail(about, "%v", err)("see the row data_dir; a database of a newer version needs that version of zephbot"),
		}
	case err != nil:
		return []Row{
			fail(about, "%v", err)("see that the server runs and this machine reaches it, and check database.url"),
		}
	case schema.Found == 0:
		return ok(about, "%s: nothing is stored in %s yet; the first start makes its tables", engine, schema.Place)
	case len(schema.Steps) > 0:
		return []Row{
			warn(
				about, "%s: %d migrations are missing in %s (schema %d of %d)",
				engine, len(schema.Steps), schema.Place, schema.Found, schema.Known,
			)(
				"make a backup; zephbot migrate or the next start applies them"),
		}
	default:
		return ok(about, "%s: %s, schema %d is up to date", engine, schema.Place, schema.Found)
	}
}

// redis asks the server.
func (d *doctor) redis(ctx context.Context) []Row {
	const about = "redis"
	store, err := redis.Open(d.opts.Layout().Redis(zerolog.Nop()))
	if err != nil {
		return []Row{fail(about, "%v", err)("correct redis.url; docs/redis.md lists the forms")}
	}
	defer func() { _ = store.Close() }() // nothing was written
	if store.Embedded() {
		return ok(about, "none: counters are kept in the process")
	}
	state := store.Probe(ctx).State
	const meaning = "quotas are checked in the database alone, tool results are not cached, and several processes " +
		"share no send budget"
	switch state {
	case redis.Fine:
		return ok(about, "the server answers")
	case redis.Refused:
		return []Row{
			fail(about, "the server refuses the password or the user: %s", meaning)(
				"correct redis.url; docs/redis.md lists the permissions",
			),
		}
	case redis.ReadOnly:
		return []Row{
			fail(about, "the server takes no writes: %s", meaning)(
				"connect to the primary, and see that its memory and disk are not full",
			),
		}
	default:
		return []Row{
			fail(about, "the server does not answer (%s): %s", state, meaning)(
				"see that it runs and this machine reaches it, and check redis.url",
			),
		}
	}
}

// qdrant asks the vector store.
func (d *doctor) qdrant(ctx context.Context) []Row {
	v := d.c.Vector
	if v.Backend != "qdrant" {
		return nil
	}
	err := persistence.PingVectors(
		ctx, persistence.Vector{Backend: v.Backend, URL: v.URL, APIKey: v.APIKey.Reveal()}, zerolog.Nop(),
	)
	if err != nil {
		return []Row{
			fail("qdrant", "%v", err)("see that it runs and this machine reaches it (its port for gRPC is 6334), and " +
				"check vector.url and vector.api_key"),
		}
	}
	return ok("qdrant", "it answers")
}

// telegram asks Telegram about the bot.
func (d *doctor) telegram(ctx context.Context) []Row {
	const about = "telegram"
	t := d.c.Telegram
	if t.Token == "" {
		return []Row{
			warn(about, "there is no token: zephbot runs the simulator")("zephbot setup, or set ZEPH_TELEGRAM_TOKEN"),
		}
	}
	client, err := telegram.NewClient(telegram.Options{Token: t.Token.Reveal(), APIURL: t.APIURL, Timeout: checkWithin})
	if err != nil {
		return []Row{fail(about, "%v", err)("take the token from @BotFather: telegram.token or ZEPH_TELEGRAM_TOKEN")}
	}
	defer client.Close()
	me, err := client.Me(ctx)
	if err != nil {
		return []Row{d.notConnected(err)}
	}
	rows := ok(about, "the token belongs to @%s", me.Username)
	rows = append(rows, d.groups(&me)...)
	if ahead, ok := client.Clock(ctx, time.Now); ok && ahead.Abs() > skewed {
		rows = append(rows, warn(
			"clock",
			"the clock of this machine is wrong by %s: tasks run at wrong times, and certificates may count as invalid",
			ahead.Round(time.Second),
		)(
			"set the clock; systemd-timesyncd or chrony keep it right"))
	}
	return append(rows, d.updates(ctx, client)...)
}

// notConnected says why Telegram does not say who the bot is.
func (d *doctor) notConnected(err error) Row {
	const about = "telegram"
	switch telegram.FaultOf(err) {
	case telegram.WrongToken:
		return fail(about, "%s does not accept the token", d.c.Telegram.APIURL)(
			"take it from @BotFather (/mybots, API Token): telegram.token or ZEPH_TELEGRAM_TOKEN",
		)
	case telegram.Busy:
		return warn(about, "Telegram is asked too often at the moment")("run zephbot doctor again in a minute")
	default:
		return fail(about, "%s cannot be reached: %s", d.c.Telegram.APIURL, telegram.Cause(err))(
			"see that this machine reaches it (a firewall, HTTPS_PROXY), and check telegram.api_url",
		)
	}
}

// groups compares what is configured for groups with the switches at BotFather.
func (d *doctor) groups(me *telegram.Me) []Row {
	const about = "telegram groups"
	t := d.c.Telegram
	all := t.Groups.Trigger == "all"
	for _, chat := range t.Chats {
		all = all || chat.Trigger == "all"
	}
	var rows []Row
	if d.c.Groups.Context && !me.ReadsAll {
		rows = append(rows, warn(
			about, "the talk of groups may be kept (groups.context), but privacy mode is on: the bot only sees what "+
				"mentions it, unless it is an admin of the group",
		)(
			"@BotFather, /setprivacy, Disable; then take the bot out of the group and add it again"))
	}
	if all && !me.ReadsAll {
		rows = append(rows, warn(
			about, "the bot is to answer every message, but privacy mode is on: it only sees those that mention it",
		)(
			"@BotFather, /setprivacy, Disable; then take the bot out of the group and add it again"))
	}
	if t.GuestMode && !me.GuestQuery {
		rows = append(rows, warn(
			about,
			"telegram.guest_mode is on here and off at @BotFather: nobody can mention the bot where it is no member",
		)("switch it on at @BotFather"))
	}
	return rows
}

// updates says how updates come in, and whether something else takes them.
func (d *doctor) updates(ctx context.Context, client *telegram.Client) []Row {
	const about = "updates"
	t := d.c.Telegram
	hook, err := client.Registered(ctx, t.WebhookURL)
	switch {
	case err != nil:
		return []Row{
			warn(about, "Telegram does not say how updates are delivered: %v", err)("run zephbot doctor again"),
		}
	case t.WebhookURL != "":
		return d.hooked(&hook)
	case hook.Host != "":
		return []Row{
			warn(
				about, "a webhook is set at %s, and updates are to be polled (telegram.webhook_url is empty)",
				hook.Host,
			)(
				"the next start of zephbot removes it; if another program needs it, make a second bot at @BotFather"),
		}
	case d.running:
		return ok(about, "the running service polls, %d wait", hook.Pending)
	case d.c.Workspaces.Shared:
		return ok(about, "polled by one of the processes that share the database, %d wait", hook.Pending)
	}
	rival, err := client.Rival(ctx, rivalHold)
	switch {
	case rival:
		return []Row{
			fail(
				about,
				"another program polls with this token (409): each of the two would get only a part of the messages",
			)(
				"stop that program, or make a second bot at @BotFather; if it leaked, /revoke the token there"),
		}
	case err != nil && ctx.Err() == nil:
		return []Row{warn(about, "they cannot be polled: %v", err)("run zephbot doctor again")}
	}
	return ok(about, "nobody else polls, %d wait", hook.Pending)
}

// hooked compares the registered webhook with the configured one.
func (d *doctor) hooked(hook *telegram.Registration) []Row {
	const about = "updates"
	switch {
	case hook.Host == "":
		return []Row{warn(about, "the webhook is not registered yet")("start the service, which registers it")}
	case !hook.Wanted:
		return []Row{
			warn(about, "a webhook is registered at %s, which is not telegram.webhook_url", hook.Host)(
				"the next start registers the configured one; is another program using this token?",
			),
		}
	case hook.Failed != "" && time.Since(hook.At) < time.Hour:
		return []Row{
			fail(about, "Telegram cannot deliver to the webhook: %s (%d wait)", hook.Failed, hook.Pending)(
				"see that the proxy before telegram.webhook_listen answers at telegram.webhook_url",
			),
		}
	default:
		return ok(about, "Telegram delivers to the webhook at %s, %d wait", hook.Host, hook.Pending)
	}
}

// tracing checks whether the collector of traces accepts connections.
func (d *doctor) tracing(ctx context.Context) []Row {
	const about = "tracing"
	u, err := url.Parse(d.c.Tracing.Endpoint)
	if err != nil || u.Host == "" {
		return nil
	}
	port := cmp.Or(u.Port(), map[string]string{"https": "443"}[u.Scheme], "80")
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(u.Hostname(), port))
	if err != nil {
		return []Row{
			warn(
				about, "the collector at %s cannot be reached (%v): traces are dropped", u.Host, err,
			)("start it, or correct tracing.endpoint"),
		}
	}
	_ = conn.Close() // nothing was sent
	return ok(about, "the collector at %s accepts connections", u.Host)
}

// servers connects every MCP server.
func (d *doctor) servers(ctx context.Context) []Row {
	if len(d.c.MCP.Servers) == 0 {
		return nil
	}
	b, err := app.OpenTrial(ctx, d.opts.Options)
	if b != nil {
		defer func() { _ = b.Close() }() // what it began is a temporary directory
	}
	if err != nil {
		return []Row{warn("mcp", "the servers cannot be tried: %s", withoutMark(err))("see the rows config")}
	}
	limit := checkWithin
	if end, ok := ctx.Deadline(); ok {
		limit = time.Until(end) * 9 / 10
	}
	_ = b.Connect(ctx, limit) // each server has a row of its own
	var rows []Row
	for _, s := range b.Servers() {
		rows = append(rows, serverRow(&s))
	}
	return rows
}

// serverRow says how a server is.
func serverRow(s *mcp.Status) Row {
	about := "mcp " + s.ID
	switch {
	case s.State == mcp.Connected && len(s.Withdrawn)+len(s.Warnings) == 0:
		return Row{
			Check:  about,
			Status: OK,
			Text:   fmt.Sprintf("connected over %s, %d tools", s.Transport, len(s.Tools)),
		}
	case s.State == mcp.Connected:
		text := strings.Join(s.Warnings, "; ")
		if len(s.Withdrawn) > 0 {
			text = fmt.Sprintf("%d tools have changed and are withdrawn", len(s.Withdrawn))
		}
		return warn(about, "connected, but %s", text)("zephbot mcp test " + s.ID)
	case s.Problem == "":
		return warn(about, "not connected yet")("zephbot mcp test " + s.ID + " waits longer")
	default:
		return fail(about, "%s", s.Problem)("zephbot mcp test " + s.ID + " shows more; the service starts without it")
	}
}

// withoutMark returns an error without the mark of those that the configuration causes.
func withoutMark(err error) string {
	return strings.ReplaceAll(err.Error(), config.ErrInvalid.Error()+": ", "")
}
