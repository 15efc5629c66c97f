package mcp_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// confined skips the test if this kernel cannot confine files, because there is nothing to test then.
func confined(t *testing.T) {
	t.Helper()
	if level := sandbox.Probe(t.Context(), sandbox.Self); level.Landlock == 0 {
		if os.Getenv("ZEPH_CI") != "" {
			t.Fatalf("this machine must have Landlock: %s", level)
		}
		t.Skip(level.String())
	}
}

// reacher returns a server that tries what it is asked to.
func reacher(t *testing.T, set func(*mcp.Options, *mcp.Server)) (*bench, func(what string) string) {
	t.Helper()
	cfg := process("bad", mcptest.Options{Behaviour: mcptest.Reach})
	cfg.Confine = ""
	o := mcp.Options{ConnectAttempts: 1}
	if set != nil {
		set(&o, &cfg)
	}
	o.Servers = []mcp.Server{cfg}
	b := start(t, o)
	b.ready(t)
	return b, func(what string) string {
		t.Helper()
		res, _, err := b.call(t, "bad:reach", fmt.Sprintf(`{"text":%q}`, what))
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, b.log)
		}
		return res.Text
	}
}

// TestAttackServerReachesFiles: a server's program can use its own directory and what was granted to it, and nothing of
// the bot or the rest of the machine.
func TestAttackServerReachesFiles(t *testing.T) {
	t.Parallel()
	confined(t)
	base := t.TempDir()
	data, root, named, denied := filepath.Join(base, "data"), filepath.Join(base, "root"), filepath.Join(base, "named"), filepath.Join(base, "root", "denied")
	for _, dir := range []string{filepath.Join(data, "mcp"), denied, named} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{filepath.Join(data, "zephbot.db"), filepath.Join(denied, "policy.toml"), filepath.Join(base, "zephbot.toml"), filepath.Join(root, "mine"), filepath.Join(named, "mine")} {
		if err := os.WriteFile(file, []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	_, try := reacher(t, func(o *mcp.Options, s *mcp.Server) {
		o.WorkDir = filepath.Join(data, "mcp")
		o.Sandbox = mcp.Sandbox{Helper: sandbox.Self, Deny: []string{denied, data}}
		s.Roots = []mcp.Root{{URI: "file://" + root}}
		// what holds the bot's own files is not granted by being named
		s.Args = []string{"--dir=" + named, data, "/", base}
	})
	for _, what := range []string{
		"read " + filepath.Join(data, "zephbot.db"), "write " + filepath.Join(data, "zephbot.db"), "list " + data, "write " + filepath.Join(data, "mcp", "other"),
		"read " + filepath.Join(base, "zephbot.toml"), "read " + filepath.Join(denied, "policy.toml"), "write " + filepath.Join(denied, "policy.toml"),
		fmt.Sprintf("read /proc/%d/environ", os.Getpid()), fmt.Sprintf("read /proc/%d/cmdline", os.Getpid()), "write /etc/zephbot-was-here", "read /root/.bashrc", "list /home",
	} {
		if got := try(what); !strings.HasPrefix(got, "refused: ") {
			t.Errorf("%s: %s", what, got)
		}
	}
	for _, what := range []string{
		"write " + filepath.Join(data, "mcp", "bad", "mine"), "write " + filepath.Join(root, "new"), "write " + filepath.Join(named, "new"), "list " + root,
	} {
		if got := try(what); got != "done" {
			t.Errorf("%s: %s", what, got)
		}
	}
	if home := try("env HOME"); home != "env: "+filepath.Join(data, "mcp", "bad") {
		t.Errorf("home %q", home)
	}
	if tmp := strings.TrimPrefix(try("env TMPDIR"), "env: "); try("write "+filepath.Join(tmp, "x")) != "done" {
		t.Errorf("temporary files go to %q and cannot", tmp)
	}
}

// TestServersShareDirectory: of servers whose files are in one directory, each reads its own, named by an argument or a
// variable, and none those of another or of the bot, also where the bot's configuration is next to them.
func TestServersShareDirectory(t *testing.T) {
	t.Parallel()
	confined(t)
	for _, beside := range []bool{false, true} {
		base := t.TempDir()
		file := func(name string) string { return filepath.Join(base, "etc", name) }
		data := filepath.Join(base, "data")
		for _, dir := range []string{filepath.Join(data, "mcp"), filepath.Join(base, "etc")} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		denied := []string{data, file("one.json"), file("two.json"), file("two.key")}
		for _, name := range []string{"one.json", "two.json", "two.key", "library.py", "zephbot.toml"} {
			if err := os.WriteFile(file(name), []byte(name), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if beside {
			denied = append(denied, file("zephbot.toml"))
		}
		one := process("one", mcptest.Options{Behaviour: mcptest.Reach})
		one.Confine, one.Args = "", append(one.Args, "--config="+file("one.json"))
		two := process("two", mcptest.Options{Behaviour: mcptest.Reach})
		two.Confine, two.Args = "", append(two.Args, file("two.json"))
		two.Env["KEY_FILE"] = file("two.key")
		b := start(t, mcp.Options{
			ConnectAttempts: 1, Servers: []mcp.Server{one, two}, WorkDir: filepath.Join(data, "mcp"),
			Sandbox: mcp.Sandbox{Helper: sandbox.Self, Deny: denied},
		})
		b.ready(t)
		for server, may := range map[string]map[string]bool{
			"one": {"one.json": true, "two.json": false, "two.key": false, "library.py": !beside, "zephbot.toml": !beside},
			"two": {"one.json": false, "two.json": true, "two.key": true, "library.py": !beside, "zephbot.toml": !beside},
		} {
			for name, want := range may {
				res, _, err := b.call(t, server+":reach", fmt.Sprintf(`{"text":%q}`, "read "+file(name)))
				if err != nil {
					t.Fatalf("%v\n%s", err, b.log)
				}
				if got := res.Text == "read: "+name; got != want {
					t.Errorf("beside the bot's: %t; %s reads %s: %s", beside, server, name, res.Text)
				}
			}
		}
	}
}

// TestAttackServerReachesNetwork: a sandboxed server reaches no address unless its own configuration permits it. This
// includes the bot's loopback.
func TestAttackServerReachesNetwork(t *testing.T) {
	t.Parallel()
	confined(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	for _, tc := range []struct {
		trust   guard.Trust
		network string
		reaches bool
	}{
		{guard.Sandboxed, "", false}, {guard.Untrusted, "off", false}, {guard.Trusted, "off", false}, {guard.Trusted, "", true}, {guard.Sandboxed, "all", true},
	} {
		_, try := reacher(t, func(_ *mcp.Options, s *mcp.Server) {
			s.Trust, s.Network, s.Allowlist = tc.trust, tc.network, &[]string{"reach"}
		})
		if got := try("dial " + l.Addr().String()); (got == "done") != tc.reaches {
			t.Errorf("%s, %q: %s", tc.trust, tc.network, got)
		}
	}
}

// TestAttackServerLeavesProcess: a process that a server leaves in another session ends with the server, even if it
// ignores SIGTERM; after /mcp remove or restart, and when the server ends by itself; confined or not. It is identified
// by the end of a named pipe that it holds, because its process id may belong to another namespace.
func TestAttackServerLeavesProcess(t *testing.T) {
	t.Parallel()
	for _, confine := range []string{"on", "off"} {
		t.Run(confine, func(t *testing.T) {
			t.Parallel()
			cfg := process("bad", mcptest.Options{Behaviour: mcptest.Escape})
			cfg.Confine = confine
			work := t.TempDir()
			b := start(t, mcp.Options{ConnectAttempts: 1, Servers: []mcp.Server{cfg}, WorkDir: work})
			b.ready(t)
			hold := filepath.Join(work, "bad", "hold")
			if err := syscall.Mkfifo(hold, 0o600); err != nil {
				t.Fatal(err)
			}
			pipe, err := os.OpenFile(hold, os.O_RDONLY|syscall.O_NONBLOCK, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = pipe.Close() }()
			if res, _, err := b.call(t, "bad:escape", `{}`); err != nil || res.Text != "left" {
				t.Fatalf("%+v, %v", res, err)
			}
			if _, err := b.Restart(t.Context(), "bad"); err != nil {
				t.Fatal(err)
			}
			if err := pipe.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			// the end comes when nobody holds the pipe
			if said, err := io.ReadAll(pipe); err != nil || string(said) != "held" {
				t.Errorf("a process is left: %q, %v", said, err)
			}
		})
	}
}

// TestConfinedFailureNamesTheKey: the failure of a program that was refused something names the setting that decides
// about it.
func TestConfinedFailureNamesTheKey(t *testing.T) {
	t.Parallel()
	confined(t)
	cfg := process("bad", mcptest.Options{Behaviour: mcptest.Plain, Pids: t.TempDir()}) // it may not write there
	cfg.Confine = "on"
	b := start(t, mcp.Options{ConnectAttempts: 1, Servers: []mcp.Server{cfg}})
	b.ready(t)
	problem := b.status(t).Problem
	for _, part := range []string{"it is confined: network internet", "mcp.servers[].network, roots, read and confine"} {
		if !strings.Contains(problem, part) {
			t.Errorf("%q lacks %q", problem, part)
		}
	}
}

// TestHolds says on the card what holds a program.
func TestHolds(t *testing.T) {
	t.Parallel()
	m, err := mcp.New(mcp.Options{Registry: &tools.Registry{}, Sandbox: mcp.Sandbox{Helper: sandbox.Self, Level: "a level"}})
	if err != nil {
		t.Fatal(err)
	}
	for want, cfg := range map[string]mcp.Server{
		"kernel sandbox (files: its own directory; network: internet); a level":                                               {Trust: guard.Untrusted},
		"kernel sandbox (files: its own directory, its roots and the directories among its arguments; network: off); a level": {Trust: guard.Sandboxed, Args: []string{"/tmp"}},
		"nothing but its environment and its directory: it has the rights of the bot":                                         {Confine: "off"},
	} {
		if got := m.Holds(cfg); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
