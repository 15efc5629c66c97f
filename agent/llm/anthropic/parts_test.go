package anthropic_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
)

// seen is a conversation with a picture from a person, and pictures from two tools of one batch.
func seen() *llm.Request {
	picture := func(name string) []llm.Part {
		return []llm.Part{{Kind: llm.ImagePart, Hash: name, Type: "image/png", Name: name + ".png", Size: 8}}
	}
	return &llm.Request{
		Messages: []llm.Message{
			{Role: llm.User, Text: "look", Parts: append(picture("a"), llm.Part{Kind: llm.AudioPart, Hash: "a", Name: "s.wav"})},
			{Role: llm.Assistant, Uses: []llm.ToolUse{{ID: "1", Name: "cam", Args: json.RawMessage(`{}`)}, {ID: "2", Name: "cam", Args: json.RawMessage(`{}`)}}},
			{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "1", Name: "cam", Text: "one", Parts: picture("a")}},
			{Role: llm.ToolRole, Result: &llm.ToolResult{ID: "2", Name: "cam", Text: "two", Parts: picture("gone")}},
		},
		Open: func(_ context.Context, hash string) (io.ReadCloser, error) {
			if hash == "a" {
				return io.NopCloser(strings.NewReader("\x89PNG\r\n\x1a\n")), nil
			}
			return nil, errors.New("swept")
		},
	}
}

const (
	sound = `[audio \"s.wav\": this model does not take such content]`
	gone  = `[image \"gone.png\", \"image/png\", 8 bytes: its content is not kept any more or cannot be read]`
	blind = `[image \"a.png\", \"image/png\", 8 bytes: this model does not take such content]`
)

// asked is the part of the request under key, without cache markers.
func asked(t *testing.T, key string, model func(url string) (llm.Provider, error)) string {
	t.Helper()
	var body map[string]json.RawMessage
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	t.Cleanup(s.Close)
	p, err := model(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Chat(t.Context(), seen(), nil); err == nil {
		t.Fatal("the server has failed, the call has not")
	}
	return strings.ReplaceAll(string(body[key]), `,"cache_control":{"type":"ephemeral"}`, "")
}

func TestParts(t *testing.T) {
	t.Parallel()
	const image = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}`
	for model, want := range map[string]string{
		"claude-opus-4-5": `[{"role":"user","content":[{"type":"text","text":"look\n` + sound + `"},` + image + `]},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"cam","input":{}},{"type":"tool_use","id":"2","name":"cam","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"one"},` + image + `],"is_error":false},` +
			`{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"two\n` + gone + `"}],"is_error":false}]}]`,
		"new-model": `[{"role":"user","content":[{"type":"text","text":"look\n` + blind + `\n` + sound + `"}]},` +
			`{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"cam","input":{}},{"type":"tool_use","id":"2","name":"cam","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"one\n` + blind + `"}],"is_error":false},` +
			`{"type":"tool_result","tool_use_id":"2","content":[{"type":"text","text":"two\n` + strings.Replace(blind, "a.png", "gone.png", 1) + `"}],"is_error":false}]}]`,
	} {
		got := asked(t, "messages", func(url string) (llm.Provider, error) {
			return anthropic.New(anthropic.Options{Name: "m", BaseURL: url, Key: "k", Model: model})
		})
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", model, got, want)
		}
	}
}
