package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Names below the directory of a part.
const (
	stageName    = ".restore"  // what is being restored and has replaced nothing yet
	replacedName = "replaced-" // begins the directory with what was there before; the time follows
)

// Own reports whether a name at the top of a part's directory belongs to this package, and so to no backup.
func Own(name string) bool {
	return name == stageName || name == planName || strings.HasPrefix(name, replacedName)
}

// Place is where a part is restored to.
type Place struct {
	Part Part
	Dir  string   // absolute
	Old  []string // names in Dir that are moved aside, whether or not the archive has the like
}

// Staged is a backup that was read completely and checked, and has not replaced anything yet.
type Staged struct {
	Manifest
	places []Place
	home   string
	at     time.Time
}

// Options of Stage.
type Options struct {
	Home   string  // of the service; locked by the caller. The plan of the exchange is stored there
	Places []Place // of all parts
	At     time.Time
	// Check may refuse a backup by its header, before anything is written.
	Check func(Header) error
}

// Stage reads a backup into directories next to what it will replace. If anything is wrong with it, they are removed
// again, and the error is the one of Read.
func Stage(ctx context.Context, in io.Reader, o Options) (*Staged, error) {
	s := &Staged{places: o.Places, home: o.Home, at: o.At}
	s.Discard() // what an earlier one left that was killed
	x := &extraction{staged: s, check: o.Check, roots: map[Part]*os.Root{}, owners: map[Part]*owner{}}
	manifest, err := readArchive(ctx, in, x)
	s.Manifest = manifest
	if err = errors.Join(err, x.endExtraction(err == nil)); err != nil {
		s.Discard()
		return nil, err
	}
	return s, nil
}

func (s *Staged) placeOf(part Part) Place {
	i := slices.IndexFunc(s.places, func(p Place) bool { return p.Part == part })
	if i < 0 {
		return Place{Part: part}
	}
	return s.places[i]
}

// Path returns where a staged file is.
func (s *Staged) Path(part Part, name string) string {
	return filepath.Join(s.placeOf(part).Dir, stageName, string(part), name)
}

// Put adds a file to a part of the backup.
func (s *Staged) Put(part Part, name string, content []byte) error {
	dir := filepath.Dir(s.Path(part, name))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := writeSynced(s.Path(part, name), content); err != nil {
		return err
	}
	return ownerOf(s.placeOf(part).Dir).giveFile(s.Path(part, name))
}

// Discard removes what was staged, unless its Commit has begun. What cannot be removed stays in a directory that nobody
// reads, until the next try.
func (s *Staged) Discard() {
	if _, err := os.Lstat(filepath.Join(s.home, planName)); !errors.Is(err, fs.ErrNotExist) {
		return
	}
	for _, p := range s.places {
		_ = removeAll(filepath.Join(p.Dir, stageName))
	}
}

// Occupied lists the files and directories that Commit would move aside.
func (s *Staged) Occupied() ([]string, error) {
	moves, err := s.listMoves()
	var list []string
	for _, m := range moves {
		if !m.New {
			list = append(list, m.From)
		}
	}
	return list, err
}

// Replaced returns the name of the directories with what was there before, one in the directory of each part.
func (s *Staged) Replaced() string { return replacedName + s.at.UTC().Format("20060102T150405Z") }

// listMoves returns the renames that put the backup in place: first what is there is moved aside, then
// what is staged takes its place.
func (s *Staged) listMoves() ([]move, error) {
	var aside, in []move
	for _, p := range s.places {
		if !s.Has(p.Part) {
			continue
		}
		stage := s.Path(p.Part, "")
		entries, err := os.ReadDir(stage)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		old := slices.Clone(p.Old)
		for _, e := range entries {
			old = append(old, e.Name())
			in = append(in, move{From: filepath.Join(stage, e.Name()), To: filepath.Join(p.Dir, e.Name()), New: true})
		}
		slices.Sort(old)
		for _, name := range slices.Compact(old) {
			from := filepath.Join(p.Dir, name)
			if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) || Own(name) {
				continue
			}
			m := move{From: from, To: filepath.Join(p.Dir, s.Replaced(), name)}
			if !slices.Contains(aside, m) {
				aside = append(aside, m)
			}
		}
	}
	list := append(aside, in...)
	for i, m := range list {
		if info, err := os.Lstat(m.From); err == nil && info.IsDir() {
			list[i].Mode = info.Mode()
		}
	}
	return list, nil
}

// extraction writes the entries of an archive into the stage. It opens them relative to a handle of their directory, so
// no name and no link of an archive leads out of it.
type extraction struct {
	staged *Staged
	check  func(Header) error
	roots  map[Part]*os.Root
	owners map[Part]*owner // nil = this process
	dirs   []dirMeta
}

type dirMeta struct {
	name string
	meta metaEntry
}

// Begin implements Visitor.
func (x *extraction) Begin(h Header) error {
	if x.check != nil {
		if err := x.check(h); err != nil {
			return err
		}
	}
	for _, part := range h.Parts {
		dir := x.staged.placeOf(part).Dir
		if dir == "" {
			return damagedError("it has a part %.80q, which is not known", string(part))
		}
		x.owners[part] = ownerOf(dir)
		stage := filepath.Join(dir, stageName, string(part))
		if err := os.MkdirAll(stage, 0o700); err != nil {
			return fmt.Errorf("prepare %s: %w", stage, err)
		}
		if err := x.owners[part].giveFile(dir); err != nil { // it may be new
			return fmt.Errorf("prepare %s: %w", dir, err)
		}
		root, err := os.OpenRoot(stage)
		if err != nil {
			return fmt.Errorf("prepare %s: %w", stage, err)
		}
		x.roots[part] = root
	}
	return nil
}

// rootOf returns the handle of an entry's part, and the entry's name below it.
func (x *extraction) rootOf(name string) (*os.Root, string) {
	_, rest, _ := strings.Cut(name, "/")
	return x.roots[partOf(name)], filepath.FromSlash(rest)
}

// Dir implements Visitor.
func (x *extraction) Dir(name string, meta metaEntry) error {
	root, rest := x.rootOf(name)
	if err := root.MkdirAll(rest, 0o700); err != nil {
		return damagedError("%.80q: %w", name, err)
	}
	x.dirs = append(x.dirs, dirMeta{name, meta}) // with its own mode nothing might be written into it
	return nil
}

// File implements Visitor.
func (x *extraction) File(name string, meta metaEntry, content io.Reader) error {
	root, rest := x.rootOf(name)
	if err := makeParents(root, rest); err != nil {
		return damagedError("%.80q: %w", name, err)
	}
	f, err := root.OpenFile(rest, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("write %.80q: %w", name, err)
	}
	_, err = io.Copy(f, content)
	if err == nil {
		err = errors.Join(f.Chmod(meta.Mode), f.Sync())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write %.80q: %w", name, err)
	}
	if err := x.giveEntry(name); err != nil {
		return fmt.Errorf("write %.80q: %w", name, err)
	}
	return root.Chtimes(rest, meta.Time, meta.Time)
}

// giveEntry gives an entry to the account of the service, if root restores.
func (x *extraction) giveEntry(name string) error {
	root, rest := x.rootOf(name)
	if o := x.owners[partOf(name)]; o != nil {
		return root.Lchown(rest, o.uid, o.gid)
	}
	return nil
}

// giveFile gives a file to the account; nil gives nothing.
func (o *owner) giveFile(path string) error {
	if o == nil {
		return nil
	}
	return os.Lchown(path, o.uid, o.gid)
}

func makeParents(root *os.Root, name string) error {
	if dir := filepath.Dir(name); dir != "." {
		return root.MkdirAll(dir, 0o700)
	}
	return nil
}

// Link implements Visitor. What it leads to is never opened here.
func (x *extraction) Link(name, target string) error {
	root, rest := x.rootOf(name)
	if err := makeParents(root, rest); err != nil {
		return damagedError("%.80q: %w", name, err)
	}
	err := root.Symlink(target, rest)
	if err == nil {
		err = x.giveEntry(name)
	}
	if err != nil {
		return fmt.Errorf("write %.80q: %w", name, err)
	}
	return nil
}

// endExtraction gives the directories their modes and times, the innermost first, flushes them if all
// is well, and closes the handles.
func (x *extraction) endExtraction(well bool) error {
	var errs []error
	if well {
		for _, d := range slices.Backward(x.dirs) {
			root, rest := x.rootOf(d.name)
			if dir, err := root.Open(rest); err == nil {
				errs = append(errs, dir.Sync(), dir.Close())
			}
			errs = append(
				errs, x.giveEntry(d.name), root.Chmod(rest, d.meta.Mode), root.Chtimes(rest, d.meta.Time, d.meta.Time),
			)
		}
	}
	for _, root := range x.roots {
		if well {
			errs = append(errs, syncDir(root.Name()))
		}
		errs = append(errs, root.Close())
	}
	return errors.Join(errs...)
}
