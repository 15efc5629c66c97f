package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
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

	mu      sync.Mutex
	raw     sdk.Connection // the transport below the session
	session *sdk.ClientSession
	calls   map[string]*flight
	stale   bool              // the server has forgotten the session: no new call uses it
	idle    chan struct{}     // closed when it is stale and no call is under way
	prints  map[string]string // fingerprints of its tools; for connections of a scope
	chatter
	ending
}

// chatter is what a server says without being asked, and how much of it is heard. It is guarded by conn.mu.
type chatter struct {
	silence time.Time // until then, questions are declined without asking anybody
	strays  bucket    // limits questions that belong to no call
	logs    bucket    // limits the server's messages for the log
	lost    int       // messages dropped since the last one that was logged
}

// ending is how a connection ends. Its first two fields are guarded by conn.mu.
type ending struct {
	shutting bool  // set by close: no new goroutines are started
	reason   error // why the connection is over
	shutOne  sync.Once
	endOne   sync.Once
	idleOnce sync.Once
}

// checkAlive checks a connection after a call has failed. The newest protocol has no ping; there, the
// test is to open a new connection.
func (c *conn) checkAlive(ctx context.Context) bool {
	session := c.readySession()
	if session == nil || c.protocolVersion() > legacy {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, c.s.m.o.ListTimeout)
	defer cancel()
	return c.doRequest(ctx, func(ctx context.Context) error { return session.Ping(ctx, nil) }) == nil
}

// doRequest runs a request of the library in a goroutine, because a write to a server that does not read blocks
// regardless of ctx. A request that is left behind ends with the connection.
func (c *conn) doRequest(ctx context.Context, request func(ctx context.Context) error) error {
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
			return fmt.Errorf("%w: %w", sdk.ErrConnectionClosed, c.endCause())
		}
	}
}

func (c *conn) readySession() *sdk.ClientSession {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

func (c *conn) protocolVersion() string {
	if session := c.readySession(); session != nil && session.InitializeResult() != nil {
		return session.InitializeResult().ProtocolVersion
	}
	return ""
}

// serverName returns the name that the server gives itself.
func (c *conn) serverName() string {
	session := c.readySession()
	if session == nil || session.InitializeResult() == nil || session.InitializeResult().ServerInfo == nil {
		return ""
	}
	info := session.InitializeResult().ServerInfo
	return guard.Line(strings.TrimSpace(info.Name+" "+info.Version), 100)
}

// endConn marks the connection as over.
func (c *conn) endConn(cause error) {
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

func (c *conn) isOver() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// endCause returns why the connection is over.
func (c *conn) endCause() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reason
}

// explainError replaces an error of the library by a better one where we know more: the process ended, or the server
// answered with an HTTP status.
func (c *conn) explainError(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*guard.Error](err); ok {
		return err
	}
	if c.proc != nil {
		err = c.proc.explainExit(err)
		if e, ok := errors.AsType[*guard.Error](err); ok && errors.As(err, new(*exitError)) {
			e.Message += c.confinedHint(e.Message)
		}
	} else if c.web != nil {
		err = c.web.explainError(err)
	}
	if _, ok := errors.AsType[*guard.Error](err); !ok &&
		(errors.Is(err, io.EOF) || errors.Is(err, sdk.ErrConnectionClosed) || errors.Is(err, sdk.ErrSessionMissing)) {
		return &guard.Error{Code: guard.Transient, Server: c.s.cfg.ID, Message: "the connection ended", Err: err}
	}
	return err
}

// isRenewable reports whether only the connection was lost and the server still knows our session.
func (c *conn) isRenewable() bool { return c.proc == nil && c.web != nil }

// abortConn aborts the connection. Nothing waits for the server after that.
func (c *conn) abortConn() {
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
		c.endConn(errClosed)
		if c.proc != nil {
			c.proc.stopTree()
		}
	})
}

// closeConn aborts the connection and waits until everything that belongs to it has ended.
func (c *conn) closeConn() {
	c.abortConn()
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
