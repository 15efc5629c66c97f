package netrule

import (
	"net/url"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// Normal converts a checked URL to the normal form of RFC 3986, section 6.2: no unnecessary escapes, no dot
// segments, no default port, no fragment. Otherwise a rule for https://example.com/public/* could be
// bypassed with /public/%2e%2e/private.
func Normal(u *url.URL) (*url.URL, error) {
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
		return nil, &Error{Kind: KindURL, Reason: reason.New(reason.URLUnparsed), Detail: err.Error()}
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
