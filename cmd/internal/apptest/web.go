package apptest

import (
	"cmp"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/llmtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
)

// site is the only web of a scenario: it serves the parts of the scenario that are named by their address, for every
// host below example.com. Everything else is a 404.
type site struct {
	server *httptest.Server
	pages  map[string]string // by address without https://

	mu     sync.Mutex
	broken []brokenPage
	asked  map[string]int // requests by address
}

// brokenPage is an address that fails for a while.
type brokenPage struct {
	address      string
	status, left int // left = -1: forever
}

const scheme = "https://"

// openSite serves the parts whose name is an address.
func openSite(parts map[string]string) *site {
	w := &site{pages: map[string]string{}, asked: map[string]int{}}
	for name, text := range parts {
		if address, ok := strings.CutPrefix(name, scheme); ok {
			w.pages[address] = text
		}
	}
	w.server = httptest.NewTLSServer(w)
	return w
}

// ServeHTTP implements http.Handler.
func (w *site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	address := r.Host + r.URL.RequestURI()
	if status := w.status(address); status != 0 {
		rw.WriteHeader(status)
		return
	}
	text, ok := w.pages[address]
	if !ok {
		rw.WriteHeader(http.StatusNotFound)
		return
	}
	rw.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = rw.Write([]byte(text)) // a client that went away is seen by the scenario
}

// status counts a request, and says how it fails; 0 = it does not.
func (w *site) status(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked[address]++
	for i := range w.broken {
		b := &w.broken[i]
		if b.address != address || b.left == 0 {
			continue
		}
		if b.left > 0 {
			b.left--
		}
		return b.status
	}
	return 0
}

func (w *site) count(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked[strings.TrimPrefix(address, scheme)]
}

// line plays "web ADDRESS fails STATUS [COUNT]", "web ADDRESS works" or "web ADDRESS asked N".
func (w *site) line(words []string) error {
	usage := errors.New("web ADDRESS fails STATUS [COUNT], web ADDRESS works, or web ADDRESS asked N")
	if len(words) < 3 {
		return usage
	}
	address := strings.TrimPrefix(words[1], scheme)
	switch {
	case words[2] == "asked" && len(words) == 4:
		if n := w.count(address); n != number(words[3]) {
			return fmt.Errorf("it was asked %d times", n)
		}
		return nil
	case words[2] == "works" && len(words) == 3:
		w.mu.Lock()
		defer w.mu.Unlock()
		w.broken = slices.DeleteFunc(w.broken, func(b brokenPage) bool { return b.address == address })
		return nil
	case words[2] == "fails" && (len(words) == 4 || len(words) == 5) && number(words[3]) >= 400:
		b := brokenPage{address: address, status: number(words[3]), left: -1}
		if len(words) == 5 {
			b.left = number(words[4])
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.broken = append(w.broken, b)
		return nil
	default:
		return usage
	}
}

// internet resolves every name to the site.
func (w *site) internet() app.Internet {
	roots := x509.NewCertPool()
	roots.AddCert(w.server.Certificate())
	return app.Internet{
		Resolver: onePublicAddress{}, Roots: roots,
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, w.server.Listener.Addr().String())
		},
	}
}

// onePublicAddress resolves every name to one public address, so that the checks of addresses are unchanged.
type onePublicAddress struct{}

// LookupNetIP implements web.Resolver.
func (onePublicAddress) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
}

// knowing is the scripted model, extended because a script cannot know the name of a stored long output in advance:
// $overflow in the arguments of a call is the newest such name that it was shown, in any conversation.
type knowing struct {
	*llmtest.Model
	mu   sync.Mutex
	last string
}

var overflowName = regexp.MustCompile(`overflow:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// Chat implements llm.Provider.
func (k *knowing) Chat(ctx context.Context, req *llm.Request, onDelta func(string)) (*llm.Response, error) {
	name := k.look(req)
	resp, err := k.Model.Chat(ctx, req, onDelta)
	if err != nil {
		return nil, err
	}
	for i, u := range resp.Uses {
		resp.Uses[i].Args = json.RawMessage(strings.ReplaceAll(string(u.Args), "$overflow", name))
	}
	return resp, nil
}

// look remembers the newest name in the request.
func (k *knowing) look(req *llm.Request) string {
	found := ""
	for _, m := range req.Messages {
		if m.Result == nil {
			continue
		}
		if names := overflowName.FindAllString(m.Result.Text, -1); len(names) > 0 {
			found = names[len(names)-1]
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.last = cmp.Or(found, k.last, "$overflow")
	return k.last
}
