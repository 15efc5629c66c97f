// Package redis keeps what may be lost: the counters of quotas and the result cache, on a Redis server or in an engine
// of its own inside the process. Nothing in it is the only copy of anything: quotas are mirrored in the durable store
// and rebuilt from there, and a cache can be empty. docs/redis.md says how a server is set up, and what happens to each
// feature while it is slow, away, flushed, failed over or read-only.
package redis

import (
	"context"
	"io"
	"sync"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/tools/cache"
)

// Options choose the server.
type Options struct {
	// URL: "" = embedded; redis://, rediss:// and unix:// a server; redis+cluster:// a cluster; redis+sentinel://…/name
	// the primary that sentinels name. rediss+cluster:// and rediss+sentinel:// are the same over TLS. See parse.
	URL string
	// CAFile has the certificates (PEM) that a server over TLS is checked with; "" = those of the system.
	CAFile string
	// CertFile and KeyFile have the certificate and key (PEM) that the server asks of its clients; "" = none. One
	// without the other is an error.
	CertFile, KeyFile string
	Log               zerolog.Logger
}

// engine keeps the counters and the cache. Every operation is atomic and takes one round trip at most; the tests hold
// both engines to the same answers.
type engine interface {
	quota.Counter
	io.Closer
	// Ping says whether the engine counts: it writes.
	Ping(ctx context.Context) error
	// Health is what the operations before it found.
	Health() Health
	// Cache is the result cache.
	Cache() cache.Store
}

// Store is a connection to a server, or the engine in the process. Safe for concurrent use; Close ends the engine in
// the process too.
type Store struct {
	engine

	once   sync.Once
	closed error
}

// Open connects when the first operation comes: an unreachable server is not an error here. Errors are about Options,
// and never repeat a password.
func Open(opts Options) (*Store, error) {
	if opts.URL == "" {
		opts.Log.Debug().Msg("counters and result cache are kept in the process")
		return &Store{engine: newMemory()}, nil
	}
	options, err := parse(opts)
	if err != nil {
		return nil, err
	}
	return &Store{engine: newServer(options, opts.Log)}, nil
}

// Check finds what Open would refuse, and connects nowhere.
func Check(opts Options) error {
	if opts.URL == "" {
		return nil
	}
	_, err := parse(opts)
	return err
}

// Close ends the connection, or the engine in the process. Again it does nothing.
func (s *Store) Close() error {
	s.once.Do(func() { s.closed = s.engine.Close() })
	return s.closed
}

// Embedded says whether the engine runs in this process, and forgets everything with it.
func (s *Store) Embedded() bool {
	_, ok := s.engine.(*memory)
	return ok
}

// Probe asks the server and gives the state it was found in. The engine in the process is always Fine. ctx bounds the
// question.
func (s *Store) Probe(ctx context.Context) Health {
	_ = s.Ping(ctx) // Health says it
	return s.Health()
}
