package terminal

import (
	"os"
	"path/filepath"
	"strings"
)

// pathsMost is how many paths are offered at once.
const pathsMost = 50

// Paths lists the files and directories of a directory that begin with a prefix. Hidden ones are offered if the prefix
// names them.
func Paths(dir, prefix string) []string {
	above, start := filepath.Split(prefix)
	at := above
	if !filepath.IsAbs(at) {
		at = filepath.Join(dir, above)
	}
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil
	}
	var list []string
	for _, e := range entries {
		name := e.Name()
		if !strings.HasPrefix(name, start) ||
			strings.HasPrefix(name, ".") && !strings.HasPrefix(start, ".") || strings.ContainsAny(name, " \n") {
			continue
		}
		if e.IsDir() {
			name += "/"
		}
		if list = append(list, above+name); len(list) == pathsMost {
			break
		}
	}
	return list
}
