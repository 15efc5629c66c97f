package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools/workspace"

	"github.com/zephbot/zephbot/bot/moves"

	"github.com/zephbot/zephbot/bot/acp"
	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// places reads allowed_paths.
func (c *Core) places(key string, list []string) (workspace.Places, error) {
	own := moves.Workspaces{
		Root: c.workspaceRoot(), Map: c.moves,
		Own: map[string]string{terminal.Name: c.opts.WorkDir, acp.Name: c.opts.WorkDir},
	}
	open := own.Open
	if c.opts.workspaces != nil {
		open = c.opts.workspaces
	}
	set, err := workspace.NewPlaces(list, config.Here, open, c.cfg.Path)
	if err != nil {
		return set, fmt.Errorf("%w: %s: %w", config.ErrInvalid, key, err)
	}
	return set, nil
}

// workspaceRoot returns the directory of the workspaces. The simulator has its own below its own state, whatever is
// configured.
func (c *Core) workspaceRoot() string {
	if dir := c.cfg.Workspaces.Dir; dir != "" && c.opts.Home == "" {
		return c.cfg.Path(dir)
	}
	return filepath.Join(c.dir, "workspaces")
}

// obeyed returns the files and directories that no tool and no child may access: the state, and what the next start
// obeys (Config.Obeyed), including the program itself.
func (c *Core) obeyed() []string {
	list := append([]string{c.dir, c.cfg.Path(c.cfg.DataDir)}, c.cfg.Obeyed()...)
	if c.shared() && c.cfg.Workspaces.Dir != "" {
		list = append(list, c.opts.Layout().Common())
	}
	if self, err := os.Executable(); err == nil {
		list = append(list, self)
	}
	list = slices.DeleteFunc(list, func(p string) bool { return !filepath.IsAbs(p) })
	slices.Sort(list)
	return slices.Compact(list)
}

// environment returns the names of the process's environment variables.
func environment() []string {
	var names []string
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		names = append(names, name)
	}
	return names
}
