package web_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"code.dny.dev/ssrf"
	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/web"
)

// Hosts that lead to a private place in one spelling or another; none of them may be looked up or dialled.
func privateHosts() []string {
	return []string{
		"127.0.0.1", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"127.1", "2130706433", "0x7f.1", "0x7f000001", "017700000001", "0177.0.0.1", "127.0.0.1.", "127.000.000.001",
		"user@127.0.0.1", "site.example@127.0.0.1", "①②⑦.⓪.⓪.①", "127。0。0。1", "localhost", "LOCALHOST", "localhost.", "foo.localhost",
		"100.64.0.1", "169.254.169.254", "[fd00::1]", "[fe80::1]", "[fe80::1%25eth0]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "198.18.0.1", "240.0.0.1",
		"[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[::7f00:1]", "[::ffff:0:7f00:1]", "[2600::5efe:7f00:1]",
		"10.0.0.1", "172.16.0.1", "192.168.1.1", "192.0.2.1", "224.0.0.1", "255.255.255.255", "[ff02::1]", "[2001:db8::1]", "168.63.129.16",
		"x.internal", "metadata.google.internal", "printer.local", "router.lan", "intranet",
	}
}

func TestPrivateHosts(t *testing.T) {
	t.Parallel()
	hosts := privateHosts()
	if len(hosts) < 38 {
		t.Fatalf("only %d hosts", len(hosts))
	}
	w := newWorld(t, sends("text/plain", "reached"), nil)
	for _, host := range hosts {
		for name, tool := range w.tools {
			args := map[string]any{"url": "https://" + host + "/"}
			if name == "web_scrape" {
				args["select"] = "p"
			}
			res, c, err := w.run(name, args)
			if err == nil {
				t.Errorf("%s %s: got %q", name, host, res.Text)
				continue
			}
			e := failure(t, err)
			if e.Category != tools.PolicyBlocked || !e.Denied() || e.Retryable {
				t.Errorf("%s %s: %+v", name, host, e)
			}
			if len(c.Trail.Egress) != 1 || c.Trail.Egress[0].Blocked == "" || c.Trail.Egress[0].Status != 0 {
				t.Errorf("%s %s: egress %+v", name, host, c.Trail.Egress)
			}
			describe := call(t, name, args)
			if _, err := tool.Describe(t.Context(), describe); failure(t, err).Category != tools.PolicyBlocked || len(describe.Trail.Egress) != 1 {
				t.Errorf("%s %s: described", name, host)
			}
		}
	}
	if dials, asked := w.dials(), w.names.lookups(); len(dials)+len(asked) > 0 {
		t.Errorf("dialled %v, looked up %v", dials, asked)
	}
}

// Every name that resolves to a private address, alone or beside public ones, is refused before anything is dialled.
func TestPrivateAnswers(t *testing.T) {
	t.Parallel()
	answers := [][]string{
		{"127.0.0.1"},
		{"10.1.2.3"},
		{"169.254.169.254"},
		{"::1"},
		{"::ffff:10.0.0.1"},
		{"fd00::1"},
		{"64:ff9b::7f00:1"},
		{"100.64.0.1"},
		{"0.0.0.0"},
		{"2600::5efe:7f00:1"},
		{"2002:7f00:1::"},
		{publicAddr, "127.0.0.1"},
		{"127.0.0.1", publicAddr},
		{"2606:4700:4700::1111", "fe80::1"},
	}
	for _, list := range answers {
		w := newWorld(t, sends("text/plain", "reached"), nil)
		w.names.answers["site.example."] = [][]string{list}
		_, c, err := w.fetch("https://site.example/a?secret=1#f")
		if err == nil {
			t.Errorf("%v: reached", list)
			continue
		}
		e := failure(t, err)
		if e.Category != tools.PolicyBlocked || !e.Denied() {
			t.Errorf("%v: %+v", list, e)
		}
		for _, a := range list {
			if strings.Contains(tools.Feedback(err), a) {
				t.Errorf("the model hears of %s: %s", a, tools.Feedback(err))
			}
		}
		want := []tools.Egress{{URL: "https://site.example/a", Host: "site.example", Method: "GET", Blocked: "ssrf", Millis: c.Trail.Egress[0].Millis}}
		if diff := cmp.Diff(want, c.Trail.Egress); diff != "" {
			t.Error(diff)
		}
		if dials := w.dials(); len(dials) > 0 {
			t.Errorf("%v: dialled %v", list, dials)
		}
	}
}

// A name that is public when it is checked and private a moment later is asked once, and the checked address is
// dialled.
func TestRebinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/plain", "hello"), nil)
	w.names.answers["site.example."] = [][]string{{publicAddr}, {"127.0.0.1"}}
	if got := w.must("https://site.example/").Text; got != "hello" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff([]string{"ip site.example."}, w.names.lookups()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{publicAddr + ":443"}, w.dials()); diff != "" {
		t.Error(diff)
	}
	if _, _, err := w.fetch("https://site.example/"); failure(t, err).Category != tools.PolicyBlocked {
		t.Errorf("second answer: %v", err)
	}
}

// A redirect to the same name looks it up again, so a rebinding between hops is seen.
func TestRebindingBetweenHops(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		http.Redirect(rw, r, "/again", http.StatusFound)
	}, nil)
	w.names.answers["site.example."] = [][]string{{publicAddr}, {"127.0.0.1"}}
	_, c, err := w.fetch("https://site.example/")
	if failure(t, err).Category != tools.PolicyBlocked || len(w.dials()) != 1 {
		t.Errorf("got %v after %v", err, w.dials())
	}
	if e := c.Trail.Egress; len(e) != 2 || e[0].Status != 302 || e[1].Blocked != "ssrf" || e[1].Hop != 1 {
		t.Errorf("egress %+v", e)
	}
}

func TestAddressesAreTriedInOrder(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, sends("text/plain", "hello"), func(o *web.Options) {
		o.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
			if strings.HasPrefix(address, "8.8.8.8:") {
				w.mu.Lock()
				w.dialed = append(w.dialed, address)
				w.mu.Unlock()
				return nil, &net.OpError{Op: "dial", Err: errors.New("8.8.8.8 refused")}
			}
			return w.dial(ctx, network, address)
		}
	})
	w.names.answers["site.example."] = [][]string{{"8.8.8.8", "::ffff:93.184.216.34"}}
	if got := w.must("https://site.example:8443/").Text; got != "hello" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff([]string{"8.8.8.8:8443", publicAddr + ":8443"}, w.dials()); diff != "" {
		t.Error(diff)
	}
	w.names.answers["site.example."] = [][]string{{"8.8.8.8"}}
	_, _, err := w.fetch("https://site.example/")
	if e := failure(t, err); e.Category != tools.NetworkError || !e.Retryable || strings.Contains(e.Message, "8.8.8.8") {
		t.Errorf("got %+v", e)
	}
}

// The socket of the production dialer refuses by itself.
func TestGuardedDialer(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	conn, err := web.Guarded().DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err == nil {
		_ = conn.Close()
		t.Fatal("reached a server on this machine")
	}
	if !errors.Is(err, ssrf.ErrProhibitedIP) {
		t.Errorf("got %v", err)
	}
	// And what the tool makes of it, should it ever come to that.
	w := newWorld(t, sends("text/plain", "x"), func(o *web.Options) {
		o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return web.Guarded().DialContext(ctx, network, server.Listener.Addr().String())
		}
	})
	_, c, err := w.fetch("https://site.example/")
	if e := failure(t, err); e.Category != tools.PolicyBlocked || !e.Denied() || c.Trail.Egress[0].Blocked != "ssrf" {
		t.Errorf("got %+v, egress %+v", e, c.Trail.Egress)
	}
}

func TestAddressLiteral(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/plain", "hello"), nil)
	for url, dial := range map[string]string{
		"https://" + publicAddr + "/":             publicAddr + ":443",
		"https://[2606:4700:4700::1111]:8443/p?q": "[2606:4700:4700::1111]:8443",
	} {
		if got := w.must(url).Text; got != "hello" {
			t.Errorf("%s: %q", url, got)
		}
		if dials := w.dials(); dials[len(dials)-1] != dial {
			t.Errorf("dialled %v", dials)
		}
	}
	if asked := w.names.lookups(); len(asked) > 0 {
		t.Errorf("looked up %v", asked)
	}
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	hops := func(rw http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		to := func(status int, location string) {
			if location != "" {
				rw.Header().Set("Location", location)
			}
			rw.WriteHeader(status)
		}
		switch {
		case path == "/end":
			if r.Header.Get("Cookie") != "" || r.Header.Get("Referer") != "" || r.Header.Get("Authorization") != "" {
				rw.WriteHeader(http.StatusTeapot)
			}
			_, _ = rw.Write([]byte("the end"))
		case path == "/1":
			http.SetCookie(rw, &http.Cookie{Name: "a", Value: "b"})
			to(301, "/end?x=1")
		case path == "/2":
			to(302, "https://site.example/1")
		case path == "/3":
			to(303, "2")
		case path == "/4":
			to(307, "//site.example/3")
		case path == "/308":
			to(308, "https://other.example/end#part")
		case path == "/loop":
			to(302, "/pool")
		case path == "/pool":
			to(302, "/loop#again")
		case path == "/none":
			to(302, "")
		case path == "/300":
			to(300, "/end")
		case path == "/bad":
			to(302, "https://[oops/")
		case strings.HasPrefix(path, "/to/"):
			to(302, r.URL.Query().Get("u"))
		}
	}
	w := newWorld(t, hops, func(o *web.Options) { o.DeniedDomains = []string{"evil.example"} })
	tests := []struct {
		url      string
		text     string
		category tools.Category
		hops     int
		blocked  string
		says     string
	}{
		{url: "/end", text: "the end", hops: 1},
		{url: "/1", text: "the end", hops: 2},
		{url: "/3", text: "the end", hops: 4},
		{url: "/308", text: "the end", hops: 2},
		{url: "/4", category: tools.PermanentFailure, hops: 4, says: "too often"},
		{url: "/loop", category: tools.PermanentFailure, hops: 2, says: "circle"},
		{url: "/none", category: tools.PermanentFailure, hops: 1, says: "without saying where"},
		{url: "/bad", category: tools.PermanentFailure, hops: 1, says: "no URL"},
		{url: "/300", category: tools.PermanentFailure, hops: 1, says: "300"},
		{url: "/to/?u=https://169.254.169.254/latest/meta-data/", category: tools.PolicyBlocked, hops: 2, blocked: "ssrf"},
		{url: "/to/?u=http://site.example/end", category: tools.PolicyBlocked, hops: 2, blocked: "scheme"},
		{url: "/to/?u=file:///etc/passwd", category: tools.PolicyBlocked, hops: 2, blocked: "scheme"},
		{url: "/to/?u=javascript:alert(1)", category: tools.PolicyBlocked, hops: 2, blocked: "scheme"},
		{url: "/to/?u=https://a:b@site.example/end", category: tools.PolicyBlocked, hops: 2, blocked: "scheme"},
		{url: "/to/?u=https://evil.example/", category: tools.PolicyBlocked, hops: 2, blocked: "blocklist"},
		{url: "/to/?u=https://127.1/", category: tools.PolicyBlocked, hops: 2, blocked: "ssrf"},
		{url: "/to/?u=https://gone.example/", category: tools.PermanentFailure, hops: 2, says: "does not exist"},
	}
	for _, tt := range tests {
		res, c, err := w.fetch("https://site.example" + tt.url)
		trail := c.Trail.Egress
		if len(trail) != tt.hops || trail[len(trail)-1].Blocked != tt.blocked {
			t.Errorf("%s: egress %+v", tt.url, trail)
		}
		for i, e := range trail {
			if e.Hop != i || strings.ContainsAny(e.URL, "?#@") {
				t.Errorf("%s: hop %d is %+v", tt.url, i, e)
			}
		}
		if tt.category == "" {
			if err != nil || res.Text != tt.text {
				t.Errorf("%s: %v %v", tt.url, res, err)
			}
			continue
		}
		if err == nil {
			t.Errorf("%s: got %q", tt.url, res.Text)
			continue
		}
		if e := failure(t, err); e.Category != tt.category || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %+v", tt.url, e)
		}
	}
	res := w.must("https://site.example/308")
	if res.Untrusted != "https://other.example/end" {
		t.Errorf("untrusted %q", res.Untrusted)
	}
}

func TestNoRedirects(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) { http.Redirect(rw, r, "/b", http.StatusFound) }, func(o *web.Options) { o.MaxRedirects = -1 })
	if _, c, err := w.fetch("https://site.example/a"); failure(t, err).Category != tools.PermanentFailure || len(c.Trail.Egress) != 1 {
		t.Errorf("got %v", err)
	}
}

func TestDomainLists(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/plain", "hello"), func(o *web.Options) {
		o.AllowedDomains, o.DeniedDomains = []string{"*.site.example", "other.example"}, []string{"other.example"}
	})
	tests := map[string]string{
		"https://sub.site.example/": "", "https://site.example/": "allowlist", "https://a.b.site.example/": "allowlist",
		"https://other.example/": "blocklist", "https://" + publicAddr + "/": "allowlist",
	}
	for url, want := range tests {
		_, c, err := w.fetch(url)
		if (err == nil) != (want == "") || c.Trail.Egress[0].Blocked != want {
			t.Errorf("%s: %v, egress %+v", url, err, c.Trail.Egress)
		}
	}
}

func TestSchemes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/plain", "hello"), nil)
	// what the log may hold of each
	tests := map[string]string{
		"http://site.example/a": "http://site.example/a", "ftp://site.example/": "ftp://site.example/", "file:///etc/passwd": "file:",
		"javascript:alert(1)": "javascript:", "data:text/html,secret": "data:", "": "", "not a url": "not%20a%20url", "site.example/p": "site.example/p",
		"https://user:pass@site.example/x?token=1#f": "https://site.example/x", "https://site.example/%zz?token=1": "", "https:site.example?token=1": "https:",
	}
	for url, logged := range tests {
		_, c, err := w.fetch(url)
		if e := failure(t, err); e.Category != tools.PolicyBlocked || e.Message == "" {
			t.Errorf("%q: %+v", url, e)
		}
		if e := c.Trail.Egress; len(e) != 1 || e[0].Blocked != "scheme" || e[0].URL != logged {
			t.Errorf("%q: egress %+v", url, e)
		}
	}
	if len(w.dials()) > 0 {
		t.Errorf("dialled %v", w.dials())
	}
}

func TestProxyIsIgnored(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://127.0.0.1:9")
	w := newWorld(t, sends("text/plain", "hello"), nil)
	if got := w.must("https://site.example/").Text; got != "hello" {
		t.Errorf("got %q", got)
	}
	if diff := cmp.Diff([]string{publicAddr + ":443"}, w.dials()); diff != "" {
		t.Error(diff)
	}
}

func TestCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/plain", "hello"), nil)
	w.names.answers["wrong.example."] = [][]string{{publicAddr}}
	_, _, err := w.fetch("https://wrong.example/")
	if e := failure(t, err); e.Category != tools.PermanentFailure || !strings.Contains(e.Message, "certificate") {
		t.Errorf("wrong name: %+v", e)
	}
	strange := newWorld(t, sends("text/plain", "hello"), func(o *web.Options) { _, o.Roots = identity(t) })
	_, _, err = strange.fetch("https://site.example/")
	if e := failure(t, err); e.Category != tools.PermanentFailure || !strings.Contains(e.Message, "certificate") {
		t.Errorf("unknown authority: %+v", e)
	}
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	w = newWorld(t, sends("text/plain", "hello"), func(o *web.Options) {
		o.Dial = func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, plain.Listener.Addr().String())
		}
	})
	_, _, err = w.fetch("https://site.example/")
	if e := failure(t, err); e.Category != tools.PermanentFailure && e.Category != tools.NetworkError {
		t.Errorf("no TLS: %+v", e)
	}
}

func TestLookupFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/plain", "hello"), nil)
	_, _, err := w.fetch("https://nowhere.example/")
	if e := failure(t, err); e.Category != tools.PermanentFailure || e.Retryable || strings.Contains(e.Message, "10.9") {
		t.Errorf("unknown host: %+v", e)
	}
	w.names.answers["empty.example."] = [][]string{{}}
	if _, _, err = w.fetch("https://empty.example/"); failure(t, err).Category != tools.PermanentFailure {
		t.Errorf("no addresses: %v", err)
	}
	w.names.err = &net.DNSError{Err: "server misbehaving", Server: "10.9.8.7:53"}
	_, _, err = w.fetch("https://site.example/")
	if e := failure(t, err); e.Category != tools.NetworkError || !e.Retryable || strings.Contains(e.Message, "10.9") {
		t.Errorf("server failure: %+v", e)
	}
	w.names.err = &net.DNSError{Err: "i/o timeout", IsTimeout: true}
	if _, _, err = w.fetch("https://site.example/"); failure(t, err).Category != tools.Timeout {
		t.Errorf("timeout: %v", err)
	}
}
