package agent_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/anthropic"
	"github.com/zephbot/zephbot/agent/llm/fenced"
	"github.com/zephbot/zephbot/agent/llm/openai"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/tools"
)

const (
	hugeSize = 100 << 20 // bytes that the server sends
	hugeMost = 50 << 20  // bytes of memory allowed for them
	hugeEnv  = "ZEPH_HUGE_ANSWER"
)

// flood is a body that repeats a piece until it has sent hugeSize bytes, between a head and a tail. It measures the
// memory of the process while it is read.
type flood struct {
	head, piece, tail string
	rest              []byte
	sent              int
	peak              uint64
}

func (f *flood) Read(p []byte) (int, error) {
	f.peak = max(f.peak, resident())
	if len(f.rest) == 0 {
		switch {
		case f.sent == 0:
			f.rest = []byte(f.head + f.piece)
		case f.sent < hugeSize:
			f.rest = bytes.Repeat([]byte(f.piece), max(1, 4096/len(f.piece)))
		case f.tail != "":
			f.rest, f.tail = []byte(f.tail), ""
		default:
			return 0, io.EOF
		}
	}
	n := copy(p, f.rest)
	f.rest, f.sent = f.rest[n:], f.sent+n
	return n, nil
}

func (*flood) Close() error { return nil }

func (f *flood) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: f, Request: req}, nil
}

// resident returns the resident memory of the process.
func resident() uint64 {
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	return s[0].Value.Uint64() - s[1].Value.Uint64()
}

// hugeAnswers lists the ways in which an answer can be huge, by name: the wire, the body, and how the turn has to end.
func hugeAnswers() map[string]struct {
	wire string
	body flood
	kind agent.OutcomeKind
	why  string
} {
	word := strings.Repeat("word ", 50)
	chat := func(delta string) string { return `data: {"choices":[{"index":0,"delta":` + delta + `}]}` + "\n\n" }
	finish := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n"
	respond := func(delta string) string {
		return `data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"` + delta + `"}` + "\n\n"
	}
	messages := func(event string) string { return "event: x\ndata: " + event + "\n\n" }
	start := messages(`{"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}`) +
		messages(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`)
	type huge = struct {
		wire string
		body flood
		kind agent.OutcomeKind
		why  string
	}
	return map[string]huge{
		"chat deltas":        {"chat", flood{piece: chat(`{"content":"` + word + `"}`), tail: finish}, agent.Answered, journal.ReasonLength},
		"chat small deltas":  {"chat", flood{piece: chat(`{"content":"some few words"}`), tail: finish}, agent.Answered, journal.ReasonLength},
		"chat one line":      {"chat", flood{head: `data: {"choices":[{"index":0,"delta":{"content":"`, piece: word, tail: `"}}]}` + "\n\n" + finish}, agent.Ended, journal.ReasonOversize},
		"chat one JSON":      {"chat", flood{head: `{"choices":[{"index":0,"message":{"content":"`, piece: word, tail: `"},"finish_reason":"stop"}]}`}, agent.Ended, journal.ReasonOversize},
		"chat comments":      {"chat", flood{piece: ": still thinking about it\n", tail: chat(`{"content":"done"}`) + finish}, agent.Answered, ""},
		"chat thoughts":      {"chat", flood{piece: chat(`{"reasoning_content":"` + strings.Repeat(word, 16) + `"}`), tail: chat(`{"content":"done"}`) + finish}, agent.Answered, ""},
		"chat in fences":     {"fenced", flood{piece: chat(`{"content":"` + "```bash\\n" + word + `\n"}`), tail: finish}, agent.Answered, journal.ReasonLength},
		"responses deltas":   {"responses", flood{piece: respond(word)}, agent.Answered, journal.ReasonLength},
		"responses one line": {"responses", flood{head: `data: {"type":"response.output_text.delta","delta":"`, piece: word, tail: "\"}\n\n"}, agent.Ended, journal.ReasonOversize},
		"messages deltas":    {"messages", flood{head: start, piece: messages(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + word + `"}}`)}, agent.Answered, journal.ReasonLength},
		"messages one line":  {"messages", flood{head: start + "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"", piece: word}, agent.Ended, journal.ReasonOversize},
	}
}

// TestHugeAnswer: whatever a server sends, an answer costs less than 50 MB and ends: cut, or with a sentence. Each case
// runs in a process of its own, where nothing else uses memory.
func TestHugeAnswer(t *testing.T) {
	t.Parallel()
	all := hugeAnswers()
	if name := os.Getenv(hugeEnv); name != "" {
		tt := all[name]
		measureHuge(t, tt.wire, &tt.body, tt.kind, tt.why)
		return
	}
	for name := range all {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // one process at a time
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestHugeAnswer$", "-test.v")
			cmd.Env = append(os.Environ(), hugeEnv+"="+name, "GORACE=", "GOMEMLIMIT=off", "GOGC=100")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			for line := range strings.Lines(string(out)) {
				if strings.Contains(line, "MB of memory") {
					t.Log(strings.TrimSpace(line))
				}
			}
		})
	}
}

func measureHuge(t *testing.T, wire string, body *flood, kind agent.OutcomeKind, why string) {
	t.Helper()
	provider := hugeProvider(t, wire, body)
	router, err := route.New([]llm.Provider{provider}, "main", nil, route.Options{Timeout: 10 * time.Minute, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	runner := agent.NewRunner(agent.Deps{
		Provider: router, Catalog: noTools{}, System: func(*agent.Turn, bool) string { return "" }, Now: time.Now,
	}, agent.Limits{})
	s := &shelf{t: t}
	s.keep(journal.Entry{Turn: "t", Kind: journal.UserEntry, Text: "hi"})
	runtime.GC()
	before := resident()
	out, err := runner.Run(t.Context(), &agent.Turn{ID: "t"}, &handle{shelf: s}, &screen{})
	if err != nil {
		t.Fatal(err)
	}
	if out.Kind != kind || out.Reason != why {
		t.Errorf("%s %q, want %s %q", out.Kind, out.Reason, kind, why)
	}
	if cost := max(body.peak, resident()) - min(before, body.peak); cost > hugeMost {
		t.Errorf("cost %d MB", cost>>20)
	} else {
		t.Logf("%d bytes sent, %d of text, %.1f MB of memory", body.sent, len(out.Text), float64(cost)/(1<<20))
	}
	if why != journal.ReasonLength && kind == agent.Answered && body.sent < hugeSize {
		t.Errorf("only %d bytes were read", body.sent)
	}
}

func hugeProvider(t *testing.T, wire string, body *flood) llm.Provider {
	t.Helper()
	client := &http.Client{Transport: body}
	if wire == "messages" {
		p, err := anthropic.New(anthropic.Options{Name: "main", Key: "k", Model: "m", HTTPClient: client})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	o := openai.Options{Name: "main", Model: "m", Wire: openai.WireChat, HTTPClient: client}
	if wire == "responses" {
		o.Wire = openai.WireResponses
	}
	p, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if wire == "fenced" {
		return fenced.New(p, fenced.Options{})
	}
	return p
}

// screen collects the growing text as a display does.
type screen struct{ text strings.Builder }

func (s *screen) Emit(_ context.Context, e agent.Event) { s.text.WriteString(e.Text) }

type noTools struct{}

func (noTools) Tools(context.Context, *agent.Turn, agent.View) []agent.Offer {
	return []agent.Offer{agent.Plain(tools.Definition{Name: "bash", Schema: []byte(`{"type":"object"}`)})}
}
