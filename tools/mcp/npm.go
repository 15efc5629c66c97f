package mcp

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/zephbot/zephbot/policy/pathrule"
)

// mostPackageFiles is how many files of a package are looked at for secrets. A larger package is not granted.
const mostPackageFiles = 50_000

// mostPackages is how many packages and directories of packages are granted to a server.
const mostPackages = 200

// scriptGrant is what a script needs from outside of its own directory.
type scriptGrant struct {
	read []string // files and directories that it may read
	deny []string // what is not granted although it is inside of read
}

// scriptDirs returns the directories in which the program of a server looks for its packages: those of its scripts, of
// the program itself, which may be a link to a script, and the one it starts in, where npx looks.
func (c *conn) scriptDirs(program string) []string {
	var dirs []string
	for _, file := range append(scriptFiles(c.s.cfg), program) {
		dirs = append(dirs, filepath.Dir(file))
		if real, err := filepath.EvalSymlinks(file); err == nil { // node looks there, and only there
			dirs = append(dirs, filepath.Dir(real))
		}
	}
	if c.s.cfg.Dir != "" {
		dirs = append(dirs, c.s.cfg.Dir)
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// scriptFiles returns the files among a server's arguments, also those named relative to the directory it starts in.
func scriptFiles(cfg Server) []string {
	args := slices.Clone(cfg.Args)
	if cfg.Dir != "" {
		for i, arg := range args {
			if !filepath.IsAbs(arg) && filepath.Ext(arg) != "" {
				args[i] = filepath.Join(cfg.Dir, arg)
			}
		}
	}
	return regularFiles(args)
}

// packageGrants returns what scripts in these directories load as npm packages: the package around each, without files
// that hold secrets, and node_modules of every directory above it. What a link in node_modules leads to (workspaces, npm
// link) is granted like a package of its own.
func (c *conn) packageGrants(dirs []string) scriptGrant {
	var g scriptGrant
	seen := map[string]bool{}
	for len(dirs) > 0 && len(seen) < mostPackages {
		dir := dirs[0]
		dirs = dirs[1:]
		for _, modules := range moduleDirs(dir) {
			if !seen[modules] {
				seen[modules] = true
				g.read = append(g.read, modules)
				dirs = append(dirs, linkedPackages(modules)...)
			}
		}
		root := enclosingPackage(dir)
		if root == "" || seen[root] {
			continue
		}
		seen[root] = true
		secrets, ok := secretFiles(root)
		if !ok || c.holdsHome(root) {
			c.s.log.Debug().Str("directory", root).
				Msg("the package of an mcp server is too large, or holds the bot's own files; only its script is granted")
			g.read = append(g.read, filepath.Join(root, packageFile))
			continue
		}
		g.read, g.deny = append(g.read, root), append(g.deny, secrets...)
	}
	return g
}

// packageFile is what makes a directory an npm package.
const packageFile = "package.json"

// modulesDir is where the packages that a package depends on are.
const modulesDir = "node_modules"

// enclosingPackage returns the nearest directory above with a package.json that has a name; "" if there is none. One
// without a name only says how the files beside it are read: build/package.json with "type".
func enclosingPackage(dir string) string {
	nameless := ""
	for ; filepath.Base(dir) != modulesDir; dir = filepath.Dir(dir) {
		if raw, err := os.ReadFile(filepath.Join(dir, packageFile)); err == nil {
			var about struct{ Name string }
			if json.Unmarshal(raw, &about) == nil && about.Name != "" {
				return dir
			}
			if nameless == "" {
				nameless = dir
			}
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return nameless
}

// moduleDirs returns the directories node_modules in which node looks for what a script in dir imports.
func moduleDirs(dir string) []string {
	var list []string
	for ; ; dir = filepath.Dir(dir) {
		modules := dir
		if filepath.Base(dir) != modulesDir {
			modules = filepath.Join(dir, modulesDir)
		}
		if info, err := os.Stat(modules); err == nil && info.IsDir() && !slices.Contains(list, modules) {
			list = append(list, modules)
		}
		if dir == filepath.Dir(dir) {
			return list
		}
	}
}

// linkedPackages returns the directories outside of node_modules that links in it lead to.
func linkedPackages(modules string) []string {
	links, err := filepath.Glob(filepath.Join(modules, "*"))
	if err != nil {
		return nil
	}
	scoped, err := filepath.Glob(filepath.Join(modules, "@*", "*"))
	if err != nil {
		return nil
	}
	var list []string
	for _, link := range append(links, scoped...) {
		if info, err := os.Lstat(link); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			continue
		}
		real, err := filepath.EvalSymlinks(link)
		if err != nil || containsPath(modules, real) {
			continue
		}
		list = append(list, real)
	}
	return list
}

// secretFiles returns what holds secrets by its name below a directory, without the packages that others have
// published. ok is false if there is too much to search.
func secretFiles(root string) (list []string, ok bool) {
	n := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch n++; {
		case err != nil && e != nil && e.IsDir() && path != root:
			return fs.SkipDir // nor can the program read it
		case err != nil:
			return err
		case n > mostPackageFiles:
			return fs.ErrInvalid
		case path == root:
		case pathrule.HoldsSecret(e.Name()):
			list = append(list, path)
			if e.IsDir() {
				return fs.SkipDir
			}
		case e.IsDir() && e.Name() == modulesDir:
			return fs.SkipDir
		}
		return nil
	})
	return list, err == nil
}
