package web

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/html"
)

// backends are the services that web_search can ask, by name.
func backends() map[string]backend {
	return map[string]backend{
		SearXNG: {
			request: askSearXNG,
			read:    readSearXNG,
			refused: "SearXNG must have json among search.formats in its settings.",
		},
		Brave: {
			vendor: "https://api.search.brave.com/res/v1/web/search", request: askBrave, read: readBrave,
			refused: "web_search.api_key may be wrong.",
		},
		Tavily: {
			vendor:  "https://api.tavily.com/search",
			request: askTavily,
			read:    readTavily,
			refused: "web_search.api_key may be wrong.",
		},
	}
}

var errNoResults = errors.New("the answer has no list of results")

func withQuery(base *url.URL, values url.Values) *url.URL {
	u := *base
	u.RawQuery = values.Encode()
	return &u
}

// askSearXNG: docs.searxng.org, Search API.
func askSearXNG(base *url.URL, key, query string, _ int) (string, *url.URL, http.Header, []byte) {
	u := base
	if !strings.HasSuffix(strings.TrimSuffix(u.Path, "/"), "/search") {
		u = base.JoinPath("search")
	}
	header := http.Header{}
	if key != "" { // of a proxy in front of it
		header.Set("Authorization", "Bearer "+key)
	}
	return http.MethodGet, withQuery(u, url.Values{"q": {query}, "format": {"json"}}), header, nil
}

func readSearXNG(data []byte) ([]found, error) {
	answer, err := decodeJSON[struct {
		Results *[]struct {
			Title   string `json:"title"`
			URL     string `json:"url"`
			Content string `json:"content"`
		} `json:"results"`
	}](data)
	if err != nil || answer.Results == nil {
		return nil, errors.Join(errNoResults, err)
	}
	var list []found
	for _, r := range *answer.Results {
		list = append(list, found{r.Title, r.URL, r.Content})
	}
	return list, nil
}

// askBrave: Brave Search API, Web Search.
func askBrave(base *url.URL, key, query string, most int) (string, *url.URL, http.Header, []byte) {
	u := withQuery(base, url.Values{"q": {query}, "count": {strconv.Itoa(most)}})
	return http.MethodGet, u, http.Header{"X-Subscription-Token": {key}}, nil
}

// readBrave: an answer without pages has no part "web".
func readBrave(data []byte) ([]found, error) {
	answer, err := decodeJSON[struct {
		Type string `json:"type"`
		Web  struct {
			Results []struct {
				Title       string `json:"title"`
				URL         string `json:"url"`
				Description string `json:"description"`
			} `json:"results"`
		} `json:"web"`
	}](data)
	if err != nil || answer.Type != "search" {
		return nil, errors.Join(errNoResults, err)
	}
	var list []found
	for _, r := range answer.Web.Results {
		list = append(list, found{r.Title, r.URL, r.Description})
	}
	return list, nil
}

// askTavily: Tavily API, Search.
func askTavily(base *url.URL, key, query string, most int) (string, *url.URL, http.Header, []byte) {
	// texts and numbers: cannot fail
	body, _ := json.Marshal(map[string]any{"query": query, "max_results": most, "search_depth": "basic"})
	return http.MethodPost, base, http.Header{
		"Authorization": {"Bearer " + key},
		"Content-Type":  {"application/json"},
	}, body
}

func readTavily(data []byte) ([]found, error) {
	return readSearXNG(data) // the fields that matter have the same names
}

// withoutMarkup returns the text of an HTML fragment.
func withoutMarkup(text string) string {
	if !strings.ContainsAny(text, "<&") {
		return text
	}
	var b strings.Builder
	z := html.NewTokenizer(strings.NewReader(text))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return b.String()
		case html.TextToken:
			b.WriteString(html.UnescapeString(string(z.Raw())))
		}
	}
}
