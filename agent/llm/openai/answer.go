package openai

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/textcall"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// maxUses bounds the tool calls of one answer.
const maxUses = 128

// answer assembles an answer from its stream.
type answer struct {
	provider *Provider
	think    func(text string) // gets what the server keeps apart as thoughts
	content  wire.Joiner
	thought  wire.Joiner
	thinks   bool // there were thoughts
	size     int  // bytes of text and arguments
	full     bool // the limit was exceeded: the answer ends here, as if at a token limit
	calls    []*call
	finish   string
	refused  bool
	usage    llm.Usage
	model    string
	returned returnedFields
}

// call is a tool call being assembled.
type call struct {
	index    int
	indexed  bool
	id, name string
	args     strings.Builder
	joiner   wire.Joiner // of args
	extra    map[string]json.RawMessage
}

// event is one line of the output of frames.
type event struct {
	Frame   *chunk          `json:"frame"`
	Failure json.RawMessage `json:"failure"`
}

type chunk struct {
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *counts  `json:"usage"`
	Groq    *struct {
		Usage *counts `json:"usage"`
	} `json:"x_groq"`
}

type choice struct {
	Index   int    `json:"index"`
	Delta   *delta `json:"delta"`
	Message *delta `json:"message"` // from a server that does not stream
	// Text is all that a server says which answers a conversation in the form of the old completions.
	Text         wire.Fragment `json:"text"`
	FinishReason *string       `json:"finish_reason"`
}

type delta struct {
	Content   wire.Fragment     `json:"content"`
	Refusal   string            `json:"refusal"`
	ToolCalls []json.RawMessage `json:"tool_calls"`
	// FunctionCall is what tool_calls replaced; a few servers still send it.
	FunctionCall json.RawMessage `json:"function_call"`

	// What the model thought, which some servers want back with the message. Servers use one of these names, or two of
	// them for the same text.
	ReasoningContent json.RawMessage `json:"reasoning_content"`
	Reasoning        json.RawMessage `json:"reasoning"`
	ReasoningDetails json.RawMessage `json:"reasoning_details"`
}

// counts is the vendor's usage. Some servers count in floats.
type counts struct {
	Prompt     float64 `json:"prompt_tokens"`
	Completion float64 `json:"completion_tokens"`
	CacheHit   float64 `json:"prompt_cache_hit_tokens"` // DeepSeek
	Details    *struct {
		Cached float64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// missingPiece reports whether an event that cannot be decoded may lack a piece of the answer. A field of another type,
// such as a model that is a number or a usage that is a string, is left out, and the rest is read.
func missingPiece(err error) bool {
	odd, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return true
	}
	place := strings.TrimPrefix(odd.Field, "frame.")
	return place == "" || place == "frame" || place == "choices" ||
		place == "choices.delta" || place == "choices.message"
}

// takeEvent adds one event.
func (a *answer) takeEvent(raw []byte, emit func(string)) error {
	var e event
	if err := json.Unmarshal(raw, &e); err != nil && missingPiece(err) {
		text := a.provider.o.Key.Clean("read event of the stream: " + err.Error())
		return &llm.Error{Kind: llm.Truncated, Err: errors.New(text)}
	}
	if len(e.Failure) > 0 {
		return reportedFailure(e.Failure)
	}
	if e.Frame == nil {
		return nil
	}
	if e.Frame.Model != "" {
		a.model = e.Frame.Model
	}
	a.countUsage(e.Frame.Usage)
	if e.Frame.Groq != nil {
		a.countUsage(e.Frame.Groq.Usage)
	}
	for _, c := range e.Frame.Choices {
		if c.Index != 0 || a.full {
			continue
		}
		if err := a.addChoice(c, emit); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) addChoice(c choice, emit func(string)) error {
	d, whole := c.Delta, false
	if d == nil && c.Message != nil {
		d, whole = c.Message, true
	}
	switch {
	case d == nil:
		d = &delta{Content: c.Text}
	case c.Text.Text != "" && d.Content.Text == "" && d.Content.Raw == nil:
		d.Content = c.Text
	}
	if d != nil {
		a.returned.addDelta(d)
		text, thought := a.wordsOf(d)
		if thought != "" {
			a.thinks = true
			a.think(thought)
		}
		text += d.Refusal
		a.refused = a.refused || d.Refusal != ""
		emit(a.fitText(text))
		if isObject(d.FunctionCall) && len(d.ToolCalls) == 0 {
			raw, err := json.Marshal(map[string]json.RawMessage{"function": d.FunctionCall})
			if err != nil {
				return fmt.Errorf("read function call: %w", err)
			}
			d.ToolCalls = []json.RawMessage{raw}
		}
		for i, raw := range d.ToolCalls {
			if a.full {
				break
			}
			if err := a.toolCall(raw, whole, i); err != nil {
				return err
			}
		}
	}
	if c.FinishReason != nil && *c.FinishReason != "" {
		a.finish = strings.ToLower(*c.FinishReason)
	}
	if a.full {
		a.finish = "length"
	}
	switch a.finish {
	case "error":
		return endedError("the server ended the answer with an error")
	case "network_error", "insufficient_system_resource": // z.ai, DeepSeek
		return endedError("the server broke off the answer: " + a.finish)
	}
	return nil
}

// fitText returns the part of a text that still fits.
func (a *answer) fitText(text string) string {
	part, full := wire.FitAnswer(text, a.size)
	a.size, a.full = a.size+len(part), a.full || full
	return part
}

// wordsOf returns the text and the thoughts of a delta.
func (a *answer) wordsOf(d *delta) (text, thought string) {
	text = a.content.Join(&d.Content)
	if d.Content.Raw != nil {
		text, thought = contentParts(d.Content.Raw)
	}
	for _, field := range []json.RawMessage{d.ReasoningContent, d.Reasoning} {
		var f wire.Fragment
		if len(field) > 2 && json.Unmarshal(field, &f) == nil && f.Raw == nil {
			return text, thought + a.thought.Join(&f)
		}
	}
	if len(d.ReasoningDetails) > 2 {
		_, more := contentParts(d.ReasoningDetails)
		thought += more
	}
	return text, thought
}

// contentParts returns the text and the thoughts of content that is a list of parts (Mistral), or of details of
// reasoning (OpenRouter). Encrypted thoughts are left out.
func contentParts(raw json.RawMessage) (text, thought string) {
	var list []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		Summary  string          `json:"summary"`
		Thinking json.RawMessage `json:"thinking"` // text, or a list of parts
	}
	if json.Unmarshal(raw, &list) != nil {
		return "", ""
	}
	for _, p := range list {
		switch {
		case p.Type == "text" || p.Type == "output_text":
			text += p.Text
		case p.Type == "thinking" && len(p.Thinking) > 0:
			var whole string
			if json.Unmarshal(p.Thinking, &whole) != nil {
				whole, _ = contentParts(p.Thinking)
			}
			thought += whole
		case strings.HasPrefix(p.Type, "reasoning"):
			thought += p.Text + p.Summary
		}
	}
	return text, thought
}

// isObject reports whether raw can be a JSON object.
func isObject(raw json.RawMessage) bool { return len(raw) > 1 && raw[0] == '{' }

// countUsage keeps the latest usage: some servers send growing values with every chunk.
func (a *answer) countUsage(c *counts) {
	if c == nil || (c.Prompt <= 0 && c.Completion <= 0) {
		return
	}
	cached := c.CacheHit
	if c.Details != nil && c.Details.Cached > 0 {
		cached = c.Details.Cached
	}
	a.usage = llm.Usage{Input: toTokens(c.Prompt), CachedInput: toTokens(cached), Output: toTokens(c.Completion)}
}

// toTokens converts a count to an int within sane limits.
func toTokens(f float64) int { return int(min(max(f, 0), 1e12)) }

// piece is one fragment of a tool call.
type piece struct {
	Index    *int   `json:"index"`
	ID       string `json:"id"`
	Function struct {
		Name      string        `json:"name"`
		Arguments wire.Fragment `json:"arguments"`
	} `json:"function"`
}

// toolCall adds a fragment. position is used if the calls arrive as a whole message.
func (a *answer) toolCall(raw json.RawMessage, inMessage bool, position int) error {
	var p piece
	if err := json.Unmarshal(raw, &p); err != nil {
		text := a.provider.o.Key.Clean("read tool call: " + err.Error())
		return &llm.Error{Kind: llm.Truncated, Err: errors.New(text)}
	}
	if inMessage {
		p.Index = &position
	}
	p.Function.Name = textcall.CleanName(p.Function.Name)
	args := p.Function.Arguments.Text
	if raw := p.Function.Arguments.Raw; raw != nil {
		args = string(raw) // the object itself instead of its text
	}
	c := a.findCall(&p, args)
	if c == nil {
		if len(a.calls) == maxUses {
			return &llm.Error{Kind: llm.Invalid, Err: fmt.Errorf("answer has more than %d tool calls", maxUses)}
		}
		c = &call{}
		if p.Index != nil {
			c.index, c.indexed = *p.Index, true
		}
		a.calls = append(a.calls, c)
	}
	if p.Function.Arguments.Raw == nil {
		args = c.joiner.Join(&p.Function.Arguments)
	}
	c.addPiece(&p, a.fitText(args))
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) == nil {
		for _, known := range []string{"index", "id", "type", "function"} {
			delete(fields, known)
		}
		if c.extra == nil {
			c.extra = map[string]json.RawMessage{}
		}
		maps.Copy(c.extra, fields)
	}
	return nil
}

// findCall returns the call that a fragment belongs to; nil = a new one. Normally the index decides. Some servers give
// every call index 0 or none, so a different id, or a name with arguments after complete arguments, begins a new call
// too.
func (a *answer) findCall(p *piece, args string) *call {
	for _, c := range slices.Backward(a.calls) {

		if !c.ownsPiece(p) {
			continue
		}
		differs := c.args.String() != args || c.name != p.Function.Name
		if p.ID == "" && completeObject(args) && c.isClosed() && differs && p.Function.Name != "" {
			return nil
		}
		return c
	}
	return nil
}

// ownsPiece compares index and id if they are given.
func (c *call) ownsPiece(p *piece) bool {
	sameIndex := p.Index != nil && c.indexed && c.index == *p.Index
	switch {
	case p.ID != "" && c.id == p.ID:
		return sameIndex || p.Index == nil || !c.indexed
	case p.ID != "" && c.id != "":
		return false
	case p.Index != nil && c.indexed:
		return sameIndex
	default:
		return p.ID == "" && p.Index == nil
	}
}

// isClosed reports whether the arguments are a complete object.
func (c *call) isClosed() bool { return completeObject(c.args.String()) }

// completeObject reports whether s is a complete JSON object. Checking the ends first keeps a
// long stream of fragments cheap.
func completeObject(s string) bool {
	return len(s) > 1 && s[0] == '{' && s[len(s)-1] == '}' && json.Valid([]byte(s))
}

// addPiece appends a fragment. A name that is repeated or grows with every chunk is not duplicated, nor are arguments
// that are sent again as a whole.
func (c *call) addPiece(p *piece, args string) {
	if c.id == "" {
		c.id = p.ID
	}
	switch name := p.Function.Name; {
	case name == "" || name == c.name:
	case c.name == "" || strings.HasPrefix(name, c.name):
		c.name = name
	case c.args.Len() == 0:
		c.name += name
	}
	if c.args.String() == args && c.isClosed() {
		return
	}
	c.args.WriteString(args)
}

// decodeArguments decodes arguments, which are a string on the wire; some servers send the object itself.
func decodeArguments(raw json.RawMessage) string {
	var s string
	if len(raw) == 0 || json.Unmarshal(raw, &s) == nil {
		return s
	}
	return string(raw)
}

// endText adds what stands for half a character at the end of a text.
func (a *answer) endText(emit func(string)) {
	a.think(a.thought.Rest())
	emit(a.content.Rest())
	for _, c := range a.calls {
		c.args.WriteString(c.joiner.Rest())
	}
}

// hasBegun reports whether anything of an answer has come.
func (a *answer) hasBegun() bool { return a.size > 0 || a.thinks || len(a.calls) > 0 }

// makeResponse returns the whole answer, without its text.
func (a *answer) makeResponse(origin string, names *wire.Names) (*llm.Response, error) {
	res := &llm.Response{Usage: a.usage, Model: a.model, Uses: a.makeUses(origin, names)}
	switch reason, _, _ := strings.Cut(a.finish, ":"); reason { // Gemini: "content_filter: SAFETY"
	case "content_filter", "refusal", "safety", "sensitive", "recitation",
		"blocklist", "prohibited_content", "spii", "image_safety", "moderation":
		res.Stop, res.Filtered = llm.StopRefusal, !a.refused
	case "model_context_window_exceeded":
		if !a.hasBegun() {
			return nil, &llm.Error{Kind: llm.TooLong, Err: errors.New("the conversation fills the model's window")}
		}
		res.Stop = llm.StopLength
	case "length", "max_tokens", "model_length":
		res.Stop = llm.StopLength
	default:
		res.Stop = llm.StopEnd
		switch {
		case len(res.Uses) > 0: // whatever the stop reason is called
			res.Stop = llm.StopTools
		case a.refused:
			res.Stop = llm.StopRefusal
		case strings.HasPrefix(a.finish, "tool"):
			res.Stop = llm.StopTools // they may be in the text
		}
	}
	return res, nil
}

// makeUses gives the calls their final ids, unique and not empty, and decodes their names.
func (a *answer) makeUses(origin string, names *wire.Names) []llm.ToolUse {
	var out []llm.ToolUse
	taken := map[string]bool{}
	for _, c := range a.calls {
		id := a.provider.freshID(c.id, c.name, taken)
		args := c.args.String()
		if strings.TrimSpace(args) == "" {
			args = "{}"
		}
		name := names.Decode(c.name)
		u := llm.ToolUse{ID: id, Name: name, Args: names.DecodeArgs(name, json.RawMessage(args))}
		if len(c.extra) > 0 {
			if extra, err := json.Marshal(origins{
				Host:      origin,
				ChatModel: a.provider.o.Model,
				Fields:    c.extra,
			}); err == nil {
				u.Extra = extra
			}
		}
		out = append(out, u)
	}
	return out
}

// freshID returns a call's final id: the server's own if it is present and unique. The tool's name is for the log.
func (p *Provider) freshID(own, tool string, taken map[string]bool) string {
	id := own
	for id == "" || taken[id] {
		// Nine letters and digits satisfy even the strictest server (Mistral).
		id = rand.Text()[:9]
	}
	if id != own {
		p.o.Log.Debug().Str("provider", p.o.Name).Str("tool", tool).Msg("tool call id was missing or repeated")
	}
	taken[id] = true
	return id
}
