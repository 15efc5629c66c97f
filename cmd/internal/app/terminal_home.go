package app

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
)

// terminalName is the directory of the terminal's state, below data_dir or the person's state directory.
const terminalName = "terminal"

// terminalHome returns the directory of the terminal's state: below data_dir if that is set, else in the person's state
// directory. The default data_dir is in the working directory: a conversation would end where the next directory
// begins, and somebody who prepares a directory for others could put one with approvals into it.
func terminalHome(opts Options) string {
	if opts.State == "" || opts.Config.Origin("data_dir") != (config.Origin{}) {
		return filepath.Join(opts.Config.Path(opts.Config.DataDir), terminalName)
	}
	return filepath.Join(opts.State, terminalName)
}

// formerTerminal returns where earlier versions kept the terminal's state if data_dir is not set; "" if it is the same.
func formerTerminal(opts Options) string {
	old := filepath.Join(opts.Config.Path(opts.Config.DataDir), terminalName)
	if old == terminalHome(opts) {
		return ""
	}
	return old
}

// moveTerminal moves the state that an earlier version left in the working directory, once: if the new place has none.
// It only takes what this account created itself and nobody else can read, because a directory that came with foreign
// files may contain standing approvals. It returns what it did or why not, "" = nothing to report.
func moveTerminal(opts Options) (string, error) {
	old, now := formerTerminal(opts), terminalHome(opts)
	if old == "" {
		return "", nil
	}
	if _, err := os.Lstat(now); err == nil || !holdsState(old) {
		return "", nil
	}
	if !private(old) {
		return fmt.Sprintf("%s holds earlier conversations, and is not taken over because others may have made it; if it is yours: mv %q %q", old, old, now), nil
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
	info, err := os.Lstat(filepath.Join(dir, "zephbot.db"))
	return err == nil && info.Mode().IsRegular()
}
