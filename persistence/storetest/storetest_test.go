package storetest_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/blob"
	"github.com/zephbot/zephbot/agent/blob/blobtest"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/persistence/storetest"
)

func TestStoreInMemory(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) bot.Store { return bottest.New() })
}

func TestRaceInMemory(t *testing.T) {
	t.Parallel()
	storetest.Race(t, func(*testing.T) (one, two bot.Store) {
		store := bottest.New()
		return store, store
	})
}

func TestBlobsInMemory(t *testing.T) {
	t.Parallel()
	storetest.Blobs(t, func(_ *testing.T, limit int64) blob.Store { return &blobtest.Store{Limit: limit} })
}
