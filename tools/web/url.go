package web

import (
	"errors"
	"net/url"
	"strings"

	"github.com/zephbot/zephbot/policy/netrule"
)

// check applies the rules that need no name resolution, and returns the URL in the normal form that rules see and
// servers get.
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

// normal converts a URL to the normal form of RFC 3986, section 6.2: no unnecessary escapes, no dot segments, no
// default port, no fragment. Otherwise a rule for https://example.com/public/* could be bypassed with
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

// unescapeUnreserved decodes the escapes of letters, digits and -._~ in an escaped path, and writes other escapes in
// upper case.
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

// unhex parses a hexadecimal digit. net/url has escaped the path, so it is valid.
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

// public returns the part of a URL that may be logged: origin and path. Query and user name may be secrets.
func public(u *url.URL) string {
	if u.Opaque != "" || u.Host == "" {
		return u.Scheme + ":"
	}
	return u.Scheme + "://" + u.Host + u.EscapedPath()
}

// publicRaw is public for a text that may not be a URL.
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

// reason returns the block_reason of a refusal. For text that is not a URL, it is "scheme".
func reason(err error) string {
	if e, ok := errors.AsType[*netrule.Error](err); ok {
		switch e.Kind {
		case netrule.KindPrivate, netrule.KindDenied, netrule.KindUnlisted:
			return string(e.Kind)
		}
	}
	return string(netrule.KindScheme)
}
