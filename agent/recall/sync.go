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
	text := digestOf(d.Text)
	parts := make([]string, 0, 2*len(d.Payload))
	for _, name := range slices.Sorted(maps.Keys(d.Payload)) {
		parts = append(parts, name, d.Payload[name])
	}
	payload := digestOf(parts...)
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

// Sync makes the index of a scope equal to docs: it embeds what is new or changed, and removes what is gone.
// What it has stored stays if it is interrupted by ctx or an error, and the next one goes on from there. If
// docs ends with an error, nothing is removed. see is told of the progress after each batch, from the
// goroutine of the caller; may be nil.
//
// It holds one batch of texts in memory, and the keys and hashes of the scope. The payer in ctx pays for the
// embeddings. One Sync of a scope runs at a time; another one waits.
func (x *Index) Sync(
	ctx context.Context, scope string, docs iter.Seq2[Doc, error], see func(Report),
) (Report, error) {
	if see == nil {
		see = func(Report) {}
	}
	release, err := x.acquireScope(ctx, scope)
	if err != nil {
		return Report{}, err
	}
	defer release()
	for range 3 { // again if the length of the vectors has changed meanwhile
		s := &syncing{Index: x, scope: scope, see: see, seen: map[string]bool{}}
		err = s.syncDocs(ctx, docs)
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

func (s *syncing) syncDocs(ctx context.Context, docs iter.Seq2[Doc, error]) error {
	if err := s.readStored(ctx); err != nil {
		return err
	}
	for d, err := range docs {
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = s.compareDoc(ctx, d)
		}
		if err != nil {
			return err
		}
	}
	if err := s.flushBatch(ctx); err != nil {
		return err
	}
	if err := s.storePayloads(ctx); err != nil {
		return err
	}
	if err := s.removeUnseen(ctx); err != nil {
		return err
	}
	s.see(s.report)
	return s.retireFormers(ctx, s.scope)
}

// readStored reads what is stored.
func (s *syncing) readStored(ctx context.Context) (err error) {
	var formers []knn.Kind
	if s.kind, formers, err = s.readKinds(ctx); err != nil {
		return err
	}
	if s.kind.Size == 0 && slices.ContainsFunc(formers, func(k knn.Kind) bool { return k.Model == s.kind.Model }) {
		probe, err := s.current.askModel(ctx, []string{s.o.Name}) // which of them is the model's?
		if err != nil {
			return err
		}
		s.kind = s.noteSize(len(probe[0]))
	}
	space, err := s.spaceOf(s.kind)
	if err != nil || space == nil {
		return err
	}
	if s.stored, err = space.Hashes(ctx, s.scope); err != nil {
		return fmt.Errorf("read the index of %s: %w", s.o.Name, err)
	}
	return nil
}

// compareDoc compares one text with what is stored.
func (s *syncing) compareDoc(ctx context.Context, d Doc) error {
	if s.seen[d.Key] {
		return fmt.Errorf("index %s: two texts have the key %.40q", s.o.Name, d.Key)
	}
	s.seen[d.Key] = true
	hash := hashOf(d)
	p := knn.Point{Scope: s.scope, Key: d.Key, Hash: hash, Payload: d.Payload}
	size := s.kind
	size.Size = max(size.Size, 1)
	if err := size.CheckPoint(p); err != nil {
		s.skipDoc(d, err)
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
		return s.storePayloads(ctx)
	}
	if len(s.todo) > 0 && s.bytes+len(cutText(d.Text)) > batchBytes {
		if err := s.flushBatch(ctx); err != nil {
			return err
		}
	}
	s.todo, s.bytes = append(s.todo, d), s.bytes+len(cutText(d.Text))
	if len(s.todo) < batchTexts {
		return nil
	}
	return s.flushBatch(ctx)
}

func (s *syncing) skipDoc(d Doc, err error) {
	s.report.Skipped++
	s.o.Log.Warn().Err(err).Str("collection", s.o.Name).Str("key", d.Key).Msg("a text cannot be found by its meaning")
}

// storePayloads stores the payloads of texts that did not change.
func (s *syncing) storePayloads(ctx context.Context) error {
	if len(s.same) == 0 {
		return nil
	}
	space, err := s.spaceOf(s.kind)
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

// flushBatch embeds and stores the batch.
func (s *syncing) flushBatch(ctx context.Context) error {
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
	good, vectors, err := s.embedDocs(ctx, todo)
	if err != nil && isRefusal(ctx, err) && s.modelAnswers(ctx) {
		for _, d := range todo {
			s.refuseDoc(d, err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	before := s.kind
	s.kind = s.noteSize(len(vectors[0]))
	if before.Size != 0 && before.Size != s.kind.Size {
		return errOther
	}
	if err := s.Index.storePoints(ctx, s.kind, s.scope, good, vectors); err != nil {
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

// embedDocs embeds texts. If the model refuses them, it finds out which ones and skips those. If it
// refuses all, that is the error.
func (s *syncing) embedDocs(ctx context.Context, docs []Doc) (good []Doc, vectors [][]float32, err error) {
	vectors, err = s.current.embedTexts(ctx, textsOf(docs), s.kind.Size)
	if err == nil {
		return docs, vectors, nil
	}
	if len(docs) == 1 || !isRefusal(ctx, err) {
		return nil, nil, err
	}
	var refused []Doc
	var why error
	for half := range slices.Chunk(docs, (len(docs)+1)/2) {
		some, part, err := s.embedDocs(ctx, half)
		switch {
		case err != nil && !isRefusal(ctx, err):
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
		s.refuseDoc(d, why)
	}
	return good, vectors, nil
}

// modelAnswers reports whether the model embeds an ordinary text. If it does, what it refuses is at fault; if not, the
// model is, and nothing is skipped because of that.
func (s *syncing) modelAnswers(ctx context.Context) bool {
	_, err := s.current.askModel(ctx, []string{s.o.Name})
	return err == nil
}

// refuseDoc skips a text that the model does not take, now and for a while.
func (s *syncing) refuseDoc(d Doc, why error) {
	s.skipDoc(d, why)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.refused) >= mostRefused {
		clear(s.refused)
	}
	s.refused[digestOf(cutText(d.Text))] = s.o.Now().Add(refusedFor)
}

func (s *syncing) wasRefused(d Doc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.refused[digestOf(cutText(d.Text))]
	return ok && s.o.Now().Before(until)
}

const (
	// refusedFor is how long a text that the model has refused is not sent again: each Sync would pay for finding it
	// again.
	refusedFor = 6 * time.Hour
	// mostRefused bounds the texts that are remembered as refused.
	mostRefused = 4096
)

// isRefusal reports whether an error is about the texts, and not about the model or the caller.
func isRefusal(ctx context.Context, err error) bool {
	kind := llm.KindOf(err)
	return ctx.Err() == nil && (kind == llm.Invalid || kind == llm.TooLong)
}

// removeUnseen deletes what is stored and was not seen.
func (s *syncing) removeUnseen(ctx context.Context) error {
	var gone []string
	for key := range s.stored {
		if !s.seen[key] {
			gone = append(gone, key)
		}
	}
	if len(gone) == 0 {
		return nil
	}
	space, err := s.spaceOf(s.kind)
	if err != nil {
		return err
	}
	if err := space.Delete(ctx, s.scope, gone); err != nil {
		return fmt.Errorf("remove vectors of %s: %w", s.o.Name, err)
	}
	s.report.Removed = len(gone)
	return nil
}
