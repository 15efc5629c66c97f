package web_test

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/web"
)

// pipes is a listener whose connections never leave the process, so that the fake clock of the test can stop.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.conns <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Whatever hangs, the call ends when its time is up. The clock is the bubble's.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	cert, pool := identity(t)
	hang := func(rw http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	tests := map[string]struct {
		handler http.HandlerFunc
		dial    func(context.Context, string, string) (net.Conn, error)
	}{
		"lookup": {},
		"dial":   {dial: func(ctx context.Context, _, _ string) (net.Conn, error) { <-ctx.Done(); return nil, ctx.Err() }},
		"handshake": {dial: func(context.Context, string, string) (net.Conn, error) {
			ours, _ := net.Pipe() // nobody reads at the other end
			return ours, nil
		}},
		"header": {handler: hang},
		"body": {handler: func(rw http.ResponseWriter, r *http.Request) { // a byte a second
			rw.Header().Set("Content-Type", "text/html")
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for {
				_, _ = rw.Write([]byte("x"))
				_ = http.NewResponseController(rw).Flush()
				select {
				case <-tick.C:
				case <-r.Context().Done():
					return
				}
			}
		}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				server := &http.Server{Handler: tt.handler, TLSConfig: &tls.Config{Certificates: []tls.Certificate{cert}}}
				var wg sync.WaitGroup
				wg.Go(func() { _ = server.ServeTLS(p, "", "") })
				o := web.Options{Dial: p.dial, Roots: pool, Resolver: &names{answers: map[string][][]string{"site.example.": {{publicAddr}}}}}
				if tt.dial != nil {
					o.Dial = tt.dial
				}
				if tt.handler == nil && tt.dial == nil {
					o.Resolver = silence{}
				}
				list, err := web.New(o)
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				res, err := list[0].Run(t.Context(), call(t, "fetch", map[string]any{"url": "https://site.example/"}))
				if err == nil {
					t.Fatalf("got %q", res.Text)
				}
				if e := failure(t, err); e.Category != tools.Timeout || !e.Retryable {
					t.Errorf("%+v", e)
				}
				if d := time.Since(start); d > 15*time.Second { // of the bubble's time
					t.Errorf("took %s", d)
				}
				_ = server.Close()
				wg.Wait()
			})
		})
	}
}

// silence is a resolver that never answers.
type silence struct{}

func (silence) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	return nil, &net.DNSError{Err: ctx.Err().Error(), IsTimeout: true}
}
