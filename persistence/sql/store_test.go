package sql_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/persistence/sql"
	"github.com/zephbot/zephbot/persistence/storetest"
)

// open opens a store that is closed with its test.
func open(t testing.TB, options sql.Options) *sql.Store {
	t.Helper()
	if options.Path == "" {
		options.Path = filepath.Join(t.TempDir(), "zephbot.db")
	}
	options.Log = zerolog.Nop()
	store, err := sql.Open(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return store
}

func TestStore(t *testing.T) {
	t.Parallel()
	empty := emptyDatabase(t)
	storetest.Run(t, func(t *testing.T) bot.Store {
		path := filepath.Join(t.TempDir(), "zephbot.db")
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		return open(t, sql.Options{Path: path})
	})
}

// emptyDatabase is the file of a store that holds nothing: a copy of it is opened faster than a new one is made.
func emptyDatabase(t *testing.T) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	if err := open(t, sql.Options{Path: path}).Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestStoreBehavesLikeTheOneInMemory(t *testing.T) {
	t.Parallel()
	storetest.Compare(t, bottest.New(), open(t, sql.Options{}))
}

func TestTwoHandlesOnOneDatabase(t *testing.T) {
	t.Parallel()
	empty := emptyDatabase(t)
	storetest.Race(t, func(t *testing.T) (one, two bot.Store) {
		path := filepath.Join(t.TempDir(), "zephbot.db")
		if err := os.WriteFile(path, empty, 0o600); err != nil {
			t.Fatal(err)
		}
		return open(t, sql.Options{Path: path}), open(t, sql.Options{Path: path})
	})
}

func TestUpkeep(t *testing.T) {
	t.Parallel()
	storetest.Upkeep(t, open(t, sql.Options{}))
}
