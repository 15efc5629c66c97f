package app

import (
	"context"
	"os"
	"runtime"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/attach"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/document"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// typingTime bounds one request that shows that something is being done.
const typingTime = 3 * time.Second

// attachments reads what comes along with the messages of a channel; nil where nothing can.
func (c *Core) attachments(ch channel) turn.Attachments {
	if ch.files == nil {
		return nil
	}
	log := c.log.With().Str("component", "attachments").Logger()
	return attach.New(attach.Deps{
		Files: ch.files, Blobs: c.stores.Blobs, Words: c.words(), Log: log, Wrap: c.stages.marker.Wrap, Admit: c.kit.disk.Admit,
		Dir: func(channel string, session bot.SessionKey, workspace string) (string, error) {
			return c.kit.files.Dir(tools.Origin{Channel: channel, Session: string(session), Workspace: workspace})
		},
		Documents: document.NewReader(documentReader()),
		Accepts:   func() llm.Accepts { return llm.AcceptsOf(c.provider) },
	})
}

// documentReader starts this program as the process that reads documents.
func documentReader() []string {
	self := sandbox.Self
	if runtime.GOOS != "linux" {
		if file, err := os.Executable(); err == nil {
			self = file
		}
	}
	return []string{self, document.Word}
}

// typing shows in a chat that something is being done; nil where the channel cannot.
func (c *Core) typing(ch channel, pacer bot.Pacer) func(context.Context, bot.Place) {
	if ch.live == nil {
		return nil
	}
	return func(ctx context.Context, place bot.Place) {
		if f, ok := pacer.(interface{ Frozen(place bot.Place) bool }); ok && f.Frozen(place) {
			return // somebody else was told to wait
		}
		ctx, cancel := context.WithTimeout(ctx, typingTime)
		defer cancel()
		if err := ch.live.Typing(ctx, place); err != nil && ctx.Err() == nil {
			c.log.Debug().Err(err).Msg("typing not shown")
		}
	}
}
