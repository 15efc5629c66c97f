package mcp

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// slot holds the connection of one scope key. It is created before the connection, so that two calls do not open two.
type slot struct {
	ready chan struct{} // closed when the attempt is over
	conn  *conn         // nil when the attempt failed
	err   error
	// guarded by the server's lock
	users  int // calls that use it
	last   time.Time
	cancel context.CancelFunc // cancels the attempt
}

// rootOf returns a directory as a Root.
func rootOf(dir string) Root {
	return Root{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(), Name: filepath.Base(dir)}
}

// usableRoots returns the directories that the server may use through this connection.
func (c *conn) usableRoots() []Root {
	s := c.s
	if s.cfg.Trust == guard.Sandboxed {
		return nil
	}
	list := s.cfg.Roots
	if s.cfg.Scope != Shared && s.m.o.Roots != nil && c.origin.Session != "" {
		list = nil
		for _, dir := range s.m.o.Roots(c.origin) {
			list = append(list, rootOf(dir))
		}
	}
	return list
}

func (c *conn) addRoots(client *sdk.Client) {
	for _, r := range c.usableRoots() {
		client.AddRoots(&sdk.Root{URI: r.URI, Name: r.Name}) //nolint:staticcheck // for servers of older revisions
	}
}

// slotKey returns whose connection a call uses; "" = the one shared by all.
func (s *server) slotKey(origin tools.Origin) (string, *guard.Error) {
	key := ""
	switch s.cfg.Scope {
	case PerSession:
		key = origin.Session
	case PerCaller:
		key = origin.Caller
	default:
		return "", nil
	}
	if key == "" {
		return "", guard.Refused(s.cfg.ID, "", reason.New(reason.ServerScopeless, s.cfg.ID, string(s.cfg.Scope)))
	}
	return key, nil
}

// acquireConn returns the connection for a call. The caller calls release when the call is over. acquire waits a
// limited time for a server that is away.
func (s *server) acquireConn(ctx context.Context, origin tools.Origin) (c *conn, release func(), err error) {
	key, e := s.slotKey(origin)
	if e != nil {
		return nil, nil, e
	}
	main, err := s.currentConn(ctx)
	if err != nil {
		return nil, nil, err
	}
	if key == "" {
		return main, func() {}, nil
	}
	sl, evicted, e := s.reserveSlot(ctx, key, origin)
	if evicted != nil {
		evicted.closeConn()
	}
	if e != nil {
		return nil, nil, e
	}
	release = func() { s.releaseSlot(sl) }
	select {
	case <-sl.ready:
	case <-ctx.Done():
		release()
		return nil, nil, ctx.Err()
	}
	if sl.err != nil {
		release()
		return nil, nil, sl.err
	}
	return sl.conn, release, nil
}

// reserveSlot finds or creates the slot of a key and counts the caller as a user. When there are too many slots, it
// evicts the one that was unused for the longest time.
func (s *server) reserveSlot(ctx context.Context, key string,
	origin tools.Origin,
) (sl *slot, evicted *conn, e *guard.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, nil, &guard.Error{
			Code: guard.Transient, Server: s.cfg.ID,
			Message: "the server " + s.cfg.ID + " is being stopped",
		}
	}
	if sl = s.pool[key]; sl != nil && !sl.isDead() {
		sl.users++
		return sl, nil, nil
	}
	if sl != nil { // it is dead: its users will notice
		evicted = sl.conn
		delete(s.pool, key)
	}
	if len(s.pool) >= s.m.o.MaxConnections {
		oldest := ""
		for k, other := range s.pool {
			if other.users == 0 && (oldest == "" || other.last.Before(s.pool[oldest].last)) {
				oldest = k
			}
		}
		if oldest == "" {
			return nil, evicted, &guard.Error{
				Code: guard.RateLimited, Server: s.cfg.ID,
				Message: fmt.Sprintf("all %d connections to the server %s are in use; try again later", len(s.pool),
					s.cfg.ID),
			}
		}
		evicted = s.pool[oldest].conn
		delete(s.pool, oldest)
	}
	sl = &slot{ready: make(chan struct{}), users: 1, last: s.m.o.Now(), cancel: func() {}}
	s.pool[key] = sl
	// independent of this call: others may wait for it too
	s.filling.Go(func() { s.fillSlot(context.WithoutCancel(ctx), key, sl, origin) })
	return sl, evicted, nil
}

// isDead reports whether the connection is over. It returns false while the attempt is in progress.
func (sl *slot) isDead() bool {
	select {
	case <-sl.ready:
		return sl.conn == nil || !sl.conn.isUsable()
	default:
		return false
	}
}

func (s *server) releaseSlot(sl *slot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sl.users--
	sl.last = s.m.o.Now()
}

// fillSlot opens the connection of a slot and lists its tools, which must be the ones that were offered.
func (s *server) fillSlot(ctx context.Context, key string, sl *slot, origin tools.Origin) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	sl.cancel = cancel
	if s.closed {
		cancel()
	}
	s.mu.Unlock()
	c, err := s.openConn(ctx, origin, s.pinnedProtocol())
	if err == nil {
		var list []guard.Tool
		if list, err = c.listTools(ctx, s.cfg.Timeout); err == nil {
			c.prints = guard.Fingerprints(s.admitTools(list).Tools)
		} else {
			err = s.unreachableError(c.explainError(err))
			c.closeConn()
		}
	}
	s.mu.Lock()
	if err == nil && s.closed {
		err = &guard.Error{
			Code: guard.Transient, Server: s.cfg.ID,
			Message: "the server " + s.cfg.ID + " is being stopped",
		}
		defer c.closeConn()
	}
	if err != nil {
		sl.err = err
		if s.pool[key] == sl {
			delete(s.pool, key)
		}
	} else {
		sl.conn = c
	}
	close(sl.ready)
	s.mu.Unlock()
}

// checkSameTool checks that a tool on this connection is the one that was offered. A server may show
// different people different tools.
func (c *conn) checkSameTool(t guard.Tool) *guard.Error {
	if c.prints == nil {
		return nil // the offer was listed on this connection
	}
	switch print, ok := c.prints[t.Name]; {
	case !ok:
		return &guard.Error{
			Code: guard.NotFound, Server: c.s.cfg.ID, Tool: t.Name,
			Message: "the server does not have the tool " + t.Name + " for this person",
		}
	case print != t.Fingerprint:
		return guard.Refused(c.s.cfg.ID, t.Name, reason.New(reason.ServerToolOther, t.Name))
	}
	return nil
}

// sweepSlots closes connections that are dead or were unused for IdleTimeout.
func (s *server) sweepSlots() {
	now := s.m.o.Now()
	s.mu.Lock()
	var old []*conn
	for key, sl := range s.pool {
		select {
		case <-sl.ready:
		default:
			continue
		}
		if sl.users == 0 && (sl.isDead() || now.Sub(sl.last) >= s.m.o.IdleTimeout) {
			delete(s.pool, key)
			old = append(old, sl.conn)
		}
	}
	s.mu.Unlock()
	for _, c := range old {
		if c != nil {
			c.closeConn()
		}
	}
}

// closePool closes all connections of scopes for good, including those that are being opened.
func (s *server) closePool() {
	s.mu.Lock()
	s.closed = true
	pool := s.pool
	s.pool = map[string]*slot{}
	for _, sl := range pool {
		sl.cancel()
	}
	s.mu.Unlock()
	s.filling.Wait()
	for _, sl := range pool {
		if sl.conn != nil {
			sl.conn.closeConn()
		}
	}
}
