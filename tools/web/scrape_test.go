package web_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/web"
)

func TestScrape(t *testing.T) {
	t.Parallel()
	const abc = "<ul><li>A</li><li>B</li><li>C</li></ul>"
	tests := []struct {
		name, html, selector, extract string
		limit                         any
		want                          string
	}{
		{"all", abc, "li", "text", 10, "A\nB\nC"},
		{"limit", abc, "li", "text", 2, "A\nB"},
		{"limit 0", abc, "li", "text", 0, "No results for selector: li"},
		{"no limit given", strings.Repeat("<p>x</p>", 20), "p", "", nil, strings.TrimSpace(strings.Repeat("x\n", 10))},
		{"href", `<a href="/page?x=1">link</a>`, "a", "attr:href", 10, "/page?x=1"},
		{"attribute name", `<a HREF="u">link</a>`, "a", "attr: HREF ", 10, "u"},
		{"attribute missing", `<a>x</a><a href=u>y</a>`, "a", "attr:href", 10, "u"},
		{"attribute lines", "<a title='a\r\nb'>x</a>", "a", "attr:title", 10, "a b"},
		{"empty", "<li>  </li><li>A</li>", "li", "text", 10, "A"},
		{"empty counts", "<li>  </li><li>A</li>", "li", "text", 1, "No results for selector: li (1 elements match, but what was asked for is empty or hidden in them)"},
		{"child", "<div><span>inner</span></div><span>outer</span>", "div>span", "text", 10, "inner"},
		{"child with spaces", "<div><span>inner</span></div><span>outer</span>", " div > span ", "text", 10, "inner"},
		{"group", abc + "<b>D</b>", "b, li:first-child", "text", 10, "A\nD"},
		{"unknown extract", abc, "li", "unknown", 10, "A\nB\nC"},
		{"none", abc, "table", "text", 10, "No results for selector: table"},
		{"html", "<p>a <b>x</b></p>", "p", "html", 10, "a <b>x</b>"},
		{"blocks are not glued", "<div><h1>News</h1><p>Para<b>graph</b></p>x<br>y<table><tr><td>1<td>2</table></div>", "div", "text", 10, "News Paragraph x y 1 2"},
		{"one line", "<p>a\n  b</p><pre>c\nd</pre>", "p, pre", "text", 10, "a b\nc d"},
		{"hidden parts", "<p>seen<span hidden>no</span><script>no</script><!-- no --><i style='display:none'>no</i></p>", "p", "text", 10, "seen"},
		{"hidden around", "<div style='display:none'><p>no</p></div><p>yes\u200b</p>", "p", "text", 10, "yes"},
		{"script by name", "<script type='application/ld+json'>{\"a\": 1}</script>", "script[type='application/ld+json']", "text", 10, `{"a": 1}`},
		{"title by name", "<title>T</title>", "title", "text", 10, "T"},
		{"meta", "<meta name=description content='D'>", "meta[name=description]", "attr:content", 10, "D"},
		{"entities", "<p>a &amp; &lt;b&gt;</p>", "p", "text", 10, "a & <b>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, sends("text/html; charset=utf-8", tt.html), nil)
			args := map[string]any{"url": "https://site.example/p?q=1", "select": tt.selector}
			if tt.extract != "" {
				args["extract"] = tt.extract
			}
			if tt.limit != nil {
				args["limit"] = tt.limit
			}
			res, _, err := w.run("web_scrape", args)
			if err != nil {
				t.Fatal(err)
			}
			res.Links = nil // see TestScrapeLinks
			if diff := cmp.Diff(&tools.Result{Text: tt.want, Untrusted: "https://site.example/p"}, res); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestScrapeArguments(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/html", "<p>x"), nil)
	tests := []map[string]any{
		{"select": "[[[invalid"},
		{"select": "a[[["},
		{"select": ""},
		{"select": "p::before"},
		{"select": "p:unknown"},
		{"select": strings.Repeat("a", 1001)},
		{"select": "p", "limit": -1},
		{"select": "p", "extract": "attr:"},
		{"select": "p,"},
		{"select": "p", "more": 1},
	}
	for _, args := range tests {
		args["url"] = "https://site.example/"
		res, _, err := w.run("web_scrape", args)
		if err == nil {
			t.Errorf("%v: %q", args, res.Text)
		} else if e := failure(t, err); e.Category != tools.InvalidParameters {
			t.Errorf("%v: %+v", args, e)
		}
	}
	if _, _, err := w.run("web_scrape", map[string]any{"url": "https://site.example/", "select": "p", "limit": "x"}); failure(t, err).Category != tools.TypeMismatch {
		t.Errorf("got %v", err)
	}
	if dials := w.dials(); len(dials) > 0 {
		t.Errorf("dialled %v", dials)
	}
}

func TestScrapePages(t *testing.T) {
	t.Parallel()
	args := map[string]any{"url": "https://site.example/", "select": "p"}
	tests := []struct {
		name    string
		handler http.HandlerFunc
		want    tools.Category
		says    string
	}{
		{"json", sends("application/json", "{}"), tools.PermanentFailure, "application/json, not to an HTML page"},
		{"deep", sends("text/html", strings.Repeat("<div>", 600)), tools.PermanentFailure, "nested too deeply"},
		{"status", func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusNotFound) }, tools.PermanentFailure, "404"},
		{"empty", func(http.ResponseWriter, *http.Request) {}, "", ""},
	}
	for _, tt := range tests {
		res, _, err := newWorld(t, tt.handler, nil).run("web_scrape", args)
		if tt.want == "" {
			if err != nil || !strings.HasPrefix(res.Text, "No results") {
				t.Errorf("%s: %v %v", tt.name, res, err)
			}
			continue
		}
		if e := failure(t, err); e.Category != tt.want || !strings.Contains(e.Message, tt.says) {
			t.Errorf("%s: %+v", tt.name, e)
		}
	}
}

// What many nested elements give together is bounded, too.
func TestScrapeIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, sends("text/html", strings.Repeat("<div>", 300)+strings.Repeat("x", 500)), func(o *web.Options) { o.MaxBody = 2100 })
	res, _, err := w.run("web_scrape", map[string]any{"url": "https://site.example/", "select": "div", "limit": 1000})
	if err != nil {
		t.Fatal(err)
	}
	text, _, ok := strings.Cut(res.Text, "\n[cut: ")
	if !ok || !res.Truncated || len(text) > 2100 {
		t.Errorf("truncated %t, %d bytes", res.Truncated, len(text))
	}
}

func TestScrapeStops(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	// The page ends when the server's handler returns, and the call is given up before it is searched.
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		rw.Header().Set("Content-Type", "text/html")
		cancel()
		_, _ = rw.Write([]byte("<p>x"))
	}, nil)
	res, err := w.tools["web_scrape"].Run(ctx, call(t, "web_scrape", map[string]any{"url": "https://site.example/", "select": "p"}))
	if err == nil {
		t.Fatalf("got %q", res.Text)
	}
	if e := failure(t, err); e.Category != tools.Cancelled || e.Retryable {
		t.Errorf("%+v", e)
	}
}

func TestSelectorCost(t *testing.T) {
	t.Parallel()
	page := "<div><div><div><ul>" + strings.Repeat("<li>x</li>", 20000) + "</ul></div></div></div>"
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		"li", "div li:nth-child(2n+1)", "ul > li", "ul > li + li", "li ~ li", "html body div div div ul li", "a, b, c, d e f", "li:contains('a ~ b ~ c ~ d')",
		`[title="a ~ b ~ c"] [x='\'~ ~ ~ ~'] li`, `a\~b\~c\~d`, "li:not(.a):not(.b)", "div:has(> li)", "li:matches(^(a|b) ~ ~ ~ [)]$)", "::before",
	} {
		if c := web.Cost(s, doc); c > 1e9 || c < 1 {
			t.Errorf("%s: %g", s, c)
		}
	}
	for _, s := range []string{"li ~ li ~ li ~ li", "*:has(*:has(*:has(*)))", "li:not(a ~ b ~ c ~ d)", "x, li:has(a ~ b ~ c)", "li:has(a ~ b ~ c"} {
		if c := web.Cost(s, doc); c <= 1e9 {
			t.Errorf("%s: %g", s, c)
		}
	}
	w := newWorld(t, sends("text/html", page), nil)
	_, _, err = w.run("web_scrape", map[string]any{"url": "https://site.example/", "select": "a ~ b ~ c ~ li"})
	if e := failure(t, err); e.Category != tools.InvalidParameters || !strings.Contains(e.Message, "too complicated") {
		t.Errorf("%+v", e)
	}
}

// TestScrapeLinks: what an attribute or markup names relative to the page is told as an address too.
func TestScrapeLinks(t *testing.T) {
	t.Parallel()
	const page = `<base href="/dir/"><p><a href="a?x=1">A</a> <a href="https://full.example/">B</a> <img src=../c.png alt=c> <a href="javascript:d">D</a></p>`
	for _, tt := range []struct {
		selector, extract string
		want              []string
	}{
		{"a", "attr:href", []string{"https://site.example/dir/a?x=1"}},
		{"p", "html", []string{"https://site.example/dir/a?x=1", "https://site.example/c.png"}},
		{"img", "attr:src", []string{"https://site.example/c.png"}},
		{"img", "attr:alt", nil},
		{"p", "text", nil},
	} {
		w := newWorld(t, sends("text/html; charset=utf-8", page), nil)
		res, _, err := w.run("web_scrape", map[string]any{"url": "https://site.example/p?q=1", "select": tt.selector, "extract": tt.extract})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, res.Links); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", tt.selector, tt.extract, diff)
		}
	}
}
