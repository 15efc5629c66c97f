package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// chatMark is in every event of a stream of chat completions.
var chatMark = []byte(`"choices"`)

// completions implements POST /chat/completions.
type completions struct {
	provider *Provider
	origin   string // host; vendor-specific fields are sent back only to where they came from
}

// origins is the content of llm.ToolUse.Extra: what a host requires back with a tool call. Each wire reads its own
// fields only.
type origins struct {
	Host   string                     `json:"host"`
	Fields map[string]json.RawMessage `json:"fields,omitempty"` // chat: unknown fields of the call
	// ChatModel, of chat, is the configured model that gave Fields; "" = kept by a version that did not note it.
	ChatModel string `json:"chat_model,omitempty"`

	Model string `json:"model,omitempty"` // responses: the configured model
	// Responses: reasoning before the text of the message, kept at its first call.
	Lead      []json.RawMessage `json:"lead,omitempty"`
	Phase     string            `json:"phase,omitempty"`     // responses: phase of the text
	Reasoning []json.RawMessage `json:"reasoning,omitempty"` // responses: reasoning before the call
}

func (w *completions) chat(
	ctx context.Context, x *exchange, req *llm.Request, contents *media.Contents, emit func(string),
) (*llm.Response, error) {
	form := w.messageForm(&x.form.Dialect, contents)
	req = form.Request(req)
	write := chatTools
	if x.form.Dialect.Schema.Strict {
		write = notStrict
	}
	list, err := x.form.Boxes[0].Of(req, &x.form.Dialect.Schema, write)
	if err != nil {
		return nil, err
	}
	names, tools := list.Names, list.Text
	req = list.Noted(req)
	messages, err := w.makeMessages(form, req, names, contents)
	if err != nil {
		return nil, fmt.Errorf("write the messages: %w", err)
	}
	body := w.makeRequest(req, standIn(tools))
	x.messages, x.tools, x.names, x.stream, x.mark = messages, tools, names, true, chatMark
	stream, err := w.provider.newSDK(x).CreateChatCompletionStream(ctx, body)
	if err != nil {
		if errors.Is(err, goopenai.ErrReasoningToolsRequireResponses) {
			x.mustRespond()
			err = fmt.Errorf("set wire to %q or %q, or choose another model than %s: %w",
				WireAuto, WireResponses, body.Model, err)
		}
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	a := &answer{provider: w.provider, think: x.think}
	for {
		x.listen()
		raw, err := stream.RecvRaw()
		x.pause()
		if err != nil {
			if a.finish == "" && (!errors.Is(err, io.EOF) || !x.frames.ended || !a.hasBegun()) {
				if errors.Is(err, io.EOF) {
					err = w.provider.unansweredError(x, a.hasBegun(), "stream ended without a finish_reason")
				}
				return nil, err
			}
			// After the stop reason only the usage is still to come; a connection lost there loses nothing that matters
			// to a person. Some servers say [DONE] and no reason.
			break
		}
		if err := a.takeEvent(raw, emit); err != nil {
			return nil, err
		}
		if a.full {
			break // the unread rest is not needed
		}
	}
	a.endText(emit)
	res, err := a.makeResponse(w.origin, names)
	if err == nil {
		err = x.hear(res)
	}
	if err == nil {
		err = wire.FilledWindow(req, res, cmp.Or(req.MaxTokens, w.provider.o.MaxTokens))
	}
	if err == nil && keepsReasoning(form, req, res) {
		named := form.Reasoning == dialect.ReasoningRequired || form.Reasoning == dialect.ReasoningKept
		res.Extra = a.returned.encodeExtra(w.origin, w.provider.o.Model, named)
	}
	return res, err
}

// makeRequest returns a request without its messages, which have a placeholder.
func (w *completions) makeRequest(req *llm.Request, tools []goopenai.Tool) goopenai.ChatCompletionRequest {
	out := goopenai.ChatCompletionRequest{
		Model: w.provider.o.Model, User: req.User, Tools: tools, Messages: messagesIn(),
		StreamOptions: &goopenai.StreamOptions{IncludeUsage: true},
	}
	limit := req.MaxTokens
	if limit == 0 {
		limit = w.provider.o.MaxTokens
	}
	if w.provider.o.Dialect.Traits.AnswerLimit == "max_completion_tokens" {
		out.MaxCompletionTokens = limit
	} else {
		out.MaxTokens = limit //nolint:staticcheck // deprecated at OpenAI, but the only field that other servers know
	}
	return out
}

// chatTool is a tool in the vendor's form.
type chatTool struct {
	Function function          `json:"function"`
	Type     goopenai.ToolType `json:"type"`
}

// function describes a tool. Strict is never true: the vendor would want schemas of another kind.
type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

// chatTools writes tools in the vendor's form.
func chatTools(list []wire.Tool) ([]byte, error) { return writeChatTools(list, nil) }

// notStrict does so for a server that would take "strict": true for granted.
func notStrict(list []wire.Tool) ([]byte, error) { return writeChatTools(list, new(bool)) }

func writeChatTools(list []wire.Tool, strict *bool) ([]byte, error) {
	out := make([]chatTool, len(list))
	for i, t := range list {
		out[i] = chatTool{function{t.Name, t.Description, strict, t.Schema}, goopenai.ToolTypeFunction}
	}
	return json.Marshal(out) //nolint:wrapcheck // by the box
}
