package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/oauth"
)

// document is the address under which the referee knows a client that describes itself.
const document = "https://conformance-test.local/client-metadata.json"

// maxSignIns bounds how often a person is patient with a server.
const maxSignIns = 3

// throughSignIn calls the tools of a server that wants a sign-in. The person is a browser that follows the link; the
// referee's sign-in page says yes.
func throughSignIn(ctx context.Context, url, scenario string) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	how := oauth.Server{ID: serverID, URL: url, Trusted: true, Transport: transport, ClientID: document}
	var given struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if scenario != "" {
		if err := json.Unmarshal([]byte(scenario), &given); err != nil {
			return err
		}
	}
	if given.ID != "" {
		how.ClientID, how.ClientSecret = given.ID, oauth.Secret(given.Secret)
	}
	person, err := oauth.New(oauth.Options{Ask: visit(transport), Log: zerolog.New(os.Stderr)})
	if err != nil {
		return err
	}
	registry := &tools.Registry{}
	m, err := mcp.New(mcp.Options{
		Registry: registry, Log: zerolog.New(os.Stderr), OAuth: person.Hook(func(string) (oauth.Server, bool) { return how, true }),
		Servers: []mcp.Server{{ID: serverID, URL: url, Trust: guard.Trusted, OAuth: true}},
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { _ = m.Run(run) }) // always nil
	wg.Go(func() { _ = person.Run(run) })
	defer wg.Wait()
	defer stop()
	if err := m.Ready(ctx); err != nil {
		return err
	}
	for range maxSignIns {
		err := callAll(ctx, m, registry, "")
		if e, ok := errors.AsType[*guard.Error](err); !ok || e.Code != guard.AuthFailure {
			return err
		}
		if err := person.SignIn(ctx, serverID); err != nil {
			return err
		}
		if st, err := m.Restart(ctx, serverID); err != nil {
			fmt.Fprintf(os.Stderr, "restart: %+v, %v\n", st, err) // it may want another sign-in
		}
	}
	return callAll(ctx, m, registry, "")
}

// visit is a browser without a window: it opens the link and goes where the pages send it.
func visit(t http.RoundTripper) func(ctx context.Context, server, link string) error {
	return func(ctx context.Context, _, link string) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := (&http.Client{Transport: t}).Do(req)
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
}
