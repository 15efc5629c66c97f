package complaint_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
)

var now = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// TestOverflow: a conversation that is too long is recognised in the words of every server, and the numbers are read.
func TestOverflow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status      int
		body        string
		limit, size int
	}{
		// OpenAI
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 8192, 9001},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (8001 in the messages, 1000 in the completion).","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 8192, 9001},
		{400, `{"error":{"message":"Your input exceeds the context window of this model. Please adjust your input and try again.","type":"invalid_request_error","param":"input","code":"context_length_exceeded"}}`, 0, 0},
		{400, `{"error":{"message":"Your input exceeds the context window of this model.","type":"invalid_request_error","param":"input"}}`, 0, 0},
		// Anthropic
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9001 tokens > 8192 maximum"}}`, 8192, 9001},
		{400, "{\"type\":\"error\",\"error\":{\"type\":\"invalid_request_error\",\"message\":\"input length and `max_tokens` exceed context limit: 8001 + 1000 > 8192, decrease input length or `max_tokens` and try again\"}}", 8192, 9001},
		{413, `{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum allowed number of bytes."}}`, 0, 0},
		// Gemini: an array
		{400, `[{"error":{"code":400,"message":"The input token count (9001) exceeds the maximum number of tokens allowed (8192).","status":"INVALID_ARGUMENT"}}]`, 8192, 9001},
		// xAI: an error that is a string, and a code that is a sentence
		{400, `{"code":"Client specified an invalid argument","error":"This model's maximum prompt length is 8192 but the request contains 9001 tokens."}`, 8192, 9001},
		// Groq
		{400, `{"error":{"message":"Please reduce the length of the messages or completion.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 0, 0},
		{400, `{"error":{"message":"Please reduce the length of the messages or completion."}}`, 0, 0},
		{413, "{\"error\":{\"message\":\"Request too large for model `m` in organization `o` service tier `on_demand` on tokens per minute (TPM): Limit 8192, Requested 9001, please reduce your message size and try again.\",\"type\":\"tokens\",\"code\":\"rate_limit_exceeded\"}}", 8192, 9001},
		{413, `{"error":{"message":"request too large for this tier, Limit 8192, Requested 9001","code":"rate_limit_exceeded"}}`, 8192, 9001},
		// DeepSeek and vLLM
		{400, `{"object":"error","message":"This model's maximum context length is 8192 tokens. However, you requested 9001 tokens (8001 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","param":null,"code":400}`, 8192, 9001},
		{400, `{"error":{"message":"This model's maximum context length is 8192 tokens. However, you requested 1000 output tokens and your prompt contains at least 8001 input tokens, for a total of at least 9001 tokens.","type":"BadRequestError","param":"input_tokens","code":400}}`, 8192, 9001},
		{400, `{"message":"'max_tokens' or 'max_completion_tokens' is too large: 1000. This model's maximum context length is 8192 tokens and your request has 8001 input tokens (1000 > 8192 - 8001).","code":400}`, 8192, 9001},
		{400, `{"object":"error","message":"The decoder prompt (length 9001) is longer than the maximum model length of 8192. Make sure that max_model_len is no smaller than the number of text tokens.","type":"BadRequestError"}`, 8192, 9001},
		// SGLang and Together
		{400, `{"object":"error","message":"The input (9001 tokens) is longer than the model's context length (8192 tokens).","type":"BadRequestError","code":400}`, 8192, 9001},
		{400, `{"message":"Input length (9001 tokens) exceeds the maximum allowed length (8192 tokens). Use a shorter input or enable --allow-auto-truncate."}`, 8192, 9001},
		{422, `{"id":"x","error":{"message":"Input validation error: the input (9001 tokens) is longer than the model's context length (8192 tokens)"}}`, 8192, 9001},
		{403, `{"error":{"message":"The input (9001 tokens) is longer than the model's context length (8192 tokens)."}}`, 8192, 9001},
		// TGI
		{422, "{\"error\":\"Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8192. Given: 8001 `inputs` tokens and 1000 `max_new_tokens`\",\"error_type\":\"validation\"}", 8192, 9001},
		{422, "{\"error\":\"Input validation error: `inputs` must have less than 8192 tokens. Given: 9001\",\"error_type\":\"validation\"}", 8192, 9001},
		// llama.cpp
		{400, `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":9001,"n_ctx":8192}}`, 8192, 9001},
		{400, `{"error":{"code":400,"message":"request (9001 tokens) exceeds the available context size (8192 tokens), try increasing it","type":"exceed_context_size_error"}}`, 8192, 9001},
		{500, `{"error":{"code":500,"message":"the request exceeds the available context size. try increasing the context size or enable context shift","type":"server_error"}}`, 0, 0},
		// LM Studio
		{400, `{"error":"The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 9001>= n_ctx: 8192). Try to load the model with a larger context length, or provide a shorter input."}`, 8192, 9001},
		{400, `{"error":"Trying to keep the first 9001 tokens when context the overflows. However, the model is loaded with context length of only 8192 tokens, which is not enough."}`, 8192, 9001},
		// Ollama
		{400, `{"error":{"message":"prompt too long; exceeded max context length by 809 tokens","type":"invalid_request_error"}}`, 0, 0},
		{500, `{"error":{"message":"the input length exceeds the context length","type":"api_error"}}`, 0, 0},
		// Fireworks
		{400, `{"error":{"object":"error","type":"invalid_request_error","message":"The prompt is too long: 9001, model maximum context length: 8192"}}`, 8192, 9001},
		// Mistral
		{400, `{"object":"error","message":"Prompt contains 9001 tokens and 0 draft tokens, too large for model with 8192 maximum context length","type":"invalid_request_prompt","param":null,"code":"3051"}`, 8192, 9001},
		// Moonshot
		{400, `{"error":{"message":"Invalid request: Your request exceeded model token limit: 8192 (requested: 9001)","type":"invalid_request_error"}}`, 8192, 9001},
		// Cerebras
		{400, `{"message":"Please reduce the length of the messages or completion. Current length is 9001 while limit is 8192","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}`, 8192, 9001},
		{413, ``, 0, 0},
		// z.ai
		{400, `{"error":{"code":"1261","message":"Prompt exceeds max length"}}`, 0, 0},
		{400, `{"error":{"code":"1261","message":"Prompt 超长"}}`, 0, 0},
		{400, `{"error":{"code":"1210","message":"输入内容超过模型最大长度限制"}}`, 0, 0},
		// MiniMax, also with status 200
		{400, `{"type":"error","error":{"type":"bad_request_error","message":"invalid params, context window exceeds limit (2013)"}}`, 0, 0},
		{200, `{"base_resp":{"status_code":2013,"status_msg":"invalid params, context window exceeds limit"}}`, 0, 0},
		// DashScope
		{400, `{"error":{"code":"invalid_parameter_error","message":"<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 8192]","param":null,"type":"invalid_request_error"}}`, 8192, 0},
		// OpenRouter
		{400, `{"error":{"message":"This endpoint's maximum context length is 8192 tokens. However, you requested about 9001 tokens (8001 of text input, 1000 in the output). Please reduce the length of either one, or use the \"middle-out\" transform.","code":400}}`, 8192, 9001},
		{400, `{"error":{"message":"Provider returned error","code":400,"metadata":{"provider_name":"X","raw":"{\"error\":{\"message\":\"prompt is too long: 9001 tokens > 8192 maximum\",\"type\":\"invalid_request_error\"}}"}}}`, 8192, 9001},
		// Copilot
		{400, `{"error":{"message":"prompt token count of 9001 exceeds the limit of 8192","code":"model_max_prompt_tokens_exceeded"}}`, 8192, 9001},
		// Bedrock
		{400, `{"message":"Input is too long for requested model."}`, 0, 0},
		{400, `{"__type":"ValidationException","message":"The model returned the following errors: input is too long for requested model"}`, 0, 0},
		// proxies
		{413, `<html><head><title>413 Request Entity Too Large</title></head><body><center><h1>413 Request Entity Too Large</h1></center><hr><center>nginx/1.24.0</center></body></html>`, 0, 0},
		{400, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: ContextWindowExceededError: OpenAIException - {\"error\":{\"message\":\"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.\"}}","type":null,"param":null,"code":"400"}}`, 8192, 9001},
		{400, `{"error":{"message":"context length exceeded: prompt has 9001 tokens, model limit 8192"}}`, 8192, 9001},
		{500, `{"error":{"message":"Context size has been exceeded.","type":"server_error"}}`, 0, 0},
		// relatives of these
		{400, `{"detail":"The conversation has 9,001 tokens, which does not fit into the 8,192 token window"}`, 8192, 9001},
		{400, `{"detail":[{"type":"value_error","loc":["body","messages"],"msg":"Value error, the prompt of 9001 tokens is larger than the 8192 tokens that the model supports"}]}`, 8192, 9001},
		{400, `{"error":"your request is 9_001 tokens long; the maximum is 8_192 tokens"}`, 8192, 9001},
		{400, `input tokens (9 001) exceed the limit (8 192)`, 8192, 9001},
		{400, `{"message":"Too many input tokens: got 9001, at most 8192 are allowed"}`, 8192, 9001},
		{422, `{"message":"Sequence length 9001 exceeds max_seq_len 8192"}`, 8192, 9001},
		{503, `{"error":{"message":"prompt length 9001 is greater than context window 8192"}}`, 8192, 9001},
		{400, `{"error":{"message":"Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9001 tokens: 8001 tokens from the input messages and 1000 tokens for the completion."}}`, 8192, 9001},
		{400, `{"error":{"message":"输入的 token 数量 9001 超过模型上下文长度 8192"}}`, 8192, 9001},
		{400, `{"error":{"message":"Die Eingabe ist zu lang: 9001 Token, Limit 8192"}}`, 8192, 9001},
		{400, `{"error":{"message":"Invalid 'messages': array too long. Expected an array with maximum length 2048, but got an array with length 2100 instead.","param":"messages","code":"array_above_max_length"}}`, 0, 0},
		{400, `{"error":{"message":"the chat history is too big for this model (32k context)"}}`, 32_000, 0},
	} {
		c := complaint.Read(tt.status, nil, []byte(tt.body), now)
		limit, size, over := c.Overflow()
		if !over || c.Kind() != llm.TooLong {
			t.Errorf("%d %s: not recognised, %s", tt.status, tt.body, c.Kind())
			continue
		}
		if tt.limit == 0 && tt.size == 0 && strings.Contains(tt.body, "array_above") {
			continue // numbers of messages
		}
		if limit != tt.limit || size != tt.size {
			t.Errorf("%d %s: limit %d size %d, want %d and %d", tt.status, tt.body, limit, size, tt.limit, tt.size)
		}
	}
}

// TestNeverOverflow: words that look like those of a long conversation and mean another thing.
func TestNeverOverflow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		body   string
		kind   llm.Kind
	}{
		{429, `{"error":{"message":"Rate limit reached for gpt-4o in organization org-x on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.","type":"tokens","code":"rate_limit_exceeded"}}`, llm.RateLimited},
		{429, `{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 30,000 input tokens per minute."}}`, llm.RateLimited},
		{429, `{"message":"Too many tokens, please wait before trying again."}`, llm.RateLimited},
		{400, `{"message":"Too many tokens, please wait before trying again."}`, llm.RateLimited},
		{400, `{"__type":"ThrottlingException","message":"Too many requests: the input token rate exceeds the limit"}`, llm.RateLimited},
		{400, `{"error":{"message":"Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 51 instead.","type":"invalid_request_error","param":"messages[1].tool_calls[0].id","code":"string_above_max_length"}}`, llm.Invalid},
		{400, `{"error":{"message":"litellm.ContextWindowExceededError: litellm.BadRequestError: Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40","code":"400"}}`, llm.Invalid},
		{429, `{"error":{"message":"litellm.ContextWindowExceededError: rate limit exceeded: TPM limit of the key","code":"429"}}`, llm.RateLimited},
		{400, `{"error":{"message":"max_tokens is too large: 9000. This model supports at most 8192 completion tokens, whereas you provided 9000.","param":"max_tokens","code":null}}`, llm.Invalid},
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens for claude-x"}}`, llm.Invalid},
		{400, `{"error":{"message":"Range of max_tokens should be [1, 8192]","code":"invalid_parameter_error"}}`, llm.Invalid},
		{422, "{\"error\":\"`max_new_tokens` must be <= 512. Given: 2000\",\"error_type\":\"validation\"}", llm.Invalid},
		{400, `{"error":{"message":"Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 130 instead.","param":"tools","code":"array_above_max_length"}}`, llm.Invalid},
		{400, `{"error":{"message":"messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes","type":"invalid_request_error"}}`, llm.Invalid},
		{422, `{"detail":[{"type":"less_than_equal","loc":["body","temperature"],"msg":"Input should be less than or equal to 2","input":3}]}`, llm.Invalid},
		{422, `{"detail":[{"type":"string_too_long","loc":["body","tools",0,"function","name"],"msg":"String should have at most 64 characters"}]}`, llm.Invalid},
		{400, `{"error":{"message":"tools.0.custom.description: String should have at most 1024 characters"}}`, llm.Invalid},
		{402, `{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 8192 tokens, but can only afford 900.","code":402}}`, llm.NoCredit},
		{402, `{"error":{"message":"Prompt tokens limit exceeded: 5000 > 900. To increase, visit the page and add more credits","code":402}}`, llm.NoCredit},
		{401, `{"error":{"message":"Your access token has exceeded its maximum lifetime"}}`, llm.Unauthorized},
		{503, `{"error":{"message":"The request queue is full, too many waiting requests"}}`, llm.Unavailable},
		{400, `{"error":{"message":"Unexpected token '<' at position 9001 is larger than the maximum"}}`, llm.Invalid},
		{429, `{"error":{"code":"1302","message":"您当前使用该API的并发数过高，请降低并发，超过最大限制"}}`, llm.RateLimited},
		{400, `{"error":{"message":"max_tokens must be greater than thinking.budget_tokens"}}`, llm.Invalid},
		{408, `{"error":{"message":"request timed out: exceeded the limit of 60 seconds"}}`, llm.Timeout},
	} {
		c := complaint.Read(tt.status, nil, []byte(tt.body), now)
		if limit, size, over := c.Overflow(); over || limit != 0 || size != 0 {
			t.Errorf("%d %s: overflow %d %d", tt.status, tt.body, limit, size)
		}
		if got := c.Kind(); got != tt.kind {
			t.Errorf("%d %s: %s, want %s", tt.status, tt.body, got, tt.kind)
		}
	}
}

// TestQuota: a request that is larger than a budget per minute is shortened, and its budget is not the window.
func TestQuota(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"error":{"message":"Request too large for model m on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size","type":"tokens","code":"rate_limit_exceeded"}}`: true,
		`{"error":{"message":"Rate limit reached on tokens per minute (TPM): Limit 6000, Used 5000, Requested 3000. Please try again in 20s.","code":"rate_limit_exceeded"}}`:                        false,
		`{"error":{"message":"This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens."}}`:                                                                false,
	} {
		for _, status := range []int{http.StatusRequestEntityTooLarge, http.StatusTooManyRequests} {
			if status == http.StatusRequestEntityTooLarge && strings.Contains(body, "Used") {
				continue
			}
			c := complaint.Read(status, nil, []byte(body), now)
			if got := c.Quota(); got != want {
				t.Errorf("%d %s: %t", status, body, got)
			}
			if limit, _, over := c.Overflow(); want && (!over || limit != 6000 || c.Kind() != llm.TooLong) {
				t.Errorf("%d %s: %d %t", status, body, limit, over)
			}
		}
	}
}
