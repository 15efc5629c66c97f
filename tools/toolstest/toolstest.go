// Package toolstest contains tools and stores for tests: small, real, and observable.
package toolstest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/approve"
)

// Decide is a policy made of a function; it implements chain.Policy. It offers nothing, confirms nothing, follows no
// redirects and names no files.
type Decide func(policy.Request) policy.Decision

// Decide implements chain.Policy.
func (f Decide) Decide(r policy.Request) policy.Decision { return f(r) }

// Follows implements chain.Policy.
func (Decide) Follows(policy.Request, policy.Address, policy.Address, policy.Address) bool {
	return false
}

// Offers implements chain.Policy.
func (Decide) Offers(policy.Request) []policy.Offer { return nil }

// Confirms implements chain.Policy.
func (Decide) Confirms(policy.Request) bool { return false }

// Named implements chain.Policy.
func (Decide) Named(policy.Request) []command.FileName { return nil }

// Always returns a policy that decides the same for every call.
func Always(e policy.Effect) Decide {
	return func(policy.Request) policy.Decision {
		return policy.Decision{
			Effect: e,
			Rule:   "test: " + string(e),
			Reason: reason.Plain("The test says " + string(e) + "."),
		}
	}
}

// echoArgs are the arguments of Echo.
type echoArgs struct {
	Text  string `json:"text" jsonschema:"what to say"`
	Times int    `json:"times,omitempty" jsonschema:"how often"`
}

// Echo returns a reading tool, "echo", that returns Text as many times as Times says (at least once), one per line.
func Echo() tools.Tool {
	return must(tools.New(tools.Typed[echoArgs]{
		Definition: tools.Definition{Name: "echo", Description: "Says the text.", ReadOnly: true},
		Describe: func(_ context.Context, _ *tools.Call, in echoArgs) (tools.Subject, error) {
			return tools.Subject{Inputs: []string{in.Text}, Show: "say " + in.Text}, nil
		},
		Run: func(_ context.Context, _ *tools.Call, in echoArgs) (*tools.Result, error) {
			var text strings.Builder
			text.WriteString(in.Text)
			for range in.Times - 1 {
				text.WriteString("\n" + in.Text)
			}
			return &tools.Result{Text: text.String()}, nil
		},
	}))
}

// Counter is a tool, "count", that changes something: it adds By (1 when absent) to a sum. It is safe for concurrent
// use.
type Counter struct {
	mu   sync.Mutex
	sum  int
	runs int
}

// counterArgs are the arguments of Counter.
type counterArgs struct {
	By int `json:"by,omitempty" jsonschema:"how much to add"`
}

// Tool returns the tool that counts.
func (c *Counter) Tool() tools.Tool {
	return must(tools.New(tools.Typed[counterArgs]{
		Definition: tools.Definition{Name: "count", Description: "Adds to the sum.", Destructive: true},
		Describe: func(_ context.Context, _ *tools.Call, in counterArgs) (tools.Subject, error) {
			return tools.Subject{
				Inputs: []string{fmt.Sprint(in.By)}, Show: fmt.Sprintf("add %d", max(in.By, 1)),
				Note: reason.Plain("in memory"),
			}, nil
		},
		Run: func(_ context.Context, _ *tools.Call, in counterArgs) (*tools.Result, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			if in.By == 0 {
				in.By = 1
			}
			c.sum += in.By
			c.runs++
			return &tools.Result{Text: fmt.Sprintf("the sum is %d", c.sum)}, nil
		},
	}))
}

// Sum returns what was added up.
func (c *Counter) Sum() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sum
}

// Runs returns how often the tool ran.
func (c *Counter) Runs() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs
}

// Blocker is a reading tool, "block", that waits until the test releases it or its context ends.
type Blocker struct {
	// Started receives one value per run that begins. The run waits until it is received.
	Started chan string // the call's id
	// Release ends one run per value; closing it ends all.
	Release chan struct{}
}

// NewBlocker returns a Blocker with unbuffered channels.
func NewBlocker() *Blocker {
	return &Blocker{Started: make(chan string), Release: make(chan struct{})}
}

// Tool returns the tool that waits.
func (b *Blocker) Tool() tools.Tool {
	return must(tools.New(tools.Typed[struct{}]{
		Definition: tools.Definition{Name: "block", Description: "Waits.", ReadOnly: true},
		Run: func(ctx context.Context, call *tools.Call, _ struct{}) (*tools.Result, error) {
			select {
			case b.Started <- call.ID:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
			select {
			case <-b.Release:
				return &tools.Result{Text: "released"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		},
	}))
}

// Lookup is an approve.Lookup in memory. Its zero value is empty and ready to use. It is safe for concurrent use.
type Lookup struct {
	// Err is returned by every lookup if it is set. Set it before use.
	Err error
	// Spent: standing approvals allow no more. Set it before use.
	Spent bool

	uses  int
	mu    sync.Mutex
	rows  map[[2]string]approve.Approval
	asked int
}

// Set stores the approval of a call.
func (l *Lookup) Set(session, call string, a approve.Approval) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.rows == nil {
		l.rows = map[[2]string]approve.Approval{}
	}
	l.rows[[2]string{session, call}] = a
}

// Approve approves a pending call. err is what the chain returned for it.
func (l *Lookup) Approve(session string, err error, by string) error {
	var pending *tools.Pending
	if !errors.As(err, &pending) {
		return fmt.Errorf("nothing to approve: %w", err)
	}
	l.Set(session, pending.Question.Call, approve.Approval{
		State: approve.Approved, By: by,
		Hash: pending.Question.Hash,
	})
	return nil
}

// Asked returns the number of lookups.
func (l *Lookup) Asked() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.asked
}

// Approval implements approve.Lookup.
func (l *Lookup) Approval(_ context.Context, session, call, _ string) (approve.Approval, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	if l.Err != nil {
		return approve.Approval{}, l.Err
	}
	if a, ok := l.rows[[2]string{session, call}]; ok {
		return a, nil
	}
	return approve.Approval{State: approve.None}, nil
}

// Use implements approve.Lookup: standing approvals allow any number of calls, or none (Spent).
func (l *Lookup) Use(context.Context, *tools.Call, string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.Spent {
		return false, nil
	}
	l.uses++
	return true, l.Err
}

// Uses returns how many calls were counted for standing approvals.
func (l *Lookup) Uses() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.uses
}

// Call returns a call of a tool, as made for Ann in the private chat 42.
func Call(tool, args string) *tools.Call {
	return &tools.Call{
		ID: "call-1", Batch: 1, Tool: tool, Args: json.RawMessage(args), Trail: &tools.Trail{},
		Origin: tools.Origin{
			Channel: "telegram", Session: "telegram:42", Chat: "42", Turn: "turn-1",
			Caller: "telegram:42",
		},
	}
}

// must is for definitions in this file.
func must(t tools.Tool, err error) tools.Tool {
	if err != nil {
		panic(err) //nolint:forbidigo // a broken definition is a mistake in this package
	}
	return t
}
