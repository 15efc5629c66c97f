package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zephbot/zephbot/tools/mcp/guard"
)

// Store keeps tokens by the id of their server. Implementations are safe for concurrent use and never print what they
// keep.
type Store interface {
	// Load returns a token, nil when there is none, or ErrDamaged when it cannot be read.
	Load(ctx context.Context, server string) (*Token, error)
	// Save replaces the token of t.Server. When it returns nil, the token survives a crash as far as the store can
	// guarantee it.
	Save(ctx context.Context, t Token) error
	// Delete removes a token. It is not an error if there is none.
	Delete(ctx context.Context, server string) error
}

// Memory is a Store that is lost when the process ends. The zero value is ready to use.
type Memory struct {
	mu     sync.Mutex
	tokens map[string]Token
}

// Load implements Store.
func (m *Memory) Load(_ context.Context, server string) (*Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.tokens[server]; ok {
		return &t, nil
	}
	return nil, nil
}

// Save implements Store.
func (m *Memory) Save(_ context.Context, t Token) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.tokens == nil {
		m.tokens = map[string]Token{}
	}
	m.tokens[t.Server] = t
	return nil
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, server string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.tokens, server)
	return nil
}

// maxFile limits a stored token, in bytes.
const maxFile = 256 << 10

const (
	// tempEnd ends the names of temporary files.
	tempEnd = ".tmp"
	// staleTemp is when a temporary file is one of a process that died over it.
	staleTemp = time.Hour
)

// Files is a Store with one file for each server, readable for the owner alone. Several processes may work in a
// directory.
type Files struct {
	dir string
	id  string     // of the temporary files: another process writes others
	mu  sync.Mutex // one change at a time
}

// NewFiles makes a store in dir, which is made when the first token is saved.
func NewFiles(dir string) *Files { return &Files{dir: dir, id: rand.Text()[:8]} }

// Load implements Store.
func (f *Files) Load(_ context.Context, server string) (*Token, error) {
	if err := guard.ServerID(server); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	data, err := f.read(server + ".json")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the token of %s: %w", server, err)
	}
	t, err := Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read the token of %s: %w", server, err)
	}
	return &t, nil
}

func (f *Files) read(name string) ([]byte, error) {
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %s is no regular file", ErrDamaged, name)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%w: others may read or change %s; delete it and sign in again", ErrDamaged, name)
	}
	file, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written through it
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = ErrDamaged
	}
	return data, err
}

// Save implements Store: the old token stays until the new one is complete on the disk.
func (f *Files) Save(_ context.Context, t Token) error {
	if err := guard.ServerID(t.Server); err != nil {
		return err
	}
	data, err := t.Encode()
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.write(t.Server+".json", data); err != nil {
		return fmt.Errorf("store the token of %s: %w", t.Server, err)
	}
	return nil
}

func (f *Files) write(name string, data []byte) (err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	if info, err := os.Stat(f.dir); err != nil {
		return err
	} else if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(f.dir, 0o700); err != nil { // the directory existed before
			return err
		}
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	f.clean(root, func(temp string, at time.Time) bool { return temp == name+tempEnd || time.Since(at) > staleTemp })
	temp := name + "." + f.id + tempEnd
	if err := root.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	defer func() {
		if err != nil {
			_ = root.Remove(temp) // it may not be there
		}
	}()
	if err := fill(root, temp, data); err != nil {
		return err
	}
	if err := root.Rename(temp, name); err != nil {
		return err
	}
	return syncDir(root)
}

// clean removes temporary files that nobody needs. It is best effort: the next one tries again.
func (f *Files) clean(root *os.Root, over func(temp string, at time.Time) bool) {
	dir, err := root.Open(".")
	if err != nil {
		return
	}
	defer func() { _ = dir.Close() }() // nothing was written through it
	entries, _ := dir.ReadDir(-1)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), tempEnd) {
			continue
		}
		if info, err := e.Info(); err == nil && over(e.Name(), info.ModTime()) {
			_ = root.Remove(e.Name())
		}
	}
}

// fill writes a new file that others cannot read, not even for a moment.
func fill(root *os.Root, name string, data []byte) error {
	file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDir makes new names survive a crash, if the file system supports it.
func syncDir(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nothing was written through it
	if err := dir.Sync(); err != nil && !errors.Is(err, syscall.EINVAL) && runtime.GOOS != "windows" {
		return fmt.Errorf("sync directory: %w", err)
	}
	return nil
}

// Delete implements Store.
func (f *Files) Delete(_ context.Context, server string) error {
	if err := guard.ServerID(server); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	root, err := os.OpenRoot(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete the token of %s: %w", server, err)
	}
	defer func() { _ = root.Close() }() // nothing was written through it
	f.clean(root, func(temp string, _ time.Time) bool { return strings.HasPrefix(temp, server+".json.") })
	if err := root.Remove(server + ".json"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete the token of %s: %w", server, err)
	}
	return syncDir(root)
}
