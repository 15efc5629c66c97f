// Package redis stores data that may be lost: the counters of quotas and the result cache, on a Redis server or in an
// in-process engine. Nothing in it is the only copy: quotas are also in the durable store and rebuilt from there, and a
// cache can be empty. docs/redis.md describes how to set up a server, and what happens to each feature while it is
// slow, down, flushed, failed over or read-only.
package redis

import (
	"context"
	"io"
	"sync"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/tools/cache"
)

// Options select the server.
type Options struct {
	// URL: "" = in-process; redis://, rediss:// and unix:// = a server; redis+cluster:// = a cluster;
	// redis+sentinel://…/name = the primary named by sentinels. rediss+cluster:// and rediss+sentinel:// are the same
	// over TLS. See parse.
	URL string
	// CAFile contains the certificates (PEM) that verify a server over TLS; "" = those of the system.
	CAFile string
	// CertFile and KeyFile contain the client certificate and key (PEM); "" = none. One without the other is an error.
	CertFile, KeyFile string
	Log               zerolog.Logger
}

// engine stores the counters and the cache. Every operation is atomic and takes one round trip at most. The tests
// require equal behaviour of both engines.
type engine interface {
	quota.Counter
	io.Closer
	// Ping checks with a write whether the engine can count.
	Ping(ctx context.Context) error
	// Health returns the result of earlier operations.
	Health() Health
	// Cache returns the result cache.
	Cache() cache.Store
}

// Store is a connection to a server, or the in-process engine, which Close ends too. Safe for concurrent use.
type Store struct {
	engine

	once   sync.Once
	closed error
}

// Open connects at the first operation: an unreachable server is not an error here. Errors are about Options and never
// contain a password.
func Open(opts Options) (*Store, error) {
	if opts.URL == "" {
		opts.Log.Debug().Msg("counters and result cache are kept in the process")
		return &Store{engine: newMemory()}, nil
	}
	options, err := parseURLs(opts)
	if err != nil {
		return nil, err
	}
	return &Store{engine: newServer(options, opts.Log)}, nil
}

// Check returns the error that Open would return, without connecting.
func Check(opts Options) error {
	if opts.URL == "" {
		return nil
	}
	_, err := parseURLs(opts)
	return err
}

// Close ends the connection, or the in-process engine. Further calls do nothing.
func (s *Store) Close() error {
	s.once.Do(func() { s.closed = s.engine.Close() })
	return s.closed
}

// Embedded reports whether the engine runs in this process, and loses everything when it ends.
func (s *Store) Embedded() bool {
	_, ok := s.engine.(*memory)
	return ok
}

// Calls counts the operations on the server; the in-process engine has none.
func (s *Store) Calls() Calls {
	if on, ok := s.engine.(interface{ Calls() Calls }); ok {
		return on.Calls()
	}
	return Calls{}
}

// Probe calls the server and returns its state. The in-process engine is always Fine. ctx limits the call.
func (s *Store) Probe(ctx context.Context) Health {
	_ = s.Ping(ctx) // the error is reflected in Health
	return s.Health()
}
