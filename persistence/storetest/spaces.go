package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/zephbot/zephbot/agent/knn"
)

// Spaces runs the suite of knn.Spaces. open returns Spaces that live as long as their test. Names of collections are
// not used by two tests, so that they can share a server.
func Spaces(t *testing.T, open func(t *testing.T) knn.Spaces) {
	t.Helper()
	for name, test := range map[string]func(*spaces){
		"nobody's points are refused":        nobodysPointsAreRefused,
		"owners are kept apart":              ownersAreKeptApart,
		"an owner is forgotten":              anOwnerIsForgotten,
		"kinds are kept apart":               kindsAreKeptApart,
		"a payload changes without a vector": aPayloadChangesWithoutAVector,
		"what does not fit is refused":       whatDoesNotFitIsRefused,
		"names are any text":                 namesAreAnyText,
		"the best of many":                   theBestOfMany,
		"any changes leave what a map has":   anyChangesLeaveWhatAMapHas,
		"many use a space at once":           manyUseASpaceAtOnce,
		"a cancelled call ends":              aCancelledCallEnds,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kind := knn.Kind{Name: fmt.Sprintf("t%016x", rand.Uint64()), Model: "m", Size: 2} //nolint:gosec // a name
			s := &spaces{T: t, all: open(t), kind: kind}
			t.Cleanup(func() {
				kinds, err := s.all.Kinds(context.WithoutCancel(t.Context()), kind.Name)
				for _, k := range kinds {
					err = errors.Join(err, s.all.Drop(context.WithoutCancel(t.Context()), k))
				}
				if err != nil {
					t.Error(err)
				}
			})
			test(s)
		})
	}
}

// spaces is one test with its Spaces and a Kind of its own.
type spaces struct {
	*testing.T
	all  knn.Spaces
	kind knn.Kind
}

func (s *spaces) open(kind knn.Kind) knn.Space {
	s.Helper()
	space, err := s.all.Space(kind)
	s.check(err)
	return space
}

func (s *spaces) check(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func owned(scope, key string, vector ...float32) knn.Point {
	return knn.Point{
		Scope: scope, Key: key, Hash: "hash of " + key, Vector: vector,
		Payload: map[string]string{"path": key, "owner": scope},
	}
}

func (s *spaces) put(space knn.Space, points ...knn.Point) {
	s.Helper()
	s.check(space.Upsert(s.Context(), points))
}

// found requires these hits as "scope:key", in any order.
func (s *spaces) found(space knn.Space, scopes []string, want ...string) []knn.Hit {
	s.Helper()
	hits, err := space.Search(s.Context(), knn.Filter{Scopes: scopes}, []float32{1, 0}, 100)
	s.check(err)
	got := []string{}
	for _, h := range hits {
		got = append(got, h.Scope+":"+h.Key)
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.Errorf("found in %q (-want +got):\n%s", scopes, diff)
	}
	return hits
}

func (s *spaces) hashes(space knn.Space, scope string, want map[string]string) {
	s.Helper()
	got, err := space.Hashes(s.Context(), scope)
	s.check(err)
	if diff := gocmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		s.Errorf("hashes of %q (-want +got):\n%s", scope, diff)
	}
}

func nobodysPointsAreRefused(s *spaces) {
	space := s.open(s.kind)
	s.put(space, owned("a", "1", 1, 0))
	_, none := space.Search(s.Context(), knn.Filter{}, []float32{1, 0}, 5)
	_, empty := space.Search(s.Context(), knn.Filter{Scopes: []string{""}}, []float32{1, 0}, 5)
	_, one := space.Search(s.Context(), knn.Filter{Scopes: []string{"a", ""}}, []float32{1, 0}, 5)
	_, hashes := space.Hashes(s.Context(), "")
	for what, err := range map[string]error{
		"search without scopes":       none,
		"search of an empty scope":    empty,
		"search of one that is empty": one,
		"hashes":                      hashes,
		"upsert": space.Upsert(s.Context(), []knn.Point{
			owned("a", "2", 0, 1),
			owned("", "1", 1, 0),
		}),
		"delete": space.Delete(s.Context(), "", []string{"1"}),
		"forget": space.Forget(s.Context(), ""),
	} {
		if !errors.Is(err, knn.ErrNoScope) {
			s.Errorf("%s: %v, want that a scope is missing", what, err)
		}
	}
	s.found(space, []string{"a"}, "a:1")
}

func ownersAreKeptApart(s *spaces) {
	space := s.open(s.kind)
	// Scopes that a careless comparison confuses, and the same keys.
	scopes := []string{
		"a", "A", "a ", "ab", "a%", "a_", "a\x01", "telegram:1", "telegram:11", "telegram:1/x", "ä", "a\u0308",
	}
	for i, scope := range scopes {
		s.put(space, owned(scope, "k", 1, float32(i)), owned(scope, "only "+scope, 0, 1))
	}
	for _, scope := range scopes {
		for _, h := range s.found(space, []string{scope}, scope+":k", scope+":only "+scope) {
			if h.Payload["owner"] != scope || h.Payload["path"] != h.Key {
				s.Errorf("%q: payload %v", scope, h.Payload)
			}
		}
		s.hashes(space, scope, map[string]string{"k": "hash of k", "only " + scope: "hash of only " + scope})
	}
	s.found(
		space, []string{"a", "b", "a", "telegram:1"}, "a:k", "a:only a", "telegram:1:k", "telegram:1:only telegram:1",
	)
	s.found(space, []string{"b", "telegram"})
	s.check(space.Delete(s.Context(), "a", []string{"k", "only A", "k"}))
	s.found(space, []string{"a"}, "a:only a")
	s.found(space, []string{"A"}, "A:k", "A:only A")
	owners, err := s.all.Owners(s.Context(), s.kind)
	s.check(err)
	slices.Sort(scopes)
	if !slices.Equal(owners, scopes) {
		s.Errorf("owners %q, want %q", owners, scopes)
	}
}

func anOwnerIsForgotten(s *spaces) {
	space := s.open(s.kind)
	s.check(space.Forget(s.Context(), "a"))
	s.put(space, owned("a", "1", 1, 0), owned("a", "2", 1, 0), owned("b", "1", 1, 0))
	s.found(space, []string{"a"}, "a:1", "a:2")
	s.check(space.Forget(s.Context(), "a"))
	s.found(space, []string{"a"})
	s.found(space, []string{"a", "b"}, "b:1")
	s.hashes(space, "a", nil)
	owners, err := s.all.Owners(s.Context(), s.kind)
	if s.check(err); !slices.Equal(owners, []string{"b"}) {
		s.Errorf("owners %q", owners)
	}
	s.put(space, owned("a", "3", 1, 0))
	s.found(space, []string{"a"}, "a:3")
	s.check(space.Delete(s.Context(), "b", []string{"1"}))
	owners, err = s.all.Owners(s.Context(), s.kind)
	if s.check(err); !slices.Equal(owners, []string{"a"}) {
		s.Errorf("owners after the last point was removed: %q", owners)
	}
}

func kindsAreKeptApart(s *spaces) {
	other, long, neighbour := s.kind, s.kind, s.kind
	other.Model, long.Size, neighbour.Name = "n/v2 (ü)", 3, s.kind.Name+"-2"
	s.put(s.open(s.kind), owned("a", "1", 1, 0))
	s.put(s.open(other), owned("a", "2", 1, 0))
	s.put(s.open(long), owned("a", "3", 1, 0, 0))
	s.put(s.open(neighbour), owned("a", "4", 1, 0))
	kinds, err := s.all.Kinds(s.Context(), s.kind.Name)
	s.check(err)
	byModel := func(a, b knn.Kind) int { return strings.Compare(a.String(), b.String()) }
	want := []knn.Kind{s.kind, other, long}
	slices.SortFunc(kinds, byModel)
	slices.SortFunc(want, byModel)
	if diff := gocmp.Diff(want, kinds); diff != "" {
		s.Errorf("kinds (-want +got):\n%s", diff)
	}
	s.found(s.open(s.kind), []string{"a"}, "a:1")
	s.found(s.open(other), []string{"a"}, "a:2")
	s.check(s.all.Drop(s.Context(), other))
	s.check(s.all.Drop(s.Context(), other))
	s.found(s.open(other), []string{"a"})
	s.found(s.open(s.kind), []string{"a"}, "a:1")
	s.found(s.open(neighbour), []string{"a"}, "a:4")
	s.check(s.all.Drop(s.Context(), neighbour))
	kinds, err = s.all.Kinds(s.Context(), s.kind.Name)
	if s.check(err); len(kinds) != 2 {
		s.Errorf("kinds after one was dropped: %v", kinds)
	}
	s.put(s.open(other), owned("a", "5", 1, 0))
	s.found(s.open(other), []string{"a"}, "a:5")
}

func aPayloadChangesWithoutAVector(s *spaces) {
	space := s.open(s.kind)
	s.put(space, owned("a", "1", 0, 5), owned("a", "2", 1, 0))
	again := owned("a", "1")
	again.Hash, again.Payload = "another", map[string]string{"line": "7"}
	s.put(space, again, owned("a", "unknown"), owned("b", "1"))
	s.hashes(space, "a", map[string]string{"1": "another", "2": "hash of 2"})
	hits, err := space.Search(s.Context(), knn.Filter{Scopes: []string{"a", "b"}}, []float32{0, 1}, 1)
	want := []knn.Hit{{Scope: "a", Key: "1", Score: 1, Payload: map[string]string{"line": "7"}}}
	if diff := gocmp.Diff(want, hits, cmpopts.EquateApprox(0, 1e-5)); diff != "" || err != nil {
		s.Errorf("(-want +got):\n%s%v", diff, err)
	}
	again.Payload = nil
	s.put(space, again)
	hits, err = space.Search(s.Context(), knn.Filter{Scopes: []string{"a"}}, []float32{0, 1}, 1)
	if s.check(err); len(hits) != 1 || len(hits[0].Payload) != 0 {
		s.Errorf("without a payload: %v", hits)
	}
}

func whatDoesNotFitIsRefused(s *spaces) {
	space := s.open(s.kind)
	bad := map[string]knn.Point{
		"another length": owned("a", "1", 1, 2, 3),
		"a long scope":   owned(strings.Repeat("x", knn.MostScope+1), "1", 1, 0),
		"a long key":     owned("a", strings.Repeat("x", knn.MostKey+1), 1, 0),
		"no key":         owned("a", "", 1, 0),
		"a zero":         owned("a", "x\x00", 1, 0),
		"no text":        owned("a", "x\xff", 1, 0),
		"a scope with 0": owned("a\x00", "1", 1, 0),
	}
	large := owned("a", "1", 1, 0)
	large.Payload["x"] = strings.Repeat("x", knn.MostPayload)
	bad["a large payload"] = large
	for name, p := range bad {
		if err := space.Upsert(s.Context(), []knn.Point{owned("a", "good", 1, 0), p}); err == nil {
			s.Errorf("%s was stored", name)
		}
	}
	s.found(space, []string{"a"}) // all or none
	if _, err := space.Search(s.Context(), knn.Filter{
		Scopes: []string{"a"},
	}, []float32{1}, 5); !errors.Is(err, knn.ErrSize) {
		s.Errorf("a query of another length: %v", err)
	}
	if _, err := space.Search(s.Context(), knn.Filter{
		Scopes: make([]string, knn.MostScopes+1),
	}, []float32{1, 0}, 5); err == nil {
		s.Error("a search in too many scopes")
	}
	for _, kind := range []knn.Kind{
		{},
		{Name: "a", Model: "m"},
		{Name: "a/b", Model: "m", Size: 1},
		{Name: "a", Size: 1},
		{Name: "a", Model: "m", Size: knn.MostSize + 1},
		{Name: "ä", Model: "m", Size: 1},
	} {
		if _, err := s.all.Space(kind); err == nil {
			s.Errorf("%+v was opened", kind)
		}
	}
}
