package web_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/web"
)

// Answers in the shape of the documentation of each service.
const (
	searxngAnswer = `{"query":"go","number_of_results":2,"results":[
{"url":"https://go.dev/","title":"The Go\nLanguage","content":"Build <b>simple</b> &amp; fast software.","engine":"duckduckgo","parsed_url":["https","go.dev","/","","",""],"score":1.0,"category":"general"},
{"url":"ftp://go.dev/","title":"No page","content":""},
{"url":"https://pkg.go.dev/","title":"","content":null}],"answers":[],"corrections":[],"infoboxes":[],"suggestions":[],"unresponsive_engines":[["google","timeout"]]}`
	braveAnswer = `{"query":{"original":"go","more_results_available":true},"mixed":{"type":"mixed"},"type":"search","web":{"type":"search","results":[
{"title":"The Go Language","url":"https://go.dev/","is_source_local":false,"description":"Build <strong>simple</strong> &amp; fast software.","profile":{"name":"Go"},"language":"en"},
{"title":"","url":"https://pkg.go.dev/","description":""}],"family_friendly":true}}`
	tavilyAnswer = `{"query":"go","follow_up_questions":null,"answer":null,"images":[],"results":[
{"title":"The Go Language","url":"https://go.dev/","content":"Build simple & fast software.","score":0.98,"raw_content":null},
{"title":"","url":"https://pkg.go.dev/","content":"","score":0.5,"raw_content":null}],"response_time":1.2}`
	goFound = "1. The Go Language\n   https://go.dev/\n   Build simple & fast software.\n2. pkg.go.dev\n   https://pkg.go.dev/"
)

// service is a search service on this machine.
type service struct {
	*httptest.Server
	asked []*http.Request
	body  string
}

func serve(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) *service {
	t.Helper()
	s := &service{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked = append(s.asked, r)
		data, _ := io.ReadAll(r.Body)
		s.body = string(data)
		answer(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func says(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func search(t *testing.T, o web.SearchOptions, args map[string]any) (*tools.Result, *tools.Call, error) {
	t.Helper()
	o.Web.LogRequests, o.Web.LogBlocked, o.Web.LogBytes = true, true, true
	if o.Web.Timeout == 0 {
		o.Web.Timeout = time.Hour
	}
	tool, err := web.NewSearch(o)
	if err != nil {
		t.Fatal(err)
	}
	c := call(t, web.SearchName, args)
	res, err := tool.Run(t.Context(), c)
	return res, c, err
}

// TestSearch: each service is asked in its way, and what it finds looks the same. A private address that the operator
// has named is allowed.
func TestSearch(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ backend, answer, method, uri, header, value, body string }{
		{web.SearXNG, searxngAnswer, "GET", "/search?format=json&q=go+lang", "Authorization", "", ""},
		{web.Brave, braveAnswer, "GET", "/?count=5&q=go+lang", "X-Subscription-Token", "k3y", ""},
		{web.Tavily, tavilyAnswer, "POST", "/", "Authorization", "Bearer k3y", `{"max_results":5,"query":"go lang","search_depth":"basic"}`},
	} {
		t.Run(tc.backend, func(t *testing.T) {
			t.Parallel()
			s := serve(t, says(200, tc.answer))
			o := web.SearchOptions{Backend: tc.backend, URL: s.URL}
			if tc.value != "" {
				o.Key = "k3y"
			}
			res, c, err := search(t, o, map[string]any{"query": " go lang ", "max_results": 5})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(goFound, res.Text); diff != "" {
				t.Errorf("found (-want +got):\n%s", diff)
			}
			if res.Untrusted == "" {
				t.Error("what was found is not marked as foreign")
			}
			r := s.asked[0]
			if r.Method != tc.method || r.URL.RequestURI() != tc.uri || r.Header.Get(tc.header) != tc.value || s.body != tc.body {
				t.Errorf("asked %s %s %q %s", r.Method, r.URL.RequestURI(), r.Header.Get(tc.header), s.body)
			}
			e := c.Trail.Egress
			if len(e) != 1 || e[0].Method != tc.method || e[0].Status != 200 || e[0].Bytes == 0 || strings.Contains(e[0].URL, "?") || e[0].Host != "127.0.0.1" {
				t.Errorf("egress %+v", e)
			}
		})
	}
}

func TestSearchFinds(t *testing.T) {
	t.Parallel()
	s := serve(t, says(200, searxngAnswer))
	res, _, err := search(t, web.SearchOptions{Backend: web.SearXNG, URL: s.URL + "/search"}, map[string]any{"query": "go", "max_results": 1})
	if err != nil || !strings.HasPrefix(res.Text, "1. The Go") || strings.Contains(res.Text, "2. ") || s.asked[0].URL.Path != "/search" {
		t.Errorf("one result: %+v %v", res, err)
	}
	none := serve(t, says(200, `{"query":"x","results":[]}`))
	if res, _, err := search(t, web.SearchOptions{Backend: web.SearXNG, URL: none.URL}, map[string]any{"query": "x"}); err != nil || !strings.HasPrefix(res.Text, "No results") {
		t.Errorf("no result: %+v %v", res, err)
	}
	long := strings.Repeat("ж", 5000)
	many := `{"results":[` + strings.TrimSuffix(strings.Repeat(`{"url":"https://a.example/","title":"`+long+`","content":"`+long+`"},`, 50), ",") + `]}`
	s = serve(t, says(200, many))
	res, _, err = search(t, web.SearchOptions{Backend: web.Tavily, URL: s.URL, Key: "k"}, map[string]any{"query": "x"})
	if err != nil || strings.Count(res.Text, "https://a.example/") != 8 || len(res.Text) > 16<<10 {
		t.Errorf("many long results: %v", err)
	}
}

// TestSearchFails: each failure is said in words, without address, key or words of the service.
func TestSearchFails(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request)
		want   string
		retry  bool
	}{
		"no JSON":    {says(200, "<html>s3cret</html>"), "something that is no list of results", false},
		"other JSON": {says(200, `{"error":"s3cret"}`), "something that is no list of results", false},
		"key":        {says(401, "s3cret"), "refuses to answer", false},
		"format":     {says(403, "s3cret"), "refuses to answer", false},
		"busy":       {says(429, "s3cret"), "429", true},
		"down":       {says(503, "s3cret"), "503", true},
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://169.254.169.254/", http.StatusFound)
		}, "redirects, which is not followed", false},
		"too large":   {says(200, `{"results":[`+strings.Repeat(" ", 3<<20)+`]}`), "far more than a list", false},
		"compression": {func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "br") }, "compression", false},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}, "ended early", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, tc.answer)
			_, c, err := search(t, web.SearchOptions{Backend: web.Brave, URL: s.URL, Key: "k3y-in-use"}, map[string]any{"query": "x"})
			e := failure(t, err)
			text := tools.Feedback(e)
			if !strings.Contains(text, tc.want) || e.Retryable != tc.retry || strings.Contains(text, "s3cret") || strings.Contains(text, "k3y") || strings.Contains(text, "127.0.0.1") {
				t.Errorf("%s (retry %t)", text, e.Retryable)
			}
			if len(s.asked) != 1 || len(c.Trail.Egress) != 1 {
				t.Errorf("asked %d times, egress %v", len(s.asked), c.Trail.Egress)
			}
		})
	}
}

// TestSearchGuards: what the operator has not named must be public, and a service that hangs is not waited for.
func TestSearchGuards(t *testing.T) {
	t.Parallel()
	private := &names{answers: map[string][][]string{"api.tavily.com.": {{"10.0.0.1"}}}}
	dialed := false
	dial := func(context.Context, string, string) (net.Conn, error) {
		dialed = true
		return nil, io.EOF
	}
	_, c, err := search(t, web.SearchOptions{Backend: web.Tavily, Key: "k", Web: web.Options{Resolver: private, Dial: dial}}, map[string]any{"query": "x"})
	if e := failure(t, err); !e.Denied() || dialed || c.Trail.Egress[0].Blocked != "ssrf" {
		t.Errorf("a vendor with a private address: %+v, dialed %t, egress %+v", e, dialed, c.Trail.Egress)
	}
	hang := serve(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	_, _, err = search(t, web.SearchOptions{Backend: web.SearXNG, URL: hang.URL, Web: web.Options{Timeout: 50 * time.Millisecond}}, map[string]any{"query": "x"})
	if e := failure(t, err); e.Category != tools.Timeout {
		t.Errorf("a service that hangs: %+v", e)
	}
	gone := &names{}
	_, _, err = search(t, web.SearchOptions{Backend: web.SearXNG, URL: "http://nowhere.example", Web: web.Options{Resolver: gone}}, map[string]any{"query": "x"})
	if e := failure(t, err); e.Mistake || !strings.Contains(e.Message, "was not found") {
		t.Errorf("a host that does not exist: %+v", e)
	}
}

func TestSearchOptions(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]web.SearchOptions{
		`backend "bing"`:             {Backend: "bing"},
		"url is missing":             {Backend: web.SearXNG},
		"api_key is missing: brave":  {Backend: web.Brave},
		"api_key is missing: tavily": {Backend: web.Tavily},
		"api_key holds":              {Backend: web.Brave, Key: "a\nb"},
		"url is no http":             {Backend: web.SearXNG, URL: "https://user:s3cret@host/"},
		"url is no http or":          {Backend: web.SearXNG, URL: "file:///x"},
	} {
		if _, err := web.NewSearch(o); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", want, err)
		}
	}
	tool, err := web.NewSearch(web.SearchOptions{Backend: web.Brave, Key: "k"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tool.Describe(t.Context(), call(t, web.SearchName, map[string]any{"query": " "})); failure(t, err).Category != tools.InvalidParameters {
		t.Errorf("an empty query: %v", err)
	}
	subject, err := tool.Describe(t.Context(), call(t, web.SearchName, map[string]any{"query": "x"}))
	if err != nil || subject.Show != "x" || subject.Note.String() != "asks api.search.brave.com" {
		t.Errorf("%+v %v", subject, err)
	}
}

func FuzzSearchAnswers(f *testing.F) {
	for _, text := range []string{searxngAnswer, braveAnswer, tavilyAnswer, "{}", "null"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, backend := range []string{web.SearXNG, web.Brave, web.Tavily} {
			web.ReadAnswer(backend, []byte(text))
		}
	})
}
