// Package access decides who may talk to the bot, who is an admin, who may approve, and which rules apply in a chat.
// People are identified by their numeric ids. A configured @name belongs forever to the id that used it first, so that
// a name that changes owners gives no access.
package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Everyone in a list admits everybody.
const Everyone = "*"

// bucket holds the pinned names: the key is the name in lower case, the value the person's id.
const bucket = "name"

// Chat is the configuration of one chat ("-100123") or topic ("-100123/7").
type Chat struct {
	System            string
	AllowedTools      []string // empty = as for the channel
	Trigger           string   // mention, all; "" = as for groups
	Session           string   // user, chat; "" = as for groups
	Approvers         []string // person ids, in addition to the general ones
	ApprovalsRequired int      // 0 = as for the channel
}

// Options are the access rules of a channel.
type Options struct {
	Channel             string
	Bot                 string   // the bot's own id
	Users               []string // person ids, "@name", Everyone; empty = nobody
	Admins              []string // person ids
	Chats               []string // group ids, Everyone; empty = no group
	Approvers           []string // person ids
	ApprovalsRequired   int
	ApprovalByRequester bool
	AllowedTools        []string // empty = all
	SharedSession       bool     // groups have one session per chat
	AnyMessage          bool     // messages in groups need no mention
	ByChat              map[string]Chat
	ByRole              map[Role][]string // tools of a role; a role without any has all
	Bots                Bots
	Guests              bool // people who are admitted may ask in chats that the bot is not in
	// Connection asks the channel who has connected the bot to their business account by a connection, and its state;
	// the person is "" if the channel does not know the connection. nil = there are none.
	Connection func(ctx context.Context, id string) (person, state string, err error)
	// Private is the chat of the bot with one person; nil = admins are told nothing.
	Private func(person string) bot.Place
	// Line makes facts of what was given or taken in the chat, which are stored with it, for the record; nil = there is
	// none. Record writes down what Line has made facts of, once they are stored.
	Line   func(Event) []bot.Fact
	Record func(ctx context.Context)
	// Allowance returns the fact that sets a limit of a person by id, or of a chat ("chat"), in the name of an admin; ok
	// is false if it is none. nil = there are no limits.
	Allowance func(place bot.Place, who, what, limit, by, name string, at time.Time) (f bot.Fact, ok bool)
	// Living returns which processes run now, for the codes that they have made; nil = all do. It reads the store: what
	// this process remembers may not have one yet that has just started, and shown a code.
	Living func(ctx context.Context) (func(owner string) bool, error)
}

// Store keeps pinned names, and who was admitted in the chat.
type Store interface {
	bot.Writer
	bot.Facts
	// RowOf returns the row of a key; bot.ErrNotFound.
	RowOf(ctx context.Context, key string) (bot.Row, error)
}

// Guard implements turn.Guard. Safe for concurrent use.
type Guard struct {
	opts  Options
	store Store
	words texts.Words
	now   func() time.Time
	began time.Time
	named string                           // @name of the bot
	known atomic.Pointer[map[string]Entry] // people who were admitted in the chat, as Follow has read them

	seenLock sync.Mutex                            // held by whoever replaces seen
	seen     atomic.Pointer[map[string]seenPerson] // by id
	titles   atomic.Pointer[map[string]string]     // of groups, by id; replaced under seenLock
}

// New returns a Guard. Follow reads who was admitted in the chat.
func New(opts Options, store Store, words texts.Words, now func() time.Time) *Guard {
	return &Guard{opts: opts, store: store, words: words, now: now, began: now()}
}

// SetName says by which username, without @, people in groups mention the bot. It is called before the first message.
func (g *Guard) SetName(username string) { g.named = "@" + username }

// Admit decides whether the sender of a message may talk here.
func (g *Guard) Admit(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	switch {
	case msg.Place.Guest():
		return g.admitGuest(ctx, msg)
	case msg.Kind == bot.Connection:
		return g.recordConnection(ctx, msg)
	case msg.Place.Business() != "":
		return g.admitToBusiness(ctx, msg)
	default:
		return g.admitMember(ctx, msg)
	}
}

// admitMember decides about a message in a chat that the bot is in itself.
func (g *Guard) admitMember(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	admitted, err := g.inAdmittedGroup(ctx, msg.Place)
	if err != nil {
		return turn.Verdict{}, err
	}
	if !admitted {
		invited, err := g.invitedToGroup(ctx, msg)
		if err != nil {
			return turn.Verdict{}, err
		}
		if !invited {
			return g.refuseGroup(ctx, msg)
		}
	}
	g.noteTitle(ctx, msg)
	if msg.Kind == bot.Member {
		return turn.Verdict{OK: true}, nil
	}
	if msg.Caller == "" {
		return g.refuseUnnamed(ctx, msg)
	}
	if msg.FromBot {
		return g.otherBot(ctx, msg)
	}
	if err := g.endBotChain(ctx, msg); err != nil {
		return turn.Verdict{}, err
	}
	role, err := g.roleOf(ctx, msg)
	if err != nil {
		return turn.Verdict{}, err
	}
	if code := strings.TrimSpace(msg.Args); msg.Command == "start" && code != "" && !msg.Place.Group && role != Admin {
		if v, tried, err := g.redeemCode(ctx, msg, code); err != nil || tried {
			return v, err
		}
	}
	used, gone, err := g.redeemInvitation(ctx, msg, role)
	switch {
	case err != nil:
		return turn.Verdict{}, err
	case used:
		if role, err = g.roleOf(ctx, msg); err != nil {
			return turn.Verdict{}, err
		}
	case gone && !msg.Place.Group:
		return g.refuseInvitation(ctx, msg)
	}
	if role == "" {
		return g.refuseStranger(ctx, msg)
	}
	g.noteName(ctx, msg)
	v := turn.Verdict{OK: true, Admin: role == Admin, Allowed: g.toolsOf(role)}
	if g.isShared(msg.Person, msg.Name) && msg.Name != "" {
		v.Called = texts.Exactly(msg.Name, msg.Person)
	}
	return v, nil
}

// invitedToGroup admits a group that is not admitted by the invitation that the bot was added with, and reports whether
// there is one.
func (g *Guard) invitedToGroup(ctx context.Context, msg *bot.Message) (bool, error) {
	if msg.Command != "start" || msg.Kind != bot.Text {
		return false, nil
	}
	role, err := g.roleOf(ctx, msg)
	if err != nil {
		return false, err
	}
	used, _, err := g.redeemInvitation(ctx, msg, role)
	return used, err
}

// refuseUnnamed refuses who writes in the name of the group or of a channel. If they have followed a link that has
// admitted the group, they are told so.
func (g *Guard) refuseUnnamed(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	v := turn.Verdict{Reason: turn.NotAPerson}
	code := strings.TrimSpace(msg.Args)
	if !msg.Unnamed || msg.Command != "start" || !IsCode(code) {
		return v, nil
	}
	used, err := g.invitedBy(ctx, msg, code)
	if err == nil && used == usedForGroup {
		v.Once, v.Reply = "invited/"+msg.Place.ChatKey(), g.greetGroup(msg.Language, msg.Place)
	}
	return v, err
}

// greetGroup greets a group that was admitted, and says how to speak to the bot there.
func (g *Guard) greetGroup(language string, group bot.Place) string {
	mention := g.named
	if g.Rules(group).AnyMessage {
		mention = ""
	}
	return g.words.InvitedGroup(language, mention)
}

// toolsOf says which tools a role has; nil = all.
func (g *Guard) toolsOf(role Role) func(tool string) bool {
	list := g.opts.ByRole[role]
	if len(list) == 0 {
		return nil
	}
	return func(tool string) bool { return slices.Contains(list, tool) }
}

// roleOf is what the sender of a message may do: what the configuration says, or what was given in the chat where that
// is more. A person whom the configuration admits is looked up only where it makes a difference: a plain message of
// theirs costs no question to the store. "" = nothing.
func (g *Guard) roleOf(ctx context.Context, msg *bot.Message) (Role, error) {
	if slices.Contains(g.opts.Admins, msg.Person) {
		return Admin, nil
	}
	known, err := g.listedPerson(ctx, msg)
	if err != nil {
		return "", err
	}
	role := Role("")
	if known {
		role = User
		if slices.Contains(g.opts.Approvers, msg.Person) {
			role = Approver
		}
		if _, given := g.rememberedEntry(msg.Person); !given && msg.Command == "" && msg.Kind == bot.Text &&
			len(g.opts.ByRole) == 0 {
			return role, nil
		}
	}
	e, ok, err := g.personEntry(ctx, msg.Place, msg.Person)
	if err != nil || !ok || e.Role.rank() == 0 {
		return role, err
	}
	return higherRole(role, e.Role), nil
}

// inAdmittedGroup reports whether a place is private or in a group that was admitted. A group that became a
// supergroup is known by the id it had.
func (g *Guard) inAdmittedGroup(ctx context.Context, place bot.Place) (bool, error) {
	if !place.Group || containsID(g.opts.Chats, place.Chat) {
		return true, nil
	}
	if ok, err := g.isAdmittedGroup(ctx, place, place.Chat); ok || err != nil {
		return ok, err
	}
	old, err := g.store.Fact(ctx, bot.MovedBucket, g.nameKey(place.Chat), g.now())
	if err != nil {
		return false, fmt.Errorf("read the former id of %s: %w", place.Chat, err)
	}
	if old == "" || containsID(g.opts.Chats, old) {
		return old != "", nil
	}
	return g.isAdmittedGroup(ctx, place, old)
}

func containsID(list []string, id string) bool {
	return slices.Contains(list, Everyone) || slices.Contains(list, id)
}

// listedPerson looks a person up in the configuration by id, then by a listed name that is pinned to this id, then by
// one that is still free. Whoever gave up a name keeps their identity, and does not take a second one.
func (g *Guard) listedPerson(ctx context.Context, msg *bot.Message) (bool, error) {
	if !strings.HasPrefix(msg.Person, "@") && containsID(g.opts.Users, msg.Person) {
		return true, nil
	}
	if msg.Person == "" ||
		!slices.ContainsFunc(g.opts.Users, func(u string) bool { return strings.HasPrefix(u, "@") }) {
		return false, nil
	}
	if ok, err := g.ownsListedName(ctx, msg.Person); ok || err != nil {
		return ok, err
	}
	name := strings.ToLower(msg.Username)
	if !g.listsName(name) {
		return false, nil
	}
	owner, err := g.store.Fact(ctx, bucket, g.nameKey(name), g.now())
	if err != nil {
		return false, fmt.Errorf("read the owner of @%s: %w", name, err)
	}
	if owner != "" {
		return owner == msg.Person, nil
	}
	told, err := g.pinName(ctx, msg, name)
	if err != nil {
		return false, err
	}
	told.FactsIf = []bot.Fact{{Bucket: bucket, Key: g.nameKey(name), Value: msg.Person}}
	applied, err := g.store.Apply(ctx, &told)
	if err != nil {
		return false, fmt.Errorf("pin @%s: %w", name, err)
	}
	if len(applied.Set) == 1 && applied.Set[0] {
		return true, nil
	}
	owner, err = g.store.Fact(ctx, bucket, g.nameKey(name), g.now())
	if err != nil {
		return false, fmt.Errorf("read the owner of @%s: %w", name, err)
	}
	return owner == msg.Person, nil // their own, when two of their first messages came at once
}

// listsName reports whether a name, in lower case, is listed.
func (g *Guard) listsName(name string) bool {
	return name != "" && slices.ContainsFunc(g.opts.Users, func(u string) bool {
		return strings.ToLower(u) == "@"+name
	})
}

// ownsListedName reports whether a person owns a listed name.
func (g *Guard) ownsListedName(ctx context.Context, person string) (bool, error) {
	facts, err := g.store.FactsOf(ctx, bucket, g.nameKey(""), g.now())
	if err != nil {
		return false, fmt.Errorf("read pinned names: %w", err)
	}
	for _, f := range facts {
		if f.Value == person && g.listsName(strings.TrimPrefix(f.Key, g.nameKey(""))) {
			return true, nil
		}
	}
	return false, nil
}

func (g *Guard) nameKey(name string) string { return g.opts.Channel + "/" + name }

// chatOptions merges the configuration of a chat with that of its topic.
func (g *Guard) chatOptions(place bot.Place) Chat {
	if !place.Ordinary() { // another chat, even if its id is the same
		return Chat{}
	}
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
	c := g.chatOptions(place)
	r := turn.Rules{System: c.System}
	if place.Ordinary() {
		r.SharedSession, r.AnyMessage = g.opts.SharedSession, g.opts.AnyMessage
	}
	if c.Session != "" {
		r.SharedSession = c.Session == "chat"
	}
	if c.Trigger != "" {
		r.AnyMessage = c.Trigger == "all"
	}
	channel, own := g.opts.AllowedTools, c.AllowedTools
	if len(channel) > 0 || len(own) > 0 {
		r.Allowed = func(tool string) bool { return allowsTool(channel, tool) && allowsTool(own, tool) }
	}
	return r
}

// allowsTool reports whether an allowlist contains a tool; an empty one contains all.
func allowsTool(list []string, tool string) bool {
	return len(list) == 0 || slices.Contains(list, tool)
}

// Rights returns who may decide questions in a place.
func (g *Guard) Rights(ctx context.Context, place bot.Place, _ string) (approval.Rights, error) {
	r := g.configuredRights(place)
	list, err := g.People(ctx, place)
	if err != nil {
		return approval.Rights{}, err
	}
	for _, e := range list {
		id := g.opts.Channel + ":" + e.ID
		if e.Role.rank() >= Approver.rank() {
			r.Approvers = append(r.Approvers, id)
		}
		if e.Role == Admin {
			r.Admins = append(r.Admins, id)
		}
	}
	return r, nil
}

// Reach reports whether enough people could approve what a person asks for in a place. The store is asked only where
// the configuration does not give enough.
func (g *Guard) Reach(ctx context.Context, place bot.Place, caller string) (bool, error) {
	if !place.Ordinary() {
		return false, nil // a question would be read by people who have nothing to do with the bot
	}
	if g.configuredRights(place).Reach(caller) {
		return true, nil
	}
	r, err := g.Rights(ctx, place, "")
	return err == nil && r.Reach(caller), err
}

// configuredRights are the rights that the configuration gives.
func (g *Guard) configuredRights(place bot.Place) approval.Rights {
	c := g.chatOptions(place)
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

// Admins names the admins, for refusals: by the name that they had when they last wrote, else by id.
func (g *Guard) Admins() []string {
	names := g.Operators()
	for i, id := range names {
		if name := g.nameOf(id); name != "" {
			names[i] = g.calledPerson(id, name)
		}
	}
	return names
}

var _ turn.Guard = (*Guard)(nil)
