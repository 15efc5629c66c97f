package servers

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/turn"
)

// Rights say who decides about the calls of a tool in a place.
type Rights = func(ctx context.Context, place bot.Place, tool string) (approval.Rights, error)

// OnlyAdmins leaves decisions about servers to admins: the approvers of a chat's calls need not be admins.
func OnlyAdmins(rights Rights) Rights {
	return func(ctx context.Context, place bot.Place, tool string) (approval.Rights, error) {
		r, err := rights(ctx, place, tool)
		if tool == jobTool {
			r.Approvers = r.Admins
		}
		return r, err
	}
}

// Questions puts questions to people like the broker that it wraps, and continues a job once its question is decided.
type Questions struct {
	Broker
	Jobs *Handler
}

// Press implements turn.Approvals.
func (q Questions) Press(ctx context.Context, msg *bot.Message) (turn.Effect, error) {
	e, err := q.Broker.Press(ctx, msg)
	return q.continueJobs(ctx, e), err
}

// Command implements approval.Questions.
func (q Questions) Command(ctx context.Context, call *turn.Call, state bot.ApprovalState) (turn.Effect, error) {
	e, err := q.Broker.Command(ctx, call, state)
	return q.continueJobs(ctx, e), err
}

// Expired implements turn.Approvals.
func (q Questions) Expired(ctx context.Context, now time.Time) ([]turn.Effect, error) {
	effects, err := q.Broker.Expired(ctx, now)
	for i := range effects {
		effects[i] = q.continueJobs(ctx, effects[i])
	}
	return effects, err
}

// continueJobs adds to a decision what it means for a job: no conversation continues because of it, but the job does.
func (q Questions) continueJobs(ctx context.Context, e turn.Effect) turn.Effect {
	for _, d := range e.Change.Decide {
		asked, err := q.Jobs.deps.Store.Approval(ctx, d.ID)
		job, ok := strings.CutPrefix(string(asked.Session), jobSession)
		if err != nil || !ok {
			continue
		}
		e.Decided = nil // of one question: there is no conversation
		first := e.Then
		e.Then = func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
			var next turn.Effect
			if first != nil {
				var err error
				if next, err = first(ctx, applied); err != nil {
					return next, err
				}
				next.Decided = nil
			}
			return next, q.Jobs.goOn(ctx, job)
		}
	}
	return e
}

// goOn performs the job of a message in the background, as far as it is decided.
func (d *Handler) goOn(ctx context.Context, message string) error {
	var text string
	err := d.deps.Keeper.Insist(ctx, func() (err error) {
		text, err = d.deps.Store.Fact(ctx, jobBucket, message, d.deps.Now())
		return err
	})
	if err != nil || text == "" {
		return err
	}
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return err
	}
	j.Owner = d.deps.Owner // nobody has begun it, since it was not decided
	d.startJob(d.relocateJob(j))
	return nil
}
