package oauth

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
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

// wire carries the requests of one sign-in or renewal. It holds them to addresses that the server may name, bounds what
// comes back, and remembers what the library does not hand on: which issuer a token endpoint belongs to, why an address
// was refused, and the words that must not get into a log.
type wire struct {
	base    http.RoundTripper
	trusted bool

	mu      sync.Mutex
	issuers map[string]string // by token endpoint
	noPKCE  bool              // an authorization server does not offer S256
	refusal error             // of the first address that was refused
	answers []string          // of token and registration endpoints
	granted bool              // the last of them brought a secret
}

func newWire(s Server) *wire {
	return &wire{base: s.Transport, trusted: s.Trusted, issuers: map[string]string{}}
}

// client makes requests through w.
func (w *wire) client() *http.Client {
	return &http.Client{
		Transport: w, Timeout: requestLimit,
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			first, last := via[0], via[len(via)-1]
			switch {
			case first.Method != http.MethodGet:
				return http.ErrUseLastResponse // a code or a refresh token does not travel
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
	if err := checkAddress(req.URL, w.trusted); err != nil {
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
		return resp, nil // an MCP server that wants no sign-in; nobody reads it
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

// note remembers what stands in an answer.
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

// issuer gives the authorization server of a token endpoint. Without metadata that is its origin (MCP 2025-03-26,
// fallback).
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

// checkEndpoints says whether the token endpoints may be used, before a person signs in for nothing.
func (w *wire) checkEndpoints() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for address := range w.issuers {
		u, err := url.Parse(address)
		if err != nil {
			return errors.New("the address of the token endpoint is not valid")
		}
		if err := checkAddress(u, w.trusted); err != nil {
			return err
		}
	}
	return nil
}

// offersS256 says whether the only method of PKCE that we use is offered; the library is content with any.
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

// used says that the answers so far were understood: an error that follows does not quote them.
func (w *wire) used() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.granted = false
}

// scrub takes the answers of token and registration endpoints out of the text of an error: the library quotes what it
// cannot read, in whole or in part.
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

// checkAddress says whether an address may be requested, or shown to a person to be opened: https and public, for a
// trusted server also private and, on this machine, http.
func checkAddress(u *url.URL, trusted bool) error {
	plain := trusted && isLoopback(u.Hostname())
	if _, err := netrule.CheckURL(u.String(), netrule.Options{AllowPrivate: trusted, AllowHTTP: plain}); err != nil {
		return err
	}
	return nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// isDocument says whether a client id is the address of a client metadata document.
func isDocument(clientID string) bool {
	u, err := url.Parse(clientID)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Path != "" && u.Path != "/"
}

// local is the address of a listener on this machine.
func local(port string) string { return net.JoinHostPort("127.0.0.1", port) }
