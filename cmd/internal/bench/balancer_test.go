//go:build unix

package bench_test

import (
	"net/http"
	"sync"
)

// balancer is a load balancer in front of the webhooks of several processes: each delivery goes to the next of them.
type balancer struct {
	mu        sync.Mutex
	addresses []string
	next      int
	transport *http.Transport
}

// spread sets the list of processes.
func (b *balancer) spread(addresses ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.addresses = addresses
	if b.transport == nil {
		b.transport = &http.Transport{MaxIdleConnsPerHost: 100}
	}
}

// RoundTrip implements http.RoundTripper.
func (b *balancer) RoundTrip(r *http.Request) (*http.Response, error) {
	b.mu.Lock()
	to := b.addresses[b.next%len(b.addresses)]
	b.next++
	transport := b.transport
	b.mu.Unlock()
	r = r.Clone(r.Context())
	r.URL.Host = to
	return transport.RoundTrip(r)
}

// CloseIdleConnections is called by http.Client.
func (b *balancer) CloseIdleConnections() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.transport != nil {
		b.transport.CloseIdleConnections()
	}
}
