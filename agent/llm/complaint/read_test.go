package complaint_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm/complaint"
)

// TestRead: every form of a body gives its words, its code and the parts of the request that it names.
func TestRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		body, message, code, class string
		places                     []string
	}{
		{`{"error":{"message":"m","type":"t","param":"tools[2].function.parameters","code":"c"}}`, "m", "c", "t", []string{"tools[2].function.parameters"}},
		{`[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"tools[0].function_declarations[3].parameters","description":"d"}]}]}}]`, "m; d", "", "INVALID_ARGUMENT", []string{"tools[0].function_declarations[3].parameters"}},
		{`{"error":"s"}`, "s", "", "", nil},
		{`{"code":"a sentence of a code","error":"s"}`, "s", "a sentence of a code", "", nil},
		{`{"message":"m","type":"t","param":"p","code":"wrong_api_format"}`, "m", "wrong_api_format", "t", []string{"p"}},
		{`{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`, "m", "", "BadRequestError", nil},
		{`{"detail":[{"type":"extra_forbidden","loc":["body","user"],"msg":"Extra inputs are not permitted"}]}`, "Extra inputs are not permitted", "", "extra_forbidden", []string{"body.user"}},
		{`{"detail":[{"loc":["body","tools",1,"function"],"msg":"a"},{"loc":["body","n"],"msg":"b"}]}`, "a; b", "", "", []string{"body.tools.1.function", "body.n"}},
		{`{"detail":"s"}`, "s", "", "", nil},
		{`{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`, "insufficient balance", "1008", "", nil},
		{`{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"inner\",\"type\":\"invalid_request_error\",\"param\":\"tools[2].function.parameters\",\"code\":\"invalid_function_parameters\"}}"}}}`, "Provider returned error; inner", "invalid_function_parameters", "invalid_request_error", []string{"tools[2].function.parameters"}},
		{`{"error":"s","error_type":"validation"}`, "s", "", "validation", nil},
		{`{"error":{"message":"tool f, tools[1].function.parameters: bad","param":"tool f, tools[1].function.parameters"}}`, "tool f, tools[1].function.parameters: bad", "", "", []string{"tool f, tools[1].function.parameters", "tools[1].function.parameters"}},
		{`{"type":"error","error":{"type":"invalid_request_error","message":"tools.5.custom.input_schema: JSON schema is invalid"}}`, "tools.5.custom.input_schema: JSON schema is invalid", "", "invalid_request_error", []string{"tools.5.custom.input_schema"}},
		{`{"error":{"message":"cut off in the mid`, `{"error":{"message":"cut off in the mid`, "", "", nil},
		{`{"error":{"message":"whole","code":"c","in`, "whole", "c", "", nil},
		{`{"Error":{"Message":"M","Code":"c"}}`, "M", "c", "", nil},
		{`upstream said {"error":{"message":"inner","code":"c"}}`, `upstream said {"error":{"message":"inner","code":"c"}}`, "c", "", nil},
		{"data: {\"error\":{\"message\":\"inner\",\"code\":\"c\"}}\n\n", `data: {"error":{"message":"inner","code":"c"}}`, "c", "", nil},
		{`"text"`, "text", "", "", nil},
		{`null`, "", "", "", nil},
		{``, "", "", "", nil},
		{`plain words`, "plain words", "", "", nil},
		{`{"other":1}`, `{"other":1}`, "", "", nil},
		{`<html><head><title>502 Bad Gateway</title></head><body>x</body></html>`, "502 Bad Gateway", "", "", nil},
		{`<html><style>x</style><body><h1>Not  Found &amp; lost</h1></body></html>`, "Not Found & lost", "", "", nil},
	} {
		c := complaint.Read(400, nil, []byte(tt.body), now)
		if c.Message != tt.message || c.Code != tt.code || c.Type != tt.class || !slices.Equal(c.Places, tt.places) || c.Status != 400 {
			t.Errorf("%s:\nmessage %q code %q type %q places %q", tt.body, c.Message, c.Code, c.Type, c.Places)
		}
	}
}

// TestReadIsBounded: neither depth nor length of a body costs more than its bounds.
func TestReadIsBounded(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		strings.Repeat(`{"error":`, 1<<20), strings.Repeat(`[`, 1<<20), `{"message":"` + strings.Repeat("ж", 1<<20) + `"}`,
		`{"detail":[` + strings.Repeat(`{"loc":["a"],"msg":"b"},`, 1<<16) + `]}`,
		strings.Repeat(`{"message":"{`, 1<<16), "<" + strings.Repeat("<script", 1<<18), strings.Repeat("1 ", 1<<18),
	} {
		c := complaint.Read(400, nil, []byte(body), now)
		c.Kind()
		if len(c.Message) > 4<<10 || len(c.Places) > 32 {
			t.Errorf("%.20s: %d bytes, %d places", body, len(c.Message), len(c.Places))
		}
	}
}

// TestStatus: within a stream, the code is the status; a refusal keeps its own.
func TestStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status, want int
		body         string
	}{
		{200, 429, `{"error":{"code":429,"message":"m"}}`},
		{0, 502, `{"error":{"code":"502","message":"m"}}`},
		{400, 400, `{"error":{"code":429,"message":"m"}}`},
		{200, 0, `{"error":{"code":"1113","message":"m"}}`},
	} {
		if got := complaint.Read(tt.status, nil, []byte(tt.body), now).Status; got != tt.want {
			t.Errorf("%d %s: %d", tt.status, tt.body, got)
		}
	}
}

// TestRetryAfter: the wait is read from headers, from fields and from words, in this order.
func TestRetryAfter(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, value, body string
		want              time.Duration
	}{
		{"Retry-After", "7", "", 7 * time.Second},
		{"Retry-After", " 1.5 ", "", 1500 * time.Millisecond},
		{"Retry-After-Ms", "250", "", 250 * time.Millisecond},
		{"Retry-After", "Sat, 28 Nov 2026 12:00:30 GMT", "", 30 * time.Second},
		{"Retry-After", "Wed, 04 Mar 2020 12:00:30 GMT", "", 0},
		{"Retry-After", "1e300", "", complaint.MaxRetryAfter},
		{"Retry-After", "Wed, 04 Mar 2099 12:00:30 GMT", "", complaint.MaxRetryAfter},
		{"Retry-After", "-3", "", 0},
		{"Retry-After", "NaN", "", 0},
		{"Retry-After", "soon", "", 0},
		{"X-Other", "3", "", 0},
		{"Retry-After", "7", `{"error":{"message":"Please try again in 20s"}}`, 7 * time.Second},
		{"", "", `[{"error":{"code":429,"message":"m","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"37s"}]}}]`, 37 * time.Second},
		{"", "", `{"error":{"message":"Rate limit reached. Please try again in 20s. Visit https://example.com"}}`, 20 * time.Second},
		{"", "", `{"error":{"message":"Please try again in 1m2.5s."}}`, 62500 * time.Millisecond},
		{"", "", `{"error":{"message":"Please try again in 350ms."}}`, 350 * time.Millisecond},
		{"", "", `{"error":{"message":"try again in 6m0s"}}`, 6 * time.Minute},
		{"", "", `{"message":"Rate limited, retry after 30 seconds"}`, 30 * time.Second},
		{"", "", `{"message":"wait for 2 minutes and 5 seconds"}`, 125 * time.Second},
		{"", "", `{"message":"limit resets in 3 hours"}`, 3 * time.Hour},
		{"", "", `{"message":"请在20秒后重试"}`, 20 * time.Second},
		{"", "", `{"error":{"code":"1308","message":"m","next_flush_time":"2026-11-28 21:00:00"}}`, time.Hour},
		{"", "", `{"error":{"code":"1308","message":"m","next_flush_time":1795867260}}`, time.Minute},
		{"", "", `{"message":"model 4 is retired, try again with 5 models"}`, 0},
		{"", "", `{"retry_after":2}`, 2 * time.Second},
	} {
		h := http.Header{}
		if tt.name != "" {
			h.Set(tt.name, tt.value)
		}
		if got := complaint.Read(429, h, []byte(tt.body), now).RetryAfter; got != tt.want {
			t.Errorf("%s: %s %s is %s, want %s", tt.name, tt.value, tt.body, got, tt.want)
		}
	}
}

// TestHidden: a refusal within an answer of status 200 is found, success is not taken for one.
func TestHidden(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]bool{
		`{"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`:   true,
		`{"choices":null,"base_resp": {"status_msg":"x","status_code": 1002}}`:     true,
		`{"choices":[],"base_resp":{"status_code":0,"status_msg":""}}`:             false,
		`{"choices":[{"message":{"content":"\"base_resp\":{\"status_code\":1"}}]}`: false,
		`{}`: false,
	} {
		if _, ok := complaint.Hidden([]byte(body), now); ok != want {
			t.Errorf("%s: %t", body, ok)
		}
	}
}
