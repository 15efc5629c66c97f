package watch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools/code/watch"
)

// garden is a watched directory. What it reports is compared after Sync, which returns when everything was reported, so
// that no test waits for a time.
type garden struct {
	t       *testing.T
	root    string
	watcher *watch.Watcher

	mu       sync.Mutex
	reported map[string]int
	hold     chan struct{} // reports wait until it is closed; nil = they do not
}

func plant(t *testing.T, limit int) *garden {
	t.Helper()
	g := &garden{t: t, reported: map[string]int{}}
	var err error
	if g.root, err = filepath.EvalSymlinks(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if g.watcher, err = watch.New(t.TempDir(), limit); err != nil {
		t.Skipf("no watching here: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	began := make(chan struct{})
	running.Go(func() {
		close(began)
		if err := g.watcher.Run(ctx, g.changed); err != nil {
			t.Error(err)
		}
	})
	<-began
	t.Cleanup(func() {
		cancel()
		running.Wait()
		if err := g.watcher.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func (g *garden) changed(root string) {
	g.mu.Lock()
	g.reported[root]++
	hold := g.hold
	g.mu.Unlock()
	if hold != nil {
		<-hold
	}
}

// at returns a path below the root.
func (g *garden) at(name string) string { return filepath.Join(g.root, name) }

func (g *garden) must(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

func (g *garden) mkdir(names ...string) {
	g.t.Helper()
	for _, name := range names {
		g.must(os.MkdirAll(g.at(name), 0o700))
	}
}

func (g *garden) write(name string) {
	g.t.Helper()
	g.must(os.WriteFile(g.at(name), []byte("text"), 0o600))
}

// watch watches directories of a root, both named from the root of the garden.
func (g *garden) watch(root string, dirs ...string) {
	g.t.Helper()
	for i, dir := range dirs {
		dirs[i] = g.at(dir)
	}
	g.must(g.watcher.Watch(g.at(root), dirs))
}

// news returns the roots that were reported since the last call.
func (g *garden) news() []string {
	g.t.Helper()
	for !g.watcher.Sync(g.t.Context()) { // a busy machine
		if g.t.Context().Err() != nil {
			g.t.Fatal("the watcher does not answer")
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []string{}
	for root := range g.reported {
		name, err := filepath.Rel(g.root, root)
		g.must(err)
		list = append(list, name)
	}
	clear(g.reported)
	slices.Sort(list)
	return list
}

// expect compares what was reported since the last call.
func (g *garden) expect(what string, want ...string) {
	g.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), g.news()); diff != "" {
		g.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	g := plant(t, 0)
	g.mkdir("sub", "elsewhere")
	g.write("old.go")
	g.watch(".", ".", "sub")
	g.expect("nothing has happened")
	g.write("new.go")
	g.expect("a new file", ".")
	g.write("old.go")
	g.expect("a changed file", ".")
	g.write("sub/new.go")
	g.expect("a new file in a directory", ".")
	g.write(".gitignore")
	g.expect(".gitignore", ".")
	g.must(os.Rename(g.at("old.go"), g.at("older.go")))
	g.expect("a renamed file", ".")
	g.must(os.Remove(g.at("older.go")))
	g.expect("a deleted file", ".")
	g.must(os.Chmod(g.at("new.go"), 0o644))
	g.write("new.go~")
	g.write(".new.go.swp")
	g.write("elsewhere/new.go")
	g.expect("rights, scratch files, and what is not watched")
	g.watcher.Unwatch(g.root)
	g.write("new.go")
	g.expect("what is not watched any more")
}

// TestDirectories: a directory that was moved or deleted is not watched under its old name, and can come back.
func TestDirectories(t *testing.T) {
	t.Parallel()
	g := plant(t, 0)
	g.mkdir("a/deep")
	dirs := []string{".", "a", "a/deep"}
	g.watch(".", slices.Clone(dirs)...)
	g.must(os.Rename(g.at("a"), g.at("b")))
	g.expect("a renamed directory", ".")
	g.write("b/deep/x.go")
	g.expect("the new name is not watched yet")
	g.watch(".", ".", "b", "b/deep")
	g.write("b/deep/x.go")
	g.expect("the new name", ".")

	away := filepath.Join(t.TempDir(), "away")
	if err := os.Rename(g.at("b"), away); err == nil { // fails between file systems
		g.expect("a directory that was moved away", ".")
		g.must(os.WriteFile(filepath.Join(away, "deep", "y.go"), nil, 0o600))
		g.expect("where it was moved to")
		g.must(os.Rename(away, g.at("b")))
		g.watch(".", ".", "b", "b/deep")
		g.expect("it is back", ".")
	}

	g.must(os.RemoveAll(g.at("b")))
	g.expect("a deleted directory", ".")
	g.mkdir("b/deep")
	g.expect("a new directory with the old name", ".")
	g.watch(".", ".", "b", "b/deep", "gone")
	g.write("b/deep/z.go")
	g.expect("a file in it", ".")
	g.must(os.RemoveAll(g.root))
	g.expect("the root is deleted", ".")
}

// TestRootsInside: a root that is inside of another is watched by itself.
func TestRootsInside(t *testing.T) {
	t.Parallel()
	g := plant(t, 3)
	g.mkdir("in/deep")
	g.watch(".", ".", "in", "in/deep")
	g.watch("in", "in", "in/deep") // needs no further watches
	g.write("in/deep/x.go")
	g.expect("inside", ".", "in")
	g.write("y.go")
	g.expect("outside", ".")
	g.watcher.Unwatch(g.root)
	g.write("in/deep/x.go")
	g.expect("the outer one is not watched any more", "in")
	g.must(os.RemoveAll(g.at("in")))
	g.expect("deleted", "in")
}

// TestTooMany: a root of which not everything can be watched is not watched at all; the others are.
func TestTooMany(t *testing.T) {
	t.Parallel()
	g := plant(t, 3)
	g.mkdir("a", "b/1", "b/2", "b/3")
	g.watch("a", "a")
	if err := g.watcher.Watch(g.at("b"), []string{g.at("b"), g.at("b/1"), g.at("b/2"), g.at("b/3")}); !errors.Is(err, watch.ErrLimit) {
		t.Errorf("error %v", err)
	}
	g.write("b/x.go")
	g.write("b/1/x.go")
	g.expect("the one that is too large")
	g.write("a/x.go")
	g.expect("the other one", "a")
	g.watch("b", "b", "b/1") // now it is small enough
	g.write("b/1/x.go")
	g.expect("small enough", "b")
}

// TestLostEvents: if more happens than the system reports, every root counts as changed.
func TestLostEvents(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("/proc/sys/fs/inotify/max_queued_events")
	if err != nil {
		t.Skip("this system does not say how many events it keeps")
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || most > 32_768 {
		t.Skipf("it would take too many events: %s", text)
	}
	g := plant(t, 0)
	g.mkdir("busy", "quiet")
	g.watch("busy", "busy")
	g.watch("quiet", "quiet")
	g.mu.Lock()
	g.hold = make(chan struct{})
	g.mu.Unlock()
	for range most/2 + 4000 { // two events each; the first is held, and some have been read
		g.must(os.Mkdir(g.at("busy/x"), 0o700))
		g.must(os.Remove(g.at("busy/x")))
	}
	g.mu.Lock()
	close(g.hold)
	g.hold = nil
	g.mu.Unlock()
	g.expect("events were lost", "busy", "quiet")
}

func TestSync(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := watch.New(dir, 0)
	if err != nil {
		t.Skipf("no watching here: %v", err)
	}
	if w.Sync(t.Context()) {
		t.Error("nobody reads the events, and Sync says that they were reported")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("Close left %v (%v)", left, err)
	}
	g := plant(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if g.watcher.Sync(ctx) {
		t.Log("it was faster than the end of its context") // possible, and right
	}
	if _, err := watch.New(filepath.Join(dir, "none"), 0); err == nil {
		t.Error("a watcher without a place for its own directory")
	}
}
