package app

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/moves"

	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
)

// places says where the tools of one kind, commands or file tools, may work.
type places struct {
	workspace func(tools.Origin) (string, error) // the working directory of a conversation
	dirs      []string                           // allowed besides it, or instead of it; canonical
	here      bool                               // the working directory is allowed
}

// places reads allowed_paths: an empty list is the working directory; a list replaces it, and "." in the list means it.
func (c *Core) places(key string, list []string) (places, error) {
	p := places{workspace: c.workspaces(), here: len(list) == 0}
	for _, entry := range list {
		if entry == config.Here {
			p.here = true
			continue
		}
		real, err := filepath.EvalSymlinks(c.cfg.Path(entry))
		if err != nil {
			return p, fmt.Errorf("%w: %s: %w", ErrConfig, key, err)
		}
		p.dirs = append(p.dirs, real)
	}
	return p, nil
}

// dir is the directory that a conversation's relative paths start at, and that its commands run in: the working
// directory where that is allowed, else the first allowed one.
func (p places) dir(o tools.Origin) (string, error) {
	dir, err := p.workspace(o)
	if err != nil || p.here {
		return dir, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", fmt.Errorf("workspace: %w", err)
	}
	if slices.ContainsFunc(p.dirs, func(root string) bool { return pathrule.Inside(root, real) }) {
		return dir, nil
	}
	return p.dirs[0], nil
}

// roots are all places of a conversation, the one it starts at first.
func (p places) roots(o tools.Origin) ([]string, error) {
	dir, err := p.dir(o)
	if err != nil {
		return nil, err
	}
	return append([]string{dir}, p.dirs...), nil
}

// workspaces says where a conversation works: at the terminal in the process's own directory, elsewhere in a directory
// of its own below workspaces.dir, which a group keeps when it gets a new id.
func (c *Core) workspaces() func(tools.Origin) (string, error) {
	dirs := moves.Workspaces{Root: c.workspaceRoot(), Map: c.moves}
	return func(o tools.Origin) (string, error) {
		if o.Channel == terminal.Name {
			return c.opts.WorkDir, nil
		}
		dir := dirs.Dir(cmp.Or(o.Workspace, dirs.ID(bot.SessionKey(o.Session))))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", fmt.Errorf("workspace: %w", err)
		}
		return dir, nil
	}
}

// workspaceRoot holds the workspaces. The simulator has its own below its own state, whatever is configured.
func (c *Core) workspaceRoot() string {
	if dir := c.cfg.Workspaces.Dir; dir != "" && c.opts.Home == "" {
		return c.cfg.Path(dir)
	}
	return filepath.Join(c.dir, "workspaces")
}

// obeyed are the files and directories that no tool and no child may reach: the state, and what the next start obeys
// (Config.Obeyed), the program itself among it.
func (c *Core) obeyed() []string {
	list := append([]string{c.dir, c.cfg.Path(c.cfg.DataDir)}, c.cfg.Obeyed()...)
	if self, err := os.Executable(); err == nil {
		list = append(list, self)
	}
	list = slices.DeleteFunc(list, func(p string) bool { return !filepath.IsAbs(p) })
	slices.Sort(list)
	return slices.Compact(list)
}

// unreadable says what commands in a directory may not read.
func (c *Core) unreadable(dir string) (shell.Unreadable, bool) {
	limits := c.policy.ReadLimits()
	if !limits.Any {
		return shell.Unreadable{}, false
	}
	r := &policy.Request{Dir: dir, Trust: policy.Trusted, Env: environment()}
	return shell.Unreadable{Places: limits.Places, Denied: func(path string, isDir bool) bool {
		// A directory is closed as a whole only where nothing below it may be an exception.
		return !(isDir && (limits.Exceptions || path == dir)) && c.policy.DeniesRead(r, path)
	}}, true
}

// environment names the variables of the process.
func environment() []string {
	var names []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return names
}
