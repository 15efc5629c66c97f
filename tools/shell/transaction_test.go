package shell_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
)

// tree says everything about the files below dir: kind, mode, time, contents, target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		if rel == ".tmp" {
			return fs.SkipDir
		}
		if rel == "." {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := fmt.Sprint(info.Mode())
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + target
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %s %q", info.ModTime().UTC().Format(time.RFC3339Nano), raw)
		default:
			text += " " + info.ModTime().UTC().Format(time.RFC3339Nano)
		}
		all[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// transactional returns a tool with files in its workspace.
func transactional(t *testing.T, o shell.Options) *kit {
	t.Helper()
	o.Transactional, o.AutoRollback = true, true
	k := setup(t, o)
	k.write("a", "alpha")
	k.write("sub/b", "beta")
	k.write("sub/deep/c", "gamma")
	k.write("tool.sh", "#!/bin/sh\n")
	k.write("one", "linked")
	for _, err := range []error{
		os.Chmod(filepath.Join(k.dir, "tool.sh"), 0o755),
		os.MkdirAll(filepath.Join(k.dir, "empty"), 0o750),
		os.Symlink("a", filepath.Join(k.dir, "link")),
		os.Symlink("/nowhere", filepath.Join(k.dir, "dangling")),
		os.Link(filepath.Join(k.dir, "one"), filepath.Join(k.dir, "two")),
		os.Chtimes(filepath.Join(k.dir, "a"), time.Unix(1e9, 5), time.Unix(1e9, 5)),
		os.Chtimes(filepath.Join(k.dir, "empty"), time.Unix(1e9, 0), time.Unix(1e9, 0)),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return k
}

func TestRollback(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"nothing":                  `:`,
		"content":                  `echo x > a; echo y >> sub/b`,
		"content of the same size": `printf ALPHA > a; touch -d @1000000000.000000005 a`,
		"created":                  `echo x > new; mkdir -p n/e/w; echo y > n/e/w/z; ln -s a newlink; mkfifo pipe`,
		"deleted":                  `rm -r a sub/deep empty link`,
		"everything deleted":       `rm -r -- *`,
		"mode":                     `chmod 000 a; chmod 777 sub tool.sh`,
		"time":                     `touch a empty sub`,
		"moved":                    `mv a z; mv sub other`,
		"replaced":                 `rm a; mkdir a; echo x > a/x; rm -r sub; echo file > sub; rm link; echo x > link`,
		"links":                    `ln -sf tool.sh link; rm dangling; ln -s x dangling`,
		"through a link":           `echo x > link`,
		"hard link content":        `echo x > one`,
		"hard link removed":        `rm two; echo x > one`,
		"hard links both removed":  `rm one two`,
		"hard link split":          `cp one 3; mv 3 one`,
		"locked":                   `mkdir l; echo x > l/x; chmod 000 l sub/deep sub; chmod 500 .`,
	} {
		for _, end := range []string{"exit 2", "kill -9 $$"} {
			t.Run(name+" "+end, func(t *testing.T) {
				t.Parallel()
				k := transactional(t, shell.Options{})
				before := tree(t, k.dir)
				res, trail, err := k.call(t.Context(), shell.In{Command: text + "; " + end})
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(before, tree(t, k.dir)); diff != "" {
					t.Errorf("files (-before +after):\n%s", diff)
				}
				if !trail.RolledBack || !strings.Contains(res.Text, "[rolled back: ") || strings.Contains(res.Text, "could not be restored") {
					t.Errorf("rolled back %t: %q", trail.RolledBack, res.Text)
				}
				if name == "nothing" && !strings.Contains(res.Text, "[rolled back: 0 restored, 0 deleted]") {
					t.Errorf("nothing was done, but %q", res.Text)
				}
				one, err1 := os.Stat(filepath.Join(k.dir, "one"))
				two, err2 := os.Stat(filepath.Join(k.dir, "two"))
				if err1 != nil || err2 != nil || !os.SameFile(one, two) {
					t.Errorf("the hard link is gone: %v %v", err1, err2)
				}
			})
		}
	}
}

func TestNoRollback(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name  string
		end   string
		codes []int
		back  bool
	}{
		{"success", "true", nil, false},
		{"exit 1", "exit 1", nil, false},
		{"exit 5", "exit 5", nil, true},
		{"listed", "exit 1", []int{1, 4}, true},
		{"not listed", "exit 5", []int{1, 4}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			k := transactional(t, shell.Options{AutoRollbackExitCodes: tc.codes})
			_, trail, err := k.call(t.Context(), shell.In{Command: "echo new > a; " + tc.end})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := os.ReadFile(filepath.Join(k.dir, "a"))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(raw) == "alpha"; got != tc.back || trail.RolledBack != tc.back {
				t.Errorf("content %q, rolled back %t, want %t", raw, trail.RolledBack, tc.back)
			}
		})
	}
}

// TestRollbackAfterCancel: the context that ends the command does not end the rollback.
func TestRollbackAfterCancel(t *testing.T) {
	t.Parallel()
	k := transactional(t, shell.Options{})
	before := tree(t, k.dir)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	_, trail, err := k.call(ctx, shell.In{Command: "rm -r sub; sleep 600"})
	fails(t, err, tools.Timeout)
	if diff := cmp.Diff(before, tree(t, k.dir)); diff != "" {
		t.Errorf("files (-before +after):\n%s", diff)
	}
	_ = trail // on a very slow machine the time was up before there was a snapshot
}

func TestScope(t *testing.T) {
	t.Parallel()
	k := transactional(t, shell.Options{TransactionScope: []string{"sub/**"}})
	if _, _, err := k.call(t.Context(), shell.In{Command: "echo x > a; echo x > new; echo x > sub/b; echo x > sub/new; rm -r sub/deep; exit 2"}); err != nil {
		t.Fatal(err)
	}
	got := k.run("cat a new sub/b sub/deep/c; ls sub").Text
	if want := "x\nx\nbetagammab\ndeep"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSnapshotTooLarge(t *testing.T) {
	t.Parallel()
	k := transactional(t, shell.Options{MaxSnapshotBytes: 10})
	res, trail, err := k.call(t.Context(), shell.In{Command: "echo x > a; exit 2"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(res.Text, "[warn] the working directory is larger than the 10 bytes") || trail.RolledBack {
		t.Errorf("text %q, rolled back %t", res.Text, trail.RolledBack)
	}
	if res := k.run("ls"); strings.Contains(res.Text, "[warn]") {
		t.Errorf("a command that only reads needs no snapshot: %q", res.Text)
	}
	k = transactional(t, shell.Options{MaxSnapshotBytes: 10, SnapshotRequired: true})
	_, _, err = k.call(t.Context(), shell.In{Command: "echo x > a"})
	fails(t, err, tools.PermanentFailure, "not run")
	if raw, err := os.ReadFile(filepath.Join(k.dir, "a")); err != nil || string(raw) != "alpha" {
		t.Errorf("the command ran: %q %v", raw, err)
	}
}

func TestSnapshotsAreRemoved(t *testing.T) {
	t.Parallel()
	store := t.TempDir()
	k := transactional(t, shell.Options{SnapshotDir: store})
	for _, text := range []string{"echo x > a", "echo x > a; exit 2"} {
		k.run(text)
	}
	if err := k.r.Shutdown(t.Context()); err != nil { // removes what is kept between commands
		t.Error(err)
	}
	left, err := os.ReadDir(store)
	if err != nil || len(left) != 0 {
		t.Errorf("left %v %v", left, err)
	}
	k = transactional(t, shell.Options{SnapshotDir: filepath.Join(store, "none"), SnapshotRequired: true})
	_, _, err = k.call(t.Context(), shell.In{Command: "echo x > a"})
	fails(t, err, tools.PermanentFailure)
}

// TestRollbackLeavesDenied: what is denied inside the workspace belongs to others, who change it while a command runs.
func TestRollbackLeavesDenied(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// Without the kernel sandbox, the command itself plays the part of somebody else who changes the denied files.
	k := setup(t, shell.Options{
		Workspace: func(tools.Origin) (string, error) { return dir, nil }, Transactional: true, AutoRollback: true, MaxSnapshotBytes: 100,
		DeniedPaths: []string{filepath.Join(dir, "data"), filepath.Join(dir, "zephbot.toml"), filepath.Join(dir, "later", "on", "key"), filepath.Dir(dir)},
	})
	k.dir = dir
	k.write("data/db", strings.Repeat("x", 1000)) // does not count
	k.write("zephbot.toml", "old")
	k.write("notes", "old")
	res := k.run(`echo new > data/db; echo new > data/wal; echo new > zephbot.toml; echo new > notes; mkdir -p later/on; echo new > later/on/key; echo new > later/x; exit 2`)
	if !strings.Contains(res.Text, "[rolled back: 1 restored, 1 deleted]") {
		t.Errorf("text %q", res.Text)
	}
	for path, want := range map[string]string{"data/db": "new\n", "data/wal": "new\n", "zephbot.toml": "new\n", "later/on/key": "new\n", "notes": "old"} {
		if raw, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(raw) != want {
			t.Errorf("%s holds %q, %v, want %q", path, raw, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "later", "x")); err == nil {
		t.Error("what the command made beside a denied path was not deleted")
	}
}
