package complaint_test

import (
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
)

// TestKind: what a person has to do about a failure, in the words of every server.
func TestKind(t *testing.T) {
	t.Parallel()
	const content = "refused" // Invalid, because of the content
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   llm.Kind
	}{
		// no credit
		{"OpenAI", 429, `{"error":{"message":"You exceeded your current quota, please check your plan and billing details.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, llm.NoCredit},
		{"OpenAI", 429, `{"error":{"message":"m","code":"credit_balance_exhausted"}}`, llm.NoCredit},
		{"OpenAI", 429, `{"error":{"message":"m","code":"project_spend_limit_exceeded"}}`, llm.NoCredit},
		{"OpenAI", 429, `{"error":{"message":"m","code":"organization_usage_limit_exceeded"}}`, llm.NoCredit},
		{"Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}`, llm.NoCredit},
		{"Anthropic", 402, `{"type":"error","error":{"type":"billing_error","message":"m"}}`, llm.NoCredit},
		{"xAI", 403, `{"code":"The caller does not have permission to execute the specified operation","error":"Your team x has either used all available credits or reached its monthly spending limit."}`, llm.NoCredit},
		{"xAI", 429, `{"code":"Some resource has been exhausted","error":"Your team has used all available credits"}`, llm.NoCredit},
		{"OpenRouter", 402, `{"error":{"message":"Insufficient credits","code":402,"metadata":{"limit_source":"openrouter_credits"}}}`, llm.NoCredit},
		{"OpenRouter", 402, `{"error":{"message":"m","code":402,"metadata":{"limit_source":"openrouter_key_limit"}}}`, llm.NoCredit},
		{"OpenRouter", 429, `{"error":{"message":"Rate limit exceeded: free-models-per-day","code":429}}`, llm.NoCredit},
		{"Cohere", 429, `{"message":"You are using a Trial key, which is limited to 1000 API calls / month."}`, llm.NoCredit},
		{"Gemini", 429, `[{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37s"}]}}]`, llm.NoCredit},
		{"z.ai", 429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`, llm.NoCredit},
		{"z.ai", 429, `{"error":{"code":"1308","message":"Usage limit reached for 5 hour. Your limit will reset at 2026-11-29 01:00:00"}}`, llm.NoCredit},
		{"Moonshot", 429, `{"error":{"message":"Your account is suspended, please check your plan and billing details","type":"exceeded_current_quota_error"}}`, llm.NoCredit},
		{"DeepSeek", 402, `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`, llm.NoCredit},
		{"DashScope", 400, `{"error":{"code":"Arrearage","message":"Access denied, please make sure your account is in good standing."}}`, llm.NoCredit},
		{"MiniMax", 200, `{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, llm.NoCredit},
		{"MiniMax", 400, `{"type":"error","error":{"type":"bad_request","message":"insufficient balance (1008)"}}`, llm.NoCredit},
		{"Fireworks", 412, `{"error":"account is suspended"}`, llm.NoCredit},
		{"Together", 402, ``, llm.NoCredit},
		{"LiteLLM", 400, `{"error":{"message":"Budget has been exceeded! Current cost: 11.0, Max budget: 10.0","type":"budget_exceeded","param":null,"code":"400"}}`, llm.NoCredit},
		{"Chinese proxy", 403, `{"error":{"message":"用户额度不足, 余额不足","type":"new_api_error"}}`, llm.NoCredit},
		// wait
		{"OpenAI", 429, `{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}`, llm.RateLimited},
		{"OpenRouter", 402, `{"error":{"message":"m","code":402,"metadata":{"limit_source":"openrouter_in_flight_budget"}}}`, llm.RateLimited},
		{"Gemini", 429, `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details.","status":"RESOURCE_EXHAUSTED","details":[{"violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel"}]},{"retryDelay":"37s"}]}}]`, llm.RateLimited},
		{"Gemini", 429, `{"error":{"code":429,"message":"You exceeded your current quota, please check your plan and billing details. Please retry in 37.2s.","status":"RESOURCE_EXHAUSTED"}}`, llm.RateLimited},
		{"z.ai", 429, `{"error":{"code":"1302","message":"m"}}`, llm.RateLimited},
		{"MiniMax", 200, `{"base_resp":{"status_code":1002,"status_msg":"m"}}`, llm.RateLimited},
		{"Moonshot", 429, `{"error":{"message":"m","type":"rate_limit_reached_error"}}`, llm.RateLimited},
		{"DashScope", 429, `{"error":{"code":"Throttling.RateQuota","message":"m"}}`, llm.RateLimited},
		{"Groq", 498, ``, llm.RateLimited},
		{"Groq", 429, `{"error":{"message":"Rate limit reached on tokens per day (TPD): Limit 100000, Used 99000, Requested 1500. Please try again in 6m57s.","code":"rate_limit_exceeded"}}`, llm.RateLimited},
		{"Groq", 429, `{"error":{"message":"Rate limit reached on tokens per day (TPD): Limit 100000, Used 100000, Requested 1500.","code":"rate_limit_exceeded"}}`, llm.NoCredit},
		// overload
		{"Anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.Unavailable},
		{"Anthropic", 0, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, llm.Unavailable},
		{"Moonshot", 429, `{"error":{"message":"The engine is currently overloaded, please try again later","type":"engine_overloaded_error"}}`, llm.Unavailable},
		{"z.ai", 429, `{"error":{"code":"1305","message":"m"}}`, llm.Unavailable},
		{"llama.cpp", 503, `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, llm.Unavailable},
		{"MiniMax", 200, `{"base_resp":{"status_code":1033,"status_msg":"m"}}`, llm.Unavailable},
		{"nginx", 502, `<html><head><title>502 Bad Gateway</title></head></html>`, llm.Unavailable},
		{"DeepSeek", 503, ``, llm.Unavailable},
		// key
		{"OpenAI", 401, `{"error":{"message":"Incorrect API key provided: sk-x","type":"invalid_request_error","code":"invalid_api_key"}}`, llm.Unauthorized},
		{"xAI", 400, `{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***. You can obtain an API key from https://console.x.ai."}`, llm.Unauthorized},
		{"Gemini", 400, `[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}]`, llm.Unauthorized},
		{"z.ai", 401, `{"error":{"code":"1002","message":"令牌已过期或验证不正确"}}`, llm.Unauthorized},
		{"z.ai", 400, `{"error":{"code":"1000","message":"m"}}`, llm.Unauthorized},
		{"MiniMax", 200, `{"base_resp":{"status_code":1004,"status_msg":"m"}}`, llm.Unauthorized},
		{"Moonshot", 401, `{"error":{"message":"Invalid Authentication","type":"invalid_authentication_error"}}`, llm.Unauthorized},
		{"Anthropic", 0, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, llm.Unauthorized},
		{"proxy", 403, ``, llm.Unauthorized},
		// model
		{"OpenAI", 404, "{\"error\":{\"message\":\"The model `gpt-9` does not exist or you do not have access to it.\",\"type\":\"invalid_request_error\",\"code\":\"model_not_found\"}}", llm.UnknownModel},
		{"OpenAI", 403, "{\"error\":{\"message\":\"Project `p` does not have access to model `gpt-9`\",\"code\":\"model_not_found\"}}", llm.UnknownModel},
		{"Azure", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, llm.UnknownModel},
		{"DeepSeek", 400, `{"error":{"message":"Model Not Exist","type":"invalid_request_error","code":"invalid_request_error"}}`, llm.UnknownModel},
		{"OpenRouter", 400, `{"error":{"message":"x/y is not a valid model ID","code":400}}`, llm.UnknownModel},
		{"OpenRouter", 404, `{"error":{"message":"No endpoints found for x/y.","code":404}}`, llm.UnknownModel},
		{"Ollama", 404, `{"error":{"message":"model \"llama9\" not found, try pulling it first","type":"not_found_error"}}`, llm.UnknownModel},
		{"Anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`, llm.UnknownModel},
		{"Fireworks", 404, `{"error":{"object":"error","type":"invalid_request_error","code":"NOT_FOUND","message":"Model not found, inaccessible, and/or not deployed"}}`, llm.UnknownModel},
		{"z.ai", 400, `{"error":{"code":"1211","message":"模型不存在，请检查模型代码。"}}`, llm.UnknownModel},
		{"Moonshot", 404, `{"error":{"message":"Not found the model kimi-9 or Permission denied","type":"resource_not_found_error"}}`, llm.UnknownModel},
		{"vLLM", 404, "{\"object\":\"error\",\"message\":\"The model `x` does not exist.\",\"type\":\"NotFoundError\",\"code\":404}", llm.UnknownModel},
		{"Mistral", 400, `{"object":"error","message":"Invalid model: mistral-9","type":"invalid_model","code":"1500"}`, llm.UnknownModel},
		{"LiteLLM", 401, `{"error":{"message":"key not allowed to access model. This key can only access models=['a']","type":"key_model_access_denied","code":"401"}}`, llm.UnknownModel},
		{"GitHub Models", 410, ``, llm.UnknownModel},
		{"Copilot", 400, `{"error":{"message":"The requested model is not supported.","code":"model_not_supported","param":"model"}}`, llm.UnknownModel},
		{"MLX", 404, `{"error":"Repository Not Found for url: https://huggingface.co/api/models/x"}`, llm.UnknownModel},
		{"Ollama", 503, `{"error":{"message":"server busy, please try again.  maximum pending requests exceeded","type":"api_error"}}`, llm.Unavailable},
		{"Groq", 400, "{\"error\":{\"message\":\"The model `m` has been decommissioned and is no longer supported.\",\"code\":\"model_decommissioned\"}}", llm.UnknownModel},
		{"mlx", 404, `{"error":"System message must be at the beginning."}`, llm.Invalid},
		{"any", 400, `{"error":{"message":"registry.ollama.ai/library/x does not support tools"}}`, llm.Invalid},
		{"any", 400, `{"error":{"message":"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.","code":"unsupported_parameter","param":"max_tokens"}}`, llm.Invalid},
		{"any", 400, `{"error":{"message":"Model 'grok-4' does not support parameter presencePenalty."}}`, llm.Invalid},
		{"any", 501, `{"error":{"message":"Not implemented"}}`, llm.Invalid},
		// region
		{"OpenAI", 403, `{"error":{"code":"unsupported_country_region_territory","message":"Country, region, or territory not supported","param":null,"type":"request_forbidden"}}`, llm.Region},
		{"Gemini", 400, `[{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}]`, llm.Region},
		{"any", 451, ``, llm.Region},
		{"Anthropic", 403, `{"error":{"type":"forbidden","message":"Access to Anthropic models is not allowed from unsupported countries, regions, or territories."}}`, llm.Region},
		// content
		{"Azure", 400, `{"error":{"code":"content_filter","message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","innererror":{"code":"ResponsibleAIPolicyViolation"}}}`, content},
		{"OpenRouter", 403, `{"error":{"message":"x requires moderation on Y. Your input was flagged for \"harassment\". No credits were charged.","code":403,"metadata":{"reasons":["harassment"]}}}`, content},
		{"DeepSeek", 400, `{"error":{"message":"Content Exists Risk","type":"invalid_request_error","param":null,"code":"invalid_request_error"}}`, content},
		{"DashScope", 400, `{"error":{"code":"data_inspection_failed","message":"Input data may contain inappropriate content."}}`, content},
		{"z.ai", 400, `{"error":{"code":"1301","message":"系统检测到输入或生成内容可能包含不安全或敏感内容"}}`, content},
		{"MiniMax", 200, `{"base_resp":{"status_code":1026,"status_msg":"input new_sensitive"}}`, content},
		{"MiniMax", 200, `{"base_resp":{"status_code":1027,"status_msg":"output new_sensitive"}}`, content},
		{"Moonshot", 400, `{"error":{"message":"The request was rejected because it was considered high risk","type":"content_filter"}}`, content},
		// the rest
		{"any", 408, ``, llm.Timeout},
		{"any", 409, ``, llm.Unavailable},
		{"any", 500, `{"error":{"message":"Internal server error"}}`, llm.Unavailable},
		{"any", 400, `{"error":{"message":"something else"}}`, llm.Invalid},
		{"any", 422, `{"detail":[{"type":"extra_forbidden","loc":["body","user"],"msg":"Extra inputs are not permitted"}]}`, llm.Invalid},
		{"in a stream", 0, `{"error":{"message":"something"}}`, llm.Unavailable},
		{"in a stream", 200, `{"error":{"message":"m","type":"invalid_request_error"}}`, llm.Invalid},
		{"in a stream", 200, `{"error":{"message":"m","code":429}}`, llm.RateLimited},
		{"in a stream", 200, `{"type":"server_error","message":"m"}`, llm.Unavailable},
		{"Groq", 400, `{"error":{"message":"Failed to call a function. Please adjust your prompt. See 'failed_generation' for more details.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=f>{}</function>"}}`, llm.Invalid},
	} {
		c := complaint.Read(tt.status, nil, []byte(tt.body), now)
		if got := c.Kind(); got != tt.kind && (tt.kind != content || got != llm.Invalid) {
			t.Errorf("%s %d %s: %s, want %s", tt.name, tt.status, tt.body, got, tt.kind)
		}
		if c.Refused() != (tt.kind == content) {
			t.Errorf("%s %d %s: refused because of its content: %t", tt.name, tt.status, tt.body, c.Refused())
		}
	}
}

// TestAffordable: an account with little money can pay for a shorter answer.
func TestAffordable(t *testing.T) {
	t.Parallel()
	c := complaint.Read(402, nil, []byte(`{"error":{"message":"This request requires more credits, or fewer max_tokens. You requested up to 8,192 tokens, but can only afford 1,900."}}`), now)
	if got := c.Affordable(); got != 1900 || c.Kind() != llm.NoCredit {
		t.Errorf("%d %s", got, c.Kind())
	}
	c = complaint.Read(429, nil, []byte(`[{"error":{"details":[{"retryDelay":"37s"},{"quotaId":"RequestsPerMinute"}]}}]`), now)
	if c.Affordable() != 0 || c.RetryAfter != 37*time.Second {
		t.Errorf("%d %s", c.Affordable(), c.RetryAfter)
	}
	c = complaint.Read(400, nil, []byte(`{"error":{"message":"m","failed_generation":"<function=f>{}</function>"}}`), now)
	if c.Failed != "<function=f>{}</function>" {
		t.Errorf("%q", c.Failed)
	}
}
