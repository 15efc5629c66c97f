package postgres_test

import (
	"slices"
	"testing"

	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/postgres/pgtest"
	"github.com/zephbot/zephbot/persistence/storetest"
)

// TestOutboxesOfSeveralProcesses plays the suite with processes whose beats stop.
func TestOutboxesOfSeveralProcesses(t *testing.T) {
	t.Parallel()
	cluster := pgtest.Shared(t)
	url := cluster.URL(cluster.Database(t, ""))
	watch := open(t, postgres.Options{URL: url})
	storetest.Outboxes(t, func(t *testing.T, name string) storetest.Process {
		store := open(t, postgres.Options{URL: url + "&pool_max_conns=4", Owner: name, Shared: true, Life: shortLife})
		return storetest.Process{Store: store, Alive: store.Alive, Kill: func() {
			store.Still(true)
			until(t, "others have what a process had", func() bool {
				living, err := watch.Living(t.Context())
				check(t, err)
				return !slices.Contains(living, name)
			})
		}}
	}, 4, 30)
}
