// Package blob defines how contents that are not text are stored: pictures, sounds, files. A Store keeps the bytes of
// each content once, under their SHA-256, for the conversations that refer to them. Journals, outbox rows and requests
// to models hold references (llm.Part, bot.File), never bytes.
package blob

import (
	"context"
	"errors"
	"io"
)

// The errors of a Store, for use with errors.Is.
var (
	// ErrNotFound: the session has no such content. The error is the same for another session's content, one that was
	// swept and one that never existed.
	ErrNotFound = errors.New("no such file is stored")
	// ErrFull: the content does not fit into the store's limit (retention.max_blob_bytes). Contents stored earlier are
	// not affected.
	ErrFull = errors.New("there is no room for more files")
	// ErrDamaged: the stored bytes are not those that were put.
	ErrDamaged = errors.New("the stored file is damaged")
)

// Ref identifies a content.
type Ref struct {
	Hash string // SHA-256 in lower-case hex
	Size int64  // bytes
}

// Store stores contents. Safe for concurrent use. Reading and writing hold at most one piece (about 100 kB) of a
// content in memory.
type Store interface {
	// Put reads a content to its end and stores it for the session, which must not be "". The content is durable when
	// Put returns; after an error, none of it is stored. A content that another session has put is not stored a second
	// time. An error of the reader is returned wrapped.
	Put(ctx context.Context, session string, content io.Reader) (Ref, error)
	Opener
}

// Opener is the reading half of a Store.
type Opener interface {
	// Open returns a content that was put for the session, or ErrNotFound if it was not put or has been swept. The
	// reader fails if the content is swept or found damaged while it is read, and when ctx ends. It is for one
	// goroutine and must be closed.
	Open(ctx context.Context, session, hash string) (io.ReadCloser, error)
}
