package check

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/redis"
	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// checkScope finds invalid globs.
func checkScope(globs []string) error {
	var errs []error
	for _, g := range globs {
		if !doublestar.ValidatePattern(g) {
			errs = append(errs, fmt.Errorf("%q is not a valid glob; a bracket or brace may be open", g))
		}
	}
	return errors.Join(errs...)
}

// directories checks the places that are written to.
func (k *inspector) directories(use Use) {
	home := k.c.Path(k.c.DataDir)
	if use.Terminal {
		home = k.at.Terminal()
	}
	k.writable("data_dir", home)
	if err := persistence.CheckURL(k.c.Database.URL.Reveal()); err != nil {
		k.refuse("database.url", err)
	}
	if err := redis.Check(k.at.Redis(zerolog.Nop())); err != nil {
		k.refuse("redis.url", err)
	}
	if dir := k.c.Workspaces.Dir; dir != "" {
		k.writable("workspaces.dir", k.c.Path(dir))
	}
	a := k.c.Audit
	if !a.Enabled || a.Destination == "" || a.Destination == "stdout" {
		return
	}
	path := k.c.Path(a.Destination)
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		k.wrong("audit.destination", "%s is a directory; name a file in it", a.Destination)
		return
	}
	if text := NotWritable(path); text != "" {
		k.wrong("audit.destination", "%s", text)
		return
	}
	k.writable("audit.destination", filepath.Dir(path))
}

// Unwritable returns why files cannot be created in a directory, which the key names; "" = they can,
// or the directory can be created.
func Unwritable(cfg *config.Config, key, dir string) string {
	k := &inspector{c: cfg}
	k.writable(key, dir)
	for _, p := range k.found.Problems {
		return p.Text
	}
	return ""
}

// writable checks that files can be created in a directory, or that it can be created.
func (k *inspector) writable(key, dir string) {
	for at := dir; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist) && at != filepath.Dir(at):
			continue // it will be created
		case errors.Is(err, fs.ErrNotExist):
			k.wrong(key, "%s cannot be made: there is no %s", dir, at)
		case err != nil:
			k.wrong(key, "%s cannot be used: %s: %s", dir, at, Reason(err))
		case !info.IsDir():
			k.wrong(key, "%s cannot be used: %s is a file; name a directory", dir, at)
		default:
			if text := NotWritable(at); text != "" {
				k.wrong(key, "%s", text)
			}
		}
		return
	}
}

// servers checks the programs and directories of MCP servers.
func (k *inspector) servers() {
	for i, s := range k.c.MCP.Servers {
		at := fmt.Sprintf("mcp.servers[%d]", i)
		if s.Command != "" {
			k.program(at+".command", s)
		}
		for j, r := range s.Roots {
			u, err := url.Parse(r.URI)
			if err != nil || u.Scheme != "file" {
				continue // reported when it was read
			}
			if info, err := os.Stat(u.Path); err != nil || !info.IsDir() {
				k.fault(
					fmt.Sprintf("%s.roots[%d].uri", at, j),
					"%s is no directory that exists; make it, or correct the address",
					u.Path,
				)
			}
		}
		for j, p := range s.Read {
			if _, err := os.Stat(k.c.Path(p)); err != nil {
				k.fault(fmt.Sprintf("%s.read[%d]", at, j), "%s cannot be read: %s", p, Reason(err))
			}
		}
		k.startable(at, &s)
		if s.OAuth.Enabled && s.URL == "" {
			k.warn(at+".oauth", "has no effect: only a server with a url is signed in to")
		}
	}
}

// program checks that the command of a server is allowed and installed.
func (k *inspector) program(key string, s config.MCPServer) {
	if err := guard.Command(s.Command, k.c.MCP.AllowedCommands); err != nil {
		k.fault(key, "%s", err)
		return
	}
	path := os.Getenv("PATH")
	for name, value := range s.Env {
		if name == "PATH" {
			path = value.Reveal()
		}
	}
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue // the client skips it too
		}
		if _, err := exec.LookPath(filepath.Join(dir, s.Command)); err == nil {
			return
		}
	}
	k.fault(key, "%s was not found in PATH; install it, or correct the name", strings.TrimSpace(s.Command))
}

// sharing checks what several processes must have in common.
func (k *inspector) sharing() {
	if !k.c.Workspaces.Shared {
		return
	}
	const key = "workspaces.shared"
	if k.c.Database.URL == "" {
		k.wrong(key, "several processes need one database: set database.url to a PostgreSQL server, or "+
			"workspaces.shared = false for one process")
	}
	if k.c.Redis.URL == "" {
		k.wrong(key, "several processes need one Redis server for quotas and send budgets: set redis.url, or "+
			"workspaces.shared = false for one process")
	}
	if k.c.Workspaces.Dir == "" {
		k.wrong(key, "workspaces.dir is empty, and data_dir belongs to one process: set it to a directory on a "+
			"volume that every process sees")
	}
	for i, server := range k.c.MCP.Servers {
		if server.OAuth.Enabled && server.OAuth.TokenStorage == "memory" {
			k.warn(
				fmt.Sprintf("mcp.servers[%d].oauth.token_storage", i), "in memory, a sign-in is known to the process "+
					"that it was made in alone; set it to vault, and all have it",
			)
		}
	}
	if k.c.Audit.Enabled && k.c.Audit.Destination != "" && k.c.Audit.Destination != "stdout" {
		k.warn("audit.destination", "every process writes a chain of its own beside this file; on a volume that not "+
			"all of them see, `zephbot audit` finds only some")
	}
}
