package anthropic

import (
	"encoding/json"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/negotiate"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// makeRequest builds a request. Its order is the vendor's cache order: tools, system, messages. Two markers tell the
// cache how far to store: the end of the system prompt (tools and system stay the same throughout a conversation), and
// the end of the messages (the next call begins with them).
func (p *Provider) makeRequest(req *llm.Request, names *wire.Names, tools []byte, contents *media.Contents) *request {
	out := &request{
		Model: p.o.Model, MaxTokens: p.o.MaxTokens, Tools: standIn(tools),
		Messages: p.makeMessages(req.Messages, names, contents), Stream: true,
	}
	if req.MaxTokens > 0 {
		out.MaxTokens = req.MaxTokens
	}
	if hasPrompt(req) {
		out.System = []part{textPart(req.System)}
		markCache(&out.System[0])
	}
	if req.User != "" {
		out.Metadata = &metadata{User: req.User}
	}
	return out
}

// hasPrompt reports whether a request has a system prompt.
func hasPrompt(req *llm.Request) bool { return strings.TrimSpace(req.System) != "" }

// encodeTools returns the tools of a request in the vendor's form, which is computed once for each list. Without a
// system prompt, the last tool carries the cache marker.
func (p *Provider) encodeTools(req *llm.Request, form *negotiate.Form) (*wire.ToolList, error) {
	box := &form.Boxes[1]
	if hasPrompt(req) {
		box = &form.Boxes[0]
	}
	return box.Of(req, &form.Dialect.Schema, func(tools []wire.Tool) ([]byte, error) { //nolint:wrapcheck // by the caller
		return llm.PlainJSON(listTools(tools, !hasPrompt(req)))
	})
}

// listTools converts tools to the vendor's form.
func listTools(tools []wire.Tool, marked bool) []tool {
	out := make([]tool, len(tools))
	for i, t := range tools {
		out[i] = tool{Name: t.Name, Description: t.Description, Schema: t.Schema}
	}
	if marked {
		out[len(out)-1].Cache = ephemeralMark()
	}
	return out
}

// makeMessages converts a conversation that has the form of history.Rules. Results become blocks of the user's message
// that follows, and adjacent messages of one role are merged.
func (p *Provider) makeMessages(list []llm.Message, names *wire.Names, contents *media.Contents) []message {
	out := []message{}
	add := func(role string, parts ...part) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, parts...)
			return
		}
		out = append(out, message{Role: role, Content: parts})
	}
	for i := range list {
		m := &list[i]
		switch {
		case m.Result != nil:
			content := makeBlocks(m.Result.Text, "(no output)", m.Result.Parts, contents)
			add(roleUser, part{Type: partResult, Use: m.Result.ID, Failed: &m.Result.Error, Content: content})
		case m.Role == llm.Assistant:
			add(roleAssistant, p.makeAssistant(m, names)...)
		default:
			add(roleUser, makeBlocks(m.Text, "(empty)", m.Parts, contents)...)
		}
	}
	if n := len(out); n > 0 {
		markCache(&out[n-1].Content[len(out[n-1].Content)-1])
	}
	return out
}

// makeBlocks converts a text and the contents that belong to it.
func makeBlocks(text, none string, parts []llm.Part, contents *media.Contents) []part {
	out := []part{textPart(visibleText(contents.Text(text, parts), none))}
	for _, p := range contents.Sent(parts) {
		content, _, _ := contents.Of(&p)
		block := part{Type: partImage, Source: &source{Type: "base64", MediaType: content.Type, Data: content.Data}}
		if !strings.HasPrefix(content.Type, "image/") { // whatever it was said to be
			block.Type, block.Title = partDocument, p.Name
		}
		out = append(out, block)
	}
	return out
}

// makeAssistant converts a message of the model: its thinking, unchanged and at its place, its text and its uses.
func (p *Provider) makeAssistant(m *llm.Message, names *wire.Names) []part {
	var blocks []part
	for i, u := range m.Uses {
		from := p.originOf(u.Extra)
		blocks = appendThoughts(blocks, from.Thoughts)
		if i == 0 && strings.TrimSpace(m.Text) != "" {
			blocks = append(blocks, textPart(m.Text))
		}
		blocks = appendThoughts(blocks, from.Later)
		blocks = append(blocks, part{
			Type:  partUse,
			ID:    u.ID,
			Name:  names.Encode(u.Name),
			Input: names.EncodeArgs(u.Name, u.Args),
		})
	}
	if len(blocks) == 0 {
		blocks = append(blocks, textPart(visibleText(m.Text, "(empty)")))
	}
	return blocks
}

// originOf reads what belongs to a use, if this host and this model gave it: the vendor checks the signatures of
// thinking. What versions before kept does not name the model; it goes to its host.
func (p *Provider) originOf(extra json.RawMessage) origin {
	if len(extra) == 0 { // before from is allocated: most calls have none
		return origin{}
	}
	var from origin
	if json.Unmarshal(extra, &from) != nil || from.Host != p.host || from.Model != "" && from.Model != p.o.Model {
		return origin{}
	}
	return from
}

// appendThoughts adds blocks of thinking.
func appendThoughts(blocks []part, thoughts []thought) []part {
	for i := range thoughts {
		t := &thoughts[i]
		if t.Redacted != "" {
			blocks = append(blocks, part{Type: partRedacted, Data: t.Redacted})
			continue
		}
		blocks = append(blocks, part{Type: partThinking, Signature: &t.Signature, Thinking: &t.Text})
	}
	return blocks
}

// markCache sets a cache marker on a block.
func markCache(b *part) {
	if b.Type != partThinking && b.Type != partRedacted { // these cannot carry it
		b.Cache = ephemeralMark()
	}
}

// visibleText replaces empty text, which the API rejects.
func visibleText(text, none string) string {
	if strings.TrimSpace(text) == "" {
		return none
	}
	return text
}
