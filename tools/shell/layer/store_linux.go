package layer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
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

// Store keeps layers until a person has decided. It is safe for concurrent use, also by several processes with the same
// directory: what happens to the layers of one workspace happens one after another.
//
//	DIR/WORKSPACE/lock         held while a layer is made, applied or removed
//	DIR/WORKSPACE/KEY/upper    what the command has changed
//	DIR/WORKSPACE/KEY/record   what is known of it; its SHA-256 identifies the layer
//	DIR/WORKSPACE/KEY/applying a person has approved it, and it is being applied
type Store struct {
	// Dir is on the file system of the workspaces, or at least on one that can hold the upper layer of an
	// overlay. No tool may reach it.
	Dir string
	// Limits bound what is kept.
	Limits Limits
	// Step is called before each step of applying a layer, for tests that interrupt it; nil = nobody is.
	Step func()
}

// Names of what is kept of a layer.
const (
	upperName    = "upper"
	workName     = "work"
	besideName   = "beside"
	recordName   = "record"
	applyingName = "applying"
	lockName     = "lock"
)

// Owner says whose a layer is.
type Owner struct {
	Workspace string // canonical path
	Session   string
	Call      string
}

// place returns the directory of the workspace's layers.
func (s *Store) place(workspace string) string {
	return filepath.Join(s.Dir, key(workspace))
}

func (s *Store) of(o Owner) string {
	return filepath.Join(s.place(o.Workspace), key(o.Session+"\x00"+o.Call))
}

func key(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:12])
}

// Place returns the directory with the layers of a workspace, which may not exist.
func (s *Store) Place(workspace string) string { return s.place(workspace) }

// record is what is kept of a layer besides its files.
type record struct {
	Owner

	At      time.Time       `json:"at"`
	Base    Base            `json:"base"`
	Spare   map[string]bool `json:"spare,omitempty"`
	Changes []Change        `json:"changes"`
	Result  json.RawMessage `json:"result"`
}

// Draft is a layer that is being made. The workspace is locked until it is kept or dropped.
type Draft struct {
	Upper, Work, Beside string // for the command
	Base                Base   // of the workspace before the command
	Changes             []Change

	store  *Store
	record record
	dir    string
	unlock func()
}

// Begin makes an empty layer. An earlier one of the same call is removed.
func (s *Store) Begin(ctx context.Context, o Owner, spare map[string]bool) (*Draft, error) {
	unlock, err := s.lock(ctx, o.Workspace)
	if err != nil {
		return nil, err
	}
	d := &Draft{store: s, dir: s.of(o), unlock: unlock, record: record{Owner: o, Spare: spare}}
	d.Upper = filepath.Join(d.dir, upperName)
	d.Work = filepath.Join(d.dir, workName)
	d.Beside = filepath.Join(d.dir, besideName)
	if err := d.begin(ctx); err != nil {
		return nil, errors.Join(err, d.Drop())
	}
	return d, nil
}

func (d *Draft) begin(ctx context.Context) (err error) {
	if err := Remove(d.dir); err != nil {
		return err
	}
	for _, dir := range []string{d.Upper, d.Work, d.Beside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	ws, err := openTree(d.record.Workspace)
	if err != nil {
		return err
	}
	defer ws.close()
	var st unix.Stat_t
	if err := unix.Fstat(int(ws.root.Fd()), &st); err != nil {
		return err
	}
	if d.Base, err = Look(ctx, d.record.Workspace, d.record.Spare, d.store.Limits); err != nil {
		return err
	}
	// The root of an overlay looks like its upper layer.
	return dress(unix.AT_FDCWD, d.Upper, State{
		Kind: Directory, Mode: st.Mode & 0o7777, Time: st.Mtim.Nano(), UID: st.Uid, GID: st.Gid,
	})
}

// Read reads what the command has changed, which must have ended. It returns ErrChanged if something else has changed
// the workspace meanwhile.
func (d *Draft) Read(ctx context.Context) (err error) {
	if err := errors.Join(Remove(d.Work), Remove(d.Beside)); err != nil {
		return err
	}
	if d.Changes, err = Read(ctx, d.Upper, d.record.Workspace, d.store.Limits); err != nil {
		return err
	}
	after, err := Look(ctx, d.record.Workspace, d.record.Spare, d.store.Limits)
	if err == nil && after != d.Base {
		err = ErrChanged
	}
	return err
}

// Keep stores the layer, which is on the disk when it returns, with the result of its command. It returns the digest
// that identifies all of it.
func (d *Draft) Keep(ctx context.Context, at time.Time, result any) (digest string, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Drop())
		}
		d.leave()
	}()
	d.record.At, d.record.Base, d.record.Changes = at, d.Base, d.Changes
	if d.record.Result, err = json.Marshal(result); err != nil {
		return "", err
	}
	raw, err := json.Marshal(d.record)
	if err != nil {
		return "", err
	}
	if err := write(d.dir, recordName, raw); err != nil {
		return "", err
	}
	t, err := openTree(d.dir)
	if err != nil {
		return "", err
	}
	defer t.close()
	return sum(raw), t.sync()
}

// Drop removes the layer.
func (d *Draft) Drop() error {
	if d.unlock == nil {
		return nil
	}
	defer d.leave()
	return Remove(d.dir)
}

func (d *Draft) leave() {
	if d.unlock != nil {
		d.unlock()
		d.unlock = nil
	}
}

func sum(raw []byte) string {
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:])
}

// load reads the record of a layer, and checks its digest; "" = it is not checked.
func load(dir, digest string) (*record, error) {
	raw, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrDamaged
	}
	if err != nil {
		return nil, err
	}
	r := &record{}
	if err := json.Unmarshal(raw, r); err != nil || digest != "" && sum(raw) != digest {
		return nil, ErrDamaged
	}
	return r, nil
}

// whole returns ErrDamaged unless the files of a layer are those of its record.
func (r *record) whole(ctx context.Context, dir string) error {
	t, err := openTree(filepath.Join(dir, upperName))
	if err != nil {
		return ErrDamaged
	}
	defer t.close()
	budget := int64(1) << 62
	for _, c := range r.Changes {
		if c.After.Kind == Absent {
			continue
		}
		st, ok, err := t.stat(c.Path)
		if err != nil {
			return err
		}
		if !ok {
			return ErrDamaged
		}
		if now, err := t.read(ctx, c.Path, &st, &budget); err != nil || now != c.After {
			return errors.Join(ErrDamaged, err)
		}
	}
	return nil
}

// Changes returns what applying the layer with this digest changes; ErrDamaged if it is missing or another one.
func (s *Store) Changes(o Owner, digest string) ([]Change, error) {
	r, err := load(s.of(o), digest)
	if err != nil {
		return nil, err
	}
	return r.Changes, nil
}

// Holds returns nil if the layer can be applied now: ErrDamaged if it is missing or not the one with this digest,
// ErrChanged if the workspace is not what it was made on.
func (s *Store) Holds(ctx context.Context, o Owner, digest string) error {
	unlock, err := s.lock(ctx, o.Workspace)
	if err != nil {
		return err
	}
	defer unlock()
	_, err = s.holds(ctx, o, digest)
	return err
}

func (s *Store) holds(ctx context.Context, o Owner, digest string) (*record, error) {
	dir := s.of(o)
	r, err := load(dir, digest)
	if err != nil {
		return nil, err
	}
	if r.Owner != o {
		return nil, ErrDamaged
	}
	if err := r.whole(ctx, dir); err != nil {
		return nil, err
	}
	if err := checkUnchanged(ctx, o.Workspace, r.Changes); err != nil {
		return nil, err
	}
	now, err := Look(ctx, o.Workspace, r.Spare, s.Limits)
	if err == nil && now != r.Base {
		err = ErrChanged
	}
	return r, err
}

// Take applies the layer with this digest, decodes the result of its command into result, and removes it. The
// errors are those of Holds, and then nothing has changed, or ErrPartly. A process that is killed while it applies
// the layer leaves the rest to Finish.
func (s *Store) Take(ctx context.Context, o Owner, digest string, result any) error {
	unlock, err := s.lock(ctx, o.Workspace)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := s.holds(ctx, o, digest)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(r.Result, result); err != nil {
		return errors.Join(ErrDamaged, err)
	}
	dir := s.of(o)
	if err := write(dir, applyingName, []byte(digest)); err != nil {
		return errors.Join(err, Remove(dir)) // nothing is applied, also not by who starts next
	}
	if err := s.complete(dir, r, digest); err != nil {
		return errors.Join(ErrPartly, err, Remove(dir)) // a later attempt could meet what people have changed since
	}
	return nil
}

// complete applies a layer from the beginning or from where it was interrupted, and removes it.
func (s *Store) complete(dir string, r *record, digest string) error {
	if err := apply(filepath.Join(dir, upperName), r.Workspace, digest[:12], r.Changes, s.Step); err != nil {
		return err
	}
	if s.Step != nil {
		s.Step()
	}
	if err := os.Remove(filepath.Join(dir, applyingName)); err != nil {
		return err
	}
	return Remove(dir)
}

// Discard removes a layer, if there is one.
func (s *Store) Discard(ctx context.Context, o Owner) error {
	if _, err := os.Lstat(s.of(o)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := s.lock(ctx, o.Workspace)
	if err != nil {
		return err
	}
	defer unlock()
	return Remove(s.of(o))
}

// Forget removes all layers of a workspace. It returns whether there were any.
func (s *Store) Forget(ctx context.Context, workspace string) (bool, error) {
	if _, err := os.Lstat(s.place(workspace)); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	unlock, err := s.lock(ctx, workspace)
	if err != nil {
		return false, err
	}
	defer unlock()
	return true, Remove(s.place(workspace))
}

// Keeper reports whether a layer stays that was kept at a time.
type Keeper func(o Owner, digest string, at time.Time) (bool, error)

// Finish completes what was being applied when its process was killed, unless something else has changed the same files
// since, and removes the layers for which keep is false,
// and what is left of those that were being made. It is called at the start, and again from time to time.
func (s *Store) Finish(ctx context.Context, keep Keeper) error {
	places, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list layers: %w", err)
	}
	var errs []error
	for _, p := range places {
		if p.IsDir() && !tried(p) {
			errs = append(errs, s.finish(ctx, filepath.Join(s.Dir, p.Name()), keep))
		}
	}
	return errors.Join(errs...)
}

// Complete completes what was being applied in a workspace when its process was killed; it is for the process that
// takes over the work of that process, before anything else works in the workspace. Other layers stay.
func (s *Store) Complete(ctx context.Context, workspace string) error {
	place := s.place(workspace)
	if _, err := os.Lstat(place); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.finish(ctx, place, func(Owner, string, time.Time) (bool, error) { return true, nil })
}

// ProbePrefix begins the name of a directory in which somebody finds out whether layers work here.
const ProbePrefix = "probe-"

// tried reports whether a directory is one of those and so young that this may be going on.
func tried(e fs.DirEntry) bool {
	info, err := e.Info()
	return strings.HasPrefix(e.Name(), ProbePrefix) && (err != nil || time.Since(info.ModTime()) < time.Hour)
}

func (s *Store) finish(ctx context.Context, place string, keep Keeper) error {
	unlock, err := lockAt(ctx, place)
	if err != nil {
		return err
	}
	defer unlock()
	entries, err := os.ReadDir(place)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if e.IsDir() {
			errs = append(errs, s.finishOne(ctx, filepath.Join(place, e.Name()), keep))
		}
	}
	if left, err := os.ReadDir(place); err == nil && len(left) == 1 { // the lock
		errs = append(errs, Remove(place))
	}
	return errors.Join(errs...)
}

func (s *Store) finishOne(ctx context.Context, dir string, keep Keeper) error {
	if digest, err := os.ReadFile(filepath.Join(dir, applyingName)); err == nil {
		r, err := load(dir, string(digest))
		if err == nil {
			err = halfDone(ctx, r.Workspace, r.Changes)
		}
		if err == nil {
			return s.complete(dir, r, string(digest))
		}
		if ctx.Err() != nil {
			return err
		}
		return errors.Join(err, Remove(dir))
	}
	raw, err := os.ReadFile(filepath.Join(dir, recordName))
	var r record
	if err != nil || json.Unmarshal(raw, &r) != nil {
		return Remove(dir)
	}
	stays, err := keep(r.Owner, sum(raw), r.At)
	if err != nil || stays {
		return err
	}
	return Remove(dir)
}

// write stores a file that is on the disk when write returns.
func write(dir, name string, content []byte) error {
	temp := filepath.Join(dir, name+".new")
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp, filepath.Join(dir, name)); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// lockPause is the time between two attempts to get a lock.
const lockPause = 10 * time.Millisecond

func (s *Store) lock(ctx context.Context, workspace string) (unlock func(), err error) {
	return lockAt(ctx, s.place(workspace))
}

// lockAt waits for the lock of a workspace.
func lockAt(ctx context.Context, place string) (unlock func(), err error) {
	for {
		f, err := tryLock(place)
		if err == nil {
			return func() {
				_ = unix.Flock(int(f.Fd()), unix.LOCK_UN) // a command that is being started may have a copy
				_ = f.Close()                             // nothing was written to it
			}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("lock the layers of a workspace: %w", err)
		}
		timer := time.NewTimer(lockPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("lock the layers of a workspace: %w", context.Cause(ctx))
		case <-timer.C:
		}
	}
}

func tryLock(place string) (*os.File, error) {
	if err := os.MkdirAll(place, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(place, lockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	held, err := f.Stat()
	there, err2 := os.Stat(path)
	if err = errors.Join(err, err2); err == nil && !os.SameFile(held, there) {
		err = unix.EWOULDBLOCK // it was removed meanwhile
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Remove removes a tree, also if directories in it are closed: those of overlayfs are, and a command may have closed
// others.
func Remove(dir string) error {
	err := os.RemoveAll(dir)
	if err == nil {
		return nil
	}
	root, err := os.OpenRoot(filepath.Dir(dir))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // opened for reading
	unlockAll(root, filepath.Base(dir))
	return root.RemoveAll(filepath.Base(dir))
}

// unlockAll opens the directories of a tree for us. What fails here fails again when they are removed.
func unlockAll(root *os.Root, dir string) {
	info, err := root.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	_ = root.Chmod(dir, 0o700)
	f, err := root.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	_ = f.Close() // read only
	for _, e := range entries {
		if e.IsDir() {
			unlockAll(root, filepath.Join(dir, e.Name()))
		}
	}
}
