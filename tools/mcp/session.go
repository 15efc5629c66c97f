package mcp

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	sessionHeader = "Mcp-Session-Id"
	maxRefusal    = 8 << 10         // bytes of a refusal in which its reason is looked for
	staleLimit    = 2 * time.Second // for calls under way in a session that the server has forgotten
)

// forgotten are the words with which servers refuse a session that they do not know with 400, although the
// specification demands 404 (2025-11-25, session management). Each is from a server in use;
// TestForgottenSessions names them.
var forgotten = []string{ //nolint:gochecknoglobals // a constant list
	"no valid session id", "no session id or not init", "invalid session id", "invalid or missing session id",
	"invalid or expired session", "session not found", "session expired", "unknown session", "unknown mcp-session-id",
	"server not initialized",
}

// forgetsSession reports whether an answer refuses our session. The server has done nothing then. It turns the answer
// into one without a body: 404, in which the library knows it (it takes an error in the body for one of the request,
// and knows no 400), and ends the connection; for a call 503, which fails that call alone, so that others that were
// sent at the same time get their own answers.
func forgetsSession(req *http.Request, resp *http.Response) bool {
	if req.Header.Get(sessionHeader) == "" ||
		resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusBadRequest {
		return false
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
		return false
	}
	_ = resp.Body.Close() // nobody reads on
	resp.StatusCode, resp.Status = http.StatusNotFound, "404 Not Found"
	if _, call := req.Context().Value(flightKey{}).(*flight); call {
		resp.StatusCode, resp.Status = http.StatusServiceUnavailable, "503 Service Unavailable"
	}
	resp.Body, resp.ContentLength = http.NoBody, 0
	resp.Header.Del("Content-Type")
	return true
}

// expireConn has new calls wait for another session, and ends the connection once the
// calls under way have their answers.
func (c *conn) expireConn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stale || c.shutting {
		return
	}
	c.stale = true
	c.wg.Go(func() {
		limit := time.NewTimer(staleLimit)
		defer limit.Stop()
		select {
		case <-c.idle:
		case <-limit.C:
		case <-c.done:
		}
		c.endConn(sdk.ErrSessionMissing)
	})
}

// isUsable reports whether new calls may use the connection.
func (c *conn) isUsable() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.stale && !c.isOver()
}

type readCloser struct {
	io.Reader
	io.Closer
}

// redirectSlash returns the request that a redirect asks for, if it only adds or takes away the slash at
// the end of the path: nil otherwise. Method, body and scheme stay: frameworks behind a proxy name http
// although they are reached by https.
func redirectSlash(req *http.Request, resp *http.Response) *http.Request {
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
