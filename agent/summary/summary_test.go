package summary_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/summary"
)

// model answers with a given text and records the request.
type model struct {
	resp *llm.Response
	err  error
	seen *llm.Request
}

func (m *model) Name() string { return "m" }

func (m *model) Chat(_ context.Context, req *llm.Request, _ func(string)) (*llm.Response, error) {
	m.seen = req
	return m.resp, m.err
}

func TestSummary(t *testing.T) {
	t.Parallel()
	m := &model{resp: &llm.Response{Text: "  three errors in a.go \n", Stop: llm.StopEnd}}
	got, err := summary.New(m)(t.Context(), strings.Repeat("q", 3000), "bash", "a.go:1: bad")
	if err != nil || got != "three errors in a.go" {
		t.Fatalf("%q, %v", got, err)
	}
	text := m.seen.Messages[0].Text
	if len(m.seen.Tools) != 0 || !strings.Contains(text, "a.go:1: bad") || strings.Count(text, "q") > 2100 || m.seen.MaxTokens != summary.MaxTokens {
		t.Errorf("request %+v", m.seen)
	}
}

func TestNoSummary(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	for name, m := range map[string]*model{
		"failed": {err: away}, "silent": {resp: &llm.Response{Text: " \n"}}, "refused": {resp: &llm.Response{Text: "I cannot", Stop: llm.StopRefusal}},
	} {
		if got, err := summary.New(m)(t.Context(), "q", "bash", "x"); err == nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		} else if m.err != nil && !errors.Is(err, away) {
			t.Errorf("%s: %v does not name the cause", name, err)
		}
	}
}
