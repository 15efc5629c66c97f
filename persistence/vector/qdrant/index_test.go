package qdrant_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	client "github.com/qdrant/go-client/qdrant"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/vector/qdrant"
	"github.com/zephbot/zephbot/persistence/vector/qdrant/qdranttest"
)

// Ids of keys, computed by Python's uuid.uuid5. A change would orphan the points of all installations.
const (
	idOfRead  = "9d6c7aa6-e595-5704-9182-e9ba949b2ac8"
	idOfEmpty = "94382af4-8717-5639-bd07-0e8c0f590bb6"
)

func setup(t *testing.T) (*qdranttest.Server, knn.Index) {
	t.Helper()
	server := qdranttest.Start(t, qdranttest.Options{})
	return server, connect(t, server, qdrant.Options{}).Collection(collection)
}

func put(t *testing.T, index knn.Index, points ...knn.Point) {
	t.Helper()
	check(t, index.Upsert(t.Context(), points))
}

// keys returns the keys in the index.
func keys(t *testing.T, index knn.Index) []string {
	t.Helper()
	hashes, err := index.Hashes(t.Context())
	check(t, err)
	return slices.Sorted(maps.Keys(hashes))
}

// called requires these numbers of calls since the start of the server.
func called(t *testing.T, server *qdranttest.Server, want map[string]int) {
	t.Helper()
	for method, n := range want {
		if got := server.Calls(method); got != n {
			t.Errorf("%s was called %d times, want %d", method, got, n)
		}
	}
}

func TestWhatAPointIsToQdrant(t *testing.T) {
	t.Parallel()
	server, index := setup(t)
	put(t, index, knn.Point{Key: "files:read", Hash: "abc", Vector: []float32{1}, Payload: map[string]string{
		"key": "files:read", "server_id": "files", "tool_name": "read", "description": "Reads a file.",
	}}, knn.Point{Vector: []float32{1}})
	want := map[string]string{"key": "files:read", "hash": "abc", "server_id": "files", "tool_name": "read", "description": "Reads a file."}
	if diff := cmp.Diff(want, server.Payload(collection, idOfRead)); diff != "" {
		t.Errorf("payload (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"key": "", "hash": ""}, server.Payload(collection, idOfEmpty)); diff != "" {
		t.Errorf("payload of an empty key (-want +got):\n%s", diff)
	}
}

func TestTheCollectionIsMadeOnceAndAnewForAnotherSize(t *testing.T) {
	t.Parallel()
	server, index := setup(t)
	keys(t, index)
	if _, err := index.Search(t.Context(), []float32{1, 0}, 5); err != nil {
		t.Error(err)
	}
	called(t, server, map[string]int{"CreateCollection": 0}) // reading creates nothing
	put(t, index, point("s:a", 1, 0))
	put(t, index, point("s:b", 0, 1))
	put(t, index, point("s:c", 1, 1))
	called(t, server, map[string]int{"CreateCollection": 1, "DeleteCollection": 0, "GetCollection": 1, "Upsert": 4})
	put(t, index, point("s:d", 1, 0, 0))
	put(t, index, point("s:e", 0, 1, 0))
	called(t, server, map[string]int{"CreateCollection": 2, "DeleteCollection": 1, "GetCollection": 2, "Upsert": 7})
	if got := keys(t, index); !slices.Equal(got, []string{"s:d", "s:e"}) {
		t.Errorf("after another size: %v", got)
	}
}

func TestAnotherProcessMakesTheCollectionFirst(t *testing.T) {
	t.Parallel()
	server, index := setup(t)
	other := connect(t, server, qdrant.Options{}).Collection(collection)
	var raced atomic.Bool
	server.Before(func(method string) error {
		if method == "CreateCollection" && raced.CompareAndSwap(false, true) {
			return other.Upsert(t.Context(), []knn.Point{point("s:other", 0, 1)})
		}
		return nil
	})
	put(t, index, point("s:a", 1, 0))
	if got := keys(t, index); !slices.Equal(got, []string{"s:a", "s:other"}) {
		t.Errorf("the index holds %v", got)
	}
}

func TestACollectionOfSomebodyElseIsLeftAlone(t *testing.T) {
	t.Parallel()
	for name, params := range map[string]*client.VectorParams{
		"another distance": {Size: 3, Distance: client.Distance_Dot},
		"named vectors":    nil,
		"many vectors a point": {
			Size: 3, Distance: client.Distance_Cosine, MultivectorConfig: &client.MultiVectorConfig{Comparator: client.MultiVectorComparator_MaxSim},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, index := setup(t)
			server.Foreign(collection, params)
			err := index.Upsert(t.Context(), []knn.Point{point("s:a", 1, 0)})
			if err == nil || !strings.Contains(err.Error(), collection) || !strings.Contains(err.Error(), "remove or rename it") {
				t.Errorf("got %v", err)
			}
			called(t, server, map[string]int{"DeleteCollection": 0, "CreateCollection": 0})
		})
	}
}

func TestPointsOfSomebodyElseAreNotSeen(t *testing.T) {
	t.Parallel()
	server, index := setup(t)
	put(t, index, point("s:a", 1, 0))
	const foreign = "00000000-0000-4000-8000-000000000001"
	server.Put(collection, foreign, []float32{1, 0}, map[string]string{"key": "s:a", "hash": "theirs"})
	server.Put(collection, strings.Replace(foreign, "1", "2", 1), []float32{1, 0}, nil)
	hashes, err := index.Hashes(t.Context())
	check(t, err)
	if diff := cmp.Diff(map[string]string{"s:a": "hash of s:a"}, hashes); diff != "" {
		t.Errorf("hashes (-want +got):\n%s", diff)
	}
	hits, err := index.Search(t.Context(), []float32{1, 0}, 9)
	check(t, err)
	if diff := cmp.Diff([]knn.Hit{{Key: "s:a", Score: 1}}, hits); diff != "" {
		t.Errorf("hits (-want +got):\n%s", diff)
	}
}

func TestManyPointsGoInPagesAndBatches(t *testing.T) {
	t.Parallel()
	server, index := setup(t)
	var points []knn.Point
	var all []string
	for n := range 1001 {
		points = append(points, point(fmt.Sprintf("s:t%04d", n), float32(n), 1))
		all = append(all, points[n].Key)
	}
	put(t, index, points...)
	if got := keys(t, index); !slices.Equal(got, all) {
		t.Errorf("%d keys, want %d", len(got), len(all))
	}
	check(t, index.Delete(t.Context(), all))
	called(t, server, map[string]int{"Upsert": 1 + 4, "Scroll": 2, "Delete": 2})
	large := make([]knn.Point, 17) // 17 of 256 KiB do not fit into one request
	for n := range large {
		large[n] = point(fmt.Sprint(n), make([]float32, 1<<16)...)
		large[n].Vector[n] = 1
	}
	put(t, index, large...)
	if got := keys(t, index); len(got) != len(large) {
		t.Errorf("%d large points", len(got))
	}
	called(t, server, map[string]int{"Upsert": 5 + 1 + 2}) // one was rejected because of its size
}

func TestPointsThatCannotBeStored(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		points []knn.Point
		want   string
	}{
		"two sizes":        {[]knn.Point{point("s:a", 1, 0), point("s:b", 1)}, "vectors of 2 and 1 numbers"},
		"no vector":        {[]knn.Point{point("s:a")}, `the vector of "s:a" has 0 numbers`},
		"too long":         {[]knn.Point{point("s:a", make([]float32, 65537)...)}, "has 65537 numbers: want 1 to 65536"},
		"a key of no text": {[]knn.Point{point("s:\xff", 1)}, "is not UTF-8"},
		"a hash of none":   {[]knn.Point{{Key: "s:a", Hash: "\xff", Vector: []float32{1}}}, "is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server, index := setup(t)
			if err := index.Upsert(t.Context(), test.points); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			called(t, server, map[string]int{"Upsert": 0, "CreateCollection": 0})
		})
	}
}

// TestErrorsOfTheServer makes each method fail, wherever it is called.
func TestErrorsOfTheServer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		method string
		code   codes.Code
		fails  []string
	}{
		{"Upsert", codes.Internal, []string{"upsert"}},
		{"Upsert", codes.InvalidArgument, []string{"upsert"}}, // although the collection is right
		{"Upsert", codes.ResourceExhausted, []string{"upsert"}},
		{"Scroll", codes.Internal, []string{"hashes"}},
		{"Delete", codes.Internal, []string{"delete"}},
		{"Query", codes.Internal, []string{"search"}},
		{"Query", codes.InvalidArgument, []string{"search"}},
		{"Query", codes.PermissionDenied, []string{"search"}},
	} {
		t.Run(test.method+" "+test.code.String(), func(t *testing.T) {
			t.Parallel()
			server, index := setup(t)
			put(t, index, point("s:a", 1, 0))
			server.Before(func(method string) error {
				if method == test.method {
					return status.Error(test.code, "the server's words")
				}
				return nil
			})
			for what, err := range every(t.Context(), index) {
				failed := slices.Contains(test.fails, what)
				if failed != (err != nil) || failed && (status.Code(err) != test.code || !strings.Contains(err.Error(), "the server's words")) {
					t.Errorf("%s: %v", what, err)
				}
			}
			server.Before(nil)
			if got := keys(t, index); !slices.Contains(got, "s:a") {
				t.Errorf("the index holds %v", got)
			}
		})
	}
}

func TestACollectionThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"GetCollection", "DeleteCollection", "CreateCollection"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			server, index := setup(t)
			put(t, index, point("s:a", 1))
			server.Before(func(method string) error {
				if method == step {
					return status.Error(codes.Internal, "the disk is full")
				}
				return nil
			})
			if err := index.Upsert(t.Context(), []knn.Point{point("s:a", 1, 0)}); status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "the disk is full") {
				t.Errorf("got %v", err)
			}
			server.Before(nil)
			put(t, index, point("s:a", 1, 0))
		})
	}
}

func TestACollectionThatIsRemovedMeanwhileIsMadeAnew(t *testing.T) {
	t.Parallel()
	server, index := setup(t)
	put(t, index, point("s:a", 1, 0))
	server.Drop(collection)
	if got := keys(t, index); len(got) != 0 {
		t.Errorf("the index holds %v", got)
	}
	check(t, index.Delete(t.Context(), []string{"s:a"}))
	put(t, index, point("s:b", 1, 0))
	if got := keys(t, index); !slices.Equal(got, []string{"s:b"}) {
		t.Errorf("the index holds %v", got)
	}
}
