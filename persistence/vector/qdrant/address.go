package qdrant

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// The default ports of Qdrant.
const (
	grpcPort = 6334
	restPort = 6333
)

// address of a server.
type address struct {
	host string // with brackets around an IPv6 address
	port int
	tls  bool
}

// String returns host and port, never more of the URL.
func (a address) String() string { return fmt.Sprintf("%s:%d", a.host, a.port) }

// mistakeHint describes a likely mistake.
func (a address) mistakeHint() string {
	if a.port == restPort {
		return fmt.Sprintf(" (port %d is Qdrant's for REST; the one for gRPC is %d)", restPort, grpcPort)
	}
	return ""
}

// isLoopback reports whether the address is on this machine.
func (a address) isLoopback() bool {
	ip := net.ParseIP(strings.Trim(a.host, "[]"))
	return a.host == "localhost" || ip != nil && ip.IsLoopback()
}

// want describes the form of a URL.
const want = "want http://host:6334, or https://host:6334 for TLS"

// parseURL parses a URL. Its errors show at most host and port, because the rest may contain a password or a key.
func parseURL(text string) (address, error) {
	if text == "" {
		return address{}, errors.New("is empty; " + want)
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return address{}, errors.New("is not an address of Qdrant; " + want)
	}
	switch {
	case u.User != nil:
		return address{}, errors.New("contains a user or password; write Qdrant's key into vector.api_key")
	case strings.Trim(u.Path, "/") != "":
		return address{}, errors.New("has a path, which gRPC does not support; " + want)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return address{}, errors.New("has a query or fragment, which gRPC does not support; " + want)
	}
	return parseHost(u)
}

// parseHost parses host and port.
func parseHost(u *url.URL) (address, error) {
	a := address{host: u.Hostname(), port: grpcPort, tls: u.Scheme == "https"}
	if a.host == "" || strings.ContainsAny(a.host, "%/ ") {
		return address{}, fmt.Errorf("%q is not a host; %s", u.Host, want)
	}
	if strings.Contains(a.host, ":") {
		a.host = "[" + a.host + "]"
	}
	if port := u.Port(); port != "" {
		n, err := strconv.Atoi(port)
		if err != nil || n < 1 || n > 65535 {
			return address{}, fmt.Errorf("port %q: want 1 to 65535", port)
		}
		a.port = n
	}
	return a, nil
}
