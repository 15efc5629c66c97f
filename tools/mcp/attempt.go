package mcp

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/zephbot/zephbot/tools"
)

const (
	maxBackoff   = 8 * time.Second  // between attempts at start (seed 001)
	breakerFirst = 30 * time.Second // pause once the circuit is open, doubled up to breakerMost
	breakerMost  = 5 * time.Minute
)

// legacy is the newest protocol revision with a handshake: what a server is tried with that does not get along with the
// newest one.
const legacy = "2025-11-25"

// pause waits before the next attempt; false when ctx ended.
func (s *server) pause(ctx context.Context, failures int) bool {
	t := time.NewTimer(s.m.o.delay(failures))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// delay is the time before the next attempt after so many failures in a row: the back-off of seed 001 at first, long
// pauses once the circuit is open.
func (o Options) delay(failures int) time.Duration {
	d := breakerMost
	if failures < o.ConnectAttempts {
		d = min(o.Backoff<<min(failures-1, 16), maxBackoff)
	} else if n := failures - o.ConnectAttempts; n < 4 {
		d = min(breakerFirst<<n, breakerMost)
	}
	if d <= 0 {
		d = maxBackoff
	}
	return d - rand.N(d/4+1) // 75 to 100 %, so that servers that fell together do not come back together
}

// attempt opens the first connection and takes in what the server offers. Some servers do not get along with the newest
// protocol and hang: they are tried once more with the revision before it.
func (s *server) attempt(ctx context.Context) (*conn, error) {
	pin, patience := s.pinned(), s.m.o.ListTimeout
	if pin != "" || s.cfg.Protocol != "" {
		patience = s.cfg.Timeout
	}
	c, err := s.tryPinned(ctx, pin, patience)
	if err == nil || pin != "" || s.cfg.Protocol != "" || !isTimeout(err) || ctx.Err() != nil {
		if err != nil {
			s.setPin("")
		}
		return c, err
	}
	s.log.Info().Str("protocol", legacy).Msg("the mcp server does not answer; trying an older protocol")
	again, err2 := s.tryPinned(ctx, legacy, s.cfg.Timeout)
	if err2 != nil {
		return nil, err // the first error says more
	}
	s.setPin(legacy)
	return again, nil
}

func (s *server) pinned() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pin
}

func (s *server) setPin(pin string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pin = pin
}

func (s *server) tryPinned(ctx context.Context, pin string, patience time.Duration) (*conn, error) {
	c, err := s.open(ctx, tools.Origin{}, pin)
	if err != nil {
		return nil, err
	}
	if err := s.take(ctx, c, patience); err != nil {
		err = s.unreachable(c.explain(err))
		c.close()
		return nil, err
	}
	return c, nil
}
