package mcp

import (
	"context"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Elicitation is a question from a server to a person.
type Elicitation struct {
	Server string // show it first, before any field
	Trust  guard.Trust
	Tool   string // qualified name of the tool whose call the server asks in
	Call   string // id of the call
	Origin tools.Origin
	Form   content.Form
}

// Answer is the person's reply.
type Answer struct {
	Accept bool           // false = no
	Cancel bool           // dismissed, rather than declined
	Values map[string]any // by Field.Name; only with Accept
}

// mayAsk reports whether the server's questions reach a person.
func (s *server) mayAsk() bool { return s.whyUnasked() == "" }

// whyUnasked returns the reason why the server's questions reach nobody; "" when they do.
func (s *server) whyUnasked() string {
	enabled := s.m.o.Elicitation
	if s.cfg.Elicitation != nil {
		enabled = *s.cfg.Elicitation
	}
	switch {
	case s.cfg.Trust == guard.Sandboxed:
		return "a sandboxed server may not ask anything"
	case s.m.o.Elicit == nil:
		return "nobody can be asked here"
	case !enabled:
		return "questions of servers are turned off"
	}
	return ""
}

// answerElicitation answers a question of the server. It runs in a goroutine of the library and never waits for
// the call in which it is asked. The capability is always announced, although most questions are declined: some
// servers fail when it is missing.
func (c *conn) answerElicitation(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	f := c.askingFlight(ctx)
	if f == nil && c.questionsMuted() || f != nil && !f.countQuestion() {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	form := content.Elicit(req.Params)
	why := c.s.whyUnasked()
	switch {
	case why != "":
	case form.Mode == content.ModeURL:
		why = "pages are not opened because a server wants it"
	case form.Problem != "":
		why = "it cannot be asked: " + form.Problem
	case f == nil:
		why = "it is not clear who is asked"
	}
	if why != "" {
		c.reportDeclined(f, form, why, true)
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	return c.askPerson(ctx, f, form)
}

// askPerson puts the question to the person. It is declined when the queue is full.
func (c *conn) askPerson(ctx context.Context, f *flight, form content.Form) (*sdk.ElicitResult, error) {
	m := c.s.m
	select {
	case m.asking <- struct{}{}:
		defer func() { <-m.asking }()
	default:
		c.reportDeclined(f, form, "too many questions are waiting", true)
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	defer f.pauseTimeout()()
	wait, cancel := context.WithTimeout(ctx, m.o.ElicitationTimeout)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	a, err := m.o.Elicit(wait, Elicitation{
		Server: c.s.cfg.ID, Trust: c.s.cfg.Trust, Tool: f.call.Def.Name, Call: f.call.ID, Origin: f.call.Origin,
		Form: form,
	})
	switch {
	case err != nil && errors.Is(wait.Err(), context.DeadlineExceeded):
		c.reportDeclined(f, form, "nobody answered within "+m.o.ElicitationTimeout.String(), true)
	case err != nil:
		c.s.log.Warn().Err(err).Msg("a question of the mcp server could not be asked")
		c.reportDeclined(f, form, "the question could not be asked", true)
	case a.Accept && !a.Cancel && form.Validate(a.Values) != nil:
		c.reportDeclined(f, form, "the answer does not fit the question", true)
	case a.Accept && !a.Cancel:
		return &sdk.ElicitResult{Action: "accept", Content: a.Values}, nil
	case a.Cancel:
		c.reportDeclined(f, form, "the person cancelled it", false)
		return &sdk.ElicitResult{Action: "cancel"}, nil
	default:
		c.reportDeclined(f, form, "the person said no", false)
	}
	return &sdk.ElicitResult{Action: "decline"}, nil
}

// askingFlight returns the call in which the server asks: the one named by the library, or else the only one
// in progress on this connection.
func (c *conn) askingFlight(ctx context.Context) *flight {
	if f, ok := ctx.Value(flightKey{}).(*flight); ok {
		return f
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.calls) != 1 || c.s.m.o.Now().Before(c.silence) {
		return nil
	}
	for _, f := range c.calls {
		return f
	}
	return nil
}

// muteFor is how long questions are declined after a call was aborted because of them. The server may still be asking
// on behalf of that call, and the next call must not answer for it.
const muteFor = time.Minute

func (c *conn) muteQuestions() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silence = c.s.m.o.Now().Add(muteFor)
}

func (c *conn) questionsMuted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.m.o.Now().Before(c.silence)
}

// countQuestion counts a question of the server. It returns false when there were too many within the call, and aborts
// the call of a server that does not stop.
func (f *flight) countQuestion() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.asked >= maxNagging && f.cancel != nil {
		f.cancel(errNagging)
	}
	return f.asked <= maxQuestions
}

// reportDeclined reports a declined question to the person and the model. A question that belongs to no call is
// reported to everybody it may concern.
func (c *conn) reportDeclined(f *flight, form content.Form, why string, tell bool) {
	id := c.s.cfg.ID
	notice := fmt.Sprintf("The server %s asked: “%s”. It was declined: %s.", id, form.Summary(), trimDot(why))
	c.s.log.Info().Str("reason", why).Msg("question of an mcp server declined")
	if f == nil {
		c.reportStray(notice)
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	if tell {
		f.notices = append(f.notices, notice)
	}
	reason := fmt.Sprintf("The server asked for input: “%s”. It was declined: %s.", form.Summary(), trimDot(why))
	if instead := c.s.m.o.Instead; instead != "" && c.s.cfg.Trust != guard.Sandboxed && !c.s.mayAsk() {
		reason += " " + instead
	}
	f.reasons = append(f.reasons, reason)
}

func trimDot(s string) string {
	for len(s) > 0 && s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

// reportStray reports a question that belongs to no call, up to a limited rate.
func (c *conn) reportStray(text string) {
	c.mu.Lock()
	ok := c.strays.takeTokens(c.s.m.o.Now(), 1)
	c.mu.Unlock()
	if !ok {
		return
	}
	if c.origin.Session == "" {
		c.s.notifySessions(Declined, text, nil)
		return
	}
	c.s.m.notices.sendNotice(Notice{
		Server:   c.s.cfg.ID,
		Kind:     Declined,
		Text:     text,
		Sessions: []string{c.origin.Session},
	})
}
