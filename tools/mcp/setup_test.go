package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// modeVariable makes the test binary a server.
const modeVariable = "TEST_SERVER_MODE"

func TestMain(m *testing.M) {
	if code, ok := mcptest.Main(); ok { // this process is a server that is not kind
		os.Exit(code)
	}
	if mode := os.Getenv(modeVariable); mode != "" {
		serveStdio(mode)
		return
	}
	goleak.VerifyTestMain(m)
}

// serveStdio is a server in a separate process.
func serveStdio(mode string) {
	ctx := context.Background()
	switch mode {
	case "junk": // prints before it talks
		fmt.Fprintln(os.Stdout, "Welcome to the server!")
		fmt.Fprintln(os.Stdout, `{"level":"info","text":"a log line in JSON"}`)
		fmt.Fprintln(os.Stdout, "{broken")
	case "exit":
		fmt.Fprintln(os.Stderr, "no license key: sk-secret-123")
		// Not os.Exit: with -cover it would end the output with a warning that the coverage of this process is lost.
		fmt.Fprintln(os.Stderr, syscall.Exec("/bin/sh", []string{"sh", "-c", "exit 3"}, nil))
	case "flood":
		flood()
		return
	case "odd":
		serveOdd()
		return
	case "noise":
		for range 20000 {
			fmt.Fprintln(os.Stdout, "noise")
		}
		select {}
	case "child": // a process that would stay behind
		child := exec.CommandContext(ctx, "/bin/sh", "-c", "sleep 1000 & echo $! > child.pid; wait")
		child.Stdout, child.Stderr = os.Stderr, os.Stderr
		if err := child.Start(); err != nil {
			os.Exit(4)
		}
	case "stubborn":
		ignoreTerm()
		_ = testServer().Run(ctx, &sdk.StdioTransport{})
		select {}
	}
	if err := testServer().Run(ctx, &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// flood answers the handshake and then with a message without an end.
func flood() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var req struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(in.Bytes(), &req) != nil || len(req.ID) == 0 {
			continue
		}
		switch req.Method {
		case "initialize":
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"flood","version":"1"}}}`+"\n", req.ID)
		case "tools/list":
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"big","inputSchema":{"type":"object"}}]}}`+"\n", req.ID)
		case "tools/call":
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"`, req.ID)
			chunk := strings.Repeat("x", 1<<16)
			for range 1 << 14 { // 1 GiB
				if _, err := os.Stdout.WriteString(chunk); err != nil {
					return
				}
			}
		default:
			fmt.Fprintf(os.Stdout, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}`+"\n", req.ID)
		}
	}
}

type echoIn struct {
	Text string `json:"text"`
}

type sumIn struct {
	A int `json:"a"`
	B int `json:"b"`
}

type sumOut struct {
	Sum int `json:"sum"`
}

// testServer returns a well-behaved server.
func testServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "tester", Version: "1.0"}, &sdk.ServerOptions{Instructions: "Use echo to hear yourself."})
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says the text.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in echoIn) (*sdk.CallToolResult, any, error) {
			return text(in.Text), nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "sum", Description: "Adds."}, func(_ context.Context, _ *sdk.CallToolRequest, in sumIn) (*sdk.CallToolResult, sumOut, error) {
		return nil, sumOut{Sum: in.A + in.B}, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "fail"}, func(context.Context, *sdk.CallToolRequest, echoIn) (*sdk.CallToolResult, any, error) {
		return nil, nil, errors.New("it did not work")
	})
	sdk.AddTool(s, &sdk.Tool{Name: "hang"}, func(ctx context.Context, _ *sdk.CallToolRequest, _ echoIn) (*sdk.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	sdk.AddTool(s, &sdk.Tool{Name: "die"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		fmt.Fprintln(os.Stderr, "fatal: token sk-secret-123 is wrong")
		os.Exit(7)
		return nil, nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "env"}, func(_ context.Context, _ *sdk.CallToolRequest, in echoIn) (*sdk.CallToolResult, any, error) {
		if in.Text == "" {
			return text(strings.Join(os.Environ(), "\n")), nil, nil
		}
		return text(os.Getenv(in.Text)), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "where"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		dir, err := os.Getwd()
		return text(fmt.Sprintf("%d %s", os.Getpid(), dir)), nil, err
	})
	sdk.AddTool(s, &sdk.Tool{Name: "meta"}, func(_ context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		return text(fmt.Sprint(req.Params.Meta["zephbot/caller"])), nil, nil
	})
	sdk.AddTool(s, &sdk.Tool{Name: "roots"}, func(ctx context.Context, req *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		res, err := req.Session.ListRoots(ctx, nil) //nolint:staticcheck // servers use it
		if err != nil {
			return nil, nil, err
		}
		var list []string
		for _, r := range res.Roots {
			list = append(list, r.URI)
		}
		return text(strings.Join(list, " ")), nil, nil
	})
	return s
}

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

// commandName is what the test binary is called where commands are looked up.
const commandName = "node"

// path makes a PATH in which the test binary is a permitted command.
func path(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(self, filepath.Join(dir, commandName)); err != nil {
		t.Skipf("no symbolic links here: %v", err)
	}
	return dir
}

// stdio returns a server that runs the test binary in a mode.
func stdio(id, mode string) mcp.Server {
	return mcp.Server{ID: id, Command: commandName, Env: map[string]string{modeVariable: mode, "GORACE": "atexit_sleep_ms=0"}, Timeout: time.Minute}
}

// inProcess returns a server inside this process; stop breaks its newest connection.
func inProcess(t *testing.T, id string, make func() *sdk.Server) (cfg mcp.Server, stop func()) {
	t.Helper()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var last *sdk.ServerSession
	t.Cleanup(wg.Wait)
	connect := func(ctx context.Context) (sdk.Transport, error) {
		a, b := sdk.NewInMemoryTransports()
		session, err := make().Connect(context.WithoutCancel(ctx), b, nil)
		if err != nil {
			return nil, err
		}
		wg.Go(func() { _ = session.Wait() })
		mu.Lock()
		last = session
		mu.Unlock()
		return a, nil
	}
	stop = func() {
		mu.Lock()
		defer mu.Unlock()
		_ = last.Close()
	}
	return mcp.Server{ID: id, Timeout: time.Minute, Connect: connect}, stop
}

// web returns a server on the network; trusted, because it is a local one.
func web(t *testing.T, id string, h http.Handler) mcp.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return mcp.Server{ID: id, URL: s.URL, Trust: guard.Trusted, Timeout: time.Minute}
}

// bench is a manager that runs.
type bench struct {
	*mcp.Manager
	registry *tools.Registry
	store    *store
	notices  chan mcp.Notice
	stop     func() // ends Run and waits for it
	log      *lines
}

// store is a mcp.Store in memory.
type store struct {
	mu     sync.Mutex
	values map[string]string
	err    error
}

func (s *store) Load(_ context.Context, key string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.values[key], s.err
}

func (s *store) Save(_ context.Context, key, value string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.values[key] = value
	}
	return s.err
}

// lines is a log.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// start runs a manager; the attempts are quick and many.
func start(t *testing.T, o mcp.Options) *bench {
	t.Helper()
	b := &bench{registry: &tools.Registry{}, notices: make(chan mcp.Notice, 1000), log: &lines{}}
	o.Registry = b.registry
	if o.Store == nil {
		b.store = &store{values: map[string]string{}}
		o.Store = b.store
	}
	o.AllowedCommands = append(o.AllowedCommands, commandName)
	o.Environ = append(o.Environ, "PATH="+path(t)+":/usr/bin:/bin", "GITHUB_TOKEN=ghp_inherited", "LANG=C")
	if o.WorkDir == "" {
		o.WorkDir = t.TempDir()
	}
	if o.Sandbox.Helper == "" {
		o.Sandbox.Helper = sandbox.Self
	}
	if o.Backoff == 0 {
		o.Backoff = time.Millisecond
	}
	if o.ListTimeout == 0 {
		o.ListTimeout = time.Minute
	}
	o.Notify = func(n mcp.Notice) { b.notices <- n }
	o.Redact = func(s string) string { return strings.ReplaceAll(s, "sk-secret-123", "[redacted]") }
	o.Log = zerolog.New(b.log)
	m, err := mcp.New(o)
	if err != nil {
		t.Fatal(err)
	}
	b.Manager = m
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := m.Run(ctx); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	b.stop = sync.OnceFunc(func() {
		cancel()
		wg.Wait()
	})
	t.Cleanup(b.stop)
	if len(o.Servers) == 0 {
		b.ready(t)
	}
	return b
}

// ready waits for the first attempts.
func (b *bench) ready(t *testing.T) {
	t.Helper()
	if err := b.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// notice waits for a notice of a kind.
func (b *bench) notice(t *testing.T, kind mcp.Kind) mcp.Notice {
	t.Helper()
	for {
		select {
		case n := <-b.notices:
			if n.Kind == kind {
				return n
			}
		case <-t.Context().Done():
			t.Fatalf("no notice %s", kind)
		}
	}
}

// status returns the state of the only server.
func (b *bench) status(t *testing.T) mcp.Status {
	t.Helper()
	list := b.Statuses()
	if len(list) != 1 {
		t.Fatalf("got %d servers", len(list))
	}
	return list[0]
}

// accept takes what waits of a server, as it is shown.
func (b *bench) accept(t *testing.T, id string) ([]string, error) {
	t.Helper()
	p, err := b.Pending(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return b.Accept(t.Context(), id, p.Code, "")
}

// call runs a tool as Ann of chat 42 would.
func (b *bench) call(t *testing.T, name, args string) (*tools.Result, *tools.Trail, error) {
	t.Helper()
	return b.callFor(t.Context(), name, args, tools.Origin{Channel: "telegram", Session: "telegram:42", Chat: "42", Turn: "t1", Caller: "telegram:42"})
}

func (b *bench) callFor(ctx context.Context, name, args string, origin tools.Origin) (*tools.Result, *tools.Trail, error) {
	tool, ok := b.registry.Lookup(name)
	call := &tools.Call{ID: "c1", Tool: name, Args: json.RawMessage(args), Origin: origin, Trail: &tools.Trail{}}
	if !ok {
		return nil, call.Trail, fmt.Errorf("there is no tool %s among %v", name, b.registry.Names())
	}
	call.Def = tool.Definition
	res, err := tool.Run(ctx, call)
	return res, call.Trail, err
}

// want calls a tool and expects a text.
func (b *bench) want(t *testing.T, name, args, text string) {
	t.Helper()
	res, _, err := b.call(t, name, args)
	if err != nil {
		t.Fatalf("%s: %v\n%s", name, err, b.log)
	}
	if res.Text != text {
		t.Errorf("%s says %q, want %q", name, res.Text, text)
	}
}

// code takes the error of a call apart.
func code(t *testing.T, err error) (guard.Code, *tools.Error) {
	t.Helper()
	var e *guard.Error
	var te *tools.Error
	if !errors.As(err, &e) || !errors.As(err, &te) {
		t.Fatalf("not a typed error: %v", err)
	}
	return e.Code, te
}

// hosted returns a test server whose sessions end with the test, because a client that was cut off cannot end its
// session.
func hosted(t *testing.T) *sdk.Server {
	t.Helper()
	s := testServer()
	t.Cleanup(func() {
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
	return s
}
