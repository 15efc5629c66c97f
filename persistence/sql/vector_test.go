package sql_test

import (
	"bytes"
	"context"
	databasesql "database/sql"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/persistence/sql"
)

// points reads a collection.
func points(t *testing.T, store *sql.Store, collection string) []knn.Point {
	t.Helper()
	var all []knn.Point
	check(t, store.EachPoint(t.Context(), collection, func(p knn.Point) error {
		all = append(all, p)
		return nil
	}))
	return all
}

func TestPointsAreGivenBackWhole(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, sql.Options{Path: path})
	want := []knn.Point{
		{Key: "a", Hash: "1", Vector: []float32{1, -2.5, math.MaxFloat32, math.SmallestNonzeroFloat32, float32(math.Inf(-1))}},
		{Key: "b", Hash: "2", Vector: []float32{}, Payload: map[string]string{"key": "b", "description": "\"quoted\"\n"}},
		{Key: "c", Vector: []float32{0}},
	}
	other := []knn.Point{{Key: "a", Hash: "other", Vector: []float32{7}}}
	check(t, store.UpsertPoints(t.Context(), "tools", []knn.Point{want[2], {Key: "a", Hash: "old", Vector: []float32{9}}, want[1]}))
	check(t, store.UpsertPoints(t.Context(), "tools", want[:1]))
	check(t, store.UpsertPoints(t.Context(), "other", other))
	check(t, store.Close())

	store = open(t, sql.Options{Path: path})
	if diff := cmp.Diff(want, points(t, store, "tools")); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	check(t, store.DeletePoints(t.Context(), "tools", []string{"a", "unknown", "c"}))
	if diff := cmp.Diff(want[1:2], points(t, store, "tools")); diff != "" {
		t.Errorf("after a removal (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(other, points(t, store, "other")); diff != "" {
		t.Errorf("in the other collection (-want +got):\n%s", diff)
	}
	if got := points(t, store, "unknown"); got != nil {
		t.Errorf("in a collection that nobody made: %v", got)
	}
}

func TestEachPointStopsAtAnError(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	check(t, store.UpsertPoints(t.Context(), "tools", []knn.Point{{Key: "a"}, {Key: "b"}}))
	enough, seen := errors.New("enough"), 0
	err := store.EachPoint(t.Context(), "tools", func(knn.Point) error {
		seen++
		return enough
	})
	if !errors.Is(err, enough) || seen != 1 {
		t.Errorf("saw %d points, then %v; want 1 and the error", seen, err)
	}
}

func TestPointsAreStoredAllOrNone(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	check(t, store.UpsertPoints(t.Context(), "tools", []knn.Point{{Key: "a", Hash: "old"}, {Key: "b", Hash: "old"}}))
	check(t, store.OnWriter(t.Context(), `CREATE TRIGGER refuse BEFORE UPDATE ON vector_point WHEN new.key = 'b' BEGIN SELECT RAISE(ABORT, 'no'); END`))
	check(t, store.OnWriter(t.Context(), `CREATE TRIGGER keep BEFORE DELETE ON vector_point WHEN old.key = 'b' BEGIN SELECT RAISE(ABORT, 'no'); END`))
	if err := store.UpsertPoints(t.Context(), "tools", []knn.Point{{Key: "a", Hash: "new"}, {Key: "b", Hash: "new"}}); err == nil {
		t.Error("the refused points were stored")
	}
	if err := store.DeletePoints(t.Context(), "tools", []string{"a", "b"}); err == nil {
		t.Error("the refused points were removed")
	}
	for _, p := range points(t, store, "tools") {
		if p.Hash != "old" {
			t.Errorf("%s has the hash %q", p.Key, p.Hash)
		}
	}
	if n := len(points(t, store, "tools")); n != 2 {
		t.Errorf("%d points, want 2", n)
	}
}

func TestPointsAreRefused(t *testing.T) {
	t.Parallel()
	store := open(t, sql.Options{})
	if err := store.UpsertPoints(t.Context(), "", []knn.Point{{Key: "a"}}); err == nil || !strings.Contains(err.Error(), "no name") {
		t.Errorf("without a collection: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for what, err := range map[string]error{
		"store":  store.UpsertPoints(ctx, "tools", []knn.Point{{Key: "a"}}),
		"remove": store.DeletePoints(ctx, "tools", []string{"a"}),
		"read":   store.EachPoint(ctx, "tools", func(knn.Point) error { return nil }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: %v", what, err)
		}
	}
	if got := points(t, store, "tools"); got != nil {
		t.Errorf("stored: %v", got)
	}
	check(t, store.Close())
	if err := store.UpsertPoints(t.Context(), "tools", []knn.Point{{Key: "a"}}); !errors.Is(err, sql.ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

func TestADamagedPointIsPassedOver(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "zephbot.db")
	store := open(t, sql.Options{Path: path})
	var all []knn.Point
	for _, key := range []string{"cut", "good", "payload"} {
		all = append(all, knn.Point{Key: key, Hash: "h", Vector: []float32{1, 2}})
	}
	check(t, store.UpsertPoints(t.Context(), "tools", all))
	check(t, store.Close())
	db, err := databasesql.Open("sqlite", "file:"+path)
	check(t, err)
	for _, spoil := range []string{`vector = x'000000' WHERE key = 'cut'`, `payload = '{' WHERE key = 'payload'`} {
		_, err := db.ExecContext(t.Context(), `UPDATE vector_point SET `+spoil)
		check(t, err)
	}
	check(t, db.Close())

	var log bytes.Buffer
	store, err = sql.Open(t.Context(), sql.Options{Path: path, Log: zerolog.New(&log).Level(zerolog.WarnLevel)})
	check(t, err)
	defer func() { check(t, store.Close()) }()
	if diff := cmp.Diff(all[1:2], points(t, store, "tools")); diff != "" {
		t.Errorf("points (-want +got):\n%s", diff)
	}
	for _, key := range []string{"cut", "payload"} {
		if !strings.Contains(log.String(), fmt.Sprintf(`"key":%q`, key)) {
			t.Errorf("the log does not name %q: %s", key, log.String())
		}
	}
	check(t, store.UpsertPoints(t.Context(), "tools", all))
	if got := points(t, store, "tools"); len(got) != len(all) {
		t.Errorf("after they were stored anew: %v", got)
	}
}
