package shell

import (
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/policy"
	"github.com/zephbot/zephbot/policy/command"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// Limits of the search of the disk before a command runs.
const (
	maxLooked  = 256             // paths named by the command
	maxMatches = 1000            // files that one pattern of the shell matches
	maxWalked  = 200_000         // files and directories that are searched for unreadable ones
	maxBarred  = 2000            // unreadable files that are covered one by one
	maxWalk    = 5 * time.Second // duration of the search
	// unseenFor is how long the result of a search is used of places that no command can reach.
	unseenFor = time.Minute
)

// lookAt resolves the paths that a command names: each maps to its canonical paths, or to none when nothing exists
// there. A path that is missing in the result was not resolved.
func lookAt(r *command.Reading, dir string) map[string][]string {
	found := map[string][]string{}
	for _, p := range policy.CommandPaths(r, dir) {
		if len(found) == maxLooked {
			break
		}
		if _, done := found[p.Path]; done {
			continue
		}
		var there []string
		if !p.Pattern {
			there = realPaths([]string{p.Path})
		} else if matches, ok := expandPattern(p.Path); ok {
			there = realPaths(append(matches, p.Path)) // without a match, the shell takes the pattern as a name
		} else {
			continue
		}
		found[p.Path] = there
	}
	return found
}

// expandPattern returns the files that match a pattern of the shell. The bool is false when there are too many, or when
// the pattern is of a kind that is not supported.
func expandPattern(pattern string) ([]string, bool) {
	// Only the last element may be a pattern: otherwise this would be a search of the disk.
	dir, last := filepath.Dir(pattern), filepath.Base(pattern)
	if strings.ContainsAny(dir, "*?[") || strings.Contains(last, "**") || strings.Contains(last, `\`) ||
		strings.Contains(last, "[!") || strings.Contains(last, "[^") ||
		strings.Contains(last, "[:") {
		return nil, false
	}
	f, err := os.Open(dir)
	if err != nil {
		return nil, os.IsNotExist(err)
	}
	defer func() { _ = f.Close() }() // opened for reading
	const most = 20 * maxMatches
	names, _ := f.Readdirnames(most) // on an error, use what was read; at the end of the directory it is io.EOF
	if len(names) == most {
		return nil, false
	}
	var list []string
	for _, name := range names {
		if strings.HasPrefix(name, ".") && !strings.HasPrefix(last, ".") {
			continue
		}
		ok, err := filepath.Match(last, name)
		if err != nil || len(list) == maxMatches {
			return nil, false
		}
		if ok {
			list = append(list, filepath.Join(dir, name))
		}
	}
	return list, true
}

// realPaths returns the canonical paths of those that exist.
func realPaths(paths []string) []string {
	list := []string{}
	for _, p := range paths {
		if len(p) > 4096 {
			continue
		}
		if real, err := filepath.EvalSymlinks(p); err == nil {
			list = append(list, real)
		}
	}
	return list
}

// Unreadable says which files a command must not read; the file tools have the same restriction. Its functions get
// canonical paths below the places that a command can reach.
type Unreadable struct {
	// Denied reports whether a file must not be read. For a directory, it reports whether nothing in it may be read.
	Denied func(path string, dir bool) bool
	// Places are files and directories that are searched in addition to the working directory and the allowed paths.
	// Those that no command can reach are searched once a minute: what is denied there matters only because a file in
	// the working directory may be the same one.
	Places []string
}

// search is one search for unreadable files.
type search struct {
	Unreadable
	ctx     context.Context //nolint:containedctx // a search lives as long as the call whose context it is
	until   time.Time
	walked  int
	found   []string
	inodes  map[[2]uint64]bool // of unreadable files that have several names
	partial bool
}

// Bars returns the files that a command in ws must not read, so that the sandbox can hide them. complete is false when
// some are missing, because there are too many files to search or too many to cover. Files that are created later are
// not included.
func (r *Runner) Bars(ctx context.Context, ws string) (list []string, complete bool) {
	if r.opts.Unreadable == nil {
		return nil, true
	}
	u, any := r.opts.Unreadable(ws)
	if !any {
		return nil, true
	}
	s := search{Unreadable: u, ctx: ctx, until: time.Now().Add(maxWalk), inodes: map[[2]uint64]bool{}}
	roots := []string{sandbox.Canonical(ws)}
	for _, p := range slices.Concat(r.opts.AllowedPaths, u.Places) {
		roots = append(roots, sandbox.Canonical(p))
	}
	slices.Sort(roots)
	var kept []string
	for _, root := range roots {
		above := slices.ContainsFunc(roots, func(other string) bool { return other != root && isBelow(other, root) })
		// a place above one that is searched anyway is not granted
		outside := slices.Contains(u.Places, root) && above
		if !outside && !slices.ContainsFunc(kept, func(dir string) bool { return isBelow(root, dir) }) {
			kept = append(kept, root)
		}
	}
	kept, unseen := r.splitReachable(kept, ws)
	for _, root := range kept {
		s.walkRoot(root, s.lookAt)
	}
	if len(unseen) > 0 {
		s.add(r.unseen.lookup(ctx, u, unseen))
	}
	for _, p := range r.opts.Toolchains.Read { // as a whole: they are large, and no rule is about single files of theirs
		if u.Denied(p, true) || u.Denied(filepath.Join(p, "x"), false) {
			s.found = append(s.found, p)
		}
	}
	if len(s.inodes) > 0 { // another name of an unreadable file is unreadable too
		for _, root := range kept {
			s.walkRoot(root, s.sameFile)
		}
	}
	slices.Sort(s.found)
	return slices.Compact(s.found), !s.partial && len(s.found) <= maxBarred
}

// splitReachable splits roots into those that a command in ws may reach, and the others.
func (r *Runner) splitReachable(roots []string, ws string) (reachable, unseen []string) {
	grants := []string{sandbox.Canonical(ws), "/etc", "/proc", "/dev", "/sys", "/run"}
	for _, p := range slices.Concat(
		r.opts.AllowedPaths, r.opts.ReadPaths, r.opts.Toolchains.Read, sandbox.SystemDirs(),
	) {
		grants = append(grants, sandbox.Canonical(p))
	}
	for _, root := range roots {
		if slices.ContainsFunc(grants, func(g string) bool { return isBelow(root, g) || isBelow(g, root) }) {
			reachable = append(reachable, root)
		} else {
			unseen = append(unseen, root)
		}
	}
	return reachable, unseen
}

// unseenSearch is the last search of places that no command can reach. Safe for concurrent use.
type unseenSearch struct {
	mu     sync.Mutex
	places []string
	at     time.Time
	search
}

// lookup returns what a search of places has found, at most unseenFor ago.
func (l *unseenSearch) lookup(ctx context.Context, u Unreadable, places []string) search {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if slices.Equal(l.places, places) && now.Sub(l.at) < unseenFor && now.After(l.at) {
		return l.search
	}
	s := search{Unreadable: u, ctx: ctx, until: now.Add(maxWalk), inodes: map[[2]uint64]bool{}}
	for _, root := range places {
		s.walkRoot(root, s.lookAt)
	}
	s.ctx, s.Unreadable = nil, Unreadable{} // they end with the call
	if ctx.Err() == nil {
		l.places, l.at, l.search = slices.Clone(places), time.Now(), s
	}
	return s
}

// add adds what another search has found.
func (s *search) add(other search) {
	s.found = append(s.found, other.found...)
	maps.Copy(s.inodes, other.inodes)
	s.partial = s.partial || other.partial
}

func isBelow(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// walkRoot calls visit for everything below root, within the limits.
func (s *search) walkRoot(root string, visit func(path string, e fs.DirEntry) error) {
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil && e != nil && e.IsDir() && path != root:
			return fs.SkipDir // the sandbox does not grant what we cannot read ourselves
		case err != nil:
			return nil
		}
		if s.walked++; s.walked > maxWalked || s.walked%1024 == 0 &&
			(s.ctx.Err() != nil || time.Now().After(s.until)) || len(s.found) > maxBarred {
			s.partial = true
			return fs.SkipAll
		}
		return visit(path, e)
	})
	if err != nil {
		s.partial = true
	}
}

// lookAt adds a file that must not be read.
func (s *search) lookAt(path string, e fs.DirEntry) error {
	if e.Type()&fs.ModeSymlink != 0 || !s.Denied(path, e.IsDir()) {
		return nil
	}
	s.found = append(s.found, path)
	if e.IsDir() {
		return fs.SkipDir
	}
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil && st.Nlink > 1 {
		s.inodes[[2]uint64{uint64(st.Dev), st.Ino}] = true
	}
	return nil
}

// sameFile adds a file that is an unreadable one under another name.
func (s *search) sameFile(path string, e fs.DirEntry) error {
	if !e.Type().IsRegular() {
		return nil
	}
	var st unix.Stat_t
	if unix.Lstat(path, &st) == nil && st.Nlink > 1 && s.inodes[[2]uint64{uint64(st.Dev), st.Ino}] {
		s.found = append(s.found, path)
	}
	return nil
}
