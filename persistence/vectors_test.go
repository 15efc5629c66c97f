package persistence_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence"
	"github.com/zephbot/zephbot/persistence/vector"
)

func TestVectorsOutliveTheProcess(t *testing.T) {
	t.Parallel()
	options := persistence.Options{DataDir: filepath.Join(t.TempDir(), "data"), Owner: "one", Log: zerolog.Nop()}
	for round := range 2 {
		stores, err := persistence.Open(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		index := stores.Vectors.Collection(vector.Tools)
		if round == 0 {
			if err := index.Upsert(t.Context(), []knn.Point{{Key: "s:a", Hash: "1", Vector: []float32{3, 4}}}); err != nil {
				t.Fatal(err)
			}
		}
		hits, err := index.Search(t.Context(), []float32{1, 0}, 5)
		if diff := cmp.Diff([]knn.Hit{{Key: "s:a", Score: 0.6}}, hits); err != nil || diff != "" {
			t.Errorf("round %d: %v (-want +got):\n%s", round, err, diff)
		}
		if err := stores.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpenWithQdrant(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	for _, test := range []struct {
		vector persistence.Vector
		want   string
	}{
		{persistence.Vector{Backend: "qdrant"}, "vector.url: is empty"},
		{persistence.Vector{Backend: "pinecone"}, `vector.backend: "pinecone" is unknown`},
		{persistence.Vector{Backend: "qdrant", URL: "http://192.0.2.1", APIKey: "key"}, ""}, // nobody is asked
	} {
		stores, err := persistence.Open(t.Context(), persistence.Options{DataDir: dir, Owner: "one", Log: zerolog.Nop(), Vector: test.vector})
		if test.want != "" {
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%+v: %v, want %q", test.vector, err, test.want)
			}
			continue // the directory is free again, or the next one fails
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := stores.Close(); err != nil {
			t.Error(err)
		}
	}
}
