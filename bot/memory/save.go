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

// refusedAs returns an error.
func refusedAs(w wrongText, what string, size, limit int) error {
	return &wrongError{w, w.sentence(what, size, limit)}
}

// saveText remembers a text. What the scope has about the same subject, and the memories with the ids of replaces, are
// deleted with it. A text that is remembered already is not stored again.
func (s *Store) saveText(
	ctx context.Context, scope Scope, m Memory, replaces []string, by tools.Origin,
) (saved, error) {
	var out saved
	err := s.applyDraft(ctx, scope, func(d *draft) error {
		out = saved{Memory: m}
		if old, ok := d.findMemory(m.ID); ok { // the call has run before
			out.Memory, out.near = old, nearMemories(&old, d.list)
			return nil
		}
		gone, err := replacedMemories(d, &m, replaces)
		if err != nil {
			return err
		}
		if i := slices.IndexFunc(d.list, func(old Memory) bool {
			return sameText(old.Text, m.Text) && (m.Key == "" || sameText(old.Key, m.Key))
		}); i >= 0 &&
			!slices.Contains(replaces, d.list[i].ID) {
			out.Memory, out.known = d.list[i], true
			return nil
		}
		for i := range gone {
			d.dropMemory(&gone[i])
		}
		if d.left >= s.deps.Limits.Entries {
			return refusedAs(wrongFull, "", d.left, s.deps.Limits.Entries)
		}
		d.putMemory(m)
		out.replaced = gone
		rest := slices.DeleteFunc(slices.Clone(d.list), func(old Memory) bool {
			return slices.ContainsFunc(gone, func(g Memory) bool { return g.ID == old.ID })
		})
		out.near = s.alikeMemories(ctx, scope, &m, rest)
		if len(gone) > 0 {
			d.event = append(d.event, Event{What: Replaced, IDs: memoryIDs(gone), By: m.ID, Origin: by})
		}
		return nil
	})
	return out, err
}

// replacedMemories lists the memories that a new one replaces: those about the same subject, and those that are named.
func replacedMemories(d *draft, m *Memory, named []string) ([]Memory, error) {
	var gone []Memory
	for _, id := range named {
		old, ok := d.findMemory(strings.ToLower(strings.TrimSpace(id)))
		if !ok {
			return nil, refusedAs(wrongGone, id, 0, 0)
		}
		gone = append(gone, old)
	}
	for i := range d.list {
		old := &d.list[i]
		if m.Key != "" && sameText(old.Key, m.Key) && !slices.ContainsFunc(gone, func(g Memory) bool {
			return g.ID == old.ID
		}) {
			gone = append(gone, *old)
		}
	}
	return gone, nil
}

// alikeMemories lists the memories that may be about the same as a new one: by their words, and by meaning.
func (s *Store) alikeMemories(ctx context.Context, scope Scope, m *Memory, list []Memory) []Memory {
	found := nearMemories(m, list)
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
		if similar[list[i].ID] >= alikeByMeaning && !slices.Contains(memoryIDs(found), list[i].ID) {
			found = append(found, list[i])
		}
	}
	return found
}

// forgetMemories deletes memories; it returns those that there were.
func (s *Store) forgetMemories(ctx context.Context, scope Scope, which []string, by tools.Origin) ([]Memory, error) {
	var gone []Memory
	err := s.applyDraft(ctx, scope, func(d *draft) error {
		gone = nil
		for _, id := range which {
			m, ok := d.findMemory(id)
			if !ok || slices.Contains(memoryIDs(gone), id) {
				continue
			}
			gone = append(gone, m)
			d.dropMemory(&m)
		}
		if len(gone) > 0 {
			d.event = append(d.event, Event{What: Deleted, IDs: memoryIDs(gone), Origin: by})
		}
		return nil
	})
	return gone, err
}

// memoryIDs lists the ids of memories.
func memoryIDs(list []Memory) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].ID
	}
	return out
}
