package redis_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/quota"
	"github.com/zephbot/zephbot/bot/quota/quotatest"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/persistence/redis/redistest"
	"github.com/zephbot/zephbot/tools/cache"
	"github.com/zephbot/zephbot/tools/cache/cachetest"
)

// authority signs certificates of a server and its clients.
type authority struct{ file, cert, key string }

func newAuthority(t *testing.T, dir string) authority {
	t.Helper()
	a := authority{filepath.Join(dir, "ca.pem"), filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	root := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "redis"}, NotBefore: root.NotBefore, NotAfter: root.NotAfter, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	rootKey, leafKey := newKey(t), newKey(t)
	for file, sign := range map[string]func() ([]byte, error){
		a.file: func() ([]byte, error) {
			return x509.CreateCertificate(rand.Reader, root, root, rootKey.Public(), rootKey)
		},
		a.cert: func() ([]byte, error) {
			return x509.CreateCertificate(rand.Reader, leaf, root, leafKey.Public(), rootKey)
		},
		a.key: func() ([]byte, error) { return x509.MarshalECPrivateKey(leafKey) },
	} {
		der, err := sign()
		if err != nil {
			t.Fatal(err)
		}
		kind := "CERTIFICATE"
		if file == a.key {
			kind = "EC PRIVATE KEY"
		}
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// openWith opens a store that is closed with the test.
func openWith(t *testing.T, opts redis.Options) *redis.Store {
	t.Helper()
	opts.Log = zerolog.Nop()
	s, err := redis.Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// works counts and caches once.
func works(t *testing.T, s *redis.Store) {
	t.Helper()
	if err := s.Ping(t.Context()); err != nil {
		t.Fatal(err)
	}
	counts, _, err := s.Take(t.Context(), t.Name(), []quota.Take{{Key: t.Name(), N: 2}}, time.Now().Add(time.Hour))
	if err != nil || counts[0] != 2 {
		t.Errorf("take: %v, %v", counts, err)
	}
	c := s.Cache()
	put(t, c, t.Name(), "k", "v", time.Hour)
	if got := cached(t, c, t.Name(), "k"); got != "v" {
		t.Errorf("cached %q", got)
	}
	if h := s.Health(); h.State != redis.Fine {
		t.Errorf("health: %+v", h)
	}
}

// TestTLS: a server over TLS is verified with a private authority, and may require a client certificate.
func TestTLS(t *testing.T) {
	t.Parallel()
	a, other := newAuthority(t, t.TempDir()), newAuthority(t, t.TempDir())
	p := redistest.Run(t, "--requirepass", "s3cret")
	secure := freePort(t)
	admin := redistest.Run(t, "--tls-port", strconv.Itoa(secure), "--tls-cert-file", a.cert, "--tls-key-file", a.key, "--tls-ca-cert-file", a.file, "--tls-auth-clients", "yes")
	url := fmt.Sprint("rediss://127.0.0.1:", secure)
	works(t, openWith(t, redis.Options{URL: url, CAFile: a.file, CertFile: a.cert, KeyFile: a.key}))
	for name, opts := range map[string]redis.Options{
		"authority of another":    {URL: url, CAFile: other.file, CertFile: a.cert, KeyFile: a.key},
		"authorities of the OS":   {URL: url, CertFile: a.cert, KeyFile: a.key},
		"no certificate of ours":  {URL: url, CAFile: a.file},
		"certificate of another":  {URL: url, CAFile: a.file, CertFile: other.cert, KeyFile: other.key},
		"name of another host":    {URL: fmt.Sprint("rediss://localhost:", secure), CAFile: a.file, CertFile: a.cert, KeyFile: a.key},
		"TLS to a server without": {URL: "rediss://:s3cret@" + p.Addr(), CAFile: a.file},
	} {
		if err := openWith(t, opts).Ping(t.Context()); err == nil {
			t.Errorf("%s: connected", name)
		}
	}
	admin.Do("CONFIG", "SET", "tls-auth-clients", "no")
	works(t, openWith(t, redis.Options{URL: url, CAFile: a.file}))
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port //nolint:forcetypeassert // it listens on tcp
}

// TestRefused: an operation without permission fails with an explanation, and works without a restart once it is
// granted.
func TestRefused(t *testing.T) {
	t.Parallel()
	p := redistest.Run(t)
	p.Do("ACL", "SETUSER", "zeph", "on", ">hunter2", "~*", "+@all", "-set")
	for _, url := range []string{"redis://zeph:wrong@" + p.Addr(), "redis://zeph:hunter2@" + p.Addr()} {
		s := open(t, url)
		if err := s.Ping(t.Context()); err == nil || s.Health().State != redis.Refused {
			t.Errorf("%v, %+v", err, s.Health())
		}
		if url == "redis://zeph:hunter2@"+p.Addr() {
			p.Do("ACL", "SETUSER", "zeph", "+set")
			if h := s.Probe(t.Context()); h.State != redis.Fine {
				t.Errorf("with the right: %+v", h)
			}
		}
	}
}

// TestSocket: a server on a socket, with a database.
func TestSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "zr") //nolint:usetesting // shorter than t.TempDir: the path of a socket is bounded
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	redistest.Run(t, "--unixsocket", socket, "--requirepass", "s3cret")
	works(t, open(t, "unix://:s3cret@"+socket+"?db=3"))
}

// TestCluster: both suites on three nodes that share the keys.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.RunCluster(t)
	url := redistest.ClusterURL(nodes)
	works(t, open(t, url))
	t.Run("many conversations", func(t *testing.T) { // their keys are on all nodes
		s := open(t, url)
		for n := range 40 {
			put(t, s.Cache(), fmt.Sprint("conversation {", n), "k", fmt.Sprint(n), time.Hour)
		}
		for n := range 40 {
			if got := cached(t, s.Cache(), fmt.Sprint("conversation {", n), "k"); got != fmt.Sprint(n) {
				t.Errorf("conversation %d: %q", n, got)
			}
		}
		for i, n := range nodes {
			if size, ok := n.Do("DBSIZE").(int64); !ok || size == 0 {
				t.Errorf("node %d has no key", i)
			}
		}
	})
	t.Run("counter", func(t *testing.T) {
		quotatest.Suite(t, func(t *testing.T) quota.Counter { return apart{open(t, url), t.Name()} })
	})
	t.Run("cache", func(t *testing.T) {
		cachetest.Suite(t, func(t *testing.T) cache.Store { return scoped{open(t, url).Cache(), t.Name()} })
	})
	t.Run("a node away", func(t *testing.T) {
		s := open(t, url)
		works(t, s)
		for _, n := range nodes {
			n.Kill()
		}
		if h := s.Probe(t.Context()); h.State == redis.Fine {
			t.Errorf("health without nodes: %+v", h)
		}
	})
}

// apart gives the checks of a suite separate counters in one database, because a cluster has no second one.
type apart struct {
	*redis.Store
	name string
}

func (a apart) takes(list []quota.Take) []quota.Take {
	out := make([]quota.Take, len(list))
	for i, t := range list {
		out[i] = quota.Take{Key: a.name + t.Key, N: t.N, Limit: t.Limit}
	}
	return out
}

// Take implements quota.Counter.
func (a apart) Take(ctx context.Context, id string, list []quota.Take, expire time.Time) ([]int64, int, error) {
	return a.Store.Take(ctx, a.name+id, a.takes(list), expire)
}

// Return implements quota.Counter.
func (a apart) Return(ctx context.Context, id string, list []quota.Take) error {
	return a.Store.Return(ctx, a.name+id, a.takes(list))
}

// Reserve implements quota.Counter.
func (a apart) Reserve(ctx context.Context, id string, list []quota.Take, hold quota.Hold, expire time.Time) (quota.Room, error) {
	return a.Store.Reserve(ctx, a.name+id, a.takes(list), hold, expire)
}

// Settle implements quota.Counter.
func (a apart) Settle(ctx context.Context, id, name string, list []quota.Take, expire time.Time) ([]int64, error) {
	return a.Store.Settle(ctx, a.name+id, a.name+name, a.takes(list), expire)
}

// Read implements quota.Counter.
func (a apart) Read(ctx context.Context, keys []string) ([]int64, error) {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = a.name + k
	}
	return a.Store.Read(ctx, out)
}

// Restore implements quota.Counter.
func (a apart) Restore(ctx context.Context, key string, n int64, expire time.Time) error {
	return a.Store.Restore(ctx, a.name+key, n, expire)
}

// scoped does the same for the cache.
type scoped struct {
	cache.Store
	name string
}

// Get implements cache.Store.
func (s scoped) Get(ctx context.Context, scope, key string) (cache.Entry, error) {
	return s.Store.Get(ctx, s.name+scope, key)
}

// Set implements cache.Store.
func (s scoped) Set(ctx context.Context, scope, key string, e cache.Entry, ttl time.Duration) error {
	return s.Store.Set(ctx, s.name+scope, key, e, ttl)
}

// Drop implements cache.Store.
func (s scoped) Drop(ctx context.Context, scope string) error { return s.Store.Drop(ctx, s.name+scope) }
