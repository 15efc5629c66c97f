package layer_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/layer"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// bench is a workspace with a store of layers.
type bench struct {
	*testing.T

	ws    string
	store *layer.Store
	owner layer.Owner
}

func newBench(t *testing.T) *bench {
	t.Helper()
	if level := sandbox.Probe(t.Context(), sandbox.Self); !level.Full() || !level.Root {
		t.Skipf("no layers here, and the level says so: %s", level)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened(t, dir) })
	b := &bench{T: t, ws: filepath.Join(dir, "ws"), store: &layer.Store{Dir: filepath.Join(dir, "layers")}}
	b.owner = layer.Owner{Workspace: b.ws, Session: "s", Call: "c"}
	if err := os.Mkdir(b.ws, 0o755); err != nil {
		t.Fatal(err)
	}
	return b
}

// opened gives us the rights to remove a tree.
func opened(t *testing.T, dir string) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(path string, e os.DirEntry, _ error) error {
		if e != nil && e.IsDir() {
			_ = os.Chmod(path, 0o700)
			entries, _ := os.ReadDir(path)
			for _, sub := range entries {
				if sub.IsDir() {
					opened(t, filepath.Join(path, sub.Name()))
				}
			}
			return filepath.SkipDir
		}
		return nil
	})
}

// sh runs a text in a directory, on a layer unless over is nil.
func (b *bench) sh(dir string, over *sandbox.Overlay, text string) (string, int) {
	b.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		b.Skip("no bash on this machine")
	}
	p, err := sandbox.Start(b.Context(), sandbox.Spec{
		Helper: sandbox.Self, Argv: []string{bash, "--noprofile", "--norc", "-c", text}, Dir: dir, Write: []string{dir},
		Env: []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}, Require: true, Overlay: over,
	}, w, w)
	if err := errors.Join(err, w.Close()); err != nil {
		b.Fatal(err)
	}
	out, err := io.ReadAll(r)
	<-p.Done()
	s := p.Status()
	if err != nil || s.Err != nil || s.Signal != "" {
		b.Fatalf("%+v %v", s, err)
	}
	return string(out), s.Code
}

// draft runs a text on a new layer, and reads what it has changed.
func (b *bench) draft(text string) (*layer.Draft, string, error) {
	b.Helper()
	d, err := b.store.Begin(b.Context(), b.owner, map[string]bool{".tmp": true})
	if err != nil {
		b.Fatal(err)
	}
	out, _ := b.sh(b.ws, &sandbox.Overlay{Upper: d.Upper, Work: d.Work}, text)
	return d, out, d.Read(b.Context())
}

// preview runs a text on a new layer and keeps it.
func (b *bench) preview(text string) (digest, out string, changes []layer.Change) {
	b.Helper()
	d, out, err := b.draft(text)
	if err != nil {
		b.Fatalf("%v\n%s", err, text)
	}
	if digest, err = d.Keep(b.Context(), time.Now(), out); err != nil {
		b.Fatal(err)
	}
	return digest, out, d.Changes
}

func (b *bench) take(digest string) (string, error) {
	b.Helper()
	var out string
	err := b.store.Take(b.Context(), b.owner, digest, &out)
	return out, err
}

// listing prints everything about a tree that a layer has to keep.
const listing = `find . -printf '%P|%y|%m|%T@|%s|%l|%U|%G|' \( -type f -exec sh -c 'md5sum < "$0" || echo closed' {} \; -o -printf '\n' \) 2>/dev/null | sed -E 's/^([^|]*\|d\|[^|]*\|[^|]*\|)[0-9]+/\1/' | sort`

// script is a random program that edits a random tree.
func script(r *rand.Rand, steps int) string {
	names := []string{"a", "b", "c", "d", "e"}
	path := func() string {
		p := names[r.IntN(len(names))]
		for r.IntN(2) == 0 && strings.Count(p, "/") < 3 {
			p += "/" + names[r.IntN(len(names))]
		}
		return p
	}
	var b strings.Builder
	for range steps {
		p, q := path(), path()
		switch r.IntN(18) {
		case 0, 1, 2, 3:
			fmt.Fprintf(&b, "mkdir -p $(dirname %s) && echo %d >> %s\n", p, r.IntN(100), p)
		case 4:
			fmt.Fprintf(&b, "rm -rf %s\n", p)
		case 5:
			fmt.Fprintf(&b, "rm -f %s\n", p)
		case 6, 7:
			fmt.Fprintf(&b, "mkdir -p %s\n", p)
		case 8, 9:
			fmt.Fprintf(&b, "mv -T %s %s\n", p, q)
		case 10:
			// Into itself, cp goes by numbers of inodes, which an overlay does not keep for directories.
			fmt.Fprintf(&b, "cp -rT %s %s 2>/dev/null\n", p, "f"+q)
		case 11:
			fmt.Fprintf(&b, "ln -s %s %s\n", q, p)
		case 12:
			fmt.Fprintf(&b, "[ -L %s ] || chmod %s,u+rX %s\n", p, []string{"u=rwx,go=", "a+rx", "a-x", "u=rw,g=r,o=", "a=rwx", "u-w"}[r.IntN(6)], p)
		case 13:
			fmt.Fprintf(&b, "touch -h -d 2001-02-03T04:05:06.789 %s\n", p)
		case 14:
			fmt.Fprintf(&b, "[ -f %s ] && truncate -s %d %s\n", p, r.IntN(200_000), p)
		case 15:
			fmt.Fprintf(&b, "[ -d %s ] && rm -rf %s && mkdir %s && echo again > %s/x\n", p, p, p, p)
		case 16:
			fmt.Fprintf(&b, "[ -d %s ] && rm -rf %s && echo file > %s\n", p, p, p)
		case 17:
			fmt.Fprintf(&b, "[ -f %s ] && rm %s && mkdir -p %s/deep\n", p, p, p)
		}
	}
	return b.String()
}

// TestAttackSameTree: applying a layer gives the tree that the command has seen, which is the one that it would have made
// without a layer.
func TestAttackSameTree(t *testing.T) {
	t.Parallel()
	rounds := 25
	if testing.Short() {
		rounds = 8
	}
	for i := range rounds {
		seed := uint64(i)
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // repeatable
			base, edit := script(r, 30)+"\nfind . -exec touch -h -d 2020-01-01 {} +", script(r, 12)
			b.sh(b.ws, nil, base)
			plain := b.ws + "-plain"
			if out, err := exec.CommandContext(t.Context(), "cp", "-a", b.ws, plain).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			before, _ := b.sh(b.ws, nil, listing)
			_, wantCode := b.sh(plain, nil, edit)
			digest, _, changes := b.preview("exec 2>/dev/null\n" + edit + "\n" + listing)
			if after, _ := b.sh(b.ws, nil, listing); after != before {
				t.Fatalf("the preview has changed the workspace:\n%s\n%s", edit, cmp.Diff(before, after))
			}
			seen, err := b.take(digest)
			if err != nil {
				t.Fatal(err)
			}
			after, _ := b.sh(b.ws, nil, listing)
			if diff := cmp.Diff(seen, after); diff != "" {
				t.Errorf("base:\n%s\nedit:\n%s\nchanges: %+v\nseen on the layer -, applied +:\n%s", base, edit, changes, diff)
			}
			wanted, _ := b.sh(plain, nil, listing)
			if diff := cmp.Diff(timeless(wanted), timeless(after)); diff != "" {
				t.Errorf("base:\n%s\nedit:\n%s (exit %d)\nwithout a layer -, with one +:\n%s", base, edit, wantCode, diff)
			}
			if left, err := os.ReadDir(filepath.Join(b.store.Place(b.ws))); err != nil || len(left) != 1 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// timeless leaves out the times of what was written during the test.
func timeless(list string) string {
	var lines []string
	for line := range strings.Lines(list) {
		f := strings.Split(line, "|")
		if at, err := strconv.ParseFloat(f[3], 64); err == nil && time.Since(time.Unix(int64(at), 0)) < time.Hour {
			f[3] = "now"
		}
		lines = append(lines, strings.Join(f, "|"))
	}
	return strings.Join(lines, "")
}

const killed = "ZEPHBOT_TEST_KILL_AT"

// TestKilled is a process that applies a layer and is killed on the way.
func TestKilled(t *testing.T) {
	dir, at, ok := strings.Cut(os.Getenv(killed), "|")
	if !ok {
		t.Skip("started by TestAttackKill")
	}
	left, err := strconv.Atoi(at)
	if err != nil {
		t.Fatal(err)
	}
	digest, err := os.ReadFile(filepath.Join(dir, "digest"))
	if err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(dir, "ws")
	store := &layer.Store{Dir: filepath.Join(dir, "layers"), Step: func() {
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}}
	var out string
	if err := store.Take(t.Context(), layer.Owner{Workspace: ws, Session: "s", Call: "c"}, string(digest), &out); err != nil {
		t.Fatal(err)
	}
}

// TestAttackKill: a process that is killed before any step of applying a layer leaves what Finish completes.
func TestAttackKill(t *testing.T) {
	t.Parallel()
	const base = `mkdir -p dir/sub file2dir closed && echo 1 > dir/a; echo 2 > dir/sub/b; echo 3 > file; echo 4 > changed; echo x > closed/in
		echo 5 > moded; ln -s file link; chmod 555 closed; find . -exec touch -h -d 2020-01-01 {} +`
	const edit = `exec 2>/dev/null; rm -rf dir; echo now a file > dir; rm file; mkdir -p file/deep; echo 6 > file/deep/new; echo more >> changed
		chmod 600 moded; rm link; ln -s changed link; chmod 755 closed; echo y > closed/in; chmod 555 closed
		truncate -s 1M holes; rmdir file2dir; touch -d 2001-01-01 changed; ` + listing
	for at := 0; ; at++ {
		b := newBench(t)
		b.sh(b.ws, nil, base)
		digest, want, _ := b.preview(edit)
		dir := filepath.Dir(b.ws)
		if err := os.WriteFile(filepath.Join(dir, "digest"), []byte(digest), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), sandbox.Self, "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%d", killed, dir, at))
		out, err := cmd.CombinedOutput()
		died := cmd.ProcessState.Sys().(syscall.WaitStatus).Signaled() //nolint:forcetypeassert // on Linux
		if err != nil && !died {
			t.Fatalf("step %d: %v\n%s", at, err, out)
		}
		for range 2 { // the second time, there is nothing to do
			if err := b.store.Finish(t.Context(), never); err != nil {
				t.Fatalf("step %d: %v", at, err)
			}
		}
		got, _ := b.sh(b.ws, nil, listing)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("killed at step %d: -want +got\n%s", at, diff)
		}
		if left, err := os.ReadDir(b.store.Dir); err != nil || len(left) > 0 {
			t.Errorf("killed at step %d: left behind: %v, %v", at, left, err)
		}
		if !died {
			if at < 15 {
				t.Errorf("only %d steps", at)
			}
			return
		}
	}
}

// TestFinishChanged: what was interrupted is not completed over what somebody has changed since.
func TestFinishChanged(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sh(b.ws, nil, `echo 1 > a; echo 2 > b`)
	digest, _, _ := b.preview(`echo new > a; echo new > b; rm -f c`)
	place, err := filepath.Glob(filepath.Join(b.store.Place(b.ws), "*", "record"))
	if err != nil || len(place) != 1 {
		t.Fatal(place, err)
	}
	b.put(filepath.Join(filepath.Dir(place[0]), "applying"), digest)
	b.put(filepath.Join(b.ws, "a"), "new\n")   // it was killed here
	b.put(filepath.Join(b.ws, "b"), "other\n") // and somebody went on
	if err := b.store.Finish(t.Context(), always); !errors.Is(err, layer.ErrChanged) {
		t.Errorf("%v, want ErrChanged", err)
	}
	if raw, err := os.ReadFile(filepath.Join(b.ws, "b")); err != nil || string(raw) != "other\n" {
		t.Errorf("b = %q, %v", raw, err)
	}
	if err := b.store.Finish(t.Context(), always); err != nil {
		t.Errorf("the second time: %v", err)
	}
}

// TestRefused: what a layer cannot hold exactly is refused, and the workspace stays as it is.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"names of one file":  `ln old second`,
		"an old second name": `echo x >> twice`,
		"a deleted name":     `rm twice`,
		"pipe":               `mkfifo pipe`,
		"socket":             fmt.Sprintf(`perl -e '$p = "sock"; exit(syscall(%d, -100, $p, 0140644, 0) < 0 ? 1 : 0)'`, unix.SYS_MKNODAT),
		"attribute":          fmt.Sprintf(`perl -e '$p = "old"; $n = "user.x"; $v = "y"; exit(syscall(%d, $p, $n, $v, 1, 0) < 0 ? 1 : 0)'`, unix.SYS_SETXATTR),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.sh(b.ws, nil, `echo old > old; echo one > twice; ln twice twice2`)
			d, out, err := b.draft(text)
			if refused := new(layer.Refused); !errors.As(err, &refused) {
				t.Errorf("%v %s, want that it is refused", err, out)
			}
			if err := d.Drop(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestForms: both encodings of deleted and hiding entries are understood.
func TestForms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sh(b.ws, nil, `mkdir dir; echo 1 > dir/a; echo 2 > gone; echo 3 > gone2`)
	upper := b.ws + "-upper"
	for _, dir := range []string{upper, upper + "/dir"} {
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // the mode of the workspace
			t.Fatal(err)
		}
	}
	if err := unix.Mknod(upper+"/gone", unix.S_IFCHR, 0); err != nil {
		t.Skipf("no whiteouts for us: %v", err)
	}
	if err := os.WriteFile(upper+"/gone2", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	space := "trusted"
	if os.Geteuid() != 0 {
		space = "user"
	}
	for path, attr := range map[string]string{"/dir": "opaque", "/gone2": "whiteout"} {
		if err := unix.Lsetxattr(upper+path, space+".overlay."+attr, []byte("y"), 0); err != nil {
			t.Skipf("no attributes here: %v", err)
		}
	}
	changes, err := layer.Read(t.Context(), upper, b.ws, layer.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	var gone []string
	for _, c := range changes {
		if c.After.Kind == layer.Absent {
			gone = append(gone, c.Path)
		}
	}
	if diff := cmp.Diff([]string{"dir/a", "gone", "gone2"}, gone); diff != "" {
		t.Error(diff)
	}
}

// TestHolds: a layer is applied only to what it was made on, and only if it is the one that was kept.
func TestHolds(t *testing.T) {
	t.Parallel()
	inUpper := func(b *bench, name string) string {
		found, err := filepath.Glob(filepath.Join(b.store.Place(b.ws), "*", name))
		if err != nil || len(found) != 1 {
			b.Fatalf("%v %v", found, err)
		}
		return found[0]
	}
	for name, c := range map[string]struct {
		do   func(b *bench)
		want error
	}{
		"nothing":              {func(*bench) {}, nil},
		"a file of .tmp":       {func(b *bench) { b.sh(b.ws, nil, `echo x > .tmp/x`) }, nil},
		"a touched file":       {func(b *bench) { b.sh(b.ws, nil, `echo other > old`) }, layer.ErrChanged},
		"another file":         {func(b *bench) { b.sh(b.ws, nil, `echo other > beside`) }, layer.ErrChanged},
		"a new file":           {func(b *bench) { b.sh(b.ws, nil, `echo other > fresh`) }, layer.ErrChanged},
		"in a deleted place":   {func(b *bench) { b.sh(b.ws, nil, `echo other > dir/fresh`) }, layer.ErrChanged},
		"a mode":               {func(b *bench) { b.sh(b.ws, nil, `chmod 600 beside`) }, layer.ErrChanged},
		"the same text again":  {func(b *bench) { b.sh(b.ws, nil, `cp -p beside x; mv x beside`) }, layer.ErrChanged},
		"a link in its way":    {func(b *bench) { b.sh(b.ws, nil, `rm old; ln -s /etc/hostname old`) }, layer.ErrChanged},
		"a damaged file":       {func(b *bench) { b.put(inUpper(b, "upper/old"), "evil") }, layer.ErrDamaged},
		"a damaged record":     {func(b *bench) { b.put(inUpper(b, "record"), "{}") }, layer.ErrDamaged},
		"a missing layer":      {func(b *bench) { b.check(b.store.Discard(b.Context(), b.owner)) }, layer.ErrDamaged},
		"a forgotten place":    {func(b *bench) { _, err := b.store.Forget(b.Context(), b.ws); b.check(err) }, layer.ErrDamaged},
		"a swept layer":        {func(b *bench) { b.check(b.store.Finish(b.Context(), never)) }, layer.ErrDamaged},
		"a kept one":           {func(b *bench) { b.check(b.store.Finish(b.Context(), always)) }, nil},
		"another of this call": {func(b *bench) { b.preview(`echo other > old`) }, layer.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.sh(b.ws, nil, `mkdir .tmp dir; echo old > old; echo beside > beside; echo in > dir/in`)
			digest, _, _ := b.preview(`echo new > old; rm -r dir; echo out`)
			c.do(b)
			before, _ := b.sh(b.ws, nil, listing)
			if err := b.store.Holds(t.Context(), b.owner, digest); !errors.Is(err, c.want) {
				t.Errorf("Holds: %v, want %v", err, c.want)
			}
			out, err := b.take(digest)
			if !errors.Is(err, c.want) || err == nil && out != "out\n" {
				t.Errorf("Take: %q, %v, want %v", out, err, c.want)
			}
			after, _ := b.sh(b.ws, nil, listing)
			if (after == before) != (c.want != nil) {
				t.Errorf("changed: %v", cmp.Diff(before, after))
			}
		})
	}
}

// TestAppliedInPart: a layer that meets something unexpected while it is applied says that a part may be done, and not
// that nothing has changed.
func TestAppliedInPart(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sh(b.ws, nil, `mkdir dir; echo old > old`)
	digest, _, _ := b.preview(`echo new > old; touch dir/x; chmod 750 dir`)
	b.store.Step = func() {
		if now, err := os.ReadFile(filepath.Join(b.ws, "old")); err != nil || string(now) != "new\n" {
			return
		}
		_ = os.RemoveAll(filepath.Join(b.ws, "dir"))
		b.put(filepath.Join(b.ws, "dir"), "of somebody else")
	}
	if _, err := b.take(digest); !errors.Is(err, layer.ErrPartly) {
		t.Errorf("Take: %v, want %v", err, layer.ErrPartly)
	}
	if now, err := os.ReadFile(filepath.Join(b.ws, "old")); err != nil || string(now) != "new\n" {
		t.Errorf("%q, %v: nothing was applied, so this proves nothing", now, err)
	}
}

func never(layer.Owner, string, time.Time) (bool, error)  { return false, nil }
func always(layer.Owner, string, time.Time) (bool, error) { return true, nil }

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

func (b *bench) put(path, text string) {
	b.Helper()
	b.check(os.WriteFile(path, []byte(text), 0o600))
}

// TestComplete: whoever takes over the work of a process that was killed while it applied a layer completes that layer
// alone.
func TestComplete(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.check(b.store.Complete(t.Context(), b.ws)) // there is none
	b.sh(b.ws, nil, `echo 1 > a; echo 2 > b`)
	digest, _, _ := b.preview(`echo new > a; echo new > b`)
	b.check(b.store.Complete(t.Context(), b.ws)) // nobody has approved it
	b.check(b.store.Holds(t.Context(), b.owner, digest))
	found, err := filepath.Glob(filepath.Join(b.store.Place(b.ws), "*", "record"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v %v", found, err)
	}
	b.put(filepath.Join(filepath.Dir(found[0]), "applying"), digest)
	b.put(filepath.Join(b.ws, "a"), "new\n") // it was killed here
	b.check(b.store.Complete(t.Context(), b.ws))
	for _, name := range []string{"a", "b"} {
		if raw, err := os.ReadFile(filepath.Join(b.ws, name)); err != nil || string(raw) != "new\n" {
			t.Errorf("%s: %q, %v", name, raw, err)
		}
	}
	if err := b.store.Holds(t.Context(), b.owner, digest); err == nil {
		t.Error("it could be applied again")
	}
}

// TestLarge: more than is kept is refused.
func TestLarge(t *testing.T) {
	t.Parallel()
	for name, limits := range map[string]layer.Limits{"entries": {Entries: 4}, "bytes": {Bytes: 1000}, "none": {}} {
		b := newBench(t)
		b.store.Limits = limits
		d, _, err := b.draft(`touch 1 2 3 4; head -c 2000 /dev/zero > 5`)
		if name == "none" && err != nil || name != "none" && !errors.Is(err, layer.ErrLarge) {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Drop(); err != nil {
			t.Error(err)
		}
	}
}

// TestBusy: a change of the workspace while the command runs is noticed.
func TestBusy(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, err := b.store.Begin(t.Context(), b.owner, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.put(filepath.Join(b.ws, "other"), "x")
	if err := d.Read(t.Context()); !errors.Is(err, layer.ErrChanged) {
		t.Errorf("%v, want ErrChanged", err)
	}
	if err := d.Drop(); err != nil {
		t.Error(err)
	}
}

// TestShow: people read files, lines and modes.
func TestShow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.sh(b.ws, nil, `mkdir -p dir/sub empty; echo 1 > dir/a; echo 2 > dir/sub/b; printf '1\n2\n3\n' > text; echo m > mode; chmod 644 mode; head -c 100 /dev/zero > bin`)
	d, _, err := b.draft(`rm -r dir; rmdir empty; printf '1\nzwei\n3\n4\n' > text; chmod 755 mode; mkdir -p new/deep bare; echo n > new/deep/file; printf '\0\1' > bin`)
	if err != nil {
		t.Fatal(err)
	}
	got, err := layer.Show(t.Context(), d.Upper, b.ws, d.Changes)
	if err != nil {
		t.Fatal(err)
	}
	want := tools.Effect{
		Created: []tools.FileEffect{{Path: "bare/"}, {Path: "new/deep/file", Added: 1, Bytes: 2}},
		Changed: []tools.FileEffect{{Path: "bin", Bytes: 2}, {Path: "text", Added: 2, Removed: 1, Bytes: 11}},
		Deleted: []string{"dir/a", "dir/sub/b", "empty/"},
		Modes:   []tools.ModeEffect{{Path: "mode", Before: 0o644, After: 0o755}},
		Diff: "--- /dev/null\n+++ b/new/deep/file\n@@ -0,0 +1 @@\n+n\n" +
			"--- a/text\n+++ b/text\n@@ -1,3 +1,4 @@\n 1\n-2\n+zwei\n 3\n+4\n",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := d.Drop(); err != nil {
		t.Error(err)
	}
}

// BenchmarkLook measures comparing a workspace of 10 000 files.
// TestShowOmits: files and directories that do not fit in the list are counted apart.
func TestShowOmits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	d, _, err := b.draft(fmt.Sprintf("mkdir a z; cd a; for i in $(seq %d); do : > $i; done", tools.MostEffects+2))
	b.check(err)
	got, err := layer.Show(t.Context(), d.Upper, b.ws, d.Changes)
	if want := (tools.Omitted{Created: 2, CreatedDirs: 1}); err != nil || got.Omitted != want || len(got.Created) != tools.MostEffects {
		t.Errorf("%d, %+v, %v", len(got.Created), got.Omitted, err)
	}
	b.check(d.Drop())
}

func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	for i := range 10_000 {
		sub := filepath.Join(dir, strconv.Itoa(i/100))
		if err := os.MkdirAll(sub, 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, strconv.Itoa(i)), nil, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := layer.Look(b.Context(), dir, nil, layer.Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}
