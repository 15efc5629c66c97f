package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// NoteName is the file in the state directory by which the next start learns that its state is that of a backup.
const NoteName = "restored.json"

// Note is the content of that file.
type Note struct {
	Created  time.Time `json:"created"`  // of the backup
	Restored time.Time `json:"restored"` // when it was put in place
}

// TakeNote reads the note in a state directory and removes it, so that it is read once; nil = there is none. A note
// that cannot be removed is returned together with the error.
func TakeNote(dir string) (*Note, error) {
	path := filepath.Join(dir, NoteName)
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // no note is no error
	}
	var note Note
	if err == nil {
		err = json.Unmarshal(raw, &note)
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &note, os.Remove(path)
}
