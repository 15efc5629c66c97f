package servers

import (
	"context"
	"errors"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/approve"
	"github.com/zephbot/zephbot/tools/mcp"
)

// finishWithin limits how long a finished job tries to report its result while the service is stopping: otherwise the
// next start finds it finished, and reports it.
const finishWithin = 10 * time.Second

// performJob performs a job and tells the chat the result, in the commit that deletes the job. Each verb has the same
// effect if it is done twice, or says that it was done, so that the next start can do it again after a crash.
func (d *Handler) performJob(ctx context.Context, j Job) {
	if d.deps.Shared && d.deps.Client.Ready(ctx) != nil { // ctx has ended
		return
	}
	if !d.beginJob(j.Message.ID) {
		return // it is being performed here
	}
	waits := false // for a person, in the background
	defer func() {
		if !waits {
			d.endJob(j.Message.ID)
		}
	}()
	by := ""
	if j.Verb == "add" {
		a, err := d.decisionOf(ctx, j)
		switch {
		case err != nil:
			d.deps.Log.Error().Err(err).Str("server", j.ID).Msg("decision about a server not read")
			return
		case a.State != approve.Approved && !isFinal(a.State):
			return // the press that decides it calls perform again
		case !d.takeJob(ctx, &j):
			return
		case isFinal(a.State):
			d.deleteJob(ctx, j, d.auditLine(j, a.By, blockedError(&reason.Error{
				Reason: reason.Reason{Code: reason.ServerUnapproved, Detail: string(a.State)},
			})))
			return
		}
		by = a.By
	} else if !d.takeJob(ctx, &j) {
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
	d.finishJob(ctx, j, d.outcomeText(j, text, err), d.auditLine(j, by, err))
}

// isFinal reports whether nobody will approve any more.
func isFinal(s approve.State) bool {
	return s == approve.Denied || s == approve.Expired || s == approve.Cancelled
}

// takeJob takes a job for this process, and reports whether it has it.
func (d *Handler) takeJob(ctx context.Context, j *Job) (ok bool) {
	err := d.deps.Keeper.Insist(ctx, func() (err error) {
		ok, err = d.claimJob(ctx, j)
		return err
	})
	if err != nil && ctx.Err() == nil {
		d.deps.Log.Error().Err(err).Str("server", j.ID).Msg("command about a server not taken")
	}
	return ok && err == nil
}

// outcomeText returns what the chat is told.
func (d *Handler) outcomeText(j Job, text string, err error) string {
	w, language := d.deps.Words, j.Message.Language
	switch {
	case errors.Is(err, ErrNoServer):
		return w.ServerUnknown(language, j.ID)
	case err != nil:
		return w.ServerFailed(language, j.ID, errorSentence(err))
	default:
		return text
	}
}

func (d *Handler) carryOut(ctx context.Context, j Job) (text string, err error) {
	w, language := d.deps.Words, j.Message.Language
	st, known := d.statusOf(j.ID)
	switch j.Verb {
	case "add":
		switch {
		case d.wasInterrupted(j) && known: // it was connected and stored before that could be reported
		case d.wasInterrupted(j) && d.isTooLate(j):
			return "", errors.New(w.Late(language))
		default:
			st, err = d.addServer(ctx, j)
		}
		return w.ServerAdded(language, j.ID, len(st.Tools)), err
	case "restart":
		switch {
		case !known:
			err = ErrNoServer
		case !d.wasInterrupted(j):
			st, err = d.deps.Client.Restart(ctx, j.ID)
		case st.State != mcp.Connected: // the restart of the service restarted the server, too
			err = errors.New(st.Problem)
		}
		return w.ServerAdded(language, j.ID, len(st.Tools)), err
	case "remove":
		return d.removeServer(ctx, j, known)
	default:
		return d.acceptChanges(ctx, j, known)
	}
}

func (d *Handler) addServer(ctx context.Context, j Job) (mcp.Status, error) {
	server, err := d.parseServer(j.ID, j.Target)
	if err != nil {
		return mcp.Status{}, err
	}
	return d.deps.Client.Add(ctx, server)
}

// acceptChanges accepts what a server offers.
func (d *Handler) acceptChanges(ctx context.Context, j Job, known bool) (text string, err error) {
	var by string
	list := j.Names
	if d.wasInterrupted(j) && known {
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

// removeServer ends a server, and the standing approvals for its tools.
func (d *Handler) removeServer(ctx context.Context, j Job, known bool) (text string, err error) {
	n := j.Count
	switch {
	case known:
		n, err = d.deps.Client.Remove(ctx, j.ID)
	case !d.wasInterrupted(j):
		err = ErrNoServer
	}
	if err != nil {
		return "", err
	}
	err = d.deps.Keeper.Insist(ctx, func() error { return d.deps.EndGrants(ctx, j.ID) })
	return d.deps.Words.ServerRemoved(j.Message.Language, j.ID, n), err
}

// auditLine returns the audit line of a job, as facts.
func (d *Handler) auditLine(j Job, by string, err error) []bot.Fact {
	return d.deps.Audit.Due(mcpCall(j.call(), j.Verb, j.args(), by, err), err)
}

// finishJob tells the chat the result of a job, and deletes it.
func (d *Handler) finishJob(ctx context.Context, j Job, text string, facts []bot.Fact) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishWithin)
	defer cancel()
	d.tellLater(ctx, j.call(), "end", text, append(facts, bot.Fact{Bucket: jobBucket, Key: j.Message.ID})...)
	d.deps.Audit.Settle(ctx)
}

// deleteJob deletes a job about which the card has said everything.
func (d *Handler) deleteJob(ctx context.Context, j Job, facts []bot.Fact) {
	change := &bot.Change{Facts: append(facts, bot.Fact{Bucket: jobBucket, Key: j.Message.ID})}
	if err := d.deps.Keeper.Keep(ctx, change); err != nil {
		d.deps.Log.Error().Err(err).Msg("a command about a server not forgotten")
		return
	}
	d.deps.Audit.Settle(ctx)
}
