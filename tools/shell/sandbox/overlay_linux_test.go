package sandbox_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// layered returns a spec whose command runs on a layer above its directory.
func layered(t *testing.T) (sandbox.Spec, string) {
	t.Helper()
	if level := needLandlock(t); !level.Root || !level.Guard {
		t.Skipf("no root of its own here, and the level says so: %s", level)
	}
	spec := confined(t)
	t.Cleanup(func() { // overlayfs closes directories of its own
		for _, work := range []string{spec.Overlay.Work, spec.Overlay.Beside + "/0/work", spec.Overlay.Beside + "/1/work"} {
			for _, dir := range []string{"work", "work/incompat", "work/incompat/volatile"} {
				_ = os.Chmod(filepath.Join(work, dir), 0o700) //nolint:gosec // a directory
			}
		}
	})
	layer, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	spec.Overlay = &sandbox.Overlay{
		Upper: filepath.Join(layer, "a,b:c\\d"), Work: filepath.Join(layer, "work"), Beside: filepath.Join(layer, "beside"),
	}
	for _, dir := range []string{spec.Overlay.Upper, spec.Overlay.Work} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return spec, spec.Overlay.Upper
}

// TestAttackOverlay: what a command changes on a layer is in the layer, and nothing else has changed.
func TestAttackOverlay(t *testing.T) {
	t.Parallel()
	spec, upper := layered(t)
	other := outsideFile(t)
	if err := os.Chmod(other, 0o777); err != nil { //nolint:gosec // whom the mode does not stop
		t.Fatal(err)
	}
	spec.Write = append(spec.Write, other)
	spec.Network = sandbox.NetworkAll
	write(t, filepath.Join(spec.Dir, "old"), "old\n")
	write(t, filepath.Join(spec.Dir, "gone"), "gone\n")
	write(t, filepath.Join(spec.Dir, "dir/inner"), "inner\n")
	got := run(t, spec, `set -e
		echo new >> old; echo made > made; rm gone; rm -r dir; mkdir dir; echo x > dir/other
		cat old made dir/other
		! ls dir/inner 2>/dev/null
		echo y 2>/dev/null > `+other+`/file
		! exec 2>/dev/null 3<>/dev/tcp/127.0.0.1/1
		! perl -MSocket -e 'socket(my $s, PF_INET, SOCK_STREAM, 0) or exit 1'`)
	if got.status.Err != nil || got.status.Code != 0 || got.out != "old\nnew\nmade\nx\n" {
		t.Fatalf("%+v %q", got.status, got.out)
	}
	if got.status.Elsewhere != filepath.Join(other, "file") || !got.status.Internet || !got.status.Sockets {
		t.Errorf("%+v, want that it tried to write elsewhere, and a socket", got.status)
	}
	for path, want := range map[string]string{
		filepath.Join(spec.Dir, "old"): "old\n", filepath.Join(spec.Dir, "gone"): "gone\n",
		filepath.Join(spec.Dir, "dir/inner"): "inner\n", filepath.Join(other, "file"): "x",
		filepath.Join(upper, "old"): "old\nnew\n", filepath.Join(upper, "made"): "made\n",
		filepath.Join(upper, "dir/other"): "x\n",
	} {
		if raw, err := os.ReadFile(path); err != nil || string(raw) != want {
			t.Errorf("%s: %q, %v, want %q", path, raw, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(spec.Dir, "made")); !os.IsNotExist(err) {
		t.Errorf("made exists below the layer: %v", err)
	}
	var st unix.Stat_t
	if err := unix.Lstat(filepath.Join(upper, "gone"), &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR || st.Rdev != 0 {
		t.Errorf("gone: %+v, %v, want a device 0/0", st, err)
	}
	buf := make([]byte, 8)
	if n, err := unix.Lgetxattr(filepath.Join(upper, "dir"), "user.overlay.opaque", buf); err != nil || string(buf[:n]) != "y" {
		t.Errorf("dir: %q, %v, want an opaque directory", buf[:max(n, 0)], err)
	}
}

// TestAttackOverlayBeside: what a command tries outside its directory is noticed, whatever its exit code, and what is
// inside another root works too.
func TestAttackOverlayBeside(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text      string
		elsewhere string // below the other root
		internet  bool
		sockets   bool
		moves     bool
	}{
		"nothing":     {text: `echo x > in; cat OUT/file; ls -la >/dev/null; date >/dev/null; id >/dev/null`, elsewhere: "-"},
		"a file":      {text: `echo x > OUT/new || true`, elsewhere: "new"},
		"a deletion":  {text: `rm -f OUT/file || true`, elsewhere: "file"},
		"a mode":      {text: `chmod 700 OUT/file; true`, elsewhere: "file"},
		"a directory": {text: `chmod 700 OUT; true`, elsewhere: ""},
		"a time":      {text: `touch -d 2001-01-01 OUT; true`, elsewhere: ""},
		"internet":    {text: `exec 2>/dev/null; (exec 3<>/dev/tcp/127.0.0.1/1); true`, elsewhere: "-", internet: true, sockets: true},
		"rename":      {text: `exec 2>/dev/null; perl -e 'rename("old", "new")'; true`, elsewhere: "-", moves: true},
		"rename by a path": {
			text: `exec 2>/dev/null; mkdir x; cd x; perl -e 'rename("$ENV{PWD}/../old/in", "../other")'; true`, elsewhere: "-", moves: true,
		},
		"rename of others": {
			text: `mkdir a; mv a b; echo x > f; mv f g; mv old/file old/f2; mv g old/f2; mv old/missing x 2>/dev/null; true`, elsewhere: "-",
		},
		"unix": {text: `perl -MSocket -e 'socket(my $s, PF_UNIX, SOCK_STREAM, 0)'; true`, elsewhere: "-", sockets: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, _ := layered(t)
			other := outsideFile(t)
			if err := os.Chmod(other, 0o777); err != nil { //nolint:gosec // whom the mode does not stop
				t.Fatal(err)
			}
			spec.Write = append(spec.Write, other)
			write(t, filepath.Join(spec.Dir, "old/in/x"), "x")
			write(t, filepath.Join(spec.Dir, "old/file"), "x")
			before, err := os.Stat(other)
			if err != nil {
				t.Fatal(err)
			}
			got := run(t, spec, strings.ReplaceAll(c.text, "OUT", other))
			want := filepath.Join(other, c.elsewhere)
			if c.elsewhere == "-" {
				want = ""
			}
			if s := got.status; s.Err != nil || s.Elsewhere != want || s.Internet != c.internet || s.Sockets != c.sockets || s.Moves != c.moves {
				t.Errorf("%+v %s, want %q", s, got.out, want)
			}
			after, err := os.Stat(other)
			if err != nil || after.Mode() != before.Mode() || !after.ModTime().Equal(before.ModTime()) {
				t.Errorf("%v %v, want it unchanged", after, err)
			}
		})
	}
	t.Run("inside", func(t *testing.T) {
		t.Parallel()
		spec, upper := layered(t)
		spec.Dir = filepath.Join(spec.Dir, "ws")
		write(t, filepath.Join(spec.Dir, "old"), "old")
		spec.Write = append(spec.Write, spec.Dir)
		got := run(t, spec, `echo new > old; cat old`)
		raw, err := os.ReadFile(filepath.Join(upper, "old"))
		if got.status.Err != nil || got.out != "new\n" || got.status.Elsewhere != "" || err != nil || string(raw) != "new\n" {
			t.Errorf("%+v %q %q %v", got.status, got.out, raw, err)
		}
	})
}

// TestOverlayNeedsRoot: without a sandbox there is no layer, and the command does not run on the directory instead.
func TestOverlayNeedsRoot(t *testing.T) {
	t.Parallel()
	spec, _ := layered(t)
	spec.Argv = []string{"/bin/true"}
	spec.Off, spec.Require = true, false
	if _, err := sandbox.Start(t.Context(), spec, os.Stdout, os.Stderr); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("off: %v", err)
	}
	spec.Off, spec.Helper = false, ""
	if _, err := sandbox.Start(t.Context(), spec, os.Stdout, os.Stderr); !errors.Is(err, sandbox.ErrUnavailable) {
		t.Errorf("no helper: %v", err)
	}
}

// BenchmarkOverlay compares a command on its directory with one on a layer above it.
func BenchmarkOverlay(b *testing.B) {
	for _, name := range []string{"plain", "layer"} {
		b.Run(name, func(b *testing.B) {
			dir, layer, n := b.TempDir(), b.TempDir(), 0
			b.Cleanup(func() {
				_ = filepath.WalkDir(layer, func(path string, _ os.DirEntry, _ error) error { return os.Chmod(path, 0o700) }) //nolint:gosec // directories
			})
			null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = null.Close() }()
			spec := sandbox.Spec{
				Helper: sandbox.Self, Argv: []string{"/bin/true"}, Dir: dir, Write: []string{dir}, Require: true,
			}
			for b.Loop() {
				if name == "layer" {
					d := filepath.Join(layer, strconv.Itoa(n))
					n++
					spec.Overlay = &sandbox.Overlay{Upper: d + "/upper", Work: d + "/work"}
					for _, dir := range []string{spec.Overlay.Upper, spec.Overlay.Work} {
						if err := os.MkdirAll(dir, 0o700); err != nil {
							b.Fatal(err)
						}
					}
				}
				p, err := sandbox.Start(b.Context(), spec, null, null)
				if err != nil {
					b.Fatal(err)
				}
				<-p.Done()
				if s := p.Status(); s.Err != nil || s.Code != 0 {
					b.Fatalf("%+v", s)
				}
			}
		})
	}
}
