// Package file has the ten file tools: read, write, edit, find_path, grep, list_directory, create_directory,
// delete_path, move_path and copy_path (seed 003, FileExecutor), and send_file. They reach only the working directory
// of the session and the configured paths.
//
// Every allowed place is held by an os.Root. A path is made absolute without using the disk, and is then walked down
// from the handle of its root, one name at a time. A link is read rather than followed: if it leads to an allowed
// place, the walk starts again there. Nothing outside is therefore ever inspected. The resulting path contains no
// links. It is opened once more from the handle of the root with O_NOFOLLOW at every name, so that replacing a
// directory by a link between the check and the use causes an error. All operations are relative to the handle of the
// directory.
//
// The deny globs (deny_read, allow_read) protect content, not names. read, grep, edit, copy and move refuse a denied
// file, but its name is listed and found, so that a model does not overwrite what it cannot see. No tool reaches, lists
// or finds denied paths (the configuration, the data directory). If anything is denied, a file with several names that
// may be a denied one is not read either.
package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/workspace"
)

// Options configures the tools. Workspace is required; other fields have useful zero values.
type Options struct {
	// Workspace returns the working directory of a call as an absolute path. Relative paths start there. The directory
	// is created if it does not exist.
	Workspace func(tools.Origin) (dir string, err error)
	// AllowedPaths are further directories in which the tools work. They are absolute and exist.
	AllowedPaths []string
	// DeniedPaths are absolute paths of files and directories that no tool reaches, even inside an allowed path: the
	// configuration file, the data directory. The workspace may be inside one of them and can still be reached.
	DeniedPaths []string
	// Rules are the globs of deny_read and allow_read; nil denies nothing.
	Rules *pathrule.Rules

	// ReadText gives the text of a file as another program has it, such as an editor with what is not saved yet. It is
	// asked for files that may be read, by their canonical path. nil = files are read from the disk.
	ReadText func(ctx context.Context, path string) (string, error)
	// WriteText writes a file in the same way; the directory above it exists. nil = files are written to the disk.
	WriteText func(ctx context.Context, path, text string) error

	// Outlet takes the files that send_file sends; nil = there is no send_file.
	Outlet *Outlet
	// Disk limits how much may be written; nil = no limit.
	Disk *workspace.Guard

	MaxRead    int              // bytes of text in one answer of read; 0 = 256 KiB
	MaxWrite   int              // bytes that write and edit may leave in a file; 0 = 10 MiB
	MaxCopy    int64            // bytes that one call can copy; 0 = 256 MiB
	MaxEntries int              // files and directories that one call can copy, delete or inspect; 0 = 100 000
	MaxResults int              // default number of paths returned by find_path; 0 = 200
	MaxTime    time.Duration    // duration of grep and find_path; 0 = 20 s
	Now        func() time.Time // clock for MaxTime; nil = time.Now
}

func (o Options) withDefaults() Options {
	if o.Rules == nil {
		o.Rules = &pathrule.Rules{}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	fillDefault(&o.MaxRead, 256<<10)
	fillDefault(&o.MaxWrite, 10<<20)
	fillDefault(&o.MaxCopy, 256<<20)
	fillDefault(&o.MaxEntries, 100_000)
	fillDefault(&o.MaxResults, 200)
	fillDefault(&o.MaxTime, 20*time.Second)
	return o
}

func fillDefault[T int | int64 | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// toolset is shared by the tools. It is immutable after New.
type toolset struct {
	Options
	roots  []rootPath
	denied []deniedPath // both the canonical and the configured form
	rules  bool         // a glob denies something
}

// New returns the ten tools in the order of the registry, and send_file if there is an Outlet. The error lists every
// configured path that is not usable.
func New(o Options) ([]tools.Tool, error) {
	t, err := newToolset(o)
	if err != nil {
		return nil, err
	}
	var list []tools.Tool
	builds := []func() (tools.Tool, error){
		t.readTool, t.writeTool, t.editTool, t.findPath, t.grepTool, t.listDirectory, t.createDirectory, t.deletePath,
		t.movePath, t.copyPath,
	}
	if o.Outlet != nil {
		builds = append(builds, t.sendFile)
	}
	for _, build := range builds {
		tool, err := build()
		if err != nil {
			return nil, err
		}
		list = append(list, tool)
	}
	return tools.State(list, Says())
}

// Through returns those of read, write and edit that work through another program: read with ReadText, write with
// WriteText, and edit with both.
func Through(o Options) ([]tools.Tool, error) {
	t, err := newToolset(o)
	if err != nil {
		return nil, err
	}
	var list []tools.Tool
	for _, build := range []struct {
		of     func() (tools.Tool, error)
		wanted bool
	}{
		{t.readTool, o.ReadText != nil},
		{t.writeTool, o.WriteText != nil},
		{t.editTool, o.ReadText != nil && o.WriteText != nil},
	} {
		if !build.wanted {
			continue
		}
		tool, err := build.of()
		if err != nil {
			return nil, err
		}
		list = append(list, tool)
	}
	return tools.State(list, Says())
}

// newToolset checks the options. The error lists every configured path that is not usable.
func newToolset(o Options) (*toolset, error) {
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
		t.denied = append(t.denied, deniedPath{filepath.Clean(p), foldPath(filepath.Clean(p))})
		if resolved := canonicalPath(p); resolved != filepath.Clean(p) {
			t.denied = append(t.denied, deniedPath{resolved, foldPath(resolved)})
		}
	}
	// A path that is not canonical is denied exactly if there is a deny glob.
	_, t.rules = t.Rules.Denied("")
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
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

// canonicalPath resolves links in the part of p that exists, and keeps the rest.
func canonicalPath(p string) string {
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
