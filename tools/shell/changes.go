package shell

import (
	"context"
	"path/filepath"
	"slices"

	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// changesOf returns what a command may change: anything in its directory, and what the sandbox lets it reach besides.
// If its layer is applied instead, that is what the layer changes, and nothing else.
func (r *Runner) changesOf(ctx context.Context, call *tools.Call, in In) (tools.Changes, error) {
	var c tools.Changes
	if _, reads := command.ReadsOnly(r.opts.Reader.Read(in.Command).Script); call.Layer == "" &&
		(reads || isReading(call)) && !in.Background {
		return c, nil
	}
	ws, err := r.workspaceOf(call.Origin)
	if err != nil {
		return c, err
	}
	if call.Layer != "" {
		paths, err := r.layerPaths(call, ws)
		if len(paths) > 0 {
			c.Files = []tools.Area{{Root: ws, Paths: paths, Alone: true}}
		}
		return c, err
	}
	if r.opts.Network != sandbox.NetworkOff {
		c.Beyond = append(c.Beyond, tools.Network)
	}
	elsewhere := func(p string) bool { return !isBelow(sandbox.Canonical(p), ws) }
	if !r.Level(ctx).Full() || slices.ContainsFunc(r.opts.AllowedPaths, elsewhere) {
		c.Beyond = append(c.Beyond, tools.Elsewhere)
	}
	if in.Background {
		c.Beyond = append(c.Beyond, tools.Background)
		return c, nil
	}
	spare := []string{filepath.Join(ws, tmpName)}
	for rel := range r.deniedInside(ws) {
		spare = append(spare, filepath.Join(ws, rel))
	}
	c.Files = []tools.Area{{Root: ws, Paths: []string{ws}, Spare: spare}}
	return c, nil
}
