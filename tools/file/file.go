// Package file has the ten file tools: read, write, edit, find_path, grep, list_directory, create_directory,
// delete_path, move_path and copy_path (seed 003, FileExecutor). They reach nothing but the working directory of the
// conversation and the configured paths.
//
// How that holds: every allowed place is held by an os.Root. A path is made absolute by its letters and walked down
// from the handle of its root, name by name; a link is read, not followed, and the walk begins again where it leads, if
// that is an allowed place. So nothing outside is ever looked at. The path that comes out holds no links; it is opened
// from the root's handle once more, following none (O_NOFOLLOW at every name), so that whoever swaps a directory for a
// link between the check and the use gets an error. What is done, is done relative to the handle of the directory.
//
// The deny globs (deny_read, allow_read) protect content, not names: read, grep, edit, copy and move refuse a denied
// file, and the names of such files are listed and found, so that a model does not overwrite what it cannot see. Denied
// paths (the configuration, the data directory) are not reached, listed or found by any tool. Where something is
// denied, a file with a second name that may be a denied one is not read either.
package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/disk"
)

// Options configures the tools. Workspace is required; the rest has useful zero values.
type Options struct {
	// Workspace is the working directory of a call: an absolute path. Relative paths start there. It is made when it is
	// absent.
	Workspace func(tools.Origin) (dir string, err error)
	// AllowedPaths are further directories (absolute, they exist) in which the tools work.
	AllowedPaths []string
	// DeniedPaths are files and directories (absolute) that no tool reaches, even inside an allowed path: the
	// configuration file, the data directory. The workspace may lie inside one and is reached all the same.
	DeniedPaths []string
	// Rules are the globs of deny_read and allow_read; nil denies nothing.
	Rules *pathrule.Rules

	// Disk says how much more may be written; nil = as much as there is.
	Disk *disk.Guard

	MaxRead    int              // bytes of text in one answer of read; 0 = 256 KiB
	MaxWrite   int              // bytes that write and edit may leave in a file; 0 = 10 MiB
	MaxCopy    int64            // bytes that one call may copy; 0 = 256 MiB
	MaxEntries int              // files and directories that one call may copy, delete or look at; 0 = 100 000
	MaxResults int              // paths that find_path gives when not told otherwise; 0 = 200
	MaxTime    time.Duration    // how long grep and find_path look; 0 = 20 s
	Now        func() time.Time // the clock of MaxTime; nil = time.Now
}

func (o Options) withDefaults() Options {
	if o.Rules == nil {
		o.Rules = &pathrule.Rules{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	fill(&o.MaxRead, 256<<10)
	fill(&o.MaxWrite, 10<<20)
	fill(&o.MaxCopy, 256<<20)
	fill(&o.MaxEntries, 100_000)
	fill(&o.MaxResults, 200)
	fill(&o.MaxTime, 20*time.Second)
	return o
}

func fill[T int | int64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// toolset is what the ten tools share. It is immutable after New.
type toolset struct {
	Options
	roots  []rootPath
	denied []deniedPath // canonical and as configured
	rules  bool         // something is denied by a glob
}

// New makes the ten tools in the order of the registry. The error names every configured path that is not usable.
func New(o Options) ([]tools.Tool, error) {
	t := &toolset{Options: o.withDefaults()}
	var errs []error
	if o.Workspace == nil {
		errs = append(errs, errors.New("file tools: no workspace"))
	}
	for _, p := range o.AllowedPaths {
		r, err := allowedRoot(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("allowed path: %w", err))
			continue
		}
		t.roots = append(t.roots, r)
	}
	for _, p := range o.DeniedPaths {
		if !filepath.IsAbs(p) {
			errs = append(errs, fmt.Errorf("denied path %q: want an absolute path", p))
			continue
		}
		t.denied = append(t.denied, deniedPath{filepath.Clean(p), fold(filepath.Clean(p))})
		if resolved := canonical(p); resolved != filepath.Clean(p) {
			t.denied = append(t.denied, deniedPath{resolved, fold(resolved)})
		}
	}
	// A path that is not canonical is denied exactly when there is a deny glob.
	_, t.rules = t.Rules.Denied("")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var list []tools.Tool
	for _, build := range []func() (tools.Tool, error){
		t.read, t.write, t.edit, t.findPath, t.grep, t.listDirectory, t.createDirectory, t.deletePath, t.movePath,
		t.copyPath,
	} {
		tool, err := build()
		if err != nil {
			return nil, err
		}
		list = append(list, tool)
	}
	return tools.State(list, Says())
}

// rootPath is a directory in which the tools work.
type rootPath struct {
	alias string // as configured, cleaned
	path  string // without links
}

func allowedRoot(p string) (rootPath, error) {
	if !filepath.IsAbs(p) {
		return rootPath{}, fmt.Errorf("%q: want an absolute path", p)
	}
	resolved, err := filepath.EvalSymlinks(p)
	if err != nil {
		return rootPath{}, fmt.Errorf("%q cannot be used: %w", p, err)
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return rootPath{}, fmt.Errorf("%q cannot be used: %w", p, err)
	}
	if !info.IsDir() {
		return rootPath{}, fmt.Errorf("%q is not a directory", p)
	}
	return rootPath{alias: filepath.Clean(p), path: resolved}, nil
}

// canonical resolves the links of what exists of p and keeps the rest.
func canonical(p string) string {
	p = filepath.Clean(p)
	rest := ""
	for dir := p; ; dir = filepath.Dir(dir) {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(resolved, rest)
		}
		if dir == filepath.Dir(dir) {
			return p
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
