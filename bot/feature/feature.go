// Package feature says what a feature of the bot is: one value with its commands, its buttons and what it does while
// the service runs. A package returns the value of its feature, and cmd/internal/app lists them all. Help, command
// menus and the routes of commands and presses follow from that list.
package feature

import (
	"context"
	"errors"
	"fmt"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// Audience is for whom a command is listed.
type Audience int

// The audiences.
const (
	Everybody Audience = iota
	Deciders           // listed for those who may decide questions; anybody may give it
	Admins             // listed for admins, and refused to others
)

// Command is a slash command.
type Command struct {
	// Name is what follows the slash, in lower case. What /help and the menus say of it is commands.list.NAME in the
	// file of each language (bot/texts/languages).
	Name     string
	Audience Audience
	Private  bool // listed in private chats only
	Unlisted bool // known without being listed
	// Shows: it only shows something, so that a link (t.me/BOT?start=NAME) may give it.
	Shows bool
	// Interrupts: it stops the running turn and waits for its end. Other commands act at once, next to a running turn.
	Interrupts bool
	// Run carries it out. Commands for admins are run for admins only.
	Run func(ctx context.Context, call *turn.Call) (turn.Effect, error)
	// OffText is the answer where the feature is off; nil = a sentence about commands that
	// are not part of this version.
	OffText func(language string) string
}

// Button are the presses of all buttons whose data begins with Prefix and a colon.
type Button struct {
	Prefix  string // two characters, which no other feature uses
	Presser turn.Presser
}

// Feature is something that people can use. Only Name is required.
type Feature struct {
	Name string
	// Off: it is not available here. Its commands are not listed and answer with their OffText; nothing else of it is
	// used, so that the other fields may be of a nil pointer.
	Off      bool
	Commands []Command
	Buttons  []Button
	// Below returns the feature's buttons below an answer.
	Below func(answer turn.Answer) []bot.Button
	// After returns the feature's messages that follow an answer; none = nothing follows it.
	After func(ctx context.Context, answer turn.Answer) ([]bot.Content, error)
	// Beside returns what the feature does beside an answer that a model has given. It must not block.
	Beside func(answer turn.Answer) turn.Beside
	// Run works until ctx ends, while the service runs.
	Run func(ctx context.Context) error
	// Follow reads what other processes have stored. It is called about once a second where processes share a store.
	Follow func(ctx context.Context) error
	// Moved forgets what is remembered by the id of a chat, because a group has got a new one.
	Moved func()
}

// List is all features of a service, in the order in which their buttons are shown and in which they are followed.
type List []Feature

// Pressers returns what handles buttons, by what their data begins with.
func (l List) Pressers() map[string]turn.Presser {
	pressers := map[string]turn.Presser{}
	for i := range l {
		for _, b := range l[i].Buttons {
			if !l[i].Off {
				pressers[b.Prefix] = b.Presser
			}
		}
	}
	return pressers
}

// Below returns the buttons of all features below an answer, on one row; nil = there are none.
func (l List) Below(answer turn.Answer) [][]bot.Button {
	var row []bot.Button
	for i := range l {
		if !l[i].Off && l[i].Below != nil {
			row = append(row, l[i].Below(answer)...)
		}
	}
	if len(row) == 0 {
		return nil
	}
	return [][]bot.Button{row}
}

// After returns the messages of all features that follow an answer.
func (l List) After(ctx context.Context, answer turn.Answer) ([]bot.Content, error) {
	var all []bot.Content
	for i := range l {
		if l[i].Off || l[i].After == nil {
			continue
		}
		contents, err := l[i].After(ctx, answer)
		if err != nil {
			return nil, fmt.Errorf("what follows an answer: %w", err)
		}
		all = append(all, contents...)
	}
	return all, nil
}

// Beside returns what all features do beside an answer.
func (l List) Beside(answer turn.Answer) turn.Beside {
	var facts []bot.Fact
	var follow []func()
	for i := range l {
		if l[i].Off || l[i].Beside == nil {
			continue
		}
		one := l[i].Beside(answer)
		facts = append(facts, one.Facts...)
		if one.Then != nil {
			follow = append(follow, one.Then)
		}
	}
	return turn.Beside{Facts: facts, Then: func() {
		for _, then := range follow {
			then()
		}
	}}
}

// Runs returns what works while the service runs, by the name of the feature.
func (l List) Runs() map[string]func(ctx context.Context) error {
	runs := map[string]func(ctx context.Context) error{}
	for i := range l {
		if !l[i].Off && l[i].Run != nil {
			runs[l[i].Name] = l[i].Run
		}
	}
	return runs
}

// Follows returns what reads what other processes have stored.
func (l List) Follows() []func(ctx context.Context) error {
	var follows []func(ctx context.Context) error
	for i := range l {
		if !l[i].Off && l[i].Follow != nil {
			follows = append(follows, l[i].Follow)
		}
	}
	return follows
}

// Moved has all features forget what they remember by the id of a chat.
func (l List) Moved() {
	for i := range l {
		if !l[i].Off && l[i].Moved != nil {
			l[i].Moved()
		}
	}
}

// FollowMoved has the features that forget a chat's id read again what is stored, once the chat has a new one.
func (l List) FollowMoved(ctx context.Context) error {
	var errs []error
	for i := range l {
		if !l[i].Off && l[i].Moved != nil && l[i].Follow != nil {
			if err := l[i].Follow(ctx); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", l[i].Name, err))
			}
		}
	}
	return errors.Join(errs...)
}
