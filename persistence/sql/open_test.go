package sql_test

import (
	databasesql "database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/persistence/sql"
)

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "data")
	store := open(t, sql.Options{Path: filepath.Join(dir, "a b?#%.db")})
	_, err := store.Apply(t.Context(), fact("k"))
	check(t, err)
	info, err := os.Stat(dir)
	check(t, err)
	if info.Mode().Perm() != 0o700 {
		t.Errorf("directory has mode %v", info.Mode())
	}
	files, err := os.ReadDir(dir)
	check(t, err)
	if len(files) < 2 || files[0].Name() != "a b?#%.db" {
		t.Errorf("files %v", files)
	}
	for _, file := range files {
		info, err := file.Info()
		check(t, err)
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", file.Name(), info.Mode())
		}
	}
}

func TestOpenRefusesWhatItCannotUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"newer schema": {func(t *testing.T, path string) {
			db, err := databasesql.Open("sqlite", "file:"+path)
			check(t, err)
			_, err = db.ExecContext(t.Context(), `INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)`)
			check(t, errors.Join(err, db.Close()))
		}, "a newer version of the program (schema 99, this one knows "},
		"not a database": {func(t *testing.T, path string) {
			check(t, os.WriteFile(path, []byte(strings.Repeat("this is not a database ", 100)), 0o600))
		}, "the file is not a database"},
		"a directory": {func(t *testing.T, path string) {
			check(t, os.Remove(path))
			check(t, os.Mkdir(path, 0o700))
		}, "the file cannot be created"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "zephbot.db")
			check(t, open(t, sql.Options{Path: path}).Close())
			test.spoil(t, path)
			_, err := sql.Open(t.Context(), sql.Options{Path: path})
			var unavailable *sql.Unavailable
			if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("got %v, want *Unavailable with %q and the path", err, test.want)
			}
		})
	}
	if _, err := sql.Open(t.Context(), sql.Options{}); err == nil {
		t.Error("opened without a path")
	}
}

func TestADamagedDatabaseIsNamedSo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	check(t, open(t, sql.Options{Path: path}).Close())
	data, err := os.ReadFile(path)
	check(t, err)
	for i := 4096; i < len(data); i++ { // every page but the first
		data[i] = 0xff
	}
	check(t, os.WriteFile(path, data, 0o600))
	_, err = sql.Open(t.Context(), sql.Options{Path: path})
	var unavailable *sql.Unavailable
	if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("got %v, want *Unavailable that says it is damaged", err)
	}
}

func TestRecoverFreesTheLeasesOfOthers(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	until := time.Now().Add(time.Hour)
	for session, owner := range map[bot.SessionKey]string{"a": "dead", "b": "me"} {
		_, err := store.Apply(t.Context(), &bot.Change{Claim: &bot.Claim{Session: session, Owner: owner, Until: until}})
		check(t, err)
	}
	freed, err := store.Recover(t.Context(), "me")
	if err != nil || freed != 1 {
		t.Errorf("freed %d (%v), want 1", freed, err)
	}
	for session, want := range map[bot.SessionKey]error{"a": bot.ErrLost, "b": nil} {
		_, err := store.Apply(t.Context(), &bot.Change{Lease: &bot.Lease{Session: session, Fence: 1}})
		if !errors.Is(err, want) {
			t.Errorf("work on %s: %v, want %v", session, err, want)
		}
	}
}

func TestLockDir(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	release, err := sql.LockDir(dir, "serve")
	check(t, err)
	_, err = sql.LockDir(dir, "serve")
	for _, want := range []string{dir, "--data-dir", fmt.Sprintf("process %d, zephbot serve", os.Getpid())} {
		if !errors.Is(err, sql.ErrLocked) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("second lock: %v, want one line with %q", err, want)
		}
	}
	beside, err := sql.LockFile(dir, "other.lock", "simulate")
	check(t, err)
	beside()
	release()
	release()
	again, err := sql.LockDir(dir, "")
	check(t, err)
	again()
	if _, err := sql.LockDir(filepath.Join(dir, "lock"), ""); err == nil {
		t.Error("locked a file as a directory")
	}
}
