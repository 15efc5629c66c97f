package complaint_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/complaint"
)

// TestAddress: what answers where no model server does is told apart from what a model server says.
func TestAddress(t *testing.T) {
	t.Parallel()
	const cloudflare = "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head><body>Sorry, you have been blocked. Error 1020 Access denied</body></html>"
	for _, tt := range []struct {
		name   string
		status int
		body   string
		kind   llm.Kind
		says   string // of Elsewhere
	}{
		{"FastAPI", 404, `{"detail":"Not Found"}`, llm.WrongAddress, "base_url"},
		{"Go", 404, "404 page not found\n", llm.WrongAddress, "base_url"},
		{"nothing", 404, "", llm.WrongAddress, "status 404"},
		{"nginx", 404, "<html><head><title>404 Not Found</title></head></html>", llm.WrongAddress, "web page"},
		{"Express", 404, "<pre>Cannot POST /chat/completions</pre>", llm.WrongAddress, "web page"},
		{"Nest", 404, `{"statusCode":404,"message":"Cannot POST /chat/completions","error":"Not Found"}`, llm.WrongAddress, "base_url"},
		{"Spring", 404, `{"timestamp":"2026-11-01","status":404,"error":"Not Found","path":"/chat/completions"}`, llm.WrongAddress, "base_url"},
		{"Kong", 404, `{"message":"no Route matched with those values"}`, llm.WrongAddress, "base_url"},
		{"Azure", 404, `{"error":{"code":"404","message":"Resource not found"}}`, llm.WrongAddress, "base_url"},
		{"OpenAI", 404, `{"error":{"message":"Invalid URL (POST /v1/v1/chat/completions)","type":"invalid_request_error","param":null,"code":null}}`, llm.WrongAddress, "base_url"},
		{"llama.cpp", 404, `{"error":{"code":404,"message":"File Not Found","type":"not_found_error"}}`, llm.WrongAddress, "base_url"},
		{"LM Studio", 200, `{"error":"Unexpected endpoint or method. (POST /chat/completions)"}`, llm.WrongAddress, "base_url"},
		{"FastAPI", 405, `{"detail":"Method Not Allowed"}`, llm.WrongAddress, "base_url"},
		{"any", 405, ``, llm.WrongAddress, "status 405"},
		{"Python's http.server", 501, "<!DOCTYPE HTML><html><head><title>Error response</title></head></html>", llm.WrongAddress, "web page"},
		{"https spoken", 400, "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>", llm.WrongAddress, "plain HTTP"},
		{"https spoken", 400, "Client sent an HTTP request to an HTTPS server.", llm.WrongAddress, "base_url"},
		{"Cloudflare", 403, cloudflare, llm.WrongAddress, "gateway"},
		{"Cloudflare", 403, "<html><title>Just a moment...</title></html>", llm.WrongAddress, "gateway"},
		{"Cloudflare", 403, "error code: 1020", llm.WrongAddress, "gateway"},
		{"a redirect", 301, "", llm.WrongAddress, "redirects to https://other.example/login (status 301)"},
		{"a redirect", 308, "<html>Moved</html>", llm.WrongAddress, "redirects"},
		{"a proxy", 407, "", llm.WrongAddress, "proxy"},
		// what stays what it is
		{"nginx", 413, "<html><head><title>413 Request Entity Too Large</title></head></html>", llm.TooLong, ""},
		{"nginx", 401, "<html><head><title>401 Authorization Required</title></head></html>", llm.Unauthorized, ""},
		{"nginx", 502, "<html><head><title>502 Bad Gateway</title></head></html>", llm.Unavailable, ""},
		{"nginx", 503, "<html><head><title>503 Service Temporarily Unavailable</title></head></html>", llm.Unavailable, ""},
		{"nginx", 429, "<html><title>429 Too Many Requests</title></html>", llm.RateLimited, ""},
		{"OpenAI", 404, `{"error":{"message":"The model 'x' does not exist or you do not have access to it.","type":"invalid_request_error","code":"model_not_found"}}`, llm.UnknownModel, ""},
		{"Ollama", 404, `{"error":{"message":"model \"x\" not found, try pulling it first","type":"api_error"}}`, llm.UnknownModel, ""},
		{"Anthropic", 404, `{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}`, llm.UnknownModel, ""},
		{"Azure", 404, `{"error":{"code":"DeploymentNotFound","message":"The API deployment for this resource does not exist."}}`, llm.UnknownModel, ""},
		{"OpenAI", 404, `{"error":{"message":"This is not a chat model and thus not supported in the v1/chat/completions endpoint. Did you mean to use v1/completions?","param":"model"}}`, llm.Invalid, ""},
		{"mlx", 404, `{"error":"System message must be at the beginning."}`, llm.Invalid, ""},
		{"any", 403, `{"error":{"message":"no"}}`, llm.Unauthorized, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := complaint.Read(tt.status, nil, []byte(tt.body), time.Time{})
			if got := c.Kind(); got != tt.kind {
				t.Fatalf("%d %s: %s, want %s", tt.status, tt.body, got, tt.kind)
			}
			header := http.Header{"Location": {"https://u:secret@other.example/login?token=secret"}}
			text := c.Elsewhere("http://h/v1/chat/completions", "http://h/v1", tt.status, header)
			if !strings.Contains(text, tt.says) || !strings.Contains(text, "http://h/v1") || strings.Contains(text, "secret") {
				t.Errorf("%d %s: %s", tt.status, tt.body, text)
			}
		})
	}
}

// TestStray: of an answer with status 200 that is none, what says why is found, and nothing else is.
func TestStray(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body  string
		known bool
		kind  llm.Kind
	}{
		{`{"detail":"Invalid API key"}`, true, llm.Unauthorized},
		{`{"code":401,"msg":"token is missing"}`, true, llm.Unauthorized},
		{`{"error":"You have insufficient credits"}`, true, llm.NoCredit},
		{`{"message":"model \"x\" not found"}`, true, llm.UnknownModel},
		{`{"error":"prompt is too long: 210000 tokens > 200000 maximum"}`, true, llm.TooLong},
		{`{"code":429,"msg":"wait"}`, true, llm.RateLimited},
		{`Unauthorized`, true, llm.Unauthorized},
		{`{"message":"hello"}`, false, ""},
		{`{"code":7,"msg":"no"}`, false, ""},
		{`welcome to our service`, false, ""},
		{`{}`, false, ""},
		{`<html>insufficient credits</html>`, false, ""},
	} {
		c, known := complaint.Stray(nil, []byte(tt.body), time.Time{})
		if known != tt.known || known && c.Kind() != tt.kind {
			t.Errorf("%s: %v, %s", tt.body, known, c.Kind())
		}
	}
	for body, want := range map[string]string{
		`{"model":"m","message":{"role":"assistant","content":"hi"},"done":false}`: "/v1",
		`{"candidates":[{"content":{}}]}`:                                          "/v1beta/openai",
		`{"type":"message_start","message":{}}`:                                    `type = "anthropic"`,
		`{"id":"r","object":"response","output":[]}`:                               `wire = "responses"`,
		`{"object":"chat.completion","choices":[]}`:                                `type = "openai"`,
		`[{"generated_text":"hi"}]`:                                                "/v1",
	} {
		if got := complaint.Foreign([]byte(body)); !strings.Contains(got, want) {
			t.Errorf("%s: %q", body, got)
		}
	}
	if got := complaint.Foreign([]byte(`{"detail":"done"}`)); got != "" {
		t.Error(got)
	}
}
