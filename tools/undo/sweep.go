package undo

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sweep removes what is older than is kept, and the oldest turns of what is too much.
func (s *Store) Sweep(ctx context.Context) error {
	entries, err := os.ReadDir(s.o.Dir)
	if err != nil {
		return ignoreMissing(err)
	}
	var errs []error
	sizes := map[string]int64{}
	var total int64
	for _, e := range entries {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		bytes, err := s.sweepOne(ctx, e.Name(), s.o.Limits.Workspace)
		errs = append(errs, err)
		sizes[e.Name()], total = bytes, total+bytes
	}
	// The largest give way first: those who use little keep it.
	for total > s.o.Limits.Total && len(sizes) > 0 && ctx.Err() == nil {
		largest := ""
		for name, bytes := range sizes {
			if largest == "" || bytes > sizes[largest] {
				largest = name
			}
		}
		bytes, err := s.sweepOne(ctx, largest, sizes[largest]/2)
		errs = append(errs, err)
		total -= sizes[largest] - bytes
		if sizes[largest] = bytes; bytes > 0 && err == nil {
			sizes[largest] = bytes
		} else {
			delete(sizes, largest)
		}
	}
	return errors.Join(errs...)
}

// sweepOne removes the old copies of a workspace, unless somebody works with them at the moment.
func (s *Store) sweepOne(ctx context.Context, name string, most int64) (bytes int64, err error) {
	home := &home{name: name, dir: filepath.Join(s.o.Dir, name)}
	if err := home.acquire(); err != nil {
		if errors.Is(err, errHeld) {
			return 0, nil
		}
		return 0, err
	}
	defer home.leave()
	if bytes, err = s.prune(ctx, home, most); err != nil || bytes > 0 {
		return bytes, err
	}
	left, err := os.ReadDir(filepath.Join(home.dir, "turns"))
	if err == nil && len(left) == 0 {
		err = os.RemoveAll(home.dir)
	}
	return 0, err
}

// prune removes old turns, the oldest ones if there are too many or they take more than most bytes, and contents that
// nothing refers to. It returns how many bytes are left.
func (s *Store) prune(ctx context.Context, home *home, most int64) (int64, error) {
	used, err := s.running(ctx, home)
	if err != nil {
		return 0, err
	}
	turns, err := s.turns(home)
	if err != nil {
		return 0, err
	}
	sizes, err := home.sizes()
	if err != nil {
		return 0, err
	}
	var bytes int64
	for hash := range used {
		bytes += sizes[hash]
	}
	for i, t := range turns { // the newest first
		var more int64
		for hash := range t.hashes {
			if !used[hash] {
				more += sizes[hash]
			}
		}
		if i >= s.o.Limits.Turns || bytes+more > most || t.file.old(s.o.Now(), s.o.Limits.Age) {
			if err := home.remove(t.name); err != nil {
				return 0, err
			}
			most = 0 // those before are older
			continue
		}
		bytes += more
		for hash := range t.hashes {
			used[hash] = true
		}
	}
	return bytes, home.discard(used, sizes)
}

// running returns the contents that calls under way refer to, and closes those whose turn has long ended.
func (s *Store) running(ctx context.Context, home *home) (map[string]bool, error) {
	used := map[string]bool{}
	opens, err := home.opens()
	if err != nil {
		return nil, err
	}
	for i := range opens {
		if s.o.Now().Sub(opens[i].At) > s.o.Limits.Age {
			if err := s.close(ctx, home, &opens[i], true); err != nil {
				return nil, err
			}
			continue
		}
		for _, st := range opens[i].Before {
			used[st.Hash] = true
		}
	}
	return used, nil
}

// keptTurn is a turn and the contents that it refers to.
type keptTurn struct {
	name   string
	file   turnFile
	hashes map[string]bool
}

// turns reads the turns of a workspace, the newest first. A damaged one is removed, and so is what a process that died
// has not finished writing.
func (s *Store) turns(home *home) ([]keptTurn, error) {
	entries, err := os.ReadDir(filepath.Join(home.dir, "turns"))
	if err != nil {
		return nil, err
	}
	var list []keptTurn
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), openSuffix) {
			continue
		}
		t := keptTurn{name: e.Name(), hashes: map[string]bool{}}
		if err := home.read(e.Name(), &t.file); err != nil || strings.HasPrefix(e.Name(), ".") {
			if err := home.remove(e.Name()); err != nil {
				return nil, err
			}
			continue
		}
		for _, c := range t.file.Calls {
			for _, ch := range c.Changed {
				t.hashes[ch.Before.Hash] = true
			}
		}
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b keptTurn) int {
		return cmp.Or(b.file.At.Compare(a.file.At), strings.Compare(a.name, b.name))
	})
	return list, nil
}

// sizes returns the stored contents and how many bytes they have.
func (h *home) sizes() (map[string]int64, error) {
	sizes := map[string]int64{}
	err := filepath.WalkDir(filepath.Join(h.dir, "objects"), func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sizes[e.Name()] = info.Size()
		}
		return ignoreMissing(err)
	})
	return sizes, err
}

// discard removes the contents that are not used.
func (h *home) discard(used map[string]bool, sizes map[string]int64) error {
	var errs []error
	for hash := range sizes {
		switch {
		case strings.HasPrefix(hash, "."): // a process died while it wrote it
			errs = append(errs, ignoreMissing(os.Remove(filepath.Join(h.dir, "objects", hash))))
		case !used[hash]:
			errs = append(errs, ignoreMissing(os.Remove(h.object(hash))))
		}
	}
	return errors.Join(errs...)
}

// Forget removes everything that is kept for a workspace, and reports whether there was something.
func (s *Store) Forget(ctx context.Context, workspace string) (bool, error) {
	if _, err := os.Lstat(filepath.Join(s.o.Dir, workspace)); err != nil {
		return false, ignoreMissing(err)
	}
	home, err := s.enter(ctx, workspace)
	if err != nil {
		return false, err
	}
	defer home.leave()
	return true, os.RemoveAll(home.dir)
}
