package simulator

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
)

//go:embed page
var pageFiles embed.FS

// policy is the Content-Security-Policy of the page: nothing from other origins, no inline code, and no text of a chat
// that becomes markup.
const policy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"object-src 'none'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// pageHandler serves the page and its API, but only to this origin.
func (s *Simulator) pageHandler(serving context.Context) http.Handler {
	mux := s.routes(serving)
	// The directory is embedded in the program: Sub cannot fail.
	files, _ := fs.Sub(pageFiles, "page")
	static := http.FileServerFS(files)
	mux.HandleFunc("GET /{$}", static.ServeHTTP)
	mux.HandleFunc("GET /page/", http.StripPrefix("/page", noListing(static)).ServeHTTP)
	return s.guard(mux)
}

func noListing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(rw, r)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// guard refuses requests that do not come from the page itself. A foreign name in Host is a web page whose own name
// resolves to this machine (DNS rebinding); a foreign Origin or Sec-Fetch-Site is a cross-origin request.
func (s *Simulator) guard(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		head := rw.Header()
		head.Set("Content-Security-Policy", policy)
		head.Set("X-Content-Type-Options", "nosniff")
		head.Set("X-Frame-Options", "DENY")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Cross-Origin-Opener-Policy", "same-origin")
		head.Set("Cross-Origin-Resource-Policy", "same-origin")
		head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(self)") // voice messages
		head.Set("Cache-Control", "no-store")
		if !slices.Contains(s.hosts, strings.ToLower(r.Host)) {
			s.refuse(rw, http.StatusMisdirectedRequest,
				fmt.Errorf("this is the simulator at %s, not %q", s.URL(), r.Host))
			return
		}
		if err := cross.Check(r); err != nil || s.foreign(r) {
			s.refuse(rw, http.StatusForbidden, errors.New("only the simulator's own page may ask this"))
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// foreign reports whether the request comes from another web page, even if it changes nothing: cross.Check lets every
// GET pass. Following a link to the page is allowed.
func (s *Simulator) foreign(r *http.Request) bool {
	if origin := r.Header.Get("Origin"); origin != "" {
		return !slices.Contains(s.hosts, strings.TrimPrefix(strings.ToLower(origin), "http://"))
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.URL.Path != "/"
}
