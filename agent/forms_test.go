package agent_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/agent/spend"
	"github.com/zephbot/zephbot/agent/summary"
)

// narrow is a model server with a window that refuses what exceeds it in a given form, and counts what it refuses.
type narrow struct {
	t         *testing.T
	anthropic bool
	limit     int
	perToken  float64 // bytes of the texts
	status    int
	form      string // of the body; {L} and {R} are the window and the size, {D} is their difference
	doubtful  bool   // nothing in form says why
	refused   int    // since the last answer
	seen      map[string]bool
}

func (n *narrow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		n.t.Error(err)
	}
	var req struct {
		System   json.RawMessage `json:"system"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		n.t.Error(err)
	}
	size := len(req.System)
	for _, m := range req.Messages {
		size += len(m.Content)
	}
	for _, tool := range req.Tools {
		size += len(tool)
	}
	if tokens := int(float64(size) / n.perToken); tokens > n.limit {
		if n.seen[string(body)] {
			n.t.Error("the same request is sent again")
		}
		n.seen[string(body)] = true
		n.refused++
		text := strings.NewReplacer("{L}", fmt.Sprint(n.limit), "{R}", fmt.Sprint(tokens), "{D}", fmt.Sprint(tokens-n.limit)).Replace(n.form)
		w.WriteHeader(n.status)
		_, _ = io.WriteString(w, text)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	answer := `data: {"choices":[{"index":0,"delta":{"content":"Noted."},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	if n.anthropic {
		answer = `data: {"type":"message_start","message":{"id":"m","usage":{"input_tokens":9}}}` + "\n\n" +
			`data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
			`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Noted."}}` + "\n\n" +
			`data: {"type":"content_block_stop","index":0}` + "\n\n" +
			`data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}` + "\n\n" +
			`data: {"type":"message_stop"}` + "\n\n"
	}
	_, _ = io.WriteString(w, answer)
}

// TestOutgrownWindow: a conversation outgrows the window of a model about which nothing is known. In whatever form the
// server says so, each message is answered, after at most one refused request, and no request is sent twice.
func TestOutgrownWindow(t *testing.T) {
	t.Parallel()
	const overflow = `{"error":{"message":"%s","type":"invalid_request_error","param":null,"code":null}}`
	for name, form := range map[string]struct {
		status int
		body   string
	}{
		"window, no number":     {400, `{"error":{"message":"Your input exceeds the context window of this model.","param":"input"}}`},
		"Mistral":               {400, `{"object":"error","message":"Prompt contains {R} tokens and 0 draft tokens, too large for model with {L} maximum context length","code":"3051"}`},
		"reduce the length":     {400, `{"error":{"message":"Please reduce the length of the messages or completion.","code":"context_length_exceeded"}}`},
		"budget":                {413, `{"error":{"message":"Request too large for model on tokens per minute (TPM): Limit {L}, Requested {R}, please reduce your message size","type":"tokens","code":"rate_limit_exceeded"}}`},
		"LM Studio":             {400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: {R}>= n_ctx: {L})"}`},
		"Bedrock":               {400, fmt.Sprintf(overflow, "Input is too long for requested model.")},
		"MiniMax":               {400, fmt.Sprintf(overflow, "invalid params, context window exceeds limit (2013)")},
		"MiniMax, 200":          {200, `{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}`},
		"Ollama":                {400, fmt.Sprintf(overflow, "prompt too long; exceeded max context length by {D} tokens")},
		"Cerebras":              {400, `{"message":"Please reduce the length. Current length is {R} while limit is {L}","type":"invalid_request_error","code":"context_length_exceeded"}`},
		"a page of a proxy":     {413, `<html><head><title>413 Request Entity Too Large</title></head><body>nginx</body></html>`},
		"exceeded":              {400, fmt.Sprintf(overflow, "context length exceeded: prompt has {R} tokens, model limit {L}")},
		"vLLM":                  {400, fmt.Sprintf(overflow, "The decoder prompt (length {R}) is longer than the maximum model length of {L}.")},
		"xAI":                   {400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is {L} but the request contains {R} tokens."}`},
		"Moonshot":              {400, fmt.Sprintf(overflow, "Invalid request: Your request exceeded model token limit: {L} (requested: {R})")},
		"z.ai":                  {400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`},
		"TGI":                   {422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= {L}. Given: {R} `inputs` tokens and 100 `max_new_tokens`\",\"error_type\":\"validation\"}"},
		"llama.cpp":             {400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_prompt_tokens":{R},"n_ctx":{L}}}`},
		"status 500":            {500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing it","type":"server_error"}}`},
		"Anthropic":             {400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: {R} tokens > {L} maximum"}}`},
		"not understood":        {400, fmt.Sprintf(overflow, "The request could not be processed.")},
		"not understood, empty": {400, ``},
	} {
		for wire, perToken := range map[string]float64{"openai": 4.2, "anthropic": 2.8} { // it counts fewer tokens than we, or more
			t.Run(name+" "+wire, func(t *testing.T) {
				t.Parallel()
				if wire == "anthropic" && form.status == 200 {
					t.Skip("this server has another wire")
				}
				outgrow(t, &narrow{
					t: t, anthropic: wire == "anthropic", limit: 20_000, perToken: perToken, status: form.status, form: form.body,
					doubtful: strings.HasPrefix(name, "not understood"), seen: map[string]bool{},
				})
			})
		}
	}
}

func outgrow(t *testing.T, n *narrow) {
	t.Helper()
	server := httptest.NewServer(n)
	defer server.Close()
	var provider llm.Provider
	var err error
	if n.anthropic {
		provider, err = anthropic.New(anthropic.Options{Name: "main", BaseURL: server.URL, Key: "key", Model: "m"})
	} else {
		provider, err = openai.New(openai.Options{Name: "main", BaseURL: server.URL, Model: "m"})
	}
	if err != nil {
		t.Fatal(err)
	}
	router, err := route.New([]llm.Provider{provider}, "main", nil, route.Options{
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, router, "")
	w.shelf.entries = nil
	sumUp := summary.Conversation(spend.NewModel("conversation", router), time.UTC)
	w.deps.SumUp = func(ctx context.Context, talk agent.Talk) (string, error) { return sumUp(ctx, summary.Talk(talk)) }
	w.limits.ContextTokens = 128_000
	for i := range 14 {
		n.refused = 0
		out := w.say(fmt.Sprint("turn-", i), fmt.Sprintf("Message %d. ", i)+strings.Repeat("word and word ", 690))
		if out.Kind != agent.Answered || out.Text != "Noted." {
			t.Fatalf("message %d: %+v", i, out)
		}
		most := 1
		if n.doubtful { // the adapter tries whether the form of the history is at fault
			most = 2
		}
		if n.refused > most {
			t.Errorf("message %d: %d refused requests", i, n.refused)
		}
	}
	if len(summaries(w.shelf.all())) == 0 {
		t.Error("nothing was summed up")
	}
}
