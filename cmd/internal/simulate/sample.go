package simulate

import (
	"embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/bot/telegram"
)

//go:embed sample
var sample embed.FS

// layOut writes a few files to the workspace of the simulator's first person, so that there is something to ask about
// and temporary files to delete. It does so once, for an unused workspace: what a person deleted does not come back.
func layOut(home, botID string) error {
	place := telegram.Private(botID, strconv.FormatInt(simulator.Ann, 10))
	dir := filepath.Join(home, "workspaces", bot.WorkspaceID(string(place.SessionKey(""))))
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files, err := fs.Sub(sample, "sample")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	// in one step, so that a crash in between leaves no half of it
	made, err := os.MkdirTemp(filepath.Dir(dir), ".sample")
	if err != nil {
		return err
	}
	if err := errors.Join(os.CopyFS(made, files), writable(made)); err != nil {
		return errors.Join(err, os.RemoveAll(made))
	}
	return os.Rename(made, dir)
}

// writable makes files writable, because embedded files are read-only.
func writable(dir string) error {
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		return os.Chmod(path, 0o600)
	})
}
