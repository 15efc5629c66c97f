package web_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/web"
)

const publicAddr = "93.184.216.34"

// identity returns a certificate for the hosts of the tests, and the pool that trusts it. It is valid at any time, also
// in the year 2000 of synctest.
func identity(t testing.TB) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"site.example", "other.example", "sub.site.example"},
		IPAddresses: []net.IP{net.ParseIP(publicAddr), net.ParseIP("2606:4700:4700::1111")},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// names is a resolver that answers from a table; a list of several answers is given one after the other, the last one
// for ever.
type names struct {
	mu      sync.Mutex
	answers map[string][][]string
	asked   []string
	err     error
}

func (n *names) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked = append(n.asked, network+" "+host)
	if n.err != nil {
		return nil, n.err
	}
	list := n.answers[host]
	if len(list) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: host, Server: "10.9.8.7:53", IsNotFound: true}
	}
	if len(list) > 1 {
		n.answers[host] = list[1:]
	}
	var addrs []netip.Addr
	for _, a := range list[0] {
		addrs = append(addrs, netip.MustParseAddr(a))
	}
	return addrs, nil
}

func (n *names) lookups() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.asked)
}

// world is the web with a single server in it, which answers for every public address.
type world struct {
	t      testing.TB
	names  *names
	tools  map[string]tools.Tool
	mu     sync.Mutex
	dialed []string
	server *httptest.Server
}

func newWorld(t testing.TB, handler http.HandlerFunc, change func(*web.Options)) *world {
	t.Helper()
	cert, pool := identity(t)
	w := &world{t: t, tools: map[string]tools.Tool{}, names: &names{answers: map[string][][]string{
		"site.example.": {{publicAddr}}, "other.example.": {{"2606:4700:4700::1111"}}, "sub.site.example.": {{publicAddr}},
	}}}
	w.server = httptest.NewUnstartedServer(handler)
	w.server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	w.server.EnableHTTP2 = true
	// failed handshakes are what some tests are about
	w.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	w.server.StartTLS()
	t.Cleanup(w.server.Close)
	o := web.Options{
		Timeout: time.Hour, Resolver: w.names, Roots: pool, Dial: w.dial,
		LogRequests: true, LogBlocked: true, LogBytes: true,
	}
	if change != nil {
		change(&o)
	}
	list, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range list {
		w.tools[tool.Definition.Name] = tool
	}
	return w
}

func (w *world) dial(ctx context.Context, network, address string) (net.Conn, error) {
	w.mu.Lock()
	w.dialed = append(w.dialed, address)
	w.mu.Unlock()
	return (&net.Dialer{}).DialContext(ctx, network, w.server.Listener.Addr().String())
}

func (w *world) dials() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dialed)
}

func call(t testing.TB, tool string, args map[string]any) *tools.Call {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return &tools.Call{ID: "1", Tool: tool, Args: raw, Trail: &tools.Trail{}}
}

func (w *world) run(tool string, args map[string]any) (*tools.Result, *tools.Call, error) {
	w.t.Helper()
	c := call(w.t, tool, args)
	res, err := w.tools[tool].Run(w.t.Context(), c)
	return res, c, err
}

func (w *world) fetch(url string) (*tools.Result, *tools.Call, error) {
	w.t.Helper()
	return w.run("fetch", map[string]any{"url": url})
}

// must fetches a page that can be read.
func (w *world) must(url string) *tools.Result {
	w.t.Helper()
	res, _, err := w.fetch(url)
	if err != nil {
		w.t.Fatalf("fetch %s: %v", url, err)
	}
	return res
}

func failure(t testing.TB, err error) *tools.Error {
	t.Helper()
	var e *tools.Error
	if !errors.As(err, &e) {
		t.Fatalf("got %v, want a *tools.Error", err)
	}
	return e
}

// sends answers every request with a body of a type.
func sends(contentType, body string) http.HandlerFunc {
	return func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", contentType)
		_, _ = rw.Write([]byte(body))
	}
}
