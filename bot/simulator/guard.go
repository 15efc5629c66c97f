package simulator

import (
	"context"
	"embed"
	"io/fs"
	"net/http"
	"slices"

	"github.com/zephbot/zephbot/bot/syntax"
	"github.com/zephbot/zephbot/bot/webpage"
)

//go:embed page
var pageFiles embed.FS

// pageHandler serves the page and its API, but only to this origin.
func (s *Simulator) pageHandler(serving context.Context) http.Handler {
	mux := s.newRoutes(serving)
	// The directory is embedded in the program: Sub cannot fail.
	files, _ := fs.Sub(pageFiles, "page")
	static := webpage.Files(files)
	mux.HandleFunc("GET /{$}", static.ServeHTTP)
	mux.HandleFunc("GET /page/languages.js", serveLanguages)
	mux.HandleFunc("GET /page/", http.StripPrefix("/page", webpage.NoListing(static)).ServeHTTP)
	guard := webpage.Guard{
		Known: func(host string) bool { return slices.Contains(s.hosts, host) },
		Where: "this is the simulator at " + s.URL(), Entry: "/", Microphone: true, // voice messages
	}
	return guard.Wrap(mux)
}

// serveLanguages serves the rules by which code is coloured, which the terminal has too, as a module.
func serveLanguages(rw http.ResponseWriter, _ *http.Request) {
	rw.Header().Set("Content-Type", "text/javascript; charset=utf-8")
	_, _ = rw.Write([]byte("export default ")) // a client that has gone concerns nobody
	_, _ = rw.Write(syntax.Languages)
}
