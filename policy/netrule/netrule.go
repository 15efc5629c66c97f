// Package netrule decides which network addresses tools may reach. It is pure. [CheckURL] checks a URL before its host
// is resolved, and [CheckAddr] checks each resolved address. The caller dials exactly the address that was checked, and
// checks every redirect again. [Find] and [Plain] find addresses in texts and compare them.
package netrule

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"github.com/zephbot/zephbot/policy/reason"
)

// Kind says which rule refused. The values are those of block_reason in the egress log, and "url" for a text that is
// not a usable URL.
type Kind string

// Kinds of refusals.
const (
	KindURL       Kind = "url"
	KindScheme    Kind = "scheme"
	KindPrivate   Kind = "ssrf"
	KindDenied    Kind = "blocklist"
	KindUnlisted  Kind = "allowlist"
	KindBadConfig Kind = "config"
)

// Error is a refusal.
type Error struct {
	Kind Kind
	// Reason is for the model and for people. It never contains a resolved address, a name from a list or another
	// internal name.
	Reason reason.Reason
	// Detail is for the log only.
	Detail string
}

// Error returns reason and detail, for the log.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Reason.String()
	}
	return e.Reason.String() + " (" + e.Detail + ")"
}

// maxURL is the maximum length of a URL in bytes.
const maxURL = 8192

// Options are the settings of CheckURL. The zero value is the strictest, except for the domain lists.
type Options struct {
	// AllowedDomains must contain the host if it is not empty: an exact name, or "*.example.com" for exactly one more
	// label. A bare address is on no list.
	AllowedDomains []string
	// DeniedDomains take precedence; the notation is the same.
	DeniedDomains []string
	// AllowPrivate accepts addresses and names of the local network, for MCP servers with trust_level trusted.
	AllowPrivate bool
	// AllowHTTP accepts http in addition to https.
	AllowHTTP bool
}

// CheckURL parses a URL and refuses everything that may not lead to a public web server: other schemes, user names,
// unusual notations of addresses, private names and addresses, and domains that the lists refuse. The host of the
// result is canonical: ASCII, lower case, without a trailing dot. Every error is an *[Error].
func CheckURL(raw string, o Options) (*url.URL, error) {
	u, err := parse(raw, o.AllowHTTP)
	if err != nil {
		return nil, err
	}
	port, err := portOf(u)
	if err != nil {
		return nil, err
	}
	host, addr, err := hostOf(u)
	if err != nil {
		return nil, err
	}
	if err := checkLists(host, addr.IsValid(), o); err != nil {
		return nil, err
	}
	if !o.AllowPrivate {
		if err := checkPublic(host, addr); err != nil {
			return nil, err
		}
	}
	u.Host = host
	if addr.Is6() {
		u.Host = "[" + host + "]"
	}
	if port != "" {
		u.Host += ":" + port
	}
	return u, nil
}

func newError(kind Kind, why reason.Code, detail string) *Error {
	return &Error{Kind: kind, Reason: reason.New(why), Detail: detail}
}

// parse refuses what url.Parse and a browser would read differently.
func parse(raw string, allowHTTP bool) (*url.URL, error) {
	switch {
	case raw == "":
		return nil, newError(KindURL, reason.URLEmpty, "")
	case len(raw) > maxURL:
		return nil, newError(KindURL, reason.URLLong, strconv.Itoa(len(raw))+" bytes")
	case !utf8.ValidString(raw) || strings.ContainsFunc(raw, forbidden):
		return nil, newError(KindURL, reason.URLCharacters, "")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return nil, newError(KindURL, reason.URLUnparsed, err.Error())
	}
	switch {
	case u.Scheme == "":
		return nil, newError(KindScheme, reason.URLSchemeless, "no scheme")
	case u.Scheme != "https" && (u.Scheme != "http" || !allowHTTP):
		return nil, newError(KindScheme, reason.URLScheme, "scheme "+strconv.Quote(u.Scheme))
	case u.Opaque != "" || u.Host == "":
		return nil, newError(KindURL, reason.URLHostless, "")
	case u.User != nil:
		return nil, newError(KindURL, reason.URLUser, "")
	}
	return u, nil
}

func forbidden(r rune) bool {
	return r <= ' ' || r == '\\' || r == 0x7f || r == 0xfeff || r >= 0x80 && r <= 0xa0 || r >= 0x2028 && r <= 0x202e
}

// portOf returns the port; "" for the default one.
func portOf(u *url.URL) (string, error) {
	port := u.Port()
	if port == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", newError(KindURL, reason.URLPort, "port "+strconv.Quote(port))
	}
	return strconv.FormatUint(n, 10), nil
}

// hostOf returns the canonical host, and its address if it is one.
func hostOf(u *url.URL) (string, netip.Addr, error) {
	host := u.Hostname()
	if strings.HasPrefix(u.Host, "[") {
		addr, err := netip.ParseAddr(host)
		if err != nil || addr.Zone() != "" || !addr.Is6() {
			return "", netip.Addr{}, newError(KindURL, reason.URLUnusualAddress,
				strconv.Quote(host))
		}
		return addr.String(), addr, nil
	}
	name, err := canonicalName(host)
	if err != nil {
		return "", netip.Addr{}, err
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if !numeric(last) {
		return name, netip.Addr{}, nil
	}
	// Browsers and the C library read a host that ends in a number as an IPv4 address, in any of a dozen notations.
	// Only the plain notation is accepted.
	addr, err := netip.ParseAddr(name)
	if err != nil {
		return "", netip.Addr{}, newError(KindPrivate, reason.URLUnusualNumbers,
			strconv.Quote(name))
	}
	return name, addr, nil
}

// numeric reports whether a label is a number: decimal, octal or hexadecimal.
func numeric(label string) bool {
	if rest, ok := strings.CutPrefix(label, "0x"); ok {
		return strings.Trim(rest, "0123456789abcdef") == ""
	}
	return strings.Trim(label, "0123456789") == ""
}

// canonicalName maps a name to ASCII and lower case, so that Unicode dots and digits become what the resolver will use,
// and validates it.
func canonicalName(host string) (string, error) {
	bad := func(detail string) error {
		return newError(KindURL, reason.HostInvalid, detail)
	}
	name := strings.ToLower(host)
	if !ascii(host) || strings.Contains("."+name, ".xn--") {
		var err error
		if name, err = idna.Lookup.ToASCII(host); err != nil {
			return "", bad(err.Error())
		}
		// The mapping accepts bytes that are not UTF-8, and converts them to a name that it does not accept itself.
		if again, err := idna.Lookup.ToASCII(name); err != nil || again != name {
			return "", bad("the name has no stable form")
		}
	}
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > 253 {
		return "", bad("length")
	}
	for label := range strings.SplitSeq(name, ".") {
		if !validLabel(label) {
			return "", bad("label " + strconv.Quote(label))
		}
	}
	return name, nil
}

func ascii(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf })
}

// validLabel accepts letters, digits, inner hyphens, and also underscores, which occur in real host names although RFC
// 952 does not allow them.
func validLabel(label string) bool {
	if label == "" || len(label) > 63 || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return !strings.ContainsFunc(label, badLabelRune)
}

func badLabelRune(r rune) bool {
	return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
}

// checkPublic refuses private addresses and names.
func checkPublic(host string, addr netip.Addr) error {
	if addr.IsValid() {
		return CheckAddr(addr)
	}
	if !strings.Contains(host, ".") {
		return newError(KindPrivate, reason.HostWithoutDomain, strconv.Quote(host))
	}
	for _, suffix := range privateSuffixes() {
		if strings.HasSuffix(host, suffix) {
			return newError(KindPrivate, reason.HostPrivate, strconv.Quote(host))
		}
	}
	return nil
}

// privateSuffixes returns the special-use names that do not belong to public servers (RFC 6761, 6762, 7686, 8375, 9476,
// ICANN's .internal), and those that routers and companies commonly use.
func privateSuffixes() []string {
	return []string{
		".localhost", ".local", ".internal", ".home.arpa", ".onion", ".alt", ".test", ".invalid",
		".in-addr.arpa", ".ip6.arpa", ".localdomain", ".lan", ".home", ".corp", ".intranet", ".private",
		".workgroup", ".domain",
	}
}

// checkLists applies the domain lists: denied first, then allowed.
func checkLists(host string, isAddr bool, o Options) error {
	for _, p := range o.DeniedDomains {
		hit, err := matchDomain(p, host)
		if err != nil {
			return newError(KindBadConfig, reason.DeniedDomainsWrong, err.Error())
		}
		if hit {
			return newError(KindDenied, reason.DomainDenied, "")
		}
	}
	if len(o.AllowedDomains) == 0 {
		return nil
	}
	listed := false
	for _, p := range o.AllowedDomains {
		hit, err := matchDomain(p, host)
		if err != nil {
			return newError(KindBadConfig, reason.AllowedDomainsWrong,
				err.Error())
		}
		listed = listed || hit
	}
	if !listed || isAddr {
		return newError(KindUnlisted, reason.DomainUnlisted, "")
	}
	return nil
}

// Listed reports whether a host is on a list of domains. An invalid pattern matches nothing.
func Listed(host string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		hit, err := matchDomain(p, host)
		return hit && err == nil
	})
}

// CheckDomains returns an error about every invalid pattern in a domain list, for the config.
func CheckDomains(patterns []string) error {
	var errs []error
	for i, p := range patterns {
		if _, err := compileDomain(p); err != nil {
			errs = append(errs, fmt.Errorf("[%d]: %w", i, err))
		}
	}
	return errors.Join(errs...)
}

// matchDomain compares a host with a pattern: exact, or "*.x" for exactly one
// more label than x.
func matchDomain(pattern, host string) (bool, error) {
	p, err := compileDomain(pattern)
	if err != nil {
		return false, err
	}
	rest, wild := strings.CutPrefix(p, "*.")
	if !wild {
		return p == host, nil
	}
	_, parent, ok := strings.Cut(host, ".")
	return ok && parent == rest, nil
}

// compileDomain converts a pattern to the form of a canonical host.
func compileDomain(pattern string) (string, error) {
	rest, wild := strings.CutPrefix(pattern, "*.")
	if strings.Contains(rest, "*") {
		return "", fmt.Errorf("domain %q: * may stand only for the whole first label, as in *.example.com", pattern)
	}
	name, err := canonicalName(rest)
	if err != nil {
		return "",
			fmt.Errorf("domain %q is not a host name; write example.com or *.example.com, without scheme or path",
				pattern)
	}
	if wild {
		name = "*." + name
	}
	return name, nil
}
