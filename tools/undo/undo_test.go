package undo_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/undo"
)

// world is a workspace with a store of its changes.
type world struct {
	dir     string // of the workspace
	store   *undo.Store
	now     time.Time
	changes tools.Changes
	calls   int
	live    bool // a command runs in the background
}

// tb is what tests and properties have in common.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func newWorld(t tb, top string, limits undo.Limits) *world {
	t.Helper()
	w := &world{now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	real, err := filepath.EvalSymlinks(top)
	if err != nil {
		t.Fatal(err)
	}
	w.dir = filepath.Join(real, "ws")
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	w.changes = tools.Changes{Files: []tools.Area{{Root: w.dir, Paths: []string{w.dir}}}}
	w.store = w.process(limits)
	return w
}

// process returns a store on the same directory, as another process or the next one has it.
func (w *world) process(limits undo.Limits) *undo.Store {
	return undo.New(undo.Options{
		Dir: filepath.Join(filepath.Dir(w.dir), "undo"), Limits: limits, Now: func() time.Time { return w.now },
		Find: func(*tools.Call) (tools.Tool, bool) {
			return tools.Tool{Changes: func(context.Context, *tools.Call) (tools.Changes, error) { return w.changes, nil }}, true
		},
		Own:       func(tools.Origin) (string, error) { return w.dir, nil },
		Live:      func(tools.Origin) bool { return w.live },
		Workspace: func(tools.Origin) string { return "ws" },
	})
}

func (w *world) next(turn string) *tools.Call {
	w.calls++
	return &tools.Call{
		ID: fmt.Sprint(w.calls, ".0"), Def: tools.Definition{Name: "bash"}, Trail: &tools.Trail{},
		Origin: tools.Origin{Turn: turn, Session: "s", Caller: "telegram:42"},
	}
}

// run makes a call of a turn that does something.
func (w *world) run(ctx context.Context, turn string, do func()) {
	handler := w.store.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) {
		do()
		return &tools.Result{}, nil
	})
	_, _ = handler(ctx, w.next(turn)) // it never fails
}

// die makes a call during which the process dies, and returns it.
func (w *world) die(ctx context.Context, turn string, do func()) *tools.Call {
	call := w.next(turn)
	handler := w.store.Middleware(func(context.Context, *tools.Call) (*tools.Result, error) {
		do()
		panic("killed")
	})
	func() {
		defer func() { _ = recover() }()
		_, _ = handler(ctx, call) // it panics
	}()
	w.store = w.process(undo.Limits{})
	return call
}

func (w *world) undo(ctx context.Context, t tb, turn string) undo.Report {
	t.Helper()
	r, err := w.store.Undo(ctx, "ws", undo.Key(turn), undo.Undone{By: "telegram:42"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// tree is everything in a directory: kind, mode, content or target by path.
func tree(t tb, dir string) map[string]string {
	t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		text := ""
		switch {
		case e.Type().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = string(raw)
		case e.Type()&fs.ModeSymlink != 0:
			text, err = os.Readlink(path)
			m[path[len(dir)+1:]] = "link " + text
			return err
		}
		m[path[len(dir)+1:]] = fmt.Sprint(info.Mode(), " ", text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var names = []string{"a", "b", "d/a", "d/b", "d/e/a", "d/e", "d", "l", "x"}

// mutate does something to a workspace, or fails to.
func mutate(t *rapid.T, dir string) {
	path := func(label string) string { return filepath.Join(dir, rapid.SampledFrom(names).Draw(t, label)) }
	to := path("path")
	fileMode := fs.FileMode(rapid.SampledFrom([]int{0o600, 0o644, 0o755, 0o400}).Draw(t, "mode"))
	switch rapid.SampledFrom([]string{"write", "write", "append", "mkdir", "remove", "rename", "link", "chmod", "hard"}).Draw(t, "what") {
	case "write":
		_ = os.MkdirAll(filepath.Dir(to), 0o755)
		_ = os.WriteFile(to, []byte(rapid.SampledFrom([]string{"", "one", "two", strings.Repeat("x", 5000)}).Draw(t, "content")), fileMode)
	case "append":
		if f, err := os.OpenFile(to, os.O_APPEND|os.O_WRONLY, 0); err == nil {
			_, _ = f.WriteString("+")
			_ = f.Close()
		}
	case "mkdir":
		_ = os.MkdirAll(to, 0o755)
	case "remove":
		_ = os.RemoveAll(to)
	case "rename":
		_ = os.Rename(to, path("target"))
	case "link":
		_ = os.Symlink(rapid.SampledFrom([]string{"a", "/etc", "..", "d", "nowhere"}).Draw(t, "leads"), to)
	case "chmod":
		if info, err := os.Lstat(to); err == nil && info.Mode().IsRegular() {
			_ = os.Chmod(to, fileMode)
		} else if err == nil && info.IsDir() {
			_ = os.Chmod(to, fs.FileMode(rapid.SampledFrom([]int{0o700, 0o755, 0o555}).Draw(t, "directory's mode")))
		}
	case "hard":
		_ = os.Rename(to, filepath.Join(dir, "x")) // a replacement by another file
	}
}

// TestUndoRestores: whatever the calls of a turn do, undoing it restores the exact tree.
func TestUndoRestores(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		top, err := os.MkdirTemp("", "undo") //nolint:usetesting // rapid has no directories
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(top) }()
		w := newWorld(t, top, undo.Limits{})
		for range rapid.IntRange(0, 8).Draw(t, "before") {
			mutate(t, w.dir)
		}
		before := tree(t, w.dir)
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			do := func() {
				for range rapid.IntRange(0, 4).Draw(t, "changes") {
					mutate(t, w.dir)
				}
			}
			if rapid.IntRange(0, 5).Draw(t, "killed") == 0 {
				w.store.Interrupted(context.Background(), w.die(context.Background(), "t", do))
			} else {
				w.run(context.Background(), "t", do)
			}
		}
		after := tree(t, w.dir)
		r, err := w.store.Undo(context.Background(), "ws", undo.Key("t"), undo.Undone{})
		if errors.Is(err, fs.ErrNotExist) && cmp.Equal(before, after) {
			return // nothing was changed
		}
		if err != nil || r.Count(undo.Done) != len(r.Files) {
			t.Fatalf("undo: %+v, %v", r, err)
		}
		if diff := cmp.Diff(before, tree(t, w.dir)); diff != "" {
			t.Fatalf("not restored (-before +now):\n%s\nwas changed to %v", diff, after)
		}
	})
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// states returns path=what:state of each file of a report.
func states(r undo.Report) string {
	var list []string
	for _, f := range r.Files {
		list = append(list, f.Path+"="+f.What+":"+f.State)
	}
	return strings.Join(list, " ")
}

// TestWhatOthersChanged: what is no longer as the turn left it is not touched, and everything else is put back.
func TestWhatOthersChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir(), undo.Limits{})
	at := func(name string) string { return filepath.Join(w.dir, name) }
	for _, name := range []string{"a", "b", "c", "m"} {
		put(t, at(name), "old "+name)
	}
	w.run(t.Context(), "t", func() {
		put(t, at("a"), "new")
		put(t, at("b"), "new")
		put(t, at("m"), "new")
		put(t, at("dir/made"), "new")
		_ = os.Remove(at("c"))
	})
	put(t, at("m"), "somebody's")
	w.run(t.Context(), "t", func() { put(t, at("m"), "newer") })
	put(t, at("b"), "somebody's")
	put(t, at("dir/theirs"), "somebody's")
	look, ok, err := w.store.Look(t.Context(), "ws", undo.Key("t"))
	const want = "a=edited:ready b=edited:changed c=deleted:ready dir/=made:changed dir/made=made:ready m=edited:mixed"
	if got := states(look); !ok || err != nil || got != want || look.Caller != "telegram:42" || look.Undone != nil {
		t.Errorf("look: %s, %v, %v; want %s", got, ok, err, want)
	}
	r := w.undo(t.Context(), t, "t")
	if got, want := states(r), strings.ReplaceAll(want, "ready", "done"); got != want || r.Undone == nil || r.Undone.By != "telegram:42" {
		t.Errorf("undo: %s, %+v; want %s", got, r.Undone, want)
	}
	got := map[string]string{}
	for _, name := range []string{"a", "b", "c", "m", "dir/made", "dir/theirs"} {
		raw, err := os.ReadFile(at(name))
		got[name] = string(raw)
		if err != nil {
			got[name] = "-"
		}
	}
	if diff := cmp.Diff(map[string]string{"a": "old a", "b": "somebody's", "c": "old c", "m": "newer", "dir/made": "-", "dir/theirs": "somebody's"}, got); diff != "" {
		t.Error(diff)
	}
	if again := w.undo(t.Context(), t, "t"); states(again) != states(r) || !again.Undone.At.Equal(r.Undone.At) {
		t.Errorf("again: %s, %+v", states(again), again.Undone)
	}
}

// TestLinksAreNotFollowed: a directory that was replaced by a link out of the workspace is not reached through it.
func TestLinksAreNotFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir(), undo.Limits{})
	outside := filepath.Join(filepath.Dir(w.dir), "outside")
	put(t, filepath.Join(outside, "a"), "theirs")
	put(t, filepath.Join(w.dir, "d/a"), "old")
	w.run(t.Context(), "t", func() { put(t, filepath.Join(w.dir, "d/a"), "theirs") })
	if err := errors.Join(os.RemoveAll(filepath.Join(w.dir, "d")), os.Symlink(outside, filepath.Join(w.dir, "d"))); err != nil {
		t.Fatal(err)
	}
	if got := states(w.undo(t.Context(), t, "t")); got != "d/a=edited:changed" {
		t.Errorf("undo: %s", got)
	}
	if raw, err := os.ReadFile(filepath.Join(outside, "a")); string(raw) != "theirs" || err != nil {
		t.Errorf("outside: %q, %v", raw, err)
	}
	w.changes.Files[0].Paths = []string{filepath.Join(w.dir, "d", "b")}
	w.run(t.Context(), "u", func() { put(t, filepath.Join(outside, "b"), "new") })
	if r, ok, err := w.store.Look(t.Context(), "ws", undo.Key("u")); ok || err != nil {
		t.Errorf("a call through a link: %+v, %v", r, err)
	}
}

// TestLimits: what is more than is kept is said to be so, and does not stop the call.
func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		limits undo.Limits
		prime  func(w *world)
		want   string
		calls  string
	}{
		"a large file": {limits: undo.Limits{File: 4}, want: "big=edited:large new=made:ready small=edited:ready"},
		"too much":     {limits: undo.Limits{Call: 7}, want: "big=edited:ready new=made:ready small=edited:full"},
		"too many":     {limits: undo.Limits{Entries: 1}, calls: "bash many"},
		"too slow":     {limits: undo.Limits{Time: 1, Entries: 1000}, prime: func(w *world) { w.crowd(t, 300) }, calls: "bash slow"},
		"two names": {
			prime: func(w *world) { _ = os.Link(filepath.Join(w.dir, "small"), filepath.Join(w.dir, "other")) },
			want:  "big=edited:ready new=made:ready other=edited:names small=edited:names",
		},
		"beyond": {
			prime: func(w *world) { w.changes.Beyond = []tools.Beyond{tools.Network} },
			want:  "big=edited:ready new=made:ready small=edited:ready", calls: "bash  network",
		},
		"a command in the background": {prime: func(w *world) { w.live = true }, calls: "bash  background"},
		"a place of others": {
			prime: func(w *world) {
				w.changes.Files[0] = tools.Area{Root: filepath.Dir(w.dir), Paths: []string{filepath.Dir(w.dir)}}
			},
			calls: "bash  elsewhere",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, t.TempDir(), tt.limits)
			put(t, filepath.Join(w.dir, "big"), "12345")
			put(t, filepath.Join(w.dir, "small"), "123")
			if tt.prime != nil {
				tt.prime(w)
			}
			w.run(t.Context(), "t", func() {
				put(t, filepath.Join(w.dir, "big"), "54321")
				put(t, filepath.Join(w.dir, "small"), "321")
				put(t, filepath.Join(w.dir, "new"), "1")
			})
			r, _, err := w.store.Look(t.Context(), "ws", undo.Key("t"))
			var calls []string
			for _, c := range r.Calls {
				line := c.Tool + " " + c.Problem
				for _, b := range c.Beyond {
					line += " " + string(b)
				}
				calls = append(calls, line)
			}
			if got := states(r); got != tt.want || strings.Join(calls, ",") != tt.calls || err != nil {
				t.Errorf("look: %q, %q, %v; want %q, %q", got, calls, err, tt.want, tt.calls)
			}
			if r.Count(undo.Ready) > 0 {
				if after := w.undo(t.Context(), t, "t"); after.Count(undo.Done) != r.Count(undo.Ready) {
					t.Errorf("undo: %s", states(after))
				}
			}
		})
	}
}

func (w *world) crowd(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		put(t, filepath.Join(w.dir, "crowd", fmt.Sprint(i)), "x")
	}
}

// TestKilled: a call that was running when its process died keeps undoing waiting until its turn goes on; if that never
// happens, what it changed is not put back.
func TestKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir(), undo.Limits{})
	at := filepath.Join(w.dir, "a")
	put(t, at, "old")
	w.run(t.Context(), "t", func() { put(t, at, "new") })
	call := w.die(t.Context(), "t", func() { put(t, at, "half") })
	if _, err := w.store.Undo(t.Context(), "ws", undo.Key("t"), undo.Undone{}); !errors.Is(err, undo.ErrBusy) {
		t.Errorf("undo while a call is open: %v", err)
	}
	w.store.Interrupted(t.Context(), call)
	w.store.Interrupted(t.Context(), call) // the process died again
	if r := w.undo(t.Context(), t, "t"); states(r) != "a=edited:done" {
		t.Errorf("undo: %s", states(r))
	}
	w.die(t.Context(), "u", func() { put(t, at, "lost") })
	w.run(t.Context(), "v", func() { put(t, at, "later") })
	if r := w.undo(t.Context(), t, "u"); len(r.Files) > 0 || len(r.Calls) != 1 || r.Calls[0].Problem != undo.Interrupted {
		t.Errorf("undo of what was never closed: %+v", r)
	}
	if r := w.undo(t.Context(), t, "v"); states(r) != "a=edited:done" {
		t.Errorf("undo of the next turn: %s", states(r))
	}
	if raw, _ := os.ReadFile(at); string(raw) != "lost" {
		t.Errorf("a is %q", raw)
	}
}

// TestReadOnly: calls that change nothing are not recorded, and cost nothing.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir(), undo.Limits{})
	w.changes = tools.Changes{}
	w.run(t.Context(), "t", func() {})
	w.store.Interrupted(t.Context(), w.next("t"))
	if _, err := os.Stat(filepath.Join(filepath.Dir(w.dir), "undo")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the store: %v", err)
	}
	if _, ok, err := w.store.Look(t.Context(), "ws", undo.Key("t")); ok || err != nil {
		t.Errorf("look: %v, %v", ok, err)
	}
	if _, err := w.store.Undo(t.Context(), "ws", undo.Key("t"), undo.Undone{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("undo: %v", err)
	}
}

// stored counts the contents and turns in a store, and the bytes of the contents.
func (w *world) stored(t *testing.T) (contents, turns int, bytes int64) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(filepath.Dir(w.dir), "undo"), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if strings.Contains(path, "/objects/") {
			contents++
			bytes += info.Size()
		} else if strings.HasSuffix(path, ".json") {
			turns++
		}
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return contents, turns, bytes
}

// TestSweep: contents are stored once; what is too old or too much is removed, the oldest first; what nobody refers to
// is removed; in the end nothing is left.
func TestSweep(t *testing.T) {
	t.Parallel()
	limits := undo.Limits{Turns: 3, Workspace: 4000, Age: time.Hour}
	w := newWorld(t, t.TempDir(), limits)
	at := filepath.Join(w.dir, "a")
	put(t, at, strings.Repeat("0", 1000))
	put(t, filepath.Join(w.dir, "same"), strings.Repeat("0", 1000))
	for i := range 6 {
		w.now = w.now.Add(time.Minute)
		w.run(t.Context(), fmt.Sprint("t", i), func() { put(t, at, strings.Repeat(fmt.Sprint(i+1), 1000)) })
	}
	if _, _, bytes := w.stored(t); bytes > limits.Workspace+limits.Workspace/4+2000 {
		t.Errorf("%d bytes are stored before a sweep", bytes)
	}
	sweep := func() {
		if err := w.store.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if contents, turns, bytes := w.stored(t); contents != 3 || turns != 3 || bytes != 3000 {
		t.Errorf("%d contents, %d turns, %d bytes", contents, turns, bytes)
	}
	if r := w.undo(t.Context(), t, "t5"); states(r) != "a=edited:done" {
		t.Errorf("undo of the newest: %s", states(r))
	}
	small := undo.Limits{Turns: 3, Workspace: 4000, Total: 1500, Age: time.Hour}
	w.store = w.process(small)
	sweep()
	if _, turns, bytes := w.stored(t); turns == 0 || bytes > 1500 {
		t.Errorf("%d turns, %d bytes where 1500 are allowed in all", turns, bytes)
	}
	w.now = w.now.Add(2 * time.Hour)
	sweep()
	if entries, err := os.ReadDir(filepath.Join(filepath.Dir(w.dir), "undo")); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// TestDamaged: a copy that is not what was stored is not put back.
func TestDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir(), undo.Limits{})
	at := filepath.Join(w.dir, "a")
	put(t, at, "old")
	w.run(t.Context(), "t", func() { put(t, at, "new") })
	copies, err := filepath.Glob(filepath.Join(filepath.Dir(w.dir), "undo/ws/objects/*/*"))
	if err != nil || len(copies) != 1 {
		t.Fatalf("copies %v, %v", copies, err)
	}
	put(t, copies[0], "bad")
	if r := w.undo(t.Context(), t, "t"); states(r) != "a=edited:failed" || r.Undone != nil {
		t.Errorf("undo: %s", states(r))
	}
	if raw, _ := os.ReadFile(at); string(raw) != "new" {
		t.Errorf("a is %q", raw)
	}
	if names, _ := filepath.Glob(filepath.Join(w.dir, ".*")); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	record := filepath.Join(filepath.Dir(w.dir), "undo/ws/turns", undo.Key("t")+".json")
	put(t, record, "{")
	if _, ok, err := w.store.Look(t.Context(), "ws", undo.Key("t")); ok || err != nil {
		t.Errorf("look at a damaged record: %v, %v", ok, err)
	}
	if _, err := w.store.Undo(t.Context(), "ws", undo.Key("t"), undo.Undone{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("undo with a damaged record: %v", err)
	}
	w.run(t.Context(), "t", func() { put(t, at, "newer") })
	if r := w.undo(t.Context(), t, "t"); states(r) != "a=edited:done" {
		t.Errorf("undo of the rest of the turn: %s", states(r))
	}
}

// TestAlone: of an area whose paths are alone, only these are compared, and all of them can be put back; what something else
// changes meanwhile, also in a directory of the area, is no change of the call.
func TestAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, t.TempDir(), undo.Limits{})
	path := func(name string) string { return filepath.Join(w.dir, name) }
	put(t, path("kept/theirs"), "before")
	put(t, path("gone/a"), "a")
	w.changes = tools.Changes{Files: []tools.Area{{
		Root: w.dir, Alone: true, Paths: []string{path("kept"), path("kept/new"), path("gone"), path("gone/a")},
	}}}
	before := tree(t, w.dir)
	w.run(t.Context(), "t", func() {
		put(t, path("kept/new"), "new")
		put(t, path("kept/theirs"), "after")
		put(t, path("other"), "theirs")
		if err := os.RemoveAll(path("gone")); err != nil {
			t.Fatal(err)
		}
	})
	r := w.undo(t.Context(), t, "t")
	var got []string
	for _, f := range r.Files {
		got = append(got, f.What+" "+f.Path)
	}
	if want := []string{undo.Deleted + " gone/a", undo.Made + " kept/new"}; !cmp.Equal(got, want) {
		t.Errorf("%q", got)
	}
	want, after := before, tree(t, w.dir)
	want["kept/theirs"], want["other"] = after["kept/theirs"], after["other"]
	if diff := cmp.Diff(want, after); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
