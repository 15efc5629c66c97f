package adapter

import (
	"net"
	"net/http"
	"time"
)

// maxIdle is how many connections to a vendor are kept when nobody needs them just now: as many as there may be turns
// at once. The default of net/http is two, so that every other answer would begin with a handshake. Vendors that speak
// HTTP/2 need one.
const maxIdle = 1024

// Buffers of a connection, in bytes; the default of net/http is 4 KiB each. There is a connection for every turn that
// waits for its answer, and the pieces of an answer are small; what is longer passes them by.
const (
	readBuffer  = 2 << 10
	writeBuffer = 1 << 10
)

// Client makes the client of a vendor: a copy of base, or one with connections of its own where base is nil. It follows
// no redirect: that would carry the conversation to an address nobody configured.
func Client(base *http.Client) *http.Client {
	client := &http.Client{}
	if base != nil {
		*client = *base
	} else {
		client.Transport = transport()
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client
}

// transport is http.DefaultTransport with room for idle connections.
func transport() *http.Transport {
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
