package texts

import (
	"fmt"
	"strings"
	"time"
)

// hookBook is what is said of hooks.
type hookBook struct {
	Called, Revoked                          string // name
	Head, HeadGroup, None, NoneGroup, Off    string
	Never, Paused, OffLeft, OfConfig         string // in the list
	Last, By                                 string // when; name
	Help, Admins, BadName, BadPrompt         string // BadPrompt: characters
	Made, Renewed, Removed, Stopped, Resumed string // name
	Tested, Taken, Gone, Fixed               string // name
	Secret                                   string // name, address, secret, address, secret
	Outside, Local                           string // below it: who can call it
	Sent                                     string
	NotYours                                 string // name of the owner
	Full                                     count  // hooks
	Left                                     string // names
	Prompt                                   string // what a hook asks if nothing was said
	Asks, Only                               string // on a card: prompt; conditions
	Test, Renew                              string // on buttons
	AskRenew, AskRemove                      string // name
}

// Hook is a hook as people see it.
type Hook struct {
	Name, Owner  string
	Paused, Left bool      // Left: the bot was removed from its chat
	Config       bool      // it is an entry of the configuration
	Last         time.Time // when it was called; zero = never
	Prompt, When string    // "" = not for its reader; there are no conditions
}

// HookCalled is the line above the answer of a turn that the call of a hook began.
func (w Words) HookCalled(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Called, nameOfTask(name))
}

// HookRevoked tells an admin that a hook was called whose owner may not use the bot there any more.
func (w Words) HookRevoked(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Revoked, nameOfTask(name))
}

// HookList lists hooks: of a person, or of a group.
func (w Words) HookList(language string, list []Hook, group bool) string {
	b := &w.in(language).Hooks
	head, none := b.Head, b.None
	if group {
		head, none = b.HeadGroup, b.NoneGroup
	}
	if len(list) == 0 {
		return none + "\n" + b.Help
	}
	lines := []string{head}
	for i := range list {
		lines = append(lines, "• "+w.hookLine(language, &list[i], group))
	}
	return strings.Join(append(lines, b.Help), "\n")
}

// hookLine is the name and the state of a hook.
func (w Words) hookLine(language string, k *Hook, group bool) string {
	b := &w.in(language).Hooks
	line := nameOfTask(k.Name) + " · "
	if k.Last.IsZero() {
		line += b.Never
	} else {
		line += fmt.Sprintf(b.Last, w.Moment(language, k.Last))
	}
	switch {
	case k.Paused:
		line += " · " + b.Paused
	case k.Left:
		line += " · " + b.OffLeft
	case k.Config:
		line += " · " + b.OfConfig
	}
	if group {
		line += " · " + fmt.Sprintf(b.By, named(k.Owner))
	}
	return line
}

// HookCard shows one hook.
func (w Words) HookCard(language string, k *Hook, group bool) string {
	b := &w.in(language).Hooks
	lines := []string{w.hookLine(language, k, group)}
	if k.Prompt != "" {
		lines = append(lines, fmt.Sprintf(b.Asks, k.Prompt))
	}
	if k.When != "" {
		lines = append(lines, fmt.Sprintf(b.Only, k.When))
	}
	return strings.Join(lines, "\n")
}

// HookButtons labels what can be done with a hook besides what can be done with a task (ScheduleButtons).
func (w Words) HookButtons(language string) (test, renew string) {
	b := &w.in(language).Hooks
	return b.Test, b.Renew
}

// HookAsksRenew asks whether a hook is to get a new secret.
func (w Words) HookAsksRenew(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.AskRenew, nameOfTask(name))
}

// HookAsksRemove asks whether a hook is to be removed.
func (w Words) HookAsksRemove(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.AskRemove, nameOfTask(name))
}

// HookOff says that no hook can be called here.
func (w Words) HookOff(language string) string { return w.in(language).Hooks.Off }

// HookHelp says what /hooks can do.
func (w Words) HookHelp(language string) string { return w.in(language).Hooks.Help }

// HookAdmins says that only admins make hooks.
func (w Words) HookAdmins(language string) string { return w.in(language).Hooks.Admins }

// HookName says what a hook can be called.
func (w Words) HookName(language string) string { return w.in(language).Hooks.BadName }

// HookPromptWrong says what a prompt can be, of at most so many characters.
func (w Words) HookPromptWrong(language string, most int) string {
	return fmt.Sprintf(w.in(language).Hooks.BadPrompt, most)
}

// HookMade says that a hook was made.
func (w Words) HookMade(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Made, nameOfTask(name))
}

// HookRenewed says that a hook has a new secret.
func (w Words) HookRenewed(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Renewed, nameOfTask(name))
}

// HookSecret tells the owner of a hook in private where and with which secret it is called. local: nobody reaches that
// address from outside.
func (w Words) HookSecret(language, name, address, secret string, local bool) string {
	b := &w.in(language).Hooks
	text := fmt.Sprintf(b.Secret, nameOfTask(name), address, secret, secret, address) + "\n"
	if local {
		return text + b.Local
	}
	return text + b.Outside
}

// HookSent says in a group that the secret of a hook was sent in private.
func (w Words) HookSent(language string) string { return w.in(language).Hooks.Sent }

// HookRemoved says that a hook was removed.
func (w Words) HookRemoved(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Removed, nameOfTask(name))
}

// HookPaused says that a hook begins nothing for now.
func (w Words) HookPaused(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Stopped, nameOfTask(name))
}

// HookResumed says that a hook begins turns again.
func (w Words) HookResumed(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Resumed, nameOfTask(name))
}

// HookTested says that a hook was called as a test.
func (w Words) HookTested(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Tested, nameOfTask(name))
}

// HookTaken says that there is a hook of this name.
func (w Words) HookTaken(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Taken, nameOfTask(name))
}

// HookGone says that there is no hook of this name that its reader could change.
func (w Words) HookGone(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Gone, nameOfTask(name))
}

// HookOfConfig says that a hook is an entry of the configuration.
func (w Words) HookOfConfig(language, name string) string {
	return fmt.Sprintf(w.in(language).Hooks.Fixed, nameOfTask(name))
}

// HookNotYours says that only the owner of a hook can do this.
func (w Words) HookNotYours(language, owner string) string {
	return fmt.Sprintf(w.in(language).Hooks.NotYours, named(owner))
}

// HookFull says that there are too many hooks.
func (w Words) HookFull(language string, n int) string { return w.in(language).Hooks.Full.with(n, n) }

// HookLeft tells the owner of hooks that they are off because the bot was removed from their group.
func (w Words) HookLeft(language string, names []string) string {
	return fmt.Sprintf(w.in(language).Hooks.Left, strings.Join(names, ", "))
}

// HookPrompt is what a hook asks if its owner has not said it.
func (w Words) HookPrompt(language string) string { return w.in(language).Hooks.Prompt }
