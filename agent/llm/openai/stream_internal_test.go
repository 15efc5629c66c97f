package openai

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
)

// TestMayName: an event is parsed for an error whenever encoding/json would find one.
func TestMayName(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`{"error":1}`, `{"Error":1}`, `{"eRROR":1}`, `{"a":{},"error" :1}`, `{"\u0065rror":1}`, `{"erro\u0072":1}`, `{"error":null,"ERROR":1}`, `{"erro":1,"error":1}`,
		`{"e":1}`, `{"erro":1}`, `{"content":"an error"}`, `{"content":"\n"}`, `{"choices":[{"delta":{"content":"hello"}}]}`, `[]`, `""`, ``,
	} {
		var head struct {
			Error json.RawMessage `json:"error"`
		}
		found := json.Unmarshal([]byte(text), &head) == nil && head.Error != nil
		if found && !mayName([]byte(text), "error") {
			t.Errorf("%s: its error is not seen", text)
		}
	}
	if mayName([]byte(`{"choices":[{"delta":{"content":"her\nror"}}]}`), "error") {
		t.Error("an event without the word is read twice")
	}
}

// talker answers with a stream of n pieces.
type talker struct{ n int }

func (s talker) RoundTrip(req *http.Request) (*http.Response, error) {
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, err
	}
	var b strings.Builder
	for i := range s.n {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"word %d "},"finish_reason":null}]}`+"\n\n", i)
	}
	b.WriteString(`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n")
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(b.String()))}, nil
}

// BenchmarkChat measures a request with a history of 40 messages, and its answer in 300 pieces.
func BenchmarkChat(b *testing.B) {
	req := &llm.Request{System: "s"}
	for i := range 20 {
		req.Messages = append(req.Messages, llm.Message{Role: llm.User, Text: fmt.Sprint("question ", i, strings.Repeat(" and more", 20))},
			llm.Message{Role: llm.Assistant, Text: strings.Repeat("an answer of some words, ", 40)})
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.User, Text: "go on"})
	for name, transport := range map[string]http.RoundTripper{"history": talker{1}, "stream": talker{300}} {
		b.Run(name, func(b *testing.B) {
			p, err := New(Options{Name: "main", BaseURL: "https://model.example/v1", Model: "m", HTTPClient: &http.Client{Transport: transport}})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Chat(b.Context(), req, func(string) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
