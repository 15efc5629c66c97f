package openai

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/textcall"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// maxItems bounds the output items of one answer.
const maxItems = 1024

// The kinds of output items that are used.
const (
	messageItem   = "message"
	callItem      = "function_call"
	reasoningItem = "reasoning"
)

// report assembles an answer from the events of the Responses API.
type report struct {
	provider *Provider
	emit     func(string)
	think    func(string) // gets what the server shows of the model's thoughts

	size     int   // bytes of text and arguments
	speaking *item // the item whose text came last
	items    []*item
	refused  bool

	thought wire.Joiner

	status, reason string // of the response; status "" = not finished
	usage          llm.Usage
	model          string
}

// item is an output item being assembled.
type item struct {
	kind, id  string
	index     int
	announced bool // by output_item.added
	parts     map[int]bool

	callID, name string
	args         string
	pieces       strings.Builder // arguments as they arrive; args, if set, is the whole
	joiner       wire.Joiner     // of text or arguments in pieces
	raw          json.RawMessage // for reasoning
	phase        string
}

// argumentText returns the call's arguments so far.
func (i *item) argumentText() string {
	if i.args != "" {
		return i.args
	}
	return i.pieces.String()
}

// responseEvent has the fields of all events that are used. A server that does not stream sends the response itself.
type responseEvent struct {
	Type   string `json:"type"`
	Object string `json:"object"`
}

type itemEvent struct {
	ItemID    string          `json:"item_id"`
	Index     *int            `json:"output_index"`
	Part      int             `json:"content_index"`
	Delta     wire.Fragment   `json:"delta"`
	Text      string          `json:"text"`
	Refusal   string          `json:"refusal"`
	Arguments json.RawMessage `json:"arguments"`
	Item      json.RawMessage `json:"item"`
}

// outputItem is an item as the server encodes it.
type outputItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Phase     string          `json:"phase"`
	Content   []struct {
		Type    string `json:"type"`
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// takeEvent adds one event of the output of frames. Unknown event types are ignored, as OpenAI asks of its clients.
func (r *report) takeEvent(raw []byte) error {
	var e struct {
		Frame   json.RawMessage `json:"frame"`
		Failure json.RawMessage `json:"failure"`
	}
	var head responseEvent
	err := json.Unmarshal(raw, &e)
	switch {
	case err != nil:
		return r.garbledError(err)
	case len(e.Failure) > 0:
		return reportedFailure(e.Failure)
	}
	if err := json.Unmarshal(e.Frame, &head); err != nil {
		return r.garbledError(err)
	}
	switch head.Type {
	case "error":
		return reportedFailure(e.Frame)
	case "response.created", "response.in_progress", "response.queued",
		"response.completed", "response.incomplete", "response.failed":
		var body struct {
			Response snapshot `json:"response"`
		}
		if err := json.Unmarshal(e.Frame, &body); err != nil {
			return r.garbledError(err)
		}
		if body.Response.Status == "" {
			body.Response.Status = strings.TrimPrefix(head.Type, "response.")
		}
		return r.takeSnapshot(&body.Response)
	case "":
		var s snapshot
		if head.Object != "response" {
			return nil
		}
		if err := json.Unmarshal(e.Frame, &s); err != nil {
			return r.garbledError(err)
		}
		return r.takeSnapshot(&s)
	default:
		return r.addPart(head.Type, e.Frame)
	}
}

func (r *report) garbledError(err error) error {
	text := r.provider.o.Key.Clean("read event of the stream: " + err.Error())
	return &llm.Error{Kind: llm.Truncated, Err: errors.New(text)}
}

// addPart handles an event about one item.
func (r *report) addPart(kind string, raw []byte) error {
	switch kind {
	case "response.output_item.added", "response.output_item.done",
		"response.output_text.delta", "response.output_text.done",
		"response.refusal.delta", "response.refusal.done",
		"response.function_call_arguments.delta", "response.function_call_arguments.done",
		"response.reasoning_text.delta", "response.reasoning_summary_text.delta":
	default:
		return nil
	}
	var e itemEvent
	if err := json.Unmarshal(raw, &e); err != nil {
		return r.garbledError(err)
	}
	switch kind {
	case "response.output_item.added", "response.output_item.done":
		return r.addItem(&e, kind == "response.output_item.added")
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		r.think(r.thought.Join(&e.Delta))
		return nil
	case "response.function_call_arguments.delta", "response.function_call_arguments.done":
		i, err := r.findItem(callItem, e.ItemID, e.Index, false)
		if err != nil {
			return err
		}
		i.pieces.WriteString(r.fitText(i.joiner.Join(&e.Delta)))
		i.args = cmp.Or(decodeArguments(e.Arguments), i.args)
		return nil
	}
	i, err := r.findItem(messageItem, e.ItemID, e.Index, false)
	if err != nil {
		return err
	}
	r.refused = r.refused || strings.HasPrefix(kind, "response.refusal")
	switch kind {
	case "response.output_text.done":
		r.addText(i, e.Part, e.Text, true)
	case "response.refusal.done":
		r.addText(i, e.Part, e.Refusal, true)
	default:
		r.addText(i, e.Part, i.joiner.Join(&e.Delta), false)
	}
	return nil
}

// addText adds text. A whole part is added only if it did not arrive in pieces. Two messages become two paragraphs.
func (r *report) addText(i *item, part int, text string, whole bool) {
	if text == "" || (whole && i.parts[part]) {
		return
	}
	if i.parts == nil {
		i.parts = map[int]bool{}
	}
	i.parts[part] = true
	if r.speaking != nil && r.speaking != i {
		text = "\n\n" + text
	}
	r.speaking = i
	text = r.fitText(text)
	r.emit(text)
}

// fitText returns the part of a text that still fits. Beyond the limit, the answer ends as if at a token limit.
func (r *report) fitText(text string) string {
	part, full := wire.FitAnswer(text, r.size)
	r.size += len(part)
	if full {
		r.status, r.reason = "incomplete", "max_output_tokens"
	}
	return part
}

// findItem returns the item that an event belongs to, or a new one. An event can arrive before
// the one that announces its item.
func (r *report) findItem(kind, id string, index *int, announce bool) (*item, error) {
	if i := r.seenItem(kind, id, index, announce); i != nil {
		return i, nil
	}
	if len(r.items) == maxItems {
		return nil, &llm.Error{Kind: llm.Invalid, Err: fmt.Errorf("answer has more than %d items", maxItems)}
	}
	i := &item{kind: kind, id: id}
	if index != nil {
		i.index = *index
	} else if n := len(r.items); n > 0 {
		i.index = r.items[n-1].index
	}
	r.items = append(r.items, i)
	return i, nil
}

// seenItem finds a known item; nil = none. The id takes precedence over the index, because some gateways change ids
// between events and some servers give every item index 0.
func (r *report) seenItem(kind, id string, index *int, announce bool) *item {
	for _, i := range slices.Backward(r.items) {
		if i.kind == kind && id != "" && i.id == id {
			return i
		}
	}
	nameless := index == nil && id == "" && !announce // belongs to the latest item
	for _, i := range slices.Backward(r.items) {
		if i.kind == kind && !(announce && i.announced) && (nameless || (index != nil && i.index == *index)) {
			return i
		}
	}
	return nil
}

// addItem handles an announced or finished item.
func (r *report) addItem(e *itemEvent, announce bool) error {
	var o outputItem
	if err := json.Unmarshal(e.Item, &o); err != nil {
		return r.garbledError(err)
	}
	if o.Type != messageItem && o.Type != callItem && o.Type != reasoningItem {
		return nil
	}
	i, err := r.findItem(o.Type, o.ID, e.Index, announce)
	if err != nil {
		return err
	}
	i.announced = i.announced || announce
	r.fillItem(i, &o, e.Item, !announce)
	return nil
}

// fillItem adds the server's data to an item. An announcement contains only the beginning of text and
// arguments, which is sent again.
func (r *report) fillItem(i *item, o *outputItem, raw json.RawMessage, done bool) {
	i.id = cmp.Or(i.id, o.ID)
	i.callID = cmp.Or(o.CallID, i.callID)
	i.name = textcall.CleanName(cmp.Or(o.Name, i.name))
	i.phase = cmp.Or(o.Phase, i.phase)
	if !done {
		return
	}
	i.args = cmp.Or(decodeArguments(o.Arguments), i.args)
	if i.kind == reasoningItem {
		i.raw = keptReasoning(raw)
	}
	for n, c := range o.Content {
		if i.kind != messageItem {
			break
		}
		switch c.Type {
		case "output_text", "text":
			r.addText(i, n, c.Text, true)
		case "refusal":
			r.refused = true
			r.addText(i, n, c.Refusal, true)
		}
	}
}

// keptReasoning returns the part of a reasoning item that can be sent again, or nil if it has no encrypted content,
// without which a server that stored nothing cannot use it.
func keptReasoning(raw json.RawMessage) json.RawMessage {
	var in struct {
		ID        string          `json:"id"`
		Summary   json.RawMessage `json:"summary"`
		Encrypted string          `json:"encrypted_content"`
	}
	if json.Unmarshal(raw, &in) != nil || in.Encrypted == "" {
		return nil
	}
	if len(in.Summary) == 0 || in.Summary[0] != '[' {
		in.Summary = json.RawMessage("[]")
	}
	out, err := json.Marshal(struct {
		Type      string          `json:"type"`
		ID        string          `json:"id"`
		Summary   json.RawMessage `json:"summary"`
		Encrypted string          `json:"encrypted_content"`
	}{reasoningItem, in.ID, in.Summary, in.Encrypted})
	if err != nil {
		return nil
	}
	return out
}

// finishWithout ends an answer after [DONE] without a last event, if it has said anything.
func (r *report) finishWithout() bool {
	if r.size == 0 && len(r.items) == 0 {
		return false
	}
	r.status = "completed"
	return true
}

// makeResponse returns the whole answer, without its text.
func (r *report) makeResponse(w *responses, names *wire.Names) (*llm.Response, error) {
	r.think(r.thought.Rest())
	for _, i := range r.items {
		if i.kind == messageItem {
			r.emit(i.joiner.Rest())
		} else {
			i.pieces.WriteString(i.joiner.Rest())
		}
	}
	uses, before, err := r.makeUses(w, names)
	if err != nil {
		return nil, err
	}
	res := &llm.Response{Uses: uses, Usage: r.usage, Model: r.model, Stop: llm.StopEnd}
	switch {
	case r.reason == "content_filter":
		res.Stop, res.Filtered = llm.StopRefusal, !r.refused
	case r.status == "incomplete":
		res.Stop = llm.StopLength
	case len(uses) > 0:
		res.Stop = llm.StopTools
	case r.refused:
		res.Stop = llm.StopRefusal
	default:
		res.Extra = w.leadExtra(&before)
	}
	return res, nil
}

// makeUses converts the calls to tool uses with the reasoning that led to them; of an answer without calls, it
// returns what precedes its text. A call that was cut off before its arguments began is dropped: without
// arguments it would be a different call.
func (r *report) makeUses(w *responses, names *wire.Names) ([]llm.ToolUse, lead, error) {
	var out []llm.ToolUse
	var from origins
	taken := map[string]bool{}
	for _, i := range r.items {
		switch i.kind {
		case reasoningItem:
			if i.raw != nil {
				from.Reasoning = append(from.Reasoning, i.raw)
			}
			continue
		case messageItem:
			if len(out) == 0 {
				from.Lead, from.Reasoning = append(from.Lead, from.Reasoning...), nil
				from.Phase = i.phase
			}
			continue
		}
		args := i.argumentText()
		if strings.TrimSpace(args) == "" {
			if r.status == "incomplete" {
				continue
			}
			args = "{}"
		}
		if len(out) == maxUses {
			return nil, lead{}, &llm.Error{
				Kind: llm.Invalid,
				Err:  fmt.Errorf("answer has more than %d tool calls", maxUses),
			}
		}
		name := names.Decode(i.name)
		out = append(out, llm.ToolUse{
			ID:   r.provider.freshID(i.callID, i.name, taken),
			Name: name, Args: names.DecodeArgs(name, json.RawMessage(args)),
			Extra: w.encodeExtra(from),
		})
		from = origins{}
	}
	return out, lead{Reasoning: from.Lead, Phase: from.Phase}, nil
}
