// Package redis keeps what may be lost: the counters of quotas and the result cache, on a Redis server or in an engine of its own inside the process.
// Nothing in it is the only copy of anything: quotas are mirrored in the durable store and rebuilt from there, and a cache can be empty.
package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/tools/cache"
)

// Options choose the server.
type Options struct {
	// URL: "" = embedded; redis://, rediss:// and unix:// a server; redis+cluster:// a cluster (hosts separated by commas); redis+sentinel://hosts/master sentinels.
	URL string
	Log zerolog.Logger
}

// engine keeps the counters and the cache. Every operation is atomic and takes one round trip at most; the tests hold both engines to the same answers.
type engine interface {
	quota.Counter
	io.Closer
	// Ping says whether the engine answers.
	Ping(ctx context.Context) error
	// Cache is the result cache.
	Cache() cache.Store
}

// Store is a connection to a server, or the engine in the process. Safe for concurrent use; Close ends the engine in the process too.
type Store struct {
	engine

	once   sync.Once
	closed error
}

// Open connects. An unreachable server is not an error here: Ping tells, and what needs it fails closed.
func Open(opts Options) (*Store, error) {
	if opts.URL == "" {
		opts.Log.Debug().Msg("counters and result cache are kept in the process")
		return &Store{engine: newMemory()}, nil
	}
	options, err := parse(opts.URL)
	if err != nil {
		return nil, err
	}
	return &Store{engine: newServer(connect(options))}, nil
}

func connect(options *goredis.UniversalOptions) goredis.UniversalClient {
	// Maintenance notifications are a feature of a hosted Redis; elsewhere they are errors on every connect.
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = 3*time.Second, 2*time.Second, 2*time.Second
	options.ContextTimeoutEnabled, options.MaxRetries = true, 1
	return goredis.NewUniversalClient(options)
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

// parse understands the URLs of Options. Errors never repeat the password.
func parse(raw string) (*goredis.UniversalOptions, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return nil, errors.New("redis.url is not a URL")
	}
	if u.Host == "" && u.Scheme != "unix" {
		return nil, fmt.Errorf("redis.url: scheme %q and no host: want something like redis://host:6379/0", u.Scheme)
	}
	scheme, mode, _ := strings.Cut(strings.ReplaceAll(u.Scheme, "-", "+"), "+")
	switch mode {
	case "":
		o, err := goredis.ParseURL(raw)
		if err != nil {
			return nil, fmt.Errorf("redis.url (scheme %q, host %q) is not understood: want redis://host:6379/0, rediss://… or unix:///path/to/socket", u.Scheme, u.Host)
		}
		return &goredis.UniversalOptions{
			Addrs: []string{o.Addr}, Username: o.Username, Password: o.Password, DB: o.DB, TLSConfig: o.TLSConfig,
			DialerRetries: o.DialerRetries,
		}, nil
	case "cluster", "sentinel":
		o := &goredis.UniversalOptions{Addrs: strings.Split(u.Host, ","), Username: u.User.Username(), IsClusterMode: mode == "cluster"}
		o.Password, _ = u.User.Password()
		if scheme == "rediss" {
			o.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if mode == "sentinel" {
			if o.MasterName = strings.Trim(u.Path, "/"); o.MasterName == "" {
				return nil, errors.New("redis.url: a sentinel URL names its master: redis+sentinel://host:26379,host2:26379/mymaster")
			}
		}
		return o, nil
	default:
		return nil, fmt.Errorf("redis.url: unknown scheme %q: want redis, rediss, unix, redis+cluster or redis+sentinel", u.Scheme)
	}
}
