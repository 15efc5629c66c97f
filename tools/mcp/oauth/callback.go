package oauth

import (
	"crypto/subtle"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

const (
	callbackLimit  = 10 * time.Second // for a browser to send its request and to receive the page
	callbackHeader = 32 << 10         // bytes, including the address
)

// page is the only page that the browser sees.
const page = `<!doctype html>
<html lang="en"><meta charset="utf-8"><title>zephbot</title>
<body><h1>%s</h1><p>You can close this window.</p></body></html>
`

// server returns the HTTP server that receives the browser's redirect.
func (s *signIn) server() *http.Server {
	server := &http.Server{
		Handler:     http.HandlerFunc(s.callback),
		ReadTimeout: callbackLimit, WriteTimeout: callbackLimit, MaxHeaderBytes: callbackHeader,
	}
	server.SetKeepAlivesEnabled(false) // there is only one request
	return server
}

func (s *signIn) callback(w http.ResponseWriter, r *http.Request) {
	status, text := http.StatusOK, "Thank you. The rest happens in the chat."
	switch {
	case r.URL.Path != callbackPath:
		status, text = http.StatusNotFound, "There is nothing here."
	case r.Method != http.MethodGet:
		status, text = http.StatusMethodNotAllowed, "Only GET is possible."
	case !s.ours(r.Host): // DNS rebinding: a foreign name that resolves to this machine
		status, text = http.StatusForbidden, "This address is not ours."
	default:
		if err := s.deliver(r.URL.Query()); err != nil {
			status, text = http.StatusBadRequest, guard.AsError(err, s.a.s.ID, "").Message
		}
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	h.Set("Referrer-Policy", "no-referrer") // the address contains the code
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	// html/template is not used: it makes the linker keep every method of every type, which costs 15 MB.
	_, _ = fmt.Fprintf(w, page, html.EscapeString(text)) // the browser may be gone
}

// ours reports whether a host is the listener's.
func (s *signIn) ours(host string) bool {
	own := s.listener.Addr().String()
	_, port, _ := strings.Cut(own, ":")
	return host == own || host == "localhost:"+port
}

// complete accepts the address that a person copied from the browser.
func (s *signIn) complete(text string) error {
	id := s.a.s.ID
	wrong := invalid(id, "this is not the address at which the browser ended; it begins with "+s.redirect+"?")
	text = strings.Trim(strings.TrimSpace(text), "<>\"'`")
	if len(text) > callbackHeader {
		return wrong
	}
	if !strings.Contains(text, "://") {
		text = "http://" + text // browsers hide the scheme
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || !s.ours(u.Host) || u.Path != callbackPath || u.User != nil {
		return wrong
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return wrong
	}
	return s.deliver(q)
}

// deliver passes an answer of the authorization server to the waiting sign-in. It accepts only one answer, and only one
// that belongs to our link; any other changes nothing. The error is for the person who brought the answer.
func (s *signIn) deliver(q url.Values) error {
	id := s.a.s.ID
	for _, name := range []string{"code", "state", "iss", "error"} {
		if len(q[name]) > 1 { // RFC 6749, 3.1
			return invalid(id, "the address names "+name+" twice")
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch state := q.Get("state"); {
	case s.state == "" || subtle.ConstantTimeCompare([]byte(state), []byte(s.state)) == 0:
		return invalid(id,
			"this address does not belong to the sign-in that is waiting; open the link of the newest message")
	case s.taken:
		return invalid(id, "the answer to this sign-in has come already")
	case q.Get("error") == "" && q.Get("code") == "":
		return invalid(id, "the address holds no code")
	}
	s.taken = true
	if code := q.Get("error"); code != "" {
		s.refuse = &denied{code: guard.Line(code, 60), text: guard.Line(q.Get("error_description"), maxForeign)}
	}
	s.answers <- &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}
	return nil
}
