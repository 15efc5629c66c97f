// Package mcp offers the tools of MCP servers. It starts the servers, restarts those that die, lists and calls their
// tools as if they were our own, and answers their questions. Package guard decides what is let in;
// package content decides what a result looks like.
package mcp

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Manager owns all connections to servers. Its methods are safe for concurrent use.
type Manager struct {
	o       Options
	notices *notices
	asking  chan struct{} // one slot per question that waits for a person

	mu      sync.Mutex
	servers map[string]*server
	busy    map[string]bool // ids that are being added, removed or restarted
	order   []string        // as configured, then as added
	began   chan struct{}   // closed when Run has started the servers
	ctx     context.Context //nolint:containedctx // set by Run, for the goroutines of servers; else nil
	wg      sync.WaitGroup  // one per server

	storing sync.Mutex     // one change of the store at a time
	known   map[string]int // restarts that this process has followed; guarded by storing; nil = none were read
	calls   atomic.Uint64  // numbers them
}

// ErrNotRunning is returned by everything that needs Run.
var ErrNotRunning = errors.New("the MCP manager does not run")

// New checks the options and returns a manager. It starts nothing.
func New(o Options) (*Manager, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	m := &Manager{
		o: o, servers: map[string]*server{}, busy: map[string]bool{}, notices: newNotices(o.Notify, o.Log),
		began:  make(chan struct{}),
		asking: make(chan struct{}, max(o.ElicitationQueue, 0)),
	}
	for _, cfg := range o.Servers {
		cfg, err := cfg.withDefaults()
		if err != nil {
			return nil, err
		}
		if _, ok := m.servers[cfg.ID]; ok {
			return nil, fmt.Errorf("server %s stands twice in the configuration; every id may be used once", cfg.ID)
		}
		m.servers[cfg.ID] = newServer(m, cfg, false)
		m.order = append(m.order, cfg.ID)
	}
	return m, nil
}

// Run starts the configured servers and those that were added earlier, and keeps them alive until ctx ends. It returns
// nil once every connection is closed and every process has ended, which takes at most a few seconds. It may be called
// once.
func (m *Manager) Run(ctx context.Context) error {
	stop := m.notices.startDelivery()
	defer stop()
	m.mu.Lock()
	m.ctx = ctx
	for _, s := range m.servers {
		m.startServer(s)
	}
	m.mu.Unlock()
	if err := m.Sync(ctx); err != nil && ctx.Err() == nil {
		m.o.Log.Error().Err(err).Msg("servers that were added in the chat could not be loaded")
	}
	close(m.began)
	<-ctx.Done()
	m.mu.Lock()
	m.ctx = nil // nothing may be started after this
	m.mu.Unlock()
	m.wg.Wait()
	return nil
}

// startServer starts the goroutine of a server. The caller holds the lock, and Run has begun.
func (m *Manager) startServer(s *server) {
	ctx, cancel := context.WithCancel(m.ctx)
	s.cancel = cancel
	m.wg.Go(func() { s.runServer(ctx) })
}

// reserveID locks an id while its server is added, removed or restarted. The returned function releases it.
func (m *Manager) reserveID(id string) (func(), error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx == nil {
		return nil, ErrNotRunning
	}
	if m.busy[id] {
		return nil, reason.Err(reason.ServerBusy, id)
	}
	m.busy[id] = true
	return func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		delete(m.busy, id)
	}, nil
}

func (m *Manager) lookupServer(id string) (*server, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s, ok := m.servers[id]; ok {
		return s, nil
	}
	return nil, m.unknownServer(id)
}

func (m *Manager) unknownServer(id string) *guard.Error {
	known := slices.Sorted(slices.Values(m.order))
	text := "no servers are connected"
	if len(known) > 0 {
		text = "there are " + strings.Join(known, ", ")
	}
	return &guard.Error{
		Code: guard.NotFound, Server: id,
		Message: fmt.Sprintf("there is no server %q; %s", cutText(id, 80), text),
	}
}

// Add connects a server that is not configured. It tries once and drops a server that it cannot reach. A server that
// was added survives a restart.
func (m *Manager) Add(ctx context.Context, cfg Server) (Status, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Status{}, &guard.Error{Code: guard.InvalidInput, Server: cfg.ID, Message: err.Error()}
	}
	done, err := m.reserveID(cfg.ID)
	if err != nil {
		return Status{}, err
	}
	defer done()
	s := newServer(m, cfg, true)
	s.once = true
	if err := m.admitServer(s); err != nil {
		return Status{}, err
	}
	if err := s.firstAttempt(ctx); err != nil {
		m.dropServer(s)
		return Status{}, err
	}
	if err := m.storeDynamic(ctx, cfg); err != nil {
		m.dropServer(s)
		return Status{}, fmt.Errorf("store server %s: %w", cfg.ID, err)
	}
	return s.currentStatus(), nil
}

// Check returns the error with which Add would refuse a server, as far as that is known without connecting. Callers use
// it before they ask a person about the server.
func (m *Manager) Check(cfg Server) error {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return &guard.Error{Code: guard.InvalidInput, Server: cfg.ID, Message: err.Error()}
	}
	if cfg.URL != "" {
		if _, err := netrule.CheckURL(cfg.URL, netrule.Options{
			AllowHTTP:    true,
			AllowPrivate: cfg.Trust == guard.Trusted,
		}); err != nil {
			return blockedURL(cfg.ID, err)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.checkRoom(cfg.ID)
}

// checkRoom returns an error if a dynamic server cannot be added under an id. The caller holds the lock.
func (m *Manager) checkRoom(id string) error {
	if err := m.checkUnused(id); err != nil {
		return err
	}
	dynamic := 0
	for _, other := range m.servers {
		if other.dynamic {
			dynamic++
		}
	}
	if limit := max(m.o.MaxDynamicServers, 0); dynamic >= limit {
		return guard.Refused(id, "", reason.New(reason.ServersFull, strconv.Itoa(dynamic), strconv.Itoa(limit)))
	}
	return nil
}

// checkUnused returns an error if there is a server of this id. The caller holds the lock.
func (m *Manager) checkUnused(id string) error {
	if _, ok := m.servers[id]; ok {
		return &guard.Error{
			Code: guard.InvalidInput, Server: id,
			Message: "there is a server " + id + " already; remove it first or take another id", Err: ErrTaken,
		}
	}
	return nil
}

// admitServer adds a server to the list and starts it.
func (m *Manager) admitServer(s *server) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx == nil {
		return ErrNotRunning
	}
	id, check := s.cfg.ID, m.checkUnused
	if s.dynamic {
		check = m.checkRoom
	}
	if err := check(id); err != nil {
		return err
	}
	m.servers[id] = s
	m.order = append(m.order, id)
	m.startServer(s)
	return nil
}

// dropServer stops a server, waits until it has ended and removes it from the list.
func (m *Manager) dropServer(s *server) {
	s.cancel()
	<-s.done
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.servers[s.cfg.ID] == s {
		delete(m.servers, s.cfg.ID)
		m.order = slices.DeleteFunc(m.order, func(id string) bool { return id == s.cfg.ID })
	}
}

// Remove disconnects a server and returns how many tools it had. A configured server is back after a restart of the
// program.
func (m *Manager) Remove(ctx context.Context, id string) (int, error) {
	done, err := m.reserveID(id)
	if err != nil {
		return 0, err
	}
	defer done()
	s, err := m.lookupServer(id)
	if err != nil {
		return 0, err
	}
	if s.dynamic {
		if err := m.deleteDynamic(ctx, id); err != nil {
			return 0, fmt.Errorf("forget server %s: %w", id, err)
		}
		if err := m.o.Store.Save(ctx, s.storeKey(), ""); err != nil { // another server may use this id later
			return 0, fmt.Errorf("forget the tools of server %s: %w", id, err)
		}
	}
	n := len(s.currentStatus().Tools)
	m.dropServer(s)
	return n, nil
}

// Restart closes a server's connections, resets its failures and connects again. It waits for the first attempt and
// returns its error.
func (m *Manager) Restart(ctx context.Context, id string) (Status, error) {
	done, err := m.reserveID(id)
	if err != nil {
		return Status{}, err
	}
	defer done()
	old, err := m.lookupServer(id)
	if err != nil {
		return Status{}, err
	}
	fresh, err := m.renewServer(old)
	if err != nil {
		return Status{}, err
	}
	if err := m.storeRestart(ctx, id); err != nil {
		m.o.Log.Warn().Err(err).Str("server", id).Msg("other processes keep their connection")
	}
	err = fresh.firstAttempt(ctx)
	return fresh.currentStatus(), err
}

// renewServer puts a new start of a server in the place of the old one. The id is reserved.
func (m *Manager) renewServer(old *server) (*server, error) {
	old.cancel()
	<-old.done
	fresh := newServer(m, old.cfg, old.dynamic)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ctx == nil {
		return nil, ErrNotRunning
	}
	m.servers[old.cfg.ID] = fresh
	m.startServer(fresh)
	return fresh, nil
}

// Statuses describes all servers, sorted by id.
func (m *Manager) Statuses() []Status {
	list := make([]Status, 0, len(m.sortedServers()))
	for _, s := range m.sortedServers() {
		list = append(list, s.currentStatus())
	}
	return list
}

// sortedServers returns the servers sorted by id.
func (m *Manager) sortedServers() []*server {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]*server, 0, len(m.servers))
	for _, s := range m.servers {
		list = append(list, s)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].cfg.ID < list[j].cfg.ID })
	return list
}

// Loaded waits until the servers that were added earlier are known, which a start reads from its store. The error is
// that of ctx.
func (m *Manager) Loaded(ctx context.Context) error {
	select {
	case <-m.began:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ready waits until Run has begun and every server has tried to connect once. It is for commands that print the result;
// the start of the service does not wait.
func (m *Manager) Ready(ctx context.Context) error {
	if err := m.Loaded(ctx); err != nil {
		return err
	}
	for _, s := range m.sortedServers() {
		select {
		case <-s.tried:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
