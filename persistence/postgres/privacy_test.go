package postgres_test

import (
	"testing"

	"github.com/zephbot/zephbot/persistence/postgres"
	"github.com/zephbot/zephbot/persistence/storetest"
)

func TestPersonal(t *testing.T) {
	t.Parallel()
	cluster, empty := template(t)
	storetest.Personal(t, func(t *testing.T) storetest.PersonalStore {
		return open(t, postgres.Options{URL: cluster.URL(cluster.Database(t, empty)), Now: storetest.Now})
	})
}
