// Package llmtest provides a scripted language model for tests and scenario files. It behaves like a provider (it
// streams, waits, fails and honours ctx) and says only what its script contains.
//
// A script is a list of Steps, each of them one answer. New plays them in order, whoever asks. On adds a rule instead:
// its steps answer the conversations whose last user message contains a text. Which of them comes next is read from the
// conversation alone (the number of assistant messages after that user message), so many sessions can run at once, and
// a resumed turn gets the same answer again. Steps with Err precede the step that they delay: each is played once for
// one and the same history, then the following step answers. An Err step with none after it fails forever. Rules are
// tried in order of declaration; if none matches, the steps of New are used.
//
// Parse reads a script from text, one action a line; empty lines and lines that begin with # are skipped:
//
//	on "hello": say Hi there            a rule and its first step
//	on "save": call bash {"command":"touch it"}
//	then say Done                       the next step of the same rule
//	on "many": say* one two three       streamed word by word
//	on "both": call* read {"path":"a"} read {"path":"b"}
//	on "look": say I will look.         one step: text …
//	and call list_directory {"path":"."}   … and a tool use, and so on
//	and usage 120 30                    input and output tokens of the step
//	then expect "main.go"               the step's last user or tool message must contain this
//	and say Found it
//	on "x": fail rate_limited 5s        a llm.Kind, RateLimited optionally with RetryAfter
//	then say Now it works
//	on "slow": wait gate                blocks until Release("gate"), then goes on with
//	and say Here I am
//	on "broken": callraw bash {"command   arguments that are not JSON
//	on "cut": say Half an ans
//	and stop length                     end, tools, length, refusal
//	on "secret": never                  to be asked here is a mistake: Broken names the line
//	on "": say I match everything
//	sees image file                     a line of its own: the kinds of parts that the model takes
//	say First answer                    a line before any rule belongs to the ordered script of New
//
// A text in double quotes is unquoted as in Go ("two\
// lines"); say <<END takes the following lines up to the line END. Words, not indentation, group lines: "then" begins a
// new step, "and" adds to the last one, an "on" line begins a rule.
package llmtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/media"
)

// Step is one answer of the script.
type Step struct {
	Expect     *regexp.Regexp  // the last user or tool message must match; nil = anything
	ExpectText string          // … must contain this; "" = anything
	Wait       <-chan struct{} // blocks until closed or received from; nil = no wait
	Deltas     []string        // streamed one by one; the answer's text is their sum
	Text       string          // streamed in one piece when there are no Deltas
	Uses       []llm.ToolUse   // an empty ID is filled in, unique within the conversation
	Err        error           // returned after the deltas; for an *llm.Error, Provider and Streamed are filled in
	Stop       llm.Stop        // "" = tools when there are Uses, else end
	Usage      llm.Usage
	USD        float64

	gate   *gate  // of a parsed "wait NAME"
	line   int    // of the script text; 0 = written in Go
	source string // that line
	played bool
	never  bool
}

// Model is the scripted provider. Safe for concurrent use.
type Model struct {
	name string
	sees llm.Accepts

	mu       sync.Mutex
	steps    []Step
	next     int
	rules    []rule
	failed   map[[sha256.Size]byte]int // failing steps played so far, per rule and history
	requests []llm.Request
	gates    map[string]*gate
	broken   []string
}

// rule is the script of the conversations whose last user message contains match.
type rule struct {
	match string
	steps []Step
}

// gate is a named wait.
type gate struct {
	release, arrived         chan struct{}
	releaseOnce, arrivedOnce sync.Once
}

func newGate() *gate { return &gate{release: make(chan struct{}), arrived: make(chan struct{})} }

// New makes a model named "scripted" that plays steps in order.
func New(steps ...Step) *Model { return Named("scripted", steps...) }

// Named is New with a different provider name.
func Named(name string, steps ...Step) *Model {
	return &Model{name: name, steps: steps, failed: map[[sha256.Size]byte]int{}, gates: map[string]*gate{}}
}

// On adds a rule for conversations whose last user message contains substring ("" matches all) and returns the model.
func (m *Model) On(substring string, steps ...Step) *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rules = append(m.rules, rule{match: substring, steps: steps})
	return m
}

// Name implements llm.Provider.
func (m *Model) Name() string { return m.name }

// Requests returns a copy of all requests so far, in order of arrival.
func (m *Model) Requests() []llm.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]llm.Request, len(m.requests))
	for i := range m.requests {
		out[i] = clone(&m.requests[i])
	}
	return out
}

// Unused names the steps, ordered ones and those of rules, that no request has reached so far: by the line of the
// script that begins them, or by their text if they were written in Go. A step whose expectation was not met is not
// reached; one that waits or fails is.
func (m *Model) Unused() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []string
	for _, steps := range append([][]Step{m.steps}, m.ruleSteps()...) {
		for i := range steps {
			if s := &steps[i]; s.never {
				continue
			} else if !s.played && s.line > 0 {
				list = append(list, fmt.Sprintf("line %d: %s", s.line, shorten(s.source)))
			} else if !s.played {
				list = append(list, fmt.Sprintf("step %d: %s", i+1, shorten(s.Text+strings.Join(s.Deltas, ""))))
			}
		}
	}
	return list
}

// Broken names the "never" lines that a request has reached.
func (m *Model) Broken() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.broken)
}

func (m *Model) ruleSteps() [][]Step {
	list := make([][]Step, len(m.rules))
	for i := range m.rules {
		list[i] = m.rules[i].steps
	}
	return list
}

// Release opens the named wait of a parsed script, for current and future callers. Repeating it does nothing.
func (m *Model) Release(name string) {
	g := m.gate(name)
	g.releaseOnce.Do(func() { close(g.release) })
}

// Arrived is closed when a call has reached the named wait for the first time.
func (m *Model) Arrived(name string) <-chan struct{} { return m.gate(name).arrived }

func (m *Model) gate(name string) *gate {
	m.mu.Lock()
	defer m.mu.Unlock()
	g := m.gates[name]
	if g == nil {
		g = newGate()
		m.gates[name] = g
	}
	return g
}

// Sees sets the kinds of parts that the model takes and returns the model. In what a step expects of a message, there
// is a line for each of its parts: [sees image "a.png", image/png, 12 bytes] for a content that the model has read,
// else the line that puts the part into words.
func (m *Model) Sees(accepts llm.Accepts) *Model {
	m.sees = accepts
	return m
}

// Accepts implements llm.Accepter.
func (m *Model) Accepts() llm.Accepts { return m.sees }

// look reads the parts of a request as a vendor's adapter does, and returns the request with them in words.
func (m *Model) look(ctx context.Context, req *llm.Request) (*llm.Request, error) {
	contents, err := media.Read(ctx, req, &media.Rules{
		Accepts: m.sees, Types: []string{"image/png", "image/jpeg", "application/pdf", "text/plain"},
		Image: 1 << 20, Other: 1 << 20, Total: 4 << 20,
	})
	if err != nil || contents == nil {
		return req, err
	}
	told := clone(req)
	for i := range told.Messages {
		msg := &told.Messages[i]
		msg.Text = tell(contents, msg.Text, msg.Parts)
		if msg.Result != nil {
			msg.Result.Text = tell(contents, msg.Result.Text, msg.Result.Parts)
		}
	}
	return &told, nil
}

// tell adds a line for each part to a text.
func tell(contents *media.Contents, text string, parts []llm.Part) string {
	text = contents.Text(text, parts)
	for _, p := range contents.Sent(parts) {
		content, _, _ := contents.Of(&p)
		text += fmt.Sprintf("\n[sees %s %q, %s, %d bytes]", p.Kind, p.Name, content.Type, content.Size)
	}
	return text
}

// Chat implements llm.Provider. If the script does not fit the conversation, the error is llm.Invalid and says what was
// expected.
func (m *Model) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("scripted model: %w", err)
	}
	req, err := m.look(ctx, req)
	if err != nil {
		return nil, err
	}
	step, err := m.take(req)
	if err != nil {
		return nil, &llm.Error{Kind: llm.Invalid, Provider: m.name, Err: err}
	}
	if err := step.hold(ctx); err != nil {
		return nil, err
	}
	deltas := step.Deltas
	if len(deltas) == 0 && step.Text != "" {
		deltas = []string{step.Text}
	}
	for _, d := range deltas {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("scripted model: %w", err)
		}
		if onDelta != nil {
			onDelta(d)
		}
	}
	if step.Err != nil {
		return nil, m.failure(step.Err, len(deltas) > 0 && onDelta != nil)
	}
	return m.response(&step, req, strings.Join(deltas, "")), nil
}

// take picks the step for the request, checks what it expects and records the request.
func (m *Model) take(req *llm.Request) (Step, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.requests = append(m.requests, clone(req))
	step, err := m.pick(req)
	if err != nil {
		return Step{}, err
	}
	last := lastInput(req.Messages)
	if step.Expect != nil && !step.Expect.MatchString(last) {
		return Step{}, fmt.Errorf("script%s: last message %q does not match %q",
			at(step.line), shorten(last), step.Expect)
	}
	if !strings.Contains(last, step.ExpectText) {
		return Step{}, fmt.Errorf("script%s: last message %q does not contain %q",
			at(step.line), shorten(last), step.ExpectText)
	}
	if step.Text != "" && len(step.Deltas) > 0 && strings.Join(step.Deltas, "") != step.Text {
		return Step{}, fmt.Errorf("script%s: Text %q is not the sum of Deltas", at(step.line), shorten(step.Text))
	}
	if step.never {
		m.broken = append(m.broken, fmt.Sprintf("line %d: %s", step.line, shorten(step.source)))
		return Step{}, fmt.Errorf("script%s: this is never to be asked: %q", at(step.line), shorten(last))
	}
	step.played = true
	return *step, nil
}

// pick finds the step. m.mu must be held.
func (m *Model) pick(req *llm.Request) (*Step, error) {
	user, done := position(req.Messages)
	for i := range m.rules {
		if !strings.Contains(user, m.rules[i].match) {
			continue
		}
		return m.pickRule(i, done, req)
	}
	if m.next >= len(m.steps) {
		return nil, fmt.Errorf(
			"script has no answer: %d ordered steps are used up and none of %d rules matches the user message %q",
			len(m.steps), len(m.rules), shorten(user))
	}
	m.next++
	return &m.steps[m.next-1], nil
}

// pickRule finds the step of rule i after done answers. m.mu must be held.
func (m *Model) pickRule(i, done int, req *llm.Request) (*Step, error) {
	r := m.rules[i]
	answers, first := 0, 0 // first: index of the first failing step before the wanted answer
	for n := range r.steps {
		if answers == done {
			break
		}
		if r.steps[n].Err == nil {
			answers++
			first = n + 1
		}
	}
	if answers < done || first >= len(r.steps) {
		return nil, fmt.Errorf("rule on %q has %d answers, the conversation asks for number %d",
			r.match, answers, done+1)
	}
	fails := first
	for fails < len(r.steps) && r.steps[fails].Err != nil {
		fails++
	}
	if fails == first {
		return &r.steps[first], nil
	}
	key := historyKey(i, req)
	n := first + m.failed[key]
	if n >= fails {
		if fails == len(r.steps) {
			return &r.steps[fails-1], nil
		}
		return &r.steps[fails], nil
	}
	m.failed[key]++
	return &r.steps[n], nil
}

// hold waits as the step requires.
func (s *Step) hold(ctx context.Context) error {
	waits := []<-chan struct{}{s.Wait}
	if s.gate != nil {
		s.gate.arrivedOnce.Do(func() { close(s.gate.arrived) })
		waits = append(waits, s.gate.release)
	}
	for _, w := range waits {
		if w == nil {
			continue
		}
		select {
		case <-w:
		case <-ctx.Done():
			return fmt.Errorf("scripted model: %w", ctx.Err())
		}
	}
	return nil
}

// failure completes an error of the script.
func (m *Model) failure(err error, streamed bool) error {
	var e *llm.Error
	if !errors.As(err, &e) {
		return err
	}
	filled := *e
	if filled.Provider == "" {
		filled.Provider = m.name
	}
	filled.Streamed = filled.Streamed || streamed
	return &filled
}

func (m *Model) response(step *Step, req *llm.Request, text string) *llm.Response {
	uses := make([]llm.ToolUse, 0, len(step.Uses))
	for i, u := range step.Uses {
		if u.ID == "" {
			u.ID = fmt.Sprintf("call_%d_%d", len(req.Messages), i+1)
		}
		uses = append(uses, u)
	}
	stop := step.Stop
	switch {
	case stop != "":
	case len(uses) > 0:
		stop = llm.StopTools
	default:
		stop = llm.StopEnd
	}
	if len(uses) == 0 {
		uses = nil
	}
	return &llm.Response{
		Text: text, Uses: uses, Stop: stop, Usage: step.Usage, USD: step.USD,
		Provider: m.name, Model: "scripted",
	}
}

// position returns the last user message and the number of assistant messages after it.
func position(messages []llm.Message) (user string, answers int) {
	for _, message := range slices.Backward(messages) {
		switch message.Role {
		case llm.User:
			return message.Text, answers
		case llm.Assistant:
			answers++
		}
	}
	return "", answers
}

// lastInput returns the text of the last user or tool message.
func lastInput(messages []llm.Message) string {
	for _, message := range slices.Backward(messages) {
		switch msg := message; {
		case msg.Role == llm.User:
			return msg.Text
		case msg.Role == llm.ToolRole && msg.Result != nil:
			return msg.Result.Text
		}
	}
	return ""
}

// historyKey identifies a conversation at one point, for one rule.
func historyKey(rule int, req *llm.Request) [sha256.Size]byte {
	h := sha256.New()
	// Marshalling plain structs of strings cannot fail (ToolUse stores malformed arguments as text).
	data, _ := json.Marshal(req.Messages)
	_, _ = fmt.Fprintf(h, "%d\x00%q\x00", rule, req.User)
	_, _ = h.Write(data)
	var key [sha256.Size]byte
	h.Sum(key[:0])
	return key
}

func clone(req *llm.Request) llm.Request {
	out := *req
	out.Messages = make([]llm.Message, len(req.Messages))
	for i, msg := range req.Messages {
		msg.Uses = append([]llm.ToolUse(nil), msg.Uses...)
		if msg.Result != nil {
			result := *msg.Result
			msg.Result = &result
		}
		out.Messages[i] = msg
	}
	out.Tools = append([]llm.Tool(nil), req.Tools...)
	return out
}

// at names a line of the script text, "" if the step was written in Go.
func at(line int) string {
	if line == 0 {
		return ""
	}
	return fmt.Sprintf(" line %d", line)
}

// shorten keeps error texts short.
func shorten(s string) string {
	r := []rune(s)
	if len(r) <= 200 {
		return s
	}
	return string(r[:200]) + "…"
}
