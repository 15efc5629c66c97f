package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/wirename"
)

// params writes a request. Its order is the vendor's cache order: tools, system, messages. Two marks tell the cache how far to keep: the end of the system
// prompt (tools and system stay the same over a conversation), and the end of the messages (the next call begins with them).
func (p *Provider) params(req *llm.Request, names *wirename.Names) sdk.MessageNewParams {
	out := sdk.MessageNewParams{Model: p.o.Model, MaxTokens: int64(p.o.MaxTokens), Messages: p.messages(req.Messages, names)}
	if req.MaxTokens > 0 {
		out.MaxTokens = int64(req.MaxTokens)
	}
	for _, t := range req.Tools {
		tool := sdk.ToolParam{Name: names.Encode(t.Name), InputSchema: schema(t.Schema)}
		if t.Description != "" {
			tool.Description = sdk.String(t.Description)
		}
		out.Tools = append(out.Tools, sdk.ToolUnionParam{OfTool: &tool})
	}
	switch {
	case strings.TrimSpace(req.System) != "":
		out.System = []sdk.TextBlockParam{{Text: req.System, CacheControl: sdk.NewCacheControlEphemeralParam()}}
	case len(out.Tools) > 0:
		out.Tools[len(out.Tools)-1].OfTool.CacheControl = sdk.NewCacheControlEphemeralParam()
	}
	if req.User != "" {
		out.Metadata = sdk.MetadataParam{UserID: sdk.String(req.User)}
	}
	return out
}

// schema is sent byte for byte as it is: a schema that a server wrote reaches the model unchanged.
func schema(raw json.RawMessage) sdk.ToolInputSchemaParam {
	var object map[string]json.RawMessage
	if json.Unmarshal(raw, &object) != nil || object == nil {
		return sdk.ToolInputSchemaParam{Properties: map[string]any{}}
	}
	return param.Override[sdk.ToolInputSchemaParam](raw)
}

// messages writes the conversation: results are blocks of the user's message that follows, and neighbours of one role are one message.
func (p *Provider) messages(list []llm.Message, names *wirename.Names) []sdk.MessageParam {
	var out []sdk.MessageParam
	add := func(role sdk.MessageParamRole, blocks ...sdk.ContentBlockParamUnion) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, sdk.MessageParam{Role: role, Content: blocks})
	}
	for i := range list {
		m := &list[i]
		switch {
		case m.Role == llm.ToolRole && m.Result != nil:
			add(sdk.MessageParamRoleUser, sdk.NewToolResultBlock(m.Result.ID, visible(m.Result.Text, "(no output)"), m.Result.Error))
		case m.Role == llm.Assistant:
			add(sdk.MessageParamRoleAssistant, p.assistant(m, names)...)
		default:
			add(sdk.MessageParamRoleUser, sdk.NewTextBlock(visible(m.Text, "(empty)")))
		}
	}
	if n := len(out); n > 0 {
		mark(&out[n-1].Content[len(out[n-1].Content)-1])
	}
	return out
}

// assistant writes what the model said: its thoughts, as they came, its text, its uses.
func (p *Provider) assistant(m *llm.Message, names *wirename.Names) []sdk.ContentBlockParamUnion {
	var blocks []sdk.ContentBlockParamUnion
	for _, u := range m.Uses {
		blocks = append(blocks, p.thoughts(u.Extra)...)
	}
	if strings.TrimSpace(m.Text) != "" {
		blocks = append(blocks, sdk.NewTextBlock(m.Text))
	}
	for _, u := range m.Uses {
		blocks = append(blocks, sdk.NewToolUseBlock(u.ID, object(u.Args), names.Encode(u.Name)))
	}
	if len(blocks) == 0 {
		blocks = append(blocks, sdk.NewTextBlock("(empty)"))
	}
	return blocks
}

// thoughts gives blocks of thinking back to where they came from: the vendor checks their signatures.
func (p *Provider) thoughts(extra json.RawMessage) []sdk.ContentBlockParamUnion {
	var from origin
	if len(extra) == 0 || json.Unmarshal(extra, &from) != nil || from.Host != p.host {
		return nil
	}
	var blocks []sdk.ContentBlockParamUnion
	for _, t := range from.Thoughts {
		if t.Redacted != "" {
			blocks = append(blocks, sdk.NewRedactedThinkingBlock(t.Redacted))
			continue
		}
		blocks = append(blocks, sdk.NewThinkingBlock(t.Signature, t.Text))
	}
	return blocks
}

// object gives arguments as the object that the API wants; what is none goes back as the text it was.
func object(args json.RawMessage) any {
	if trimmed := bytes.TrimSpace(args); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return json.RawMessage(trimmed)
	}
	if len(bytes.TrimSpace(args)) == 0 {
		return map[string]any{}
	}
	return map[string]any{"not_an_object": string(args)}
}

// mark ends what the cache keeps.
func mark(b *sdk.ContentBlockParamUnion) {
	if c := b.GetCacheControl(); c != nil {
		*c = sdk.NewCacheControlEphemeralParam()
	}
}

// visible replaces what the API refuses: empty text.
func visible(text, none string) string {
	if strings.TrimSpace(text) == "" {
		return none
	}
	return text
}
