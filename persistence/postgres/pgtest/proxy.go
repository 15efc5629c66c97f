//go:build unix

package pgtest

import (
	"context"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Proxy sits between clients and a Cluster, on a port of the loopback interface. It counts round trips, and breaks
// connections on demand. Safe for concurrent use.
type Proxy struct {
	cluster  *Cluster
	listener net.Listener
	trips    atomic.Int64
	working  sync.WaitGroup

	mu    sync.Mutex
	away  bool                // connections are refused
	when  func([]byte) Broken // nil = never
	hear  func(conn int, sent []byte)
	links int           // number of connections so far
	far   time.Duration // additional time of each round trip
	conns map[net.Conn]bool
}

// Broken says how a connection breaks when a client sends something.
type Broken int

// The ways of breaking. Before: the server never sees the data. After: the server processes it, but its answer is lost.
const (
	Whole Broken = iota
	Before
	After
)

// NewProxy starts a proxy that ends with the test.
func NewProxy(tb testing.TB, cluster *Cluster) *Proxy {
	tb.Helper()
	listener, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	p := &Proxy{cluster: cluster, listener: listener, conns: map[net.Conn]bool{}}
	ctx, cancel := context.WithCancel(context.WithoutCancel(tb.Context()))
	p.working.Go(func() { p.accept(ctx) })
	tb.Cleanup(func() {
		_ = listener.Close()
		cancel()
		p.Cut()
		p.working.Wait()
	})
	return p
}

// URL returns the URL of a database behind the proxy.
func (p *Proxy) URL(database string) string { return address("", p.listener.Addr().String(), database) }

// Trips returns how often a client has sent something and then waited for an answer.
func (p *Proxy) Trips() int64 { return p.trips.Load() }

// Cut closes all current connections.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

// Away refuses connections and closes the current ones, or, with false, accepts connections again.
func (p *Proxy) Away(away bool) {
	p.mu.Lock()
	p.away = away
	p.mu.Unlock()
	if away {
		p.Cut()
	}
}

// Break calls when for each piece that a client sends, to decide whether the connection breaks there; nil = never
// again.
func (p *Proxy) Break(when func(sent []byte) Broken) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.when = when
}

// Hear calls hear for everything that clients send from now on, with the number of their connection, one piece after
// the other. It must not retain a piece.
func (p *Proxy) Hear(hear func(conn int, sent []byte)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hear = hear
}

// heard reports a piece, and numbers a connection that has no number yet.
func (p *Proxy) heard(l *link, sent []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if l.number == 0 {
		p.links++
		l.number = p.links
	}
	if p.hear != nil {
		p.hear(l.number, sent)
	}
}

// Far simulates a distant server: each round trip takes this much longer.
func (p *Proxy) Far(trip time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.far = trip
}

// travel waits for the duration of a trip.
func (p *Proxy) travel() {
	p.mu.Lock()
	far := p.far
	p.mu.Unlock()
	if far > 0 {
		<-time.After(far)
	}
}

func (p *Proxy) accept(ctx context.Context) {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.working.Go(func() { p.serve(ctx, client) })
	}
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	number         int         // from 1; 0 = nothing has been sent yet
	asked          atomic.Bool // the client has sent something and has had no answer yet
	deaf           atomic.Bool // answers are discarded; the first one closes the connection
}

func (p *Proxy) serve(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := p.cluster.dial(ctx)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !p.keep(client, server) {
		return
	}
	defer p.drop(client, server)
	l := &link{client: client, server: server}
	var answers sync.WaitGroup
	answers.Go(func() { l.answer() })
	p.ask(l)
	if !l.deaf.Load() {
		_ = server.Close()
	}
	answers.Wait()
}

func (p *Proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		p.conns[conn] = true
	}
	return !p.away
}

func (p *Proxy) drop(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		delete(p.conns, conn)
	}
}

// broken decides whether the connection breaks at what was sent.
func (p *Proxy) broken(sent []byte) Broken {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.when == nil {
		return Whole
	}
	return p.when(sent)
}

// ask forwards what the client sends, and returns when the client has gone or the connection breaks. The client's
// terminate message ("X") expects no answer.
func (p *Proxy) ask(l *link) {
	buffer := make([]byte, 1<<16)
	for {
		n, err := l.client.Read(buffer)
		if err != nil {
			return
		}
		sent := buffer[:n]
		p.heard(l, sent)
		if sent[0] != 'X' && !l.asked.Swap(true) {
			p.trips.Add(1)
			p.travel()
		}
		switch p.broken(sent) {
		case Before:
			return
		case After:
			l.deaf.Store(true)
			_, _ = l.server.Write(sent)
			return
		case Whole:
		}
		if _, err := l.server.Write(sent); err != nil {
			return
		}
	}
}

// answer forwards what the server sends, until it or the client has gone.
func (l *link) answer() {
	defer func() { _ = l.client.Close() }()
	buffer := make([]byte, 1<<16)
	for {
		n, err := l.server.Read(buffer)
		if err != nil || l.deaf.Load() {
			return
		}
		l.asked.Store(false)
		if _, err := l.client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

var _ io.Closer = (*Cluster)(nil)
