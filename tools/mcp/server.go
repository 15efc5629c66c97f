package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	stable      = time.Minute // a connection that lasted this long resets the count of failures
	maxSessions = 1000        // sessions that are remembered as users of a server
	sweepEvery  = time.Minute
)

// server is one configured or added server. Only its goroutine (run) connects it and changes its registered tools.
type server struct {
	m       *Manager
	cfg     Server
	log     zerolog.Logger
	dynamic bool
	once    bool // give up after the first failure
	limiter *guard.Limiter

	cancel context.CancelFunc // ends run
	done   chan struct{}      // closed when run is over
	tried  chan struct{}      // closed when the first attempt is over

	changed chan struct{} // the server reported a changed list, or an admin accepted tools
	suspect chan *conn    // a call failed in a way that suggests that this connection is dead

	moved chan struct{} // closed and replaced when the state changes; guarded by mu

	listing sync.Mutex // serialises changes of the offer; locked before mu

	mu sync.Mutex // guards the fields below
	health
	main    *conn
	offered *offer
	scoped
	lastSeen
}

// health is how a server is doing, and what it said of itself.
type health struct {
	state     State
	problem   string
	failure   error // of the first attempt
	since     time.Time
	attempts  int
	transport string
	protocol  string
	name      string
	pin       string // protocol revision in use because the newest did not work
}

// scoped are the connections of sessions or people, where the server has such a scope.
type scoped struct {
	pool     map[string]*slot
	filling  sync.WaitGroup // slots that are being filled
	closed   bool           // no further connection of a scope is opened
	sessions map[string]struct{}
}

// lastSeen is what was known of the server's tools, for telling what is new.
type lastSeen struct {
	locked   map[string]string // fingerprints at the first connect, with LockToolList
	told     []string          // waiting tools that were reported before the server went away
	toldHeld bool              // the same for its instructions
	followed string            // what was accepted when Sync looked last
}

func newServer(m *Manager, cfg Server, dynamic bool) *server {
	return &server{
		m: m, cfg: cfg, log: m.o.Log.With().Str("server", cfg.ID).Logger(), dynamic: dynamic,
		limiter: guard.NewLimiter(cfg.CallsPerMinute), done: make(chan struct{}), tried: make(chan struct{}),
		changed: make(chan struct{}, 1), suspect: make(chan *conn, 1), moved: make(chan struct{}),
		health: health{state: Connecting, since: m.o.Now(), transport: cfg.transportName()},
		scoped: scoped{pool: map[string]*slot{}, sessions: map[string]struct{}{}},
		cancel: func() {},
	}
}

// firstAttempt waits for the first attempt to connect and returns its error.
func (s *server) firstAttempt(ctx context.Context) error {
	select {
	case <-s.tried:
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.failure
	case <-ctx.Done():
		return ctx.Err()
	}
}

// runServer connects the server and keeps it connected until ctx ends. When it returns, all its connections are closed.
func (s *server) runServer(ctx context.Context) {
	defer close(s.done)
	defer s.publishOutcome(errors.New("the server was stopped before it was connected"))
	failures := 0
	for {
		c := s.connectFirst(ctx, &failures)
		if c == nil {
			break
		}
		began := s.m.o.Now()
		s.serveConn(ctx, c)
		if ctx.Err() != nil {
			break
		}
		failures++
		if s.m.o.Now().Sub(began) >= stable {
			failures = 0
		}
	}
	<-ctx.Done()
	s.withdrawTools()
	s.closePool()
	s.setState(Stopped, "")
}

// publishOutcome publishes the outcome of the first attempt. Later calls do nothing.
func (s *server) publishOutcome(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.tried:
	default:
		s.failure = err
		close(s.tried)
	}
}

// connectFirst tries until the server is connected. It returns nil when ctx ends, or when another attempt cannot help.
func (s *server) connectFirst(ctx context.Context, failures *int) *conn {
	for first := true; ; first = false {
		if *failures > 0 {
			quick := first && *failures == 1 // after a long stable connection, the first attempt is made at once
			if !quick && !s.waitBackoff(ctx, *failures) {
				return nil
			}
		}
		c, err := s.attemptConnection(ctx)
		if ctx.Err() != nil {
			if c != nil {
				c.closeConn()
			}
			return nil
		}
		if err == nil {
			s.publishOutcome(nil)
			return c
		}
		*failures++
		s.recordFailure(err, *failures)
		s.publishOutcome(err)
		if s.isHopeless(err) {
			return nil
		}
	}
}

// isHopeless reports whether another attempt is pointless. A server that was connected before is always tried again:
// what it answers during a redeployment says nothing about our configuration.
func (s *server) isHopeless(err error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.protocol == "" && (s.once || isFinal(err))
}

// recordFailure records why an attempt failed.
func (s *server) recordFailure(err error, failures int) {
	e := guard.AsError(err, s.cfg.ID, "")
	s.log.Warn().Err(err).Str("mcp_error_code", string(e.Code)).Int("attempt", failures).Msg("mcp server not connected")
	text := s.m.o.Redact(e.Message)
	hopeless := s.isHopeless(err)
	s.mu.Lock()
	state := s.state
	s.mu.Unlock()
	switch {
	case hopeless:
		state, text = Broken, text+"; it is not tried again before a restart"
	case failures >= s.m.o.ConnectAttempts && state == Connecting:
		state = Broken
	}
	s.setState(state, text)
	s.mu.Lock()
	s.attempts = failures
	s.mu.Unlock()
}

// isFinal reports whether another attempt cannot help, because the configuration is wrong or the server refuses us.
func isFinal(err error) bool {
	e, ok := errors.AsType[*guard.Error](err)
	if !ok {
		return false
	}
	switch e.Code {
	case guard.PolicyBlocked, guard.AuthFailure, guard.InvalidInput, guard.NotFound:
		return true
	default:
		return false
	}
}

func (s *server) setState(state State, problem string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != state {
		s.since = s.m.o.Now()
	}
	s.state, s.problem = state, problem
	close(s.moved)
	s.moved = make(chan struct{})
}

// adoptConn adopts a new connection and registers its tools.
func (s *server) adoptConn(ctx context.Context, c *conn, timeout time.Duration) error {
	next, err := s.ingestOffer(ctx, c, timeout)
	if err != nil {
		return err
	}
	s.mu.Lock()
	was, first := s.state, s.protocol == ""
	s.main, s.attempts = c, 0
	s.protocol, s.name, s.transport = c.protocolVersion(), c.serverName(), c.transport
	if was != Connected {
		s.sessions = s.keepSessions(was)
	}
	s.mu.Unlock()
	if err := s.registerOffer(next); err != nil {
		s.mu.Lock()
		s.main = nil
		s.mu.Unlock()
		return err
	}
	s.setState(Connected, "") // only now: a caller that sees Connected may look for the tools
	s.log.Info().Str("protocol", c.protocolVersion()).Int("tools", len(next.tools)).Msg("mcp server connected")
	if was == Gone && !first {
		s.notifySessions(
			Back, fmt.Sprintf("The server %s is back; its %d tools can be used again.", s.cfg.ID, len(next.tools)), nil,
		)
	}
	return nil
}

// keepSessions returns the sessions that have to be told when the server is back. The caller holds the lock.
func (s *server) keepSessions(was State) map[string]struct{} {
	if was == Gone {
		return s.sessions
	}
	return map[string]struct{}{}
}

// serveConn uses a connection until it dies or ctx ends. On return, the connection is
// closed and the tools are withdrawn.
func (s *server) serveConn(ctx context.Context, c *conn) {
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	refresh := refresher{s: s}
	defer refresh.stopTimer()
	for {
		select {
		case <-ctx.Done():
			s.withdrawTools()
			c.closeConn()
			return
		case <-c.done:
			if next := s.replaceConn(ctx, c); next != nil {
				c = next
				continue
			}
			return
		case dead := <-s.suspect:
			if !dead.isOver() && !dead.checkAlive(ctx) {
				dead.abortConn()
			}
		case <-s.changed:
			refresh.requestList()
		case <-refresh.dueSignal():
			refresh.refreshNow(ctx, c)
		case <-sweep.C:
			s.sweepSlots()
		}
	}
}

// replaceConn handles the end of a connection. If only the connection was lost, such as an expired session, a new one
// replaces it before anybody notices. Otherwise the tools are withdrawn and their users are notified.
func (s *server) replaceConn(ctx context.Context, c *conn) *conn {
	cause := c.explainError(c.endCause())
	c.closeConn()
	if ctx.Err() != nil {
		s.withdrawTools()
		return nil
	}
	if c.isRenewable() {
		if next, err := s.attemptConnection(ctx); err == nil {
			s.log.Info().Msg("mcp connection renewed")
			return next
		}
	}
	s.recordLoss(cause)
	return nil
}

// recordLoss records that a server went away. Its tools keep their names, so that a call is told that the server is
// away rather than that there is no such tool.
func (s *server) recordLoss(cause error) {
	text := s.m.o.Redact(guard.AsError(cause, s.cfg.ID, "").Message)
	s.log.Warn().Err(cause).Msg("mcp server lost")
	s.mu.Lock()
	s.main = nil
	s.mu.Unlock()
	s.setState(Gone, text)
	s.notifySessions(Away, fmt.Sprintf(
		"The server %s went away: %s. Its tools cannot be used until it is back.", s.cfg.ID, text,
	), nil)
}

// withdrawTools removes the tools from the registry and the instructions from the prompt.
func (s *server) withdrawTools() {
	s.listing.Lock()
	defer s.listing.Unlock()
	if err := s.m.o.Registry.Replace(s.cfg.ID, nil); err != nil {
		s.log.Error().Err(err).Msg("tools could not be withdrawn")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.main, s.offered = nil, nil
}

// rememberSession remembers a session that has to be told when the server goes away.
func (s *server) rememberSession(session string) {
	if session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sessions) < maxSessions {
		s.sessions[session] = struct{}{}
	}
}

func (s *server) notifySessions(kind Kind, text string, names []string) {
	s.announceNotice(Notice{Kind: kind, Text: text, Tools: names})
}

// announceNotice sends a notice to the sessions that use the server.
func (s *server) announceNotice(n Notice) {
	s.mu.Lock()
	for id := range s.sessions {
		n.Sessions = append(n.Sessions, id)
	}
	s.mu.Unlock()
	slices.Sort(n.Sessions)
	n.Server = s.cfg.ID
	s.m.notices.sendNotice(n)
}
