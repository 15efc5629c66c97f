package chain_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/audit"
	"github.com/zephbot/zephbot/tools/chain"
	"github.com/zephbot/zephbot/tools/decode"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
	"github.com/zephbot/zephbot/tools/toolstest"
)

// foreign returns a chain with the tools of a server "bad" that behaves as given.
func foreign(t *testing.T, h http.Handler, log *audit.Log) (*chain.Chain, *mcp.Manager) {
	t.Helper()
	web := httptest.NewServer(h)
	registry := &tools.Registry{}
	m, err := mcp.New(mcp.Options{Registry: registry, Servers: []mcp.Server{{ID: "bad", URL: web.URL, Trust: guard.Trusted}}})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	wg.Go(func() {
		<-done
		web.CloseClientConnections()
		web.Close()
	})
	ctx := t.Context() // ends before the cleanups
	wg.Go(func() { _ = m.Run(ctx) })
	t.Cleanup(func() {
		close(done)
		wg.Wait()
	})
	return chain.New(chain.Options{
		Registry: registry, Audit: log, Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)}, Decode: decode.Options{Await: m.Await},
	}), m
}

// TestFailureOfForeignTool: a server's statement that its tool failed is kept for the model and for the audit.
func TestFailureOfForeignTool(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.New(audit.Options{Path: path, ID: "test"})
	if err != nil {
		t.Fatal(err)
	}
	c, _ := foreign(t, mcptest.Options{Behaviour: mcptest.Fails}.Handler(), log)
	res, err := c.Execute(t.Context(), &tools.Call{ID: "c1", Tool: "bad:echo", Args: json.RawMessage(`{"text":"x"}`)})
	if err != nil || !res.Error || res.Text != "the disk is full" {
		t.Errorf("%+v, %v", res, err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	line, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"mcp_error_code":"server_error"`, `"error_category":"server_error"`, `"type":"error"`} {
		if !strings.Contains(string(line), part) {
			t.Errorf("%s lacks %s", line, part)
		}
	}
}

// TestAttackSchemaHangsChat: a schema of a few kilobytes, for arguments or for a result, blocks neither a chat nor the
// shutdown of the service.
func TestAttackSchemaHangsChat(t *testing.T) {
	t.Parallel()
	c, _ := foreign(t, mcptest.Options{Behaviour: mcptest.SchemaBomb}.Handler(), nil)
	res, err := c.Execute(t.Context(), &tools.Call{ID: "c1", Tool: "bad:bomb", Args: json.RawMessage(`{"text":"x"}`)})
	if err != nil || res.Error {
		t.Errorf("the tool with the schema: %+v, %v", res, err)
	}
	res, err = c.Execute(t.Context(), &tools.Call{ID: "c2", Tool: "bad:tree", Args: json.RawMessage(`{}`)})
	if err != nil || !strings.Contains(res.Text, "could not be checked") {
		t.Errorf("the result: %+v, %v", res, err)
	}
	registry := &tools.Registry{}
	tree := json.RawMessage(`{"type":"object","$defs":{"n":{"anyOf":[{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["y"]},{"properties":{"x":{"$ref":"#/$defs/n"}},"required":["z"]}]}},"$ref":"#/$defs/n"}`)
	tool := toolstest.Echo()
	tool.Definition = tools.Definition{Name: "bad:args", Server: "bad", Schema: tree}
	if err := registry.Add(tool); err != nil {
		t.Fatal(err)
	}
	own := chain.New(chain.Options{Registry: registry, Gate: chain.GateOptions{Policy: toolstest.Always(policy.Allow)}})
	_, err = own.Execute(t.Context(), &tools.Call{ID: "c3", Tool: "bad:args", Args: json.RawMessage(strings.Repeat(`{"x":`, 50) + `{}` + strings.Repeat(`}`, 50))})
	if te := tools.AsError(err); te.Category != tools.PermanentFailure || !strings.Contains(te.Message, "cannot be checked") {
		t.Errorf("the arguments: %+v", te)
	}
}

// TestCallWaitsForItsServer: a call that was approved before a restart arrives before its server is connected, and
// waits for it.
func TestCallWaitsForItsServer(t *testing.T) {
	t.Parallel()
	kind := mcptest.Options{Behaviour: mcptest.Plain}.Handler()
	asked, open := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c, _ := foreign(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		once.Do(func() { close(asked) })
		<-open
		kind.ServeHTTP(w, r)
	}), nil)
	<-asked // it is being connected
	type end struct {
		res *tools.Result
		err error
	}
	ended := make(chan end, 1)
	go func() {
		res, err := c.Execute(t.Context(), &tools.Call{ID: "c1", Tool: "bad:echo", Definition: "of before", Args: json.RawMessage(`{"text":"late"}`)})
		ended <- end{res, err}
	}()
	close(open)
	if e := <-ended; e.err == nil || !strings.Contains(e.err.Error(), "changed since it was offered") {
		t.Errorf("%+v, %v: it did not wait", e.res, e.err)
	}
	res, err := c.Execute(t.Context(), &tools.Call{ID: "c2", Tool: "bad:echo", Args: json.RawMessage(`{"text":"late"}`)})
	if err != nil || res.Text != "late" {
		t.Errorf("%+v, %v", res, err)
	}
}

// TestForeignServerThatNeverComes: the error is a network_error that names the server, not an unknown tool.
func TestForeignServerThatNeverComes(t *testing.T) {
	t.Parallel()
	c, m := foreign(t, http.NotFoundHandler(), nil)
	if err := m.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, err := c.Execute(t.Context(), &tools.Call{ID: "c1", Tool: "bad:echo", Args: json.RawMessage(`{}`)})
	if te := tools.AsError(err); te.Category != tools.NetworkError || !strings.Contains(te.Message, "the server bad is not connected") {
		t.Errorf("%+v", te)
	}
	_, err = c.Execute(t.Context(), &tools.Call{ID: "c2", Tool: "nobody:echo", Args: json.RawMessage(`{}`)})
	if te := tools.AsError(err); te.Category != tools.ToolNotFound {
		t.Errorf("%+v", te)
	}
}
