package archive

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// partialSuffix is added to the name of a backup that is being written.
const partialSuffix = ".partial"

// Create writes a file as one step: it has its name once fill has returned without an error and everything is on the
// disk. Only its owner can read it. An existing file is replaced if force is set, and otherwise an error. A process
// that is killed leaves a file whose name ends in ".partial"; the next Create of the same name replaces that.
func Create(path string, force bool, fill func(io.Writer) error) (err error) {
	if _, err := os.Lstat(path); err == nil && !force {
		return fmt.Errorf("%s exists already; --force replaces it", path)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	partial := path + partialSuffix
	if err := os.Remove(partial); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(partial, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err = fill(f); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	if err := os.Rename(partial, path); err != nil {
		return errors.Join(err, os.Remove(partial))
	}
	return syncDir(filepath.Dir(path))
}
