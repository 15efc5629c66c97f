package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/history"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// chatMessage is a message of chat completions. The SDK's lacks fields of other vendors.
type chatMessage struct {
	Role    string `json:"role"`
	Content any    `json:"content"` // a string, a list of parts, or nil: servers want the key also beside calls
	Name    string `json:"name,omitempty"`
	// ToolCalls is a []chatCall, or a []json.RawMessage if one of them has fields of a vendor; nil = none.
	ToolCalls  any    `json:"tool_calls,omitempty"`
	ToolCallID string `json:"tool_call_id,omitempty"`

	// What a server wants back of its model's thoughts, as it sent them.
	ReasoningContent json.RawMessage `json:"reasoning_content,omitempty"`
	Reasoning        json.RawMessage `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"`
}

type chatCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// messageForm returns how messages have to look for the server. Contents of results follow them, because a
// tool's message takes text only.
func (w *completions) messageForm(d *dialect.Dialect, contents *media.Contents) *history.Rules {
	rules := &history.Rules{History: d.History, Host: w.origin, Model: w.provider.o.Model}
	if contents != nil {
		rules.Lift = contents.Sent
	}
	return rules
}

// makeMessages encodes a conversation that has the form of the rules.
func (w *completions) makeMessages(
	rules *history.Rules, req *llm.Request, names *wire.Names, contents *media.Contents,
) ([]byte, error) {
	list := make([]chatMessage, 0, len(req.Messages)+1)
	if req.System != "" {
		list = append(list, chatMessage{Role: goopenai.ChatMessageRoleSystem, Content: req.System})
	}
	for i := range req.Messages {
		m := &req.Messages[i]
		out := chatMessage{Role: string(m.Role)}
		switch {
		case m.Result != nil:
			out.Content, out.ToolCallID = resultText(m.Result, contents), m.Result.ID
			if rules.ToolNames {
				out.Name = names.Encode(m.Result.Name)
			}
		case len(m.Uses) > 0:
			calls, err := w.makeCalls(m, names)
			if err != nil {
				return nil, err
			}
			if out.ToolCalls = calls; m.Text != "" || rules.EmptyContent {
				out.Content = m.Text
			}
		default:
			out.Content = spokenParts(m, contents)
		}
		if m.Role == llm.Assistant {
			fields := rules.Returned(req.Messages, i)
			out.ReasoningContent, out.ReasoningDetails = fields["reasoning_content"], fields["reasoning_details"]
			if out.ReasoningDetails == nil { // the same in another form
				out.Reasoning = fields["reasoning"]
			}
		}
		list = append(list, out)
	}
	return json.Marshal(list)
}

// spokenParts returns a text, or a list of it and the pictures that belong to it.
func spokenParts(m *llm.Message, contents *media.Contents) any {
	text := contents.Text(m.Text, m.Parts)
	sent := contents.Sent(m.Parts)
	if strings.TrimSpace(text) == "" {
		text = history.Empty
	}
	if len(sent) == 0 {
		return text
	}
	list := []goopenai.ChatMessagePart{{Type: goopenai.ChatMessagePartTypeText, Text: text}}
	for i := range sent {
		content, _, _ := contents.Of(&sent[i])
		list = append(list, goopenai.ChatMessagePart{
			Type:     goopenai.ChatMessagePartTypeImageURL,
			ImageURL: &goopenai.ChatMessageImageURL{URL: content.URL(), Detail: goopenai.ImageURLDetailAuto},
		})
	}
	return list
}

// makeCalls returns the calls of a message, with the fields that this host gave with them.
func (w *completions) makeCalls(m *llm.Message, names *wire.Names) (any, error) {
	list := make([]chatCall, len(m.Uses))
	var more []map[string]json.RawMessage // by call; nil = no call has any
	for k := range m.Uses {
		u := &m.Uses[k]
		list[k] = chatCall{ID: u.ID, Type: string(goopenai.ToolTypeFunction), Function: chatFunction{
			Name: names.Encode(u.Name), Arguments: string(names.EncodeArgs(u.Name, u.Args)),
		}}
		if fields := w.callFields(u.Extra); len(fields) > 0 {
			if more == nil {
				more = make([]map[string]json.RawMessage, len(m.Uses))
			}
			more[k] = fields
		}
	}
	if more == nil {
		return list, nil
	}
	written := make([]json.RawMessage, len(list))
	for k := range list {
		data, err := json.Marshal(list[k])
		if err != nil {
			return nil, err
		}
		written[k] = withFields(data, more[k])
	}
	return written, nil
}

// callFields returns the fields that belong to a call, if this host and model gave them. What versions before kept of a
// call does not name the model; it goes to its host.
func (w *completions) callFields(extra json.RawMessage) map[string]json.RawMessage {
	if len(extra) == 0 { // before from is allocated: most calls have none
		return nil
	}
	var from origins
	if json.Unmarshal(extra, &from) != nil || from.Host != w.origin {
		return nil
	}
	if from.ChatModel != "" && from.ChatModel != w.provider.o.Model {
		return nil
	}
	return from.Fields
}

// withFields adds fields to an object, in the order of their names. Fields that the object has are kept.
func withFields(object []byte, fields map[string]json.RawMessage) json.RawMessage {
	var own map[string]json.RawMessage
	if len(fields) == 0 || json.Unmarshal(object, &own) != nil {
		return object
	}
	var b bytes.Buffer
	b.Write(object[:len(object)-1])
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		key, err := json.Marshal(name)
		if _, known := own[name]; known || err != nil || !json.Valid(fields[name]) {
			continue
		}
		b.WriteByte(',')
		b.Write(key)
		b.WriteByte(':')
		b.Write(fields[name])
	}
	b.WriteByte('}')
	return b.Bytes()
}

// failedMark precedes the text of a tool that reports a failure, because neither API has a field for it.
const failedMark = "[the tool reports a failure]\n"

// resultText returns what the model reads of a tool's result. Our own error block needs no marker.
func resultText(r *llm.ToolResult, contents *media.Contents) string {
	text := contents.Text(r.Text, r.Parts)
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	if r.Error && !strings.HasPrefix(text, "[tool_error]") {
		text = failedMark + text
	}
	return text
}
