package telegramtest

import (
	"context"
	"fmt"
	"net"
	"sync"
)

// Front is an address on loopback that outlives who listens behind it, as that of a load balancer does: processes come
// and go, several may be there at once, and each connection goes to one of them. While nobody is there, connections
// wait.
type Front struct {
	listener net.Listener
	conns    chan net.Conn
	accept   sync.WaitGroup
}

// NewFront opens an address. Close it when nobody listens behind it any more.
func NewFront(ctx context.Context) (*Front, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("front: %w", err)
	}
	f := &Front{listener: l, conns: make(chan net.Conn)}
	f.accept.Go(func() {
		defer close(f.conns)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			f.conns <- c
		}
	})
	return f, nil
}

// URL is an address at the front.
func (f *Front) URL(path string) string { return "http://" + f.listener.Addr().String() + path }

// Listen is the share of one process. Closing it closes no other.
func (f *Front) Listen() net.Listener { return &share{Front: f, done: make(chan struct{})} }

// Close ends the front; a second time does nothing.
func (f *Front) Close() {
	_ = f.listener.Close() // closed already, or closed now
	for c := range f.conns {
		_ = c.Close() // nobody took it
	}
	f.accept.Wait()
}

type share struct {
	*Front
	once sync.Once
	done chan struct{}
}

// Accept implements net.Listener.
func (s *share) Accept() (net.Conn, error) {
	select {
	case c, ok := <-s.conns:
		if !ok {
			return nil, net.ErrClosed
		}
		return c, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *share) Close() error {
	s.once.Do(func() { close(s.done) })
	return nil
}

// Addr implements net.Listener.
func (s *share) Addr() net.Addr { return s.listener.Addr() }
