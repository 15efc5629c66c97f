package oauth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"sync"
	"syscall"

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

// Files is a Store with one file per server, readable only by the owner. Only one Files may use a directory.
type Files struct {
	dir string
	// serialises changes: the temporary file has a fixed name, so that crashes leave at most one behind
	mu sync.Mutex
}

// NewFiles returns a store in dir. The directory is created when the first token is saved.
func NewFiles(dir string) *Files { return &Files{dir: dir} }

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
	temp := name + ".tmp"
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

// fill writes a new file that is never readable by others, not even for a moment.
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
	for _, name := range []string{server + ".json", server + ".json.tmp"} {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("delete the token of %s: %w", server, err)
		}
	}
	return syncDir(root)
}
