package app

import (
	"cmp"
	"time"

	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/preference"
	"github.com/zephbot/zephbot/bot/talk"
	"github.com/zephbot/zephbot/bot/telegram"
)

// openTalk builds what keeps the talk of groups. Where groups cannot have that, it keeps none, and erases what was kept
// before that was so.
func (c *Core) openTalk(ch channel) *talk.Keeper {
	on := c.own.Context
	if !c.cfg.Groups.Context {
		on = nil
	}
	return talk.New(talk.Deps{
		Store: c.stores.Bot, On: on, LeavesOut: c.own.LeavesOut, Follow: c.own.Follow, Redact: c.redactor.String, Words: c.words(),
		Zone:   func() *time.Location { return cmp.Or(c.zone(), time.UTC) },
		Hidden: ch.hidden, Now: c.now, Log: c.log,
	}, talk.Options{
		Messages: c.cfg.Groups.Messages, Bytes: c.cfg.Groups.Bytes,
		For: time.Duration(c.cfg.Groups.Hours) * time.Hour,
	})
}

// keepsTalk reports whether groups can have their talk kept.
func (s *service) keepsTalk() bool { return s.core.cfg.Groups.Context && s.ch.name == telegram.Name }

// heard is what the dispatcher gives the talk of groups to; nil = nothing.
func (s *service) heard() dispatch.Talk {
	if !s.keepsTalk() {
		return nil
	}
	return s.talk
}

// switched is what /settings of a group switches; nil = nothing.
func (s *service) switched() preference.Context {
	if !s.keepsTalk() {
		return nil
	}
	return s.talk
}
