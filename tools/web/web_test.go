package web_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/web"
)

func TestEgressLog(t *testing.T) {
	t.Parallel()
	tick := time.Unix(0, 0)
	w := newWorld(t, sends("text/plain", "hello"), func(o *web.Options) {
		o.Now = func() time.Time { tick = tick.Add(7 * time.Millisecond); return tick }
	})
	_, c, err := w.fetch("https://SITE.example:443/a/../b?q=secret")
	if err != nil {
		t.Fatal(err)
	}
	want := []tools.Egress{{URL: "https://site.example/b", Host: "site.example", Method: "GET", Status: 200, Bytes: 5, Millis: 7}}
	if diff := cmp.Diff(want, c.Trail.Egress); diff != "" {
		t.Error(diff)
	}
	quiet := newWorld(t, sends("text/plain", "hello"), func(o *web.Options) { o.LogBlocked, o.LogBytes = false, false })
	if _, c, err = quiet.fetch("https://site.example/"); err != nil || c.Trail.Egress[0].Bytes != 0 {
		t.Errorf("%v, egress %+v", err, c.Trail.Egress)
	}
	if _, c, _ = quiet.fetch("https://localhost/"); len(c.Trail.Egress) != 0 {
		t.Errorf("egress %+v", c.Trail.Egress)
	}
	silent := newWorld(t, sends("text/plain", "hello"), func(o *web.Options) { o.LogRequests = false })
	if _, c, err = silent.fetch("https://site.example/"); err != nil || len(c.Trail.Egress) != 0 {
		t.Errorf("%v, egress %+v", err, c.Trail.Egress)
	}
	bare := call(t, "fetch", map[string]any{"url": "https://localhost/"})
	bare.Trail = nil // as where only a decision is asked for
	if _, err := w.tools["fetch"].Describe(t.Context(), bare); err == nil {
		t.Error("described")
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	_, err := web.New(web.Options{Timeout: -1, MaxBody: -1, AllowedDomains: []string{"a b"}, DeniedDomains: []string{"*"}, UserAgent: "a\r\nb: c"})
	if err == nil {
		t.Fatal("wrong options passed")
	}
	for _, want := range []string{"timeout", "max body", "allowed domains: [0]", "denied domains: [0]", "user agent"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in %v", want, err)
		}
	}
	list, err := web.New(web.Options{})
	if err != nil || len(list) != 2 {
		t.Fatalf("zero options: %v", err)
	}
	for _, tool := range list {
		if !tool.Definition.ReadOnly || tool.Describe == nil {
			t.Errorf("%+v", tool.Definition)
		}
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/plain", "x"), nil)
	tests := map[string]string{
		"https://EXAMPLE.com":                            "https://example.com/",
		"https://example.com.:443/a#frag":                "https://example.com/a",
		"https://example.com/public/%2e%2E/pr%69vate":    "https://example.com/private",
		"https://example.com/a/./b/../c%2fd?x=%41&y=../": "https://example.com/a/c%2Fd?x=%41&y=../",
		"https://example.com:8443/?":                     "https://example.com:8443/",
		"https://bücher.example/ü":                       "https://xn--bcher-kva.example/%C3%BC",
		"https://[2606:4700:4700:0::1111]:443/":          "https://[2606:4700:4700::1111]/",
	}
	for raw, want := range tests {
		for _, name := range []string{"fetch", "web_scrape"} {
			args := map[string]any{"url": raw}
			if name == "web_scrape" {
				args["select"] = "p"
			}
			s, err := w.tools[name].Describe(t.Context(), call(t, name, args))
			if err != nil {
				t.Errorf("%s: %v", raw, err)
				continue
			}
			if diff := cmp.Diff(tools.Subject{Inputs: []string{want}, Paths: []string{want}, Show: want}, s); diff != "" {
				t.Errorf("%s: %s", raw, diff)
			}
		}
	}
	if _, err := w.tools["web_scrape"].Describe(t.Context(), call(t, "web_scrape", map[string]any{"url": "https://example.com", "select": "a[[["})); failure(t, err).Category != tools.InvalidParameters {
		t.Errorf("got %v", err)
	}
	if len(w.names.lookups()) > 0 {
		t.Error("describing looked a name up")
	}
}
