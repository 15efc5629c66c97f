package netrule_test

import (
	"errors"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy/netrule"
)

func optionsNamed(t *testing.T, name string) netrule.Options {
	t.Helper()
	switch name {
	case "none":
		return netrule.Options{}
	case "private":
		return netrule.Options{AllowPrivate: true}
	case "http":
		return netrule.Options{AllowHTTP: true}
	case "both":
		return netrule.Options{AllowPrivate: true, AllowHTTP: true}
	case "allow":
		return netrule.Options{AllowedDomains: []string{"*.example.com", "example.org"}}
	case "deny":
		return netrule.Options{DeniedDomains: []string{"evil.example", "*.bad.example"}}
	}
	t.Fatalf("no options %q", name)
	return netrule.Options{}
}

// row is one line of testdata/urls.txt.
type row struct{ want, options, url, why string }

func rows(t testing.TB) []row {
	t.Helper()
	data, err := os.ReadFile("testdata/urls.txt")
	if err != nil {
		t.Fatal(err)
	}
	var out []row
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Split(line, "|")
		if len(f) != 4 {
			t.Fatalf("row with %d fields: %q", len(f), line)
		}
		r := row{strings.TrimSpace(f[0]), strings.TrimSpace(f[1]), strings.TrimSpace(f[2]), strings.TrimSpace(f[3])}
		if strings.HasPrefix(r.url, `"`) {
			if r.url, err = strconv.Unquote(r.url); err != nil {
				t.Fatalf("row %q: %v", line, err)
			}
		}
		out = append(out, r)
	}
	return out
}

func decision(err error) string {
	if err == nil {
		return "ok"
	}
	if refused, ok := errors.AsType[*netrule.Error](err); ok {
		return string(refused.Kind)
	}
	return "untyped: " + err.Error()
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	all := rows(t)
	if len(all) < 100 {
		t.Fatalf("only %d rows", len(all))
	}
	for _, r := range all {
		t.Run(r.options+" "+strconv.Quote(r.url), func(t *testing.T) {
			t.Parallel()
			u, err := netrule.CheckURL(r.url, optionsNamed(t, r.options))
			if got := decision(err); got != r.want {
				t.Fatalf("got %s (%v), want %s: %s", got, err, r.want, r.why)
			}
			if (u == nil) != (err != nil) {
				t.Fatalf("URL %v with error %v", u, err)
			}
		})
	}
}

// The rows of the original's own tests, by name.
func TestVectors(t *testing.T) {
	t.Parallel()
	ssrf := []string{
		"https://localhost", "https://foo.localhost", "https://x.internal", "https://y.local",
		"https://127.0.0.1", "https://10.0.0.1", "https://172.16.0.1", "https://192.168.1.1", "https://169.254.1.1",
		"https://0.0.0.0", "https://255.255.255.255", "https://169.254.169.254/",
		"https://[::1]", "https://[fe80::1]", "https://[fd12::1]", "https://[::ffff:127.0.0.1]",
		"https://[::ffff:10.0.0.1]", "https://[::ffff:100.64.0.1]",
	}
	for _, raw := range ssrf {
		if _, err := netrule.CheckURL(raw, netrule.Options{}); decision(err) != "ssrf" {
			t.Errorf("%s: %v", raw, err)
		}
	}
	for _, raw := range []string{"http://example.com", "ftp://example.com", "file:///etc/passwd", "javascript:alert(1)", "data:,x", "", "not a url", "example.com/p"} {
		if _, err := netrule.CheckURL(raw, netrule.Options{}); err == nil {
			t.Errorf("%q passed", raw)
		}
	}
	for _, raw := range []string{"https://example.com", "https://example.com:8443/p", "https://93.184.216.34/"} {
		if _, err := netrule.CheckURL(raw, netrule.Options{}); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
	private := map[string]bool{
		"100.64.0.1": true, "100.127.255.255": true, "100.128.0.0": false,
		"8.8.8.8": false, "1.1.1.1": false, "2001:4860:4860::8888": false,
		"2001:db8::1": true, // the original takes it for public
	}
	for raw, want := range private {
		if err := netrule.CheckAddr(netip.MustParseAddr(raw)); (err != nil) != want {
			t.Errorf("%s: %v", raw, err)
		}
	}
	list := netrule.Options{AllowedDomains: []string{"*.*.example.com"}}
	if _, err := netrule.CheckURL("https://a.b.example.com/", list); decision(err) != "config" {
		t.Errorf("two stars: %v", err)
	}
	list.AllowedDomains = []string{"example.com"}
	if _, err := netrule.CheckURL("https://93.184.216.34/", list); decision(err) != "allowlist" {
		t.Errorf("bare address: %v", err)
	}
	for _, pattern := range []string{"bad domain.com", "example.com/path", ""} {
		if netrule.CheckDomains([]string{pattern}) == nil {
			t.Errorf("pattern %q passed", pattern)
		}
	}
}

func TestCheckURLCanonicalHost(t *testing.T) {
	t.Parallel()
	tests := map[string]string{
		"https://EXAMPLE.com./a?b#c":             "https://example.com/a?b#c",
		"https://example.com:0443/":              "https://example.com:443/",
		"https://example.com:/":                  "https://example.com/",
		"https://bücher.example/":                "https://xn--bcher-kva.example/",
		"https://[2606:4700:4700:0::1111]:8443/": "https://[2606:4700:4700::1111]:8443/",
		"https://8.8.8.8./":                      "https://8.8.8.8/",
	}
	for raw, want := range tests {
		u, err := netrule.CheckURL(raw, netrule.Options{})
		if err != nil {
			t.Errorf("%s: %v", raw, err)
			continue
		}
		if diff := cmp.Diff(want, u.String()); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
}

func TestErrorTellsNoInternals(t *testing.T) {
	t.Parallel()
	deny := netrule.Options{DeniedDomains: []string{"secret.example"}}
	_, err := netrule.CheckURL("https://secret.example/", deny)
	var refused *netrule.Error
	if !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
	if strings.Contains(refused.Reason.String(), "secret") || refused.Error() != refused.Reason.String() {
		t.Errorf("reason %q, error %q", refused.Reason.String(), refused.Error())
	}
	if !errors.As(netrule.CheckAddr(netip.MustParseAddr("10.1.2.3")), &refused) {
		t.Fatal("10.1.2.3 passed")
	}
	if strings.Contains(refused.Reason.String(), "10.1") || !strings.Contains(refused.Error(), "10.1.2.3: private use") {
		t.Errorf("reason %q, error %q", refused.Reason.String(), refused.Error())
	}
}

func TestCheckURLLimits(t *testing.T) {
	t.Parallel()
	long := "https://example.com/" + strings.Repeat("a", 8192)
	if _, err := netrule.CheckURL(long, netrule.Options{}); decision(err) != "url" {
		t.Errorf("long URL: %v", err)
	}
	host := "https://" + strings.Repeat("a.", 127) + "example/"
	if _, err := netrule.CheckURL(host, netrule.Options{}); decision(err) != "url" {
		t.Errorf("long host: %v", err)
	}
}

func TestCheckDomains(t *testing.T) {
	t.Parallel()
	if err := netrule.CheckDomains([]string{"example.com", "*.example.com", "bücher.example", "A.Example"}); err != nil {
		t.Errorf("good patterns: %v", err)
	}
	err := netrule.CheckDomains([]string{"ok.example", "https://x.example", "a.*.example", "*"})
	if err == nil {
		t.Fatal("bad patterns passed")
	}
	for _, want := range []string{"[1]: ", "[2]: ", "[3]: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	for _, o := range []netrule.Options{{DeniedDomains: []string{"a b"}}, {AllowedDomains: []string{"a b"}}} {
		if _, err := netrule.CheckURL("https://example.com/", o); decision(err) != "config" {
			t.Errorf("wrong list lets through: %v", err)
		}
	}
	o := netrule.Options{AllowedDomains: []string{"bücher.example"}}
	if _, err := netrule.CheckURL("https://xn--bcher-kva.example/", o); err != nil {
		t.Errorf("Unicode pattern: %v", err)
	}
}

func TestCheckAddr(t *testing.T) {
	t.Parallel()
	refused := []string{
		"0.0.0.0", "0.255.255.255", "10.0.0.0", "10.255.255.255", "100.64.0.0", "127.0.0.1", "127.255.255.255",
		"169.254.169.254", "172.16.0.0", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.31.196.1", "192.52.193.1",
		"192.88.99.1", "192.168.255.255", "192.175.48.1", "198.18.0.0", "198.19.255.255", "198.51.100.1",
		"203.0.113.255", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::1.2.3.4", "::ffff:127.0.0.1", "::ffff:0:7f00:1", "64:ff9b::808:808", "64:ff9b:1::1", "100::1",
		"2001::1", "2001:10::1", "2001:20::1", "2001:1ff::1", "2001:db8::1", "2002:808:808::1", "2620:4f:8000::1",
		"3ffe::1", "3fff:fff::1", "5f00::1", "fc00::1", "fdff::1", "fe80::1", "febf::1", "fec0::1", "ff02::1",
		"1fff::1", "4000::1", "2600::5efe:7f00:1", "2600::200:5efe:808:808", "fe80::1%eth0",
	}
	for _, raw := range refused {
		if err := netrule.CheckAddr(netip.MustParseAddr(raw)); decision(err) != "ssrf" {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if err := netrule.CheckAddr(netip.Addr{}); decision(err) != "ssrf" {
		t.Errorf("no address: %v", err)
	}
	passed := []string{
		"1.0.0.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.1",
		"169.253.0.1", "172.15.255.255", "172.32.0.0", "192.167.0.1", "192.169.0.1", "198.17.255.255", "198.20.0.0",
		"223.255.255.255", "168.63.129.15", "::ffff:8.8.8.8", "2000::1", "2001:200::1", "2001:db7::1", "2003::1",
		"2600::5eff:7f00:1", "2a00:1450:4001::1", "3ffd::1",
	}
	for _, raw := range passed {
		if err := netrule.CheckAddr(netip.MustParseAddr(raw)); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
	}
}

// TestAttackNamed: what a server names leads to this machine, its link or a metadata service only where the operator has
// named it: under the exact address of the server, or because the server is on this machine.
func TestAttackNamed(t *testing.T) {
	t.Parallel()
	addrs := map[string]string{ // what it is
		"93.184.216.34": "public", "2a00:1450:4001::1": "public", "10.1.2.3": "lan", "192.168.1.1": "lan", "172.16.0.1": "lan", "100.64.0.7": "lan", "fd12::1": "lan",
		"127.0.0.1": "here", "127.9.9.9": "here", "::1": "here", "::ffff:127.0.0.1": "here",
		"0.0.0.0": "never", "::": "never", "169.254.169.254": "never", "fe80::1": "never", "168.63.129.16": "never", "100.100.100.200": "never", "fd00:ec2::254": "never", "fd20:ce::254": "never", "192.0.0.192": "never",
		"64:ff9b::7f00:1": "never", "2002:7f00:1::1": "never", "::127.0.0.1": "never", "224.0.0.1": "never", "255.255.255.255": "never", "fe80::1%eth0": "never", "fd12::1%eth0": "never",
	}
	for server, allowed := range map[string]string{
		"https://mcp.example.com/mcp": "public lan", "https://10.0.0.5:8443/mcp": "public lan", "https://wiki/mcp": "public lan",
		"http://127.0.0.1:3000/mcp": "public lan here", "http://localhost:3000/mcp": "public lan here", "https://[::1]/mcp": "public lan here", "https://a.localhost": "public lan here",
	} {
		u, err := url.Parse(server)
		if err != nil {
			t.Fatal(err)
		}
		for _, trusted := range []bool{true, false} {
			named := netrule.Named{Server: u, Trusted: trusted}
			may := strings.Fields(allowed)
			if !trusted {
				may = []string{"public"}
			}
			for raw, what := range addrs {
				a := netip.MustParseAddr(raw)
				want := slices.Contains(may, what)
				if err := named.CheckAddr("login.example.com", "443", a); (err == nil) != want {
					t.Errorf("%s, trusted %t, a name at %s: %v", server, trusted, raw, err)
				}
				host := raw
				if a.Is6() {
					host = "[" + strings.ReplaceAll(raw, "%", "%25") + "]"
				}
				if err := named.CheckURL(&url.URL{Scheme: "https", Host: host + ":444"}); (err == nil) != (want && a.Zone() == "") {
					t.Errorf("%s, trusted %t, https://%s: %v", server, trusted, host, err)
				}
			}
			here := slices.Contains(may, "here")
			for _, raw := range []string{"http://127.0.0.1:6379/", "http://localhost/", "https://localhost/", "https://LOCALHOST./", "https://x.localhost/", "http://[::1]/"} {
				u, err := url.Parse(raw)
				if err != nil {
					t.Fatal(err)
				}
				if err := named.CheckURL(u); (err == nil) != here {
					t.Errorf("%s, trusted %t, %s: %v", server, trusted, raw, err)
				}
			}
			if err := named.CheckURL(&url.URL{Scheme: "http", Host: "login.example.com"}); err == nil {
				t.Errorf("%s: http to another machine", server)
			}
		}
	}
	own, _ := url.Parse("https://169.254.10.10:8443/mcp")
	named := netrule.Named{Server: own, Trusted: true}
	if err := named.CheckAddr("169.254.10.10", "8443", netip.MustParseAddr("169.254.10.10")); err != nil {
		t.Errorf("the address that the operator named: %v", err)
	}
	if err := named.CheckAddr("169.254.10.10", "443", netip.MustParseAddr("169.254.10.10")); err == nil {
		t.Error("another port of it")
	}
}

// FuzzCheckURL: an accepted URL is stable, https and has no user name, and its host is not a private address according
// to an independent parser.
func FuzzCheckURL(f *testing.F) {
	for _, r := range rows(f) {
		f.Add(r.url)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := netrule.CheckURL(raw, netrule.Options{})
		if err != nil {
			if strings.HasPrefix(decision(err), "untyped") {
				t.Fatal(err)
			}
			return
		}
		if u.Scheme != "https" || u.User != nil || u.Host == "" {
			t.Fatalf("%q passed as %v", raw, u)
		}
		host := u.Hostname()
		if a, err := netip.ParseAddr(host); err == nil && (a.Unmap().IsPrivate() || a.Unmap().IsLoopback() || a.Unmap().IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast()) {
			t.Fatalf("%q passed with address %v", raw, a)
		}
		if host != strings.ToLower(host) || strings.HasSuffix(host, ".") || strings.ContainsFunc(host, func(r rune) bool { return r > 0x7e }) {
			t.Fatalf("%q passed with host %q", raw, host)
		}
		again, err := netrule.CheckURL(u.String(), netrule.Options{})
		if err != nil || again.Host != u.Host {
			t.Fatalf("%q passed as %v, then %v, %v", raw, u, again, err)
		}
		if _, err := url.Parse(u.String()); err != nil {
			t.Fatal(err)
		}
	})
}
