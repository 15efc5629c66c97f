package vendortest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
)

// A model that has no calls is told of its tools in words, and asks for them in fenced blocks (package fenced).
// The script behind a server knows neither: it is given the tools and results that the words stand for, and its
// calls are written as such blocks.

var (
	toldTools  = regexp.MustCompile(`(?s)(?:^|\n)<tools>\n(.*?)\n</tools>`)
	toldResult = regexp.MustCompile(
		`(?s)^\[tool_result id="([^"]*)"[^\n]*? status="([a-z]*)"[^\n]*\]\n(.*?)\n\[/tool_result\](?:\n\n|$)`,
	)
)

// decodeFenced turns the words of a request without tools into the tools and results that they stand for, and reports
// whether there were any.
func decodeFenced(req *llm.Request) bool {
	m := toldTools.FindStringSubmatch(req.System)
	if len(req.Tools) > 0 || m == nil {
		return false
	}
	for line := range strings.SplitSeq(m[1], "\n") {
		var tool struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
		}
		if json.Unmarshal([]byte(line), &tool) == nil {
			req.Tools = append(req.Tools, llm.Tool{
				Name:        tool.Name,
				Description: tool.Description,
				Schema:      tool.Parameters,
			})
		}
	}
	var out []llm.Message
	for _, message := range req.Messages {
		rest, found := message.Text, false
		for message.Role == llm.User {
			m := toldResult.FindStringSubmatch(rest)
			if m == nil {
				break
			}
			text := strings.TrimPrefix(strings.ReplaceAll("\n"+m[3], "\n| ", "\n"), "\n")
			out = append(out, result(m[1], text, m[2] != "ok"))
			rest, found = rest[len(m[0]):], true
		}
		message.Text = rest
		if !found || rest != "" {
			out = append(out, message)
		}
	}
	req.Messages = out
	return true
}

// writeFenced writes the calls of an answer as blocks at its end, and returns what it adds.
func writeFenced(res *llm.Response) string {
	var b strings.Builder
	for _, use := range res.Uses {
		b.WriteString("\n\n```tool\n")
		// Arguments that are broken stay so.
		fmt.Fprintf(&b, `{"name": %s, "arguments": %s}`, encode(use.Name), use.Args)
		b.WriteString("\n```")
	}
	if res.Text == "" {
		return strings.TrimPrefix(b.String(), "\n\n")
	}
	return b.String()
}
