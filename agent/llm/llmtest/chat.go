package llmtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/media"
)

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
	if step.Thoughts != "" && req.OnThought != nil {
		req.OnThought(step.Thoughts)
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
		Text:     text,
		Thoughts: step.Thoughts,
		Unmade:   step.Unmade,
		Filtered: stop == llm.StopRefusal && text != "" && !step.Declines,
		Uses:     uses,
		Stop:     stop,
		Usage:    step.Usage,
		USD:      step.USD,
		Provider: m.name,
		Model:    "scripted",
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
