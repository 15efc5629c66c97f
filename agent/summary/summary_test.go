package summary_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/agent/spend"
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

// paid makes a context whose calls cost nothing.
func paidCtx(t *testing.T) context.Context {
	t.Helper()
	return cost.WithPayer(t.Context(), cost.Unlimited{})
}

func TestSummary(t *testing.T) {
	t.Parallel()
	m := &model{resp: &llm.Response{Text: "  three errors in a.go \n", Stop: llm.StopEnd}}
	got, err := summary.New(spend.NewModel("summary", m))(paidCtx(t), strings.Repeat("q", 3000), "bash", "a.go:1: bad")
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
		if got, err := summary.New(spend.NewModel("summary", m))(paidCtx(t), "q", "bash", "x"); err == nil || got != "" {
			t.Errorf("%s: %q, %v", name, got, err)
		} else if m.err != nil && !errors.Is(err, away) {
			t.Errorf("%s: %v does not name the cause", name, err)
		}
	}
}

// TestUnpaid: a summary that the quota has no room for is not asked for.
func TestUnpaid(t *testing.T) {
	t.Parallel()
	m := llmtest.New(llmtest.Step{Text: "short"})
	if _, err := summary.New(spend.NewModel("summary", m))(t.Context(), "q", "bash", "x"); !cost.Refused(err) || len(m.Requests()) != 0 {
		t.Errorf("%v, asked %d times", err, len(m.Requests()))
	}
}

// TestAside: a side question stands behind the conversation, whose text is material.
func TestAside(t *testing.T) {
	t.Parallel()
	m := &model{resp: &llm.Response{Text: " A profit. ", Stop: llm.StopEnd}}
	got, err := summary.Aside(spend.NewModel("aside", m), time.UTC)(paidCtx(t), summary.Talk{
		Earlier: "about sums", MaxInput: 1000, Entries: []journal.Entry{{Kind: journal.UserEntry, Speaker: "Ben", Text: "hold on"}},
	}, "\n\nSpeak as tutor.", "what is EBITDA?")
	if err != nil || got != "A profit." {
		t.Fatalf("%q, %v", got, err)
	}
	text := m.seen.Messages[0].Text
	if !strings.HasPrefix(text, "A summary of its beginning:\nabout sums\n\nThe conversation:\n") || !strings.Contains(text, "person Ben: hold on") ||
		!strings.HasSuffix(m.seen.System, "\n\nSpeak as tutor.") ||
		!strings.HasSuffix(text, "\n\nThe side question:\nwhat is EBITDA?") || len(m.seen.Tools) != 0 {
		t.Errorf("request %q", text)
	}
}
