package file_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zephbot/zephbot/policy/pathrule"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/file"
)

// swap repeatedly exchanges a directory for a link to outside until it is stopped. It does not synchronise with
// anybody.
func swap(ctx context.Context, b *box, name, target string) {
	for ctx.Err() == nil {
		exchange(b, name, target)
		runtime.Gosched()
		restore(b, name)
	}
}

// exchange replaces something by a link. Any step may fail while a tool is working there; the next round corrects it.
func exchange(b *box, name, target string) {
	_ = os.Rename(b.path(name), b.path(name+".spare"))
	_ = os.Symlink(target, b.path(name+".link"))
	_ = os.Rename(b.path(name+".link"), b.path(name))
}

// restore puts back what exchange took away; what a tool made in its place goes.
func restore(b *box, name string) {
	if b.exists(name + ".spare") {
		_ = os.RemoveAll(b.path(name))
		_ = os.Rename(b.path(name+".spare"), b.path(name))
	}
}

// hooked is a context that does something when it is asked for its error the nth time: tools ask between their steps.
type hooked struct {
	context.Context //nolint:containedctx // it is a context itself
	left            atomic.Int32
	do              func()
}

// Err implements context.Context.
func (h *hooked) Err() error {
	if h.left.Add(-1) == -1 {
		h.do()
	}
	return h.Context.Err()
}

// At every step at which a tool checks its context, its directory becomes a link to outside, and a file a link to a
// denied one.
func TestSwapBetweenSteps(t *testing.T) {
	t.Parallel()
	b := denying(t, "data/workspaces/one/private.txt")
	b.put("private.txt", "SECRET")
	swapped := map[string]int{}
	for name, in := range map[string]args{
		"read": {"path": "d/secret.txt"}, "write": {"path": "d/secret.txt", "content": "evil"}, "edit": {"path": "d/secret.txt", "old_string": "harm", "new_string": "evil"},
		"grep": {"pattern": "."}, "list_directory": {"path": "d"}, "find_path": {"pattern": "d/**"}, "copy_path": {"source": "d", "destination": "copy"},
		"delete_path": {"path": "d/e"}, "move_path": {"source": "d/e", "destination": "moved"},
	} {
		for step := range 5 {
			for target, victim := range map[string]string{b.outside: "d", "../private.txt": "d/secret.txt"} {
				b.put("d/secret.txt", "harmless")
				b.put("d/e/secret.txt", "harmless")
				ctx := &hooked{Context: t.Context(), do: func() { exchange(b, victim, target); swapped[name]++ }}
				ctx.left.Store(int32(step))
				if res, err := b.tools[name].Run(ctx, b.call(name, in)); err != nil {
					b.harmless(tools.Feedback(err), in)
				} else {
					b.harmless(res.Text, in)
				}
				restore(b, victim)
				if target == b.outside {
					b.clean()
				}
				for _, left := range []string{"d", "copy", "moved"} {
					if err := os.RemoveAll(b.path(left)); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if name != "move_path" && swapped[name] == 0 { // a rename is one step
			t.Errorf("%s was never disturbed", name)
		}
	}
}

// grep and find_path read the clock between directories. A listed directory is a link by the time it is entered.
func TestSwapDuringWalk(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"grep", "find_path"} {
		for step := range 4 {
			calls, swapped := 0, false
			var b *box
			b = newBox(t, func(_ *box, o *file.Options) {
				o.Now = func() time.Time {
					if calls++; calls == step+1 {
						exchange(b, "d", b.outside)
						swapped = true
					}
					return time.Unix(0, 0)
				}
			})
			b.put("a/f.txt", "harmless")
			b.put("d/e/f.txt", "harmless")
			in := args{"pattern": map[string]string{"grep": ".", "find_path": "**"}[tool]}
			if got := b.run(tool, in); strings.Contains(got, "SECRET") || strings.Contains(got, "secret.txt") {
				t.Errorf("%s, step %d: %s", tool, step, got)
			}
			if !swapped {
				t.Errorf("%s looked at the clock %d times, not %d", tool, calls, step+1)
			}
		}
	}
}

// clean is untouched, with the one secret that is in its place.
func (b *box) clean() {
	b.t.Helper()
	if err := os.Rename(b.path("private.txt"), filepath.Join(b.top, "away")); err != nil {
		b.t.Fatal(err)
	}
	b.untouched()
	if err := os.Rename(filepath.Join(b.top, "away"), b.path("private.txt")); err != nil {
		b.t.Fatal(err)
	}
}

// While somebody swaps a directory for a link, no call reaches what is outside.
func TestSwap(t *testing.T) {
	t.Parallel()
	b := newBox(t, nil)
	b.put("d/secret.txt", "harmless")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { swap(ctx, b, "d", b.outside) })
	for range 25 {
		for name, in := range map[string]args{
			"read": {"path": "d/secret.txt"}, "write": {"path": "d/secret.txt", "content": "harmless"}, "edit": {"path": "d/secret.txt", "old_string": "SECRET", "new_string": "evil"},
			"grep": {"pattern": ".", "path": "d"}, "list_directory": {"path": "d"}, "create_directory": {"path": "d/made"}, "copy_path": {"source": "d/secret.txt", "destination": "copy"},
			"delete_path": {"path": "d/made"}, "move_path": {"source": "copy", "destination": "d/moved"}, "find_path": {"pattern": "d/*"},
		} {
			text, err := b.try(name, in)
			b.harmless(text, in)
			if err != nil {
				b.harmless(tools.Feedback(err), in)
			}
		}
	}
	cancel()
	wg.Wait()
	b.untouched()
}

// The same with a file and a link to a denied one beside it.
func TestSwapDenied(t *testing.T) {
	t.Parallel()
	b := denying(t, "data/workspaces/one/private.txt")
	b.put("private.txt", "SECRET")
	b.put("f.txt", "harmless")
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { swap(ctx, b, "f.txt", "private.txt") })
	for range 50 {
		for name, in := range map[string]args{"read": {"path": "f.txt"}, "grep": {"pattern": "."}, "edit": {"path": "f.txt", "old_string": "h", "new_string": "h "}, "copy_path": {"source": "f.txt", "destination": "g.txt"}} {
			text, err := b.try(name, in)
			b.harmless(text, in)
			if err != nil {
				b.harmless(tools.Feedback(err), in)
			}
		}
	}
	cancel()
	wg.Wait()
	if text, err := b.try("read", args{"path": "g.txt"}); err == nil { // it may be a link, which is copied as one
		b.harmless(text, nil)
	}
}

func FuzzPath(f *testing.F) {
	for _, p := range []string{"a", "../x", "l/../../..", "/etc/passwd", "~", "a\x00", "l//./..", "\xff", "d/l/m", strings.Repeat("../", 50)} {
		f.Add(p)
	}
	b := newBox(f, func(b *box, o *file.Options) {
		rules, err := pathrule.New([]string{b.ws + "/d/*.key"}, nil)
		if err != nil {
			f.Fatal(err)
		}
		o.Rules = rules
	})
	b.put("d/a.key", "SECRET")
	b.put("d/x", "x")
	b.link("..", "l")
	b.link(b.outside, "d/l")
	f.Fuzz(func(t *testing.T, path string) {
		for _, tool := range []string{"read", "list_directory"} {
			raw, err := json.Marshal(args{"path": path})
			if err != nil {
				t.Fatal(err)
			}
			call := &tools.Call{Tool: tool, Args: raw, Trail: &tools.Trail{}}
			s, err := b.tools[tool].Describe(t.Context(), call)
			if err == nil && !pathrule.Inside(b.ws, s.Paths[0]) && !pathrule.Inside(b.shared, s.Paths[0]) {
				t.Errorf("%q leads to %s", path, s.Paths[0])
			}
			if res, err := b.tools[tool].Run(t.Context(), call); err == nil && strings.Contains(res.Text, "SECRET") {
				t.Errorf("%q shows %q", path, res.Text)
			}
		}
	})
}
