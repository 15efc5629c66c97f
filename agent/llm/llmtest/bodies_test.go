package llmtest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// recorder keeps the bodies of requests and answers none.
type recorder struct{ bodies []string }

var errNoAnswer = errors.New("no answer")

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.bodies = append(r.bodies, string(body))
	return nil, errNoAnswer
}

// conversations hold everything that can stand in a request: text, tools of all shapes, pictures and documents, calls
// with and without results, and what the vendors want back.
func conversations() map[string]*llm.Request {
	picture := llm.Part{Kind: llm.ImagePart, Hash: "aa", Type: "image/png", Name: "a.png"}
	paper := llm.Part{Kind: llm.FilePart, Hash: "bb", Type: "application/pdf", Name: "b.pdf"}
	wrong := llm.Part{Kind: llm.FilePart, Hash: "aa", Type: "application/pdf", Name: "c.pdf"} // is a picture
	say := func(role llm.Role, text string, parts ...llm.Part) llm.Message {
		return llm.Message{Role: role, Text: text, Parts: parts}
	}
	call := func(id, args, extra string) llm.ToolUse {
		return llm.ToolUse{ID: id, Name: "server:look up", Args: json.RawMessage(args), Extra: json.RawMessage(extra)}
	}
	result := func(id, text string, failed bool, parts ...llm.Part) llm.Message {
		return llm.Message{Role: llm.ToolRole, Result: &llm.ToolResult{ID: id, Name: "server:look up", Text: text, Error: failed, Parts: parts}}
	}
	tools := []llm.Tool{
		{Name: "list_tasks"},
		{Name: "server:look up", Description: "Looks it up.", Schema: json.RawMessage(`{"anyOf":[{"type":"object","properties":{"a":{"type":["string","null"]}}},{"$ref":"#/$defs/b"}],"$defs":{"b":{"type":"object","properties":{"b":{"type":"array"}}}}}`)},
	}
	reasons := `{"host":"model.example","model":"gpt-5","chat_model":"gpt-5","lead":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}],"reasoning":[{"type":"reasoning","id":"rs_2","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"y"}]}`
	thoughts := `{"host":"model.example","model":"gpt-5","thoughts":[{"text":"hm","signature":"s"},{"redacted":"r"}]}`
	list := map[string]*llm.Request{
		"text":                   {Messages: []llm.Message{say(llm.User, "hello")}},
		"instructions":           {System: "Be kind.", User: "u-1", MaxTokens: 100, Messages: []llm.Message{say(llm.User, "hello"), say(llm.Assistant, "hi"), say(llm.User, "and?")}},
		"empty":                  {Messages: []llm.Message{say(llm.User, "")}},
		"tools":                  {Tools: tools, Messages: []llm.Message{say(llm.User, "hello")}},
		"instructions and tools": {System: "Be kind.", Tools: tools, Messages: []llm.Message{say(llm.User, "hello")}},
		"picture":                {Messages: []llm.Message{say(llm.User, "look", picture), say(llm.System, "Later instructions."), say(llm.User, "", picture, paper, wrong)}},
		"orphans":                {Messages: []llm.Message{result("gone", "late", false), say(llm.Assistant, "first"), say(llm.User, "hello"), {Role: llm.Assistant, Uses: []llm.ToolUse{call("open", `{"a":`, "")}}}},
	}
	for name, extra := range map[string]string{"calls": "", "calls with reasoning": reasons, "calls with thoughts": thoughts} {
		list[name] = &llm.Request{System: "s", Tools: tools, Messages: []llm.Message{
			say(llm.User, "go"),
			{Role: llm.Assistant, Text: "I look.", Uses: []llm.ToolUse{call("1", `{"a":"x"}`, extra), call(strings.Repeat("2", 90), `broken`, "")}},
			result("1", "one", false, picture), result(strings.Repeat("2", 90), "", true),
			say(llm.User, "go on", paper),
			{Role: llm.Assistant, Uses: []llm.ToolUse{call("1", ``, "")}},
			result("1", "again", false),
			say(llm.Assistant, "done"), say(llm.User, "thanks"),
		}}
	}
	for _, req := range list {
		req.Open = func(_ context.Context, hash string) (io.ReadCloser, error) {
			if hash == paper.Hash {
				return io.NopCloser(strings.NewReader("%PDF-1.7\n")), nil
			}
			return io.NopCloser(strings.NewReader("\x89PNG\r\n\x1a\n")), nil
		}
	}
	return list
}

// TestBodies writes the bodies of requests over all wires as TypeScript into the directory that ZEPH_BODIES names, where
// .ci/run types compares them with the types of the vendors' own packages.
func TestBodies(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("ZEPH_BODIES")
	if dir == "" {
		dir = t.TempDir()
	}
	all := &llm.Accepts{Image: true, File: true}
	known := func(name string) dialect.Dialect {
		d, ok := dialect.Named(name)
		if !ok {
			t.Fatalf("no dialect %s", name)
		}
		return d
	}
	chat := func(wire, model string, d dialect.Dialect) func(*http.Client) (llm.Provider, error) {
		return func(client *http.Client) (llm.Provider, error) {
			return openai.New(openai.Options{Name: "m", BaseURL: "https://model.example/v1", Model: model, Wire: wire, Dialect: d, Accepts: all, HTTPClient: client})
		}
	}
	message := func(d dialect.Dialect) func(*http.Client) (llm.Provider, error) {
		return func(client *http.Client) (llm.Provider, error) {
			return anthropic.New(anthropic.Options{Name: "m", BaseURL: "https://model.example", Key: "k", Model: "gpt-5", Dialect: d, Accepts: all, HTTPClient: client})
		}
	}
	wrote := 0
	for wire, w := range map[string]struct {
		typ  string
		made func(*http.Client) (llm.Provider, error)
	}{
		"chat":             {"OpenAI.Chat.ChatCompletionCreateParams", chat(openai.WireChat, "gpt-5", known("openai"))},
		"chat-old":         {"OpenAI.Chat.ChatCompletionCreateParams", chat(openai.WireChat, "old", known("azure"))},
		"chat-unknown":     {"OpenAI.Chat.ChatCompletionCreateParams", chat(openai.WireChat, "any", dialect.Dialect{})},
		"responses":        {"OpenAI.Responses.ResponseCreateParams", chat(openai.WireResponses, "gpt-5", known("openai"))},
		"messages":         {"Anthropic.MessageCreateParams", message(known("anthropic"))},
		"messages-unknown": {"Anthropic.MessageCreateParams", message(dialect.Dialect{})},
	} {
		list := conversations()
		for i, name := range slices.Sorted(maps.Keys(list)) {
			record := &recorder{}
			p, err := w.made(&http.Client{Transport: record})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Chat(t.Context(), list[name], nil); err == nil || len(record.bodies) == 0 {
				t.Fatalf("%s, %s: nothing was sent: %v", wire, name, err)
			}
			text := fmt.Sprintf("// %s, %s\nimport OpenAI from \"openai\";\nimport Anthropic from \"@anthropic-ai/sdk\";\n"+
				"export type SDKs = OpenAI | Anthropic;\nexport const body: %s = %s;\n", wire, name, w.typ, record.bodies[0])
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%s-%d.ts", wire, i)), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			wrote++
		}
	}
	if wrote < 50 {
		t.Errorf("only %d bodies", wrote)
	}
}
