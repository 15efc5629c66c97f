package qdrant_test

import (
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/storetest"
	"github.com/zephbot/zephbot/persistence/vector/qdrant"
	"github.com/zephbot/zephbot/persistence/vector/qdrant/qdranttest"
)

// realServer names a Qdrant, such as http://127.0.0.1:6334, on which the suites run too. They remove what they store.
const realServer = "ZEPH_TEST_QDRANT"

func TestSpaces(t *testing.T) {
	t.Parallel()
	storetest.Spaces(t, func(t *testing.T) knn.Spaces {
		return connect(t, qdranttest.Start(t, qdranttest.Options{}), qdrant.Options{}).Spaces()
	})
}

func TestSpacesOnARealServer(t *testing.T) {
	t.Parallel()
	url := os.Getenv(realServer)
	if url == "" {
		t.Skip(realServer + " names no server")
	}
	storetest.Spaces(t, func(t *testing.T) knn.Spaces {
		store, err := qdrant.Open(qdrant.Options{
			URL: url, APIKey: os.Getenv(realServer + "_KEY"), CallLimit: time.Minute, Log: zerolog.Nop(),
		})
		check(t, err)
		t.Cleanup(func() { check(t, store.Close()) })
		return store.Spaces()
	})
}

// TestWhatTheServerReturnsIsChecked: a point whose id does not say what its payload claims is of nobody.
func TestWhatTheServerReturnsIsChecked(t *testing.T) {
	t.Parallel()
	server := qdranttest.Start(t, qdranttest.Options{})
	all := connect(t, server, qdrant.Options{}).Spaces()
	space, err := all.Space(knn.Kind{Name: "code", Model: "m", Size: 1})
	check(t, err)
	check(t, space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "1", Vector: []float32{1}}}))
	server.Put("zeph_code.1.bQ", idOfRead, []float32{1}, map[string]string{"scope": "a", "key": "forged", "hash": "h"})
	hits, err := space.Search(t.Context(), knn.Filter{Scopes: []string{"a"}}, []float32{1}, 5)
	if check(t, err); len(hits) != 1 || hits[0].Key != "1" {
		t.Errorf("found %v", hits)
	}
	hashes, err := space.Hashes(t.Context(), "a")
	if check(t, err); len(hashes) != 1 {
		t.Errorf("hashes %v", hashes)
	}
	server.Foreign("zeph_other.x", nil)
	if kinds, err := all.Kinds(t.Context(), "other"); err != nil || len(kinds) != 0 {
		t.Errorf("kinds of another program: %v, %v", kinds, err)
	}
	server.Drop("zeph_code.1.bQ") // by an operator
	check(t, space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "2", Vector: []float32{1}}}))
	if owners, err := all.Owners(t.Context(), knn.Kind{Name: "code", Model: "m", Size: 1}); err != nil || len(owners) != 1 {
		t.Errorf("owners: %v, %v", owners, err)
	}
}
