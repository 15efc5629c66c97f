package chain

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// Units of counting.
const (
	// QuotaPerBatch counts all calls that the model requests at once as one (seed 003). A batch beyond
	// the limit is blocked as a whole.
	QuotaPerBatch = "batch"
	// QuotaPerCall counts every call. Of a batch, those within the limit run, in the model's order.
	QuotaPerCall = "call"
)

// QuotaRule is the rule named in the trail of a blocked call.
const QuotaRule = "tools.max_tool_calls_per_session"

// QuotaOptions configures the stage.
type QuotaOptions struct {
	// Max is how many units a person may use in a session; 0 or less allows none. Leave the stage out for no limit.
	Max int
	// Unit is Batch or Call; "" = Batch. Any other value counts calls, which is stricter.
	Unit string
}

// NewQuota returns the stage that limits how many tool calls a person may make in a session (seeds 001 and 003:
// max_tool_calls_per_session). In a session of several people, nobody uses up what another one may use. It is safe for
// concurrent use. A call outside of a session (number 0) passes. A probe is treated like the call itself.
//
// The stage counts nothing itself. A call carries its numbers (Call.BatchN and Call.CallN), which come from the
// journal. A retry, a call that waited for a person, and one that another process continues after a crash are
// therefore never counted twice. A call that shows a plan is free.
func NewQuota(o QuotaOptions) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			free := call.Def.Stated().Act == act.Plans
			if place, _ := o.countOf(call); !free && place > 0 && place > o.Max {
				call.Trail.Effect, call.Trail.Rule = "deny", QuotaRule
				call.Trail.Reason = reason.New(reason.CallsUsedUp)
				return nil, o.refuseOverQuota(call)
			}
			return next(ctx, call)
		}
	}
}

// countOf returns the number of the call in the unit, and the name of the unit for people.
func (o QuotaOptions) countOf(call *tools.Call) (int, string) {
	if o.Unit == QuotaPerBatch || o.Unit == "" {
		return call.BatchN, "rounds of tool calls"
	}
	return call.CallN, "tool calls"
}

func (o QuotaOptions) refuseOverQuota(call *tools.Call) *tools.Error {
	_, unit := o.countOf(call)
	return &tools.Error{
		Category: tools.PolicyBlocked, Reason: reason.New(reason.CallsUsedUp),
		Message: fmt.Sprintf(
			"quota_blocked: a person may use %d %s in one conversation, and they are used up; the call did not run.",
			max(o.Max, 0), unit,
		),
		Suggestion: "Call no more tools. Answer with what you have, and tell the user that /clear empties the " +
			"conversation and resets this limit.",
	}
}
