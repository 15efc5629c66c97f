package undo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools"
)

// More reasons why a file is not put back.
const (
	Changed = "changed" // it is no longer as the turn left it
	Mixed   = "mixed"   // something else changed it between two calls of the turn
	Special = "special" // it was a pipe, a socket or a device
)

// States of a file that can be put back.
const (
	Ready = "ready" // it is as the turn left it
	Done  = "done"  // it is as it was before the turn
)

// What a turn did to a file.
const (
	Made    = "made"
	Edited  = "edited"
	Deleted = "deleted"
)

// File is a file, link or directory that a turn has changed.
type File struct {
	Path  string `json:"path"`  // for people: relative to the directory of the conversation
	What  string `json:"what"`  // Made, Edited or Deleted
	State string `json:"state"` // Ready, Done or a reason
}

// Call is a call that may have done what cannot be put back.
type Call struct {
	ID      string // tools.Call.ID
	Tool    string
	Beyond  []tools.Beyond
	Problem string // Many, Slow, Interrupted, Failed or ""
}

// Report is what is known of the changes of a turn.
type Report struct {
	Session, Caller string
	Files           []File // by path
	Calls           []Call
	Known           []string // ids of the calls of which something is known
	Undone          *Undone  // nil = nobody has put them back
}

// Count returns how many files have a state.
func (r *Report) Count(state string) int {
	n := 0
	for _, f := range r.Files {
		if f.State == state {
			n++
		}
	}
	return n
}

// net is what a turn has changed at a path, over all its calls.
type net struct {
	change
	now   state
	state string // as in File
}

// merge adds up the changes of a turn, by path.
func (f *turnFile) merge() []*net {
	byPath := map[string]*net{}
	var list []*net
	for _, c := range f.Calls {
		for _, ch := range c.Changed {
			n := byPath[ch.Path]
			if n == nil {
				n = &net{change: ch}
				byPath[ch.Path], list = n, append(list, n)
				continue
			}
			if !n.After.same(ch.Before) {
				n.state = Mixed
			}
			n.After = ch.After
		}
	}
	list = slices.DeleteFunc(list, func(n *net) bool { return n.state == "" && n.Before.same(n.After) })
	slices.SortFunc(list, func(a, b *net) int { return strings.Compare(a.Path, b.Path) })
	return list
}

// plan says of each path whether it can be put back.
func (s *Store) plan(ctx context.Context, home *home, f *turnFile) ([]*net, error) {
	list := f.merge()
	look := s.newScan(ctx, home, false)
	look.until = time.Now().Add(settleWithin)
	for _, n := range list {
		var err error
		if n.now, err = look.one(n.Root, n.Path); err != nil {
			return nil, err
		}
		n.judge()
	}
	going := map[string]bool{} // what will be removed
	for _, n := range slices.Backward(list) {
		if n.state != Ready || n.Before.Kind == folder {
			continue
		}
		if n.now.Kind == folder && !emptied(n, going) {
			n.state = Changed
		}
		going[n.Path] = n.state == Ready && n.Before.Kind == absent
	}
	return list, nil
}

// judge sets the state of a path from what is there now.
func (n *net) judge() {
	sameContent := n.Before.Hash != "" && n.Before.Hash == n.After.Hash
	switch {
	case n.state != "":
	case n.now.same(n.Before):
		n.state = Done
	case n.Before.Kind == other:
		n.state = Special
	case n.Before.Lost != "" && !sameContent:
		n.state = n.Before.Lost
	case n.now.same(n.After), n.halfDone():
		n.state = Ready
	default:
		n.state = Changed
	}
}

// halfDone reports whether putting back was interrupted here.
func (n *net) halfDone() bool {
	if n.Before.Kind == n.After.Kind || n.Before.Kind == absent {
		return false
	}
	return n.now.Kind == absent || n.Before.Kind == folder && n.now == state{Kind: folder, Mode: workMode}
}

// emptied reports whether everything in a directory will be removed.
func emptied(n *net, going map[string]bool) bool {
	d, err := dirAt(n.Root, n.Path)
	if err != nil {
		return false
	}
	defer func() { _ = d.Close() }() // opened for reading
	names, err := d.Readdirnames(-1)
	return err == nil && !slices.ContainsFunc(names, func(name string) bool {
		return !going[filepath.Join(n.Path, name)] && !strings.HasPrefix(name, tempPrefix)
	})
}

// one looks at a path, but not below it.
func (c *scan) one(root, path string) (state, error) {
	parent, err := dirAt(root, filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
		return state{}, nil
	}
	if err != nil {
		return state{}, err
	}
	defer func() { _ = parent.Close() }() // opened for reading
	st, ok, err := lstat(parent, filepath.Base(path))
	if err != nil || !ok {
		return state{}, err
	}
	now := stateOf(&st)
	switch now.Kind {
	case file:
		err = c.content(parent, filepath.Base(path), path, &st, &now)
		now.Lost = ""
	case link:
		now.Target, err = readlink(parent, filepath.Base(path))
	}
	return now, err
}

// Look returns what is known of the changes of a turn, by its key; ok is false if nothing is.
func (s *Store) Look(ctx context.Context, workspace, key string) (r Report, ok bool, err error) {
	home := &home{name: workspace, dir: filepath.Join(s.o.Dir, workspace)}
	var f turnFile
	if err := home.read(key+turnSuffix, &f); err != nil {
		return r, false, ignoreMissing(err)
	}
	list, err := s.plan(ctx, home, &f)
	return f.report(list), err == nil, err
}

// ErrBusy means that a call is changing files, or was interrupted and its turn goes on.
var ErrBusy = errors.New("a call is running in the workspace")

// Undo puts back what a turn has changed, as far as that is possible, and returns what has become of it. It can be
// repeated after an interruption: Report.Undone is the last request that found something to do. The error is
// os.ErrNotExist if nothing is known of the turn.
func (s *Store) Undo(ctx context.Context, workspace, key string, by Undone) (Report, error) {
	if _, err := os.Stat(filepath.Join(s.o.Dir, workspace, "turns", key+turnSuffix)); err != nil {
		return Report{}, err
	}
	home, err := s.enter(ctx, workspace)
	if errors.Is(err, errHeld) {
		return Report{}, ErrBusy
	}
	if err != nil {
		return Report{}, err
	}
	defer home.leave()
	if running, err := home.opens(); err != nil || len(running) > 0 {
		return Report{}, errors.Join(err, busy(running))
	}
	var f turnFile
	if err := home.read(key+turnSuffix, &f); err != nil {
		return Report{}, err
	}
	list, err := s.plan(ctx, home, &f)
	if err != nil {
		return Report{}, err
	}
	todo := slices.ContainsFunc(list, func(n *net) bool { return n.state == Ready })
	restore(home, list)
	report := f.report(list)
	if report.Count(Done) > 0 && (f.Undone == nil || todo) {
		by.At = s.o.Now()
		f.Undone, report.Undone = &by, &by
		err = home.write(key+turnSuffix, &f)
	}
	return report, err
}

func busy(running []opened) error {
	if len(running) == 0 {
		return nil
	}
	return ErrBusy
}

// report says what has become of the changes of a turn.
func (f *turnFile) report(list []*net) Report {
	r := Report{Session: f.Session, Caller: f.Caller, Undone: f.Undone}
	for _, c := range f.Calls {
		r.Known = append(r.Known, c.Call)
		if len(c.Beyond) > 0 || c.Problem != "" {
			r.Calls = append(r.Calls, Call{ID: c.Call, Tool: c.Tool, Beyond: c.Beyond, Problem: c.Problem})
		}
	}
	for i, n := range list {
		isDir := n.Before.Kind == folder || n.Before.Kind == absent && n.After.Kind == folder
		if isDir && n.state != Changed && i+1 < len(list) && inside(n.Path, list[i+1].Path) {
			continue // what is in it is listed
		}
		shown := File{Path: f.display(n), What: Edited, State: n.state}
		switch {
		case n.Before.Kind == absent:
			shown.What = Made
		case n.After.Kind == absent:
			shown.What = Deleted
		}
		if isDir {
			shown.Path += "/"
		}
		r.Files = append(r.Files, shown)
	}
	return r
}

// display returns a path as people read it. Where the places of the machine are is not theirs to know.
func (f *turnFile) display(n *net) string {
	if inside(f.Own, n.Path) {
		return strings.TrimPrefix(strings.TrimPrefix(n.Path, f.Own), "/")
	}
	rel, err := filepath.Rel(filepath.Dir(n.Root), n.Path)
	if err != nil {
		return filepath.Base(n.Path)
	}
	return rel
}
