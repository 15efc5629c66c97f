package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
)

// planName is the file, in the home of the service, with the renames of a restore that has begun. As soon as it exists,
// the restore is decided: the next process that opens the directory completes it.
const planName = ".restore-plan.json"

// plan is the content of that file.
type plan struct {
	Moves  []move   `json:"moves"`
	Stages []string `json:"stages"` // removed at the end
}

// move is one rename within a directory.
type move struct {
	From string `json:"from"`
	To   string `json:"to"`
	New  bool   `json:"new,omitempty"` // of the backup, not of what was there before
	// Mode is that of a directory, with the bit of its type; 0 for everything else. The rename may need another one.
	Mode fs.FileMode `json:"mode,omitempty"`
}

// ErrBegun means that a restore is decided but not complete: Finish completes it.
var ErrBegun = errors.New("the restore has begun, and the next start of the service or the next restore completes it")

// Commit replaces what is there by the backup. A process that is killed before Commit, or at its beginning, has
// replaced nothing; one that is killed later is completed by Finish.
func (s *Staged) Commit() error {
	moves, err := s.listMoves()
	if err != nil {
		return err
	}
	p := plan{Moves: moves}
	for _, place := range s.places {
		p.Stages = append(p.Stages, filepath.Join(place.Dir, stageName))
	}
	raw, err := json.Marshal(p)
	if err != nil {
		return err
	}
	path := filepath.Join(s.home, planName)
	if err := replaceFile(path, raw); err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if _, err := Finish(s.home); err != nil {
		return fmt.Errorf("%w: %w", ErrBegun, err)
	}
	return nil
}

// Finish completes a restore whose process was killed in the middle; done is false if there is none. It may be killed
// and repeated. The caller has locked the directory.
func Finish(home string) (done bool, err error) {
	path := filepath.Join(home, planName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("complete a restore that was interrupted: %w", err)
	}
	var p plan
	if err := json.Unmarshal(raw, &p); err != nil {
		return false, fmt.Errorf("complete a restore that was interrupted: %s: %w", path, err)
	}
	if err := p.runPlan(); err != nil {
		return false, fmt.Errorf("complete a restore that was interrupted: %w; mend that and start again", err)
	}
	if err := errors.Join(os.Remove(path), syncDir(home)); err != nil {
		return false, err
	}
	for _, dir := range p.Stages {
		_ = removeAll(dir) // it is empty but for directories; the next restore removes it otherwise
	}
	return true, nil
}

// runPlan makes the renames that were not made yet. Both halves are in order: a file is moved aside before
// another one takes its place, so a target that exists means that its rename is done; only its mode may
// still be the one of the rename.
func (p plan) runPlan() error {
	var dirs []string
	for _, m := range p.Moves {
		if !m.New {
			if err := os.MkdirAll(filepath.Dir(m.To), 0o700); err != nil {
				return err
			}
		}
		if _, err := os.Lstat(m.To); err != nil {
			if err := m.renamePath(); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			dirs = append(dirs, filepath.Dir(m.From), filepath.Dir(m.To))
		}
		if err := m.restoreMode(); err != nil {
			return err
		}
	}
	slices.Sort(dirs)
	for _, dir := range slices.Compact(dirs) {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// renamePath makes the rename. A directory that nobody may write into cannot be moved to another one on Linux, because
// its entry ".." changes; a model may have made its workspace so. Such a directory is made writable for it.
func (m move) renamePath() error {
	err := os.Rename(m.From, m.To)
	if m.Mode == 0 || !errors.Is(err, fs.ErrPermission) {
		return err
	}
	if info, failed := os.Lstat(m.From); failed != nil || !info.IsDir() {
		return err
	}
	if failed := os.Chmod(m.From, m.Mode|0o700); failed != nil {
		return errors.Join(err, failed)
	}
	return os.Rename(m.From, m.To)
}

// restoreMode gives a directory that was moved the mode that it had.
func (m move) restoreMode() error {
	if m.Mode == 0 {
		return nil
	}
	info, err := os.Lstat(m.To)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || !info.IsDir() || info.Mode() == m.Mode {
		return err
	}
	return os.Chmod(m.To, m.Mode)
}

// removeAll removes a directory, also if directories in it are not writable.
func removeAll(dir string) error {
	if err := os.RemoveAll(dir); !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() { // it is not read yet
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// replaceFile writes a file as one step.
func replaceFile(path string, content []byte) error {
	if err := writeSynced(path+".new", content); err != nil {
		return err
	}
	if err := os.Rename(path+".new", path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, content []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// syncDir makes the names in a directory durable, where the system can.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" { // directories cannot be flushed there
		return nil
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
