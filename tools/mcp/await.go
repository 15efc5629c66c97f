package mcp

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// goneWait is how long a call waits for a server that went away. It is enough for a server that is restarted at once.
const goneWait = 5 * time.Second

// beginWait is how long a call waits for Run to begin, which normally happens within moments of the start of a program.
const beginWait = 30 * time.Second

// currentConn returns the connection for calls, or the reason why there is none. It waits for a server that is still
// connecting, for at most the time that patience allows and until ctx ends.
func (s *server) currentConn(ctx context.Context) (*conn, error) {
	var limit <-chan time.Time
	for {
		s.mu.Lock()
		main, state, problem, moved := s.main, s.state, s.problem, s.moved
		s.mu.Unlock()
		if main != nil && state == Connected && main.isUsable() {
			return main, nil
		}
		patience := s.callPatience(state)
		if patience > 0 && limit == nil {
			t := time.NewTimer(patience)
			defer t.Stop()
			limit = t.C
		}
		if patience == 0 {
			return nil, s.awayError(problem)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit:
			return nil, s.awayError(problem)
		}
	}
}

// Await waits for the server of a tool that is not registered, until ctx ends or the server's time to connect is over;
// the error then says that the server is away. It returns nil once the server is connected, and also when there is no
// such server, because then there is no such tool.
func (m *Manager) Await(ctx context.Context, tool string) error {
	id, name, ok := guard.Split(tool)
	if !ok {
		return nil
	}
	t := time.NewTimer(beginWait)
	defer t.Stop()
	select {
	case <-m.began: // from here on, the servers that were added in the chat are known
	case <-t.C:
		return nil // Run was never called
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s, err := m.lookupServer(id)
	if err != nil {
		return nil //nolint:nilerr // no server: no tool
	}
	if _, err = s.currentConn(ctx); err == nil || ctx.Err() != nil {
		return err
	}
	e := guard.AsError(err, id, name)
	e.Message = m.o.Redact(e.Message)
	return e
}

// Away reports whether a server is known but not connected. Its tools keep their names, and calls of them fail.
func (m *Manager) Away(id string) bool {
	s, err := m.lookupServer(id)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != Connected
}

// callPatience returns how long a call waits for a server in a given state; 0 means not at all.
func (s *server) callPatience(state State) time.Duration {
	switch state {
	case Connecting:
		return s.cfg.StartupTimeout
	case Connected: // its connection has ended, and its goroutine has not noticed yet
		return goneWait
	case Gone:
		return goneWait
	default:
		return 0
	}
}

// awayError returns the error for a call of a server that is away.
func (s *server) awayError(problem string) *guard.Error {
	text := "the server " + s.cfg.ID + " is not connected at the moment"
	if problem != "" {
		text += ": " + problem
	}
	return &guard.Error{
		Code: guard.Transient, Server: s.cfg.ID, Message: text,
		Suggestion: "The tool exists, but its server is away. Do without it, or tell the user; it may be back later.",
	}
}
