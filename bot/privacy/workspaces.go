package privacy

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/bot"
)

// Workspaces are the directories of conversations. They implement Place.
type Workspaces struct {
	Root string
	Own  []string // channels whose conversations work where the person is, and have no directory here
}

// Name implements Place.
func (Workspaces) Name() string { return "workspaces" }

// Of lists the directories of a person's own conversations: those that their lanes name, and those whose name is
// that of a conversation of theirs.
func (w Workspaces) Of(of *Order) ([]string, error) {
	if slices.Contains(w.Own, of.Channel) {
		return nil, nil
	}
	named := map[string]bool{}
	for _, c := range of.Sessions {
		named[bot.WorkspaceID(c.Workspace)] = true
	}
	entries, err := os.ReadDir(w.Root)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list the workspaces: %w", err)
	}
	var list []string
	for _, e := range entries {
		session := bot.SessionKey(strings.ReplaceAll(e.Name(), "_", "/"))
		if e.IsDir() && (named[e.Name()] || session.Valid() && of.Owns(session)) {
			list = append(list, filepath.Join(w.Root, e.Name()))
		}
	}
	return list, nil
}

// Erase implements Place.
func (w Workspaces) Erase(_ context.Context, of *Order) (n int, err error) {
	dirs, err := w.Of(of)
	if err != nil || len(dirs) == 0 {
		return 0, err
	}
	root, err := os.OpenRoot(w.Root)
	if err != nil {
		return 0, fmt.Errorf("open the workspaces: %w", err)
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, dir := range dirs {
		gone := removeLocked(root, filepath.Base(dir))
		if err = errors.Join(err, gone); gone == nil {
			n++
		}
	}
	return n, err
}

// removeLocked deletes a directory, also if directories in it are read-only, as those of Go's module cache are.
func removeLocked(root *os.Root, dir string) error {
	if err := root.RemoveAll(dir); err == nil {
		return nil
	}
	makeWritable(root, dir)
	return root.RemoveAll(dir)
}

// makeWritable makes the directories of a tree writable for this account. What fails here fails again when they are deleted.
func makeWritable(root *os.Root, dir string) {
	info, err := root.Lstat(dir)
	if err != nil || !info.IsDir() {
		return
	}
	if info.Mode().Perm()&0o700 != 0o700 {
		_ = root.Chmod(dir, info.Mode().Perm()|0o700)
	}
	f, err := root.Open(dir)
	if err != nil {
		return
	}
	entries, _ := f.ReadDir(-1)
	_ = f.Close() // read only
	for _, e := range entries {
		if e.IsDir() {
			makeWritable(root, filepath.Join(dir, e.Name()))
		}
	}
}

// Export implements Place.
func (w Workspaces) Export(_ context.Context, of *Order, to *Archive) error {
	dirs, err := w.Of(of)
	if err != nil {
		return err
	}
	for i, dir := range dirs {
		if err := to.Dir("workspaces/"+strconv.Itoa(i+1), dir); err != nil {
			return err
		}
	}
	return nil
}
