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

// Elicitation is a question of a server to a person.
type Elicitation struct {
	Server string // say it first, before any field
	Trust  guard.Trust
	Tool   string // qualified; of the call in which it is asked
	Call   string // id of the call
	Origin tools.Origin
	Form   content.Form
}

// Answer is what the person said.
type Answer struct {
	Accept bool           // false = no
	Cancel bool           // the person wants nothing more of it
	Values map[string]any // by Field.Name, where accepted
}

// mayAsk says whether the server's questions reach anybody.
func (s *server) mayAsk() bool { return s.deaf() == "" }

// deaf says why no question of the server reaches anybody; "" = they do.
func (s *server) deaf() string {
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

// elicit answers a question of the server. It runs in a goroutine of the library and never waits for the call in which
// it is asked. The capability is always there and the answer mostly no: a server that sees no capability may fail
// instead.
func (c *conn) elicit(ctx context.Context, req *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	f := c.asker(ctx)
	if f == nil && c.muted() || f != nil && !f.question() {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	form := content.Elicit(req.Params)
	why := c.s.deaf()
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
		c.declined(f, form, why, true)
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	return c.ask(ctx, f, form)
}

// ask puts the question to the person, if there is a place in the queue.
func (c *conn) ask(ctx context.Context, f *flight, form content.Form) (*sdk.ElicitResult, error) {
	m := c.s.m
	select {
	case m.asking <- struct{}{}:
		defer func() { <-m.asking }()
	default:
		c.declined(f, form, "too many questions are waiting", true)
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	defer f.pause()()
	wait, cancel := context.WithTimeout(ctx, m.o.ElicitationTimeout)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)()
	a, err := m.o.Elicit(wait, Elicitation{
		Server: c.s.cfg.ID, Trust: c.s.cfg.Trust, Tool: f.call.Def.Name, Call: f.call.ID, Origin: f.call.Origin,
		Form: form,
	})
	switch {
	case err != nil && errors.Is(wait.Err(), context.DeadlineExceeded):
		c.declined(f, form, "nobody answered within "+m.o.ElicitationTimeout.String(), true)
	case err != nil:
		c.s.log.Warn().Err(err).Msg("a question of the mcp server could not be asked")
		c.declined(f, form, "the question could not be asked", true)
	case a.Accept && !a.Cancel && form.Validate(a.Values) != nil:
		c.declined(f, form, "the answer does not fit the question", true)
	case a.Accept && !a.Cancel:
		return &sdk.ElicitResult{Action: "accept", Content: a.Values}, nil
	case a.Cancel:
		c.declined(f, form, "the person cancelled it", false)
		return &sdk.ElicitResult{Action: "cancel"}, nil
	default:
		c.declined(f, form, "the person said no", false)
	}
	return &sdk.ElicitResult{Action: "decline"}, nil
}

// asker is the call in which the server asks: the one that the library says it is, or else the only one that is under
// way on this connection.
func (c *conn) asker(ctx context.Context) *flight {
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

// muteFor is how long questions are not heard after a call was broken off because of them: the server may still be
// asking on behalf of that call, and another must not answer for it.
const muteFor = time.Minute

func (c *conn) mute() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silence = c.s.m.o.Now().Add(muteFor)
}

func (c *conn) muted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.s.m.o.Now().Before(c.silence)
}

// question counts a question; false when the server asks too much within the call. One that does not stop has its call
// broken off.
func (f *flight) question() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.asked >= maxNagging && f.cancel != nil {
		f.cancel(errNagging)
	}
	return f.asked <= maxQuestions
}

// declined tells person and model of a question that was not answered. Where it belongs to no call, those who may have
// to do with it hear of it.
func (c *conn) declined(f *flight, form content.Form, why string, tell bool) {
	id := c.s.cfg.ID
	notice := fmt.Sprintf("The server %s asked: “%s”. It was declined: %s.", id, form.Summary(), trimDot(why))
	c.s.log.Info().Str("reason", why).Msg("question of an mcp server declined")
	if f == nil {
		c.stray(notice)
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
	f.reasons = append(f.reasons, fmt.Sprintf("The server asked for input: “%s”. It was declined: %s.", form.Summary(),
		trimDot(why)))
}

func trimDot(s string) string {
	for len(s) > 0 && s[len(s)-1] == '.' {
		s = s[:len(s)-1]
	}
	return s
}

// stray tells of a question that belongs to no call, a few times.
func (c *conn) stray(text string) {
	c.mu.Lock()
	ok := c.strays.take(c.s.m.o.Now(), 1)
	c.mu.Unlock()
	if !ok {
		return
	}
	if c.origin.Session == "" {
		c.s.notify(Declined, text, nil)
		return
	}
	c.s.m.notices.send(Notice{Server: c.s.cfg.ID, Kind: Declined, Text: text, Sessions: []string{c.origin.Session}})
}
