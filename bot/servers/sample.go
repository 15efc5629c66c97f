package servers

import (
	"context"
	"errors"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools/mcp"
)

// maxSampleTokens limits the length of one response that a server may request from the model.
const maxSampleTokens = 2000

// Approvals finds the question about a tool call.
type Approvals interface {
	ApprovalOf(ctx context.Context, session bot.SessionKey, call string) (bot.Approval, error)
}

// Sampler serves servers that ask the model.
type Sampler struct {
	Model     *spend.Model
	Payer     func(turn string) cost.Payer // who pays for the requests during a call of a turn; nil = they are refused
	Approvals Approvals                    // nil: nobody approves anything, so every request is refused
}

// Sample lets a server ask the primary model, within a call that a person has approved: its card said so.
func (s Sampler) Sample(ctx context.Context, r mcp.SampleRequest) (mcp.SampleResult, error) {
	if s.Approvals == nil {
		return mcp.SampleResult{}, errors.New("nobody approved this")
	}
	a, err := s.Approvals.ApprovalOf(ctx, bot.SessionKey(r.Origin.Session), r.Call)
	if err != nil || a.State != bot.Approved {
		return mcp.SampleResult{}, errors.Join(errors.New("the call was not approved by a person"), err)
	}
	if s.Payer != nil {
		ctx = cost.WithPayer(ctx, s.Payer(r.Origin.Turn))
	}
	req := &llm.Request{System: r.System, MaxTokens: min(max(r.MaxTokens, 1), maxSampleTokens)}
	for _, m := range r.Messages {
		role := llm.User
		if m.Role == "assistant" {
			role = llm.Assistant
		}
		req.Messages = append(req.Messages, llm.Message{Role: role, Text: m.Text})
	}
	resp, err := s.Model.Chat(ctx, req)
	if cost.Refused(err) {
		return mcp.SampleResult{}, errors.Join(
			&mcp.SampleRefusal{Reason: "the quota of the person who made this call is used up"}, err,
		)
	}
	if err != nil {
		return mcp.SampleResult{}, err
	}
	return mcp.SampleResult{Text: resp.Text, Model: resp.Model}, nil
}
