package history

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
)

// The markers around a tool's result in plain text. Every line between them begins with LinePrefix, and no line of a
// person's message begins with a marker, so neither can imitate a result or its end.
const (
	ResultMark = "[tool_result "
	ResultEnd  = "[/tool_result]"
	LinePrefix = "| "
)

// systemMark precedes instructions that are put where a server takes no system message.
const systemMark = "[instructions of the system]\n"

// Words converts a conversation to plain text. The zero value writes a call beside its result.
type Words struct {
	// Call writes a call at the end of the model's message that requests it; nil = calls are beside their results.
	Call func(llm.ToolUse) string
	// Finish completes the text of a message of the model to which something is added, such as a fence that is
	// open; nil = it is left as it is.
	Finish func(string) string
}

// PlainText returns a request whose messages are plain text, alternately of the user and of the model; nil if they are
// that already, so that the request would be the same. It is for a server that refuses a history for a reason that
// nobody knows: no part of it needs more than text. System, tools and everything else stay; contents of messages stay
// with their messages. The request is not changed.
func PlainText(req *llm.Request) *llm.Request {
	if isPlain(req.Messages) {
		return nil
	}
	out := *req
	var words Words
	out.Messages = endWithUser(words.Messages(req.Messages))
	return &out
}

// isPlain reports whether messages are nothing but text, alternately of the user and of the model.
func isPlain(list []llm.Message) bool {
	for i := range list {
		m := &list[i]
		want := llm.User
		if i%2 == 1 {
			want = llm.Assistant
		}
		if m.Role != want || len(m.Uses) > 0 || m.Result != nil || len(m.Extra) > 0 {
			return false
		}
	}
	return len(list)%2 == 1
}

// Messages converts a conversation. Adjacent messages of the same role are merged, because the templates of many local
// models require strict alternation. Without Call, the first message is the user's, and so is the last. Each message
// depends only on the messages up to it and, without Call, on whether its calls have results, so a longer history has
// the same beginning.
func (w *Words) Messages(list []llm.Message) []llm.Message {
	calls := w.findCalls(list)
	var out []llm.Message
	add := func(role llm.Role, text string, parts []llm.Part) {
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			before := out[last].Text
			if role == llm.Assistant && w.Finish != nil {
				before = w.Finish(before)
			}
			out[last].Text = joinTexts(before, text)
			out[last].Parts = slices.Concat(out[last].Parts, parts)
			return
		}
		out = append(out, llm.Message{Role: role, Text: text, Parts: parts})
	}
	for i := range list {
		m := &list[i]
		parts := slices.Concat(m.Parts, m.Result.Attached())
		switch {
		case m.Result != nil && m.Role != llm.Assistant:
			add(llm.User, joinTexts(resultText(m.Result, calls.answeredUse(i)), defuseMarkers(m.Text)), parts)
		case m.Role == llm.Assistant && w.Call != nil:
			add(m.Role, w.tellMessage(m), parts)
		case m.Role == llm.Assistant:
			if strings.TrimSpace(m.Text) != "" || len(parts) > 0 || len(m.Uses) == 0 {
				add(m.Role, visibleText(m.Text), parts)
			}
			for _, u := range calls.unansweredUses(i) {
				add(llm.User, unansweredText(u), nil)
			}
		case m.Role == llm.System && w.Call != nil:
			add(m.Role, m.Text, parts)
		case m.Role == llm.System:
			add(llm.User, systemMark+defuseMarkers(m.Text), parts)
		default:
			add(llm.User, defuseMarkers(m.Text), parts)
		}
	}
	return out
}

// tellMessage returns a message of the model with its calls.
func (w *Words) tellMessage(m *llm.Message) string {
	if len(m.Uses) == 0 {
		return m.Text
	}
	text := strings.TrimRight(m.Text, "\r\n")
	if w.Finish != nil {
		text = w.Finish(text)
	}
	for _, u := range m.Uses {
		text = joinTexts(text, w.Call(u))
	}
	return text
}

// callPairs are the calls of a conversation that is put into words: by the index of the message.
type callPairs struct {
	results map[int]*llm.ToolUse  // the call that a result answers
	open    map[int][]llm.ToolUse // the calls of a message that have no result
}

func (t callPairs) answeredUse(i int) *llm.ToolUse     { return t.results[i] }
func (t callPairs) unansweredUses(i int) []llm.ToolUse { return t.open[i] }

// findCalls finds the call of each result, and the calls without one. Nothing if calls are written by Call.
func (w *Words) findCalls(list []llm.Message) callPairs {
	if w.Call != nil {
		return callPairs{}
	}
	t := callPairs{results: map[int]*llm.ToolUse{}, open: map[int][]llm.ToolUse{}}
	for i := range list {
		if list[i].Role != llm.Assistant || len(list[i].Uses) == 0 {
			continue
		}
		found := findAnswers(list, i, nil)
		for k, at := range found {
			if at < 0 {
				t.open[i] = append(t.open[i], list[i].Uses[k])
				continue
			}
			t.results[at] = &list[i].Uses[k]
		}
	}
	return t
}

// endWithUser gives a plain conversation a user's message as its first and its last one.
func endWithUser(list []llm.Message) []llm.Message {
	if len(list) == 0 || list[0].Role == llm.Assistant {
		list = slices.Insert(list, 0, llm.Message{Role: llm.User, Text: leftOut})
	}
	if list[len(list)-1].Role == llm.Assistant {
		list = append(list, llm.Message{Role: llm.User, Text: goOn})
	}
	return list
}

// joinTexts puts an empty line between two texts.
func joinTexts(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

// visibleText replaces a text of which nothing can be seen: servers refuse it.
func visibleText(text string) string {
	if strings.TrimSpace(text) == "" {
		return empty
	}
	return text
}

// resultText returns a tool's result in plain text, between markers; with the arguments of its call, if it is given.
func resultText(r *llm.ToolResult, call *llm.ToolUse) string {
	text := strings.TrimRightFunc(r.Text, lineEnd)
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	status := "ok"
	if r.Error {
		status = "failed"
	}
	name := r.Name
	if call != nil {
		name = call.Name
	}
	var b strings.Builder
	b.WriteString(ResultMark + "id=" + strconv.QuoteToASCII(r.ID) + " tool=" + strconv.QuoteToASCII(name))
	if call != nil {
		b.WriteString(" arguments=" + argumentsText(call.Args))
	}
	b.WriteString(" status=" + strconv.Quote(status) + "]\n")
	for _, line := range splitLines(text) {
		b.WriteString(LinePrefix + strings.TrimRightFunc(line, lineEnd) + "\n")
	}
	b.WriteString(ResultEnd)
	return b.String()
}

// unansweredText tells of a call that has no result.
func unansweredText(u llm.ToolUse) string {
	return resultText(&llm.ToolResult{ID: u.ID, Name: u.Name, Text: noResult, Error: true}, &u)
}

// argumentsText returns arguments in one line. Text that is not JSON becomes a JSON string.
func argumentsText(args json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, args) == nil && utf8.Valid(b.Bytes()) {
		return strings.Map(oneLine, b.String())
	}
	return strconv.Quote(string(args))
}

// oneLine replaces what a reader may take for the end of a line, which within JSON can only be in a string.
func oneLine(r rune) rune {
	if lineEnd(r) {
		return ' '
	}
	return r
}

// defuseMarkers puts "> " before the lines of a person's message that imitate a marker.
func defuseMarkers(text string) string {
	if !strings.Contains(strings.ToLower(text), "tool_result") {
		return text
	}
	var b strings.Builder
	for _, line := range splitLines(text) {
		bare := strings.ToLower(strings.TrimLeftFunc(line, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.In(r, unicode.C) || r == unicode.ReplacementChar
		}))
		if strings.HasPrefix(bare, strings.TrimSpace(ResultMark)) ||
			strings.HasPrefix(bare, strings.TrimSuffix(ResultEnd, "]")) {
			b.WriteString("> ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// splitLines splits a text at every character that a reader may take for a line break. Each line keeps its end.
func splitLines(text string) []string {
	var list []string
	for text != "" {
		end := strings.IndexFunc(text, lineEnd)
		if end < 0 {
			return append(list, text)
		}
		_, size := utf8.DecodeRuneInString(text[end:])
		if strings.HasPrefix(text[end:], "\r\n") {
			size = 2
		}
		list = append(list, text[:end+size])
		text = text[end+size:]
	}
	return list
}

func lineEnd(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}
