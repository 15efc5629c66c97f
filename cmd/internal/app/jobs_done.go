package app

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/command"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/mcp"
)

// finishWithin bounds how long a job that is done tries to say so when the service ends: else the next start finds it done, and says it.
const finishWithin = 10 * time.Second

// perform does it and tells the chat how it went, in one commit with forgetting it. Each verb comes to the same when it is done twice, or says that it was
// done; so when the service ends meanwhile, the next start does it.
func (s servers) perform(ctx context.Context, j job) {
	by := ""
	if j.Verb == "add" {
		a, err := s.decided(ctx, j)
		switch {
		case err != nil:
			s.service.log.Error().Err(err).Str("server", j.ID).Msg("decision about a server not read")
			return
		case a.State == approve.Denied, a.State == approve.Expired, a.State == approve.Cancelled:
			s.forget(ctx, j, s.line(j, a.By, refusal(errors.New("it was not approved: "+string(a.State)))))
			return
		case a.State != approve.Approved:
			return // the press that decides it comes here again
		}
		by = a.By
	}
	if j.Verb == "signin" {
		s.signIn(ctx, j)
		return
	}
	text, err := s.carryOut(ctx, j)
	if err != nil && ctx.Err() != nil {
		return
	}
	s.finish(ctx, j, s.outcome(j, text, err), s.line(j, by, err))
}

// outcome is what the chat is told.
func (s servers) outcome(j job, text string, err error) string {
	w, language := s.service.core.words(), j.Message.Language
	switch {
	case errors.Is(err, command.ErrNoServer):
		return w.ServerUnknown(language, j.ID)
	case err != nil:
		return w.ServerFailed(language, j.ID, sentence(err))
	default:
		return text
	}
}

func (s servers) carryOut(ctx context.Context, j job) (text string, err error) {
	w, language := s.service.core.words(), j.Message.Language
	st, known := s.status(j.ID)
	switch j.Verb {
	case "add":
		switch {
		case s.interrupted(j) && known: // it was connected and kept before that could be told
		case s.interrupted(j) && s.late(j):
			return "", errors.New(w.Late(language))
		default:
			st, err = s.add(ctx, j)
		}
		return w.ServerAdded(language, j.ID, len(st.Tools)), err
	case "restart":
		switch {
		case !known:
			err = command.ErrNoServer
		case !s.interrupted(j):
			st, err = s.client.Restart(ctx, j.ID)
		case st.State != mcp.Connected: // the restart of the service was one of the server, too
			err = errors.New(st.Problem)
		}
		return w.ServerAdded(language, j.ID, len(st.Tools)), err
	case "remove":
		return s.remove(ctx, j, known)
	default:
		return s.accept(ctx, j, known)
	}
}

func (s servers) add(ctx context.Context, j job) (mcp.Status, error) {
	server, err := s.parse(j.ID, j.Target)
	if err != nil {
		return mcp.Status{}, err
	}
	return s.client.Add(ctx, server)
}

// accept takes what a server offers.
func (s servers) accept(ctx context.Context, j job, known bool) (text string, err error) {
	var by string
	list := j.Names
	if s.interrupted(j) && known {
		err = s.service.core.keeper().Insist(ctx, func() error {
			by, err = s.client.AcceptedBy(ctx, j.ID)
			return err
		})
	}
	if err == nil && by != j.Message.ID { // else it was accepted before that could be told
		list, err = s.client.Accept(ctx, j.ID, j.Target[0], j.Message.ID)
	}
	return s.service.core.words().ServerAccepted(j.Message.Language, j.ID, list), err
}

// remove ends a server, and the standing approvals for its tools.
func (s servers) remove(ctx context.Context, j job, known bool) (text string, err error) {
	n := j.Count
	switch {
	case known:
		n, err = s.client.Remove(ctx, j.ID)
	case !s.interrupted(j):
		err = command.ErrNoServer
	}
	if err != nil {
		return "", err
	}
	err = s.service.core.keeper().Insist(ctx, func() error { return s.service.core.endGrants(ctx, j.ID) })
	return s.service.core.words().ServerRemoved(j.Message.Language, j.ID, n), err
}

// line is what the audit says of a job, as facts.
func (s servers) line(j job, by string, err error) []bot.Fact {
	return s.service.core.due(mcpCall(j.call(), j.Verb, j.args(), by, err), err)
}

// finish tells the chat how a job went, and forgets it.
func (s servers) finish(ctx context.Context, j job, text string, facts []bot.Fact) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer cancel()
	s.service.tellLater(ctx, j.call(), "end", text, append(facts, bot.Fact{Bucket: jobBucket, Key: j.Message.ID})...)
	s.service.core.settleAudit(ctx)
}

// forget drops a job of which the card has said everything.
func (s servers) forget(ctx context.Context, j job, facts []bot.Fact) {
	change := &bot.Change{Facts: append(facts, bot.Fact{Bucket: jobBucket, Key: j.Message.ID})}
	if err := s.service.core.keeper().Keep(ctx, change); err != nil {
		s.service.log.Error().Err(err).Msg("a command about a server not forgotten")
		return
	}
	s.service.core.settleAudit(ctx)
}
