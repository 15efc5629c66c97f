package history_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/llm/vendortest"
)

// client returns a provider that talks to a server, over one of its wires.
func client(t *testing.T, s *vendortest.Server, wire string) llm.Provider {
	t.Helper()
	d, _ := dialect.Named(s.Preset())
	var p llm.Provider
	var err error
	if s.Type() == "anthropic" {
		p, err = anthropic.New(anthropic.Options{Name: "main", BaseURL: s.URL(), Key: anthropic.Key(s.Key()), Model: s.Name(), Dialect: d})
	} else {
		p, err = openai.New(openai.Options{Name: "main", BaseURL: s.URL(), Key: openai.Key(s.Key()), Model: s.Name(), MaxTokens: 1024, Dialect: d, Wire: wire})
	}
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEveryServerTakesEveryHistory: however broken a conversation is, the first request with it is one that the strict
// imitation of each vendor answers. Nothing is negotiated but what concerns no message, which the first greeting learns.
func TestEveryServerTakesEveryHistory(t *testing.T) {
	t.Parallel()
	var talks [][]llm.Message
	for seed := range 60 {
		talks = append(talks, rapid.Custom(drawn).Example(seed))
	}
	more := map[string][]string{"vllm": {"google/gemma-3-27b-it", "mistralai/Mistral-Small"}, "llamacpp": {"gemma-3-12b"}, "deepseek": {"deepseek-reasoner"}, "moonshot": {"kimi-k2-turbo-preview"}}
	for _, vendor := range vendortest.Vendors() {
		if vendor == "kimi" {
			continue // the ids of these conversations are none of its own, which the real server takes and answers worse
		}
		for _, name := range append([]string{""}, more[vendor]...) {
			t.Run(vendor+" "+name, func(t *testing.T) {
				t.Parallel()
				s, err := vendortest.New(vendortest.Options{Vendor: vendor, Name: name})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(s.Close)
				for _, wire := range s.Wires() {
					p := client(t, s, wire)
					tools := []llm.Tool{{Name: "read", Description: "Reads.", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}}}`)}}
					if _, err := p.Chat(t.Context(), &llm.Request{System: "be short", Messages: []llm.Message{user("hello")}, Tools: tools}, nil); llm.KindOf(err) == llm.Unauthorized && err != nil {
						t.Skip("the key goes another way, with a preset")
					} else if err != nil {
						t.Fatalf("%s: %v", wire, err)
					}
					for i, messages := range talks {
						before := len(s.Exchanges())
						res, err := p.Chat(t.Context(), &llm.Request{System: "be short", Messages: messages, Tools: tools}, nil)
						for _, x := range s.Exchanges()[before:] {
							if x.Refused != "" {
								t.Fatalf("%s, talk %d: %s: %s\n%s\nof\n%s", wire, i, x.Refused, x.Answer, fmt.Sprintf("%.3000s", x.Body), told(messages))
							}
						}
						if err != nil || res.Retold {
							t.Fatalf("%s, talk %d: %+v, %v\n%s", wire, i, res, err, told(messages))
						}
					}
				}
			})
		}
	}
}
