package netrule

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/zephbot/zephbot/policy/reason"
)

// Named decides about addresses that a configured server names, such as that of its authorization server. They are
// public; a trusted server may also name those of private networks. This machine, its link and metadata services are
// used only as far as the operator has named them: the exact address of the server, and this machine if the server is
// on it.
type Named struct {
	Server  *url.URL // as configured
	Trusted bool
}

// CheckURL refuses an address that must not be requested, or shown to a person to open, before its host is resolved.
// The error is an *[Error].
func (n Named) CheckURL(u *url.URL) error {
	plain := n.Trusted && here(u.Hostname()) && here(n.Server.Hostname())
	checked, err := CheckURL(u.String(), Options{AllowPrivate: n.Trusted, AllowHTTP: plain})
	if err != nil || !n.Trusted {
		return err
	}
	if addr, err := netip.ParseAddr(checked.Hostname()); err == nil {
		return n.CheckAddr(checked.Hostname(), portNumber(checked), addr)
	}
	if here(checked.Hostname()) && !here(n.Server.Hostname()) {
		return newError(KindPrivate, reason.AddressPrivate, checked.Hostname())
	}
	return nil
}

// CheckAddr refuses an address to which the host of a request resolves. The error is an *[Error].
func (n Named) CheckAddr(host, port string, a netip.Addr) error {
	err := CheckAddr(a)
	switch {
	case err == nil || !n.Trusted:
		return err
	case strings.EqualFold(host, n.Server.Hostname()) && port == portNumber(n.Server):
		return nil
	case a.Unmap().IsLoopback() && here(n.Server.Hostname()):
		return nil
	case inPrivateNetwork(a):
		return nil
	}
	return err
}

// portNumber returns the port of a URL, also that of its scheme.
func portNumber(u *url.URL) string {
	switch port := u.Port(); {
	case port != "":
		return port
	case u.Scheme == "http":
		return "80"
	default:
		return "443"
	}
}

// here reports whether a host is a name or an address of this machine.
func here(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// inPrivateNetwork reports whether an address belongs to a network of a house or a company (RFC 1918, 4193, 6598), and
// is not the one at which a cloud has its metadata service there.
func inPrivateNetwork(a netip.Addr) bool {
	a = a.Unmap()
	switch a.String() {
	case "100.100.100.200", "fd00:ec2::254", "fd20:ce::254":
		return false
	}
	return a.Zone() == "" && (a.IsPrivate() || v4(100, 64, 0, 0, 10, "").prefix.Contains(a))
}
