package app

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/attach"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/document"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// speechAttempts is how often a recording is tried to be written down: a server that loads its model takes seconds.
const speechAttempts = 5

// typingTime bounds one request that shows that something is being done.
const typingTime = 3 * time.Second

// attachments reads what comes along with the messages of a channel; nil where nothing can.
func (c *Core) attachments(ch channel) (turn.Attachments, error) {
	if ch.files == nil {
		return nil, nil //nolint:nilnil // a channel without files has none to read
	}
	scribe, err := c.models.Transcriber()
	if err != nil {
		return nil, err
	}
	log := c.log.With().Str("component", "attachments").Logger()
	retry, err := route.NewRetry(route.Options{Attempts: speechAttempts, Now: c.now, Log: log})
	if err != nil {
		return nil, err
	}
	c.documents = document.NewReader(documentReader(), c.readerCache())
	return attach.New(attach.Deps{
		Files: ch.files,
		Blobs: c.stores.Blobs,
		Words: c.words(),
		Log:   log,
		Wrap:  c.stages.marker.Wrap,
		Admit: c.kit.disk.Admit,
		Dir: func(channel string, session bot.SessionKey, workspace string) (string, error) {
			return c.kit.files.Dir(tools.Origin{Channel: channel, Session: string(session), Workspace: workspace})
		},
		Documents:   c.documents,
		Accepts:     func() llm.Accepts { return llm.AcceptsOf(c.provider) },
		Transcriber: scribe,
		Hears:       c.own.Hears,
		Retry:       retry,
	}), nil
}

// readerCache is where the reader of PDF keeps itself as machine code: in the directory that systemd gives a service for
// such files, else in our own.
func (c *Core) readerCache() string {
	if dir, _, _ := strings.Cut(os.Getenv("CACHE_DIRECTORY"), ":"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pdfium")
	}
	return filepath.Join(c.dir, "pdfium")
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

// waits shows somebody who writes to a busy service that they have to wait, as a draft; nil where the channel cannot.
func (c *Core) waits(ch channel, pacer bot.Pacer) func(
	ctx context.Context, place bot.Place, draft int64, text string,
) (shown, able bool) {
	if ch.live == nil {
		return nil
	}
	return func(ctx context.Context, place bot.Place, draft int64, text string) (shown, able bool) {
		if !ch.live.Drafts(place) {
			return false, false
		}
		done, ok := pacer.Try(ctx, place, bot.Low)
		if !ok {
			return false, true
		}
		defer done()
		err := ch.live.Draft(ctx, place, draft, bot.Content{Text: text})
		if err == nil {
			return true, true
		}
		c.log.Debug().Err(err).Msg("a draft for somebody who waits is not shown")
		failed, _ := errors.AsType[*bot.SendError](err)
		switch {
		case failed == nil:
		case failed.Outcome == bot.Throttled:
			pacer.Freeze(place, failed.RetryAfter)
		case failed.Outcome == bot.Refused:
			return false, false
		}
		return false, true
	}
}
