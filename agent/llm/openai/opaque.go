package openai

import (
	"encoding/json"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/history"
)

// returnedFields collects the fields of an answer that its server wants back with the message: its reasoning, as a text
// or as a list of details. They are opaque: what is shown of them is read elsewhere.
type returnedFields struct {
	content, reasoning returnedText
	details            []json.RawMessage
	size               int // bytes; above history.MaxOpaque nothing is kept
}

// returnedText is a text that arrives in pieces, as the inside of a JSON string: it goes back byte for byte, and a
// surrogate pair may be cut between two pieces. An empty one is sent back as such, one that was never given is not.
type returnedText struct {
	inside strings.Builder
	given  bool
}

// addDelta takes the fields of one delta.
func (r *returnedFields) addDelta(d *delta) {
	r.addText(&r.content, d.ReasoningContent)
	r.addText(&r.reasoning, d.Reasoning)
	var details []json.RawMessage
	if len(d.ReasoningDetails) == 0 || json.Unmarshal(d.ReasoningDetails, &details) != nil {
		return
	}
	for _, detail := range details {
		if r.size += len(detail); r.size > history.MaxOpaque {
			return
		}
		if last := len(r.details) - 1; last >= 0 {
			if whole := joinedDetail(r.details[last], detail); whole != nil {
				r.details[last] = whole
				continue
			}
		}
		r.details = append(r.details, detail)
	}
}

func (r *returnedFields) addText(t *returnedText, raw json.RawMessage) {
	if len(raw) < 2 || raw[0] != '"' {
		return
	}
	t.given = true
	if r.size += len(raw) - 2; r.size <= history.MaxOpaque {
		t.inside.Write(raw[1 : len(raw)-1])
	}
}

// joinedDetail joins two pieces of one detail; nil = they are two. A stream sends the text of a detail in pieces and
// its other fields with one of them.
func joinedDetail(a, b json.RawMessage) json.RawMessage {
	var before, after map[string]json.RawMessage
	if json.Unmarshal(a, &before) != nil || json.Unmarshal(b, &after) != nil {
		return nil
	}
	text := ""
	switch kind := string(before["type"]); {
	case kind != string(after["type"]) || string(before["index"]) != string(after["index"]):
		return nil
	case kind == `"reasoning.text"`:
		text = "text"
	case kind == `"reasoning.summary"`:
		text = "summary"
	default: // encrypted data is never cut
		return nil
	}
	if valuesDiffer(before["id"], after["id"]) || isPresent(before["signature"]) && isPresent(after[text]) {
		return nil
	}
	first, ok := insideQuotes(before[text])
	second, alsoOK := insideQuotes(after[text])
	if !ok || !alsoOK {
		return nil
	}
	for name, value := range after {
		if isPresent(value) || before[name] == nil {
			before[name] = value
		}
	}
	before[text] = json.RawMessage(`"` + first + second + `"`)
	out, err := json.Marshal(before)
	if err != nil {
		return nil
	}
	return out
}

// insideQuotes returns what stands between the quotes of a JSON string; nothing for null,
// and false for any other value.
func insideQuotes(value json.RawMessage) (string, bool) {
	if !isPresent(value) {
		return "", true
	}
	if value[0] != '"' {
		return "", false
	}
	return string(value[1 : len(value)-1]), true
}

// isPresent reports whether a value is there and not null.
func isPresent(value json.RawMessage) bool { return len(value) > 0 && string(value) != "null" }

// valuesDiffer reports whether two values are there and not the same.
func valuesDiffer(a, b json.RawMessage) bool {
	return isPresent(a) && isPresent(b) && string(a) != string(b)
}

// encodeExtra returns what belongs into llm.Response.Extra; nil = nothing has to be sent back. named: where the answer
// came from is kept in any case.
func (r *returnedFields) encodeExtra(host, model string, named bool) json.RawMessage {
	if r.size > history.MaxOpaque {
		return nil
	}
	fields := map[string]json.RawMessage{}
	for name, t := range map[string]*returnedText{"reasoning_content": &r.content, "reasoning": &r.reasoning} {
		if t.given {
			fields[name] = json.RawMessage(`"` + t.inside.String() + `"`)
		}
	}
	if len(r.details) > 0 {
		if list, err := json.Marshal(r.details); err == nil {
			fields["reasoning_details"] = list
		}
	}
	if len(fields) == 0 && !named {
		return nil
	}
	kept := history.Opaque{Host: host, Model: model, Fields: fields}
	return kept.Extra()
}

// keepsReasoning reports whether the answer to a request is one whose reasoning the server may want back.
func keepsReasoning(rules *history.Rules, req *llm.Request, res *llm.Response) bool {
	switch rules.Reasoning {
	case dialect.ReasoningNever:
		return false
	case dialect.ReasoningAll, dialect.ReasoningKept:
		return true
	}
	last := len(req.Messages) - 1
	return len(res.Uses) > 0 || last >= 0 && req.Messages[last].Role == llm.ToolRole
}
