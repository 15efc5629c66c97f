package texts

import (
	"fmt"
	"strings"
	"time"
)

// everyone in a list of the configuration admits everybody.
const everyone = "*"

// Person is somebody, or a group, that may talk to the bot.
type Person struct {
	ID     string
	Group  bool
	Name   string // chosen by its owner; "" = not known
	Role   string // user, approver, admin; "" for groups
	By     string // who admitted them
	ByCode bool   // they are the first admin, by the code of a start
	At     time.Time
}

// People is what /people lists: whom the configuration admits, and a page of those who were admitted in the chat.
type People struct {
	Configured []Person
	Page       []Person
	From, All  int    // number of the first of the page, counted from 1, and of all
	Note       string // stands below
}

// peopleBook is the sentences about who may talk to the bot.
type peopleBook struct {
	asks, asksGroup, admit, admitGroup         string
	pinned                                     string
	codeOften, startAdmin                      string
	codeWrong                                  count // tries that are left
	head, headChat, none, everyone, everyGroup string
	admittedBy, byCode, group                  string
	roles                                      map[string]string
	more, remove                               string
	inPrivate, admitHelp, removeHelp, off      string
	configured, groupConfigured, already       string
	admitted, admittedGroup, lastAdmin         string
	removed, ends                              string
	notAdmitted, welcome                       string
}

func englishPeople() peopleBook {
	return peopleBook{
		asks:            "%s would like to talk to me. I told them that I only talk to people on my list.",
		asksGroup:       "Somebody wants me in the group %s, which I am not set up for.",
		admit:           "Admit",
		admitGroup:      "Admit this group",
		pinned:          "@%s of telegram.allowed_users is now %s, who used it first. Anybody else who takes over the name is refused.",
		codeOften:       "Too many wrong codes. Try again in an hour.",
		codeWrong:       count{"That is not the code. You have %d try left this hour.", "That is not the code. You have %d tries left this hour."},
		startAdmin:      "You are now an admin of this bot. When somebody new writes to me, I tell you, and you can admit them; /people lists who may talk to me.",
		head:            "By the configuration:",
		headChat:        "Admitted in the chat:",
		none:            "nobody",
		everyone:        "everyone",
		everyGroup:      "every group",
		admittedBy:      "by %s, %s",
		byCode:          "by the startup code, %s",
		group:           "group",
		roles:           map[string]string{"user": "user", "approver": "approver", "admin": "admin"},
		more:            "%d to %d of %d.",
		remove:          "Remove %d: %s",
		inPrivate:       "That list names people. Ask me in our private chat.",
		admitHelp:       "/admit ID admits a person, or a group by its negative id. /admit ID approver and /admit ID admin give more. People are identified by number, not by @name: when people who are not on the list write to me, I tell them theirs.",
		removeHelp:      "/remove ID removes a person or group that was admitted in the chat. /people lists them.",
		off:             "There is nobody to admit here.",
		configured:      "%s is %s by the configuration (%s). Change it there, not in the chat.",
		groupConfigured: "The group %s is admitted by the configuration (telegram.allowed_chats). Change it there, not in the chat.",
		already:         "Already admitted: %s",
		admitted:        "✅ Admitted: %s",
		admittedGroup:   "✅ Admitted: the group %s. There I answer people who are on my list.",
		removed:         "⛔ Removed: %s.",
		ends:            "Whatever is running for them is stopped.",
		lastAdmin:       "That is the last admin. Make somebody else an admin first, with /admit ID admin.",
		notAdmitted:     "%s was not admitted in the chat. /people lists everyone who was.",
		welcome:         "You may talk to me now. Just write what you need; /help shows what else there is.",
	}
}

func germanPeople() peopleBook {
	return peopleBook{
		asks:            "%s möchte mit mir sprechen. Ich habe gesagt, dass ich nur mit Leuten auf meiner Liste spreche.",
		asksGroup:       "Jemand will mich in der Gruppe %s, für die ich nicht eingerichtet bin.",
		admit:           "Zulassen",
		admitGroup:      "Diese Gruppe zulassen",
		pinned:          "@%s aus telegram.allowed_users ist ab jetzt %s, wer den Namen zuerst benutzt hat. Wer den Namen übernimmt, wird abgewiesen.",
		codeOften:       "Zu viele falsche Codes. Bitte in einer Stunde noch einmal versuchen.",
		codeWrong:       count{"Das ist nicht der Code. In dieser Stunde bleibt %d Versuch.", "Das ist nicht der Code. In dieser Stunde bleiben %d Versuche."},
		startAdmin:      "Du bist jetzt Admin dieses Bots. Wenn mir jemand anderes schreibt, sage ich es dir, und du kannst die Person zulassen; /people zeigt, wer mit mir sprechen darf.",
		head:            "Durch die Konfiguration:",
		headChat:        "Im Chat zugelassen:",
		none:            "niemand",
		everyone:        "alle",
		everyGroup:      "jede Gruppe",
		admittedBy:      "von %s, %s",
		byCode:          "mit dem Code des Starts, %s",
		group:           "Gruppe",
		roles:           map[string]string{"user": "Nutzer", "approver": "mit Freigaberecht", "admin": "Admin"},
		more:            "%d bis %d von %d.",
		remove:          "Entfernen %d: %s",
		inPrivate:       "Diese Liste nennt Personen. Bitte frag mich in unserem privaten Chat.",
		admitHelp:       "/admit NUMMER lässt eine Person zu, oder eine Gruppe mit ihrer negativen Nummer. /admit NUMMER approver und /admit NUMMER admin geben mehr. Personen kenne ich an ihrer Nummer, nicht am @Namen: Wer nicht auf der Liste steht und mir schreibt, bekommt sie gesagt.",
		removeHelp:      "/remove NUMMER nimmt zurück, was einer Person oder Gruppe im Chat gegeben wurde. /people zeigt sie.",
		off:             "Hier gibt es niemanden zuzulassen.",
		configured:      "%s ist durch die Konfiguration %s (%s). Das wird dort geändert, nicht im Chat.",
		groupConfigured: "Die Gruppe %s ist durch die Konfiguration zugelassen (telegram.allowed_chats). Das wird dort geändert, nicht im Chat.",
		already:         "Schon zugelassen: %s",
		admitted:        "✅ Zugelassen: %s",
		admittedGroup:   "✅ Zugelassen: die Gruppe %s. Darin antworte ich denen, die auf meiner Liste stehen.",
		removed:         "⛔ Entfernt: %s.",
		ends:            "Was für sie läuft, endet.",
		lastAdmin:       "Das ist der letzte Admin. Mach zuerst jemand anderen zum Admin, mit /admit NUMMER admin.",
		notAdmitted:     "%s wurde nicht im Chat zugelassen. /people zeigt, wer.",
		welcome:         "Du darfst jetzt mit mir sprechen. Schreib einfach, was du brauchst; /help zeigt, was es sonst gibt.",
	}
}

// Named is how a name that its owner has chosen is written in a sentence: short, on one line, with signs for what
// cannot be seen.
func Named(name string) string { return named(name) }

// who names a person or group: name and id.
func (p Person) who() string {
	if name := named(p.Name); name != "" {
		return name + " (" + p.ID + ")"
	}
	return p.ID
}

// line is a person or group with what is known of them.
func (w Words) line(language string, p *Person) string {
	b := w.in(language).people
	what := b.roles[p.Role]
	if p.Group {
		what = b.group
	}
	text := p.who() + " – " + what
	switch {
	case p.At.IsZero():
		return text
	case p.ByCode:
		return text + ", " + fmt.Sprintf(b.byCode, w.moment(p.At))
	default:
		return text + ", " + fmt.Sprintf(b.admittedBy, named(p.By), w.moment(p.At))
	}
}

// People answers /people.
func (w Words) People(language string, list People) string {
	b := w.in(language).people
	var lines []string
	if list.From <= 1 {
		lines = append(lines, b.head)
		for i := range list.Configured {
			p := &list.Configured[i]
			switch {
			case p.ID == everyone && p.Group:
				lines = append(lines, "• "+b.everyGroup)
			case p.ID == everyone:
				lines = append(lines, "• "+b.everyone)
			default:
				lines = append(lines, "• "+w.line(language, p))
			}
		}
		if len(list.Configured) == 0 {
			lines = append(lines, "• "+b.none)
		}
		lines = append(lines, "")
	}
	lines = append(lines, b.headChat)
	for i := range list.Page {
		lines = append(lines, fmt.Sprintf("%d. %s", list.From+i, w.line(language, &list.Page[i])))
	}
	if list.All == 0 {
		lines = append(lines, b.none)
	}
	if list.All > len(list.Page) {
		lines = append(lines, "", fmt.Sprintf(b.more, list.From, list.From+len(list.Page)-1, list.All))
	}
	if list.Note != "" {
		lines = append(lines, "", list.Note)
	}
	return strings.Join(lines, "\n")
}

// RemoveButton is the label of the button that removes number n of the list.
func (w Words) RemoveButton(language string, n int, p Person) string {
	who := named(p.Name)
	if who == "" {
		who = p.ID
	}
	return fmt.Sprintf(w.in(language).people.remove, n, who)
}

// StrangerAsks tells an admin that somebody who is not admitted has written: who, and nothing of what.
func (w Words) StrangerAsks(language, name, username, id string) string {
	p := Person{ID: id, Name: name}
	who := p.who()
	if username != "" {
		who += ", @" + named(username)
	}
	return fmt.Sprintf(w.in(language).people.asks, who)
}

// GroupAsks tells an admin that somebody in a group that is not admitted wants something.
func (w Words) GroupAsks(language, title, id string) string {
	return fmt.Sprintf(w.in(language).people.asksGroup, Person{ID: id, Name: title}.who())
}

// AdmitButton is the label below StrangerAsks.
func (w Words) AdmitButton(language string) string { return w.in(language).people.admit }

// AdmitGroupButton is the label below GroupAsks.
func (w Words) AdmitGroupButton(language string) string { return w.in(language).people.admitGroup }

// NamePinned tells an admin whom a configured @name means from now on.
func (w Words) NamePinned(language, username, name, id string) string {
	return fmt.Sprintf(w.in(language).people.pinned, named(username), Person{ID: id, Name: name}.who())
}

// CodeWrong answers a wrong code of the first admin; left tries remain.
func (w Words) CodeWrong(language string, left int) string {
	return w.in(language).people.codeWrong.say(left)
}

// CodeTooOften answers whoever has no try left.
func (w Words) CodeTooOften(language string) string { return w.in(language).people.codeOften }

// StartAdmin follows Start for whoever has become the first admin.
func (w Words) StartAdmin(language string) string { return w.in(language).people.startAdmin }

// PeopleInPrivate answers /people in a group.
func (w Words) PeopleInPrivate(language string) string { return w.in(language).people.inPrivate }

// AdmitHelp says how /admit is used.
func (w Words) AdmitHelp(language string) string { return w.in(language).people.admitHelp }

// RemoveHelp says how /remove is used.
func (w Words) RemoveHelp(language string) string { return w.in(language).people.removeHelp }

// PeopleOff answers /people, /admit and /remove where nobody is admitted.
func (w Words) PeopleOff(language string) string { return w.in(language).people.off }

// PersonConfigured says that the configuration decides about a person, and by which key.
func (w Words) PersonConfigured(language, id, role, key string) string {
	b := w.in(language).people
	return fmt.Sprintf(b.configured, id, b.roles[role], key)
}

// GroupConfigured says that the configuration decides about a group.
func (w Words) GroupConfigured(language, id string) string {
	return fmt.Sprintf(w.in(language).people.groupConfigured, id)
}

// Admitted says who was admitted.
func (w Words) Admitted(language string, p Person) string {
	b := w.in(language).people
	if p.Group {
		return fmt.Sprintf(b.admittedGroup, w.line(language, &p))
	}
	return fmt.Sprintf(b.admitted, w.line(language, &p))
}

// AdmittedAlready says who had admitted somebody before.
func (w Words) AdmittedAlready(language string, p Person) string {
	return fmt.Sprintf(w.in(language).people.already, w.line(language, &p))
}

// Removed says who was removed; all is false when the configuration still gives them something.
func (w Words) Removed(language string, p Person, all bool) string {
	b := w.in(language).people
	text := fmt.Sprintf(b.removed, p.who())
	if all {
		text += " " + b.ends
	}
	return text
}

// LastAdmin refuses to remove the last admin.
func (w Words) LastAdmin(language string) string { return w.in(language).people.lastAdmin }

// NotAdmitted says that there is nothing to take from somebody.
func (w Words) NotAdmitted(language, id string) string {
	return fmt.Sprintf(w.in(language).people.notAdmitted, id)
}

// YouAreAdmitted tells a person that they may talk to the bot now.
func (w Words) YouAreAdmitted(language string) string { return w.in(language).people.welcome }
