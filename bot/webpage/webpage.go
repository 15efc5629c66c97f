// Package webpage is what the web pages of the program share: their common files, the guard against other web pages,
// and the JSON of their APIs. A page adds files and handlers of its own.
package webpage

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
)

//go:embed page
var shared embed.FS

// policy is the Content-Security-Policy of the pages: nothing from other origins, no inline code, and no text of a chat
// that becomes markup.
const policy = "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"object-src 'none'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Files serves the files of a page, and the common ones: dom.js, story.js, theme.js, base.css, icon.svg. A file of the
// page replaces a common one of the same name. own is the page's files; directories are not listed.
func Files(own fs.FS) http.Handler {
	// The directory is embedded in the program: Sub cannot fail.
	common, _ := fs.Sub(shared, "page")
	return http.FileServerFS(layers{own, common})
}

// layers are file systems; the first one that has a file gives it.
type layers []fs.FS

// Open implements fs.FS.
func (l layers) Open(name string) (fs.File, error) {
	for _, files := range l {
		if f, err := files.Open(name); err == nil {
			return f, nil
		}
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// NoListing refuses the directories below a page.
func NoListing(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/") {
			http.NotFound(rw, r)
			return
		}
		next.ServeHTTP(rw, r)
	})
}

// Guard refuses requests that do not come from the page itself. A foreign name in Host is a web page whose own name
// resolves to this machine (DNS rebinding); a foreign Origin or Sec-Fetch-Site is a cross-origin request.
type Guard struct {
	// Known reports whether the page is reached under this host, which is in lower case and may have a port.
	Known func(host string) bool
	// Where says under which address the page is, for those who use another one.
	Where string
	// Entry is the path that a link of another page may lead to.
	Entry string
	// Microphone lets the page record sound.
	Microphone bool
}

// Wrap returns next behind the guard.
func (g Guard) Wrap(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		g.setHeaders(rw.Header())
		if !g.Known(strings.ToLower(r.Host)) {
			Refuse(rw, http.StatusMisdirectedRequest, fmt.Errorf("%s, not %q", g.Where, r.Host))
			return
		}
		if err := cross.Check(r); err != nil || g.isForeign(r) {
			Refuse(rw, http.StatusForbidden, errors.New("only the page itself may ask this"))
			return
		}
		next.ServeHTTP(rw, r)
	})
}

func (g Guard) setHeaders(head http.Header) {
	microphone := "()"
	if g.Microphone {
		microphone = "(self)"
	}
	head.Set("Content-Security-Policy", policy)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("X-Frame-Options", "DENY")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cross-Origin-Opener-Policy", "same-origin")
	head.Set("Cross-Origin-Resource-Policy", "same-origin")
	head.Set("Permissions-Policy", "camera=(), geolocation=(), microphone="+microphone)
	head.Set("Cache-Control", "no-store")
}

// isForeign reports whether the request comes from another web page, even if it changes nothing: the check of package
// http lets every GET pass. Following a link to the page is allowed.
func (g Guard) isForeign(r *http.Request) bool {
	if origin := strings.ToLower(r.Header.Get("Origin")); origin != "" {
		_, host, ok := strings.Cut(origin, "://")
		return !ok || host != strings.ToLower(r.Host)
	}
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.URL.Path != g.Entry
}
