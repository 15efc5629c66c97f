package access

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
)

// The buckets of invitations. The key of an invitation is CHANNEL/BOT/HASH, with the CodeHash of its code, which is not
// stored; what shows that a person has used it, CHANNEL/BOT/ID/HASH. invitationListBucket holds, by admin, the key of the row
// that lists the invitations.
const (
	invitationBucket     = "invitation"
	invitedBucket        = "invitation_used"
	invitationListBucket = "invitation_list"
)

// invitationOver is how long an invitation is stored after its end, until its messages say so.
const invitationOver = 7 * 24 * time.Hour

// Limits of invitations.
const (
	mostInvitations = 50 // that are valid at once
	mostUses        = 100
	mostDays        = 30
	usualDays       = 7
)

// invitation is what a link gives to whoever follows it.
type invitation struct {
	Hash    string    `json:"-"`
	Role    Role      `json:"role"`            // of a person
	Group   bool      `json:"group,omitempty"` // the group that the bot is added to by it is admitted too
	Left    int       `json:"left"`            // uses
	Quota   string    `json:"quota,omitempty"` // UNIT/WINDOW of Limit: of the person, or of the group
	Limit   string    `json:"limit,omitempty"`
	By      string    `json:"by"` // caller id of the admin
	ByName  string    `json:"by_name,omitempty"`
	At      time.Time `json:"at"`
	Expires time.Time `json:"expires"`
	Card    string    `json:"card,omitempty"` // key of the row with the link
	raw     string    // as it is stored
}

// What the use of an invitation is stored as.
const (
	usedByPerson = "person"
	usedForGroup = "group"
)

// fact returns an invitation as it is stored; one without uses left is deleted.
func (i *invitation) fact(place bot.Place) (bot.Fact, error) {
	f := bot.Fact{Bucket: invitationBucket, Key: personKey(place, i.Hash)}
	if i.Left <= 0 {
		return f, nil
	}
	value, err := json.Marshal(i)
	if err != nil {
		return f, fmt.Errorf("invitation: %w", err)
	}
	f.Value, f.Expires = string(value), i.Expires.Add(invitationOver)
	return f, nil
}

// readInvitation returns the invitation of a hash as it is stored; nil = there is none that is valid. An invitation ends
// with the rights of the admin who made it.
func (g *Guard) readInvitation(ctx context.Context, place bot.Place, hash string) (i *invitation, err error) {
	raw, err := g.store.Fact(ctx, invitationBucket, personKey(place, hash), g.now())
	if err != nil {
		return nil, fmt.Errorf("read an invitation: %w", err)
	}
	if raw == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	i = &invitation{Hash: hash, raw: raw}
	if err := json.Unmarshal([]byte(raw), i); err != nil {
		return nil, fmt.Errorf("invitation: %w", err)
	}
	admins, err := g.allAdmins(ctx, place)
	if err != nil || !g.isValid(i, admins) {
		return nil, err
	}
	return i, nil
}

// isValid reports whether an invitation is valid that one of these admins has made.
func (g *Guard) isValid(i *invitation, admins []string) bool {
	return i.Role.rank() > 0 && i.Expires.After(g.now()) && slices.Contains(admins, g.idOf(i.By))
}

// listInvitations lists the invitations that are valid, the newest first.
func (g *Guard) listInvitations(ctx context.Context, place bot.Place) ([]invitation, error) {
	list, err := g.storedInvitations(ctx, place)
	if err != nil {
		return nil, err
	}
	admins, err := g.allAdmins(ctx, place)
	return slices.DeleteFunc(list, func(i invitation) bool { return !g.isValid(&i, admins) }), err
}

// storedInvitations lists invitations with those that have ended lately, the newest first.
func (g *Guard) storedInvitations(ctx context.Context, place bot.Place) ([]invitation, error) {
	facts, err := g.store.FactsOf(ctx, invitationBucket, personKey(place, ""), g.now())
	if err != nil {
		return nil, fmt.Errorf("read invitations: %w", err)
	}
	var list []invitation
	for _, f := range facts {
		i := invitation{Hash: strings.TrimPrefix(f.Key, personKey(place, "")), raw: f.Value}
		if err := json.Unmarshal([]byte(f.Value), &i); err != nil {
			return nil, fmt.Errorf("invitation: %w", err)
		}
		list = append(list, i)
	}
	slices.SortStableFunc(list, func(a, b invitation) int { return b.At.Compare(a.At) })
	return list, nil
}

// usedKey returns the key that shows that the sender of a message has used an invitation. Whoever writes in the name of a
// group uses it for the group.
func usedKey(msg *bot.Message, hash string) string {
	return personKey(msg.Place, cmp.Or(msg.Person, msg.Place.Chat)) + "/" + hash
}

// invitedBy returns what a person has used the invitation of a code for; "" = they have not.
func (g *Guard) invitedBy(ctx context.Context, msg *bot.Message, code string) (string, error) {
	used, err := g.store.Fact(ctx, invitedBucket, usedKey(msg, CodeHash(code)), g.now())
	if err != nil {
		return "", fmt.Errorf("read who has used an invitation: %w", err)
	}
	return used, nil
}

// redeemTries is how often a use of an invitation is computed again because somebody else uses it at the same moment.
const redeemTries = 10

// redeemInvitation admits the sender of /start CODE, and their group, if the code is of an invitation that gives them
// more than they have. used reports whether it did, now or before; gone that it looks like a code and is of none. Both are
// false for somebody who needs none.
func (g *Guard) redeemInvitation(ctx context.Context, msg *bot.Message, role Role) (used, gone bool, err error) {
	code := strings.TrimSpace(msg.Args)
	unnamed := msg.Caller == "" && (!msg.Unnamed || !msg.Place.Group)
	if msg.Command != "start" || !IsCode(code) || unnamed || msg.FromBot || !msg.Place.Ordinary() {
		return false, false, nil
	}
	for range redeemTries {
		used, gone, err = g.redeemOnce(ctx, msg, CodeHash(code), role)
		if !errors.Is(err, bot.ErrConflict) {
			break
		}
	}
	if err != nil || !used {
		return used, gone, err
	}
	if g.opts.Record != nil {
		g.opts.Record(ctx)
	}
	return true, false, g.Follow(ctx)
}

// redeemOnce is one try of redeemInvitation; the error is ErrConflict if something has changed meanwhile.
func (g *Guard) redeemOnce(ctx context.Context, msg *bot.Message, hash string, role Role) (used, gone bool, err error) {
	before, err := g.invitedBy(ctx, msg, strings.TrimSpace(msg.Args))
	if err != nil || before != "" { // whoever was removed since is not admitted by it again
		return false, role == "", err
	}
	i, err := g.readInvitation(ctx, msg.Place, hash)
	if err != nil || i == nil || i.Group != msg.Place.Group {
		return false, role == "", err
	}
	entry, known, err := g.personEntry(ctx, msg.Place, msg.Person)
	if err != nil || known && entry.Role == Blocked {
		return false, false, err
	}
	admitted, err := g.inAdmittedGroup(ctx, msg.Place)
	if err != nil || admitted && (msg.Caller == "" || role.rank() >= i.Role.rank()) {
		return false, false, err
	}
	if !admitted {
		group, known, err := g.groupEntry(ctx, msg.Place, msg.Place.Chat)
		if err != nil || known && group.Role == Blocked {
			return false, false, err
		}
	}
	var entries []Entry
	if msg.Caller != "" && role.rank() < i.Role.rank() {
		entries = append(entries, Entry{ID: msg.Person, Role: i.Role, Name: msg.Name, raw: entry.raw})
	}
	if !admitted {
		entries = append(entries, Entry{ID: msg.Place.Chat, Group: true, Name: msg.Title})
	}
	change, err := g.invited(ctx, msg, i, entries)
	if err != nil {
		return false, false, err
	}
	if _, err = g.store.Apply(ctx, &change); err != nil {
		return false, false, fmt.Errorf("use an invitation: %w", err)
	}
	return true, false, nil
}

// invited is what the use of an invitation changes, which admits who is in entries, and tells the admin who made it.
func (g *Guard) invited(
	ctx context.Context, msg *bot.Message, i *invitation, entries []Entry,
) (change bot.Change, err error) {
	i.Left--
	rest, err := i.fact(msg.Place)
	if err != nil {
		return change, err
	}
	rest.Was = &i.raw
	nothing := ""
	use := bot.Fact{
		Bucket: invitedBucket, Key: usedKey(msg, i.Hash), Value: usedByPerson,
		Expires: i.Expires, Was: &nothing,
	}
	who := msg.Person
	if msg.Place.Group {
		use.Value, who = usedForGroup, "chat"
	}
	change.Facts = append(change.Facts, rest, use)
	for _, e := range entries {
		e.By, e.ByName, e.At = i.By, i.ByName, g.now().UTC()
		f, err := e.fact(msg.Place)
		if err != nil {
			return change, err
		}
		f.Was = &e.raw // refused if an admin decides about them meanwhile
		change.Facts = append(change.Facts, f)
		change.Facts = append(change.Facts, g.auditLine(Event{
			Verb: "admit", Entry: e, By: i.By, Place: msg.Place, ID: msg.ID + "/" + e.ID,
		})...)
	}
	if i.Quota != "" && g.opts.Allowance != nil {
		f, ok := g.opts.Allowance(groupOrPrivate(msg.Place), who, i.Quota, i.Limit, i.By, i.ByName, g.now())
		if ok {
			change.Facts = append(change.Facts, f)
		}
	}
	if _, err = g.releaseSaid(ctx, msg.Place, msg.Person, false, &change); err != nil {
		return change, err
	}
	if slices.ContainsFunc(entries, func(e Entry) bool { return e.Group }) {
		if _, err = g.releaseSaid(ctx, msg.Place, msg.Place.Chat, false, &change); err != nil {
			return change, err
		}
	}
	if g.opts.Private == nil {
		return change, nil
	}
	for _, e := range entries {
		e.By, e.ByName, e.At = i.By, i.ByName, g.now().UTC()
		s, err := g.strangerOf(ctx, msg.Place, e.ID)
		if err != nil {
			return change, err
		}
		if err := g.endCards(ctx, msg, e, s, &change); err != nil {
			return change, err
		}
	}
	if err = g.usedInvitation(ctx, msg, i, &change); err != nil {
		return change, err
	}
	to, language := g.opts.Private(g.idOf(i.By)), g.languageOf(g.idOf(i.By))
	text := g.words.InvitationUsed(language, g.calledSender(msg), msg.Title, i.Left)
	change.Send = append(change.Send, bot.Row{
		Session: to.SessionKey(""), Place: to, Purpose: bot.Reply, Key: "invited/" + i.Hash + "/" + msg.ID,
		Content: bot.Content{Text: text, Language: language, Entities: render.Inert(text)},
	})
	return change, nil
}

// idOf returns the id of a person by their caller id.
func (g *Guard) idOf(caller string) string { return strings.TrimPrefix(caller, g.opts.Channel+":") }

// groupOrPrivate returns a place without its topic.
func groupOrPrivate(place bot.Place) bot.Place {
	if place.Group {
		return groupPlace(place, place.Chat)
	}
	return place
}

// refuseInvitation answers somebody who has followed a link that is used up, has expired, was revoked, or never was. That
// an admin is asked is promised only where one is.
func (g *Guard) refuseInvitation(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	v := turn.Verdict{
		Reason: "no valid invitation", Reply: g.words.InvitationGone(msg.Language), Once: "invitation/" + msg.Caller,
	}
	admins, err := g.allAdmins(ctx, msg.Place)
	if err != nil || len(admins) == 0 || g.opts.Private == nil {
		return v, err
	}
	s, err := g.strangerOf(ctx, msg.Place, msg.Person)
	if err == nil && (s == nil || !s.Declined) {
		v.Reply = g.words.InvitationGoneAsk(msg.Language)
	}
	return v, err
}
