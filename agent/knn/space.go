package knn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Kind says which vectors can be compared with each other: those of one collection that one model computed.
type Kind struct {
	Name  string // of the collection, such as "code"
	Model string // that computed the vectors
	Size  int    // numbers in a vector
}

// Filter selects the points that a search considers.
type Filter struct {
	Scopes []string // the owners; at least one
}

// Space stores vectors of one Kind for many owners. No method looks at points of a scope that it was not given: a scope
// that is empty is refused with ErrNoScope, by the store itself. Safe for concurrent use. It retains none of the slices
// and maps that it is given, and lends none of its own.
type Space interface {
	// Hashes returns the hash of every point of a scope by its key.
	Hashes(ctx context.Context, scope string) (map[string]string, error)
	// Upsert stores points durably, each in its own scope; one with the same scope and key is replaced. A point without
	// a vector keeps the one that is stored, and is ignored if there is none: what is said about a thing can change
	// without its meaning. Up to UpsertMost points are stored all or none.
	Upsert(ctx context.Context, points []Point) error
	// Delete removes points of a scope. Unknown keys are ignored.
	Delete(ctx context.Context, scope string, keys []string) error
	// Forget removes all points of a scope.
	Forget(ctx context.Context, scope string) error
	// Search returns at most limit points, the most similar first. A vector without direction is similar to nothing:
	// its score is 0. A vector of another length than the Kind's is an error.
	Search(ctx context.Context, filter Filter, vector []float32, limit int) ([]Hit, error)
}

// Spaces provides the Spaces of a store. Safe for concurrent use.
type Spaces interface {
	// Space returns the Space of a Kind, which is empty until something is stored.
	Space(kind Kind) (Space, error)
	// Kinds lists what is stored under the name of a collection, in any order.
	Kinds(ctx context.Context, name string) ([]Kind, error)
	// Owners lists the scopes that have points of a Kind, sorted.
	Owners(ctx context.Context, kind Kind) ([]string, error)
	// Drop removes all points of a Kind, and the Kind from Kinds.
	Drop(ctx context.Context, kind Kind) error
}

// ErrNoScope is the error of a call that does not say whose points it means.
var ErrNoScope = errors.New("the vectors of nobody in particular cannot be used: a scope is missing")

// ErrSize is the error of a vector whose length is not that of its Kind.
var ErrSize = errors.New("the vector has another length than those of its collection")

// Limits of a Space, which Check, CheckPoint and CheckFilter apply.
const (
	mostName    = 100    // bytes of the name of a collection, and of a model
	MostScope   = 256    // bytes of a scope
	MostKey     = 2048   // bytes of a key, and of a hash
	MostPayload = 16384  // bytes of all names and texts of a payload
	MostSize    = 65536  // numbers in a vector
	MostScopes  = 64     // in a filter
	MostHits    = 10_000 // of one search
	UpsertMost  = 256    // points that are certainly stored in one step
)

// Check says what is wrong with a Kind.
func (k Kind) Check() error {
	switch {
	case k.Name == "" || len(k.Name) > mostName || !plainName(k.Name):
		return fmt.Errorf("collection %q: want 1 to %d letters, digits, '_' or '-'", k.Name, mostName)
	case k.Model == "" || len(k.Model) > mostName || !utf8.ValidString(k.Model) || strings.ContainsRune(k.Model, 0):
		return fmt.Errorf("collection %s: the name of its model %q: want 1 to %d bytes", k.Name, k.Model, mostName)
	case k.Size < 1 || k.Size > MostSize:
		return fmt.Errorf("collection %s: vectors of %d numbers: want 1 to %d", k.Name, k.Size, MostSize)
	}
	return nil
}

// String is a name of the Kind that ParseKind understands. Models are named freely, so that they come last.
func (k Kind) String() string { return fmt.Sprintf("%s|%d|%s", k.Name, k.Size, k.Model) }

// ParseKind reverses Kind.String.
func ParseKind(text string) (Kind, error) {
	name, rest, ok := strings.Cut(text, "|")
	size, model, found := strings.Cut(rest, "|")
	n, err := strconv.Atoi(size)
	kind := Kind{Name: name, Model: model, Size: n}
	if !ok || !found || err != nil || kind.Check() != nil {
		return Kind{}, fmt.Errorf("%.200q is not a kind of vectors", text)
	}
	return kind, nil
}

// plainName reports whether a name can be part of a name in every store.
func plainName(name string) bool {
	return strings.IndexFunc(name, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
	}) < 0
}

// CheckScope refuses a scope that names nobody.
func CheckScope(scope string) error {
	switch {
	case scope == "":
		return ErrNoScope
	case len(scope) > MostScope || !utf8.ValidString(scope) || strings.ContainsRune(scope, 0):
		return fmt.Errorf("scope %.40q: want 1 to %d bytes of text", scope, MostScope)
	}
	return nil
}

// CheckPoint says what is wrong with a point of a Kind.
func (k Kind) CheckPoint(p Point) error {
	if err := CheckScope(p.Scope); err != nil {
		return err
	}
	if len(p.Vector) != 0 && len(p.Vector) != k.Size {
		return fmt.Errorf("point %.40q: %w: %d instead of %d", p.Key, ErrSize, len(p.Vector), k.Size)
	}
	if p.Key == "" {
		return errors.New("a point has no key")
	}
	for _, text := range []string{p.Key, p.Hash} {
		if len(text) > MostKey || !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
			return fmt.Errorf("point %.40q: want at most %d bytes of text as key and hash", p.Key, MostKey)
		}
	}
	size := 0
	for name, text := range p.Payload {
		if size += len(name) + len(text); !utf8.ValidString(name) || !utf8.ValidString(text) {
			return fmt.Errorf("point %.40q: its payload is not UTF-8", p.Key)
		}
	}
	if size > MostPayload {
		return fmt.Errorf("point %.40q: a payload of %d bytes: want at most %d", p.Key, size, MostPayload)
	}
	return nil
}

// CheckSearch says what is wrong with a search.
func (k Kind) CheckSearch(f Filter, vector []float32) error {
	if len(f.Scopes) == 0 {
		return ErrNoScope
	}
	if len(f.Scopes) > MostScopes {
		return fmt.Errorf("a search in %d scopes: want at most %d", len(f.Scopes), MostScopes)
	}
	for _, scope := range f.Scopes {
		if err := CheckScope(scope); err != nil {
			return err
		}
	}
	if len(vector) != k.Size {
		return fmt.Errorf("search: %w: %d instead of %d", ErrSize, len(vector), k.Size)
	}
	return nil
}

// Has reports whether a scope is selected.
func (f Filter) Has(scope string) bool { return slices.Contains(f.Scopes, scope) }
