package access

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// pressRevoke is the verb of the buttons that revoke invitations: "p1:v:BEGINNING OF THE HASH".
const pressRevoke = "v"

// shortHash is how much of a hash names an invitation in a button and in the audit log.
const shortHash = 16

// parseInvitation reads what follows /invite: group, a role, 5x (uses), 3d (days), turns/day=20. ok is false for anything
// else.
func (d *Admissions) parseInvitation(msg *bot.Message, now time.Time) (i invitation, unknown string) {
	i = invitation{Role: User, Left: 1, By: msg.Caller, ByName: msg.Signature(), At: now.UTC()}
	days := usualDays
	for word := range strings.FieldsSeq(strings.ToLower(msg.Args)) {
		number, err := strconv.Atoi(strings.TrimRight(word, "xd"))
		what, limit, isQuota := strings.Cut(word, "=")
		switch {
		case word == "group":
			i.Group = true
		case word == string(User), word == string(Approver): // who may admit others is not for a link
			i.Role = Role(word)
		case err == nil && word == strconv.Itoa(number)+"x" && number >= 1 && number <= mostUses:
			i.Left = number
		case err == nil && word == strconv.Itoa(number)+"d" && number >= 1 && number <= mostDays:
			days = number
		case isQuota && d.guard.opts.Allowance != nil:
			if _, ok := d.guard.opts.Allowance(msg.Place, "1", what, limit, "", "", now); !ok {
				return i, word
			}
			i.Quota, i.Limit = what, limit
		default:
			return i, word
		}
	}
	i.Expires = i.At.Add(time.Duration(days) * 24 * time.Hour)
	return i, ""
}

// Invite answers /invite: it makes a link, or lists those that are valid. The caller is an admin. A link admits whoever
// has it, so that none is shown in a group.
func (d *Admissions) Invite(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	g, w, msg := d.guard, d.guard.words.At(call.Message.Place), call.Message
	if msg.Place.Group {
		return call.ReplyText(w.InviteInPrivate(msg.Language)), nil
	}
	list, err := g.listInvitations(ctx, msg.Place)
	if err != nil {
		return turn.Effect{}, err
	}
	if strings.EqualFold(strings.TrimSpace(msg.Args), "list") {
		return g.showInvitations(ctx, call, list)
	}
	i, unknown := d.parseInvitation(msg, g.now())
	switch {
	case unknown != "":
		return call.ReplyText(w.Usage(msg.Language, unknown, nil, w.InviteHelp(msg.Language, mostUses, mostDays))), nil
	case len(list) >= mostInvitations:
		return call.ReplyText(w.InviteFull(msg.Language, mostInvitations)), nil
	}
	code := NewCode()
	i.Hash = CodeHash(code)
	i.Card = "invite/" + i.Hash[:shortHash] + "/" + msg.ID
	f, err := i.fact(msg.Place)
	if err != nil {
		return turn.Effect{}, err
	}
	link := Link(d.username, code)
	if i.Group {
		link = GroupLink(d.username, code)
	}
	content := bot.Content{
		Text:     w.Invited(msg.Language, displayedInvitation(&i), link),
		Language: msg.Language,
		Buttons:  [][]bot.Button{{revokeButton(w.RevokeLinkButton(msg.Language), &i)}},
	}
	e := call.Reply(content)
	e.Change.Send[0].Key = i.Card
	e.Change.Facts = append([]bot.Fact{f}, g.auditLine(invitationEvent("invite", msg, &i))...)
	e.Then = d.recorded
	return e, nil
}

// invitationEvent is what the record says of an invitation.
func invitationEvent(verb string, msg *bot.Message, i *invitation) Event {
	return Event{
		Verb: verb, By: msg.Caller, Place: msg.Place, ID: msg.ID,
		Entry: Entry{ID: i.Hash[:shortHash], Group: i.Group, Role: i.Role, By: i.By, At: i.At},
	}
}

// recorded writes to the record what was stored.
func (d *Admissions) recorded(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
	if d.guard.opts.Record != nil {
		d.guard.opts.Record(ctx)
	}
	return turn.Effect{}, nil
}

// revokeButton revokes an invitation.
func revokeButton(label string, i *invitation) bot.Button {
	return bot.Button{Label: label, Data: Prefix + ":" + pressRevoke + ":" + i.Hash[:shortHash], Style: "danger"}
}

// displayedInvitation converts an invitation for display.
func displayedInvitation(i *invitation) texts.Invitation {
	return texts.Invitation{
		Role: string(i.Role), Group: i.Group, Left: i.Left, Quota: i.Quota, Limit: i.Limit, By: i.ByName, Expires: i.Expires,
	}
}

// showInvitations answers with a list of invitations. The one before it loses its buttons.
func (g *Guard) showInvitations(ctx context.Context, call *turn.Call, list []invitation) (turn.Effect, error) {
	msg := call.Message
	e := call.Reply(g.invitationList(msg.Place, msg.Language, list, ""))
	shown := bot.Fact{
		Bucket: invitationListBucket, Key: personKey(msg.Place, msg.Person), Value: "invitations/" + msg.ID,
		Expires: g.now().Add(mostDays * 24 * time.Hour),
	}
	before, err := g.store.Fact(ctx, shown.Bucket, shown.Key, g.now())
	if err != nil {
		return e, fmt.Errorf("read which message lists invitations: %w", err)
	}
	row, open, err := g.openCard(ctx, before, msg)
	if open {
		row.Content.Buttons = nil
		e.Change.Send = append(e.Change.Send, editOf(&row, row.Content))
	}
	e.Change.Send[0].Key = shown.Value
	e.Change.Facts = []bot.Fact{shown}
	return e, err
}

// invitationList lists invitations with a button to revoke each; note is written below.
func (g *Guard) invitationList(place bot.Place, language string, list []invitation, note string) bot.Content {
	w := g.words.At(place)
	shown := make([]texts.Invitation, 0, len(list))
	content := bot.Content{Language: language}
	for n := range list {
		shown = append(shown, displayedInvitation(&list[n]))
		content.Buttons = append(content.Buttons, []bot.Button{
			revokeButton(fmt.Sprintf("%s %d", w.RevokeLinkButton(language), n+1), &list[n]),
		})
	}
	content.Text = w.Invitations(language, shown, note)
	content.Entities = render.Inert(content.Text)
	return content
}

// redrawInvitations adds to a Change the edits of the messages that list invitations, except the one that msg has pressed.
func (g *Guard) redrawInvitations(
	ctx context.Context, msg *bot.Message, place bot.Place, list []invitation, change *bot.Change,
) error {
	facts, err := g.store.FactsOf(ctx, invitationListBucket, personKey(place, ""), g.now())
	if err != nil {
		return fmt.Errorf("read which messages list invitations: %w", err)
	}
	for _, f := range facts {
		row, open, err := g.openCard(ctx, f.Value, msg)
		if err != nil {
			return err
		}
		if open {
			content := g.invitationList(row.Place, row.Content.Language, list, "")
			change.Send = append(change.Send, editOf(&row, content))
		}
	}
	return nil
}

// endedInvitation returns what the message with a link says once the link is not valid any more: which link it is, and
// nothing of what it gave.
func endedInvitation(row *bot.Row, note string) bot.Content {
	content := row.Content
	content.Buttons = nil
	_, link, _ := strings.Cut(content.Text, "\n\n") // texts.Words.Invited
	link, _, _ = strings.Cut(link, "\n\n")
	content.Text = strings.TrimPrefix(link+"\n\n"+note, "\n\n")
	return content
}

// endInvitation adds to a Change that the message with a link says that it is not valid any more, unless msg has pressed it.
func (g *Guard) endInvitation(
	ctx context.Context, msg *bot.Message, i *invitation, note func(language string) string, change *bot.Change,
) error {
	row, open, err := g.openCard(ctx, i.Card, msg)
	if open {
		change.Send = append(change.Send, editOf(&row, endedInvitation(&row, note(row.Content.Language))))
	}
	return err
}

// usedInvitation adds to the Change that uses an invitation what the messages about it say then.
func (g *Guard) usedInvitation(ctx context.Context, msg *bot.Message, i *invitation, change *bot.Change) error {
	list, err := g.listInvitations(ctx, msg.Place)
	if err != nil {
		return err
	}
	if n := slices.IndexFunc(list, func(o invitation) bool { return o.Hash == i.Hash }); n >= 0 && i.Left > 0 {
		list[n] = *i
	} else if n >= 0 {
		list = slices.Delete(list, n, n+1)
	}
	if i.Left <= 0 {
		if err := g.endInvitation(ctx, nil, i, g.words.InvitationUsedUp, change); err != nil {
			return err
		}
	}
	return g.redrawInvitations(ctx, nil, msg.Place, list, change)
}

// settleInvitations ends the links whose time is over, or whose admin is none any more.
func (g *Guard) settleInvitations(ctx context.Context, place bot.Place, sent func(place bot.Place)) error {
	all, err := g.storedInvitations(ctx, place)
	if err != nil || len(all) == 0 {
		return err
	}
	valid, err := g.listInvitations(ctx, place)
	if err != nil {
		return err
	}
	var change bot.Change
	for n := range all {
		i := &all[n]
		if slices.ContainsFunc(valid, func(o invitation) bool { return o.Hash == i.Hash }) {
			continue
		}
		change.Facts = append(change.Facts, bot.Fact{
			Bucket: invitationBucket, Key: personKey(place, i.Hash), Was: &i.raw,
		})
		if err := g.endInvitation(ctx, nil, i, g.words.InvitationOver, &change); err != nil {
			return err
		}
	}
	if len(change.Facts) == 0 {
		return nil
	}
	if err := g.redrawInvitations(ctx, nil, place, valid, &change); err != nil {
		return err
	}
	return g.applySettled(ctx, &change, sent)
}

// revokeInvitation revokes the invitation of a button; a list becomes that of the others.
func (d *Admissions) revokeInvitation(ctx context.Context, msg *bot.Message, short string) (turn.Effect, error) {
	g, w := d.guard, d.guard.words
	list, err := g.listInvitations(ctx, msg.Place)
	if err != nil {
		return turn.Effect{}, err
	}
	n := slices.IndexFunc(list, func(i invitation) bool { return i.Hash[:shortHash] == short })
	if n < 0 {
		e := toastReply(msg, w.InvitationOver(msg.Language), false)
		content := g.invitationList(msg.Place, msg.Language, list, w.InvitationOver(msg.Language))
		e.Change.Send = append(e.Change.Send, redrawMessage(msg, content)...)
		return e, nil
	}
	i := list[n]
	others := slices.Delete(list, n, n+1)
	e := toastReply(msg, w.Noted(msg.Language, 0), false)
	e.Change.Facts = append(
		[]bot.Fact{{Bucket: invitationBucket, Key: personKey(msg.Place, i.Hash)}},
		g.auditLine(invitationEvent("uninvite", msg, &i))...)
	e.Then = d.recorded
	content := g.invitationList(msg.Place, msg.Language, others, w.InvitationRevoked(msg.Language))
	row, open, err := g.openCard(ctx, i.Card, nil)
	if err != nil {
		return turn.Effect{}, err
	}
	if open && row.Message == msg.Message && row.Place.ChatKey() == msg.Place.ChatKey() {
		content = endedInvitation(&row, w.InvitationRevoked(msg.Language))
	}
	e.Change.Send = append(e.Change.Send, redrawMessage(msg, content)...)
	if err := g.endInvitation(ctx, msg, &i, w.InvitationRevoked, &e.Change); err != nil {
		return turn.Effect{}, err
	}
	return e, g.redrawInvitations(ctx, msg, msg.Place, others, &e.Change)
}
