package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"sync"
)

// dynamicKey is the store key of the servers that were added in the chat.
const dynamicKey = "mcp/servers"

// memory is the Store of a manager that was given none. It lasts as long as the manager.
type memory struct {
	mu     sync.Mutex
	values map[string]string
}

// Load implements Store.
func (m *memory) Load(_ context.Context, key string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

// Save implements Store.
func (m *memory) Save(_ context.Context, key, value string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil {
		m.values = map[string]string{}
	}
	m.values[key] = value
	return nil
}

// loadDynamic reads the servers that were added. An entry that is no longer valid is logged and left out.
func (m *Manager) loadDynamic(ctx context.Context) (map[string]Server, error) {
	text, err := m.o.Store.Load(ctx, dynamicKey)
	if err != nil {
		return nil, err
	}
	list := map[string]Server{}
	if text == "" {
		return list, nil
	}
	raw := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		return nil, fmt.Errorf("read the stored servers: %w", err)
	}
	for id, entry := range raw {
		var cfg Server
		err := json.Unmarshal(entry, &cfg)
		if err == nil && cfg.ID != id {
			err = errors.New("the id does not fit its entry")
		}
		if err == nil {
			cfg, err = cfg.withDefaults()
		}
		if err != nil {
			m.o.Log.Error().Err(err).Str("server", cutText(id, 80)).Msg("a stored server cannot be used")
			continue
		}
		list[id] = cfg
	}
	return list, nil
}

// storeDynamic stores a server that was added.
func (m *Manager) storeDynamic(ctx context.Context, cfg Server) error {
	return m.rewriteDynamic(ctx, func(list map[string]Server) { list[cfg.ID] = cfg })
}

// deleteDynamic deletes a server from the store.
func (m *Manager) deleteDynamic(ctx context.Context, id string) error {
	return m.rewriteDynamic(ctx, func(list map[string]Server) { delete(list, id) })
}

func (m *Manager) rewriteDynamic(ctx context.Context, change func(map[string]Server)) error {
	m.storing.Lock()
	defer m.storing.Unlock()
	list, err := m.loadDynamic(ctx)
	if err != nil {
		return err
	}
	change(list)
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return m.o.Store.Save(ctx, dynamicKey, string(data))
}

// Sync brings the dynamic servers in line with the store: another process may have added, removed or
// restarted some. Run does it at its start. It does not wait for connections of servers that are new.
func (m *Manager) Sync(ctx context.Context) error {
	want, err := m.loadDynamic(ctx)
	if err != nil {
		return err
	}
	for _, cfg := range want {
		if err := m.startStored(cfg); err != nil {
			return err
		}
	}
	for _, s := range m.sortedServers() {
		if _, ok := want[s.cfg.ID]; s.dynamic && !ok {
			m.dropUnstored(ctx, s)
		} else if st := s.currentStatus(); len(st.Withdrawn) > 0 || len(st.Fresh) > 0 || st.Held {
			if err := s.followAccepted(ctx); err != nil {
				return err
			}
		}
	}
	return m.followRestarts(ctx)
}

// followAccepted lists a server again when what was accepted of it has changed since it was asked last, in whichever
// process.
func (s *server) followAccepted(ctx context.Context) error {
	text, err := s.m.o.Store.Load(ctx, s.storeKey())
	if err != nil {
		return fmt.Errorf("load the accepted tools of server %s: %w", s.cfg.ID, err)
	}
	s.mu.Lock()
	changed := text != s.followed
	s.followed = text
	s.mu.Unlock()
	if changed {
		s.requestRelist()
	}
	return nil
}

// startStored starts a stored server that is missing here, and replaces one that has changed.
func (m *Manager) startStored(cfg Server) error {
	done, err := m.reserveID(cfg.ID)
	if errors.Is(err, ErrNotRunning) {
		return err
	}
	if err != nil {
		return nil //nolint:nilerr // it is being changed here, which is newer than what was stored
	}
	defer done()
	old, err := m.lookupServer(cfg.ID)
	if err == nil && (!old.dynamic || reflect.DeepEqual(old.cfg, cfg)) {
		return nil
	}
	if err == nil {
		m.dropServer(old) // it was removed and added again elsewhere
	}
	if err := m.admitServer(newServer(m, cfg, true)); err != nil {
		m.o.Log.Error().Err(err).Str("server", cfg.ID).Msg("a stored server cannot be started")
	}
	return nil
}

// dropUnstored drops a server that is no longer stored, unless it was added here after the store was read.
func (m *Manager) dropUnstored(ctx context.Context, s *server) {
	done, err := m.reserveID(s.cfg.ID)
	if err != nil {
		return
	}
	defer done()
	if now, err := m.loadDynamic(ctx); err == nil {
		if _, ok := now[s.cfg.ID]; !ok {
			m.dropServer(s)
		}
	}
}
