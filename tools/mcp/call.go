package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/content"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	maxQuestions = 3  // of a server within one call that anybody hears of
	maxNagging   = 20 // until the call is broken off
	outerGrace   = 10 * time.Second
	maxProgress  = 200 // bytes of a line
)

// callerKey is where a server finds in _meta for whom a call is made. The conversation is not told: its key holds ids of chats.
const callerKey = "zephbot/caller"

// Reasons for which we break a call off.
var (
	errSlow    = fmt.Errorf("the time of the call is up: %w", context.DeadlineExceeded)
	errNagging = errors.New("the server keeps asking")
)

// flight is a call that is under way.
type flight struct {
	call   *tools.Call
	token  string
	status atomic.Int64 // of the last HTTP answer

	mu       sync.Mutex
	cancel   context.CancelCauseFunc // nil until it is sent
	over     bool
	asked    int
	notices  []string // for the person
	reasons  []string // for the model
	progress string   // the last line
	flow     bucket
	timer    *time.Timer
	limit    time.Duration
	paused   int
}

// flightKey finds the flight in the context of what the library does for it: the newest protocol asks questions within the call, and the answer of the
// network belongs to it.
type flightKey struct{}

// callTimeout is how long a server may take for a call.
func (s *server) callTimeout() time.Duration {
	if s.m.o.ToolTimeout > 0 {
		return s.m.o.ToolTimeout
	}
	return s.cfg.Timeout
}

// outerTimeout is the limit that the chain sets: behind ours, which knows better what to say and stands still while a person is asked.
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

// run1 executes a call of a tool of this server.
func (s *server) run1(ctx context.Context, call *tools.Call, t guard.Tool, schema func() *content.Schema) (*tools.Result, error) {
	call.Trail.MCPServer, call.Trail.MCPErrorCode = s.cfg.ID, ""
	res, err := s.perform(ctx, call, t, schema)
	if err == nil {
		if res.Error { // the tool ran and says itself that it failed
			call.Trail.MCPErrorCode = string(guard.ServerError)
		}
		return res, nil
	}
	e := guard.AsError(err, s.cfg.ID, t.Name)
	e.Message = s.m.o.Redact(e.Message)
	e.Mark(call.Trail)
	s.log.Info().Str("tool", call.Def.Name).Str("mcp_error_code", string(e.Code)).Str("session", call.Origin.Session).Str("turn", call.Origin.Turn).Msg("mcp call failed")
	return nil, e
}

func (s *server) perform(ctx context.Context, call *tools.Call, t guard.Tool, schema func() *content.Schema) (*tools.Result, error) {
	if e := s.permitted(t); e != nil {
		return nil, e
	}
	c, release, err := s.acquire(ctx, call.Origin)
	if err != nil {
		return nil, err
	}
	defer release()
	if e := c.same(t); e != nil {
		return nil, e
	}
	s.used(call.Origin.Session)
	f := c.begin(call, s.callTimeout())
	res, err := c.callTool(ctx, f, t)
	notices, reasons := c.finish(f)
	call.Trail.Notices = append(call.Trail.Notices, notices...)
	if err != nil {
		return nil, c.failure(ctx, f, err, reasons)
	}
	out := content.Render(ctx, res, content.Options{Server: s.cfg.ID, Output: schema()})
	if raw, ok := out.Raw.(content.Raw); ok {
		out.Files = raw.Files()
	}
	for _, why := range reasons {
		out.Text = strings.TrimLeft(out.Text+"\n["+why+"]", "\n")
	}
	return out, nil
}

// permitted applies the operator's policy for the server's calls.
func (s *server) permitted(t guard.Tool) *guard.Error {
	if e := s.cfg.Policy.Check(s.cfg.ID, t.Name); e != nil {
		return e
	}
	if t.Original != t.Name { // a denial may name it as the server does
		if e := (guard.Policy{Denied: s.cfg.Policy.Denied}).Check(s.cfg.ID, t.Original); e != nil {
			return e
		}
	}
	if ok, wait := s.limiter.Allow(s.m.o.Now()); !ok {
		return guard.Limited(s.cfg.ID, t.Name, wait)
	}
	return nil
}

// token names a call to the server, once in the life of the process.
func (m *Manager) token(call *tools.Call) string {
	return strconv.FormatUint(m.calls.Add(1), 36) + "-" + bounded(call.ID, 60)
}

// begin notes a call as under way.
func (c *conn) begin(call *tools.Call, limit time.Duration) *flight {
	f := &flight{call: call, token: c.s.m.token(call), limit: limit, flow: bucket{size: 10, perSecond: 5}}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[f.token] = f
	return f
}

// finish takes a call off the list: nothing reaches its Call any more.
func (c *conn) finish(f *flight) (notices, reasons []string) {
	c.mu.Lock()
	delete(c.calls, f.token)
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
		params.Meta[callerKey] = f.call.Origin.Caller
	}
	params.SetProgressToken(f.token)
	session := c.ready()
	var res *sdk.CallToolResult
	err := c.do(ctx, func(ctx context.Context) error {
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

// pause stops the clock of a call while a person is asked.
func (f *flight) pause() (resume func()) {
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

// failure puts the end of a call into words and a code. reasons say which questions of the server were declined.
func (c *conn) failure(ctx context.Context, f *flight, err error, reasons []string) error {
	e := c.ours(ctx, f, err)
	if e == nil {
		e = c.theirs(f, err)
	}
	if len(reasons) == 0 || e.Code == "" {
		return e
	}
	e.Message += " (" + strings.Join(reasons, " ") + ")"
	if e.Code == guard.ServerError || e.Code == guard.Transient {
		e.Code = guard.InvalidInput
	}
	if e.Code == guard.InvalidInput {
		e.Suggestion = "Do not repeat the call as it is: the server would ask again. Give what it asks for in the arguments, or tell the user."
	}
	return e
}

// ours is the failure of a call that we broke off; nil when we did not.
func (c *conn) ours(ctx context.Context, f *flight, err error) *guard.Error {
	id := c.s.cfg.ID
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return &guard.Error{Server: id, Message: "the call was cancelled", Err: context.Canceled}
	case errors.Is(err, errNagging):
		c.mute()
		return nagging(id, err)
	case errors.Is(err, errSlow), errors.Is(err, context.DeadlineExceeded):
		return &guard.Error{Code: guard.Transient, Server: id, Message: fmt.Sprintf("the server %s did not answer within %s", id, f.limit), Err: err}
	}
	return nil
}

// theirs is the failure of a call that the server or the network broke.
func (c *conn) theirs(f *flight, err error) *guard.Error {
	id := c.s.cfg.ID
	rpc, ok := errors.AsType[*jsonrpc.Error](err)
	switch status := int(f.status.Load()); {
	case errors.Is(err, sdk.ErrSessionMissing):
		return &guard.Error{Code: guard.Transient, Server: id, Message: "the server " + id + " has forgotten us; it is being connected again", Err: err}
	case ok && rpc.Code == sdk.CodeURLElicitationRequired:
		return pageNeeded(id, rpc)
	case ok && rpc.Code == notSupported:
		text := "the server " + id + " wanted to ask the model within the call, and servers may not ask the model here"
		return &guard.Error{Code: guard.PolicyBlocked, Server: id, Message: text, Err: err}
	case ok && !transportCode(rpc.Code):
		return &guard.Error{Code: guard.CodeOfRPC(rpc.Code), Server: id, Message: "the server " + id + " refused the call: " + guard.Line(rpc.Message, 500), Err: err}
	case status >= http.StatusBadRequest:
		return statusFailure(id, status, "", err)
	case c.over(), errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, io.EOF):
		c.doubt()
		return c.broken(err)
	case f.nagged(): // the library has given up before us
		return nagging(id, err)
	default:
		return c.odd(err)
	}
}

// pageNeeded is the failure of a call before which the server wants a page visited by the person. It is told as it is; nothing opens the page.
func pageNeeded(id string, rpc *jsonrpc.Error) *guard.Error {
	var data struct {
		Elicitations []*sdk.ElicitParams `json:"elicitations"`
	}
	e := &guard.Error{
		Code: guard.AuthFailure, Server: id, Err: rpc,
		Message:    "the server " + id + " wants the person to open a page before it does this: " + guard.Line(rpc.Message, 300),
		Suggestion: "Tell the user what the server wants and show the address as it is; do not open it. Call the tool again when the user says that it is done.",
	}
	if json.Unmarshal(rpc.Data, &data) != nil {
		return e
	}
	for _, p := range data.Elicitations[:min(len(data.Elicitations), maxQuestions)] {
		if p == nil {
			continue
		}
		p.Mode = "url"
		if form := content.Elicit(p); form.Problem == "" {
			e.Message += fmt.Sprintf(" (%s %s)", form.Message, guard.Line(form.URL, 1000))
		}
	}
	return e
}

// notSupported is the code of the library's own no to a server that wants, by its answer, what we do not offer: an answer of the model.
const notSupported = -31001

// nagging is the failure of a call in which the server takes no for no answer.
func nagging(id string, err error) *guard.Error {
	return &guard.Error{Code: guard.InvalidInput, Server: id, Message: "the server " + id + " keeps asking questions within one call; the call was broken off", Err: err}
}

// nagged says whether the server has asked more often than anybody was told.
func (f *flight) nagged() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked > maxQuestions
}

// transportCode says whether the library made an error itself, because a message could not be sent: it gives such errors codes as if a server had
// answered.
func transportCode(code int64) bool {
	switch code {
	case -32003, -32004, -32005: // client closing, server closing, rejected by the transport
		return true
	default:
		return false
	}
}

// broken says how a connection ended in the middle of a call.
func (c *conn) broken(err error) *guard.Error {
	e := &guard.Error{Code: guard.Transient, Server: c.s.cfg.ID, Message: "the server " + c.s.cfg.ID + " went away during the call", Err: err}
	if why, ok := errors.AsType[*guard.Error](c.explain(err)); ok {
		e.Message += ": " + why.Message
		if why.Code == guard.InvalidInput { // it was the answer that was wrong
			e.Code = why.Code
		}
	}
	return e
}

// odd is a failure that the library has no type for.
func (c *conn) odd(err error) *guard.Error {
	err = c.explain(err)
	e := guard.AsError(err, c.s.cfg.ID, "")
	if _, ok := errors.AsType[*guard.Error](err); ok {
		return e
	}
	switch {
	case c.web != nil: // an answer that never came, or a network that failed
		if e.Code == guard.ServerError {
			e.Code, e.Message = guard.Transient, "the connection to the server "+c.s.cfg.ID+" broke during the call"
		}
		c.doubt()
	case e.Code == guard.ServerError:
		e.Message = "the answer of the server " + c.s.cfg.ID + " cannot be used: " + guard.Line(err.Error(), 300)
	}
	return e
}

// doubt lets run find out whether the connection is still good.
func (c *conn) doubt() {
	if c.over() || c.proc != nil {
		return // it is known, or will be: the end of a process cannot be missed
	}
	select {
	case c.s.suspect <- c:
	default: // others doubt already
	}
}

// progressed hands a progress notification to the call that it belongs to.
func (c *conn) progressed(_ context.Context, req *sdk.ProgressNotificationClientRequest) {
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
	if f.over || f.call.Progress == nil || text == "" || text == f.progress || !f.flow.take(c.s.m.o.Now(), 1) {
		return
	}
	f.progress = text
	f.call.Progress(text) // under the lock, so that none comes after the call has returned
}

// progressText is the line that a person sees.
func progressText(p *sdk.ProgressNotificationParams) string {
	text := guard.Line(bounded(p.Message, 4*maxProgress), maxProgress)
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
