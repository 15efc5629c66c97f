package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/privacy"
	"github.com/zephbot/zephbot/persistence"
)

// TestRemoveLocked: a tree with read-only directories is deleted. An administrator of the machine deletes it anyway, so
// the modes are looked at as well; a link out of the tree changes nothing there.
func TestRemoveLocked(t *testing.T) {
	t.Parallel()
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	other := t.TempDir()
	for _, err := range []error{
		os.Chmod(other, 0o555),
		root.MkdirAll("tree/mod/cache", 0o755),
		root.WriteFile("tree/mod/cache/x.go", nil, 0o444),
		root.Symlink(other, "tree/link"),
		root.Chmod("tree/mod/cache", 0o555),
		root.Chmod("tree/mod", 0o500),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	unlock(root, "tree")
	for dir, want := range map[string]fs.FileMode{
		filepath.Join(root.Name(), "tree/mod/cache"): 0o755, filepath.Join(root.Name(), "tree/mod"): 0o700, other: 0o555,
	} {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", dir, info.Mode(), err, want)
		}
	}
	if err := errors.Join(root.Chmod("tree/mod/cache", 0o555), removeLocked(root, "tree")); err != nil {
		t.Fatal(err)
	}
	if _, err := root.Lstat("tree"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestAskOnce: the command line waits for an erasure that was asked for before, and asks for no second one.
func TestAskOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stores, err := persistence.Open(t.Context(), persistence.Options{DataDir: dir, Mode: "serve", Owner: "service", Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stores.Close() })
	office := privacy.NewOffice(privacy.Deps{Tables: stores.Tables, Store: stores.Bot, Now: time.Now, Log: zerolog.Nop()})
	u := &User{Person: privacy.Person{Channel: "telegram", ID: "4242424242"}, opts: Options{Now: time.Now}, dir: dir}
	before := privacy.NewJob(u.Person, time.Now())
	second := privacy.NewJob(u.Person, time.Now())
	for _, tt := range []struct {
		begun bool
		job   *privacy.Job
		want  string
	}{{true, second, before.ID}, {false, second, second.ID}} {
		if tt.begun {
			fact, err := before.Fact()
			if err == nil {
				err = persistence.PutFact(t.Context(), dir, "", fact)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		r, err := u.ask(t.Context(), tt.job, func(string) {
			jobs, err := stores.Bot.FactsOf(t.Context(), privacy.JobBucket, "", time.Now())
			if err != nil || len(jobs) != 1 || jobs[0].Key != tt.want {
				t.Fatalf("asked for: %v, %v; want %s", jobs, err, tt.want)
			}
			begun, err := office.Begun(t.Context(), u.Person)
			if err == nil {
				_, err = office.Erase(t.Context(), begun)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
		if err != nil || r.ID != tt.want {
			t.Errorf("%+v, %v; want the receipt of %s", r, err, tt.want)
		}
	}
}
