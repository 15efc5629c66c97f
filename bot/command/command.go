// Package command routes slash commands to the features that answer them: who may use which, which of them act while a
// turn is running, and how they are listed. It answers /help and /start itself, and has the commands about a
// conversation and the state of the service. The effect of a command is computed from the store and applied as one
// Change that also finishes its arrival, so that it happens once.
package command

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/nearest"
)

// Deps are the dependencies of a Table.
type Deps struct {
	// Decides reports whether a person may decide questions somewhere in a place, own or others'; nil = everybody may.
	Decides func(ctx context.Context, msg *bot.Message) (bool, error)
	Admins  func() []string // names or ids, for refusals
	// Welcome answers /start of a person who has followed a link with a code that is theirs, and of an admin who is new; ok
	// is false if it is neither. nil = there are no such links.
	Welcome func(ctx context.Context, call *turn.Call) (e turn.Effect, ok bool, err error)
	Words   texts.Words
}

// Table is the commands of all features. Safe for concurrent use.
type Table struct {
	deps     Deps
	commands map[string]feature.Command // by name; those with OffText and without Run are off
}

// New returns the Table of all features, with /help and /start.
func New(features feature.List, deps Deps) *Table {
	t := &Table{deps: deps, commands: map[string]feature.Command{}}
	for _, f := range append(slices.Clip(features), t.Feature()) {
		for _, c := range f.Commands {
			if f.Off {
				c.Run = nil
			}
			t.commands[c.Name] = c
		}
	}
	return t
}

// Feature returns /help and /start.
func (t *Table) Feature() feature.Feature {
	return feature.Feature{Name: "help", Commands: []feature.Command{
		{Name: "help", Shows: true, Run: t.answerHelp},
		{Name: "start", Unlisted: true, Run: t.answerStart},
	}}
}

// Reader is for whom commands are listed.
type Reader struct {
	Admin   bool
	Decides bool // they may decide questions
	Group   bool // who reads in a group
}

// Menu lists the commands that somebody may use, in the order of /help.
func (t *Table) Menu(of Reader) []string {
	own, more := t.listedNames(of)
	return append(own, more...)
}

// listedNames lists the commands for everybody and those for admins, each by how much people use them.
func (t *Table) listedNames(of Reader) (own, more []string) {
	for name, c := range t.commands {
		switch {
		case c.Run == nil || c.Unlisted || c.Private && of.Group || c.Audience == feature.Deciders && !of.Decides:
		case c.Audience != feature.Admins:
			own = append(own, name)
		case of.Admin:
			more = append(more, name)
		}
	}
	sortByUse(own)
	sortByUse(more)
	return own, more
}

// Class implements turn.Commands. An unknown command is answered at once.
func (t *Table) Class(name string) turn.Class {
	if t.commands[strings.ToLower(name)].Interrupts {
		return turn.Interrupts
	}
	return turn.Overtakes
}

// Run implements turn.Commands.
func (t *Table) Run(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	w, msg := t.deps.Words, call.Message
	name := strings.ToLower(msg.Command)
	c, ok := t.commands[name]
	switch {
	case name == "":
		return turn.Effect{}, nil
	case !ok:
		return call.ReplyAside(bot.Content{Text: w.UnknownCommand(msg.Language, name, t.nearestCommand(name))}), nil
	case c.Audience == feature.Admins && !call.Admin:
		return call.ReplyAside(bot.Content{Text: w.AdminsOnly(msg.Language, t.deps.Admins())}), nil
	case c.Run != nil:
		return c.Run(ctx, call)
	case c.OffText != nil:
		return call.ReplyText(c.OffText(msg.Language)), nil
	default:
		return call.ReplyText(w.InTelegramOnly(msg.Language, name)), nil
	}
}

// nearestCommand returns the command that an unknown one may have been meant as, or "": each of them answers, if only
// with who may use it and where.
func (t *Table) nearestCommand(name string) string {
	var names []string
	for known, c := range t.commands {
		if c.Run != nil || c.OffText != nil {
			names = append(names, known)
		}
	}
	sort.Strings(names)
	near, _ := nearest.Nearest(name, names)
	return near
}

func (t *Table) answerHelp(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	of := Reader{Admin: call.Admin, Decides: true, Group: call.Message.Place.Group}
	if t.deps.Decides != nil {
		var err error
		if of.Decides, err = t.deps.Decides(ctx, call.Message); err != nil {
			return turn.Effect{}, err
		}
	}
	own, admin := t.listedNames(of)
	text := t.deps.Words.Help(call.Message.Language, own, admin)
	return call.Reply(bot.Content{Text: text, Entities: exampleCode(text)}), nil
}

// exampleCode formats as code the examples of /help in which Telegram would see further commands or people.
func exampleCode(text string) []render.Entity {
	var code []render.Entity
	offset := 0
	for line := range strings.SplitSeq(text, "\n") {
		before, example, ok := strings.Cut(strings.TrimSuffix(line, ")"), " (/")
		if ok && (strings.Contains(example, "@") || strings.Contains(example, " /")) {
			code = append(code, render.Entity{
				Type: "code", Offset: offset + render.Length(before) + 2, Length: render.Length(example) + 1,
			})
		}
		offset += render.Length(line) + 1
	}
	return code
}
