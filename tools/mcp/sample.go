package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// SampleRequest is a server's request for an answer from the model.
type SampleRequest struct {
	Server      string
	Trust       guard.Trust
	Tool        string // qualified name of the tool whose call the server asks in
	Call        string
	Origin      tools.Origin
	System      string // text from the server, limited in length
	Messages    []SampleMessage
	MaxTokens   int
	Temperature float64
}

// SampleMessage is one message of a request. Its text is from the server and limited in length.
type SampleMessage struct {
	Role string // user or assistant
	Text string
}

// SampleResult is the model's answer.
type SampleResult struct {
	Text  string
	Model string
}

// SampleRefusal is an error of Sample whose reason the server is told.
type SampleRefusal struct{ Reason string }

// Error implements error.
func (e *SampleRefusal) Error() string { return e.Reason }

const (
	maxSampleText     = 64 << 10 // bytes of all messages
	maxSampleMessages = 50
)

// sampleModel asks the model for a server: only within a call, and at a limited rate.
func (c *conn) sampleModel(
	ctx context.Context, req *sdk.CreateMessageRequest,
) (*sdk.CreateMessageResult, error) { //nolint:staticcheck // for servers of older revisions
	refuse := func(text string) error {
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: text}
	}
	f := c.askingFlight(ctx)
	switch {
	case c.s.cfg.Trust == guard.Sandboxed:
		return nil, refuse("a sandboxed server may not ask the model")
	case f == nil:
		return nil, refuse("the model can be asked only while exactly one call is under way")
	case !f.countQuestion():
		return nil, refuse("too many requests within one call")
	}
	r, problem := sampleRequest(req.Params)
	if problem != "" {
		return nil, refuse(problem)
	}
	r.Server, r.Trust, r.Tool, r.Call, r.Origin = c.s.cfg.ID, c.s.cfg.Trust, f.call.Def.Name, f.call.ID, f.call.Origin
	defer f.pauseTimeout()()
	ctx, cancel := context.WithTimeout(ctx, c.s.m.o.ElicitationTimeout)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	res, err := c.s.m.o.Sample(ctx, r)
	if err != nil {
		c.s.log.Warn().Err(err).Msg("the model did not answer an mcp server")
		if refusal, ok := errors.AsType[*SampleRefusal](err); ok {
			return nil, refuse("the model cannot be asked: " + refusal.Reason)
		}
		return nil, refuse("the model cannot be asked now")
	}
	return &sdk.CreateMessageResult{ //nolint:staticcheck // most servers speak an older revision
		Content: &sdk.TextContent{Text: res.Text}, Model: res.Model, Role: "assistant", StopReason: "endTurn",
	}, nil
}

// sampleRequest converts a request. problem says why it cannot be answered.
func sampleRequest(
	p *sdk.CreateMessageParams, //nolint:staticcheck // for servers of older revisions
) (r SampleRequest, problem string) {
	if p == nil || len(p.Messages) == 0 {
		return r, "the request has no messages"
	}
	if len(p.Messages) > maxSampleMessages {
		return r, fmt.Sprintf("the request has more than %d messages", maxSampleMessages)
	}
	total := len(p.SystemPrompt)
	for _, m := range p.Messages {
		if m == nil {
			return r, "a message is empty"
		}
		text, ok := m.Content.(*sdk.TextContent)
		if !ok || text == nil {
			return r, "only text can be given to the model"
		}
		total += len(text.Text)
		r.Messages = append(r.Messages, SampleMessage{Role: string(m.Role), Text: content.Clean(text.Text)})
	}
	if total > maxSampleText {
		return r, fmt.Sprintf("the request is longer than %d bytes", maxSampleText)
	}
	r.System, r.MaxTokens, r.Temperature = content.Clean(p.SystemPrompt), int(p.MaxTokens), p.Temperature
	return r, ""
}
