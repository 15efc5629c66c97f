package memory

import (
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools"
)

// alikeByMeaning is the similarity from which on two memories may be about the same.
const alikeByMeaning = 0.85

// saved is what became of a memory that was to be saved.
type saved struct {
	Memory
	known    bool     // it was remembered already
	replaced []Memory // deleted in its favour
	near     []Memory // may be about the same
}

// wrongError is a Wrong as an error, with what is said about it to a model.
type wrongError struct {
	wrong wrongText
	text  string
}

// Error implements error.
func (e *wrongError) Error() string { return e.text }

// wrong returns an error.
func wrong(w wrongText, what string, size, limit int) error {
	return &wrongError{w, w.sentence(what, size, limit)}
}

// save remembers a text. What the scope has about the same subject, and the memories with the ids of replaces, are
// deleted with it. A text that is remembered already is not stored again.
func (s *Store) save(ctx context.Context, scope Scope, m Memory, replaces []string, by tools.Origin) (saved, error) {
	var out saved
	err := s.apply(ctx, scope, func(d *draft) error {
		out = saved{Memory: m}
		if old, ok := d.find(m.ID); ok { // the call has run before
			out.Memory, out.near = old, near(&old, d.list)
			return nil
		}
		gone, err := replaced(d, &m, replaces)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(d.list, func(old Memory) bool { return same(old.Text, m.Text) && (m.Key == "" || same(old.Key, m.Key)) }); i >= 0 &&
			!slices.Contains(replaces, d.list[i].ID) {
			out.Memory, out.known = d.list[i], true
			return nil
		}
		for i := range gone {
			d.drop(&gone[i])
		}
		if d.left >= s.deps.Limits.Entries {
			return wrong(wrongFull, "", d.left, s.deps.Limits.Entries)
		}
		d.put(m)
		out.replaced = gone
		rest := slices.DeleteFunc(slices.Clone(d.list), func(old Memory) bool {
			return slices.ContainsFunc(gone, func(g Memory) bool { return g.ID == old.ID })
		})
		out.near = s.alike(ctx, scope, &m, rest)
		if len(gone) > 0 {
			d.event = append(d.event, Event{What: Replaced, IDs: ids(gone), By: m.ID, Origin: by})
		}
		return nil
	})
	return out, err
}

// replaced lists the memories that a new one replaces: those about the same subject, and those that are named.
func replaced(d *draft, m *Memory, named []string) ([]Memory, error) {
	var gone []Memory
	for _, id := range named {
		old, ok := d.find(strings.ToLower(strings.TrimSpace(id)))
		if !ok {
			return nil, wrong(wrongGone, id, 0, 0)
		}
		gone = append(gone, old)
	}
	for i := range d.list {
		old := &d.list[i]
		if m.Key != "" && same(old.Key, m.Key) && !slices.ContainsFunc(gone, func(g Memory) bool { return g.ID == old.ID }) {
			gone = append(gone, *old)
		}
	}
	return gone, nil
}

// alike lists the memories that may be about the same as a new one: by their words, and by meaning.
func (s *Store) alike(ctx context.Context, scope Scope, m *Memory, list []Memory) []Memory {
	found := near(m, list)
	if s.deps.Semantic == nil || len(list) == 0 {
		return found
	}
	ctx, cancel := context.WithTimeout(ctx, semanticWithin)
	defer cancel()
	similar, err := s.deps.Semantic.Similar(ctx, scope.key, m.document(), list)
	if err != nil {
		s.deps.Log.Warn().Err(err).Msg("memories not compared by meaning; by words only")
	}
	for i := range list {
		if similar[list[i].ID] >= alikeByMeaning && !slices.Contains(ids(found), list[i].ID) {
			found = append(found, list[i])
		}
	}
	return found
}

// forget deletes memories; it returns those that there were.
func (s *Store) forget(ctx context.Context, scope Scope, which []string, by tools.Origin) ([]Memory, error) {
	var gone []Memory
	err := s.apply(ctx, scope, func(d *draft) error {
		gone = nil
		for _, id := range which {
			m, ok := d.find(id)
			if !ok || slices.Contains(ids(gone), id) {
				continue
			}
			gone = append(gone, m)
			d.drop(&m)
		}
		if len(gone) > 0 {
			d.event = append(d.event, Event{What: Deleted, IDs: ids(gone), Origin: by})
		}
		return nil
	})
	return gone, err
}

// ids lists the ids of memories.
func ids(list []Memory) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].ID
	}
	return out
}
