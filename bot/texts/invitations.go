package texts

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Invitation is a link that admits whoever follows it.
type Invitation struct {
	Role         string // of a person
	Group        bool   // it also admits the group that the bot is added to by it
	Left         int    // uses
	Quota, Limit string // what is limited, as in turns/day, and to how much; "" = nothing
	By           string // who made it
	Expires      time.Time
}

// invitationsBook is the sentences about invitations.
type invitationsBook struct {
	UsedUp, Invited, InPrivate string
	Made, MadeGroup            string // the link follows
	Uses                       count
	Until                      string // a time
	Group, By                  string // who made it
	Revoke                     string
	Head, None                 string
	Help                       string // most uses, most days
	Full                       string // most invitations
	Revoked, Over              string
	Used, UsedGroup            string // who; who, group
	Left                       count
	Gone, GoneAsk              string
	Unneeded                   string
	ForGroup                   string
	InvitedGroup               string // @name of the bot
	InvitedGroupAll            string
}

// terms says what an invitation gives, in a line.
func (w Words) terms(language string, i *Invitation) string {
	b := w.in(language)
	parts := []string{b.People.Roles[i.Role]}
	if i.Group {
		parts = append(parts, b.People.Invitations.Group)
	}
	parts = append(parts, b.People.Invitations.Uses.say(i.Left), fmt.Sprintf(b.People.Invitations.Until, w.Moment(language, i.Expires)))
	if i.Quota != "" {
		parts = append(parts, w.allowance(language, i.setting()))
	}
	return strings.Join(parts, " · ")
}

// setting returns the limit that comes with an invitation; one that is no number is none.
func (i *Invitation) setting() Setting {
	unit, window, _ := strings.Cut(i.Quota, "/")
	amount, _ := strconv.ParseFloat(strings.TrimPrefix(i.Limit, "$"), 64) // "off" is 0
	if unit == "usd" {
		unit, amount = USD, amount*1e6
	}
	return Setting{Unit: unit, Window: Window(window), Limit: int64(math.Round(amount))}
}

// Invited answers /invite with a link, which is on a line of its own.
func (w Words) Invited(language string, i Invitation, link string) string {
	b := w.in(language).People.Invitations
	head := b.Made
	if i.Group {
		head = b.MadeGroup
	}
	return head + "\n\n" + link + "\n\n" + w.terms(language, &i)
}

// Invitations answers /invite list; note is written below.
func (w Words) Invitations(language string, list []Invitation, note string) string {
	b := w.in(language).People.Invitations
	lines := []string{b.Head}
	for n := range list {
		lines = append(lines, fmt.Sprintf("%d. ", n+1)+w.terms(language, &list[n])+
			" · "+fmt.Sprintf(b.By, named(list[n].By)))
	}
	if len(list) == 0 {
		lines = []string{b.None}
	}
	if note != "" {
		lines = append(lines, "", note)
	}
	return strings.Join(lines, "\n")
}

// RevokeLinkButton is the label of the button that revokes an invitation.
func (w Words) RevokeLinkButton(language string) string {
	return w.in(language).People.Invitations.Revoke
}

// InviteHelp says how /invite is used.
func (w Words) InviteHelp(language string, uses, days int) string {
	return fmt.Sprintf(w.in(language).People.Invitations.Help, uses, days)
}

// InviteFull refuses an invitation because there are so many.
func (w Words) InviteFull(language string, most int) string {
	return fmt.Sprintf(w.in(language).People.Invitations.Full, most)
}

// InvitationRevoked says that an invitation was revoked.
func (w Words) InvitationRevoked(language string) string {
	return w.in(language).People.Invitations.Revoked
}

// InvitationOver says that an invitation that is to be revoked is not valid any more.
func (w Words) InvitationOver(language string) string { return w.in(language).People.Invitations.Over }

// InvitationUsedUp says that an invitation has no uses left.
func (w Words) InvitationUsedUp(language string) string {
	return w.in(language).People.Invitations.UsedUp
}

// InvitationUsed tells an admin that somebody has used their invitation, for a group with a title or ("") themselves.
func (w Words) InvitationUsed(language, name, title string, left int) string {
	b := w.in(language).People.Invitations
	text := fmt.Sprintf(b.Used, named(name))
	if title != "" {
		text = fmt.Sprintf(b.UsedGroup, cmp.Or(named(name), w.in(language).People.Somebody), named(title))
	}
	if left == 0 {
		return text + " " + b.UsedUp
	}
	return text + " " + b.Left.say(left)
}

// InvitedPerson follows Start for a person who has followed an invitation.
func (w Words) InvitedPerson(language string) string {
	return w.in(language).People.Invitations.Invited
}

// InviteInPrivate answers /invite in a group.
func (w Words) InviteInPrivate(language string) string {
	return w.in(language).People.Invitations.InPrivate
}

// InvitationGone answers a link that is not valid (any more).
func (w Words) InvitationGone(language string) string { return w.in(language).People.Invitations.Gone }

// InvitationGoneAsk answers such a link where an admin is asked about whoever has followed it.
func (w Words) InvitationGoneAsk(language string) string {
	return w.InvitationGone(language) + " " + w.in(language).People.Invitations.GoneAsk
}

// InvitationUnneeded answers a valid link of an invitation for somebody whom it gives nothing.
func (w Words) InvitationUnneeded(language string) string {
	return w.in(language).People.Invitations.Unneeded
}

// InvitationForGroup answers, in private, the link of an invitation for a group.
func (w Words) InvitationForGroup(language string) string {
	return w.in(language).People.Invitations.ForGroup
}

// InvitedGroup greets a group that was admitted, and says how to speak to the bot there: by its @name, or by any message
// where mention is "".
func (w Words) InvitedGroup(language, mention string) string {
	b := w.in(language).People.Invitations
	if mention == "" {
		return b.InvitedGroupAll
	}
	return fmt.Sprintf(b.InvitedGroup, mention)
}
