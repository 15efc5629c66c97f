// Package quota is the stage that bounds how many tool calls a conversation may make (seeds 001 and 003:
// max_tool_calls_per_session).
//
// It counts nothing itself: a call carries its place in the conversation (Call.BatchN and Call.CallN, made from the
// journal). That is why a retry, a call that waited for a person, and one that another process takes up after a crash
// are never counted twice.
package quota

import (
	"context"
	"fmt"

	"github.com/zephbot/zephbot/tools"
)

// The units that can be counted.
const (
	// Batch counts what the model asked for at once as one (seed 003). A batch beyond the limit is blocked as a whole.
	Batch = "batch"
	// Call counts every call. Those of a batch that are within the limit run, in the order of the model.
	Call = "call"
)

// Rule is what the trail of a blocked call names as the rule that decided.
const Rule = "tools.max_tool_calls_per_session"

// Options configures the stage.
type Options struct {
	// Max is how many units a conversation may use; 0 or less allows none. Without a limit there is no stage.
	Max int
	// Unit is Batch or Call; "" = Batch. Anything else counts calls, which is the stricter of the two.
	Unit string
}

// New makes the stage. It holds no state and is safe for concurrent use. A call that is not part of a conversation
// (number 0) passes; a probe is judged as the call itself.
func New(o Options) tools.Middleware {
	return func(next tools.Handler) tools.Handler {
		return func(ctx context.Context, call *tools.Call) (*tools.Result, error) {
			if place, _ := o.place(call); place > 0 && place > o.Max {
				call.Trail.Effect, call.Trail.Rule = "deny", Rule
				return nil, o.blocked(call)
			}
			return next(ctx, call)
		}
	}
}

// place is the number of the call in the unit that counts, and the unit's name for people.
func (o Options) place(call *tools.Call) (int, string) {
	if o.Unit == Batch || o.Unit == "" {
		return call.BatchN, "rounds of tool calls"
	}
	return call.CallN, "tool calls"
}

func (o Options) blocked(call *tools.Call) *tools.Error {
	_, unit := o.place(call)
	return &tools.Error{
		Category: tools.PolicyBlocked, Denied: true,
		Message:    fmt.Sprintf("quota_blocked: this conversation may use %d %s, and they are used up; the call did not run.", max(o.Max, 0), unit),
		Suggestion: "Call no more tools. Answer with what you have, and tell the user that /clear empties the conversation and resets this limit.",
	}
}
