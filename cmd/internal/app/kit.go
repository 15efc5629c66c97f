package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/web"
)

// kit is the built-in tools and what they share.
type kit struct {
	registry   *tools.Registry
	runner     *shell.Runner
	workspace  func(tools.Origin) (string, error)
	shellPaths []string // besides the workspace
	confined   bool     // the kernel bounds what a command may reach
	level      string   // for people
}

func (k *kit) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	// What does not end in time is killed with its process group by the helper that holds it.
	_ = k.runner.Shutdown(ctx)
}

// tools builds the built-in tools.
func (c *Core) tools() (*kit, error) {
	k := &kit{workspace: c.workspaces()}
	denied := []string{c.dir}
	if c.cfg.File != "" {
		denied = append(denied, c.cfg.Path(c.cfg.File))
	}
	if main := c.cfg.Path(c.cfg.DataDir); main != c.dir {
		denied = append(denied, main)
	}
	var err error
	if k.shellPaths, err = c.paths("tools.shell.allowed_paths", c.cfg.Tools.Shell.AllowedPaths); err != nil {
		return nil, err
	}
	filePaths, err := c.paths("tools.file.allowed_paths", c.cfg.Tools.File.AllowedPaths)
	if err != nil {
		return nil, err
	}
	bash, err := c.shell(k, denied)
	if err != nil {
		return nil, err
	}
	globs, err := pathrule.New(expand(c.cfg.Path, c.cfg.Tools.File.DenyRead), expand(c.cfg.Path, c.cfg.Tools.File.AllowRead))
	if err != nil {
		return nil, fmt.Errorf("%w: tools.file: %w", ErrConfig, err)
	}
	files, err := file.New(file.Options{Workspace: k.workspace, AllowedPaths: filePaths, DeniedPaths: denied, Rules: globs, Now: c.now})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	pages, err := c.web()
	if err != nil {
		return nil, err
	}
	k.registry, err = tools.NewRegistry(slices.Concat([]tools.Tool{bash}, files, pages)...)
	return k, err
}

// web builds fetch and web_scrape.
func (c *Core) web() ([]tools.Tool, error) {
	s, e := c.cfg.Tools.Scrape, c.cfg.Tools.Egress
	list, err := web.New(web.Options{
		Timeout: time.Duration(s.Timeout) * time.Second, MaxBody: int(min(s.MaxBodyBytes, 64<<20)), AllowedDomains: s.AllowedDomains, DeniedDomains: s.DeniedDomains,
		LogRequests: e.Enabled, LogBlocked: e.LogBlocked, LogBytes: e.LogResponseBytes, Now: c.now,
		Resolver: c.opts.Internet.Resolver, Dial: c.opts.Internet.Dial, Roots: c.opts.Internet.Roots,
	})
	if err != nil {
		return nil, fmt.Errorf("%w: tools.scrape: %w", ErrConfig, err)
	}
	return list, nil
}

func (c *Core) shell(k *kit, denied []string) (tools.Tool, error) {
	s := c.cfg.Tools.Shell
	bash, runner, err := shell.New(shell.Options{
		Timeout: time.Duration(s.Timeout) * time.Second, Workspace: k.workspace, AllowedPaths: k.shellPaths, DeniedPaths: denied,
		AllowNetwork: s.AllowNetwork, AllowedCommands: s.AllowedCommands, EnvBlocklist: s.EnvBlocklist,
		Transactional: s.Transactional, AutoRollback: s.AutoRollback, AutoRollbackExitCodes: s.AutoRollbackExitCodes,
		SnapshotRequired: s.SnapshotRequired, TransactionScope: s.TransactionScope, MaxSnapshotBytes: s.MaxSnapshotBytes,
		MaxBackgroundRuns: s.MaxBackgroundRuns, BackgroundTimeout: time.Duration(s.BackgroundTimeoutSecs) * time.Second,
		Sandbox: s.Sandbox, Helper: sandbox.Self, Redact: c.redactor.String, Now: c.now, Log: c.log.With().Str("component", "shell").Logger(),
	})
	if err != nil {
		return bash, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	k.runner = runner
	if s.Sandbox == shell.SandboxOff {
		k.level = "file tools confined by the kernel (os.Root), shell by approval and rules only"
		return bash, nil
	}
	probe, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	level := runner.Level(probe)
	k.confined, k.level = level.Full(), level.String()
	return bash, nil
}

// expand makes globs absolute that begin with ~ or a relative path; "*" at the front stays.
func expand(path func(string) string, globs []string) []string {
	out := make([]string, len(globs))
	for i, g := range globs {
		if out[i] = g; strings.HasPrefix(g, "~") {
			out[i] = path(g)
		}
	}
	return out
}

// paths resolves configured directories; they have to exist.
func (c *Core) paths(key string, list []string) ([]string, error) {
	var out []string
	for _, p := range list {
		real, err := filepath.EvalSymlinks(c.cfg.Path(p))
		if err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrConfig, key, err)
		}
		out = append(out, real)
	}
	return out, nil
}

// workspaces says where a conversation works: at the terminal in the process's own directory, elsewhere in a directory of its own below the state.
func (c *Core) workspaces() func(tools.Origin) (string, error) {
	return func(o tools.Origin) (string, error) {
		if o.Channel == terminal.Name {
			return c.opts.WorkDir, nil
		}
		name := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r == '-' {
				return r
			}
			return '_'
		}, strings.ToLower(o.Session))
		if name == "" {
			name = "none"
		}
		dir := filepath.Join(c.dir, "workspaces", name)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("workspace: %w", err)
		}
		return dir, nil
	}
}
