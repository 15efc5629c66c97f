package fenced

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm"
)

// The markers around a tool's result. Every line between them begins with linePrefix, and no line of a person's message
// begins with a marker, so neither can imitate a result or its end.
const (
	resultMark = "[tool_result "
	resultEnd  = "[/tool_result]"
	linePrefix = "| "
)

// messages converts a conversation to plain text. Adjacent messages of the same role are merged, because the templates
// of many local models require strict alternation. Each message depends only on the messages up to it, so a longer
// history has the same beginning.
func messages(list []llm.Message) []llm.Message {
	var out []llm.Message
	for i := range list {
		role, text := tell(&list[i])
		// Contents that the inner provider cannot send are put into words.
		parts := slices.Concat(list[i].Parts, list[i].Result.Attached())
		if last := len(out) - 1; last >= 0 && out[last].Role == role {
			out[last].Text = join(finished(&out[last]), text)
			out[last].Parts = append(out[last].Parts, parts...)
			continue
		}
		out = append(out, llm.Message{Role: role, Text: text, Parts: parts})
	}
	return out
}

// finished returns the text of a message to which another one is joined.
func finished(m *llm.Message) string {
	if m.Role == llm.Assistant {
		return closed(m.Text)
	}
	return m.Text
}

// join puts an empty line between two texts.
func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "\n\n" + b
}

func tell(m *llm.Message) (llm.Role, string) {
	switch {
	case m.Role == llm.ToolRole && m.Result != nil:
		return llm.User, result(m.Result)
	case m.Role == llm.ToolRole || m.Role == llm.User:
		return llm.User, defuse(m.Text)
	case len(m.Uses) == 0:
		return m.Role, m.Text
	}
	text := closed(strings.TrimRight(m.Text, "\r\n"))
	for _, u := range m.Uses {
		text = join(text, render(u))
	}
	return m.Role, text
}

// closed closes a fence that is open at the end of text. Otherwise, what follows would be inside it.
func closed(text string) string {
	s := newScanner(nil, nil)
	s.feed(text + "\n")
	if !s.open() {
		return text
	}
	return text + "\n" + strings.Repeat(string(s.fence.char), s.fence.length)
}

// result returns a tool's result with markers.
func result(r *llm.ToolResult) string {
	text := strings.TrimRightFunc(r.Text, lineEnd)
	if strings.TrimSpace(text) == "" {
		text = "(no output)"
	}
	status := "ok"
	if r.Error {
		status = "failed"
	}
	var b strings.Builder
	b.WriteString(resultMark + "id=" + strconv.QuoteToASCII(r.ID) +
		" tool=" + strconv.QuoteToASCII(r.Name) + " status=" + strconv.Quote(status) + "]\n")
	for _, line := range lines(text) {
		b.WriteString(linePrefix + strings.TrimRightFunc(line, lineEnd) + "\n")
	}
	b.WriteString(resultEnd)
	return b.String()
}

// defuse puts "> " before the lines of a person's message that imitate a marker.
func defuse(text string) string {
	if !strings.Contains(strings.ToLower(text), "tool_result") {
		return text
	}
	var b strings.Builder
	for _, line := range lines(text) {
		bare := strings.ToLower(strings.TrimLeftFunc(line, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.In(r, unicode.C) || r == unicode.ReplacementChar
		}))
		if strings.HasPrefix(bare, strings.TrimSpace(resultMark)) ||
			strings.HasPrefix(bare, strings.TrimSuffix(resultEnd, "]")) {
			b.WriteString("> ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// lines splits a text at every character that a reader may take for a line break. Each line keeps its end.
func lines(text string) []string {
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
