package netrule_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/policy/netrule"
)

// TestForms: the corners of addresses.
func TestForms(t *testing.T) {
	t.Parallel()
	if got := netrule.HostOf("https://a.example:8443/x"); got != "a.example" {
		t.Errorf("host: %q", got)
	}
	if got := netrule.HostOf("https://%zz/"); got != "" {
		t.Errorf("host of no address: %q", got)
	}
	for host, want := range map[string]bool{"a.example": true, "x.calm.example": true, "b.example": false} {
		if got := netrule.Listed(host, []string{"[", "a.example", "*.calm.example"}); got != want {
			t.Errorf("%s listed: %v", host, got)
		}
	}
	if got := netrule.Find(strings.Repeat("a ", 1<<20)+"https://late.example/", 9, false); len(got) != 0 {
		t.Errorf("behind what is searched: %v", got)
	}
	if got := netrule.Find("see https://a.example/x]y and so on", 9, false); !slices.Contains(got, "https://a.example/x") {
		t.Errorf("before a bracket: %v", got)
	}
	if _, err := netrule.Normal(&url.URL{Scheme: "https", Host: "[fe80::1%eth0]", Path: "/"}); err == nil {
		t.Error("an address with a zone has a normal form")
	}
	if _, ok := netrule.Plain("https://[2001:db8::1%25a]/"); ok {
		t.Error("an address with a zone is plain")
	}
	if u, err := netrule.Normal(&url.URL{Scheme: "https", Host: "a.example", Path: "/\u00e9", RawPath: "/%C3%a9%4A"}); err != nil || u.String() == "" {
		t.Errorf("%v, %v", u, err)
	}
	if u, err := url.Parse("https://a.example/%4A%4F"); err != nil {
		t.Error(err)
	} else if n, err := netrule.Normal(u); err != nil || n.String() != "https://a.example/JO" {
		t.Errorf("%v, %v", n, err)
	}
	deep := "a.example/x%2525252525252541"
	if netrule.Repeats("https://a.example/xA", []string{deep}) {
		t.Error("too many layers of encoding were undone")
	}
	if !netrule.Repeats("https://a.example/%zz", []string{"fetch a.example/%zz please"}) {
		t.Error("an address that is no encoding is not recognised")
	}
}
