package metrics

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// private lists the ends of names that nobody can register: those of networks at home, in companies and clusters.
var private = []string{".localhost", ".local", ".internal", ".home.arpa", ".lan", ".svc"}

// hosts decides under which names the listener may be asked. A web page whose own name resolves to this machine (DNS
// rebinding) makes a browser send that name, so what anybody can register is refused. Addresses, names without a dot,
// as in a Compose network, and names of private networks are not such names.
type hosts struct{ own []string }

// newHosts returns the hosts of a listener: own are names that count as well, each a
// host, a host with a port, or a URL.
func newHosts(own ...string) hosts {
	var h hosts
	for _, name := range own {
		if u, err := url.Parse(name); err == nil && u.Host != "" {
			name = u.Host
		}
		if name = hostname(name); name != "" {
			h.own = append(h.own, name)
		}
	}
	return h
}

// hostname returns the name in a Host header: in lower case, without port, brackets, zone and final dot.
func hostname(host string) string {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host, _, _ = strings.Cut(strings.Trim(host, "[]"), "%")
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

func (h hosts) known(host string) bool {
	name := hostname(host)
	if name == "" || net.ParseIP(name) != nil || !strings.Contains(name, ".") || slices.Contains(h.own, name) {
		return true
	}
	return slices.ContainsFunc(private, func(end string) bool { return strings.HasSuffix(name, end) })
}

// guard refuses requests under a foreign name, and those that a browser sends for another web page, except for a link
// that somebody follows: recording a profile costs time.
func (h hosts) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !h.known(r.Host) {
			http.Error(w, fmt.Sprintf(
				"%q is not a name of this service: use its IP address, or set metrics.public_url", r.Host,
			),
				http.StatusMisdirectedRequest)
			return
		}
		site, mode := r.Header.Get("Sec-Fetch-Site"), r.Header.Get("Sec-Fetch-Mode")
		if (site == "cross-site" || site == "same-site") &&
			(mode != "navigate" || strings.HasPrefix(r.URL.Path, "/debug/")) {
			http.Error(w, "another web page may not ask this", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}
