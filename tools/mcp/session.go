package mcp

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const (
	sessionHeader = "Mcp-Session-Id"
	maxRefusal    = 8 << 10 // bytes of a refusal in which its reason is looked for
)

// forgotten are the words with which servers refuse a session that they do not know with 400, although the specification
// demands 404 (2025-11-25, session management). Each is from a server in use; TestForgottenSessions names them.
var forgotten = []string{ //nolint:gochecknoglobals // a constant list
	"no valid session id", "no session id or not init", "invalid session id", "invalid or missing session id",
	"invalid or expired session", "session not found", "session expired", "unknown session", "unknown mcp-session-id",
	"server not initialized",
}

// forgets turns a refusal of our session into the 404 without a body in which the library knows it: it takes an error in
// the body for one of the request, and knows no 400. The server has done nothing then.
func forgets(req *http.Request, resp *http.Response) {
	if req.Header.Get(sessionHeader) == "" ||
		resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest {
		return
	}
	head, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err != nil {
		head = nil
	}
	text := bytes.ToLower(head)
	known := resp.StatusCode == http.StatusNotFound && !bytes.Contains(text, []byte("-32601")) // a method is not found
	for _, words := range forgotten {
		known = known || bytes.Contains(text, []byte(words))
	}
	if !known {
		resp.Body = readCloser{io.MultiReader(bytes.NewReader(head), resp.Body), resp.Body}
		return
	}
	_ = resp.Body.Close() // nobody reads on
	resp.StatusCode, resp.Status = http.StatusNotFound, "404 Not Found"
	resp.Body, resp.ContentLength = http.NoBody, 0
	resp.Header.Del("Content-Type")
}

type readCloser struct {
	io.Reader
	io.Closer
}

// slashed returns the request that a redirect asks for, if it only adds or takes away the slash at the end of the path: nil
// otherwise. Method, body and scheme stay: frameworks behind a proxy name http although they are reached by https.
func slashed(req *http.Request, resp *http.Response) *http.Request {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil
	}
	to, err := req.URL.Parse(resp.Header.Get("Location"))
	if err != nil || !sameButSlash(req.URL, to) || req.Body != nil && req.GetBody == nil {
		return nil
	}
	next := req.Clone(req.Context())
	next.URL.Path, next.URL.RawPath = to.Path, to.RawPath
	if req.GetBody != nil {
		if next.Body, err = req.GetBody(); err != nil {
			return nil
		}
	}
	return next
}

func sameButSlash(from, to *url.URL) bool {
	return strings.EqualFold(from.Host, to.Host) && from.EscapedPath() != to.EscapedPath() &&
		strings.TrimSuffix(from.EscapedPath(), "/") == strings.TrimSuffix(to.EscapedPath(), "/") &&
		(to.RawQuery == "" || to.RawQuery == from.RawQuery)
}
