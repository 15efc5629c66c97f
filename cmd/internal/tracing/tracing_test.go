package tracing_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/route"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/cmd/internal/tracing"
	"github.com/zephbot/zephbot/cmd/internal/tracing/tracetest"
	"github.com/zephbot/zephbot/tools"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const turn = "telegram-7-100"

// counts adds up what became of spans.
type counts struct {
	mu   sync.Mutex
	sums map[string]int
}

func (c *counts) add(outcome string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sums == nil {
		c.sums = map[string]int{}
	}
	c.sums[outcome] += n
}

func (c *counts) of(outcome string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sums[outcome]
}

// open returns a tracer of a collector of its own.
func open(t *testing.T, c *tracetest.Collector, ratio float64) (*tracing.Tracer, *counts) {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	sums := &counts{}
	tracer, err := tracing.Open(t.Context(), tracing.Options{
		Endpoint: server.URL, Headers: map[string]string{"X-Key": "k"}, Ratio: ratio, Version: "1", Instance: "one",
		Report: sums.add, Log: zerolog.Nop(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return tracer, sums
}

func run(ctx context.Context, tracer *tracing.Tracer, out agent.Outcome, work func(ctx context.Context)) {
	ctx, end := tracer.Run(ctx, &agent.Turn{ID: turn, Origin: tools.Origin{Session: "s"}})
	work(ctx)
	end(out, nil)
}

// TestOneTraceOverProcesses: a turn that is parked in one process and ended by another one is one trace with one root,
// without the two having talked to each other.
func TestOneTraceOverProcesses(t *testing.T) {
	t.Parallel()
	c := &tracetest.Collector{}
	first, _ := open(t, c, 1)
	second, sums := open(t, c, 1)
	call := &tools.Call{ID: "c1_0", Tool: "Bash", Def: tools.Definition{Name: "bash"}, Trail: &tools.Trail{Category: tools.Timeout}}
	run(t.Context(), first, agent.Outcome{Kind: agent.Parked}, func(ctx context.Context) {
		first.Asked(ctx, tracing.Model{Vendor: "openai", Name: "m"}, route.Attempt{
			Provider: "main", Number: 1, Duration: time.Second, Err: &llm.Error{Kind: llm.RateLimited, Err: errors.New("a text of the vendor")},
		})
	})
	at := time.Now()
	run(t.Context(), second, agent.Outcome{Kind: agent.Answered}, func(ctx context.Context) {
		second.Decided(&bot.Approval{Turn: turn, Call: "c1_0", Tool: "bash", Created: at.Add(-time.Minute)}, bot.Decision{State: bot.Approved, At: at})
		ctx, end := second.Tool(ctx, call)
		inside, left := second.Stage(ctx, "gate", call)
		header := http.Header{}
		if second.Inject(inside, header); !strings.HasPrefix(header.Get("Traceparent"), "00-") {
			t.Errorf("traceparent %q", header)
		}
		left(nil)
		end(&tools.Result{Text: "said by a tool"}, nil)
	})
	second.Turn(tracing.Ended{Turn: turn, Outcome: "answered", From: at.Add(-time.Hour), To: at})
	for _, tracer := range []*tracing.Tracer{first, second} {
		if err := tracer.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	byName := map[string]tracetest.Span{}
	id, root := tracing.IDs(turn)
	for _, s := range c.Spans() {
		byName[s.Name] = s
		if s.Trace != id.String() {
			t.Errorf("%s is in another trace", s.Name)
		}
	}
	for name, above := range map[string]string{
		"turn": "", "invoke_agent zephbot": root.String(), "approval": root.String(), "gate": byName["execute_tool bash"].ID,
	} {
		if s, ok := byName[name]; !ok || s.Above != above {
			t.Errorf("%s: %+v, want it below %q", name, s, above)
		}
	}
	if s := byName["execute_tool bash"]; !s.Failed || s.Attributes["error.type"] != "timeout" || s.Attributes["gen_ai.tool.call.id"] != "c1_0" {
		t.Errorf("%+v", s)
	}
	if s := byName["approval"]; s.To.Sub(s.From) != time.Minute {
		t.Errorf("%+v", s)
	}
	bodies, headers := c.Raw()
	if strings.Contains(string(bodies), "a text of the vendor") || strings.Contains(string(bodies), "said by a tool") {
		t.Error("contents were exported")
	}
	if headers[0].Get("X-Key") != "k" || sums.of(tracing.Exported) == 0 {
		t.Errorf("%v, %v", headers[0], sums)
	}
}

// TestSampledAlike: whether a turn is traced follows from its id.
func TestSampledAlike(t *testing.T) {
	t.Parallel()
	c := &tracetest.Collector{}
	tracer, _ := open(t, c, 0)
	run(t.Context(), tracer, agent.Outcome{}, func(context.Context) {})
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if spans := c.Spans(); len(spans) != 0 {
		t.Errorf("%+v", spans)
	}
}

// TestDeadCollector: a collector that takes nothing costs spans, and no turn waits for it.
func TestDeadCollector(t *testing.T) {
	t.Parallel()
	tracer, sums := open(t, &tracetest.Collector{Refuse: true}, 1)
	const turns = 6000 // more than may wait
	for range turns {
		run(t.Context(), tracer, agent.Outcome{}, func(context.Context) {})
	}
	ending, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracer.Close(ending); err == nil {
		t.Error("it says that everything was exported")
	}
	run(t.Context(), tracer, agent.Outcome{}, func(context.Context) {})
	if failed, dropped := sums.of(tracing.Failed), sums.of(tracing.Dropped); failed == 0 || dropped == 0 || failed+dropped != turns {
		t.Errorf("%d failed and %d dropped of %d", failed, dropped, turns)
	}
}

// TestOff: tracing that is off allocates nothing.
func TestOff(t *testing.T) {
	var off *tracing.Tracer
	ctx, call, row, agentTurn := t.Context(), &tools.Call{}, &bot.Row{Turn: turn}, &agent.Turn{ID: turn}
	n := testing.AllocsPerRun(100, func() {
		_, ended := off.Run(ctx, agentTurn)
		_, end := off.Tool(ctx, call)
		_, left := off.Stage(ctx, "gate", call)
		_, sent := off.Deliver(ctx, row)
		off.Request(ctx, "sendMessage", 200, time.Second)
		off.Phase(ctx, "context", time.Second)
		off.Queued(turn, time.Time{}, time.Time{})
		off.Inject(ctx, nil)
		sent(nil)
		left(nil)
		end(nil, nil)
		ended(agent.Outcome{}, nil)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}
