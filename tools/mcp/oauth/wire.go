package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/policy/netrule"
)

const (
	maxAnswer    = 1 << 20 // bytes of a document
	maxRedirects = 3
	requestLimit = 20 * time.Second
)

// wire carries the requests of one sign-in or renewal. It restricts them to addresses that the server may name, limits
// the answers, and records what the library does not report: the issuer of a token endpoint, why an address was
// refused, and the texts that must not be logged.
type wire struct {
	base  http.RoundTripper
	named netrule.Named

	mu      sync.Mutex
	issuers map[string]string // by token endpoint
	noPKCE  bool              // an authorization server does not support S256
	refusal error             // of the first address that was refused
	answers []string          // of token and registration endpoints
	granted bool              // the last answer contained a secret
}

func newWire(s Server) *wire {
	return &wire{base: s.Transport, named: s.Named(), issuers: map[string]string{}}
}

// client returns an HTTP client that makes its requests through w.
func (w *wire) client() *http.Client {
	return &http.Client{
		Transport: w, Timeout: requestLimit,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			first, last := via[0], via[len(via)-1]
			switch {
			case first.Method != http.MethodGet:
				return http.ErrUseLastResponse // a code or a refresh token must not be redirected
			case len(via) > maxRedirects:
				return errors.New("too many redirects")
			case last.URL.Scheme == "https" && req.URL.Scheme != "https":
				return errors.New("a redirect from https to http")
			default:
				return nil
			}
		},
	}
}

// RoundTrip implements http.RoundTripper.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := w.named.CheckURL(req.URL); err != nil {
		w.refuse(err)
		return nil, err
	}
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		// the guard of the transport, which knows the resolved address
		if rule, ok := errors.AsType[*netrule.Error](err); ok {
			w.refuse(rule)
		}
		return nil, err
	}
	if strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/event-stream") {
		return resp, nil // an MCP server that needs no sign-in; nobody reads the answer
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	err = errors.Join(err, resp.Body.Close())
	if err != nil {
		return nil, err
	}
	if len(body) > maxAnswer {
		return nil, fmt.Errorf("the answer of %s is longer than %d bytes", req.URL.Host, maxAnswer)
	}
	w.note(req, resp, body)
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp, nil
}

func (w *wire) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.refusal == nil {
		w.refusal = err
	}
}

// note records what an answer contains.
func (w *wire) note(req *http.Request, resp *http.Response, body []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if req.Method != http.MethodGet {
		if text := string(bytes.TrimSpace(body)); text != "" {
			w.answers = append(w.answers, string(body), text)
		}
		w.granted = resp.StatusCode < 300
		return
	}
	var meta struct {
		Issuer   string   `json:"issuer"`
		TokenURL string   `json:"token_endpoint"`
		Methods  []string `json:"code_challenge_methods_supported"`
	}
	if resp.StatusCode != http.StatusOK || json.Unmarshal(body, &meta) != nil || meta.Issuer == "" ||
		meta.TokenURL == "" {
		return
	}
	w.issuers[meta.TokenURL] = meta.Issuer
	w.noPKCE = w.noPKCE || !slices.Contains(meta.Methods, "S256")
}

// issuer returns the authorization server of a token endpoint. Without metadata it is the origin of the endpoint (MCP
// 2025-03-26, fallback).
func (w *wire) issuer(tokenURL string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if issuer, ok := w.issuers[tokenURL]; ok {
		return issuer, nil
	}
	u, err := url.Parse(tokenURL)
	if err != nil {
		return "", errors.New("the address of the token endpoint is not valid")
	}
	return u.Scheme + "://" + u.Host, nil
}

// checkEndpoints checks the token endpoints before a person signs in in vain.
func (w *wire) checkEndpoints() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for address := range w.issuers {
		u, err := url.Parse(address)
		if err != nil {
			return errors.New("the address of the token endpoint is not valid")
		}
		if err := w.named.CheckURL(u); err != nil {
			return err
		}
	}
	return nil
}

// offersS256 reports whether the server supports S256, the only PKCE method that we use. The library does not check
// this.
func (w *wire) offersS256() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.noPKCE
}

func (w *wire) refused() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refusal
}

// used marks the answers so far as understood: later errors do not quote them.
func (w *wire) used() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.granted = false
}

// scrub removes the answers of token and registration endpoints from the text of an error. The library quotes answers
// that it cannot read, in whole or in part.
func (w *wire) scrub(err error) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.granted {
		return "the answer of the authorization server could not be read"
	}
	text := err.Error()
	for _, s := range w.answers {
		text = strings.ReplaceAll(text, s, redacted)
	}
	return text
}

// isDocument reports whether a client id is the address of a client metadata document.
func isDocument(clientID string) bool {
	u, err := url.Parse(clientID)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Path != "" && u.Path != "/"
}

// local returns the address of a listener on this machine.
func local(port string) string { return net.JoinHostPort("127.0.0.1", port) }
