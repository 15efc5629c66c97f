package access

import (
	"context"
	"fmt"
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
func (d *Admissions) parseInvitation(msg *bot.Message, now time.Time) (i invitation, ok bool) {
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
				return i, false
			}
			i.Quota, i.Limit = what, limit
		default:
			return i, false
		}
	}
	i.Expires = i.At.Add(time.Duration(days) * 24 * time.Hour)
	return i, true
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
		return call.Reply(d.invitationList(msg, list, "")), nil
	}
	i, ok := d.parseInvitation(msg, g.now())
	switch {
	case !ok:
		return call.ReplyText(w.InviteHelp(msg.Language, mostUses, mostDays)), nil
	case len(list) >= mostInvitations:
		return call.ReplyText(w.InviteFull(msg.Language, mostInvitations)), nil
	}
	code := NewCode()
	i.Hash = CodeHash(code)
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

// invitationList lists invitations with a button to revoke each; note is written below.
func (d *Admissions) invitationList(msg *bot.Message, list []invitation, note string) bot.Content {
	w := d.guard.words.At(msg.Place)
	shown := make([]texts.Invitation, 0, len(list))
	content := bot.Content{Language: msg.Language}
	for n := range list {
		shown = append(shown, displayedInvitation(&list[n]))
		content.Buttons = append(content.Buttons, []bot.Button{
			revokeButton(fmt.Sprintf("%s %d", w.RevokeLinkButton(msg.Language), n+1), &list[n]),
		})
	}
	content.Text = w.Invitations(msg.Language, shown, note)
	content.Entities = render.Inert(content.Text)
	return content
}

// revokeInvitation revokes the invitation of a button; the message becomes the list of the others.
func (d *Admissions) revokeInvitation(ctx context.Context, msg *bot.Message, short string) (turn.Effect, error) {
	g, w := d.guard, d.guard.words
	list, err := g.listInvitations(ctx, msg.Place)
	if err != nil {
		return turn.Effect{}, err
	}
	var others []invitation
	e := toastReply(msg, w.Noted(msg.Language, 0), false)
	for n := range list {
		i := &list[n]
		if i.Hash[:shortHash] != short {
			others = append(others, *i)
			continue
		}
		e.Change.Facts = append(e.Change.Facts, bot.Fact{Bucket: invitationBucket, Key: personKey(msg.Place, i.Hash)})
		e.Change.Facts = append(e.Change.Facts, g.auditLine(invitationEvent("uninvite", msg, i))...)
		e.Then = d.recorded
	}
	note := w.InvitationRevoked(msg.Language)
	if e.Then == nil {
		note = w.InvitationOver(msg.Language)
	}
	e.Change.Send = append(e.Change.Send, redrawMessage(msg, d.invitationList(msg, others, note))...)
	return e, nil
}
