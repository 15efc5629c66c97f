package app

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
	case m.Pprof && !onlyHere(m.Listen):
		k.warn("metrics.pprof", "whoever reaches %s can slow the service down with profiles; switch it off when it is no longer needed, "+
			"or let metrics.listen be an address of this machine, such as 127.0.0.1:9090", m.Listen)
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
		k.wrong("tracing.endpoint", "must contain no password and no query, because it is shown; put credentials into tracing.headers")
	}
	if u.Scheme == "http" && len(t.Headers) > 0 && !onlyHere(u.Host) {
		k.warn("tracing.headers", "travel in clear text to %s; use https", u.Host)
	}
}

// onlyHere reports whether an address with or without a port can be reached from this machine only.
func onlyHere(address string) bool {
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
