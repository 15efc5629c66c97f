package servers

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/mcp"
)

// finishWithin limits how long a finished job tries to report its result while the service is stopping: otherwise the
// next start finds it finished, and reports it.
const finishWithin = 10 * time.Second

// perform performs a job and tells the chat the result, in the commit that deletes the job. Each verb has the same
// effect if it is done twice, or says that it was done, so that the next start can do it again after a crash.
func (d *Handler) perform(ctx context.Context, j Job) {
	if d.deps.Shared && d.deps.Client.Ready(ctx) != nil { // ctx has ended
		return
	}
	if !d.begin(j.Message.ID) {
		return // it is being performed here
	}
	waits := false // for a person, in the background
	defer func() {
		if !waits {
			d.end(j.Message.ID)
		}
	}()
	by := ""
	if j.Verb == "add" {
		a, err := d.decided(ctx, j)
		switch {
		case err != nil:
			d.deps.Log.Error().Err(err).Str("server", j.ID).Msg("decision about a server not read")
			return
		case a.State != approve.Approved && !final(a.State):
			return // the press that decides it calls perform again
		case !d.mine(ctx, &j):
			return
		case final(a.State):
			d.forget(ctx, j, d.line(j, a.By, refusal(errors.New("it was not approved: "+string(a.State)))))
			return
		}
		by = a.By
	} else if !d.mine(ctx, &j) {
		return
	}
	if j.Verb == "signin" {
		waits = d.signIn(ctx, j)
		return
	}
	text, err := d.carryOut(ctx, j)
	if err != nil && ctx.Err() != nil {
		return
	}
	d.finish(ctx, j, d.outcome(j, text, err), d.line(j, by, err))
}

// final reports whether nobody will approve any more.
func final(s approve.State) bool {
	return s == approve.Denied || s == approve.Expired || s == approve.Cancelled
}

// mine takes a job for this process, and reports whether it has it.
func (d *Handler) mine(ctx context.Context, j *Job) (ok bool) {
	err := d.deps.Keeper.Insist(ctx, func() (err error) {
		ok, err = d.claim(ctx, j)
		return err
	})
	if err != nil && ctx.Err() == nil {
		d.deps.Log.Error().Err(err).Str("server", j.ID).Msg("command about a server not taken")
	}
	return ok && err == nil
}

// outcome returns what the chat is told.
func (d *Handler) outcome(j Job, text string, err error) string {
	w, language := d.deps.Words, j.Message.Language
	switch {
	case errors.Is(err, ErrNoServer):
		return w.ServerUnknown(language, j.ID)
	case err != nil:
		return w.ServerFailed(language, j.ID, sentence(err))
	default:
		return text
	}
}

func (d *Handler) carryOut(ctx context.Context, j Job) (text string, err error) {
	w, language := d.deps.Words, j.Message.Language
	st, known := d.status(j.ID)
	switch j.Verb {
	case "add":
		switch {
		case d.interrupted(j) && known: // it was connected and stored before that could be reported
		case d.interrupted(j) && d.late(j):
			return "", errors.New(w.Late(language))
		default:
			st, err = d.add(ctx, j)
		}
		return w.ServerAdded(language, j.ID, len(st.Tools)), err
	case "restart":
		switch {
		case !known:
			err = ErrNoServer
		case !d.interrupted(j):
			st, err = d.deps.Client.Restart(ctx, j.ID)
		case st.State != mcp.Connected: // the restart of the service restarted the server, too
			err = errors.New(st.Problem)
		}
		return w.ServerAdded(language, j.ID, len(st.Tools)), err
	case "remove":
		return d.remove(ctx, j, known)
	default:
		return d.accept(ctx, j, known)
	}
}

func (d *Handler) add(ctx context.Context, j Job) (mcp.Status, error) {
	server, err := d.parse(j.ID, j.Target)
	if err != nil {
		return mcp.Status{}, err
	}
	return d.deps.Client.Add(ctx, server)
}

// accept accepts what a server offers.
func (d *Handler) accept(ctx context.Context, j Job, known bool) (text string, err error) {
	var by string
	list := j.Names
	if d.interrupted(j) && known {
		err = d.deps.Keeper.Insist(ctx, func() error {
			by, err = d.deps.Client.AcceptedBy(ctx, j.ID)
			return err
		})
	}
	if err == nil && by != j.Message.ID { // otherwise it was accepted before that could be reported
		list, err = d.deps.Client.Accept(ctx, j.ID, j.Target[0], j.Message.ID)
	}
	return d.deps.Words.ServerAccepted(j.Message.Language, j.ID, list), err
}

// remove ends a server, and the standing approvals for its tools.
func (d *Handler) remove(ctx context.Context, j Job, known bool) (text string, err error) {
	n := j.Count
	switch {
	case known:
		n, err = d.deps.Client.Remove(ctx, j.ID)
	case !d.interrupted(j):
		err = ErrNoServer
	}
	if err != nil {
		return "", err
	}
	err = d.deps.Keeper.Insist(ctx, func() error { return d.deps.EndGrants(ctx, j.ID) })
	return d.deps.Words.ServerRemoved(j.Message.Language, j.ID, n), err
}

// line returns the audit line of a job, as facts.
func (d *Handler) line(j Job, by string, err error) []bot.Fact {
	return d.deps.Audit.Due(mcpCall(j.call(), j.Verb, j.args(), by, err), err)
}

// finish tells the chat the result of a job, and deletes it.
func (d *Handler) finish(ctx context.Context, j Job, text string, facts []bot.Fact) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer cancel()
	d.tellLater(ctx, j.call(), "end", text, append(facts, bot.Fact{Bucket: jobBucket, Key: j.Message.ID})...)
	d.deps.Audit.Settle(ctx)
}

// forget deletes a job about which the card has said everything.
func (d *Handler) forget(ctx context.Context, j Job, facts []bot.Fact) {
	change := &bot.Change{Facts: append(facts, bot.Fact{Bucket: jobBucket, Key: j.Message.ID})}
	if err := d.deps.Keeper.Keep(ctx, change); err != nil {
		d.deps.Log.Error().Err(err).Msg("a command about a server not forgotten")
		return
	}
	d.deps.Audit.Settle(ctx)
}
