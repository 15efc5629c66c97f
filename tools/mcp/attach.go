package mcp

import (
	"context"
	"errors"
	"fmt"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// ErrTaken means that there is a server of that id already.
var ErrTaken = errors.New("the id of the server is taken")

// Attach connects a server that belongs to something with an end, such as the session of an editor, until Detach. It
// tries once and drops a server that it cannot reach. Such a server is not stored, does not count as added in the chat,
// and is checked like a configured one. The error is ErrTaken if there is a
// server of its id.
func (m *Manager) Attach(ctx context.Context, cfg Server) (Status, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Status{}, &guard.Error{Code: guard.InvalidInput, Server: cfg.ID, Message: err.Error()}
	}
	done, err := m.reserveID(cfg.ID)
	if err != nil {
		return Status{}, err
	}
	defer done()
	s := newServer(m, cfg, false)
	s.once = true
	if err := m.admitServer(s); err != nil {
		return Status{}, err
	}
	if err := s.firstAttempt(ctx); err != nil {
		m.dropServer(s)
		return Status{}, err
	}
	return s.currentStatus(), nil
}

// Detach ends a server that was attached, and forgets what was accepted of it.
func (m *Manager) Detach(ctx context.Context, id string) error {
	done, err := m.reserveID(id)
	if err != nil {
		return err
	}
	defer done()
	s, err := m.lookupServer(id)
	if err != nil {
		return err
	}
	m.dropServer(s)
	if err := m.o.Store.Save(ctx, s.storeKey(), ""); err != nil {
		return fmt.Errorf("forget the tools of server %s: %w", id, err)
	}
	return nil
}
