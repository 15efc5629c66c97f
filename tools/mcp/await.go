package mcp

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// goneWait is how long a call waits for a server that went away: long enough for one that is started again at once.
const goneWait = 5 * time.Second

// beginWait is how long a call waits for Run to begin, which follows within moments of the start of a program.
const beginWait = 30 * time.Second

// current is the connection for calls, or why there is none. It waits for a server that is being connected, within ctx
// and the time that a server has for it.
func (s *server) current(ctx context.Context) (*conn, error) {
	var limit <-chan time.Time
	for {
		s.mu.Lock()
		main, state, problem, moved := s.main, s.state, s.problem, s.moved
		s.mu.Unlock()
		if main != nil && state == Connected && !main.over() {
			return main, nil
		}
		patience := s.patience(state)
		if patience > 0 && limit == nil {
			t := time.NewTimer(patience)
			defer t.Stop()
			limit = t.C
		}
		if patience == 0 {
			return nil, s.absent(problem)
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-limit:
			return nil, s.absent(problem)
		}
	}
}

// Await waits for the server of a tool that is not registered, within ctx and the time that a server has to connect.
// The error says that it is away; nil = it is connected, or there is no such server: then there is no such tool.
func (m *Manager) Await(ctx context.Context, tool string) error {
	id, name, ok := guard.Split(tool)
	if !ok {
		return nil
	}
	t := time.NewTimer(beginWait)
	defer t.Stop()
	select {
	case <-m.began: // servers that were added in the chat are known from here on
	case <-t.C:
		return nil // nobody runs the manager
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s, err := m.lookup(id)
	if err != nil {
		return nil //nolint:nilerr // no server: no tool
	}
	if _, err = s.current(ctx); err == nil || ctx.Err() != nil {
		return err
	}
	e := guard.AsError(err, id, name)
	e.Message = m.o.Redact(e.Message)
	return e
}

// Away says whether a server is there and not connected: its tools keep their names, and calls of them fail.
func (m *Manager) Away(id string) bool {
	s, err := m.lookup(id)
	if err != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state != Connected
}

// patience is how long a call waits for a server in a state; 0 = not at all.
func (s *server) patience(state State) time.Duration {
	switch state {
	case Connecting:
		return s.cfg.StartupTimeout
	case Connected: // its connection has ended, and its goroutine is about to notice
		return goneWait
	case Gone:
		return goneWait
	default:
		return 0
	}
}

// absent is the failure of a call of a server that is away.
func (s *server) absent(problem string) *guard.Error {
	text := "the server " + s.cfg.ID + " is not connected at the moment"
	if problem != "" {
		text += ": " + problem
	}
	return &guard.Error{
		Code: guard.Transient, Server: s.cfg.ID, Message: text,
		Suggestion: "The tool exists, but its server is away. Do without it, or tell the user; it may be back later.",
	}
}
