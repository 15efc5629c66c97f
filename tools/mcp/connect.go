package mcp

import (
	"context"
	"errors"
	"log/slog"
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

// openConn connects to the server on behalf of origin, which is empty for the first connection. pin is a
// protocol revision; "" allows any.
func (s *server) openConn(ctx context.Context, origin tools.Origin, pin string) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartupTimeout)
	defer cancel()
	if s.cfg.Protocol != "" {
		pin = s.cfg.Protocol
	}
	ways := []string{s.cfg.transportName()}
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
		s: s, origin: origin, transport: kind,
		done: make(chan struct{}), idle: make(chan struct{}), calls: map[string]*flight{},
		chatter: chatter{
			strays: bucket{size: maxQuestions, perSecond: 1.0 / 60},
			logs:   bucket{size: logsBurst, perSecond: logsPerSecond},
		},
	}
	c.life, c.kill = context.WithCancelCause(context.WithoutCancel(ctx))
	t, err := s.dialTransport(ctx, c)
	if err == nil {
		err = c.shakeHands(ctx, t, pin)
	}
	if err == nil {
		return c, nil
	}
	err = c.explainError(err)
	c.closeConn()
	return nil, s.unreachableError(err)
}

// dialTransport returns the transport of a connection. For stdio, it starts the program.
func (s *server) dialTransport(ctx context.Context, c *conn) (sdk.Transport, error) {
	switch c.transport {
	case kindInProcess:
		return s.cfg.Connect(ctx)
	case kindStdio:
		return s.startProcess(ctx, c)
	default:
		return s.httpTransport(c)
	}
}

// unreachableError returns the error of a failed attempt, in words for people.
func (s *server) unreachableError(err error) error {
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

// shakeHands runs the handshake. The library does not honour ctx everywhere, so the handshake runs in a goroutine
// of its own and shut aborts it.
func (c *conn) shakeHands(ctx context.Context, t sdk.Transport, pin string) error {
	type outcome struct {
		session *sdk.ClientSession
		err     error
	}
	result := make(chan outcome, 1)
	client := sdk.NewClient(&sdk.Implementation{Name: "zephbot", Title: "Zephbot", Version: c.s.m.o.Version},
		c.clientOptions())
	c.addRoots(client)
	c.wg.Go(func() {
		session, err := client.Connect(ctx, capture{inner: t, c: c}, &sdk.ClientSessionOptions{ProtocolVersion: pin})
		result <- outcome{session, err}
		if session == nil {
			return
		}
		cause := session.Wait()
		c.endConn(cause)
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

// clientOptions returns what we offer to the server, and the callbacks for what it sends us.
func (c *conn) clientOptions() *sdk.ClientOptions {
	ask := sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}
	caps := &sdk.ClientCapabilities{Elicitation: &ask}
	if len(c.usableRoots()) > 0 {
		caps.RootsV2 = &sdk.RootCapabilities{} //nolint:staticcheck // most servers speak an older revision
	}
	log := c.s.log.Level(max(c.s.log.GetLevel(), zerolog.WarnLevel))
	o := &sdk.ClientOptions{
		Logger:                      slog.New(zerolog.NewSlogHandler(log)),
		Capabilities:                caps,
		ElicitationHandler:          c.answerElicitation,
		LoggingMessageHandler:       c.logMessage, //nolint:staticcheck // most servers speak an older revision
		ProgressNotificationHandler: c.passProgress,
		KeepAlive:                   c.s.m.o.KeepAlive,
		KeepAliveFailureThreshold:   2,
	}
	if c.s.m.o.Sample != nil {
		o.CreateMessageHandler = c.sampleModel //nolint:staticcheck // most servers speak an older revision
	}
	if !c.s.m.o.LockToolList && c.origin == (tools.Origin{}) {
		o.ToolListChangedHandler = func(context.Context, *sdk.ToolListChangedRequest) { c.s.requestRelist() }
	}
	return o
}

// requestRelist asks run to list the tools again. It never blocks: one pending request is enough.
func (s *server) requestRelist() {
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

var errClosed = errors.New("the connection was closed")
