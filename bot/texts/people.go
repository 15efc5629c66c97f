package texts

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/visible"
)

// everyone in a list of the configuration admits everybody.
const everyone = "*"

// Person is somebody, or a group, that may talk to the bot.
type Person struct {
	ID     string
	Group  bool
	Name   string // chosen by its owner; "" = not known
	Shared bool   // somebody else who is known has the same name
	Role   string // user, approver, admin; "" for groups
	By     string // who admitted them
	ByCode bool   // they are the first admin, by the code of a start
	At     time.Time
}

// mostDeclined is how many of those who were declined are named.
const mostDeclined = 10

// People is what /people lists: whom the configuration admits, and a page of those who were admitted in the chat.
type People struct {
	Configured []Person
	Page       []Person
	From, All  int    // number of the first of the page, counted from 1, and of all
	Note       string // stands below
	// Waiting is who was asked about last and is not answered yet, and MoreWaiting how many others are; Declined is
	// who was declined lately. They stand on the first page.
	Waiting     []Person
	MoreWaiting int
	Declined    []Person
}

// peopleBook is the sentences about who may talk to the bot.
type peopleBook struct {
	Asks, AsksID, AsksIn                       string
	AsksDeclined                               string // who has declined, day
	AsksYouDeclined                            string // day
	AsksAgain                                  string
	HeadWaiting                                string
	MoreWaiting                                string // how many
	DeclinedLately                             string // who
	Somebody, Admit                            string
	AsksGroup                                  string // who, group
	AsksGroupAdded, AsksGroupWanted            string // group
	GroupAskedYou, StrangerCode                string // name of the admin; id
	Decline, Block                             string
	Declined, DeclinedGroup                    string // who, id
	Blocked, BlockedGroup                      string // who
	Pinned                                     string
	CodeOften, StartAdmin                      string
	CodeWrong                                  count // tries that are left
	Head, HeadChat, None, Everyone, EveryGroup string
	AdmittedBy, ByCode, Group                  string
	Roles                                      map[string]string
	More, Remove                               string
	InPrivate, AdmitHelp, RemoveHelp, Off      string
	Configured, GroupConfigured, Already       string
	Admitted, AdmittedGroup, LastAdmin         string
	Removed, Ends                              string
	NotAdmitted, Welcome                       string
	WelcomeSaid, YouDeclined                   string
	StrangerRefused, AnAdmin                   string
	NamedAdmins                                count // names of as many
	SetupWaits                                 string
	NameUnknown                                string // name
	NameShared                                 string // name, ids
	ByNameHere                                 string
	StrangerAsked, GroupAsked                  string // names of admins
	GroupRefused, GroupDeclined                string
	Invitations                                invitationsBook
}

// Named is how a name that its owner has chosen is written in a sentence: short, on one line, with signs for what
// cannot be seen.
func Named(name string) string { return named(name) }

// who names a person or group: by name, and by id as well where that is needed to tell two apart.
func (p Person) who() string {
	switch name := named(p.Name); {
	case name == "":
		return p.ID
	case p.Shared:
		return name + " (" + p.ID + ")"
	default:
		return name
	}
}

// whoExactly names somebody on whom a decision depends: name and id.
func (p Person) whoExactly() string {
	p.Shared = true
	return p.who()
}

// line is a person or group with what is known of them.
func (w Words) line(language string, p *Person) string {
	b := w.in(language).People
	what := b.Roles[p.Role]
	if p.Group && p.Role != "" {
		what = b.Group + ", " + what
	} else if p.Group {
		what = b.Group
	}
	return p.who() + " – " + what + w.admittedBy(language, p)
}

// admittedBy says after a comma who has decided about a person or group, and when; "" = nobody knows.
func (w Words) admittedBy(language string, p *Person) string {
	b := w.in(language).People
	switch {
	case p.At.IsZero():
		return ""
	case p.ByCode:
		return ", " + fmt.Sprintf(b.ByCode, w.Moment(language, p.At))
	default:
		return ", " + fmt.Sprintf(b.AdmittedBy, named(p.By), w.Moment(language, p.At))
	}
}

// People answers /people.
func (w Words) People(language string, list People) string {
	b := w.in(language).People
	var lines []string
	if list.From <= 1 {
		lines = append(lines, b.Head)
		for i := range list.Configured {
			p := &list.Configured[i]
			switch {
			case p.ID == everyone && p.Group:
				lines = append(lines, "• "+b.EveryGroup)
			case p.ID == everyone:
				lines = append(lines, "• "+b.Everyone)
			default:
				lines = append(lines, "• "+w.line(language, p))
			}
		}
		if len(list.Configured) == 0 {
			lines = append(lines, "• "+b.None)
		}
		lines = append(lines, "")
	}
	lines = append(lines, b.HeadChat)
	for i := range list.Page {
		p := list.Page[i]
		p.Shared = p.Shared || p.Group // its id is for the configuration and /quota; few places show it
		lines = append(lines, fmt.Sprintf("%d. %s", list.From+i, w.line(language, &p)))
	}
	if list.All == 0 {
		lines = append(lines, b.None)
	}
	if list.All > len(list.Page) {
		lines = append(lines, "", fmt.Sprintf(b.More, list.From, list.From+len(list.Page)-1, list.All))
	}
	lines = append(lines, w.undecided(language, &list)...)
	if list.Note != "" {
		lines = append(lines, "", list.Note)
	}
	return strings.Join(lines, "\n")
}

// undecided is what People says of those who are not admitted.
func (w Words) undecided(language string, list *People) []string {
	b := w.in(language).People
	var lines []string
	if len(list.Waiting) > 0 {
		lines = append(lines, "", b.HeadWaiting)
	}
	for _, p := range list.Waiting {
		line := "• " + p.whoExactly()
		if p.Group {
			line += " – " + b.Group
		}
		lines = append(lines, line)
	}
	if list.MoreWaiting > 0 {
		lines = append(lines, fmt.Sprintf(b.MoreWaiting, list.MoreWaiting))
	}
	if n := len(list.Declined); n > 0 {
		var names []string
		for _, p := range list.Declined[:min(n, mostDeclined)] {
			names = append(names, p.who())
		}
		if n > mostDeclined {
			names = append(names, "…")
		}
		lines = append(lines, "", fmt.Sprintf(b.DeclinedLately, strings.Join(names, ", ")))
	}
	return lines
}

// RemoveButton is the label of the button that removes number n of the list.
func (w Words) RemoveButton(language string, n int, p Person) string {
	return fmt.Sprintf(w.in(language).People.Remove, n, p.who())
}

// saidLength is how much an admin is shown of what a stranger wrote, in characters.
const saidLength = 200

// StrangerAsks tells an admin that somebody who is not admitted has written: who, the beginning of what they wrote ("" =
// no text), their id, and the group in which they did ("" = in private). Name and words, which a stranger chooses, are on one line each; they are to be shown as
// quotations, so that they cannot pass for the rest.
func (w Words) StrangerAsks(language, name, username, said, id, title string) (head, who, quote, foot string) {
	b := w.in(language).People
	foot = fmt.Sprintf(b.AsksID, id)
	if username != "" {
		foot += " · @" + named(username)
	}
	if title != "" {
		foot += " · " + fmt.Sprintf(b.AsksIn, named(title))
	}
	quote = render.Cut(visible.Name(strings.Join(strings.Fields(said), " ")), saidLength)
	return b.Asks, cmp.Or(named(name), id), quote, foot
}

// StrangerDeclined begins StrangerAsks about somebody whom an admin has declined; name "" = the reader.
func (w Words) StrangerDeclined(language, name string, at time.Time) string {
	b := w.in(language).People
	if name == "" {
		return fmt.Sprintf(b.AsksYouDeclined, w.Day(language, at))
	}
	return fmt.Sprintf(b.AsksDeclined, named(name), w.Day(language, at))
}

// StrangerNotAsking begins StrangerAsks about somebody who is not admitted, and does not wait for an answer.
func (w Words) StrangerNotAsking(language string) string { return w.in(language).People.AsksAgain }

// StrangerButtons are the labels below StrangerAsks.
func (w Words) StrangerButtons(language string) (admit, decline, block string) {
	b := w.in(language).People
	return b.Admit, b.Decline, b.Block
}

// Declined says that somebody was not admitted.
func (w Words) Declined(language string, p Person) string {
	b := w.in(language).People
	if p.Group {
		return fmt.Sprintf(b.DeclinedGroup, p.who(), p.ID)
	}
	return fmt.Sprintf(b.Declined, p.who(), p.ID)
}

// Blocked says that somebody was blocked.
func (w Words) Blocked(language string, p Person) string {
	b := w.in(language).People
	if p.Group {
		return fmt.Sprintf(b.BlockedGroup, p.who()+w.admittedBy(language, &p))
	}
	return fmt.Sprintf(b.Blocked, w.line(language, &p))
}

// YouAreDeclined tells a person that they were not admitted.
func (w Words) YouAreDeclined(language string) string { return w.in(language).People.YouDeclined }

// GroupAsks tells an admin who wants the bot in a group that is not admitted; name "" = nobody knows who.
func (w Words) GroupAsks(language, name, title, id string) string {
	b := w.in(language).People
	return fmt.Sprintf(b.AsksGroup, cmp.Or(named(name), b.Somebody), Person{ID: id, Name: title}.whoExactly())
}

// GroupAsksYou asks the admin who wants the bot in a group about it; added: they have just added the bot there.
func (w Words) GroupAsksYou(language, title string, added bool) string {
	b := w.in(language).People
	if added {
		return fmt.Sprintf(b.AsksGroupAdded, named(title))
	}
	return fmt.Sprintf(b.AsksGroupWanted, named(title))
}

// GroupAskedYou tells an admin in a group that they were asked about it in private.
func (w Words) GroupAskedYou(language, name string) string {
	return fmt.Sprintf(w.in(language).People.GroupAskedYou, name)
}

// StrangerCode tells a person who is not admitted how to become the first admin, or to get on the list.
func (w Words) StrangerCode(language, id string) string {
	return fmt.Sprintf(w.in(language).People.StrangerCode, id)
}

// GroupDeclined tells a group that it was not admitted.
func (w Words) GroupDeclined(language string) string { return w.in(language).People.GroupDeclined }

// GroupRefused tells a group that it is not admitted, where no admin is asked about it.
func (w Words) GroupRefused(language string) string { return w.in(language).People.GroupRefused }

// GroupAsked tells a group that admins were asked to admit it; admins are their names as far as they are known.
func (w Words) GroupAsked(language string, admins []string) string {
	b := w.in(language).People
	return fmt.Sprintf(b.GroupAsked, b.nameAdmins(admins))
}

// nameAdmins joins the names of admins.
func (b *peopleBook) nameAdmins(admins []string) string {
	if len(admins) == 0 {
		return b.AnAdmin
	}
	return b.NamedAdmins.with(len(admins), strings.Join(admins, ", "))
}

// NamePinned tells an admin whom a configured @name means from now on.
func (w Words) NamePinned(language, username, name, id string) string {
	return fmt.Sprintf(w.in(language).People.Pinned, named(username), Person{ID: id, Name: name}.whoExactly())
}

// CodeWrong answers a wrong code of the first admin; left tries remain.
func (w Words) CodeWrong(language string, left int) string {
	return w.in(language).People.CodeWrong.say(left)
}

// CodeTooOften answers a person who has no try left.
func (w Words) CodeTooOften(language string) string { return w.in(language).People.CodeOften }

// SetupWaits tells who has become the admin by setup's link that the bot does not run yet.
func (w Words) SetupWaits(language string) string { return w.in(language).People.SetupWaits }

// StartAdmin follows Start for the person who has become the first admin.
func (w Words) StartAdmin(language string) string { return w.in(language).People.StartAdmin }

// PeopleInPrivate answers /people in a group.
func (w Words) PeopleInPrivate(language string) string { return w.in(language).People.InPrivate }

// AdmitHelp says how /admit is used.
func (w Words) AdmitHelp(language string) string { return w.in(language).People.AdmitHelp }

// RemoveHelp says how /remove is used.
func (w Words) RemoveHelp(language string) string { return w.in(language).People.RemoveHelp }

// PeopleOff answers /people, /admit and /remove where nobody is admitted.
func (w Words) PeopleOff(language string) string { return w.in(language).People.Off }

// PersonConfigured says that the configuration decides about a person, and by which key.
func (w Words) PersonConfigured(language string, p Person, key string) string {
	b := w.in(language).People
	return fmt.Sprintf(b.Configured, p.who(), b.Roles[p.Role], key)
}

// NameUnknown answers a name that nobody has, or that is not enough to tell whom it means: their ids, with their names
// where these are others.
func (w Words) NameUnknown(language, name string, ids []string) string {
	b := w.in(language).People
	if len(ids) == 0 {
		return fmt.Sprintf(b.NameUnknown, named(name))
	}
	return fmt.Sprintf(b.NameShared, named(name), strings.Join(ids, ", "))
}

// ByNameHere answers a name in a group, of which the admin is told in private.
func (w Words) ByNameHere(language string) string { return w.in(language).People.ByNameHere }

// GroupConfigured says that the configuration decides about a group.
func (w Words) GroupConfigured(language, id string) string {
	return fmt.Sprintf(w.in(language).People.GroupConfigured, id)
}

// Admitted says who was admitted.
func (w Words) Admitted(language string, p Person) string {
	b := w.in(language).People
	if p.Group {
		return fmt.Sprintf(b.AdmittedGroup, p.who()+w.admittedBy(language, &p))
	}
	return fmt.Sprintf(b.Admitted, w.line(language, &p))
}

// AdmittedAlready says who had admitted somebody before.
func (w Words) AdmittedAlready(language string, p Person) string {
	return fmt.Sprintf(w.in(language).People.Already, w.line(language, &p))
}

// Removed says who was removed; all is false when the configuration still gives them something.
func (w Words) Removed(language string, p Person, all bool) string {
	b := w.in(language).People
	text := fmt.Sprintf(b.Removed, p.who())
	if all {
		text += " " + b.Ends
	}
	return text
}

// LastAdmin refuses to remove the last admin.
func (w Words) LastAdmin(language string) string { return w.in(language).People.LastAdmin }

// NotAdmitted says that there is nothing to take from somebody.
func (w Words) NotAdmitted(language, id string) string {
	return fmt.Sprintf(w.in(language).People.NotAdmitted, id)
}

// YouAreAdmitted tells a person that they may talk to the bot now. said: what they have written before is answered.
func (w Words) YouAreAdmitted(language string, said bool) string {
	if said {
		return w.in(language).People.WelcomeSaid
	}
	return w.in(language).People.Welcome
}
