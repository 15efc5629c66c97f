package app_test

import (
	"strings"
	"testing"
)

// TestWhatAPersonReads: a failure that is told with status 200 has its sentence at once, an answer with nothing in it after
// three attempts, one of which also asks without what such a server might not take. /model is named only where it offers
// what was not tried.
func TestWhatAPersonReads(t *testing.T) {
	t.Parallel()
	event := func(body string) string { return "data: " + body + "\n\n" }
	const other = "[[llm.providers]]\nname = \"large\"\nmodel = \"gpt-big\"\nwire = \"chat\"\nbase_url = \"http://127.0.0.1:9/v1\"\n"
	for name, tt := range map[string]struct {
		extra    string
		answers  []string
		reads    string
		requests int
		model    bool
	}{
		"a wrong key":            {"", []string{event(`{"detail":"Invalid API key"}`)}, "does not accept my key", 1, false},
		"no credit":              {"", []string{event(`{"message":"insufficient balance"}`)}, "no credit or quota left", 1, false},
		"no credit, a choice":    {other + "[llm]\nchoices = [\"large\"]\n", []string{event(`{"message":"insufficient balance"}`)}, "no credit or quota left", 1, true},
		"no credit, other, none": {other, []string{event(`{"message":"insufficient balance"}`)}, "no credit or quota left", 1, false},
		"nothing":                {"", []string{"", "", "", "", spoken("never")}, "no model server answers", 4, false},
		"plain text":             {"", []string{"It works!\n\n"}, "no model server answers", 1, false},
		"Ollama's own lines":     {"", []string{`{"message":{"content":"hi"},"done":true}` + "\n"}, "no model server answers", 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWired(t, "", tt.extra, tt.answers...)
			w.say("hello")
			text := w.await(tt.reads).Text
			if strings.Contains(text, "/model") != tt.model {
				t.Error(text)
			}
			if n := len(w.vendor.requests(t)); n != tt.requests {
				t.Errorf("%d requests", n)
			}
		})
	}
}
