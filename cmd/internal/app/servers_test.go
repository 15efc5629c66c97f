package app_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

// kindServer is the name under which the test binary is an MCP server: its arguments are a behaviour and a directory
// for the numbers of its processes.
const kindServer = "kindserver"

// serveKind is the server; ok is false where the process is the tests.
func serveKind() (code int, ok bool) {
	if filepath.Base(os.Args[0]) != kindServer || len(os.Args) < 3 {
		return 0, false
	}
	gate := ""
	if len(os.Args) > 3 {
		gate = os.Args[3]
	}
	for name, value := range (mcptest.Options{Behaviour: mcptest.Behaviour(strings.ReplaceAll(os.Args[1], "_", " ")), Pids: os.Args[2], Gate: gate}).Env() {
		if err := os.Setenv(name, value); err != nil {
			return 1, true
		}
	}
	return mcptest.Main()
}

// installKind puts the server on the path of this process.
func installKind() (remove func(), err error) {
	dir, err := os.MkdirTemp("", "kindserver")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err == nil {
		// no symbolic link: the bot itself is out of reach of a server
		err = os.Link(self, filepath.Join(dir, kindServer))
	}
	if err == nil {
		err = os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	}
	return func() { _ = os.RemoveAll(dir) }, err // left-overs of tests are no failure
}

// kill ends every process of the server at once, and forgets them.
func kill(t *testing.T, pids string) {
	t.Helper()
	entries, err := os.ReadDir(pids)
	if err != nil || len(entries) == 0 {
		t.Fatalf("no process of the server: %v", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		if err := os.Remove(filepath.Join(pids, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// says waits for a message that contains a text, the n-th such from 1.
func (w *world) says(text string, n int) {
	w.t.Helper()
	w.wait(strconv.Quote(text), func(telegramtest.Shown) bool {
		seen := 0
		for _, m := range w.fake.Chat(1001) {
			if m.FromBot && strings.Contains(m.Text, text) {
				seen++
			}
		}
		return seen >= n
	})
}

// card waits for a question that contains a text.
func (w *world) card(text string) {
	w.t.Helper()
	w.wait("a question with "+strconv.Quote(text), func(m telegramtest.Shown) bool {
		// a card wraps long lines, and how long a path is depends on the machine
		whole := strings.ReplaceAll(m.Text, "↩\n", "")
		return len(m.Keyboard) > 0 && strings.Contains(whole, text)
	})
}

// connects asks for the list of servers until it has a line: after a restart nobody is told that a server is there.
func (w *world) connects(line string) {
	w.t.Helper()
	for lists := func() (all []string) {
		for _, m := range w.fake.Chat(1001) {
			if m.FromBot && (strings.HasPrefix(m.Text, "MCP servers:") || strings.HasPrefix(m.Text, "No MCP server.")) {
				all = append(all, m.Text)
			}
		}
		return all
	}; ; {
		before := len(lists())
		w.fake.Say(1001, 1001, telegramtest.Message{Text: "/mcp list"})
		w.wait("a list of servers", func(telegramtest.Shown) bool { return len(lists()) > before })
		if all := lists(); strings.Contains(all[len(all)-1], line) {
			return
		}
	}
}

const echoes = `
on "first": call kind:echo {"text":"hello from the server"}
then expect "hello from the server"
and say It said hello.
on "second": call kind:echo {"text":"still there"}
then expect "still there"
and say It is still there.
`

// TestServerFromTheChat: an admin adds a server from the chat, the agent uses it with approval, the server is killed
// and comes back, the person is told both, and it is there again after a restart of the service.
func TestServerFromTheChat(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there are no signals")
	}
	pids := t.TempDir()
	// Not confined: a confined program may have a number of a namespace, and killing that would kill somebody else.
	w := begin(t, echoes, app.Internet{}, permitted, chatted, "ZEPH_MCP_STARTUP_RETRY_BACKOFF_MS=50", "ZEPH_TOOLS_SHELL_SANDBOX=off")
	say := func(text string) { w.fake.Say(1001, 1001, telegramtest.Message{Text: text}) }
	say("/mcp add kind /bin/" + kindServer)
	w.says("kind: ", 1)
	say("/mcp add kind " + kindServer + " plain " + pids)
	w.agree("kind")
	w.says("kind: connected, 1 tool.", 1)
	say("first")
	w.card("hello from the server")
	w.press("Approve once")
	w.says("It said hello.", 1)
	kill(t, pids)
	w.says("The server kind has ended.", 1)
	w.says("The server kind is back with 1 tool.", 1)
	say("second")
	w.card("still there")
	w.press("Approve once")
	w.says("It is still there.", 1)
	say("/mcp list")
	w.says("kind · connected · 1 tool · untrusted", 1)
	w.again()
	w.connects("kind · connected · 1 tool · untrusted")
	say("/mcp remove kind")
	w.says("kind: removed", 1)
	say("/mcp list")
	w.says("No MCP server.", 1)
	w.end()
	if raw, err := os.ReadFile(filepath.Join(w.dir, "data", "audit.jsonl")); err != nil || strings.Count(string(raw), `"mcp_server_id":"kind"`) < 2 {
		t.Errorf("the audit does not name the server: %v\n%s", err, raw)
	}
}

const asks = `
on "go": call kind:ask {}
then expect "declined"
and say It wanted to know something.
`

// TestBehaviour28ServerAsks: what a server wants to know from a person in Telegram is declined at once; the person and the model
// are told why.
func TestBehaviour28ServerAsks(t *testing.T) {
	t.Parallel()
	w := begin(t, asks, app.Internet{}, permitted, chatted)
	w.fake.Say(1001, 1001, telegramtest.Message{Text: "/mcp add kind " + kindServer + " " + strings.ReplaceAll(string(mcptest.ElicitForm), " ", "_") + " " + t.TempDir()})
	w.agree("kind")
	w.says("kind: connected", 1)
	w.fake.Say(1001, 1001, telegramtest.Message{Text: "go"})
	w.card("kind:ask")
	w.press("Approve once")
	w.says("It wanted to know something.", 1)
	w.says(mcptest.Question, 1)
	w.end()
}

// TestServerAddedOverARestart: the service ends while a server that was added is connecting; the next start connects it
// and tells how it went, once.
func TestServerAddedOverARestart(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "open")
	w := begin(t, "on \"\": say never", app.Internet{}, permitted, chatted)
	w.fake.Say(1001, 1001, telegramtest.Message{Text: "/mcp add kind " + kindServer + " " + strings.ReplaceAll(string(mcptest.SlowStart), " ", "_") + " " + t.TempDir() + " " + gate})
	w.card("Add the MCP server kind")
	w.again() // the question waits as well
	w.press("Approve once")
	w.says("Approved", 1)
	w.again()
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.says("kind: connected, 1 tool.", 1)
	w.again()
	w.fake.Say(1001, 1001, telegramtest.Message{Text: "/stop"})
	w.says("Nothing is running here.", 1)
	told := 0
	for _, m := range w.fake.Chat(1001) {
		if m.FromBot && strings.Contains(m.Text, "kind: connected") {
			told++
		}
	}
	if told != 1 {
		t.Errorf("told %d times", told)
	}
	w.end()
}
