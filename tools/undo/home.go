package undo

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Suffixes of the files of a turn.
const (
	openSuffix = ".open"
	turnSuffix = ".json"
)

// lockPause is the time between two attempts to get the lock of a workspace.
const lockPause = 10 * time.Millisecond

// home is the directory of a workspace, with its lock held.
type home struct {
	name, dir string
	lock      *os.File
}

// errHeld means that somebody else holds a lock.
var errHeld = errors.New("the lock is held")

// enter creates the directory of a workspace if it does not exist, and waits for its lock.
func (s *Store) enter(ctx context.Context, workspace string) (*home, error) {
	h := &home{name: workspace, dir: filepath.Join(s.o.Dir, workspace)}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.Limits.Wait, errHeld)
	defer cancel()
	for {
		err := h.acquire()
		if err == nil {
			return h, nil
		}
		if !errors.Is(err, errHeld) {
			return nil, fmt.Errorf("lock the copies of a workspace: %w", err)
		}
		timer := time.NewTimer(lockPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("lock the copies of a workspace: %w", context.Cause(ctx))
		case <-timer.C:
		}
	}
}

// acquire locks the directory. A lock file that was removed in the meantime does not count.
func (h *home) acquire() error {
	for _, sub := range []string{"objects", "turns"} {
		if err := os.MkdirAll(filepath.Join(h.dir, sub), 0o700); err != nil {
			return err
		}
	}
	path := filepath.Join(h.dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return errHeld // the directory is being removed
	}
	if err != nil {
		return err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EINTR) {
		err = errHeld
	}
	if err == nil {
		var held, there os.FileInfo
		if held, err = f.Stat(); err == nil {
			if there, err = os.Stat(path); err != nil || !os.SameFile(held, there) {
				err = errHeld
			}
		}
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	h.lock = f
	return nil
}

// leave gives the lock back. Closing alone would not: a command that is being started has a copy of the descriptor
// until its program runs, and the lock belongs to all copies.
func (h *home) leave() {
	_ = unix.Flock(int(h.lock.Fd()), unix.LOCK_UN)
	_ = h.lock.Close() // nothing was written to it
}

func (h *home) turn(name string) string { return filepath.Join(h.dir, "turns", name) }

// read decodes a file of a turn; fs.ErrNotExist if there is none, or it is damaged.
func (h *home) read(name string, into any) error {
	raw, err := os.ReadFile(h.turn(name))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%w: %s is damaged: %w", fs.ErrNotExist, name, err)
	}
	return nil
}

// write replaces a file of a turn; it is on the disk when write returns.
func (h *home) write(name string, value any) error {
	raw, err := json.Marshal(value)
	if err != nil {
		return err
	}
	temp := h.turn("." + rand.Text())
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(temp, h.turn(name))
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(temp)))
	}
	return nil
}

func (h *home) remove(name string) error { return ignoreMissing(os.Remove(h.turn(name))) }

// opens reads what calls have left open. A damaged file is dropped: nothing can be put back from it.
func (h *home) opens() ([]opened, error) {
	entries, err := os.ReadDir(filepath.Join(h.dir, "turns"))
	if err != nil {
		return nil, err
	}
	var list []opened
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), openSuffix) {
			continue
		}
		var open opened
		if err := h.read(e.Name(), &open); err != nil || open.name() != e.Name() {
			if err := h.remove(e.Name()); err != nil {
				return nil, err
			}
			continue
		}
		list = append(list, open)
	}
	return list, nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
