package mcp_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/tools/mcp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// jsServer is a server as people write them: a script that imports from its package, from node_modules beside and above
// it, and from a package of the same workspace. Its tool opens a file and says what came of it.
const jsServer = `#!/usr/bin/env node
import { createInterface } from "node:readline";
import { readFileSync, writeFileSync } from "node:fs";
import { title } from "../lib/title.js";
import { near } from "near";
import { above } from "above";
import { linked } from "linked";

const answers = {
  initialize: () => ({
    protocolVersion: "2025-06-18", capabilities: { tools: {} },
    serverInfo: { name: title, version: [near, above, linked].join("+") },
  }),
  "tools/list": () => ({ tools: [{ name: "open", inputSchema: { type: "object" } }] }),
  "tools/call": ({ arguments: { path, write } }) => {
    let text;
    try {
      text = write ? (writeFileSync(path, write), "written") : readFileSync(path, "utf8");
    } catch (e) {
      text = "refused: " + e.code;
    }
    return { content: [{ type: "text", text }] };
  },
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const { id, method, params } = JSON.parse(line);
  if (id !== undefined) {
    const answer = answers[method];
    const rest = answer ? { result: answer(params) } : { error: { code: -32601, message: "no such method" } };
    console.log(JSON.stringify({ jsonrpc: "2.0", id, ...rest }));
  }
});
`

// jsWorkspace writes a workspace of npm with a server in it, and returns where they are.
func jsWorkspace(t *testing.T) (base, server string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	module := func(name string) string { return fmt.Sprintf("export const %s = %q;\n", name, name) }
	about := func(name string) string {
		return fmt.Sprintf(`{"name": %q, "type": "module", "main": "index.js"}`, name)
	}
	for name, content := range map[string]string{
		"other.txt":                                           "not of the package",
		"work/package.json":                                   `{"name": "work", "private": true, "workspaces": ["packages/*"]}`,
		"work/.env":                                           "secret",
		"work/node_modules/above/package.json":                about("above"),
		"work/node_modules/above/index.js":                    module("above"),
		"work/packages/linked/package.json":                   about("linked"),
		"work/packages/linked/index.js":                       module("linked"),
		"work/packages/linked/.env.local":                     "secret",
		"work/packages/server/package.json":                   `{"name": "server", "type": "module", "bin": {"server": "build/index.js"}}`,
		"work/packages/server/build/package.json":             `{"type": "module"}`,
		"work/packages/server/build/index.js":                 jsServer,
		"work/packages/server/build/lost.js":                  `import "not-installed";`,
		"work/packages/server/build/quits.js":                 `console.error("no license"); process.exit(3);`,
		"work/packages/server/lib/title.js":                   module("title"),
		"work/packages/server/data/cities.json":               "Berlin",
		"work/packages/server/.env":                           "secret",
		"work/packages/server/.npmrc":                         "secret",
		"work/packages/server/.git/config":                    "secret",
		"work/packages/server/keys/tls.key":                   "secret",
		"work/packages/server/node_modules/near/a.js":         module("near"),
		"work/packages/server/node_modules/near/package.json": `{"name": "near", "type": "module", "main": "a.js"}`,
	} {
		file := filepath.Join(base, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{
		"linked": "../packages/linked", "server": "../packages/server", ".bin/server": "../../packages/server/build/index.js",
	} {
		link = filepath.Join(base, "work", "node_modules", link)
		if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	return base, filepath.Join(base, "work", "packages", "server")
}

// jsPath returns a PATH with node and npx; without them the test is skipped, or fails in CI.
func jsPath(t *testing.T) string {
	t.Helper()
	var dirs []string
	for _, program := range []string{"node", "npx"} {
		path, err := exec.LookPath(program)
		if err != nil {
			if os.Getenv("ZEPH_CI") != "" {
				t.Fatalf("%s has to be installed: %v", program, err)
			}
			t.Skip(err)
		}
		dirs = append(dirs, filepath.Dir(path))
	}
	return strings.Join(append(dirs, "/usr/bin", "/bin"), ":")
}

// jsConfig is a server that node or npx runs, confined.
func jsConfig(t *testing.T, cfg mcp.Server) mcp.Server {
	t.Helper()
	cfg.ID, cfg.Timeout, cfg.Env = "js", 2*time.Minute, map[string]string{"PATH": jsPath(t)}
	return cfg
}

// TestScriptsOfNPM: a server that node runs from its package starts with the default, in each way in which people start
// one. It reads its package and what that depends on, and neither secrets in it nor anything beside it.
func TestScriptsOfNPM(t *testing.T) {
	t.Parallel()
	confined(t)
	base, server := jsWorkspace(t)
	work := filepath.Join(base, "work")
	for name, cfg := range map[string]mcp.Server{
		"script":                 {Command: "node", Args: []string{filepath.Join(server, "build", "index.js")}},
		"bin":                    {Command: "node", Args: []string{filepath.Join(work, "node_modules", ".bin", "server")}},
		"relative to its dir":    {Command: "node", Args: []string{"build/index.js"}, Dir: server},
		"npx of what is there":   {Command: "npx", Args: []string{"--no-install", "server"}, Dir: work},
		"the package in modules": {Command: "node", Args: []string{filepath.Join(work, "node_modules", "server", "build", "index.js")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := start(t, mcp.Options{
				ConnectAttempts: 1, Servers: []mcp.Server{jsConfig(t, cfg)}, AllowedCommands: []string{"npx"},
			})
			b.ready(t)
			if st := b.status(t); st.State != mcp.Connected {
				t.Fatalf("%s\n%s", st.Problem, b.log)
			}
			for path, want := range map[string]string{
				"data/cities.json": "Berlin", ".env": "refused: ", ".npmrc": "refused: ", ".git/config": "refused: ",
				"keys/tls.key": "refused: ", "../linked/.env.local": "refused: ", "../../../other.txt": "refused: ",
			} {
				res, _, err := b.call(t, "js:open", fmt.Sprintf(`{"path":%q}`, filepath.Join(server, path)))
				if err != nil || !strings.HasPrefix(res.Text, want) {
					t.Errorf("%s: %+v, %v", path, res, err)
				}
			}
			res, _, err := b.call(t, "js:open", fmt.Sprintf(`{"path":%q,"write":"x"}`, filepath.Join(server, "build", "index.js")))
			if err != nil || !strings.HasPrefix(res.Text, "refused: ") {
				t.Errorf("it changes its own program: %+v, %v", res, err)
			}
		})
	}
}

// TestScriptReads: the key read grants a directory or a file, also one that is left out of its package; what belongs to
// the bot stays out of reach.
func TestScriptReads(t *testing.T) {
	t.Parallel()
	confined(t)
	base, server := jsWorkspace(t)
	own := filepath.Join(base, "work", "zephbot.toml")
	if err := os.WriteFile(own, []byte("token"), 0o644); err != nil {
		t.Fatal(err)
	}
	cfg := jsConfig(t, mcp.Server{
		Command: "node", Args: []string{filepath.Join(server, "build", "index.js")},
		Read: []string{filepath.Join(base, "work"), filepath.Join(server, ".env")},
	})
	b := start(t, mcp.Options{
		ConnectAttempts: 1, Servers: []mcp.Server{cfg}, Sandbox: mcp.Sandbox{Helper: sandbox.Self, Deny: []string{own}},
	})
	b.ready(t)
	for path, want := range map[string]string{
		"packages/server/.env": "secret", "package.json": `{"name": "work"`, "packages/server/.npmrc": "refused: ",
		"zephbot.toml": "refused: ",
	} {
		res, _, err := b.call(t, "js:open", fmt.Sprintf(`{"path":%q}`, filepath.Join(base, "work", path)))
		if err != nil || !strings.HasPrefix(res.Text, want) {
			t.Errorf("%s: %+v, %v\n%s", path, res, err, b.log)
		}
	}
	if held := b.Holds(cfg); !strings.Contains(held, "read only: what is beside its script and in the npm package around it, "+filepath.Join(base, "work")) {
		t.Errorf("the card does not say what it may read: %s", held)
	}
}

// TestScriptEndsEarly: the end of a confined program says that it is confined, and names the key that helps; that of
// one that is not confined does not.
func TestScriptEndsEarly(t *testing.T) {
	t.Parallel()
	confined(t)
	_, server := jsWorkspace(t)
	for script, want := range map[string]string{
		"lost.js":  "it is confined: network internet, files in its own directory, its package and its roots; if what it misses is installed, name its directory in mcp.servers[].read",
		"quits.js": "no license (it is confined: network internet, files in its own directory, its package and its roots; mcp.servers[].network, roots, read and confine say",
	} {
		for confine, says := range map[string]bool{"on": true, "off": false} {
			cfg := jsConfig(t, mcp.Server{
				Command: "node", Args: []string{filepath.Join(server, "build", script)}, Confine: confine, Trust: guard.Untrusted,
			})
			b := start(t, mcp.Options{ConnectAttempts: 1, Servers: []mcp.Server{cfg}})
			b.ready(t)
			if st := b.status(t); st.State != mcp.Broken || strings.Contains(st.Problem, want) != says {
				t.Errorf("%s, confined %s: %s: %s", script, confine, st.State, st.Problem)
			}
			b.stop()
		}
	}
}
