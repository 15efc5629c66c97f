package tools

import (
	"slices"

	"github.com/zephbot/zephbot/policy/reason"
)

// Task is work that a call gives to a sub-agent: a model with a conversation of its own, which knows nothing but the
// text, and has no more tools than the caller.
type Task struct {
	Name string // of the sub-agent, as people and the audit log read it: see Origin.Agent
	Text string // what to do
	// Tools are the tools that the sub-agent has, of those that the caller has. The tool that makes the call is never
	// one of them.
	Tools  []string
	Budget Budget
}

// Budget limits a sub-agent. When one of the limits is reached, it is asked once more, without tools, for what it has.
type Budget struct {
	Steps  int // model calls that request tools
	Calls  int // calls of tools
	Tokens int // of its model calls together; the call that exceeds it is the last one with tools
	// USD is what its model calls may cost together, as far as prices are known; 0 = only what quotas allow. As with
	// Tokens, the call that exceeds it is the last one with tools.
	USD float64
}

// Has reports whether the sub-agent has a tool.
func (t *Task) Has(tool string) bool { return slices.Contains(t.Tools, tool) }

// CallerID identifies who makes a call, for records: the person, followed by the sub-agent that works for them
// ("telegram:42/researcher"). Rights, quotas and approvals are those of the person (Caller).
func (o *Origin) CallerID() string {
	if o.Agent == "" {
		return o.Caller
	}
	return o.Caller + "/" + o.Agent
}

// Narrow returns the overlay of a turn for part of its work: it removes what allowed refuses, tools that the turn adds
// too. why says of a tool that was removed for that reason why it cannot be called. o may be nil.
func (o *Overlay) Narrow(allowed func(name string) bool, why func(name string) reason.Reason) *Overlay {
	narrow := &Overlay{
		takes: func(name string) bool { return !allowed(name) || o.Takes(name) },
		why: func(name string) reason.Reason {
			if !allowed(name) {
				return why(name)
			}
			return o.Why(name)
		},
	}
	if o != nil {
		for _, t := range o.added {
			if allowed(t.Definition.Name) {
				narrow.added = append(narrow.added, t)
			}
		}
	}
	return narrow
}

// Why says why a tool that the overlay removes cannot be called.
func (o *Overlay) Why(name string) reason.Reason {
	if o == nil || o.why == nil {
		return reason.New(reason.ToolHidden, name)
	}
	return o.why(name)
}
