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

// layOutSamples writes the sample files to the workspaces of the people of the simulator: their private chats and the
// topics that the group begins with, so that what is invited to works wherever somebody asks.
func layOutSamples(home, botID string) error {
	var errs []error
	for _, id := range simulator.AllowedUsers() {
		person := strconv.FormatInt(id, 10)
		errs = append(errs, layOutSample(home, telegram.Private(botID, person).SessionKey("")))
	}
	for _, thread := range []int{0, simulator.DeploysTopic} {
		errs = append(errs, layOutTopic(home, botID, simulator.Team, thread))
	}
	return errors.Join(errs...)
}

// layOutTopic writes the sample files to the workspaces that its people have in a topic of a group; thread 0 is General.
func layOutTopic(home, botID string, group int64, thread int) error {
	place := telegram.Private(botID, strconv.FormatInt(group, 10))
	if thread != 0 {
		place.Thread = strconv.Itoa(thread)
	}
	var errs []error
	for _, id := range simulator.AllowedUsers() {
		errs = append(errs, layOutSample(home, place.SessionKey(strconv.FormatInt(id, 10))))
	}
	return errors.Join(errs...)
}

// layOutSample writes a few files to the workspace of a session, so that there is something to ask about and temporary
// files to delete. It does so once, for an unused workspace: what a person deleted does not come back.
func layOutSample(home string, session bot.SessionKey) error {
	dir := filepath.Join(home, "workspaces", bot.WorkspaceID(string(session)))
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
