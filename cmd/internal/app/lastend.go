package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/lastend"
)

const (
	mostRan   = 5        // calls that are named
	ranRoom   = 64 << 10 // bytes of a conversation that are read for them
	ranLength = 120      // characters of a call
)

// watchEnd says in the log if the last process seems to have been ended by a limit of memory, and what was running. It
// watches the memory of this one until the returned function is called, which means that it ends in order. What cannot
// be noted is logged: a service without this note is a service.
func (c *Core) watchEnd(ctx context.Context, channel, name string) (end func()) {
	note, last, err := lastend.Begin(c.dir, lastend.Group(), c.now)
	if err != nil {
		c.log.Warn().Err(err).Msg("how the last process ended is not known")
	}
	if last != "" {
		c.log.Warn().Str("last_end", last+"; "+c.ranLast(ctx, channel, name)).Msg("start")
	}
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := note.Run(watching); err != nil {
			c.log.Warn().Err(err).Msg("a death by memory would not be explained")
		}
	})
	return func() {
		stop()
		wg.Wait()
		if err := note.End(); err != nil {
			c.log.Warn().Err(err).Msg("the next start will take this end for a death")
		}
	}
}

// ranLast says what was running when the last process died: the calls that had begun and have no result.
func (c *Core) ranLast(ctx context.Context, channel, name string) string {
	lanes, err := c.stores.Bot.Lanes(ctx, channel, name, 0)
	if err != nil {
		return "what was running is not known: " + err.Error()
	}
	var calls []string
	turns := 0
	for i := range lanes {
		if lanes[i].State != bot.Running || lanes[i].Owner != "" && c.living.Lives(lanes[i].Owner) {
			continue
		}
		turns++
		tail, err := c.stores.Bot.Tail(ctx, lanes[i].Session, ranRoom)
		if err != nil {
			continue // it is counted
		}
		calls = append(calls, openUses(tail.Entries)...)
	}
	text := fmt.Sprintf("%d turns were in progress", turns)
	if len(calls) > 0 {
		more := ""
		if len(calls) > mostRan {
			more = fmt.Sprintf(" and %d more", len(calls)-mostRan)
		}
		text += ", running " + c.redactor.String(strings.Join(calls[:min(len(calls), mostRan)], ", ")) + more
	}
	return text
}

// openUses lists the calls that had begun and have no result, each as its tool and the beginning of its arguments.
func openUses(entries []journal.Entry) (list []string) {
	uses := map[string]journal.Use{}
	var begun []string
	for i := range entries {
		e := &entries[i]
		switch e.Kind {
		case journal.AssistantEntry:
			for _, u := range e.Uses {
				uses[u.Call] = u
			}
		case journal.StartedEntry:
			begun = append(begun, e.Call)
		case journal.ResultEntry:
			begun = slices.DeleteFunc(begun, func(call string) bool { return call == e.Call })
		}
	}
	for _, call := range begun {
		if u, ok := uses[call]; ok {
			list = append(list, u.Name+" "+cutRunes(string(u.Args), ranLength))
		}
	}
	return list
}

// cutRunes shortens a text to a number of characters.
func cutRunes(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}
