package undo

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
)

// object returns where a content is.
func (h *home) object(hash string) string { return filepath.Join(h.dir, "objects", hash[:2], hash) }

// has reports whether a content is stored.
func (h *home) has(hash string) bool {
	_, err := os.Stat(h.object(hash))
	return err == nil
}

// sum returns the hash of a content.
func sum(content io.Reader) (string, error) {
	digest := sha256.New()
	if _, err := io.Copy(digest, content); err != nil {
		return "", err
	}
	return hex.EncodeToString(digest.Sum(nil)), nil
}

// put stores a content. It returns its hash and, if it was not stored before, where it is and its size.
func (h *home) put(content io.Reader) (hash, path string, bytes int64, err error) {
	temp := filepath.Join(h.dir, "objects", "."+rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", "", 0, err
	}
	digest := sha256.New()
	bytes, err = io.Copy(io.MultiWriter(f, digest), content)
	if err = errors.Join(err, f.Close()); err != nil {
		return "", "", 0, errors.Join(err, os.Remove(temp))
	}
	hash = hex.EncodeToString(digest.Sum(nil))
	if h.has(hash) {
		return hash, "", 0, os.Remove(temp)
	}
	path = h.object(hash)
	if err = os.MkdirAll(filepath.Dir(path), 0o700); err == nil {
		err = os.Rename(temp, path)
	}
	if err != nil {
		return "", "", 0, errors.Join(err, os.Remove(temp))
	}
	return hash, path, bytes, nil
}

// errDamaged means that a stored content is not what was stored.
var errDamaged = errors.New("the copy is damaged")

// get writes a content to a file, and checks it.
func (h *home) get(hash string, to io.Writer) error {
	f, err := os.Open(h.object(hash))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // opened for reading
	digest := sha256.New()
	if _, err := io.Copy(io.MultiWriter(to, digest), f); err != nil {
		return err
	}
	if hex.EncodeToString(digest.Sum(nil)) != hash {
		return errDamaged
	}
	return nil
}
