package mcp

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/zephbot/zephbot/tools"
)

const (
	maxBackoff   = 8 * time.Second  // between attempts at start (seed 001)
	breakerFirst = 30 * time.Second // pause once the circuit breaker is open, doubled up to breakerMost
	breakerMost  = 5 * time.Minute
)

// legacy is the newest protocol revision with a handshake. A server that does not work with the newest revision is
// tried again with this one.
const legacy = "2025-11-25"

// waitBackoff waits before the next attempt. It returns false when ctx ended.
func (s *server) waitBackoff(ctx context.Context, failures int) bool {
	t := time.NewTimer(s.m.o.backoffDelay(failures))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// backoffDelay returns the time before the next attempt after a number of failures in a row. It starts with the
// back-off of seed 001 and becomes a long pause once the circuit breaker is open.
func (o Options) backoffDelay(failures int) time.Duration {
	d := breakerMost
	if failures < o.ConnectAttempts {
		d = min(o.Backoff<<min(failures-1, 16), maxBackoff)
	} else if n := failures - o.ConnectAttempts; n < 4 {
		d = min(breakerFirst<<n, breakerMost)
	}
	if d <= 0 {
		d = maxBackoff
	}
	return d - rand.N(d/4+1) // 75 to 100 %, so that servers that failed together do not retry together
}

// attemptConnection opens the first connection and reads what the server offers. Some servers hang when they see the
// newest protocol; attempt retries those once with the revision before it.
func (s *server) attemptConnection(ctx context.Context) (*conn, error) {
	pin, patience := s.pinnedProtocol(), s.m.o.ListTimeout
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
		return nil, err // the first error is more informative
	}
	s.setPin(legacy)
	return again, nil
}

func (s *server) pinnedProtocol() string {
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
	c, err := s.openConn(ctx, tools.Origin{}, pin)
	if err != nil {
		return nil, err
	}
	if err := s.adoptConn(ctx, c, patience); err != nil {
		err = s.unreachableError(c.explainError(err))
		c.closeConn()
		return nil, err
	}
	return c, nil
}
