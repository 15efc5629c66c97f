//go:build unix

package mcp_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// These tests talk to the reference servers of the protocol's authors. They need node and, once:
//
//	npm install --ignore-scripts @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-memory
//	ZEPH_MCP_SERVERS=$PWD unshare -rn sh -c 'ip link set lo up && go test -run Real ./tools/mcp'
//
// The network namespace matters for the tests over HTTP: server-everything listens on all interfaces.

// real returns the PATH in which the servers and node are found, and an empty directory. It skips the test if they are
// missing.
func real(t *testing.T, program string) (search, dir string) {
	t.Helper()
	root := os.Getenv("ZEPH_MCP_SERVERS")
	if root == "" {
		t.Skip("ZEPH_MCP_SERVERS does not name a directory with the reference servers of npm in node_modules; see the top of this file")
	}
	bin := filepath.Join(root, "node_modules", ".bin")
	if _, err := os.Stat(filepath.Join(bin, program)); err != nil {
		t.Skipf("%s is not installed in %s: %v", program, root, err)
	}
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("there is no node")
	}
	dir, err = filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return bin + ":" + filepath.Dir(node), dir
}

// realServer starts a manager with one of the reference servers over stdio.
func realServer(t *testing.T, program string, set func(dir string, o *mcp.Options, s *mcp.Server)) (*bench, string) {
	t.Helper()
	search, dir := real(t, program)
	cfg := mcp.Server{ID: "real", Command: program, Timeout: patience, Trust: guard.Trusted, Env: map[string]string{"PATH": search}}
	o := mcp.Options{AllowedCommands: []string{program}, ListTimeout: patience}
	set(dir, &o, &cfg)
	o.Servers = []mcp.Server{cfg}
	b := start(t, o)
	b.ready(t)
	if st := b.status(t); st.State != mcp.Connected || len(st.Dropped) != 0 {
		t.Fatalf("it is %s: %s, dropped %v\n%s", st.State, st.Problem, st.Dropped, b.log)
	}
	return b, dir
}

// TestRealEverything has the server that shows everything the protocol can do.
func TestRealEverything(t *testing.T) {
	t.Parallel()
	for _, way := range []over{byProcess, byHTTP} {
		t.Run(string(way), func(t *testing.T) {
			t.Parallel()
			b, _ := realServer(t, "mcp-server-everything", func(dir string, _ *mcp.Options, s *mcp.Server) {
				if way == byHTTP {
					*s = mcp.Server{ID: s.ID, URL: everythingOverHTTP(t, s.Env["PATH"], dir), Timeout: patience, Trust: s.Trust}
				}
				s.Roots = []mcp.Root{{URI: "file://" + dir}}
			})
			st := b.status(t)
			t.Logf("%s %s, revision %s, %d tools: %v", way, st.Name, st.Protocol, len(st.Tools), st.Tools)
			if len(st.Tools) < 14 || st.Instructions == "" || len(b.Instructions(nil)) < 100 {
				t.Errorf("status %+v", st)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			await(ctx, t, "the tools that it adds once it knows us", func() bool {
				_, ok := b.registry.Lookup("real:trigger-elicitation-request")
				return ok
			})
			b.want(t, "real:echo", `{"message":"hello"}`, "Echo: hello")
			b.says(t, "real:get-sum", `{"a":2,"b":40}`, "42")
			b.says(t, "real:get-structured-content", `{"location":"New York"}`, "temperature")
			b.says(t, "real:get-tiny-image", `{}`, "[image: image/png")
			b.says(t, "real:get-resource-links", `{"count":2}`, "[resource link:")
			b.says(t, "real:trigger-long-running-operation", `{"duration":0.1,"steps":2}`, "completed")
			b.says(t, "real:trigger-elicitation-request", `{}`, "It was declined: nobody can be asked here.")
			if _, _, err := b.call(t, "real:get-sum", `{"a":"x","b":1}`); err != nil {
				if c, _ := code(t, err); c != guard.InvalidInput {
					t.Errorf("wrong arguments: %v", err)
				}
			}
		})
	}
}

// says calls a tool and expects a part of a text.
func (b *bench) says(t *testing.T, name, args, part string) {
	t.Helper()
	res, _, err := b.call(t, name, args)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if !strings.Contains(res.Text, part) {
		t.Errorf("%s says %q, which does not have %q in it", name, res.Text, part)
	}
}

// everythingOverHTTP starts the server independently of the manager and returns its address.
func everythingOverHTTP(t *testing.T, search, dir string) string {
	t.Helper()
	interfaces, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp != 0 && i.Flags&net.FlagLoopback == 0 {
			t.Skip("server-everything listens on all interfaces: run this where there is only the loopback (unshare -rn); see the top of this file")
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // only to find a free port
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	path, err := exec.LookPath(filepath.Join(strings.Split(search, ":")[0], "mcp-server-everything"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "streamableHttp") //nolint:noctx // its whole group is ended below
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + search, "PORT=" + strconv.Itoa(port)}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	address := fmt.Sprintf("localhost:%d", port)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	await(ctx, t, "server-everything", func() bool {
		conn, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return "http://" + address + "/mcp"
}

// TestRealFilesystem uses the server for files. The roots that it is given replace the directory on its command line.
func TestRealFilesystem(t *testing.T) {
	t.Parallel()
	for _, granted := range []string{"command line", "roots"} {
		t.Run(granted, func(t *testing.T) {
			t.Parallel()
			b, dir := realServer(t, "mcp-server-filesystem", func(dir string, _ *mcp.Options, s *mcp.Server) {
				s.Args = []string{dir}
				if granted == "roots" {
					s.Args = []string{t.TempDir()}
					s.Roots = []mcp.Root{{URI: "file://" + dir, Name: "work"}}
				}
			})
			st := b.status(t)
			t.Logf("%s, revision %s, %d tools: %v", st.Name, st.Protocol, len(st.Tools), st.Tools)
			file := filepath.Join(dir, "note.txt")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			await(ctx, t, "the server to have taken in its directories", func() bool {
				res, _, err := b.call(t, "real:list_allowed_directories", `{}`)
				return err == nil && strings.Contains(res.Text, dir)
			})
			b.says(t, "real:write_file", fmt.Sprintf(`{"path":%q,"content":"milk\nbread\n"}`, file), "Successfully wrote")
			if raw, err := os.ReadFile(file); err != nil || string(raw) != "milk\nbread\n" {
				t.Errorf("on disk: %q, %v", raw, err)
			}
			b.says(t, "real:read_text_file", fmt.Sprintf(`{"path":%q}`, file), "milk\nbread")
			b.says(t, "real:list_directory", fmt.Sprintf(`{"path":%q}`, dir), "[FILE] note.txt")
			res, _, err := b.call(t, "real:read_text_file", `{"path":"/etc/passwd"}`)
			if err != nil || !res.Error || !strings.Contains(res.Text, "Access denied") {
				t.Errorf("outside of its directories: %+v, %v", res, err)
			}
			write, _ := b.registry.Lookup("real:write_file")
			read, _ := b.registry.Lookup("real:read_text_file")
			if write.Definition.ReadOnly || !write.Definition.Destructive || !read.Definition.ReadOnly {
				t.Errorf("write: read only %t, destructive %t; read: read only %t", write.Definition.ReadOnly, write.Definition.Destructive, read.Definition.ReadOnly)
			}
			if len(read.Definition.OutputSchema) == 0 {
				t.Error("its output schema is gone")
			}
		})
	}
}

// TestRealMemory has the server that remembers, over a restart.
func TestRealMemory(t *testing.T) {
	t.Parallel()
	b, dir := realServer(t, "mcp-server-memory", func(dir string, _ *mcp.Options, s *mcp.Server) {
		s.Env["MEMORY_FILE_PATH"] = filepath.Join(dir, "memory.jsonl")
	})
	st := b.status(t)
	t.Logf("%s, revision %s, %d tools: %v", st.Name, st.Protocol, len(st.Tools), st.Tools)
	b.says(t, "real:create_entities", `{"entities":[{"name":"Ann","entityType":"person","observations":["likes tea"]}]}`, "Ann")
	if raw, err := os.ReadFile(filepath.Join(dir, "memory.jsonl")); err != nil || !strings.Contains(string(raw), "likes tea") {
		t.Errorf("on disk: %q, %v", raw, err)
	}
	if _, err := b.Restart(t.Context(), "real"); err != nil {
		t.Fatal(err)
	}
	b.says(t, "real:read_graph", `{}`, "likes tea")
	remove, _ := b.registry.Lookup("real:delete_entities")
	if !remove.Definition.Destructive || remove.Definition.ReadOnly {
		t.Errorf("it says that it destroys: %+v", remove.Definition)
	}
	if res, _, err := b.call(t, "real:create_entities", `{"entities":"no list"}`); err == nil && !res.Error {
		t.Errorf("wrong arguments are fine: %+v", res)
	}
}
