package textcall

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// readNamed reads an element that is called as an offered tool, and whose children are called as its
// parameters, as Cline's instructions have it. Elements of HTML that have the name of a tool have other
// children. read is false if it is none.
func (r *Reader) readNamed(text string, final bool) (n int, decided, read bool) {
	size := strings.IndexFunc(text[1:], func(c rune) bool { return !nameRune(c) || c == '/' })
	if size < 0 {
		return 0, false, !final && len(text) <= maxToken
	}
	name := text[1 : 1+size]
	tool := r.exactTool(name)
	if tool == nil {
		return 0, false, false
	}
	open := afterBlanks(text, 1+size)
	switch _, how := matchPrefix(text[open:], "/>"); {
	case how == begins && !final:
		return 0, false, true
	case how == fits && mayBeEmpty(tool):
		r.takeCalls([]writtenCall{{name: name}}, text[:open+2])
		return open + 2, true, true
	case open == len(text) || text[open] != '>':
		return 0, false, false
	}
	body, closing := text[open+1:], "</"+name+">"
	start := afterBlanks(body, 0)
	if _, how := matchPrefix(body[start:], foldMark(closing)); how == fits || how == begins {
		switch {
		case how == begins:
			return 0, false, !final
		case !mayBeEmpty(tool):
			return 0, false, false
		}
		size := open + 1 + start + len(closing)
		r.takeCalls([]writtenCall{{name: name}}, text[:size])
		return size, true, true
	}
	types := propertyTypes(tool.Schema)
	known := func(key string) bool { _, ok := types[key]; return ok }
	if body[start] == '{' {
		return r.namedObject(name, text, open+1+start, closing, known, final)
	}
	key, opened := elementKey(body[start:])
	switch {
	case opened == 0 && body[start] == '<' && strings.IndexByte(body[start:], '>') < 0:
		return 0, false, !final && len(body)-start <= maxToken
	case opened == 0 || !known(key):
		return 0, false, false
	}
	for from, tries := 0, 0; tries < maxDoubts; tries++ {
		at := strings.Index(body[from:], closing)
		if at < 0 {
			break
		}
		if values, ok := elementValues(body[:from+at], known); ok {
			size := open + 1 + from + at + len(closing)
			r.takeCalls([]writtenCall{{name: name, values: values}}, text[:size])
			return size, true, true
		}
		from += at + len(closing)
	}
	if !final {
		return 0, false, true
	}
	c := writtenCall{name: name, broken: text}
	if values, ok := elementValues(body, known); ok { // only the last closing tag is missing
		c = writtenCall{name: name, values: values}
	}
	r.takeCalls([]writtenCall{c}, text)
	return len(text), true, true
}

// namedObject reads an element with an object whose keys are parameters.
func (r *Reader) namedObject(
	name, text string, at int, closing string, known func(string) bool, final bool,
) (n int, decided, read bool) {
	size := valueEnd(text[at:])
	if size < 0 {
		return 0, false, !final
	}
	end := afterBlanks(text, at+size)
	switch _, how := matchPrefix(text[end:], foldMark(closing)); {
	case how == begins && !final:
		return 0, false, true
	case how != fits:
		return 0, false, false
	}
	c := withArguments(name, text[at:at+size])
	var fields map[string]json.RawMessage
	if json.Unmarshal(c.args, &fields) != nil {
		return 0, false, false
	}
	for key := range fields {
		if !known(key) {
			return 0, false, false
		}
	}
	end += len(closing)
	r.takeCalls([]writtenCall{c}, text[:end])
	return end, true, true
}

// exactTool returns the offered tool with a name as it is, or as it is on the wire; nil = none.
func (r *Reader) exactTool(name string) *llm.Tool {
	if name == "" {
		return nil
	}
	tool := r.findTool(name)
	if tool == nil || tool.Name != name && (r.o.Decode == nil || r.o.Decode(name) != tool.Name) {
		return nil
	}
	return tool
}

// mayBeEmpty reports whether an element without content can be a call of a tool: it wants no arguments, and no element
// of HTML has such a name.
func mayBeEmpty(tool *llm.Tool) bool {
	var schema struct {
		Required []string `json:"required"`
	}
	return strings.ContainsAny(tool.Name, "_:.") &&
		(json.Unmarshal(tool.Schema, &schema) == nil && len(schema.Required) == 0)
}

// maxReason is how much is read of a thought that a label begins before it is taken for text, in bytes.
const maxReason = 16 << 10

// matchLabel reports whether a text begins with a label of a kind, such as "Action:" or
// "**Action 1:**", and its length.
func (t *forms) matchLabel(kind, text string, final bool) (int, fit) {
	stars := 0
	for stars < len(text) && stars < 3 && text[stars] == '*' {
		stars++
	}
	how := differs
	for _, f := range t.labels {
		if f.Kind != kind {
			continue
		}
		n, ok := matchPrefix(text[stars:], f.Open)
		if ok == fits {
			at := stars + n
			for _, skipped := range []string{" \t", "0123456789", "*", " \t"} {
				for at < len(text) && at < stars+n+8 && strings.IndexByte(skipped, text[at]) >= 0 {
					at++
				}
			}
			switch {
			case at == len(text):
				ok = begins
			case text[at] == ':':
				for at++; at < len(text) && text[at] == '*'; at++ {
				}
				return at, fits
			}
		}
		if ok == begins && !final {
			how = begins
		}
	}
	return 0, how
}

// readLabelled reads a line that begins with a label of the ReAct format. A thought ends with the next label; an action
// is a call if its input follows and the tool was offered. What the model makes up as its result is left out.
func (r *Reader) readLabelled(text string, final bool) (n int, decided, read bool) {
	if len(r.o.Tools) == 0 || r.inner {
		return 0, false, false
	}
	if r.acted {
		switch _, how := r.forms.matchLabel(resultLabel, text, final); how {
		case begins:
			return 0, false, true
		case fits:
			r.state = inForeign
			return len(text), true, true
		case differs:
		}
	}
	if !r.spoken {
		switch n, how := r.forms.matchLabel(answerLabel, text, final); how {
		case begins:
			return 0, false, true
		case fits:
			r.cut = true
			return n, true, true
		case differs:
		}
	}
	if n, decided, read := r.readAction(text, final); read {
		return n, decided, true
	}
	thought, how := r.forms.matchLabel(thoughtLabel, text, final)
	if how != fits {
		return 0, false, how == begins
	}
	for at := 0; at < maxReason; {
		line := strings.IndexByte(text[at:], '\n') + 1
		if line == 0 || at+line == len(text) {
			return 0, false, !final && len(text) < maxReason
		}
		at += line
		next, how := r.forms.matchLabel(answerLabel, text[at:], final)
		call, size, v := reactCall(r.forms, text[at:], r.actionTool, final)
		switch {
		case how == begins || v == needsMore:
			return 0, false, true
		case how == fits || v == isCalls:
			r.begun, r.cut = len(r.thoughts), true
			r.addThought(text[thought:at])
			r.ended, r.since = true, len(r.text)
			if how == fits {
				return at + next, true, true
			}
			r.acted = true
			r.takeCalls([]writtenCall{call}, text[:at+size])
			return at + size, true, true
		}
	}
	return 0, false, false
}

// readAction reads a call between labels.
func (r *Reader) readAction(text string, final bool) (n int, decided, read bool) {
	call, size, v := reactCall(r.forms, text, r.actionTool, final)
	switch v {
	case needsMore:
		return 0, false, true
	case isCalls:
		r.acted = true
		r.takeCalls([]writtenCall{call}, text[:size])
		return size, true, true
	default:
		return 0, false, false
	}
}

// actionTool returns the tool that an action names, which may be in quotes or have parentheses behind it; nil = none.
func (r *Reader) actionTool(name string) *llm.Tool {
	return r.findTool(strings.TrimSuffix(strings.Trim(name, " \t\r`\"'*[]"), "()"))
}

// reactCall reads "Action: NAME" and "Action Input: …" in the next line, or an action that is an object with both.
func reactCall(t *forms, text string, find func(string) *llm.Tool, final bool) (c writtenCall, size int, v verdict) {
	at, how := t.matchLabel(callLabel, text, final)
	if how != fits {
		return c, 0, moreIf(how == begins)
	}
	start := afterBlanks(text, at)
	if start == len(text) {
		return c, 0, moreIf(!final)
	}
	if text[start] == '{' || strings.HasPrefix(text[start:], "```") {
		return reactObject(text, start, find, final)
	}
	line := strings.IndexByte(text[start:], '\n')
	if line < 0 {
		return c, 0, moreIf(!final && len(text)-start <= maxHeader)
	}
	tool := find(text[start : start+line])
	if tool == nil {
		return c, 0, isText
	}
	at = afterBlanks(text, start+line)
	if at == len(text) {
		return c, 0, moreIf(!final)
	}
	n, how := t.matchLabel(inputLabel, text[at:], final)
	if how != fits {
		return c, 0, moreIf(how == begins)
	}
	at += n
	start = afterBlanks(text, at)
	switch {
	case start == len(text) && !final:
		return c, 0, needsMore
	case start == len(text):
		return writtenCall{name: tool.Name, args: json.RawMessage("{}")}, start, isCalls
	case text[start] == '{' || text[start] == '`':
		open, end, v := objectAt(text, start, final)
		if v == isCalls {
			return withArguments(tool.Name, text[open.from:open.to]), end, isCalls
		}
		if v == needsMore {
			return c, 0, needsMore
		}
		return writtenCall{name: tool.Name, broken: text[start:]}, len(text), isCalls
	}
	line = strings.IndexByte(text[start:], '\n')
	if line < 0 {
		if !final {
			return c, 0, needsMore
		}
		line = len(text) - start
	}
	return plainInput(tool, strings.TrimSpace(text[start:start+line])), start + line, isCalls
}

func moreIf(more bool) verdict {
	if more {
		return needsMore
	}
	return isText
}

// span is a part of a text.
type span struct{ from, to int }

// objectAt finds an object, which may be in a block of code. end is behind the block.
func objectAt(text string, at int, final bool) (object span, end int, v verdict) {
	const ticks = "```"
	fenced := text[at] == '`'
	if fenced {
		open := strings.IndexAny(text[at:], "{\n")
		if open >= 0 && text[at+open] == '\n' {
			open = afterBlanks(text, at+open) - at
		}
		switch {
		case open < 0 || at+open == len(text):
			return object, 0, moreIf(!final && len(text)-at <= maxHeader)
		case text[at+open] != '{':
			return object, 0, isText
		}
		at += open
	}
	n := valueEnd(text[at:])
	if n < 0 {
		return object, 0, moreIf(!final)
	}
	object, end = span{at, at + n}, at+n
	if !fenced {
		return object, end, isCalls
	}
	next := afterBlanks(text, end)
	switch {
	case strings.HasPrefix(text[next:], ticks):
		end = next + len(ticks)
	case strings.HasPrefix(ticks, text[next:]) && !final:
		return object, 0, needsMore
	}
	return object, end, isCalls
}

// reactObject reads {"action": NAME, "action_input": …}, with or without a block of code around it.
func reactObject(text string, at int, find func(string) *llm.Tool, final bool) (c writtenCall, size int, v verdict) {
	object, end, v := objectAt(text, at, final)
	if v != isCalls {
		return c, 0, v
	}
	body := text[object.from:object.to]
	calls, ok := readObjects(body)
	if !ok || len(calls) != 1 || !strings.Contains(body, "action_input") {
		return c, 0, isText
	}
	if tool := find(calls[0].name); tool != nil {
		calls[0].name = tool.Name
		return calls[0], end, isCalls
	}
	return c, 0, isText
}

// plainInput is a call with an input that is no object: the value of the only parameter, or of the only one that is
// required.
func plainInput(tool *llm.Tool, input string) writtenCall {
	var schema struct {
		Required []string `json:"required"`
	}
	keys := []string{}
	for key := range propertyTypes(tool.Schema) {
		keys = append(keys, key)
	}
	if json.Unmarshal(tool.Schema, &schema) == nil && len(schema.Required) == 1 {
		keys = schema.Required
	}
	switch {
	case slices.Contains([]string{"", "None", "none", "null", "N/A"}, input):
		return writtenCall{name: tool.Name, args: json.RawMessage("{}")}
	case len(keys) != 1:
		return writtenCall{name: tool.Name, broken: input}
	}
	if len(input) > 1 && (input[0] == '"' || input[0] == '\'') && input[len(input)-1] == input[0] {
		input = unquoteText(input[1 : len(input)-1])
	}
	return writtenCall{name: tool.Name, values: []value{{key: keys[0], text: input}}}
}
