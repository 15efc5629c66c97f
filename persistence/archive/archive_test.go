package archive_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/persistence/archive"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string) {
	t.Helper()
	check(t, os.MkdirAll(filepath.Dir(path), 0o700))
	check(t, os.WriteFile(path, []byte(text), 0o600))
}

// head is of a backup that has all parts.
func head() archive.Header {
	return archive.Header{
		Version: "v1", Created: time.Date(2026, 11, 27, 22, 0, 0, 0, time.UTC), Database: archive.SQLite, Schema: 7, Parts: archive.Parts(),
	}
}

// made is a backup of a small state with everything that a workspace can contain.
func made(t testing.TB) (raw []byte, m archive.Manifest) {
	t.Helper()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "w1", "notes", "a.txt"), "a note")
	write(t, filepath.Join(dir, "w1", "run.sh"), "#!/bin/sh\n")
	check(t, os.Chmod(filepath.Join(dir, "w1", "run.sh"), 0o750))
	write(t, filepath.Join(dir, "w2", "empty"), "")
	write(t, filepath.Join(dir, ".restore", "x"), "of a restore that was killed")
	check(t, os.Symlink("notes/a.txt", filepath.Join(dir, "w1", "link")))
	check(t, os.Symlink("/etc/passwd", filepath.Join(dir, "w1", "outside")))
	check(t, syscall.Mkfifo(filepath.Join(dir, "w2", "pipe"), 0o600))
	check(t, os.Chmod(filepath.Join(dir, "w1", "notes"), 0o500))
	t.Cleanup(func() { check(t, os.Chmod(filepath.Join(dir, "w1", "notes"), 0o700)) })
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, head())
	check(t, err)
	check(t, w.Bytes(archive.State, "zephbot.db", bytes.Repeat([]byte("page"), 9000)))
	check(t, w.Bytes(archive.Audit, "audit.jsonl", []byte("{}\n")))
	check(t, w.Tree(t.Context(), archive.Tokens, filepath.Join(dir, "missing"), nil))
	own := func(name string, _ fs.FileInfo) bool { return archive.Own(name) }
	check(t, w.Tree(t.Context(), archive.Workspaces, dir, own))
	m, err = w.Close()
	check(t, err)
	return out.Bytes(), m
}

// places are those of a service whose state is below one directory.
func places(dir string, old ...string) []archive.Place {
	return []archive.Place{
		{Part: archive.State, Dir: dir, Old: old},
		{Part: archive.Audit, Dir: dir},
		{Part: archive.Tokens, Dir: filepath.Join(dir, "mcp-tokens")},
		{Part: archive.Workspaces, Dir: filepath.Join(dir, "workspaces")},
	}
}

// tree lists what is below a directory: contents, modes of programs and targets of links.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	list := map[string]string{}
	check(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		check(t, err)
		if d.Type()&fs.ModeSymlink != 0 {
			list[name], err = os.Readlink(path)
			return err
		}
		raw, err := os.ReadFile(path)
		if len(raw) > 100 {
			raw = raw[:100]
		}
		list[name] = string(raw)
		return err
	}))
	return list
}

func stage(t testing.TB, dir string, raw []byte, old ...string) (*archive.Staged, error) {
	t.Helper()
	return archive.Stage(t.Context(), bytes.NewReader(raw), archive.Options{
		Home: dir, Places: places(dir, old...), At: time.Date(2026, 11, 28, 1, 2, 3, 0, time.UTC),
	})
}

// TestRestore: what comes out is what went in, with modes and links; nothing is deleted.
func TestRestore(t *testing.T) {
	t.Parallel()
	raw, wrote := made(t)
	if read, err := archive.Verify(t.Context(), bytes.NewReader(raw)); err != nil || !cmp.Equal(read, wrote) {
		t.Fatalf("%v\n%s", err, cmp.Diff(wrote, read))
	}
	if diff := cmp.Diff([]string{"workspaces/w2/pipe"}, wrote.Changed); diff != "" {
		t.Error(diff)
	}
	if files, size := wrote.Sums(archive.Workspaces); files != 3 || size != int64(len("a note")+len("#!/bin/sh\n")) {
		t.Errorf("%d files, %d bytes", files, size)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "zephbot.db"), "the old one")
	write(t, filepath.Join(dir, "zephbot.toml"), "not of the state")
	write(t, filepath.Join(dir, "workspaces", "w1", "of before"), "x")
	s, err := stage(t, dir, raw, "zephbot.db", "vectors.db")
	check(t, err)
	occupied, err := s.Occupied()
	check(t, err)
	if diff := cmp.Diff([]string{filepath.Join(dir, "zephbot.db"), filepath.Join(dir, "workspaces", "w1")}, occupied); diff != "" {
		t.Error(diff)
	}
	check(t, s.Put(archive.State, "note", []byte("n")))
	check(t, s.Commit())
	got := tree(t, dir)
	const replaced = "replaced-20261128T010203Z"
	if diff := cmp.Diff(map[string]string{
		"zephbot.db": strings.Repeat("page", 25), "note": "n", "audit.jsonl": "{}\n", "zephbot.toml": "not of the state",
		replaced + "/zephbot.db":                   "the old one",
		"workspaces/" + replaced + "/w1/of before": "x",
		"workspaces/w1/notes/a.txt":                "a note",
		"workspaces/w1/run.sh":                     "#!/bin/sh\n",
		"workspaces/w1/link":                       "notes/a.txt",
		"workspaces/w1/outside":                    "/etc/passwd",
		"workspaces/w2/empty":                      "",
	}, got); diff != "" {
		t.Error(diff)
	}
	for name, mode := range map[string]fs.FileMode{"w1/run.sh": 0o750, "w1/notes": 0o500} {
		if info, err := os.Stat(filepath.Join(dir, "workspaces", name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	check(t, os.Chmod(filepath.Join(dir, "workspaces", "w1", "notes"), 0o700))
}

// TestRestoreIsKilled kills a restore after each of its renames: nothing has happened, or the next start completes it.
func TestRestoreIsKilled(t *testing.T) {
	t.Parallel()
	raw, _ := made(t)
	var want map[string]string
	for n, last := 0, 1; n <= last; n++ {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "zephbot.db"), "the old one")
		write(t, filepath.Join(dir, "audit.jsonl"), "the old log")
		before := tree(t, dir)
		s, err := stage(t, dir, raw, "zephbot.db")
		check(t, err)
		if n == 0 { // killed before: the stage is nobody's
			other, err := stage(t, dir, raw, "zephbot.db")
			check(t, err)
			other.Discard()
			if diff := cmp.Diff(before, tree(t, dir)); diff != "" {
				t.Error(diff)
			}
			if done, err := archive.Finish(dir); done || err != nil {
				t.Errorf("finished %v, %v", done, err)
			}
			s, err = stage(t, dir, raw, "zephbot.db")
			check(t, err)
		}
		var text []byte
		text, last, err = s.Plan()
		check(t, err)
		check(t, archive.Interrupted(text, n))
		write(t, filepath.Join(dir, archive.PlanName), string(text))
		s.Discard() // must not remove what the plan needs
		done, err := archive.Finish(dir)
		check(t, err)
		s.Discard()
		got := tree(t, dir)
		if want == nil {
			want = got
		}
		if diff := cmp.Diff(want, got); diff != "" || !done || len(got) != 9 {
			t.Errorf("killed after %d of %d: finished %v, %d files: %s", n, last, done, len(got), diff)
		}
		check(t, os.Chmod(filepath.Join(dir, "workspaces", "w1", "notes"), 0o700))
	}
}

// TestDamage: an archive that was cut off or changed anywhere is refused, and leaves no trace.
func TestDamage(t *testing.T) {
	t.Parallel()
	raw, whole := made(t)
	dir := t.TempDir()
	refused := func(name string, raw []byte) {
		t.Helper()
		if _, err := archive.Verify(t.Context(), bytes.NewReader(raw)); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("%s: verified: %v", name, err)
		}
	}
	for n := 0; n < len(raw); n += 13 {
		refused("cut off", raw[:n])
		changed := bytes.Clone(raw)
		changed[n] ^= 0x10
		// What is repeated can be packed in several ways, and a few bytes are about the packing.
		if m, err := archive.Verify(t.Context(), bytes.NewReader(changed)); err == nil && !cmp.Equal(m, whole) {
			t.Errorf("changed at %d: verified: %v", n, err)
		}
	}
	refused("nothing", nil)
	refused("something else", []byte("#!/bin/sh\n"))
	for _, part := range [][]byte{raw[:len(raw)/2], raw[:len(raw)-1]} {
		if _, err := stage(t, dir, part); !errors.Is(err, archive.ErrDamaged) {
			t.Errorf("staged: %v", err)
		}
	}
	if left := tree(t, dir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := archive.Verify(ctx, bytes.NewReader(raw)); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// forged is an archive with entries of somebody else's making. Its manifest fits.
func forged(t testing.TB, manifest string, entries ...*tar.Header) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	document := func(name, text string) {
		check(t, w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o600}))
		_, err := io.WriteString(w, text)
		check(t, err)
	}
	first, err := json.Marshal(archive.Header{Format: archive.Format, Parts: archive.Parts()})
	check(t, err)
	document("backup.json", string(first))
	for _, e := range entries {
		check(t, w.WriteHeader(e))
	}
	if manifest == "" {
		manifest = string(first)
	}
	document("manifest.json", manifest)
	check(t, errors.Join(w.Close(), zip.Close()))
	return out.Bytes()
}

// TestHostile: no name and no link of an archive leads out of the directories that are restored.
func TestHostile(t *testing.T) {
	t.Parallel()
	outside := filepath.Join(t.TempDir(), "outside")
	file := func(name string) *tar.Header { return &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o600} }
	link := func(name, to string) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
	}
	for name, entries := range map[string][]*tar.Header{
		"up":             {file("workspaces/../../x")},
		"absolute":       {file(outside)},
		"no part":        {file("zephbot.db")},
		"unknown part":   {file("home/.ssh/authorized_keys")},
		"the part":       {file("state")},
		"backslash":      {file(`workspaces\..\x`)},
		"twice":          {file("state/a"), file("state/a")},
		"through a link": {link("workspaces/w", filepath.Dir(outside)), file("workspaces/w/outside")},
		"through two":    {link("workspaces/a", "../../.."), link("workspaces/b", "a/.."), file("workspaces/b/x/outside")},
		"device":         {{Typeflag: tar.TypeBlock, Name: "workspaces/sda"}},
		"hard link":      {{Typeflag: tar.TypeLink, Name: "workspaces/x", Linkname: "/etc/passwd"}},
		"empty link":     {link("workspaces/x", "")},
		"other manifest": {file("workspaces/x")},
	} {
		dir := t.TempDir()
		if _, err := stage(t, dir, forged(t, "", entries...)); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if left := tree(t, dir); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
	if _, err := os.Lstat(outside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("written outside: %v", err)
	}
	if _, err := archive.Verify(t.Context(), bytes.NewReader(forged(t, ""))); err != nil {
		t.Errorf("an empty one: %v", err)
	}
}

// TestRootGivesFilesAway: what root restores belongs to the account of the service.
func TestRootGivesFilesAway(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	raw, _ := made(t)
	dir := t.TempDir()
	check(t, os.Chown(dir, 4711, 4712))
	s, err := stage(t, dir, raw)
	check(t, err)
	check(t, s.Put(archive.State, "note", []byte("n")))
	check(t, s.Commit())
	for _, name := range []string{"zephbot.db", "note", "audit.jsonl", "workspaces", "workspaces/w1", "workspaces/w1/notes/a.txt", "workspaces/w1/link", "mcp-tokens"} {
		info, err := os.Lstat(filepath.Join(dir, name))
		check(t, err)
		if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Uid != 4711 || stat.Gid != 4712 {
			t.Errorf("%s belongs to %v", name, info.Sys())
		}
	}
	check(t, os.Chmod(filepath.Join(dir, "workspaces", "w1", "notes"), 0o700))
}

// TestCreate: a file has its name only when it is complete.
func TestCreate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "b.tar.gz")
	failed := errors.New("failed")
	fill := func(text string, err error) func(io.Writer) error {
		return func(w io.Writer) error {
			if _, missing := os.Lstat(path); text == "new" && !errors.Is(missing, fs.ErrNotExist) {
				t.Error("it is there before it is complete")
			}
			_, wrote := io.WriteString(w, text)
			return errors.Join(wrote, err)
		}
	}
	write(t, path+".partial", "of one that was killed")
	if err := archive.Create(path, false, fill("new", failed)); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
	if left := tree(t, filepath.Dir(path)); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	check(t, archive.Create(path, false, fill("new", nil)))
	if err := archive.Create(path, false, fill("newer", nil)); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("replaced: %v", err)
	}
	check(t, archive.Create(path, true, fill("newest", nil)))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || tree(t, filepath.Dir(path))["b.tar.gz"] != "newest" {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

// FuzzRead: whatever a file contains, it is read to an end or refused, and what is accepted has a manifest that fits.
func FuzzRead(f *testing.F) {
	raw, _ := made(f)
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	f.Add(forged(f, "", &tar.Header{Typeflag: tar.TypeReg, Name: "state/a", Mode: 0o600}))
	f.Add(forged(f, "{}"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, err := archive.Verify(t.Context(), bytes.NewReader(raw))
		if err == nil && m.Format != archive.Format {
			t.Errorf("accepted without a header: %+v", m)
		}
	})
}
