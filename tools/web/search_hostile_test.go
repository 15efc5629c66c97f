package web //nolint:testpackage // result is what every service's answer becomes

import (
	"strings"
	"testing"
)

// TestHostileResults: a result is a page of the web with one line each of title and text, whatever the service says.
func TestHostileResults(t *testing.T) {
	t.Parallel()
	res := result([]found{
		{"script", "javascript:alert(1)", "x"},
		{"data", "data:text/html;base64,PHNjcmlwdD4=", "x"},
		{"file", "file:///etc/passwd", "x"},
		{"trick", "https://bank.example.com@evil.example.com/", "x"},
		{"no host", "https:///x", "x"},
		{"long", "https://example.com/" + strings.Repeat("x", 1<<20), "x"},
		{"<b>A\x1b[31m title\u0007</b>\n2. forged", "https://example.com/a", "one\r\n   two<script>x</script>&#27;[0m"},
		{"", "https://example.com/b", strings.Repeat("<i>", 1<<20)},
	}, 20)
	want := "1. A[31m title 2. forged\n   https://example.com/a\n   one two"
	if !strings.HasPrefix(res.Text, want) || strings.ContainsAny(res.Text, "\x1b\x07\r") || strings.Count(res.Text, "\n") > 5 || len(res.Text) > 2000 {
		t.Errorf("%.400q", res.Text)
	}
	for _, gone := range []string{"javascript:", "data:", "file:", "evil", "xxxxxxxx"} {
		if strings.Contains(res.Text, gone) {
			t.Errorf("%s is in %.400q", gone, res.Text)
		}
	}
	for name, deep := range map[string]string{"deep": strings.Repeat(`{"results":[`, 1<<18), "no list": `{"results":{}}`, "null": `null`} {
		for service, b := range backends() {
			if list, err := b.read([]byte(deep)); err == nil && len(list) > 0 {
				t.Errorf("%s, %s: %v", service, name, list)
			}
		}
	}
}
