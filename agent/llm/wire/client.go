package wire

import (
	"net"
	"net/http"
	"time"
)

// maxIdle is the number of idle connections kept to a vendor: as many as there can be turns at once. With the default
// of net/http, which is two, most calls would begin with a handshake. Vendors that support HTTP/2 need one connection.
const maxIdle = 1024

// Buffers of a connection, in bytes; the default of net/http is 4 KiB each. There is a connection for every turn that
// waits for its answer, and the pieces of an answer are small. Larger reads and writes bypass the buffers.
const (
	readBuffer  = 2 << 10
	writeBuffer = 1 << 10
)

// NewClient returns the client for a vendor: a copy of base, or one with its own connections if base is nil. It follows
// no redirects, because they would send the conversation to an address that nobody configured.
func NewClient(base *http.Client) *http.Client {
	client := &http.Client{}
	if base != nil {
		*client = *base
	} else {
		client.Transport = newTransport()
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// newTransport is http.DefaultTransport with more idle connections.
func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   maxIdle,
		IdleConnTimeout:       90 * time.Second,
		TLSHandshakeTimeout:   10 * time.Second,
		ExpectContinueTimeout: time.Second,
		ReadBufferSize:        readBuffer,
		WriteBufferSize:       writeBuffer,
	}
}
