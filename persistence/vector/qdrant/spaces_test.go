package qdrant_test

import (
	"context"
	"os"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/qdrant/go-client/qdrant"
	"github.com/rs/zerolog"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

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

func TestSpacesInStrictMode(t *testing.T) {
	t.Parallel()
	storetest.Spaces(t, func(t *testing.T) knn.Spaces {
		return connect(t, qdranttest.Start(t, qdranttest.Options{Strict: true}), qdrant.Options{}).Spaces()
	})
}

// TestACollectionWithoutItsIndexGetsOne: the process that created it ended before it could make the index.
func TestACollectionWithoutItsIndexGetsOne(t *testing.T) {
	t.Parallel()
	kind := knn.Kind{Name: "code", Model: "m", Size: 1}
	filter := knn.Filter{Scopes: []string{"a"}}
	for _, strict := range []bool{false, true} {
		for name, use := range map[string]func(ctx context.Context, all knn.Spaces, space knn.Space) error{
			"owners": func(ctx context.Context, all knn.Spaces, _ knn.Space) error {
				_, err := all.Owners(ctx, kind)
				return err
			},
			"hashes": func(ctx context.Context, _ knn.Spaces, x knn.Space) error { _, err := x.Hashes(ctx, "a"); return err },
			"forget": func(ctx context.Context, _ knn.Spaces, x knn.Space) error { return x.Forget(ctx, "a") },
			"search": func(ctx context.Context, _ knn.Spaces, x knn.Space) error {
				_, err := x.Search(ctx, filter, []float32{1}, 5)
				return err
			},
		} {
			server := qdranttest.Start(t, qdranttest.Options{Strict: strict})
			server.Foreign("zeph_code.1.bQ", &client.VectorParams{Size: 1, Distance: client.Distance_Cosine})
			all := connect(t, server, qdrant.Options{}).Spaces()
			space, err := all.Space(kind)
			check(t, err)
			check(t, space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "1", Vector: []float32{1}}}))
			if err := use(t.Context(), all, space); err != nil {
				t.Errorf("strict %v, %s: %v", strict, name, err)
			}
		}
	}
}

// TestAServerWithTooMuchToDoIsWaitedFor as long as it asks for, within the limit of the call.
func TestAServerWithTooMuchToDoIsWaitedFor(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]string{"at once": "0", "next week": "604800"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := qdranttest.Start(t, qdranttest.Options{RetryAfter: after})
			space, err := connect(t, server, qdrant.Options{}).Spaces().Space(knn.Kind{Name: "code", Model: "m", Size: 1})
			check(t, err)
			var refusals atomic.Int64
			refusals.Store(3)
			server.Before(func(method string) error {
				if method == "Upsert" && refusals.Add(-1) >= 0 {
					return status.Error(codes.ResourceExhausted, "Rate limiting exceeded: Write rate limit exceeded")
				}
				return nil
			})
			err = space.Upsert(t.Context(), []knn.Point{{Scope: "a", Key: "1", Vector: []float32{1}}})
			if after == "0" {
				check(t, err)
			} else if status.Code(err) != codes.ResourceExhausted || server.Calls("Upsert") != 1 {
				t.Errorf("after %d calls: %v, want the error at once", server.Calls("Upsert"), err)
			}
		})
	}
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
