// Package blob says how contents that are not text are kept: pictures, sounds, files. A Store keeps the bytes of each
// content once, under their SHA-256, for the conversations that refer to them. Journals, outbox rows and requests to
// models hold references (llm.Part, bot.File), never bytes.
package blob

import (
	"context"
	"errors"
	"io"
)

// The errors of a Store; errors.Is works on them.
var (
	// ErrNotFound: the session has no such content. Somebody else's, a swept one and one that never was cannot be told
	// apart.
	ErrNotFound = errors.New("no such file is kept")
	// ErrFull: the content does not fit into what the store may hold (retention.max_blob_bytes). What was kept before
	// still is.
	ErrFull = errors.New("there is no room for more files")
	// ErrDamaged: what is stored is not what was put.
	ErrDamaged = errors.New("the stored file is damaged")
)

// Ref names a content.
type Ref struct {
	Hash string // SHA-256 in lower-case hex
	Size int64  // bytes
}

// Store keeps contents. Safe for concurrent use. Neither direction holds more than a piece of some 100 kB of a content
// in memory.
type Store interface {
	// Put reads a content to its end and keeps it for the session, which must not be "". It is durable when Put
	// returns; on an error nothing of it is kept. The content that another session has put is not stored again. An
	// error of the reader is returned wrapped.
	Put(ctx context.Context, session string, content io.Reader) (Ref, error)
	Opener
}

// Opener is the half of a Store that reads.
type Opener interface {
	// Open gives a content that was put for the session: ErrNotFound when it was not, or is no longer kept. The reader
	// ends with an error when the content is swept meanwhile or damaged, and with ctx. It is for one goroutine; close
	// it.
	Open(ctx context.Context, session, hash string) (io.ReadCloser, error)
}
