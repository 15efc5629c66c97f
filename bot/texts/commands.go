package texts

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts/languages"
	"github.com/zephbot/zephbot/bot/visible"
)

// Start greets.
func (w Words) Start(language, name string) string {
	b := &w.in(language).Commands
	hello := b.Hello
	if name != "" {
		hello = fmt.Sprintf(b.HelloNamed, render.Cut(name, 64))
	}
	return hello + " " + b.Start
}

// Help lists the commands a person may use.
func (w Words) Help(language string, own, admin []string) string {
	b := w.in(language)
	head := b.Commands.HelpHead
	if w.Owner { // there are no groups
		head = b.Commands.HelpHeadOwn
	}
	lines := append([]string{head, ""}, b.lines(own)...)
	if len(admin) > 0 {
		lines = append(append(lines, "", b.Commands.HelpAdmin), b.lines(admin)...)
	}
	return strings.Join(lines, "\n")
}

func (b *book) lines(names []string) []string {
	var lines []string
	for _, n := range names {
		c, ok := b.Commands.List[n]
		if !ok {
			lines = append(lines, "/"+n)
			continue
		}
		line := "/" + n + " – " + c.Does
		if c.Example != "" {
			line += " (" + c.Example + ")"
		}
		lines = append(lines, line)
	}
	return lines
}

// Describe says what a command does, for the command menu.
func (w Words) Describe(language, command string) string {
	return w.in(language).Commands.List[command].Does
}

// UnknownCommand names the nearest known command.
func (w Words) UnknownCommand(language, name, nearest string) string {
	b := w.in(language)
	name = render.Cut(name, 32)
	if nearest == "" {
		return fmt.Sprintf(b.Commands.Unknown, name)
	}
	return fmt.Sprintf(b.Commands.UnknownNear, name, nearest)
}

// InTelegramOnly says that a command is not for this channel.
func (w Words) InTelegramOnly(language, name string) string {
	return fmt.Sprintf(w.in(language).Commands.InTelegramOnly, name)
}

// AdminsOnly refuses an admin command by name.
func (w Words) AdminsOnly(language string, admins []string) string {
	names := ""
	if len(admins) > 0 {
		names = " (" + strings.Join(admins, ", ") + ")"
	}
	return fmt.Sprintf(w.in(language).Commands.AdminsOnly, names)
}

// Cleared answers /clear.
func (w Words) Cleared(language string) string { return w.in(language).Commands.Cleared }

// Fresh answers /new.
func (w Words) Fresh(language string) string { return w.in(language).Commands.Fresh }

// Stopped is what a /stop has ended.
type Stopped struct {
	Running   bool // a turn
	Messages  int  // that waited
	Questions int  // that were open
	Commands  int  // in the background
	Speech    int  // answers that were being spoken
}

// Any reports whether anything but the turn was ended.
func (s Stopped) Any() bool {
	return s.Messages > 0 || s.Questions > 0 || s.Commands > 0 || s.Speech > 0
}

// Stopping answers /stop.
func (w Words) Stopping(language string, s Stopped) string {
	b := w.in(language)
	var ended []string
	for _, thing := range []struct {
		n     int
		words count
	}{
		{s.Messages, b.Commands.Dropped},
		{s.Questions, b.Commands.DroppedQuestions},
		{s.Commands, b.Commands.EndedCommands},
		{s.Speech, b.Commands.EndedRecordings},
	} {
		if thing.n > 0 {
			ended = append(ended, thing.words.say(thing.n))
		}
	}
	var text []string
	switch {
	case s.Running:
		text = append(text, b.Commands.Stopping)
	case len(ended) == 0:
		text = append(text, b.Commands.NothingRuns)
	}
	if len(ended) > 0 {
		text = append(text, strings.Join(ended, ", ")+".")
	}
	return strings.Join(text, " ")
}

// Tools answers /tools.
func (w Words) Tools(language string, list []Tool) string {
	b := w.in(language)
	if len(list) == 0 {
		return b.Commands.ToolsNone
	}
	lines := []string{b.Commands.ToolsHead}
	for _, t := range list {
		line := "• " + visible.Name(t.Name)
		does := b.Commands.Tools[t.Name]
		if does == "" {
			does = render.Cut(visible.Name(firstSentence(t.Offered)), offeredLength)
		}
		if does != "" {
			line += " – " + does
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Tool is a tool in a list. Offered is what those who offer it say of it, for tools that are not ours.
type Tool struct{ Name, Offered string }

// offeredLength bounds what others say of their tools, in UTF-16 units.
const offeredLength = 90

// firstSentence returns the beginning of a text up to the first end of a sentence or line, without its stop.
func firstSentence(text string) string {
	text, _, _ = strings.Cut(strings.TrimSpace(text), "\n")
	text, _, _ = strings.Cut(text, ". ")
	return strings.TrimSuffix(text, ".")
}

// Unset is a tool that is absent because a key of the configuration is not set.
type Unset struct{ Tool, Key string }

// ToolsUnset follows Tools for those who can change it; "" if nothing is missing.
func (w Words) ToolsUnset(language string, list []Unset) string {
	if len(list) == 0 {
		return ""
	}
	names := make([]string, len(list))
	for i, u := range list {
		names[i] = u.Tool + " (" + u.Key + ")"
	}
	return "\n" + fmt.Sprintf(w.in(language).Commands.ToolsUnset, strings.Join(names, ", "))
}

// Names lists the commands that have a description, sorted.
func (Words) Names() []string {
	var names []string
	for n := range in(languages.Standard).Commands.List {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// Usage says how a command is written, after what is wrong with how it was: a first word that is none of the known ones,
// or what follows it.
func (w Words) Usage(language, given string, known []string, help string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(given), " ")
	if word == "" {
		return help
	}
	b := &w.in(language).Commands
	wrong := b.NoWord
	if slices.Contains(known, strings.ToLower(word)) {
		wrong = b.Miscounted
	}
	return fmt.Sprintf(wrong, named(word)) + "\n" + help
}
