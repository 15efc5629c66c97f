package openai_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/openai"
)

// picky is a server that refuses what a test says.
type picky struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []map[string]any
	paths  []string
}

// refusing starts a server. refuse returns status 0 to take a request; a request without "stream" gets a whole answer.
func refusing(t *testing.T, refuse func(path string, body map[string]any) (int, string)) *picky {
	t.Helper()
	p := &picky{}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, err := io.ReadAll(r.Body)
		var body map[string]any
		if err != nil || json.Unmarshal(raw, &body) != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		p.mu.Lock()
		p.bodies, p.paths = append(p.bodies, body), append(p.paths, r.URL.Path)
		p.mu.Unlock()
		status, refusal := refuse(r.URL.Path, body)
		switch {
		case status != 0:
			w.WriteHeader(status)
			_, _ = io.WriteString(w, refusal)
		case strings.HasSuffix(r.URL.Path, "/responses") && body["stream"] == true:
			_, _ = io.WriteString(w, sse(said(0, "fine"), ended("completed")))
		case strings.HasSuffix(r.URL.Path, "/responses"):
			_, _ = io.WriteString(w, `{"object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"fine"}]}]}`)
		case body["stream"] == true:
			_, _ = io.WriteString(w, sse(text("fine"), finish("stop")))
		default:
			_, _ = io.WriteString(w, `{"choices":[{"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}`)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func has(body map[string]any, field string) bool { _, ok := body[field]; return ok }

// offered returns the names of the tools of a request.
func offered(body map[string]any) []string {
	var list []string
	tools, _ := body["tools"].([]any)
	for _, one := range tools {
		tool := one.(map[string]any)
		if f, ok := tool["function"].(map[string]any); ok {
			tool = f
		}
		list = append(list, tool["name"].(string))
	}
	return list
}

// TestRefusalsEndInAnAnswer: each server refuses one thing that we send, in its own words. The turn is answered, with at
// most so many requests, and the next turn takes one.
func TestRefusalsEndInAnAnswer(t *testing.T) {
	t.Parallel()
	indexOf := func(body map[string]any, name string) int { return slices.Index(offered(body), name) }
	bad := func(words string) func(string, map[string]any) (int, string) {
		return func(_ string, body map[string]any) (int, string) {
			if i := indexOf(body, "bad"); i >= 0 {
				return 400, strings.ReplaceAll(strings.ReplaceAll(words, "#", fmt.Sprint(i)), "NAME", "bad")
			}
			return 0, ""
		}
	}
	field := func(name string, status int, words string) func(string, map[string]any) (int, string) {
		return func(_ string, body map[string]any) (int, string) {
			if has(body, name) {
				return status, words
			}
			return 0, ""
		}
	}
	for name, test := range map[string]struct {
		model, wire string
		refuse      func(path string, body map[string]any) (int, string)
		most        int // requests of the first turn
		check       func(body map[string]any) bool
	}{
		"openai, a tool":                       {"", "", bad(`{"error":{"message":"Invalid schema for function 'NAME': In context=(), object schema missing properties.","type":"invalid_request_error","param":"tools[#].function.parameters","code":"invalid_function_parameters"}}`), 2, nil},
		"a router, a tool":                     {"", "", bad(`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"Invalid schema\",\"param\":\"tools[#].function.parameters\",\"code\":\"invalid_function_parameters\"}}","provider_name":"OpenAI"}}}`), 2, nil},
		"responses, a tool":                    {"", openai.WireResponses, bad(`{"error":{"message":"Invalid schema","param":"tools[#].parameters","code":"invalid_function_parameters"}}`), 2, nil},
		"gemini, a tool":                       {"", "", bad(`[{"error":{"code":400,"message":"Invalid JSON payload received.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"tools[0].function_declarations[#].parameters.properties[0].value","description":"x"}]}]}}]`), 2, nil},
		"groq, a tool":                         {"", "", bad(`{"error":{"message":"invalid JSON schema for tool NAME, tools[#].function.parameters: required","type":"invalid_request_error","param":"tool NAME, tools[#].function.parameters"}}`), 2, nil},
		"deepseek, a tool":                     {"", "", bad(`{"error":{"message":"Invalid schema for function 'NAME': got 'type: null'","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`), 2, nil},
		"moonshot, a tool":                     {"", "", bad(`{"error":{"message":"Invalid request: tools.function.parameters is not a valid moonshot flavored json schema, details: <x>","type":"invalid_request_error"}}`), 9, nil},
		"mistral, user":                        {"", "", field("user", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","user"],"msg":"Extra inputs are not permitted","input":"u"}]}`), 2, nil},
		"Rails, user":                          {"", "", field("user", 422, `{"errors":{"user":["is not allowed"]}}`), 2, nil},
		"Django, user":                         {"", "", field("user", 400, `{"user":["Unexpected field."]}`), 2, nil},
		"RFC 7807, user":                       {"", "", field("user", 400, `{"type":"about:blank","title":"Bad Request","status":400,"invalid_params":[{"name":"user","reason":"unknown"}]}`), 2, nil},
		"RFC 9457, user":                       {"", "", field("user", 400, `{"title":"Bad Request","errors":[{"detail":"unknown","pointer":"#/user"}]}`), 2, nil},
		"JSON:API, user":                       {"", "", field("user", 422, `{"errors":[{"status":"422","source":{"pointer":"/data/attributes/user"},"title":"Invalid attribute"}]}`), 2, nil},
		"JSON:API, its parameter":              {"", "", field("user", 400, `{"errors":[{"source":{"parameter":"user"},"title":"Invalid parameter"}]}`), 2, nil},
		"Ajv, stream_options":                  {"", "", field("stream_options", 400, `{"message":"body must NOT have additional properties","errors":[{"instancePath":"","params":{"additionalProperty":"stream_options"},"message":"must NOT have additional properties"}]}`), 2, nil},
		"gemini, store":                        {"", openai.WireResponses, field("store", 400, `[{"error":{"code":400,"message":"Invalid JSON payload received. Unknown name \"store\": Cannot find field.","status":"INVALID_ARGUMENT"}}]`), 2, func(b map[string]any) bool { return len(offered(b)) == 6 }},
		"azure, max_tokens":                    {"mine", "", field("max_tokens", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","param":"max_tokens","code":"unsupported_parameter"}}`), 2, func(b map[string]any) bool { return b["max_completion_tokens"] == 50.0 }},
		"an old server, max_completion_tokens": {"gpt-5", "", field("max_completion_tokens", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","max_completion_tokens"],"msg":"Extra inputs are not permitted"}]}`), 2, func(b map[string]any) bool { return b["max_tokens"] == 50.0 }},
		"gpt-5.6, the other wire": {"gpt-5.6", "", func(path string, b map[string]any) (int, string) {
			if strings.HasSuffix(path, "chat/completions") && has(b, "tools") && b["reasoning_effort"] != "none" {
				return 400, `{"error":{"message":"Function tools with reasoning_effort are not supported for gpt-5.6 in /v1/chat/completions. Please use /v1/responses instead.","param":"reasoning_effort","code":null}}`
			}
			return 0, ""
		}, 2, func(b map[string]any) bool { return has(b, "input") }},
		"gpt-5.6, no other wire": {"gpt-5.6", "", func(path string, b map[string]any) (int, string) {
			if strings.HasSuffix(path, "responses") {
				return 404, "404 page not found"
			}
			if has(b, "tools") && b["reasoning_effort"] != "none" {
				return 400, `{"error":{"message":"Function tools with reasoning_effort are not supported","param":"reasoning_effort","code":null}}`
			}
			return 0, ""
		}, 3, func(b map[string]any) bool { return b["reasoning_effort"] == "none" }},
		"no stream options":            {"", "", field("stream_options", 400, `{"error":"Unrecognized request argument supplied: stream_options"}`), 2, nil},
		"no stream":                    {"", "", field("stream", 400, `{"error":{"message":"Your organization must be verified to stream this model.","param":"stream","code":"unsupported_value"}}`), 2, func(b map[string]any) bool { return !has(b, "stream_options") }},
		"no stream of responses":       {"", openai.WireResponses, field("stream", 400, `{"error":{"message":"This model does not support streaming","param":"stream"}}`), 2, nil},
		"no tools":                     {"", "", field("tools", 400, `{"error":{"message":"registry.ollama.ai/library/x does not support tools","type":"api_error"}}`), 3, nil},
		"no temperature, no cache key": {"", openai.WireResponses, field("prompt_cache_key", 400, `{"error":{"message":"Unknown parameter: 'prompt_cache_key'.","param":"prompt_cache_key","code":"unknown_parameter"}}`), 2, nil},
		"a malformed call": {"", "", func() func(string, map[string]any) (int, string) {
			first := true
			return func(string, map[string]any) (int, string) {
				if !first {
					return 0, ""
				}
				first = false
				return 400, `{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed"}}`
			}
		}(), 2, nil},
		"nothing is said": {"", "", func(_ string, b map[string]any) (int, string) {
			if has(b, "user") {
				return 400, `{"error":{"code":"1210","message":"API 调用参数有误，请检查文档。"}}`
			}
			return 0, ""
		}, 2, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := refusing(t, test.refuse)
			model := test.model
			if model == "" {
				model = "x"
			}
			p, err := openai.New(openai.Options{Name: "main", BaseURL: s.URL + "/v1", Model: model, Wire: test.wire})
			if err != nil {
				t.Fatal(err)
			}
			chat := func() int {
				before := len(s.paths)
				req := &llm.Request{System: "s", User: "somebody", MaxTokens: 50, Messages: []llm.Message{{Role: llm.User, Text: "hello"}}}
				for _, name := range []string{"a", "b", "c", "bad", "d", "e"} {
					req.Tools = append(req.Tools, llm.Tool{Name: name, Schema: json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"}}}`)})
				}
				res, err := p.Chat(t.Context(), req, nil)
				if err != nil || res.Text != "fine" {
					t.Fatalf("%+v, %v after %d requests", res, err, len(s.paths)-before)
				}
				return len(s.paths) - before
			}
			if n := chat(); n > test.most {
				t.Errorf("the first turn took %d requests, want at most %d", n, test.most)
			}
			last := s.bodies[len(s.bodies)-1]
			if strings.HasSuffix(name, "a tool") && !slices.Equal(offered(last), []string{"a", "b", "c", "d", "e"}) {
				t.Errorf("offered: %v", offered(last))
			}
			if test.check != nil && !test.check(last) {
				t.Errorf("the last request: %v", last)
			}
			if n := chat(); n != 1 {
				t.Errorf("the second turn took %d requests", n)
			}
		})
	}
}

// TestRefusedStreaming: where a model may not stream, the answer comes whole, in one piece and once, on both APIs, and
// thoughts and calls in its text are what they are in a stream.
func TestRefusedStreaming(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{openai.WireChat, openai.WireResponses} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			p := refusing(t, func(_ string, body map[string]any) (int, string) {
				if has(body, "stream") {
					return 400, `{"error":{"message":"This model does not support streaming","param":"stream","code":"unsupported_value"}}`
				}
				return 0, ""
			})
			memory := &dialect.Local{}
			model, err := openai.New(openai.Options{Name: "main", BaseURL: p.URL + "/v1/", Key: key, Model: "m", Wire: wire, Memory: memory, HTTPClient: p.Client()})
			if err != nil {
				t.Fatal(err)
			}
			for turn := range 2 {
				var pieces []string
				res, err := model.Chat(t.Context(), hi(), func(d string) { pieces = append(pieces, d) })
				if err != nil || res.Text != "fine" || res.Stop != llm.StopEnd || !slices.Equal(pieces, []string{"fine"}) {
					t.Errorf("turn %d: %+v in pieces %q, %v", turn, res, pieces, err)
				}
			}
			if l := memory.Recall("main", "m"); l == nil || !slices.Contains(l.Omit, "stream") {
				t.Errorf("learnt %+v", l)
			}
			if len(p.bodies) != 3 || has(p.bodies[2], "stream") || has(p.bodies[2], "stream_options") {
				t.Errorf("%d requests, the last one %v", len(p.bodies), p.bodies[len(p.bodies)-1])
			}
		})
	}
}

// TestRefusedPictures: a broken picture is left out of its conversation, a model that sees none is remembered.
func TestRefusedPictures(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		words string
		sees  bool // afterwards
	}{
		"broken":  {`{"error":{"message":"Could not process image"}}`, true},
		"unknown": {`{"error":{"message":"unexpected trouble"}}`, true},
		"none":    {`{"error":{"message":"image input is not supported"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := refusing(t, func(_ string, body map[string]any) (int, string) {
				if strings.Contains(fmt.Sprint(body["messages"]), "image_url") {
					return 400, test.words
				}
				return 0, ""
			})
			p, err := openai.New(openai.Options{Name: "main", BaseURL: s.URL + "/v1", Model: "gpt-4o"})
			if err != nil {
				t.Fatal(err)
			}
			req := &llm.Request{
				Messages: []llm.Message{{Role: llm.User, Text: "look", Parts: []llm.Part{{Kind: llm.ImagePart, Hash: "p"}}}},
				Open: func(context.Context, string) (io.ReadCloser, error) {
					return io.NopCloser(strings.NewReader("\x89PNG\r\n\x1a\n")), nil
				},
			}
			if _, err := p.Chat(t.Context(), req, nil); err != nil || len(s.paths) > 2 || p.Accepts().Image != test.sees {
				t.Errorf("%v after %d requests, sees %+v", err, len(s.paths), p.Accepts())
			}
			last := fmt.Sprint(s.bodies[len(s.bodies)-1]["messages"])
			if strings.Contains(last, "image_url") || !strings.Contains(last, "look") || !strings.Contains(last, "[image: the model's server refused it]") {
				t.Errorf("the picture is not told in words: %s", last)
			}
		})
	}
}
