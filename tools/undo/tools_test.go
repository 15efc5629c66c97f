package undo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
	"github.com/zephbot/zephbot/tools/shell"
	"github.com/zephbot/zephbot/tools/undo"
)

// bench is the real tools that change files, with a store of what they change.
type bench struct {
	dir   string // of the workspace
	more  string // another place where file tools may work
	store *undo.Store
	tools map[string]tools.Tool
	calls int
}

func newBench(t tb, top string) *bench {
	t.Helper()
	real, err := filepath.EvalSymlinks(top)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{dir: filepath.Join(real, "ws"), more: filepath.Join(real, "more"), tools: map[string]tools.Tool{}}
	for _, dir := range []string{b.dir, b.more} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	own := func(tools.Origin) (string, error) { return b.dir, nil }
	list, err := file.New(file.Options{Workspace: own, AllowedPaths: []string{b.more}})
	if err != nil {
		t.Fatal(err)
	}
	bash, _, err := shell.New(shell.Options{Workspace: own, Sandbox: shell.SandboxOff})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range append(list, bash) {
		b.tools[tool.Definition.Name] = tool
	}
	b.store = undo.New(undo.Options{
		Dir: filepath.Join(real, "undo"), Own: own, Workspace: func(tools.Origin) string { return "ws" },
		Find: func(call *tools.Call) (tools.Tool, bool) {
			tool, ok := b.tools[call.Def.Name]
			return tool, ok
		},
	})
	return b
}

// call makes a call of the turn "t".
func (b *bench) call(t tb, name string, args map[string]any) error {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	b.calls++
	tool := b.tools[name]
	_, err = b.store.Middleware(tool.Run)(context.Background(), &tools.Call{
		ID: fmt.Sprint(b.calls, ".0"), Args: raw, Def: tool.Definition, Trail: &tools.Trail{},
		Origin: tools.Origin{Turn: "t", Session: "s", Caller: "telegram:42"},
	})
	return err
}

func (b *bench) trees(t tb) [2]map[string]string {
	t.Helper()
	return [2]map[string]string{tree(t, b.dir), tree(t, b.more)}
}

// drawn makes a random call of a file tool; many fail.
func drawn(t *rapid.T, b *bench) {
	path := func(label string) string {
		name := rapid.SampledFrom([]string{"a", "b", "d", "d/a", "d/e/f", "new/deep/er"}).Draw(t, label)
		if rapid.IntRange(0, 4).Draw(t, "elsewhere") == 0 {
			return filepath.Join(b.more, name)
		}
		return name
	}
	switch tool := rapid.SampledFrom([]string{"write", "edit", "create_directory", "delete_path", "move_path", "copy_path"}).Draw(t, "tool"); tool {
	case "write":
		_ = b.call(t, tool, map[string]any{"path": path("path"), "content": rapid.SampledFrom([]string{"", "one", "two"}).Draw(t, "content")})
	case "edit":
		_ = b.call(t, tool, map[string]any{"path": path("path"), "old_string": "o", "new_string": "0", "replace_all": true})
	case "create_directory", "delete_path":
		_ = b.call(t, tool, map[string]any{"path": path("path")})
	default:
		_ = b.call(t, tool, map[string]any{"source": path("source"), "destination": path("destination")})
	}
}

// TestFileTools: what the file tools change is what they say they may change: undoing a turn restores everything.
func TestFileTools(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		top, err := os.MkdirTemp("", "undo") //nolint:usetesting // rapid has no directories
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(top) }()
		b := newBench(t, top)
		for _, dir := range []string{b.dir, b.more} {
			for range rapid.IntRange(0, 4).Draw(t, "before") {
				mutate(t, dir)
			}
		}
		before := b.trees(t)
		for range rapid.IntRange(1, 8).Draw(t, "calls") {
			drawn(t, b)
		}
		r, err := b.store.Undo(context.Background(), "ws", undo.Key("t"), undo.Undone{})
		if err != nil && !errors.Is(err, fs.ErrNotExist) || r.Count(undo.Done) != len(r.Files) {
			t.Fatalf("undo: %s, %v", states(r), err)
		}
		if diff := cmp.Diff(before, b.trees(t)); diff != "" {
			t.Fatalf("not restored (-before +now):\n%s", diff)
		}
	})
}

// TestCommand: what a command has changed in its directory is put back, temporary files aside.
func TestCommand(t *testing.T) {
	t.Parallel()
	b := newBench(t, t.TempDir())
	for _, name := range []string{"a", "b", "d/a", "run.sh"} {
		put(t, filepath.Join(b.dir, name), "old "+name)
	}
	before := b.trees(t)
	for _, command := range []string{
		"rm -r d; mv a z; echo new > b; ln -s /etc/passwd d", "chmod 700 run.sh; mkdir -p x/y; echo 1 > x/y/z; exit 3", `echo 2 > "$TMPDIR/f"; echo 3 >> b`, "ls",
	} {
		if err := b.call(t, "bash", map[string]any{"command": command}); err != nil {
			t.Fatal(err)
		}
	}
	r, err := b.store.Undo(t.Context(), "ws", undo.Key("t"), undo.Undone{})
	if err != nil || r.Count(undo.Done) != len(r.Files) || len(r.Known) != 3 {
		t.Fatalf("undo: %+v, %v", r, err)
	}
	after := b.trees(t)
	for name := range after[0] {
		if name == ".tmp" || filepath.Dir(name) == ".tmp" {
			delete(after[0], name)
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("-before +now\n%s", diff)
	}
}
