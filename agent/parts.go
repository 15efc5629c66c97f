package agent

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/tools"
)

// keepFiles stores the files that a tool made and has not stored itself, for the journal, the person and the model. A file that cannot be stored
// is still listed by name, so that the person is told and the call, which has run, has a result.
func (s *step) keepFiles(ctx context.Context, files []tools.File) []llm.Part {
	kept, cancel := storingContext(ctx)
	defer cancel()
	parts := make([]llm.Part, 0, len(files))
	for _, f := range files {
		if f.Hash != "" {
			parts = append(parts, llm.Part{
				Kind: llm.KindOfType(f.MIME), Type: f.MIME, Name: f.Name, Hash: f.Hash, Size: f.Size, Text: f.Caption, Outgoing: true,
			})
			continue
		}
		part := llm.Part{Kind: llm.KindOfType(f.MIME), Type: f.MIME, Name: f.Name, Size: int64(len(f.Data))}
		if s.deps.Blobs != nil {
			ref, err := s.deps.Blobs.Put(kept, s.turn.Origin.Session, bytes.NewReader(f.Data))
			if err != nil {
				zerolog.Ctx(ctx).Error().Err(err).Str("file", f.Name).Msg("file of a tool could not be stored")
			}
			part.Hash = ref.Hash
		}
		parts = append(parts, part)
	}
	return parts
}

// openContents lets the provider read the contents in the messages of a request, limited to those stored for this session.
func (s *step) openContents(req *llm.Request) {
	withParts := func(m llm.Message) bool { return len(m.Parts)+len(m.Result.Attached()) > 0 }
	if s.deps.Blobs == nil || !slices.ContainsFunc(req.Messages, withParts) {
		return
	}
	req.Open = func(ctx context.Context, hash string) (io.ReadCloser, error) {
		return s.deps.Blobs.Open(ctx, s.turn.Origin.Session, hash)
	}
}
