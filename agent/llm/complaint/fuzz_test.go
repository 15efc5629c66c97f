package complaint_test

import (
	"net/http"
	"testing"
	"unicode/utf8"

	"github.com/zephbot/zephbot/agent/llm/complaint"
)

// FuzzRead: whatever a server sends is read within bounds, and the numbers can be those of a window.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		``, `null`, `"text"`, `[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT","details":[{"fieldViolations":[{"field":"tools[0].x"}]}]}}]`,
		`{"error":{"message":"Provider returned error","metadata":{"raw":"{\"error\":{\"param\":\"tools[2].parameters\"}}"}}}`,
		`{"detail":[{"loc":["body","user"],"msg":"m"}]}`, `{"base_resp":{"status_code":1008,"status_msg":"m (1008)"}}`, `<html><title>t`,
		`{"error":"n_keep: 9001>= n_ctx: 8192`, `try again in 1m2.5s`, `{"message":"{\"message\":\"{\\\"message\\\":1}\"}"}`, `{"a":[[[[[[[[[[[[[[[[[[]]]`,
		"1 234 567,000 > 8_192 tokens; 32k", "请在20秒后重试",
	} {
		f.Add(400, body, "3")
	}
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		h := http.Header{"Retry-After": {after}}
		c := complaint.Read(status, h, []byte(body), now)
		limit, size, over := c.Overflow()
		if !over && (limit != 0 || size != 0) || limit < 0 || size < 0 || limit > 1<<27 || (size != 0 && size <= limit) {
			t.Errorf("limit %d size %d over %t", limit, size, over)
		}
		if c.Kind() == "" || c.RetryAfter < 0 || c.RetryAfter > complaint.MaxRetryAfter {
			t.Errorf("kind %q wait %s", c.Kind(), c.RetryAfter)
		}
		if len(c.Message) > 4<<10 || len(c.Places) > 32 || !utf8.ValidString(c.Text()) || !utf8.ValidString(c.Param) {
			t.Errorf("%d bytes, %d places, %q", len(c.Message), len(c.Places), c.Text())
		}
		c.Refused()
		c.Quota()
		c.Affordable()
		complaint.Hidden([]byte(body), now)
	})
}
