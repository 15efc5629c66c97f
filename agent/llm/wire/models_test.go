package wire_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/agent/llm/dialect"
	"github.com/zephbot/zephbot/agent/llm/wire"
)

// TestModels: the list is sorted and without gaps; what is no list is an error without the key.
func TestModels(t *testing.T) {
	t.Parallel()
	answers := map[string]string{
		"/good": `{"data":[{"id":"b"},{"id":"a"},{"id":""},{"id":"b"}]}`, "/empty": `{}`, "/page": `<html>`,
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := answers[r.URL.Path]
		if !ok || r.Header.Get("Authorization") != "Bearer key-key" {
			w.WriteHeader(http.StatusForbidden)
		}
		_, _ = fmt.Fprint(w, text)
	}))
	defer s.Close()
	ask := func(path string) ([]string, error) {
		return wire.ListModels(t.Context(), wire.NewClient(nil), s.URL+path, http.Header{"Authorization": {"Bearer key-key"}}, "key-key")
	}
	if got, err := ask("/good"); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v %v", got, err)
	}
	if got, err := ask("/empty"); err != nil || len(got) != 0 {
		t.Errorf("%v %v", got, err)
	}
	for path, want := range map[string]string{"/page": "cannot be read", "/none": "status 403"} {
		if _, err := ask(path); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "key-key") {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSizes: the places of a server are asked one after the other, with the key where each wants it.
func TestSizes(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1beta/models" || r.URL.Query().Get("pageSize") == "" || r.Header.Get("X-Goog-Api-Key") != "key-key" || r.Header.Get("Authorization") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = fmt.Fprint(w, `{"models":[{"name":"models/m","inputTokenLimit":1000,"outputTokenLimit":100}]}`)
	}))
	defer s.Close()
	d, _ := dialect.Named("gemini")
	places := append([]dialect.Listing{{Path: "/nowhere", Window: []string{"x"}}}, d.Listings()...)
	header := func() http.Header { return http.Header{"Authorization": {"Bearer key-key"}} }
	got := wire.AskSizes(t.Context(), wire.NewClient(nil), s.URL+"/v1beta/openai", places, "m", header, "key-key")
	if want := (dialect.Sizes{Window: 1000, Output: 100}); got != want {
		t.Errorf("%+v", got)
	}
	if got := wire.AskSizes(t.Context(), wire.NewClient(nil), s.URL+"/v1beta/openai", places, "other", header, "key-key"); got != (dialect.Sizes{}) {
		t.Errorf("another model: %+v", got)
	}
}
