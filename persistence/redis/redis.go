// Package redis keeps counters: in an embedded Redis inside the process, or in a real one. Nothing in it is the only copy of anything: quotas are
// mirrored in the durable store and rebuilt from there.
package redis

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/rs/zerolog"
)

// Options choose the server.
type Options struct {
	// URL: "" = embedded; redis://, rediss:// and unix:// a server; redis+cluster:// a cluster (hosts separated by commas); redis+sentinel://hosts/master sentinels.
	URL string
	Log zerolog.Logger
}

// Store is a connection to Redis. Safe for concurrent use; Close ends the embedded server too.
type Store struct {
	once     sync.Once
	closed   error
	client   goredis.UniversalClient
	embedded *miniredis.Miniredis
	clock    *clock
	take     *goredis.Script
	back     *goredis.Script
	raise    *goredis.Script
}

// Open connects. An unreachable server is not an error here: Ping tells, and what needs it fails closed.
func Open(opts Options) (*Store, error) {
	s := &Store{take: goredis.NewScript(takeScript), back: goredis.NewScript(returnScript), raise: goredis.NewScript(restoreScript)}
	if opts.URL == "" {
		if err := s.embed(opts.Log); err != nil {
			return nil, err
		}
		return s, nil
	}
	options, err := parse(opts.URL)
	if err != nil {
		return nil, err
	}
	s.client = connect(options)
	return s, nil
}

func connect(options *goredis.UniversalOptions) goredis.UniversalClient {
	// Maintenance notifications are a feature of a hosted Redis; elsewhere they are errors on every connect.
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout = 3*time.Second, 2*time.Second, 2*time.Second
	options.ContextTimeoutEnabled, options.MaxRetries = true, 1
	return goredis.NewUniversalClient(options)
}

// embed starts a Redis in this process, on loopback and behind a random password: what runs in the shell tool can reach its port.
func (s *Store) embed(log zerolog.Logger) error {
	secret := make([]byte, 24)
	if _, err := rand.Read(secret); err != nil {
		return fmt.Errorf("embedded redis: %w", err)
	}
	server := miniredis.NewMiniRedis()
	server.RequireAuth(hex.EncodeToString(secret))
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		return fmt.Errorf("embedded redis: %w", err)
	}
	s.embedded = server
	s.client = connect(&goredis.UniversalOptions{Addrs: []string{server.Addr()}, Password: hex.EncodeToString(secret)})
	s.clock = startClock(server)
	log.Debug().Str("addr", server.Addr()).Msg("embedded redis started")
	return nil
}

// clock ages the keys of the embedded server, which does not do that by itself.
type clock struct {
	stop chan struct{}
	wg   sync.WaitGroup
}

const tick = time.Second

func startClock(server *miniredis.Miniredis) *clock {
	c := &clock{stop: make(chan struct{})}
	c.wg.Go(func() {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		last := time.Now()
		for {
			select {
			case <-c.stop:
				return
			case now := <-ticker.C:
				server.FastForward(now.Sub(last))
				last = now
			}
		}
	})
	return c
}

// Close ends the connection and the embedded server. Again it does nothing.
func (s *Store) Close() error {
	s.once.Do(func() {
		s.closed = s.client.Close()
		if s.clock != nil {
			close(s.clock.stop)
			s.clock.wg.Wait()
		}
		if s.embedded != nil {
			s.embedded.Close()
		}
	})
	return s.closed
}

// Ping says whether the server answers.
func (s *Store) Ping(ctx context.Context) error { return s.client.Ping(ctx).Err() }

// Embedded says whether the server runs in this process.
func (s *Store) Embedded() bool { return s.embedded != nil }

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
