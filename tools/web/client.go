package web

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"code.dny.dev/ssrf"

	"github.com/zephbot/zephbot/policy/netrule"
	"github.com/zephbot/zephbot/tools"
)

// maxHeader limits the header of an answer, in bytes.
const maxHeader = 64 << 10

// client fetches pages. It keeps no connection and no state between calls, so it is safe for concurrent use.
type client struct {
	o    Options
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

func newClient(o Options) *client {
	c := &client{o: o, dial: o.Dial}
	if c.dial == nil {
		c.dial = guarded(o.Timeout).DialContext
	}
	return c
}

// guarded returns a dialer whose sockets refuse every address that is not public: the last defence, should the checks
// before it be bypassed. Ports are not restricted, as in the URL rules.
func guarded(timeout time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: timeout / 3, KeepAlive: -1, Control: ssrf.New(ssrf.WithAnyPort()).Safe}
}

// page is the final answer of a server.
type page struct {
	url       *url.URL
	header    string // Content-Type
	status    int
	body      []byte
	truncated bool
}

// get follows a URL to its page. The number of redirects is limited, and all checks apply to each of them.
func (c *client) get(ctx context.Context, call *tools.Call, raw string) (*page, error) {
	seen := map[string]bool{}
	before := ""
	for hop := 0; ; hop++ {
		u, err := c.check(raw)
		if err != nil {
			c.log(call, c.blocked(raw, err, hop))
			return nil, refused(err)
		}
		if seen[u.String()] {
			return nil, failed(nil, "The page redirects in a circle.", "Use another page.")
		}
		if hop > 0 && call.Follow != nil {
			if err := call.Follow(before, u.String()); err != nil {
				e := c.blocked(raw, nil, hop)
				e.Blocked = unasked
				c.log(call, e)
				return nil, err
			}
		}
		before = u.String()
		seen[before] = true
		p, next, err := c.hop(ctx, call, u, hop)
		if err != nil {
			return nil, err
		}
		if next == "" {
			return p, nil
		}
		if hop == c.o.MaxRedirects {
			return nil, failed(nil, "The page redirects too often.",
				"Use the address of the page where the redirects lead, if you know it.")
		}
		raw = next
	}
}

// unasked is the block_reason of a redirect that only a person can allow.
const unasked = "redirect"

// hop makes one request and records it in the egress log. next is the target of a redirect.
func (c *client) hop(ctx context.Context, call *tools.Call, u *url.URL, hop int) (p *page, next string, err error) {
	start := c.o.Now()
	e := tools.Egress{URL: public(u), Host: u.Hostname(), Method: http.MethodGet, Hop: hop}
	defer func() {
		e.Millis = c.o.Now().Sub(start).Milliseconds()
		c.log(call, e)
	}()
	addrs, err := c.resolve(ctx, u)
	if err == nil {
		p, next, err = c.request(ctx, u, addrs, &e)
	}
	if err == nil {
		return p, next, nil
	}
	if _, ok := errors.AsType[*netrule.Error](err); ok {
		e.Blocked = blockReason(err)
		return nil, "", refused(err)
	}
	failure := broken(ctx, err)
	if failure.Denied() { // refused by the socket
		e.Blocked = blockReason(failure)
	}
	return nil, "", failure
}

// resolve returns the addresses of a host. A single address that is not public is an error: a mixture of public and
// private addresses is suspicious.
func (c *client) resolve(ctx context.Context, u *url.URL) ([]netip.AddrPort, error) {
	var addrs []netip.Addr
	host := u.Hostname()
	if a, err := netip.ParseAddr(host); err == nil {
		addrs = []netip.Addr{a}
	} else if addrs, err = c.o.Resolver.LookupNetIP(ctx, "ip", host+"."); err != nil {
		// absolute, so that no search domain is tried
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no addresses", Name: host, IsNotFound: true}
	}
	port := uint16(443)
	if text := u.Port(); text != "" {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil {
			return nil, err
		}
		port = uint16(n)
	}
	list := make([]netip.AddrPort, len(addrs))
	for i, a := range addrs {
		if err := netrule.CheckAddr(a); err != nil {
			return nil, err
		}
		list[i] = netip.AddrPortFrom(a.Unmap(), port)
	}
	return list, nil
}

// transport returns the transport of one request. It dials only the checked addresses, whatever host the request names.
func (c *client) transport(addrs []netip.AddrPort) *http.Transport {
	return &http.Transport{
		Proxy: nil, // an environment variable must not decide where we connect
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var errs []error
			for _, a := range addrs {
				conn, err := c.dial(ctx, "tcp", a.String())
				if err == nil {
					return conn, nil
				}
				errs = append(errs, err)
			}
			return nil, errors.Join(errs...)
		},
		TLSClientConfig:        &tls.Config{RootCAs: c.o.Roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    c.o.Timeout / 2,
		ResponseHeaderTimeout:  c.o.Timeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableKeepAlives:      true,
		DisableCompression:     true, // we decompress with a limit
		ForceAttemptHTTP2:      true,
	}
}

// request sends a request to one server. It follows no redirect and keeps no cookie.
func (c *client) request(ctx context.Context, u *url.URL, addrs []netip.AddrPort,
	e *tools.Egress,
) (*page, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("User-Agent", c.o.UserAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.8,*/*;q=0.1")
	req.Header.Set("Accept-Encoding", "gzip")
	t := c.transport(addrs)
	defer t.CloseIdleConnections()
	resp, err := t.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }() // the unread rest is dropped
	e.Status = resp.StatusCode
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		next, err := target(u, resp.Header.Get("Location"))
		return nil, next, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, "", statusError(resp.StatusCode, resp.Header)
	}
	p := &page{url: u, header: resp.Header.Get("Content-Type"), status: resp.StatusCode}
	wire := &meter{r: resp.Body}
	p.body, p.truncated, err = readBody(wire, resp.Header.Get("Content-Encoding"), c.o.MaxBody)
	if c.o.LogBytes {
		e.Bytes = wire.n
	}
	return p, "", err
}

// target resolves the Location of a redirect.
func target(base *url.URL, location string) (string, error) {
	if location == "" {
		return "", failed(nil, "The server redirects without saying where to.", "Use another page.")
	}
	next, err := base.Parse(location)
	if err != nil {
		return "", failed(err, "The server redirects to something that is no URL.", "Use another page.")
	}
	return next.String(), nil
}

// meter counts the bytes that were read.
type meter struct {
	r io.Reader
	n int64
}

// Read implements io.Reader.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	return n, err
}

// log appends a request to the trail of the call.
func (c *client) log(call *tools.Call, e tools.Egress) {
	if call.Trail == nil || !c.o.LogRequests || e.Blocked != "" && !c.o.LogBlocked {
		return
	}
	call.Trail.Egress = append(call.Trail.Egress, e)
}

// blocked returns the log entry of a URL that was refused before its host was resolved.
func (c *client) blocked(raw string, err error, hop int) tools.Egress {
	text, host := publicRaw(raw)
	return tools.Egress{URL: text, Host: host, Method: http.MethodGet, Blocked: blockReason(err), Hop: hop}
}
