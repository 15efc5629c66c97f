package web_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// TestAttackRedirectedOut: a redirect is followed only as far as the gate lets it be, and the request is not made.
func TestAttackRedirectedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(rw http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			http.Redirect(rw, r, "/b", http.StatusFound)
		case "/b":
			http.Redirect(rw, r, "https://other.example/?q=s3cret#x", http.StatusFound)
		default:
			rw.Header().Set("Content-Type", "text/plain")
			_, _ = rw.Write([]byte("here"))
		}
	}, nil)
	var seen []string
	refuse := errors.New("a person has to decide")
	for _, stop := range []bool{true, false} {
		seen = nil
		c := call(t, "fetch", map[string]any{"url": "https://site.example/a"})
		c.Follow = func(before, to string) error {
			seen = append(seen, before+" "+to)
			if stop && strings.Contains(to, "other") {
				return refuse
			}
			return nil
		}
		dials := len(w.dials())
		res, err := w.tools["fetch"].Run(t.Context(), c)
		if stop && (!errors.Is(err, refuse) || len(w.dials())-dials != 2) || !stop && (err != nil || res.Text != "here") {
			t.Errorf("stop %t: %+v, %v, dialled %v", stop, res, err, w.dials()[dials:])
		}
		want := []string{"https://site.example/a https://site.example/b", "https://site.example/b https://other.example/?q=s3cret"}
		if !slices.Equal(seen, want) {
			t.Errorf("asked about %q", seen)
		}
		last := c.Trail.Egress[len(c.Trail.Egress)-1]
		if stop && (last.Blocked != "redirect" || last.Hop != 2 || strings.Contains(last.URL, "s3cret")) {
			t.Errorf("%+v", last)
		}
	}
}
