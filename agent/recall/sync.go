package recall

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/knn"
	"github.com/zephbot/zephbot/agent/llm"
)

// Halves of a hash: that of the text, whose change costs an embedding, and that of the payload.
const hashParts = "."

// hashOf is the hash of a text and its payload.
func hashOf(d Doc) string {
	text := digest(d.Text)
	parts := make([]string, 0, 2*len(d.Payload))
	for _, name := range slices.Sorted(maps.Keys(d.Payload)) {
		parts = append(parts, name, d.Payload[name])
	}
	payload := digest(parts...)
	return hex.EncodeToString(text[:16]) + hashParts + hex.EncodeToString(payload[:8])
}

// sameText reports whether two hashes are those of the same text.
func sameText(a, b string) bool {
	a, _, _ = strings.Cut(a, hashParts)
	b, _, _ = strings.Cut(b, hashParts)
	return a == b
}

// errOther says that the model has returned vectors of another length than those that are stored.
var errOther = errors.New("the model returns vectors of another length now")

// Sync makes the index of a scope equal to docs: it embeds what is new or changed, and removes what is gone. What it has
// stored stays if it is interrupted by ctx or an error, and the next one goes on from there. If docs ends with an error,
// nothing is removed. see is told of the progress after each batch, from the goroutine of the caller; may be nil.
//
// It holds one batch of texts in memory, and the keys and hashes of the scope. The payer in ctx pays for the embeddings.
// One Sync of a scope runs at a time; another one waits.
func (x *Index) Sync(
	ctx context.Context, scope string, docs iter.Seq2[Doc, error], see func(Report),
) (Report, error) {
	if see == nil {
		see = func(Report) {}
	}
	release, err := x.acquire(ctx, scope)
	if err != nil {
		return Report{}, err
	}
	defer release()
	for range 3 { // again if the length of the vectors has changed meanwhile
		s := &syncing{Index: x, scope: scope, see: see, seen: map[string]bool{}}
		err = s.run(ctx, docs)
		if !errors.Is(err, errOther) {
			return s.report, err
		}
	}
	return Report{}, fmt.Errorf("%w: %w", errGarbled, err)
}

// syncing is one run of a Sync.
type syncing struct {
	*Index
	scope  string
	see    func(Report)
	kind   knn.Kind
	stored map[string]string
	seen   map[string]bool
	report Report

	todo  []Doc // have to be embedded
	bytes int   // of their texts
	same  []knn.Point
}

func (s *syncing) run(ctx context.Context, docs iter.Seq2[Doc, error]) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	for d, err := range docs {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = s.doc(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	if err := s.flush(ctx); err != nil {
		return err
	}
	if err := s.restate(ctx); err != nil {
		return err
	}
	if err := s.remove(ctx); err != nil {
		return err
	}
	s.see(s.report)
	return s.retire(ctx, s.scope)
}

// begin reads what is stored.
func (s *syncing) begin(ctx context.Context) (err error) {
	var formers []knn.Kind
	if s.kind, formers, err = s.look(ctx); err != nil {
		return err
	}
	if s.kind.Size == 0 && slices.ContainsFunc(formers, func(k knn.Kind) bool { return k.Model == s.kind.Model }) {
		probe, err := s.current.ask(ctx, []string{s.o.Name}) // which of them is the model's?
		if err != nil {
			return err
		}
		s.kind = s.sized(len(probe[0]))
	}
	space, err := s.space(s.kind)
	if err != nil || space == nil {
		return err
	}
	if s.stored, err = space.Hashes(ctx, s.scope); err != nil {
		return fmt.Errorf("read the index of %s: %w", s.o.Name, err)
	}
	return nil
}

// doc compares one text with what is stored.
func (s *syncing) doc(ctx context.Context, d Doc) error {
	if s.seen[d.Key] {
		return fmt.Errorf("index %s: two texts have the key %.40q", s.o.Name, d.Key)
	}
	s.seen[d.Key] = true
	hash := hashOf(d)
	p := knn.Point{Scope: s.scope, Key: d.Key, Hash: hash, Payload: d.Payload}
	size := s.kind
	size.Size = max(size.Size, 1)
	if err := size.CheckPoint(p); err != nil {
		s.skip(d, err)
		return nil
	}
	switch before, ok := s.stored[d.Key]; {
	case ok && before == hash:
		s.report.Unchanged++
		return nil
	case ok && sameText(before, hash):
		s.same = append(s.same, p)
		if len(s.same) < knn.UpsertMost {
			return nil
		}
		return s.restate(ctx)
	}
	if len(s.todo) > 0 && s.bytes+len(cut(d.Text)) > batchBytes {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.todo, s.bytes = append(s.todo, d), s.bytes+len(cut(d.Text))
	if len(s.todo) < batchTexts {
		return nil
	}
	return s.flush(ctx)
}

func (s *syncing) skip(d Doc, err error) {
	s.report.Skipped++
	s.o.Log.Warn().Err(err).Str("collection", s.o.Name).Str("key", d.Key).Msg("a text cannot be found by its meaning")
}

// restate stores the payloads of texts that did not change.
func (s *syncing) restate(ctx context.Context) error {
	if len(s.same) == 0 {
		return nil
	}
	space, err := s.space(s.kind)
	if err != nil {
		return err
	}
	if err := space.Upsert(ctx, s.same); err != nil {
		return fmt.Errorf("store payloads of %s: %w", s.o.Name, err)
	}
	s.report.Restated += len(s.same)
	s.same = s.same[:0]
	s.see(s.report)
	return nil
}

// flush embeds and stores the batch.
func (s *syncing) flush(ctx context.Context) error {
	todo := s.todo
	s.todo, s.bytes = nil, 0
	if len(todo) == 0 {
		return nil
	}
	todo = slices.DeleteFunc(todo, func(d Doc) bool {
		again := s.wasRefused(d)
		if again {
			s.report.Skipped++
		}
		return again
	})
	if len(todo) == 0 {
		return nil
	}
	good, vectors, err := s.vectors(ctx, todo)
	if err != nil && refusal(ctx, err) && s.answers(ctx) {
		for _, d := range todo {
			s.refuse(d, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	before := s.kind
	s.kind = s.sized(len(vectors[0]))
	if before.Size != 0 && before.Size != s.kind.Size {
		return errOther
	}
	if err := s.Index.store(ctx, s.kind, s.scope, good, vectors); err != nil {
		return err
	}
	for _, d := range good {
		if _, ok := s.stored[d.Key]; ok {
			s.report.Updated++
		} else {
			s.report.Added++
		}
	}
	s.see(s.report)
	return nil
}

// vectors embeds texts. If the model refuses them, it finds out which ones and skips those. If it refuses all, that is the
// error.
func (s *syncing) vectors(ctx context.Context, docs []Doc) (good []Doc, vectors [][]float32, err error) {
	vectors, err = s.current.embed(ctx, textsOf(docs), s.kind.Size)
	if err == nil {
		return docs, vectors, nil
	}
	if len(docs) == 1 || !refusal(ctx, err) {
		return nil, nil, err
	}
	var refused []Doc
	var why error
	for half := range slices.Chunk(docs, (len(docs)+1)/2) {
		some, part, err := s.vectors(ctx, half)
		switch {
		case err != nil && !refusal(ctx, err):
			return nil, nil, err
		case err != nil:
			refused, why = append(refused, half...), err
			continue
		}
		if len(vectors) > 0 && len(part[0]) != len(vectors[0]) {
			return nil, nil, fmt.Errorf("%w: %d and %d numbers", errGarbled, len(vectors[0]), len(part[0]))
		}
		good, vectors = append(good, some...), append(vectors, part...)
	}
	if len(good) == 0 {
		return nil, nil, why
	}
	for _, d := range refused {
		s.refuse(d, why)
	}
	return good, vectors, nil
}

// answers reports whether the model embeds an ordinary text. If it does, what it refuses is at fault; if not, the model
// is, and nothing is skipped because of that.
func (s *syncing) answers(ctx context.Context) bool {
	_, err := s.current.ask(ctx, []string{s.o.Name})
	return err == nil
}

// refuse skips a text that the model does not take, now and for a while.
func (s *syncing) refuse(d Doc, why error) {
	s.skip(d, why)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) >= mostRefused {
		clear(s.refused)
	}
	s.refused[digest(cut(d.Text))] = s.o.Now().Add(refusedFor)
}

func (s *syncing) wasRefused(d Doc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.refused[digest(cut(d.Text))]
	return ok && s.o.Now().Before(until)
}

const (
	// refusedFor is how long a text that the model has refused is not sent again: each Sync would pay for finding it anew.
	refusedFor = 6 * time.Hour
	// mostRefused bounds the texts that are remembered as refused.
	mostRefused = 4096
)

// refusal reports whether an error is about the texts, and not about the model or the caller.
func refusal(ctx context.Context, err error) bool {
	kind := llm.KindOf(err)
	return ctx.Err() == nil && (kind == llm.Invalid || kind == llm.TooLong)
}

// remove deletes what is stored and was not seen.
func (s *syncing) remove(ctx context.Context) error {
	var gone []string
	for key := range s.stored {
		if !s.seen[key] {
			gone = append(gone, key)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	space, err := s.space(s.kind)
	if err != nil {
		return err
	}
	if err := space.Delete(ctx, s.scope, gone); err != nil {
		return fmt.Errorf("remove vectors of %s: %w", s.o.Name, err)
	}
	s.report.Removed = len(gone)
	return nil
}
