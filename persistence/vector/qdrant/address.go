package qdrant

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// The ports of a Qdrant that was not told otherwise.
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

// String shows where the server is, never more of the URL.
func (a address) String() string { return fmt.Sprintf("%s:%d", a.host, a.port) }

// hint says what is a likely mistake.
func (a address) hint() string {
	if a.port == restPort {
		return fmt.Sprintf(" (port %d is Qdrant's for REST; the one for gRPC is %d)", restPort, grpcPort)
	}
	return ""
}

// loopback says whether what is sent stays on this machine.
func (a address) loopback() bool {
	ip := net.ParseIP(strings.Trim(a.host, "[]"))
	return a.host == "localhost" || ip != nil && ip.IsLoopback()
}

// want says what a URL looks like.
const want = "want http://host:6334, or https://host:6334 for TLS"

// parse reads a URL. Its errors show at most host and port: the rest may hold a password or a key.
func parse(text string) (address, error) {
	if text == "" {
		return address{}, errors.New("is empty; " + want)
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return address{}, errors.New("is no address of Qdrant; " + want)
	}
	switch {
	case u.User != nil:
		return address{}, errors.New("holds a user or password; write Qdrant's key into vector.api_key")
	case strings.Trim(u.Path, "/") != "":
		return address{}, errors.New("has a path, which gRPC does not know; " + want)
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return address{}, errors.New("has a query or fragment, which gRPC does not know; " + want)
	}
	return where(u)
}

// where reads host and port.
func where(u *url.URL) (address, error) {
	a := address{host: u.Hostname(), port: grpcPort, tls: u.Scheme == "https"}
	if a.host == "" || strings.ContainsAny(a.host, "%/ ") {
		return address{}, fmt.Errorf("%q is no host; %s", u.Host, want)
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
