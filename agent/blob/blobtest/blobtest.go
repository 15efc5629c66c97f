// Package blobtest provides an in-memory blob.Store for tests.
package blobtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/zephbot/zephbot/agent/blob"
)

// Store is an in-memory blob.Store. The zero value is empty. Safe for concurrent use.
type Store struct {
	Limit int64 // bytes of all contents together; 0 = no limit

	mu    sync.Mutex
	data  map[string][]byte          // by hash
	owner map[string]map[string]bool // hash → session
}

var _ blob.Store = (*Store)(nil)

// Put implements blob.Store.
func (s *Store) Put(ctx context.Context, session string, content io.Reader) (blob.Ref, error) {
	if session == "" {
		return blob.Ref{}, errors.New("store file: no session")
	}
	data, err := io.ReadAll(content)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return blob.Ref{}, fmt.Errorf("store file: %w", err)
	}
	sum := sha256.Sum256(data)
	ref := blob.Ref{Hash: hex.EncodeToString(sum[:]), Size: int64(len(data))}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, known := s.data[ref.Hash]; !known {
		if s.Limit > 0 && s.total()+ref.Size > s.Limit {
			return blob.Ref{}, fmt.Errorf("store file: %w", blob.ErrFull)
		}
		if s.data == nil {
			s.data, s.owner = map[string][]byte{}, map[string]map[string]bool{}
		}
		s.data[ref.Hash], s.owner[ref.Hash] = data, map[string]bool{}
	}
	s.owner[ref.Hash][session] = true
	return ref, nil
}

// total counts the bytes. s.mu must be held.
func (s *Store) total() (n int64) {
	for _, data := range s.data {
		n += int64(len(data))
	}
	return n
}

// Open implements blob.Store.
func (s *Store) Open(ctx context.Context, session, hash string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("open file: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.owner[hash][session] {
		return nil, fmt.Errorf("open file: %w", blob.ErrNotFound)
	}
	return io.NopCloser(bytes.NewReader(s.data[hash])), nil
}

// Forget drops every content, as a sweep does.
func (s *Store) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data, s.owner = nil, nil
}
