package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/dispatch"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools/mcp"
)

// jobBucket holds /mcp add and /mcp restart from their first answer to their second, so that a restart of the service in between loses neither. jobFor is
// how long such a command is worth being carried out.
const (
	jobBucket = "mcp_job"
	jobFor    = time.Hour
)

// job is a command that takes a while, by the id of its message.
type job struct {
	Verb    string      `json:"verb"` // add, restart
	ID      string      `json:"id"`
	Target  []string    `json:"target,omitempty"`
	Session string      `json:"session"`
	Message bot.Message `json:"message"`
}

// perform does it and tells the chat how it went, in one commit with forgetting it. When the service ends meanwhile, the next start does it.
func (s servers) perform(ctx context.Context, j job) {
	var st mcp.Status
	var err error
	if j.Verb == "restart" {
		st, err = s.client.Restart(ctx, j.ID)
	} else {
		var server mcp.Server
		if server, err = s.parse(j.ID, j.Target); err == nil {
			st, err = s.client.Add(ctx, server)
		}
	}
	if ctx.Err() != nil {
		return
	}
	w, language := texts.Words{}, j.Message.Language
	text := w.ServerAdded(language, j.ID, len(st.Tools))
	if err != nil {
		text = w.ServerFailed(language, j.ID, sentence(err))
	}
	s.finish(ctx, j, text)
}

func (s servers) finish(ctx context.Context, j job, text string) {
	s.service.tellLater(ctx, &dispatch.Call{Session: j.Session, Message: &j.Message}, "end", text, bot.Fact{Bucket: jobBucket, Key: j.Message.ID})
}

// begun lists the commands that an earlier process has begun. It is asked before this one takes up any.
func (s servers) begun(ctx context.Context) []job {
	core := s.service.core
	facts, err := core.stores.Bot.FactsOf(ctx, jobBucket, "", core.now())
	if err != nil {
		s.service.log.Error().Err(err).Msg("commands about servers not taken up")
	}
	var list []job
	for _, f := range facts {
		var j job
		if err := json.Unmarshal([]byte(f.Value), &j); err != nil {
			s.service.log.Error().Err(err).Str("command", f.Key).Msg("command about a server not taken up")
			continue
		}
		if place := j.Message.Place; place.Channel != s.service.ch.name || place.Bot != s.service.ch.bot {
			continue
		}
		list = append(list, j)
	}
	return list
}

// resume does what an earlier process has begun.
func (s servers) resume(ctx context.Context, list []job) {
	if len(list) == 0 || s.client.Ready(ctx) != nil { // not ready: ctx has ended
		return
	}
	for _, j := range list {
		if j.Verb == "add" && s.known(j.ID) { // it was connected and kept before that could be told
			s.finish(ctx, j, texts.Words{}.ServerAdded(j.Message.Language, j.ID, len(s.client.Tools(j.ID))))
			continue
		}
		s.perform(ctx, j)
	}
}
