package knn_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/knn"
)

func TestMemory(t *testing.T) {
	t.Parallel()
	m := knn.NewMemory()
	points := []knn.Point{
		{Key: "a", Hash: "1", Vector: []float32{1, 0, 0, 0, 0}},
		{Key: "b", Hash: "2", Vector: []float32{2, 2, 0, 0, 0}},
		{Key: "zero", Vector: make([]float32, 5)},
		{Key: "other", Vector: []float32{1}},
		{Key: "c", Vector: []float32{-3, 0, 0, 0, 0}},
		{Key: "d", Vector: []float32{0, 0, 0, 0, 7}},
		{Key: "long", Vector: []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}},
	}
	if err := m.Upsert(t.Context(), points); err != nil {
		t.Fatal(err)
	}
	search := func(limit int, vector ...float32) []string {
		t.Helper()
		hits, err := m.Search(t.Context(), vector, limit)
		if err != nil {
			t.Fatal(err)
		}
		list := []string{}
		for _, h := range hits {
			list = append(list, fmt.Sprintf("%s %.2f", h.Key, h.Score))
		}
		return list
	}
	check := func(got []string, want ...string) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("hits: %q, want %q", got, want)
		}
	}
	check(search(9, 5, 0, 0, 0, 0), "a 1.00", "b 0.71", "d 0.00", "zero 0.00", "c -1.00")
	check(search(1, 0, 0, 0, 0, 1), "d 1.00")
	check(search(0, 1, 0, 0, 0, 0))
	check(search(9, 1, 0))
	check(search(9, 1, 2, 3, 4, 5, 6, 7, 8, 9), "long 1.00")
	check(search(9, 9, 8, 7, 6, 5, 4, 3, 2, 1), "long 0.58") // 165 of 285
	if err := m.Delete(t.Context(), []string{"a", "d", "d", "nobody"}); err != nil {
		t.Fatal(err)
	}
	if err := m.Upsert(t.Context(), []knn.Point{{Key: "b", Hash: "3", Vector: []float32{0, 1, 0, 0, 0}}, {Key: "e", Hash: "4", Vector: []float32{1, 0, 0, 0, 0}}}); err != nil {
		t.Fatal(err)
	}
	check(search(2, 5, 0, 0, 0, 0), "e 1.00", "b 0.00")
	hashes, err := m.Hashes(t.Context())
	if diff := cmp.Diff(map[string]string{"b": "3", "c": "", "e": "4", "long": "", "other": "", "zero": ""}, hashes); diff != "" || err != nil {
		t.Errorf("hashes (-want +got):\n%s%v", diff, err)
	}
}
