package sandbox

import "path/filepath"

// Canonical resolves the links of the absolute path p, even if its last elements do not exist.
func Canonical(p string) string {
	p = filepath.Clean(p)
	if real, err := filepath.EvalSymlinks(p); err == nil {
		return real
	}
	dir := filepath.Dir(p)
	if dir == p {
		return p
	}
	return filepath.Join(Canonical(dir), filepath.Base(p))
}
