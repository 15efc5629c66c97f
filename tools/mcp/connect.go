package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	closeGrace = 2 * time.Second // for a server to react to our goodbye
	closeLimit = 5 * time.Second // until we stop waiting for a connection to end
)

// Transports, as people read them.
const (
	kindStdio     = "stdio"
	kindHTTP      = "http"
	kindSSE       = "sse"
	kindInProcess = "in process"
)

// conn is one connection to a server. It is never reopened: a new one replaces it.
type conn struct {
	s         *server
	origin    tools.Origin // who it belongs to, for servers with a scope
	transport string       // stdio, http, sse, in process
	proc      *process     // for stdio; else nil
	web       *roundTripper

	life context.Context //nolint:containedctx // lifetime of the connection, its requests and handlers
	kill context.CancelCauseFunc
	wg   sync.WaitGroup // its goroutines

	done chan struct{} // closed when the connection is over, for any reason

	tasks taskWatch

	mu       sync.Mutex
	raw      sdk.Connection // the transport below the session
	session  *sdk.ClientSession
	shutting bool  // set by close: no new goroutines are started
	reason   error // why the connection is over
	calls    map[string]*flight
	prints   map[string]string // fingerprints of its tools; for connections of a scope
	silence  time.Time         // until then, questions are declined without asking anybody
	strays   bucket            // limits questions that belong to no call
	logs     bucket            // limits the server's messages for the log
	lost     int               // messages dropped since the last one that was logged
	shutOne  sync.Once
	endOne   sync.Once
}

// open connects to the server on behalf of origin, which is empty for the first connection. pin is a protocol revision;
// "" allows any.
func (s *server) open(ctx context.Context, origin tools.Origin, pin string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartupTimeout)
	defer cancel()
	if s.cfg.Protocol != "" {
		pin = s.cfg.Protocol
	}
	ways := []string{s.cfg.transport()}
	if ways[0] == kindHTTP {
		s.mu.Lock()
		if s.transport == kindSSE {
			ways[0] = kindSSE // as an earlier connection found out
		} else {
			ways = append(ways, kindSSE)
		}
		s.mu.Unlock()
	}
	c, err := s.openBy(ctx, ways[0], origin, pin)
	if err != nil && len(ways) > 1 && maySpeakSSE(err) && ctx.Err() == nil {
		if pin == "" { // the older transport supports only older revisions
			pin = legacy
		}
		if older, err2 := s.openBy(ctx, ways[1], origin, pin); err2 == nil {
			return older, nil
		}
	}
	return c, err
}

// openBy connects over one kind of transport.
func (s *server) openBy(ctx context.Context, kind string, origin tools.Origin, pin string) (*conn, error) {
	c := &conn{
		s: s, origin: origin, transport: kind, done: make(chan struct{}), calls: map[string]*flight{},
		strays: bucket{size: maxQuestions, perSecond: 1.0 / 60},
		logs:   bucket{size: logsBurst, perSecond: logsPerSecond},
	}
	c.life, c.kill = context.WithCancelCause(context.WithoutCancel(ctx))
	t, err := s.dial(ctx, c)
	if err == nil {
		err = c.shake(ctx, t, pin)
	}
	if err == nil {
		return c, nil
	}
	err = c.explain(err)
	c.close()
	return nil, s.unreachable(err)
}

// dial returns the transport of a connection. For stdio, it starts the program.
func (s *server) dial(ctx context.Context, c *conn) (sdk.Transport, error) {
	switch c.transport {
	case kindInProcess:
		return s.cfg.Connect(ctx)
	case kindStdio:
		return s.startProcess(ctx, c)
	default:
		return s.httpTransport(c)
	}
}

// unreachable returns the error of a failed attempt, in words for people.
func (s *server) unreachable(err error) error {
	if _, ok := errors.AsType[*guard.Error](err); ok {
		return err
	}
	e := guard.AsError(err, s.cfg.ID, "")
	switch {
	case isTimeout(err):
		e.Code, e.Message = guard.Transient, "the server "+s.cfg.ID+" did not answer within "+
			s.cfg.StartupTimeout.String()
	case e.Code == guard.ServerError:
		e.Code, e.Message = guard.Transient, "the server "+s.cfg.ID+" could not be connected: "+
			guard.Line(err.Error(), 300)
	}
	return e
}

// capture remembers the connection that a transport opens, because a session cannot be aborted in any other way. It
// connects with the connection's own context: an open stream must outlive the handshake.
type capture struct {
	inner sdk.Transport
	c     *conn
}

// Connect implements sdk.Transport.
func (t capture) Connect(context.Context) (sdk.Connection, error) {
	raw, err := t.inner.Connect(t.c.life)
	if err != nil {
		return nil, err
	}
	t.c.mu.Lock()
	late := t.c.shutting
	t.c.raw = raw
	t.c.mu.Unlock()
	if late {
		_ = raw.Close() // nobody else closes it
		return nil, errClosed
	}
	return raw, nil
}

// shake runs the handshake. The library does not honour ctx everywhere, so the handshake runs in a goroutine of its own
// and shut aborts it.
func (c *conn) shake(ctx context.Context, t sdk.Transport, pin string) error {
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	result := make(chan outcome, 1)
	client := sdk.NewClient(&sdk.Implementation{Name: "zephbot", Title: "Zephbot", Version: c.s.m.o.Version},
		c.options())
	c.addRoots(client)
	c.wg.Go(func() {
		session, err := client.Connect(ctx, capture{inner: t, c: c}, &sdk.ClientSessionOptions{ProtocolVersion: pin})
		result <- outcome{session, err}
		if session == nil {
			return
		}
		cause := session.Wait()
		c.end(cause)
		_ = session.Close() // ends the library's goroutines; the connection itself is already gone
	})
	select {
	case o := <-result:
		if o.err != nil {
			return o.err
		}
		c.mu.Lock()
		c.session = o.session
		c.mu.Unlock()
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// options returns what we offer to the server, and the callbacks for what it sends us.
func (c *conn) options() *sdk.ClientOptions {
	ask := sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	caps := &sdk.ClientCapabilities{Elicitation: &ask}
	if len(c.roots()) > 0 {
		caps.RootsV2 = &sdk.RootCapabilities{} //nolint:staticcheck // most servers speak an older revision
	}
	log := c.s.log.Level(max(c.s.log.GetLevel(), zerolog.WarnLevel))
	o := &sdk.ClientOptions{
		Logger:                      slog.New(zerolog.NewSlogHandler(log)),
		Capabilities:                caps,
		ElicitationHandler:          c.elicit,
		LoggingMessageHandler:       c.logged, //nolint:staticcheck // most servers speak an older revision
		ProgressNotificationHandler: c.progressed,
		KeepAlive:                   c.s.m.o.KeepAlive,
		KeepAliveFailureThreshold:   2,
	}
	if c.s.m.o.Sample != nil {
		o.CreateMessageHandler = c.sample //nolint:staticcheck // most servers speak an older revision
	}
	if !c.s.m.o.LockToolList && c.origin == (tools.Origin{}) {
		o.ToolListChangedHandler = func(context.Context, *sdk.ToolListChangedRequest) { c.s.poke() }
	}
	return o
}

// poke asks run to list the tools again. It never blocks: one pending request is enough.
func (s *server) poke() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// alive checks a connection after a call has failed. The newest protocol has no ping; there, the test is to open a new
// connection.
func (c *conn) alive(ctx context.Context) bool {
	session := c.ready()
	if session == nil || c.protocol() > legacy {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, c.s.m.o.ListTimeout)
	defer cancel()
	return c.do(ctx, func(ctx context.Context) error { return session.Ping(ctx, nil) }) == nil
}

// do runs a request of the library in a goroutine, because a write to a server that does not read blocks regardless of
// ctx. A request that is left behind ends with the connection.
func (c *conn) do(ctx context.Context, request func(ctx context.Context) error) error {
	result := make(chan error, 1)
	c.mu.Lock()
	if c.shutting { // close may already be waiting for the last goroutine
		c.mu.Unlock()
		return fmt.Errorf("%w: %w", sdk.ErrConnectionClosed, errClosed)
	}
	c.wg.Go(func() { result <- request(ctx) })
	c.mu.Unlock()
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		select {
		case err := <-result: // both may have happened
			return err
		default:
			return fmt.Errorf("%w: %w", sdk.ErrConnectionClosed, c.cause())
		}
	}
}

func (c *conn) ready() *sdk.ClientSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

func (c *conn) protocol() string {
	if session := c.ready(); session != nil && session.InitializeResult() != nil {
		return session.InitializeResult().ProtocolVersion
	}
	return ""
}

// serverName returns the name that the server gives itself.
func (c *conn) serverName() string {
	session := c.ready()
	if session == nil || session.InitializeResult() == nil || session.InitializeResult().ServerInfo == nil {
		return ""
	}
	info := session.InitializeResult().ServerInfo
	return guard.Line(strings.TrimSpace(info.Name+" "+info.Version), 100)
}

// end marks the connection as over.
func (c *conn) end(cause error) {
	c.endOne.Do(func() {
		if cause == nil {
			cause = fmt.Errorf("the server closed the connection: %w", io.EOF)
		}
		c.mu.Lock()
		c.reason = cause
		c.mu.Unlock()
		close(c.done)
	})
}

func (c *conn) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// cause returns why the connection is over.
func (c *conn) cause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// explain replaces an error of the library by a better one where we know more: the process ended, or the server
// answered with an HTTP status.
func (c *conn) explain(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*guard.Error](err); ok {
		return err
	}
	if c.proc != nil {
		err = c.proc.explain(err)
		if e, ok := errors.AsType[*guard.Error](err); ok {
			e.Message += c.confinedHint(e.Message)
		}
	} else if c.web != nil {
		err = c.web.explain(err)
	}
	if _, ok := errors.AsType[*guard.Error](err); !ok &&
		(errors.Is(err, io.EOF) || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, sdk.ErrSessionMissing)) {
		return &guard.Error{Code: guard.Transient, Server: c.s.cfg.ID, Message: "the connection ended", Err: err}
	}
	return err
}

// renewable reports whether only the connection was lost and the server still knows our session.
func (c *conn) renewable() bool { return c.proc == nil && c.web != nil }

// shut aborts the connection. Nothing waits for the server after that.
func (c *conn) shut() {
	c.shutOne.Do(func() {
		c.mu.Lock()
		raw := c.raw
		c.shutting = true
		c.mu.Unlock()
		// for a server that does not answer our goodbye
		stop := time.AfterFunc(closeGrace, func() { c.kill(errClosed) })
		if raw != nil {
			_ = raw.Close() // a failed goodbye changes nothing
		}
		stop.Stop()
		c.kill(errClosed)
		c.end(errClosed)
		if c.proc != nil {
			c.proc.stop()
		}
	})
}

var errClosed = errors.New("the connection was closed")

// close aborts the connection and waits until everything that belongs to it has ended.
func (c *conn) close() {
	c.shut()
	gone := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		c.wg.Wait()
		close(gone)
	})
	t := time.NewTimer(closeLimit)
	defer t.Stop()
	select {
	case <-gone:
		wg.Wait()
	case <-t.C:
		c.s.log.Error().Msg("an mcp connection does not end")
	}
}

// isTimeout reports whether an error is a timeout.
func isTimeout(err error) bool {
	return errors.Is(err, context.DeadlineExceeded)
}
