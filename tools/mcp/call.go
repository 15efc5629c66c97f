package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	maxQuestions = 3  // questions of a server within one call that reach a person
	maxNagging   = 20 // questions after which the call is aborted
	outerGrace   = 10 * time.Second
	maxProgress  = 200 // bytes of a line
)

// callerKey is the key in _meta under which a server finds for whom a call is made. The session is not sent, because
// its key contains ids of chats.
const callerKey = "zephbot/caller"

// Causes with which we cancel a call.
var (
	errSlow    = fmt.Errorf("the time of the call is up: %w", context.DeadlineExceeded)
	errNagging = errors.New("the server keeps asking")
)

// flight is a call in progress.
type flight struct {
	call   *tools.Call
	token  string
	sent   atomic.Bool  // a request has left
	forgot atomic.Bool  // the server refused it, because it has forgotten the session
	status atomic.Int64 // of the latest HTTP answer

	mu       sync.Mutex
	cancel   context.CancelCauseFunc // nil until the call is sent
	over     bool
	asked    int
	notices  []string // for the person
	reasons  []string // for the model
	progress string   // the latest line
	flow     bucket
	timer    *time.Timer
	limit    time.Duration
	paused   int
}

// flightKey is the context key of the flight. The library passes this context on: with the newest protocol it asks the
// server's questions within the call, and the HTTP answer belongs to that call too.
type flightKey struct{}

// callTimeout returns how long a server may take for a call.
func (s *server) callTimeout() time.Duration {
	if s.m.o.ToolTimeout > 0 {
		return s.m.o.ToolTimeout
	}
	return s.cfg.Timeout
}

// outerTimeout returns the limit that the chain sets. It is longer than our own limit, because ours gives a better
// error and does not count the time in which a person is asked.
func (s *server) outerTimeout() time.Duration {
	d := s.callTimeout() + outerGrace
	if s.mayAsk() {
		d += maxQuestions * s.m.o.ElicitationTimeout
	}
	if s.cfg.Scope != Shared {
		d += s.cfg.StartupTimeout
	}
	return d
}

// call executes a tool of this server.
func (s *server) runTool(ctx context.Context, call *tools.Call, t guard.Tool,
	schema func() *content.Schema,
) (*tools.Result, error) {
	call.Trail.MCPServer, call.Trail.MCPErrorCode = s.cfg.ID, ""
	res, err := s.performCall(ctx, call, t, schema)
	if err == nil {
		if res.Error { // the tool ran and reports a failure of its own
			call.Trail.MCPErrorCode = string(guard.ServerError)
		}
		return res, nil
	}
	e := guard.AsError(err, s.cfg.ID, t.Name)
	e.Message = s.m.o.Redact(e.Message)
	e.Mark(call.Trail)
	s.log.Info().Str("tool", call.Def.Name).Str("mcp_error_code", string(e.Code)).Str("session", call.Origin.Session).
		Str("turn", call.Origin.Turn).Msg("mcp call failed")
	return nil, e
}

func (s *server) performCall(ctx context.Context, call *tools.Call, t guard.Tool,
	schema func() *content.Schema,
) (*tools.Result, error) {
	if e := s.checkPermitted(t); e != nil {
		return nil, e
	}
	out, forgot, err := s.tryCall(ctx, call, t, schema)
	if forgot { // the server did nothing
		out, _, err = s.tryCall(ctx, call, t, schema)
	}
	return out, err
}

// tryCall makes a call once. forgot means that the server refused it because it does not know our session any more, or
// that it was never sent, because another one was refused so; the next try waits for a new session. A call of which
// nobody knows what the server did is not made again.
func (s *server) tryCall(ctx context.Context, call *tools.Call, t guard.Tool,
	schema func() *content.Schema,
) (out *tools.Result, forgot bool, err error) {
	c, release, err := s.acquireConn(ctx, call.Origin)
	if err != nil {
		return nil, false, err
	}
	defer release()
	if e := c.checkSameTool(t); e != nil {
		return nil, false, e
	}
	s.rememberSession(call.Origin.Session)
	f := c.beginFlight(call, s.callTimeout())
	res, err := c.callTool(ctx, f, t)
	notices, reasons := c.finishFlight(f)
	call.Trail.Notices = append(call.Trail.Notices, notices...)
	if err != nil {
		forgot = f.forgot.Load() || errors.Is(err, sdk.ErrSessionMissing) && !f.sent.Load()
		return nil, forgot, c.callError(ctx, f, err, reasons)
	}
	out = content.Render(ctx, res, content.Options{Server: s.cfg.ID, Output: schema()})
	if raw, ok := out.Raw.(content.Raw); ok {
		out.Files = raw.Files()
	}
	for _, why := range reasons {
		out.Text = strings.TrimLeft(out.Text+"\n["+why+"]", "\n")
	}
	return out, false, nil
}

// checkPermitted applies the operator's policy to a call.
func (s *server) checkPermitted(t guard.Tool) *guard.Error {
	if e := s.cfg.Policy.Check(s.cfg.ID, t.Name); e != nil {
		return e
	}
	if t.Original != t.Name { // a denial may use the name that the server gave the tool
		if e := (guard.Policy{Denied: s.cfg.Policy.Denied}).Check(s.cfg.ID, t.Original); e != nil {
			return e
		}
	}
	if ok, wait := s.limiter.Allow(s.m.o.Now()); !ok {
		return guard.Limited(s.cfg.ID, t.Name, wait)
	}
	return nil
}

// callToken returns an identifier for a call, unique within this process.
func (m *Manager) callToken(call *tools.Call) string {
	return strconv.FormatUint(m.calls.Add(1), 36) + "-" + cutText(call.ID, 60)
}

// beginFlight registers a call as in progress.
func (c *conn) beginFlight(call *tools.Call, limit time.Duration) *flight {
	f := &flight{call: call, token: c.s.m.callToken(call), limit: limit, flow: bucket{size: 10, perSecond: 5}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[f.token] = f
	return f
}

// finishFlight removes a call from the list. Nothing reaches its Call after that.
func (c *conn) finishFlight(f *flight) (notices, reasons []string) {
	c.mu.Lock()
	delete(c.calls, f.token)
	if c.stale && len(c.calls) == 0 {
		c.idleOnce.Do(func() { close(c.idle) })
	}
	c.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	return f.notices, f.reasons
}

func (c *conn) callTool(ctx context.Context, f *flight, t guard.Tool) (*sdk.CallToolResult, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	f.mu.Lock()
	f.cancel = cancel
	f.timer = time.AfterFunc(f.limit, func() { cancel(errSlow) })
	f.mu.Unlock()
	defer f.timer.Stop()
	ctx = context.WithValue(ctx, flightKey{}, f)
	args := f.call.Args
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	params := &sdk.CallToolParams{Name: t.Original, Arguments: args, Meta: sdk.Meta{}}
	if f.call.Origin.Caller != "" {
		params.Meta[callerKey] = f.call.Origin.CallerID()
	}
	params.SetProgressToken(f.token)
	session := c.readySession()
	var res *sdk.CallToolResult
	err := c.doRequest(ctx, func(ctx context.Context) error {
		got, err := session.CallTool(ctx, params)
		if err == nil {
			res = got
		}
		return err
	})
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	return res, nil
}

// pauseTimeout stops the timeout of a call while a person is asked.
func (f *flight) pauseTimeout() (resume func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused++
	if f.timer != nil {
		f.timer.Stop()
	}
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.paused--; f.paused == 0 && !f.over && f.timer != nil {
			f.timer.Reset(f.limit)
		}
	}
}

// passProgress passes a progress notification to its call.
func (c *conn) passProgress(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
	if req == nil || req.Params == nil {
		return
	}
	token, ok := req.Params.ProgressToken.(string)
	if !ok {
		return
	}
	c.mu.Lock()
	f := c.calls[token]
	c.mu.Unlock()
	if f == nil {
		return
	}
	text := progressText(req.Params)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over || f.call.Progress == nil || text == "" || text == f.progress || !f.flow.takeTokens(c.s.m.o.Now(), 1) {
		return
	}
	f.progress = text
	f.call.Progress(text) // under the lock, so that no progress is reported after the call has returned
}

// progressText returns the line that people see.
func progressText(p *sdk.ProgressNotificationParams) string {
	text := guard.Line(cutText(p.Message, 4*maxProgress), maxProgress)
	count := ""
	switch {
	case p.Total > 0 && p.Progress >= 0 && p.Progress <= p.Total:
		count = strconv.Itoa(int(100*p.Progress/p.Total)) + " %"
	case p.Progress > 0 && text == "":
		count = strconv.FormatFloat(p.Progress, 'f', -1, 64)
	}
	if text != "" && count != "" {
		return text + " (" + count + ")"
	}
	return text + count
}
