package storetest_test

import (
	"sync/atomic"
	"testing"

	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/persistence/storetest"
)

// TestOutboxes plays the suite on the store in memory.
func TestOutboxes(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	storetest.Outboxes(t, func(_ *testing.T, name string) storetest.Process {
		var dead atomic.Bool
		return storetest.Process{Store: store.Beside(name), Alive: func() bool { return !dead.Load() }, Kill: func() {
			dead.Store(true)
			store.Bury(name)
		}}
	}, 40, 12)
}
