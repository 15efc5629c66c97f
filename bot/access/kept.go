package access

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// shownName is the file in the state directory with the hash of the code that setup has shown.
const shownName = "first-admin"

// KeepCode stores the hash of a code that setup has shown, so that a service that is started with the configuration
// makes the person who sends it the first admin.
func KeepCode(dir, code string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("keep the code: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, shownName), []byte(CodeHash(code)+"\n"), 0o600); err != nil {
		return fmt.Errorf("keep the code: %w", err)
	}
	return nil
}

// KeptCode returns what KeepCode has stored; "" = nothing.
func KeptCode(dir string) (string, error) {
	raw, err := os.ReadFile(filepath.Join(dir, shownName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the code that setup has shown: %w", err)
	}
	return strings.TrimSpace(string(raw)), nil
}

// ForgetCode removes what KeepCode has stored.
func ForgetCode(dir string) error {
	if err := os.Remove(filepath.Join(dir, shownName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the code that setup has shown: %w", err)
	}
	return nil
}
