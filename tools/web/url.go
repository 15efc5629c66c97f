package web

import (
	"errors"
	"net/url"
	"strings"

	"github.com/zephbot/zephbot/policy/netrule"
)

// check applies the rules that need no look-up and gives the URL in the one form in which rules see it and servers get
// it.
func (c *client) check(raw string) (*url.URL, error) {
	u, err := netrule.CheckURL(raw, netrule.Options{
		AllowedDomains: c.o.AllowedDomains,
		DeniedDomains:  c.o.DeniedDomains,
	})
	if err != nil {
		return nil, err
	}
	return normal(u)
}

// normal rewrites a URL to the equivalent form of RFC 3986, section 6.2: no escapes that are not needed, no dot
// segments, no default port, no fragment. A rule for https://example.com/public/* must not be passed with
// /public/%2e%2e/private.
func normal(u *url.URL) (*url.URL, error) {
	path := unescapeUnreserved(u.EscapedPath())
	if path == "" {
		path = "/"
	}
	host := strings.TrimSuffix(u.Host, ":443")
	raw := u.Scheme + "://" + host + path
	if u.RawQuery != "" {
		raw += "?" + u.RawQuery
	}
	n, err := url.Parse(raw)
	if err != nil {
		return nil, &netrule.Error{Kind: netrule.KindURL, Reason: "The URL cannot be parsed.", Detail: err.Error()}
	}
	return n.ResolveReference(n), nil // resolving an absolute URL removes its dot segments
}

// unescapeUnreserved decodes the escapes of letters, digits and -._~ in an escaped path, and writes the others in
// capitals.
func unescapeUnreserved(path string) string {
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' || i+2 >= len(path) {
			b.WriteByte(path[i])
			continue
		}
		if c := unhex(path[i+1])<<4 | unhex(path[i+2]); unreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteString(strings.ToUpper(path[i : i+3]))
		}
		i += 2
	}
	return b.String()
}

// unhex reads a hexadecimal digit; the path was escaped by net/url, so it is one.
func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	default:
		return c - '0'
	}
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// public returns the part of a URL that may be written down: origin and path. Query and user name may be secrets.
func public(u *url.URL) string {
	if u.Opaque != "" || u.Host == "" {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// publicRaw is public for a text that may be no URL at all.
func publicRaw(raw string) (text, host string) {
	u, err := url.Parse(raw)
	if err != nil {
		return "", ""
	}
	if u.Scheme == "" {
		return u.EscapedPath(), ""
	}
	return public(u), u.Hostname()
}

// reason returns the block_reason of a refusal. What is no URL at all is refused where the scheme is looked at.
func reason(err error) string {
	if e, ok := errors.AsType[*netrule.Error](err); ok {
		switch e.Kind {
		case netrule.KindPrivate, netrule.KindDenied, netrule.KindUnlisted:
			return string(e.Kind)
		}
	}
	return string(netrule.KindScheme)
}
