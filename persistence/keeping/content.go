package keeping

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/zephbot/zephbot/agent/blob"
)

// pieceSize is how much of a content is in memory at a time and in one row, in bytes.
const pieceSize = 128 << 10

// storePieces reads a content piece by piece and passes each piece to store with its index. The last piece, which may
// be empty, is passed with the hash of the whole content, the others with "". A piece must not be used after store
// returns. An error of the reader is returned unchanged.
func storePieces(content io.Reader, store func(n int64, piece []byte, whole string) error) (blob.Ref, error) {
	sum, ref := sha256.New(), blob.Ref{}
	piece := make([]byte, pieceSize)
	for n := int64(0); ; n++ {
		read, err := io.ReadFull(content, piece)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return blob.Ref{}, err
		}
		sum.Write(piece[:read])
		if ref.Size += int64(read); last {
			ref.Hash = hex.EncodeToString(sum.Sum(nil))
		}
		if err := store(n, piece[:read], ref.Hash); err != nil {
			return blob.Ref{}, err
		}
		if last {
			return ref, nil
		}
	}
}

// Upload is a content being stored. For one goroutine.
type Upload interface {
	// Add stores a piece, as Take passes it. The last one completes the content for the session.
	Add(ctx context.Context, n int64, piece []byte, whole string) error
	// Abandon removes an incomplete upload. What it cannot remove is swept.
	Abandon(ctx context.Context) error
}

// abandonTimeout limits the removal of what was stored before a Put failed. The rest is swept.
const abandonTimeout = 5 * time.Second

// Put stores a content for a session (blob.Store). It gives up when ctx ends; what was stored is removed even then.
func Put(ctx context.Context, session string, content io.Reader, u Upload) (blob.Ref, error) {
	if session == "" {
		return blob.Ref{}, errors.New("store file: no session")
	}
	ref, err := storePieces(content, func(n int64, piece []byte, whole string) error {
		return u.Add(ctx, n, piece, whole)
	})
	if err == nil {
		return ref, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonTimeout)
	defer cancel()
	return blob.Ref{}, fmt.Errorf("store file: %w", errors.Join(err, u.Abandon(ctx)))
}

// Give returns a reader of what Take has stored. piece returns each piece by its index; found is false if the content
// was swept. For one goroutine.
func Give(ref blob.Ref, piece func(n int64) (data []byte, found bool, err error)) io.ReadCloser {
	return &content{ref: ref, left: ref.Size, sum: sha256.New(), load: piece}
}

type content struct {
	ref   blob.Ref
	left  int64 // bytes not yet read from the database
	next  int64
	piece []byte
	sum   hash.Hash
	load  func(n int64) ([]byte, bool, error)
}

// Read implements io.Reader.
func (c *content) Read(b []byte) (int, error) {
	if len(c.piece) == 0 {
		if err := c.readPiece(); err != nil {
			return 0, err
		}
	}
	n := copy(b, c.piece)
	c.piece = c.piece[n:]
	return n, nil
}

// readPiece reads the next piece. It returns io.EOF after the last one if the content is what was stored.
func (c *content) readPiece() error {
	if c.left <= 0 {
		if c.left < 0 || hex.EncodeToString(c.sum.Sum(nil)) != c.ref.Hash {
			return fmt.Errorf("read file %s: %w", c.ref.Hash, blob.ErrDamaged)
		}
		return io.EOF
	}
	data, found, err := c.load(c.next)
	switch {
	case err != nil:
		return err
	case !found:
		return fmt.Errorf("read file %s: %w", c.ref.Hash, blob.ErrNotFound)
	}
	c.sum.Write(data)
	c.piece = data
	c.left -= int64(len(data))
	c.next++
	return nil
}

// Close implements io.Closer. No resource is held between two pieces.
func (c *content) Close() error {
	c.piece = nil
	return nil
}
