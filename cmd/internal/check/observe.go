package check

import (
	"net"
	"net/netip"
	"net/url"
	"strings"
)

// observation checks what is shown to operators and sent to a collector.
func (k *inspector) observation() {
	m, t := k.c.Metrics, k.c.Tracing
	switch {
	case m.Pprof && m.Listen == "":
		k.warn("metrics.pprof", "has no effect without metrics.listen")
	case m.Pprof && !OnlyHere(m.Listen):
		k.warn(
			"metrics.pprof",
			"whoever reaches %s can slow the service down with profiles; switch it off when it is no longer needed, "+
				"or let metrics.listen be an address of this machine, such as 127.0.0.1:9090",
			m.Listen,
		)
	}
	if t.Endpoint == "" {
		if len(t.Headers) > 0 {
			k.warn("tracing.headers", "have no effect without tracing.endpoint")
		}
		return
	}
	u, err := url.Parse(t.Endpoint)
	if err != nil {
		return // config.Load has reported it
	}
	if u.User != nil || u.RawQuery != "" {
		k.wrong(
			"tracing.endpoint",
			"must contain no password and no query, because it is shown; put credentials into tracing.headers",
		)
	}
	if u.Scheme == "http" && len(t.Headers) > 0 && !OnlyHere(u.Host) {
		k.warn("tracing.headers", "travel in clear text to %s; use https", u.Host)
	}
}

// OnlyHere reports whether an address with or without a port can be reached from this machine only.
func OnlyHere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// operatorPage checks whether the page can be signed in to safely.
func (k *inspector) operatorPage() {
	const key = "metrics.public_url"
	m := k.c.Metrics
	if m.PublicURL == "" {
		return
	}
	if m.Listen == "" {
		k.warn(key, "has no effect without metrics.listen: nothing serves the page")
	}
	u, err := url.Parse(m.PublicURL)
	switch {
	case err != nil: // said already
	case u.Scheme == "http" && !Loopback(m.PublicURL):
		k.wrong(key, "with http everybody on the way could sign in as the admin: use https; a proxy before %s can "+
			"hold the certificate", m.Listen)
	case u.Path != "" && u.Path != "/":
		k.wrong(key, "the page is always at /admin: leave the path %s out", u.Path)
	}
}

// Loopback reports whether an address of the web is of this machine.
func Loopback(address string) bool {
	u, err := url.Parse(address)
	return err == nil && OnMachine(u.Hostname())
}
