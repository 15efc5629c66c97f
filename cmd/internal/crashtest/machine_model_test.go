//go:build linux

package crashtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/cmd/internal/ledgertest"
)

// Kinds of faults of the model.
const (
	modelError   = "500"
	modelBusy    = "429"
	modelCut     = "answer cut"
	modelHang    = "no answer"
	modelSlow    = "slow answer"
	modelGarbage = "garbage in the stream"
)

// What people ask for. The question contains it: "q17q pair".
const (
	askSay  = "say"  // an answer
	askLong = "long" // an answer that grows for a while
	askFree = "free" // a command that runs without asking, and an answer
	askHeld = "held" // a command that a person has to approve
	askPair = "pair" // two commands, one after the other: the first is free
	askTool = "tool" // a call of the fake tool, and an answer
)

var (
	askedFor = regexp.MustCompile(`\bq([0-9]+)q (say|long|free|held|pair|tool)\b`)
	answered = regexp.MustCompile(`Answer q([0-9]+)q((?: [ab]=\w+)*)\.(.*) Over\.`)
	category = regexp.MustCompile(`\[tool_error\]\s*category: (\w+)`)
)

// effect is the command of a question's step ("a" or "b"). It appends one line to a file, in one write, and prints it.
func effect(n, step, verb string) string {
	return fmt.Sprintf("echo %s q%sq-%s | tee -a %s", verb, n, step, effects)
}

const effects = "effects.txt"

// oracle is a model that derives everything from the conversation: what was asked last and which commands have results,
// and reports the result of each. It speaks the OpenAI wire, under a path for each process, and fails as instructed.
type oracle struct {
	*httptest.Server
	m *machine

	mu     sync.Mutex
	faults []fault
	calm   chan struct{} // closed to release every hanging request
}

func newOracle(t *testing.T, m *machine) *oracle {
	o := &oracle{m: m, calm: make(chan struct{})}
	o.Server = httptest.NewServer(o)
	t.Cleanup(func() {
		o.clear()
		o.Close()
	})
	return o
}

// add makes the next requests fail.
func (o *oracle) add(f fault) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.faults) < 8 { // drops faults that no request has met in time
		o.faults = append(o.faults, f)
	}
}

// clear ends all faults, including current ones.
func (o *oracle) clear() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.faults = nil
	close(o.calm)
	o.calm = make(chan struct{})
}

func (o *oracle) take() (f fault, calm chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.faults) == 0 {
		return fault{}, o.calm
	}
	f = o.faults[0]
	if o.faults[0].Count--; o.faults[0].Count <= 0 {
		o.faults = o.faults[1:]
	}
	o.m.hit(f.Kind)
	return f, o.calm
}

// ServeHTTP implements http.Handler.
func (o *oracle) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var body ledgertest.Body
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	answer, n, err := o.answer(body.Messages)
	by, unknown := lifeOf(strings.Split(r.URL.Path, "/")[1])
	if err == nil {
		err = unknown
	}
	if err != nil {
		o.m.fail("the model was asked what makes no sense: %v", err)
		http.Error(w, `{"error":{"message":"no question"}}`, http.StatusBadRequest)
		return
	}
	j := o.m.diary.begin(job{life: by, session: o.m.sessionOf(n), what: fmt.Sprintf("a request about q%dq", n)})
	defer func() { o.m.diary.end(j, r.Context().Err() != nil) }()
	asking, usage := o.m.money.Ask(by.String(), fmt.Sprintf("q%dq", n))
	o.m.pace.asked(by.process)
	answer.Usage = usage
	f, calm := o.take()
	kind := strings.TrimPrefix(f.Kind, faultModel)
	switch kind {
	case modelError:
		http.Error(w, `{"error":{"message":"overloaded","type":"server_error"}}`, http.StatusInternalServerError)
		return
	case modelBusy:
		w.Header().Set("Retry-After", fmt.Sprint(int(f.Length/time.Second)))
		http.Error(w, `{"error":{"message":"slow down","type":"rate_limit"}}`, http.StatusTooManyRequests)
		return
	case modelHang:
		wait(r.Context(), f.Length, calm)
		sever(w)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	pace := time.Duration(0)
	if kind == modelSlow {
		pace = f.Length
	}
	o.stream(r.Context(), w, answer, kind, pace, calm, func() { o.m.diary.end(j, false) }, func() { o.m.money.Answered(asking) })
}

// stream writes an answer in pieces, as far as the fault allows. last is called before the last piece,
// whole after it if the answer can be read as a whole.
func (o *oracle) stream(ctx context.Context, w http.ResponseWriter, answer *llm.Response, kind string, pace time.Duration, calm chan struct{}, last, whole func()) {
	pieces := ledgertest.Frames(answer)
	for i, piece := range pieces {
		switch {
		case kind == modelCut && i == len(pieces)/2:
			sever(w)
			return
		case kind == modelGarbage && i == len(pieces)/2:
			piece = `{"choices":[{"delta":{"content":7}`
		}
		if i == len(pieces)-1 {
			last()
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", piece); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		wait(ctx, pace, calm)
	}
	_, err := fmt.Fprint(w, "data: [DONE]\n\n")
	if err == nil && ctx.Err() == nil && kind != modelGarbage {
		whole()
	}
}

// sever closes a connection in the middle of its answer.
func sever(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil { // otherwise it is already closed
		_ = conn.Close()
	}
}

// wait waits, unless all faults are to end.
func wait(ctx context.Context, d time.Duration, calm <-chan struct{}) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-calm:
	case <-ctx.Done():
	}
}

// answer returns what the model says to a conversation, and the question it answers.
func (o *oracle) answer(messages []ledgertest.Message) (said *llm.Response, question int, err error) {
	asked, from := []string(nil), 0
	for i, m := range messages {
		if m.Role != "user" {
			continue
		}
		asked, from = nil, i
		if all := askedFor.FindAllStringSubmatch(m.Content, -1); len(all) > 0 {
			asked = all[len(all)-1]
		}
	}
	if asked == nil {
		return nil, 0, fmt.Errorf("no question in %q", messages[max(len(messages)-1, 0)].Content)
	}
	n, kind := asked[1], asked[2]
	if question, err = strconv.Atoi(n); err != nil {
		return nil, 0, err
	}
	var results []string
	for _, m := range messages[from:] {
		if m.Role == "tool" {
			results = append(results, m.Content)
		}
	}
	steps := map[string][]string{askFree: {"free"}, askHeld: {"held"}, askPair: {"free", "held"}, askTool: {"tool"}}[kind]
	if len(results) < len(steps) {
		at := len(results)
		name, args := "bash", map[string]string{"command": effect(n, "ab"[at:at+1], steps[at])}
		if kind == askTool {
			name, args = toolName, map[string]string{"text": "q" + n + "q-a"}
		}
		raw, err := json.Marshal(args)
		return &llm.Response{Uses: []llm.ToolUse{{ID: fmt.Sprintf("use_%s_%d", n, at), Name: name, Args: raw}}}, question, err
	}
	var came strings.Builder
	for i := range steps {
		fmt.Fprintf(&came, " %c=%s", "ab"[i], outcome(n, "ab"[i:i+1], results[i]))
	}
	filler := ""
	if kind == askLong {
		filler = strings.Repeat(" It goes on and on, and there is always more to say about it.", 12)
	}
	return &llm.Response{Text: fmt.Sprintf("Answer q%sq%s.%s Over.", n, came.String(), filler)}, question, nil
}

// outcome is what a result reports about a command: done, unknown, the category of an error, or odd.
func outcome(n, step, result string) string {
	switch failed := category.FindStringSubmatch(result); {
	case strings.Contains(result, llm.OutcomeUnknown):
		return "unknown"
	case failed != nil:
		return failed[1]
	case strings.Contains(result, fmt.Sprintf("q%sq-%s", n, step)):
		return "done"
	default:
		return "odd"
	}
}
