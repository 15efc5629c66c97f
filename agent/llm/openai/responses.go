package openai

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	goopenai "github.com/sashabaranov/go-openai"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
	"github.com/zephbot/zephbot/agent/llm/history"
	"github.com/zephbot/zephbot/agent/llm/media"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

const (
	// minOutput is the smallest max_output_tokens that OpenAI accepts.
	minOutput = 16
	// maxUserID is the longest safety_identifier and prompt_cache_key that OpenAI accepts.
	maxUserID = 64
)

// responses implements POST /responses. It stores nothing at the vendor (store = false): the whole history is sent each
// time, and reasoning is kept encrypted, behind a tool call in llm.ToolUse.Extra, before an answer without calls in
// llm.Message.Extra, and sent back only to the host and model that it came from.
type responses struct {
	provider *Provider
	origin   string // host
}

func (w *responses) chat(
	ctx context.Context, x *exchange, req *llm.Request, contents *media.Contents, emit func(string),
) (*llm.Response, error) {
	res, err := w.askOnce(ctx, x, req, contents, true, emit)
	if c, ok := x.rejectedWith(err); ok && ofReasoning(&c) {
		// After a change of the key's organisation, the server cannot read older reasoning; another one misses what it
		// never stored. The conversation can continue without it.
		w.provider.o.Log.Warn().Str("provider", w.provider.o.Name).
			Msg("server cannot read its earlier reasoning; sent without it")
		x.resetForm()
		return w.askOnce(ctx, x, req, contents, false, emit)
	}
	return res, err
}

// ofReasoning recognises a refusal of reasoning that was sent back.
func ofReasoning(c *complaint.Complaint) bool {
	lower := strings.ToLower(c.Message)
	return c.Has("invalid_encrypted_content") || strings.Contains(lower, "required following item") ||
		strings.Contains(lower, "items are not persisted")
}

// responsesMark is in every event of a stream of the Responses API: in its type, or in its object.
var responsesMark = []byte(`"response`)

func (w *responses) askOnce(
	ctx context.Context, x *exchange, req *llm.Request, contents *media.Contents,
	reasoning bool, emit func(string),
) (*llm.Response, error) {
	form := history.Rules{History: x.form.Dialect.History}
	form.Reasoning = "" // it is about fields of chat completions
	req = form.Request(req)
	list, err := x.form.Boxes[1].Of(req, &x.form.Dialect.Schema, responseTools)
	if err != nil {
		return nil, err
	}
	names, tools := list.Names, list.Text
	req = list.Noted(req)
	x.tools, x.names, x.stream, x.mark = tools, names, true, responsesMark
	body := w.makeRequest(req, names, contents, reasoning, standIn(tools))
	stream, err := w.provider.newSDK(x).CreateResponseStream(ctx, body)
	if err != nil {
		return nil, err //nolint:wrapcheck // classified by Provider
	}
	defer func() { _ = stream.Close() }()
	r := &report{provider: w.provider, emit: emit, think: x.think}
	for r.status == "" {
		x.listen()
		raw, err := stream.RecvRaw()
		x.pause()
		if errors.Is(err, io.EOF) {
			if x.frames.ended && r.finishWithout() {
				break
			}
			err = w.provider.unansweredError(
				x, r.size > 0 || len(r.items) > 0, "stream ended without response.completed",
			)
		}
		if err != nil {
			return nil, err
		}
		if err := r.takeEvent(raw); err != nil {
			return nil, err
		}
	}
	res, err := r.makeResponse(w, names)
	if err == nil {
		err = x.hear(res)
	}
	if err == nil {
		err = wire.FilledWindow(req, res, cmp.Or(req.MaxTokens, w.provider.o.MaxTokens))
	}
	return res, err
}

// makeRequest converts the conversation to the vendor's form.
func (w *responses) makeRequest(
	req *llm.Request, names *wire.Names, contents *media.Contents, reasoning bool, tools []goopenai.Tool,
) goopenai.CreateResponseRequest {
	store := false
	out := goopenai.CreateResponseRequest{
		Model: w.provider.o.Model, Instructions: req.System, Store: &store,
		Input:          w.makeInput(req, names, contents, reasoning),
		PromptCacheKey: userID(req.User), SafetyIdentifier: userID(req.User), Tools: tools,
	}
	if limit := cmp.Or(req.MaxTokens, w.provider.o.MaxTokens); limit > 0 {
		out.MaxOutputTokens = max(limit, minOutput)
	}
	if w.provider.o.Dialect.Traits.Encrypted {
		out.Include = []goopenai.ResponseInclude{goopenai.ResponseIncludeReasoningEncryptedContent}
	}
	return out
}

// responseTool is a tool in the vendor's form.
type responseTool struct {
	Description string            `json:"description,omitempty"`
	Name        string            `json:"name"`
	Parameters  json.RawMessage   `json:"parameters"`
	Strict      bool              `json:"strict"`
	Type        goopenai.ToolType `json:"type"`
}

// responseTools writes tools in the vendor's form. The default of strict is true here, and the vendor would rewrite or
// refuse schemas.
func responseTools(list []wire.Tool) ([]byte, error) {
	out := make([]responseTool, len(list))
	for i, t := range list {
		out[i] = responseTool{
			Name:        t.Name,
			Description: t.Description,
			Parameters:  t.Schema,
			Type:        goopenai.ToolTypeFunction,
		}
	}
	return json.Marshal(out) //nolint:wrapcheck // by the box
}

// userID shortens an id that is too long for the vendor.
func userID(id string) string {
	if len(id) <= maxUserID {
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])
}

// functionCall is an input item that the SDK lacks.
type functionCall struct {
	Type      string `json:"type"`
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// makeInput converts the messages to items.
func (w *responses) makeInput(req *llm.Request, names *wire.Names, contents *media.Contents, reasoning bool) []any {
	items := []any{}
	for i := range req.Messages {
		m := &req.Messages[i]
		switch {
		case m.Result != nil:
			items = append(items, goopenai.ResponseFunctionCallOutput{
				Type: "function_call_output", CallID: m.Result.ID,
				Output: spokenContent(resultText(m.Result, contents), m.Result.Parts, contents),
			})
		case len(m.Uses) > 0:
			items = w.addUses(items, m, names, reasoning)
		default:
			text := contents.Text(m.Text, m.Parts)
			if strings.TrimSpace(text) == "" {
				text = history.Empty
			}
			var lead lead
			if m.Role == llm.Assistant {
				lead = w.leadOf(m)
			}
			if reasoning {
				items = appendRaw(items, lead.Reasoning)
			}
			items = append(items, speechItem(m.Role, spokenContent(text, m.Parts, contents), lead.Phase))
		}
	}
	return items
}

// spokenContent returns a text, or a list of it and the contents that belong to it.
func spokenContent(text string, parts []llm.Part, contents *media.Contents) any {
	sent := contents.Sent(parts)
	if len(sent) == 0 {
		return text
	}
	list := []any{goopenai.ResponseInputText{Type: "input_text", Text: text}}
	for _, p := range sent {
		c, _, _ := contents.Of(&p)
		if strings.HasPrefix(c.Type, "image/") { // whatever it was said to be
			list = append(list, goopenai.ResponseInputImage{Type: "input_image", Detail: "auto", ImageURL: c.URL()})
			continue
		}
		list = append(list, goopenai.ResponseInputFile{
			Type: "input_file", Filename: cmp.Or(p.Name, "file.pdf"), FileData: c.URL(),
		})
	}
	return list
}

func speechItem(role llm.Role, content any, phase string) any {
	return goopenai.ResponseInputMessage{Type: "message", Role: string(role), Content: content, Phase: phase}
}

// addUses converts an assistant message with calls, in the order in which the vendor sent it:
// reasoning, text, reasoning, call.
func (w *responses) addUses(items []any, m *llm.Message, names *wire.Names, reasoning bool) []any {
	for i, u := range m.Uses {
		from := w.originsOf(u.Extra)
		if !reasoning {
			from = origins{Phase: from.Phase}
		}
		if i == 0 {
			if reasoning && len(from.Lead) == 0 { // the calls were read in the text
				from.Lead = w.leadOf(m).Reasoning
			}
			items = appendRaw(items, from.Lead)
			if m.Text != "" {
				items = append(items, speechItem(m.Role, m.Text, from.Phase))
			}
		}
		items = appendRaw(items, from.Reasoning)
		items = append(items, functionCall{
			Type:      "function_call",
			CallID:    u.ID,
			Name:      names.Encode(u.Name),
			Arguments: string(names.EncodeArgs(u.Name, u.Args)),
		})
	}
	return items
}

func appendRaw(items []any, more []json.RawMessage) []any {
	for _, raw := range more {
		items = append(items, raw)
	}
	return items
}

// originsOf reads the data attached to a call if this host and model sent it.
func (w *responses) originsOf(extra json.RawMessage) origins {
	if len(extra) == 0 { // before from is allocated: most calls have none
		return origins{}
	}
	var from origins
	if json.Unmarshal(extra, &from) != nil ||
		from.Host != w.origin || from.Model != w.provider.o.Model {
		return origins{}
	}
	return from
}

// lead is what precedes a message of the model that makes no calls: its reasoning, and the phase of its text.
type lead struct {
	Reasoning []json.RawMessage
	Phase     string
}

// The names of the fields of a lead in history.Opaque.
const (
	leadField  = "lead"
	phaseField = "phase"
)

// leadOf reads the lead of a message if this host and model sent it.
func (w *responses) leadOf(m *llm.Message) lead {
	var l lead
	fields, own := history.FieldsOf(m, w.origin, w.provider.o.Model)
	if !own {
		return l
	}
	if json.Unmarshal(fields[leadField], &l.Reasoning) != nil {
		l.Reasoning = nil
	}
	if json.Unmarshal(fields[phaseField], &l.Phase) != nil {
		l.Phase = ""
	}
	return l
}

// leadExtra encodes the lead of an answer for llm.Response.Extra; nil = nothing has to be sent back.
func (w *responses) leadExtra(l *lead) json.RawMessage {
	kept := history.Opaque{Host: w.origin, Model: w.provider.o.Model, Fields: map[string]json.RawMessage{}}
	for field, value := range map[string]any{leadField: l.Reasoning, phaseField: l.Phase} {
		if text, err := json.Marshal(value); err == nil && string(text) != "null" && string(text) != `""` {
			kept.Fields[field] = text
		}
	}
	if len(kept.Fields) == 0 {
		return nil
	}
	return kept.Extra()
}

// encodeExtra encodes what has to be sent back with a call; nil = nothing.
func (w *responses) encodeExtra(from origins) json.RawMessage {
	if len(from.Lead) == 0 && len(from.Reasoning) == 0 && from.Phase == "" {
		return nil
	}
	from.Host, from.Model = w.origin, w.provider.o.Model
	data, err := json.Marshal(from)
	if err != nil {
		w.provider.o.Log.Warn().Str("provider", w.provider.o.Name).
			Err(fmt.Errorf("keep reasoning: %w", err)).Msg("reasoning was dropped")
		return nil
	}
	return data
}
