package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/cmd/internal/cli"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// The referee starts this test binary as the client. These variables say what it is then.
const (
	roleVariable    = "CONFORMANCE_ROLE"
	programVariable = "CONFORMANCE_PROGRAM" // file of the program, for roleProgram; "" = this test binary with roleBot
)

// Roles of a process.
const (
	roleManager = "manager" // a client that is the package tools/mcp and nothing else
	roleSignIn  = "signin"  // the same with a person who signs in
	roleProgram = "program" // a client that is the whole program, in a process of its own
	roleBot     = "bot"     // that program
)

// patience is the net under everything that waits.
const patience = 2 * time.Minute

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := play(ctx, role)
	stop()
	os.Exit(code)
}

// play is the life of a process with a role. The referee gives the address of its server as the last argument.
func play(ctx context.Context, role string) int {
	if role == roleBot {
		return cli.Main(ctx, os.Args[1:], cli.Standard())
	}
	url := os.Args[len(os.Args)-1]
	client := map[string]func(context.Context, string, string) error{
		roleManager: throughManager, roleProgram: throughProgram, roleSignIn: throughSignIn,
	}[role]
	if err := client(ctx, url, os.Getenv("MCP_CONFORMANCE_CONTEXT")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// throughManager calls the tools of a server with the client alone.
func throughManager(ctx context.Context, url, scenario string) error {
	registry := &tools.Registry{}
	m, err := mcp.New(mcp.Options{
		Registry: registry, Log: zerolog.New(os.Stderr), Version: "v0.0.0-test",
		Servers: []mcp.Server{{ID: serverID, URL: url, Trust: guard.Trusted}},
	})
	if err != nil {
		return err
	}
	run, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { err = m.Run(run) })
	defer wg.Wait()
	defer stop()
	if err := m.Ready(ctx); err != nil {
		return err
	}
	return callAll(ctx, m, registry, scenario)
}

// callAll makes the calls of a scenario. How they end is for the referee to judge; an error is that of a server that is
// not connected, or wants a sign-in.
func callAll(ctx context.Context, m *mcp.Manager, registry *tools.Registry, scenario string) error {
	if st := m.Statuses()[0]; st.State != mcp.Connected {
		_, err := m.Restart(ctx, serverID)
		return fmt.Errorf("the server is %s: %s: %w", st.State, st.Problem, err)
	}
	var list []offered
	for _, d := range m.Tools(serverID) {
		_, name, _ := guard.Split(d.Name)
		list = append(list, offered{name: name, schema: d.Schema})
	}
	calls, err := wishes(list, scenario)
	if err != nil {
		return err
	}
	for i, w := range calls {
		name := guard.Qualified(serverID, w.Name)
		tool, ok := registry.Lookup(name)
		if !ok {
			return fmt.Errorf("there is no tool %s among %v", name, registry.Names())
		}
		res, err := tool.Run(ctx, &tools.Call{ID: fmt.Sprintf("c%d", i), Tool: name, Args: w.Arguments, Def: tool.Definition, Trail: &tools.Trail{}})
		fmt.Fprintf(os.Stderr, "%s: %+v, %v\n", name, res, err)
		if e, ok := errors.AsType[*guard.Error](err); ok && e.Code == guard.AuthFailure {
			return err
		}
	}
	return nil
}

// throughProgram runs the program with the server in its configuration and a scripted model, and has it answer one
// message.
func throughProgram(ctx context.Context, url, scenario string) error {
	llm := httptest.NewServer(model{context: scenario})
	defer llm.Close()
	dir, err := os.MkdirTemp("", "conformance")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is a temporary directory
	if err := os.WriteFile(filepath.Join(dir, "zephbot.toml"), []byte(configuration(url, llm.URL)), 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(), "--config", filepath.Join(dir, "zephbot.toml"), "--data-dir", filepath.Join(dir, "data"), "chat", "--json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, roleVariable + "=" + roleBot, "GORACE=atexit_sleep_ms=0"}
	cmd.Dir, cmd.Stderr = dir, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = patience
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	talked := converse(ctx, in, out)
	_ = in.Close() // the program ends with its input
	return errors.Join(talked, cmd.Wait())
}

func program() string {
	if path := os.Getenv(programVariable); path != "" {
		return path
	}
	return os.Args[0]
}

func configuration(url, model string) string {
	return fmt.Sprintf(`[llm]
primary = "scripted"
[[llm.providers]]
name = "scripted"
type = "openai"
model = "scripted"
api_key = "opens-nothing"
base_url = %q
[security]
autonomy_level = "full"
[mcp.tool_discovery]
strategy = "None"
[[mcp.servers]]
id = %q
url = %q
trust_level = "trusted"
`, model, serverID, url)
}

// state is how the answer to /status begins to speak of servers.
const state = "MCP servers:"

// converse asks for the state of the server until it is connected, has the model call, and waits for its answer.
func converse(ctx context.Context, in io.Writer, out io.Reader) error {
	events := json.NewDecoder(io.TeeReader(out, os.Stderr))
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for next := "/status"; ; {
		if _, err := fmt.Fprintln(in, next); err != nil {
			return err
		}
		text, err := reply(events)
		switch {
		case err != nil:
			return err
		case text == done, text == nothing:
			return nil
		case next == ready:
			return fmt.Errorf("the program answers %q", text)
		case strings.Contains(text, state+" 1 of 1 connected"):
			next = ready
		}
		select {
		case <-tick.C: // the program has other things to do
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// reply reads events until the program has answered a message, or said how the servers are.
func reply(events *json.Decoder) (string, error) {
	for {
		var e terminal.Event
		if err := events.Decode(&e); err != nil {
			return "", fmt.Errorf("read an event: %w", err)
		}
		switch {
		case e.Type == "answer", e.Type == "notice" && strings.Contains(e.Text, state):
			return e.Text, nil
		case e.Type == "error":
			return "", errors.New("the program says: " + e.Text)
		}
	}
}
