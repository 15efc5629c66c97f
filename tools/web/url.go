package web

import (
	"errors"
	"net/url"

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
	return netrule.Normal(u)
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

// blockReason returns the block_reason of a refusal. For text that is not a URL, it is "scheme".
func blockReason(err error) string {
	if e, ok := errors.AsType[*netrule.Error](err); ok {
		switch e.Kind {
		case netrule.KindPrivate, netrule.KindDenied, netrule.KindUnlisted:
			return string(e.Kind)
		}
	}
	return string(netrule.KindScheme)
}
