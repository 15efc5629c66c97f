package layout

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/zephbot/zephbot/persistence"
)

// formerTerminal returns where earlier versions kept the terminal's state if data_dir is not set; "" if it is the same.
func (l Layout) formerTerminal() string {
	old := filepath.Join(l.Data(), terminal)
	if old == l.Terminal() {
		return ""
	}
	return old
}

// MoveTerminal moves the state that an earlier version left in the working directory, once: if the new place has none.
// It only takes what this account created itself and nobody else can read, because a directory that came with foreign
// files may contain standing approvals. It returns what it did or why not, "" = nothing to report.
func (l Layout) MoveTerminal() (string, error) {
	old, now := l.formerTerminal(), l.Terminal()
	if old == "" {
		return "", nil
	}
	if _, err := os.Lstat(now); err == nil || !holdsState(old) {
		return "", nil
	}
	if !private(old) {
		return fmt.Sprintf("%s holds earlier conversations, and is not taken over because others may have made it; "+
			"if it is yours: mv %q %q", old, old, now), nil
	}
	unlock, err := persistence.Lock(old, "lock", "chat")
	if err != nil {
		return "", err
	}
	defer unlock()
	if err := os.MkdirAll(filepath.Dir(now), 0o700); err != nil {
		return "", fmt.Errorf("directory of state: %w", err)
	}
	if err := os.Rename(old, now); err != nil {
		return fmt.Sprintf("earlier conversations in %s could not be moved to %s: %v", old, now, err), nil
	}
	return fmt.Sprintf("earlier conversations were moved from %s to %s", old, now), nil
}

// holdsState reports whether the terminal has used a directory.
func holdsState(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, persistence.FileName))
	return err == nil && info.Mode().IsRegular()
}
