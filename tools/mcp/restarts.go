package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
)

// restartsKey holds how often each server was restarted by a person, in whichever process: the others follow.
const restartsKey = "mcp/restarts"

// loadRestarts reads the numbers.
func (m *Manager) loadRestarts(ctx context.Context) (map[string]int, error) {
	text, err := m.o.Store.Load(ctx, restartsKey)
	if err != nil {
		return nil, fmt.Errorf("read which servers were restarted: %w", err)
	}
	list := map[string]int{}
	if text == "" {
		return list, nil
	}
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("read which servers were restarted: %w", err)
	}
	return list, nil
}

// storeRestart has other processes restart a server too.
func (m *Manager) storeRestart(ctx context.Context, id string) error {
	m.storing.Lock()
	defer m.storing.Unlock()
	list, err := m.loadRestarts(ctx)
	if err != nil {
		return err
	}
	list[id]++
	data, err := json.Marshal(list)
	if err != nil {
		return err
	}
	if err := m.o.Store.Save(ctx, restartsKey, string(data)); err != nil {
		return fmt.Errorf("store that server %s was restarted: %w", id, err)
	}
	if m.known != nil {
		m.known[id] = list[id]
	}
	return nil
}

// followRestarts restarts what was restarted elsewhere since it was asked last, and does not wait for the connections.
func (m *Manager) followRestarts(ctx context.Context) error {
	m.storing.Lock()
	defer m.storing.Unlock()
	list, err := m.loadRestarts(ctx)
	if err != nil {
		return err
	}
	before := m.known
	m.known = list
	if before == nil {
		return nil // a start is a restart of all
	}
	for id, n := range maps.All(list) {
		if before[id] == n {
			continue
		}
		done, err := m.reserveID(id)
		if err != nil {
			m.known[id] = before[id] // it is being changed here; the next time
			continue
		}
		if old, err := m.lookupServer(id); err == nil {
			_, err = m.renewServer(old)
			if err != nil {
				done()
				return err
			}
		}
		done()
	}
	return nil
}
