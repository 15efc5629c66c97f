// Package access says who may talk to the bot, who is an admin, who may approve, and by which rules a chat lives.
// People are known by their numeric ids; a configured @name belongs to the id that used it first, for ever, so that a
// name that changes hands opens nothing.
package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/turn"
)

// Everyone in a list admits everybody.
const Everyone = "*"

// bucket holds the pinned names: key is the name in lower case, value the person's id.
const bucket = "name"

// Chat is what is configured for one chat ("-100123") or topic ("-100123/7").
type Chat struct {
	System            string
	AllowedTools      []string // empty = as for the channel
	Trigger           string   // mention, all; "" = as for groups
	Session           string   // user, chat; "" = as for groups
	Approvers         []string // person ids, besides the general ones
	ApprovalsRequired int      // 0 = as for the channel
}

// Options are the access rules of a channel.
type Options struct {
	Channel             string
	Users               []string // person ids, "@name", Everyone; empty = nobody
	Admins              []string // person ids
	Chats               []string // group ids, Everyone; empty = no group
	Approvers           []string // person ids
	ApprovalsRequired   int
	ApprovalByRequester bool
	AllowedTools        []string // empty = all
	SharedSession       bool     // groups talk in one session per chat
	AnyMessage          bool     // groups need no mention
	ByChat              map[string]Chat
	AdminNames          map[string]string // display names by id, for refusals
}

// Store keeps pinned names.
type Store interface {
	bot.Writer
	bot.Facts
}

// Words are the sentences for those who may not talk.
type Words interface {
	Stranger(language, id string) string
	Unlisted(language, id string) string
}

// Guard implements turn.Guard. Safe for concurrent use.
type Guard struct {
	opts  Options
	store Store
	words Words
	now   func() time.Time
}

// New makes a Guard.
func New(opts Options, store Store, words Words, now func() time.Time) *Guard {
	return &Guard{opts: opts, store: store, words: words, now: now}
}

// Admit says whether the sender of a message may talk here.
func (g *Guard) Admit(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	admitted, err := g.group(ctx, msg.Place)
	if err != nil {
		return turn.Verdict{}, err
	}
	if !admitted {
		v := turn.Verdict{Reason: "group not in telegram.allowed_chats"}
		if msg.Kind == bot.Member {
			v.Reply, v.Once = g.words.Unlisted(msg.Language, msg.Place.Chat), "unlisted/"+msg.Place.ChatKey()
		}
		return v, nil
	}
	if msg.Kind == bot.Member {
		return turn.Verdict{OK: true}, nil
	}
	if msg.Caller == "" {
		return turn.Verdict{Reason: "not a person"}, nil
	}
	if slices.Contains(g.opts.Admins, msg.Person) {
		return turn.Verdict{OK: true, Admin: true}, nil
	}
	ok, err := g.known(ctx, msg)
	if err != nil || ok {
		return turn.Verdict{OK: ok}, err
	}
	v := turn.Verdict{Reason: "person not in telegram.allowed_users"}
	switch {
	case msg.Kind == bot.Press:
		v.Reply = g.words.Stranger(msg.Language, msg.Person)
	case !msg.Place.Group:
		v.Reply, v.Once = g.words.Stranger(msg.Language, msg.Person), "stranger/"+msg.Caller
	}
	return v, nil
}

// group says whether a place is private or in a group on the list. A group that became a supergroup is known by the id
// it had.
func (g *Guard) group(ctx context.Context, place bot.Place) (bool, error) {
	if !place.Group || listed(g.opts.Chats, place.Chat) {
		return true, nil
	}
	old, err := g.store.Fact(ctx, bot.MovedBucket, g.key(place.Chat), g.now())
	if err != nil {
		return false, fmt.Errorf("read the former id of %s: %w", place.Chat, err)
	}
	return old != "" && listed(g.opts.Chats, old), nil
}

func listed(list []string, id string) bool {
	return slices.Contains(list, Everyone) || slices.Contains(list, id)
}

// known looks a person up by id, then by a listed name that is pinned to this id, then by one that is still free.
// Whoever gave up a name stays who he is, and does not take a second one.
func (g *Guard) known(ctx context.Context, msg *bot.Message) (bool, error) {
	if !strings.HasPrefix(msg.Person, "@") && listed(g.opts.Users, msg.Person) {
		return true, nil
	}
	if msg.Person == "" || !slices.ContainsFunc(g.opts.Users, func(u string) bool { return strings.HasPrefix(u, "@") }) {
		return false, nil
	}
	if ok, err := g.pinned(ctx, msg.Person); ok || err != nil {
		return ok, err
	}
	name := strings.ToLower(msg.Username)
	if !g.named(name) {
		return false, nil
	}
	applied, err := g.store.Apply(ctx, &bot.Change{FactsIf: []bot.Fact{{Bucket: bucket, Key: g.key(name), Value: msg.Person}}})
	if err != nil {
		return false, fmt.Errorf("pin @%s: %w", name, err)
	}
	if len(applied.Set) == 1 && applied.Set[0] {
		return true, nil
	}
	owner, err := g.store.Fact(ctx, bucket, g.key(name), g.now())
	if err != nil {
		return false, fmt.Errorf("read the owner of @%s: %w", name, err)
	}
	return owner == msg.Person, nil // his own, when two of his first messages came at once
}

// named says whether a name, in lower case, is listed.
func (g *Guard) named(name string) bool {
	return name != "" && slices.ContainsFunc(g.opts.Users, func(u string) bool { return strings.ToLower(u) == "@"+name })
}

// pinned says whether a person owns a listed name.
func (g *Guard) pinned(ctx context.Context, person string) (bool, error) {
	facts, err := g.store.FactsOf(ctx, bucket, g.key(""), g.now())
	if err != nil {
		return false, fmt.Errorf("read pinned names: %w", err)
	}
	for _, f := range facts {
		if f.Value == person && g.named(strings.TrimPrefix(f.Key, g.key(""))) {
			return true, nil
		}
	}
	return false, nil
}

func (g *Guard) key(name string) string { return g.opts.Channel + "/" + name }

// chat merges what is configured for a chat and for its topic.
func (g *Guard) chat(place bot.Place) Chat {
	c := g.opts.ByChat[place.Chat]
	if place.Thread == "" {
		return c
	}
	t, ok := g.opts.ByChat[place.Chat+"/"+place.Thread]
	if !ok {
		return c
	}
	or := func(a, b string) string {
		if a != "" {
			return a
		}
		return b
	}
	c.System, c.Trigger, c.Session = or(t.System, c.System), or(t.Trigger, c.Trigger), or(t.Session, c.Session)
	if len(t.AllowedTools) > 0 {
		c.AllowedTools = t.AllowedTools
	}
	c.Approvers = append(slices.Clone(c.Approvers), t.Approvers...)
	if t.ApprovalsRequired > 0 {
		c.ApprovalsRequired = t.ApprovalsRequired
	}
	return c
}

// Rules implements turn.Guard.
func (g *Guard) Rules(place bot.Place) turn.Rules {
	c := g.chat(place)
	r := turn.Rules{System: c.System, SharedSession: g.opts.SharedSession, AnyMessage: g.opts.AnyMessage}
	if c.Session != "" {
		r.SharedSession = c.Session == "chat"
	}
	if c.Trigger != "" {
		r.AnyMessage = c.Trigger == "all"
	}
	channel, own := g.opts.AllowedTools, c.AllowedTools
	if len(channel) > 0 || len(own) > 0 {
		r.Allowed = func(tool string) bool { return offers(channel, tool) && offers(own, tool) }
	}
	return r
}

// offers says whether an allow-list has a tool; an empty one has all.
func offers(list []string, tool string) bool {
	return len(list) == 0 || slices.Contains(list, tool)
}

// Rights says who may decide questions in a place.
func (g *Guard) Rights(place bot.Place, _ string) approval.Rights {
	c := g.chat(place)
	r := approval.Rights{Required: max(1, g.opts.ApprovalsRequired), Requester: g.opts.ApprovalByRequester}
	if c.ApprovalsRequired > 0 {
		r.Required = c.ApprovalsRequired
	}
	for _, id := range g.opts.Admins {
		r.Admins = append(r.Admins, g.opts.Channel+":"+id)
	}
	for _, list := range [][]string{g.opts.Approvers, g.opts.Admins, c.Approvers} {
		for _, id := range list {
			r.Approvers = append(r.Approvers, g.opts.Channel+":"+id)
		}
	}
	return r
}

// Admins names the admins, for refusals.
func (g *Guard) Admins() []string {
	names := make([]string, len(g.opts.Admins))
	for i, id := range g.opts.Admins {
		if names[i] = g.opts.AdminNames[id]; names[i] == "" {
			names[i] = id
		}
	}
	return names
}

// Summary says for the start of the program who may talk.
func (g *Guard) Summary() string {
	people := count(g.opts.Users, "person", "people")
	if slices.Contains(g.opts.Users, Everyone) {
		people = "EVERYONE (all people)"
	}
	admins := count(g.opts.Admins, "admin", "admins")
	switch {
	case people == "" && admins == "":
		people = "nobody"
	case people == "":
		people = admins
	case admins != "":
		people += " and " + admins
	}
	groups := count(g.opts.Chats, "group", "groups")
	switch {
	case slices.Contains(g.opts.Chats, Everyone):
		groups = "ALL GROUPS"
	case groups == "":
		groups = "no group"
	}
	return people + ", " + groups
}

// count counts a list in words; "" when it is empty.
func count(list []string, one, many string) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return "1 " + one
	default:
		return fmt.Sprintf("%d %s", len(list), many)
	}
}

var _ turn.Guard = (*Guard)(nil)
