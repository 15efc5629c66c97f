package qdrant_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/persistence/vector/qdrant"
	"github.com/zephbot/zephbot/persistence/vector/qdrant/qdranttest"
)

const (
	collection = "zeph_mcp_tools"
	secret     = "hunter2-hunter2"
	patience   = time.Hour // with a server in the same process: a test that waits so long hangs
)

// connect opens a store on the server, which is closed with its test.
func connect(t *testing.T, server *qdranttest.Server, o qdrant.Options) *qdrant.Store {
	t.Helper()
	if o.Dial == nil {
		o.Dial = server.Dial
	}
	if o.URL == "" {
		o.URL = "http://127.0.0.1:6334"
	}
	if o.CallLimit == 0 {
		o.CallLimit = patience
	}
	o.Log = zerolog.Nop()
	store, err := qdrant.Open(o)
	check(t, err)
	t.Cleanup(func() { check(t, store.Close()) })
	return store
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func point(key string, vector ...float32) knn.Point {
	return knn.Point{Key: key, Hash: "hash of " + key, Vector: vector, Payload: map[string]string{"key": key, "description": "does " + key}}
}

func TestVectors(t *testing.T) {
	t.Parallel()
	storetest.Vectors(t, func(t *testing.T) knn.Index {
		return connect(t, qdranttest.Start(t, qdranttest.Options{}), qdrant.Options{}).Collection(collection)
	})
}

func TestOpenRefusesWhatIsNoAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                                  "is empty; want http://host:6334",
		"localhost:6334":                    "is not an address of Qdrant; want http://host:6334",
		"localhost":                         "is not an address of Qdrant",
		"grpc://localhost:6334":             "is not an address of Qdrant",
		"http:localhost":                    "is not an address of Qdrant",
		"http://":                           "is not an address of Qdrant",
		"http://:6334":                      "is not a host",
		"http://a b:6334":                   "is not an address of Qdrant",
		"http://h:port":                     "is not an address of Qdrant",
		"http://h:0":                        `port "0": want 1 to 65535`,
		"http://h:65536":                    `port "65536": want 1 to 65535`,
		"http://h/collections":              "has a path",
		"http://h?api-key=" + secret:        "has a query",
		"http://h?":                         "has a query",
		"http://h#" + secret:                "has a query or fragment",
		"http://user:" + secret + "@h":      "vector.api_key",
		"http://" + secret + "@h:6334":      "vector.api_key",
		"http://user:" + secret + "@h:port": "is not an address of Qdrant",
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			store, err := qdrant.Open(qdrant.Options{URL: url})
			if store != nil || err == nil || !strings.HasPrefix(err.Error(), "vector.url: ") || !strings.Contains(err.Error(), want) {
				t.Fatalf("got %v, %v; want vector.url and %q", store, err, want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("the error shows a secret: %v", err)
			}
		})
	}
	for _, key := range []string{secret + "\n", secret + " x", "schlüssel"} {
		_, err := qdrant.Open(qdrant.Options{URL: "http://h", APIKey: key})
		if err == nil || !strings.HasPrefix(err.Error(), "vector.api_key: ") || strings.Contains(err.Error(), key) {
			t.Errorf("key %q: %v", key, err)
		}
	}
}

// TestOpenDialsTheAddress checks which address is dialled; hosts are literal, so that there are no DNS queries.
func TestOpenDialsTheAddress(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"http://127.0.0.1":       "127.0.0.1:6334",
		"http://127.0.0.1/":      "127.0.0.1:6334",
		"https://127.0.0.1":      "127.0.0.1:6334",
		"http://127.0.0.1:7000":  "127.0.0.1:7000",
		"https://[::1]:443/":     "[::1]:443",
		"HTTP://[2001:db8::1]":   "[2001:db8::1]:6334",
		"http://192.0.2.7:65535": "192.0.2.7:65535",
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			dialled := make(chan string, 1)
			store := connect(t, nil, qdrant.Options{URL: url, Dial: func(_ context.Context, address string) (net.Conn, error) {
				select {
				case dialled <- address:
				default: // retried
				}
				return nil, errors.New("nobody is there")
			}})
			if err := store.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("ping: %v, want that it names %s", err, want)
			}
			if got := <-dialled; got != want {
				t.Errorf("dialled %s, want %s", got, want)
			}
		})
	}
}

func TestTheKeyIsSentAndNotShown(t *testing.T) {
	t.Parallel()
	server := qdranttest.Start(t, qdranttest.Options{APIKey: secret})
	check(t, connect(t, server, qdrant.Options{APIKey: secret}).Ping(t.Context()))
	for _, key := range []string{"", "wrong-" + secret} {
		store := connect(t, server, qdrant.Options{APIKey: key})
		_, err := store.Collection(collection).Hashes(t.Context())
		for _, err := range []error{err, store.Ping(t.Context())} {
			if status.Code(err) != codes.Unauthenticated || !strings.Contains(err.Error(), "check vector.api_key") || strings.Contains(err.Error(), secret) {
				t.Errorf("with the key %q: %v", key, err)
			}
		}
	}
}

func TestAKeyInPlainTextIsWarnedOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		url, key string
		want     bool
	}{
		{"http://qdrant.example", secret, true},
		{"http://192.0.2.1", secret, true},
		{"http://qdrant.example", "", false},
		{"https://qdrant.example", secret, false},
		{"http://localhost", secret, false},
		{"http://[::1]", secret, false},
		{"http://127.0.0.9", secret, false},
	} {
		var log bytes.Buffer
		store, err := qdrant.Open(qdrant.Options{URL: test.url, APIKey: test.key, Log: zerolog.New(&log)})
		check(t, err)
		check(t, store.Close())
		if got := strings.Contains(log.String(), "plain text"); got != test.want || strings.Contains(log.String(), secret) {
			t.Errorf("%s with the key %q: log %s", test.url, test.key, log.String())
		}
	}
}

// certificate returns a self-signed certificate for an address, and the roots that trust it.
func certificate(t *testing.T, ip string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "qdrant"}, IPAddresses: []net.IP{net.ParseIP(ip)},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(365 * 24 * time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(t, err)
	parsed, err := x509.ParseCertificate(der)
	check(t, err)
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}

func TestTLSByTheURL(t *testing.T) {
	t.Parallel()
	own, roots := certificate(t, "127.0.0.1")
	server := qdranttest.Start(t, qdranttest.Options{TLS: &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS12}})
	for _, test := range []struct {
		url   string
		roots *x509.CertPool
		want  codes.Code
	}{
		{"https://127.0.0.1", roots, codes.OK},
		{"https://127.0.0.1", x509.NewCertPool(), codes.Unavailable}, // not trusted
		{"https://127.0.0.2", roots, codes.Unavailable},              // another name
		{"http://127.0.0.1", roots, codes.Unavailable},               // plain text to a server with TLS
	} {
		store := connect(t, server, qdrant.Options{URL: test.url, TLS: &tls.Config{RootCAs: test.roots, MinVersion: tls.VersionTLS12}})
		if err := store.Ping(t.Context()); status.Code(err) != test.want {
			t.Errorf("%s: %v, want %v", test.url, err, test.want)
		}
	}
}

func TestAServerThatIsAwayIsAnErrorUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := qdranttest.Start(t, qdranttest.Options{})
		index := connect(t, server, qdrant.Options{}).Collection(collection)
		check(t, index.Upsert(t.Context(), []knn.Point{point("s:a", 1, 0)}))
		server.End()
		synctest.Wait()
		for what, err := range every(t.Context(), index) {
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "qdrant at 127.0.0.1:6334 cannot be reached") {
				t.Errorf("%s while the server is away: %v", what, err)
			}
		}
		server.Begin()
		<-time.After(time.Minute) // of the bubble: more than the longest pause between two tries
		hits, err := index.Search(t.Context(), []float32{1, 0}, 1)
		if err != nil || len(hits) != 1 || hits[0].Key != "s:a" {
			t.Errorf("when it is back: %v (%v)", hits, err)
		}
	})
}

// every performs one of each operation.
func every(ctx context.Context, index knn.Index) map[string]error {
	_, hashes := index.Hashes(ctx)
	_, search := index.Search(ctx, []float32{1, 0}, 1)
	return map[string]error{
		"hashes": hashes, "search": search, "upsert": index.Upsert(ctx, []knn.Point{point("s:b", 0, 1)}), "delete": index.Delete(ctx, []string{"s:b"}),
	}
}

func TestAServerThatDoesNotAnswerIsWaitedForThreeSeconds(t *testing.T) {
	for name, dial := range map[string]func(ctx context.Context, address string) (net.Conn, error){
		"it takes no connection": func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
		"it says nothing": func(context.Context, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			go func() {
				for buffer := make([]byte, 1024); ; {
					if _, err := theirs.Read(buffer); err != nil {
						return
					}
				}
			}()
			return ours, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, err := qdrant.Open(qdrant.Options{URL: "http://127.0.0.1:6333", Dial: dial, Log: zerolog.Nop()})
				check(t, err)
				defer func() {
					check(t, store.Close())
					synctest.Wait()
				}()
				began := time.Now() // of the bubble
				err = store.Ping(t.Context())
				if waited := time.Since(began); waited > 3*time.Second || err == nil {
					t.Errorf("after %v: %v", waited, err)
				}
				if !strings.Contains(err.Error(), "port 6333 is Qdrant's for REST; the one for gRPC is 6334") {
					t.Errorf("no hint at the port: %v", err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				began = time.Now()
				_, err = store.Collection(collection).Search(ctx, []float32{1}, 1)
				if waited := time.Since(began); waited > time.Second || err == nil {
					t.Errorf("with a context of a second, after %v: %v", waited, err)
				}
			})
		})
	}
}

func TestAContextThatHasEnded(t *testing.T) {
	t.Parallel()
	index := connect(t, qdranttest.Start(t, qdranttest.Options{}), qdrant.Options{}).Collection(collection)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range every(ctx, index) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
