package storetest

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/knn"
)

func namesAreAnyText(s *spaces) {
	space := s.open(s.kind)
	names := []string{
		"x",
		"'; DROP TABLE point; --",
		"\"%_*?",
		"Ä",
		"ä",
		"a\u0308",
		"\n\t",
		strings.Repeat("long", 60),
		"😀:🏘",
		"{\"a\":1}",
	}
	want := map[string]string{}
	for i, name := range names {
		p := owned(name, name, 1, float32(i))
		p.Hash = name
		p.Payload = map[string]string{name: name, "scope": "not the scope", "key": "not the key", "hash": "x", "": ""}
		s.put(space, p)
		want[name] = name
	}
	for _, name := range names {
		s.hashes(space, name, map[string]string{name: name})
		for _, h := range s.found(space, []string{name}, name+":"+name) {
			if diff := gocmp.Diff(map[string]string{
				name:    name,
				"scope": "not the scope",
				"key":   "not the key",
				"hash":  "x",
				"":      "",
			}, h.Payload); diff != "" {
				s.Errorf("payload of %q:\n%s", name, diff)
			}
		}
	}
	s.found(space, names, slices.Collect(func(yield func(string) bool) {
		for name := range maps.Keys(want) {
			if !yield(name + ":" + name) {
				return
			}
		}
	})...)
}

func theBestOfMany(s *spaces) {
	kind := s.kind
	kind.Size = 16
	space := s.open(kind)
	all := random(5, 1300, 16)
	for i := range all {
		all[i].Scope = []string{"a", "b", "c"}[i%3]
	}
	all[7].Vector = make([]float32, 16) // without direction
	s.put(space, all...)
	query := random(6, 1, 16)[0].Vector
	for _, scopes := range [][]string{{"a"}, {"c", "a"}} {
		var among []knn.Point
		for _, p := range all {
			if slices.Contains(scopes, p.Scope) {
				among = append(among, p)
			}
		}
		want := reference(among, query)
		want = slices.DeleteFunc(want, func(h knn.Hit) bool { return math.IsNaN(float64(h.Score)) })
		got, err := space.Search(s.Context(), knn.Filter{Scopes: scopes}, query, 20)
		s.check(err)
		if len(got) != 20 {
			s.Fatalf("%d hits in %v", len(got), scopes)
		}
		for i, h := range got {
			if math.Abs(float64(h.Score-want[i].Score)) > 1e-5 || !slices.Contains(scopes, h.Scope) {
				s.Errorf("hit %d in %v is %v, want %v", i, scopes, h, want[i])
			}
		}
	}
	hits, err := space.Search(s.Context(), knn.Filter{Scopes: []string{"b"}}, make([]float32, 16), 3)
	if s.check(err); len(hits) != 3 || hits[0].Score != 0 {
		s.Errorf("a query without direction: %v", hits)
	}
	if hits, err := space.Search(s.Context(), knn.Filter{
		Scopes: []string{"b"},
	}, query, 0); err != nil || len(hits) != 0 {
		s.Errorf("no hits wanted: %v, %v", hits, err)
	}
}

// anyChangesLeaveWhatAMapHas compares with a map, through two handles on the same Kind.
func anyChangesLeaveWhatAMapHas(s *spaces) {
	r := rand.New(rand.NewPCG(8, 15)) //nolint:gosec // a test
	handles := []knn.Space{s.open(s.kind), s.open(s.kind)}
	model := map[string]map[string]string{"a": {}, "b": {}}
	for step := range 60 {
		space := handles[r.IntN(2)]
		scope := []string{"a", "b"}[r.IntN(2)]
		key := fmt.Sprint("k", r.IntN(6))
		switch r.IntN(8) {
		case 0:
			s.check(space.Forget(s.Context(), scope))
			model[scope] = map[string]string{}
		case 1, 2:
			s.check(space.Delete(s.Context(), scope, []string{key}))
			delete(model[scope], key)
		default:
			p := owned(scope, key, r.Float32(), r.Float32())
			p.Hash = fmt.Sprint("h", step)
			s.put(space, p)
			model[scope][key] = p.Hash
		}
		for scope, want := range model {
			s.hashes(handles[r.IntN(2)], scope, want)
			var keys []string
			for key := range want {
				keys = append(keys, scope+":"+key)
			}
			s.found(handles[r.IntN(2)], []string{scope}, keys...)
		}
	}
}

func manyUseASpaceAtOnce(s *spaces) {
	const sides = 8
	space := s.open(s.kind)
	var wg sync.WaitGroup
	for n := range sides {
		wg.Go(func() {
			scope := fmt.Sprint("scope", n%3)
			kept, gone := fmt.Sprint("kept", n), fmt.Sprint("gone", n)
			for step, err := range []error{
				space.Upsert(s.Context(), []knn.Point{
					owned(scope, kept, 1, float32(n)),
					owned(scope, gone, 0, 1),
					owned(scope, "shared", 1, 1),
				}),
				space.Delete(s.Context(), scope, []string{gone}),
			} {
				if err != nil {
					s.Errorf("step %d: %v", step, err)
				}
			}
			hits, err := space.Search(
				s.Context(), knn.Filter{Scopes: []string{scope}}, []float32{1, float32(n)}, 4*sides,
			)
			has := func(key string) bool {
				return slices.ContainsFunc(hits, func(h knn.Hit) bool { return h.Key == key })
			}
			if err != nil || !has(kept) || has(gone) {
				s.Errorf("side %d found %v (%v)", n, hits, err)
			}
		})
	}
	wg.Wait()
	s.found(space, []string{"scope2"}, "scope2:kept2", "scope2:kept5", "scope2:shared")
}

func aCancelledCallEnds(s *spaces) {
	space := s.open(s.kind)
	s.put(space, owned("a", "1", 1, 0))
	ctx, cancel := context.WithCancel(s.Context())
	cancel()
	_, search := space.Search(ctx, knn.Filter{Scopes: []string{"a"}}, []float32{1, 0}, 1)
	_, hashes := space.Hashes(ctx, "a")
	for what, err := range map[string]error{
		"search": search,
		"hashes": hashes,
		"upsert": space.Upsert(ctx, []knn.Point{owned("a", "2", 1, 0)}),
	} {
		if err == nil {
			s.Errorf("%s after the end of its context", what)
		}
	}
	s.found(space, []string{"a"}, "a:1")
}
