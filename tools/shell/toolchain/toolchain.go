// Package toolchain finds compilers, interpreters and package managers that people have installed below their home
// directory, and says what a command has to read to use them. It names folders that hold programs and libraries, never
// those with credentials (~/.cargo/credentials.toml, ~/.npmrc, ~/.netrc …).
package toolchain

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zephbot/zephbot/policy/pathrule"
)

// Toolchain is something that is installed below a home directory.
type Toolchain struct {
	Name string // rustup, nvm …; of a directory that is none of these: its base name
	Dir  string // absolute
	// Bins are the directories with its programs, for PATH. Of several versions, it is the one that is used by default.
	Bins []string
}

// Set is what commands need to use toolchains. The zero value grants nothing.
type Set struct {
	Found []Toolchain
	Read  []string          // files and directories to read and execute
	Deny  []string          // what is not granted although it is inside of Read
	Env   map[string]string // variables by which programs find what belongs to them
}

// Path appends the directories of programs to the value of PATH, without those that it has already. So programs that
// were found before remain the first.
func (s Set) Path(path string) string {
	dirs := filepath.SplitList(path)
	for _, t := range s.Found {
		for _, dir := range t.Bins {
			if !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// kind is how one installer lays out its files. All globs are relative to its directory.
type kind struct {
	name     string
	variable string   // that says where the directory is, if it is elsewhere; "" = none
	homes    []string // below the home directory; the first that exists
	mark     string   // glob of what makes the directory one of this kind
	read     []string // globs of what is granted
	bins     []string // globs of directories with programs; of several versions the default one, else the newest
	standard string   // file that names the default version; "" = none
	env      map[string]string
}

// installedIn are the parts of a directory with bin, lib and so on that hold no settings: npm keeps its own, which may
// contain a token, in etc/npmrc, and pip in pip.conf.
func installedIn(dir string) []string {
	var globs []string
	for _, part := range []string{"bin", "lib", "lib64", "libexec", "include", "share", "pyvenv.cfg"} {
		globs = append(globs, filepath.Join(dir, part))
	}
	return globs
}

// kinds are the installers that are known, as their documentation describes them: the rustup book (environment
// variables), the Cargo book (Cargo home), the README files of nvm, fnm, Volta and pyenv, uv's reference (storage),
// pipx's (installation), mise's (directories), `go help environment`, and the installers of Bun and Deno.
func kinds() []kind {
	return []kind{
		{
			name: "rustup", variable: "RUSTUP_HOME", homes: []string{".rustup"}, mark: "toolchains/*/bin",
			read: []string{"toolchains", "settings.toml"}, env: map[string]string{"RUSTUP_HOME": ""},
		},
		{
			name: "cargo", variable: "CARGO_HOME", homes: []string{".cargo"}, mark: "bin",
			read: []string{"bin", "registry", "git", "config.toml", "config"}, bins: []string{"bin"},
			env: map[string]string{"CARGO_HOME": ""},
		},
		{
			name: "nvm", variable: "NVM_DIR", homes: []string{".nvm", ".config/nvm"}, mark: "versions/node/*/bin",
			read: append(installedIn("versions/node/*"), "nvm.sh", "alias"), bins: []string{"versions/node/*/bin"},
			standard: "alias/default", env: map[string]string{"NVM_DIR": ""},
		},
		{
			name: "fnm", variable: "FNM_DIR", homes: []string{".local/share/fnm", ".fnm"},
			mark: "node-versions/*/installation/bin", read: append(installedIn("node-versions/*/installation"), "fnm"),
			bins: []string{"aliases/default/bin", "node-versions/*/installation/bin"},
		},
		{
			name: "volta", variable: "VOLTA_HOME", homes: []string{".volta"}, mark: "bin",
			read: []string{"bin", "tools/image", "tools/user", "layout.v*"}, bins: []string{"bin"},
			env: map[string]string{"VOLTA_HOME": ""},
		},
		{name: "bun", variable: "BUN_INSTALL", homes: []string{".bun"}, mark: "bin", read: []string{"bin"}, bins: []string{"bin"}},
		{name: "deno", variable: "DENO_INSTALL", homes: []string{".deno"}, mark: "bin", read: []string{"bin"}, bins: []string{"bin"}},
		{
			name: "pyenv", variable: "PYENV_ROOT", homes: []string{".pyenv"}, mark: "versions/*/bin",
			read: append(installedIn("versions/*"), "bin", "libexec", "shims", "plugins", "pyenv.d", "version", "versions/*/envs"),
			bins: []string{"bin", "shims"}, env: map[string]string{"PYENV_ROOT": ""},
		},
		{
			name: "uv", homes: []string{".local/share/uv"}, mark: "*/*/bin",
			read: append(installedIn("python/*"), installedIn("tools/*")...), bins: nil,
			env: map[string]string{"UV_PYTHON_INSTALL_DIR": "python"},
		},
		{
			name: "pipx", variable: "PIPX_HOME", homes: []string{".local/share/pipx", ".local/pipx"}, mark: "venvs/*/bin",
			read: append(installedIn("venvs/*"), installedIn("shared")...),
		},
		{
			name: "mise", variable: "MISE_DATA_DIR", homes: []string{".local/share/mise"}, mark: "installs/*/*",
			read: []string{"installs"}, bins: []string{"installs/*/latest/bin"},
		},
		{
			name: "go", homes: []string{"go", "sdk/go*", ".local/go"}, mark: "pkg/tool",
			read: []string{"bin", "pkg", "src", "lib", "misc", "go.env", "VERSION"}, bins: []string{"bin"},
		},
		{
			name: "go modules", variable: "GOPATH", homes: []string{"go"}, mark: "pkg/mod/cache/download",
			read: []string{"bin", "pkg/mod"}, bins: []string{"bin"},
		},
	}
}

// Find returns the known toolchains of a home directory. environ is the environment of this process: variables such as
// CARGO_HOME say where a directory is.
func Find(home string, environ []string) Set {
	var s Set
	if !filepath.IsAbs(home) {
		return s
	}
	for _, k := range kinds() {
		for _, dir := range k.dirs(home, environ) {
			if k.isAt(dir) {
				s.add(k, dir)
				break
			}
		}
	}
	s.addLocal(home)
	return s.sorted()
}

// Of returns what commands need to use the toolchains in these directories, which are absolute. One of a known kind is
// granted as Find grants it. Any other is granted as a whole, but for what holds secrets by its name in it or one level
// below, and its programs are in it or in bin.
func Of(dirs []string, home string) Set {
	var s Set
	for _, dir := range dirs {
		dir = filepath.Clean(dir)
		if dir == filepath.Join(home, localBin) {
			s.addLocal(home)
			continue
		}
		list := kinds()
		if i := slices.IndexFunc(list, func(k kind) bool { return k.isNamed(dir, home) && k.isAt(dir) }); i >= 0 {
			for _, k := range list[i:] {
				if k.isNamed(dir, home) && k.isAt(dir) {
					s.add(k, dir)
				}
			}
			continue
		}
		s.addOther(dir)
	}
	return s.sorted()
}

// dirs returns where a toolchain of this kind may be, the likeliest first.
func (k kind) dirs(home string, environ []string) []string {
	var list []string
	for _, kv := range environ {
		if value, ok := strings.CutPrefix(kv, k.variable+"="); ok && k.variable != "" && filepath.IsAbs(value) {
			list = append(list, filepath.Clean(value))
		}
	}
	for _, at := range k.homes {
		list = append(list, newestFirst(glob(home, at))...)
	}
	return list
}

// isNamed reports whether dir is where a toolchain of this kind is by default.
func (k kind) isNamed(dir, home string) bool {
	return slices.ContainsFunc(k.homes, func(at string) bool {
		ok, err := filepath.Match(filepath.Join(home, at), dir)
		return err == nil && ok || filepath.Base(dir) == filepath.Base(at) && strings.HasPrefix(filepath.Base(at), ".")
	})
}

func (k kind) isAt(dir string) bool { return len(glob(dir, k.mark)) > 0 }

// add grants a toolchain of a known kind.
func (s *Set) add(k kind, dir string) {
	t := Toolchain{Name: k.name, Dir: dir}
	hidden := false
	for _, at := range k.read {
		for _, path := range glob(dir, at) {
			switch {
			case pathrule.HoldsSecret(filepath.Base(path)):
			case k.name == "cargo" && namesToken(path):
				hidden = true
			default:
				s.Read = append(s.Read, path)
			}
		}
	}
	for _, at := range k.bins {
		if found := newestFirst(glob(dir, at)); len(found) > 0 && (len(t.Bins) == 0 || !strings.Contains(at, "*")) {
			t.Bins = append(t.Bins, k.preferred(dir, found))
		}
	}
	if k.name == "mise" { // one directory for each of its tools
		t.Bins = glob(dir, k.bins[0])
	}
	s.Found = append(s.Found, t)
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	// Cargo cannot fetch anything into a home that it may only read. Without packages there it is better off with one in
	// the workspace, and so it is where its settings hold a token.
	if k.name == "cargo" && (hidden || len(glob(dir, "registry/cache")) == 0) {
		return
	}
	for name, at := range k.env {
		s.Env[name] = filepath.Join(dir, at)
	}
	if k.name == "go modules" { // as a proxy, because go wants to write into its module cache
		s.Env["GOPROXY"] = "file://" + filepath.Join(dir, "pkg/mod/cache/download") + ",https://proxy.golang.org,direct"
	}
}

// preferred returns the directory of programs of the default version, else the first.
func (k kind) preferred(dir string, bins []string) string {
	if k.standard == "" {
		return bins[0]
	}
	raw, err := os.ReadFile(filepath.Join(dir, k.standard))
	if err != nil {
		return bins[0]
	}
	want := "v" + strings.TrimPrefix(strings.TrimSpace(string(raw)), "v")
	for _, bin := range bins {
		version := filepath.Base(filepath.Dir(bin))
		if version == want || strings.HasPrefix(version, want+".") {
			return bin
		}
	}
	return bins[0]
}

// addOther grants a directory that is none of a known kind.
func (s *Set) addOther(dir string) {
	t := Toolchain{Name: filepath.Base(dir), Dir: dir, Bins: []string{dir}}
	if bin := filepath.Join(dir, "bin"); isDir(bin) {
		t.Bins = []string{bin}
	}
	s.Found, s.Read = append(s.Found, t), append(s.Read, dir)
	for _, at := range []string{".*", "*", "*/.*", "*/*"} {
		for _, path := range glob(dir, at) {
			if pathrule.HoldsSecret(filepath.Base(path)) {
				s.Deny = append(s.Deny, path)
			}
		}
	}
}

// localBin is where uv, pipx and others leave links to programs, below the home directory.
const localBin = ".local/bin"

// addLocal grants what ~/.local/bin has of the toolchains that are granted, and uv itself. Scripts of the person's own
// are not granted.
func (s *Set) addLocal(home string) {
	dir := filepath.Join(home, localBin)
	var list []string
	for _, path := range glob(dir, "*") {
		real, err := filepath.EvalSymlinks(path)
		granted := err == nil && slices.ContainsFunc(s.Read, func(p string) bool { return isInside(resolved(p), real) })
		if name := filepath.Base(path); granted || name == "uv" || name == "uvx" {
			list = append(list, path)
		}
	}
	if len(list) > 0 {
		s.Found = append(s.Found, Toolchain{Name: "uv and pipx", Dir: dir, Bins: []string{dir}})
		s.Read = append(s.Read, list...)
	}
}

// sorted returns the set in a stable order, without duplicates.
func (s Set) sorted() Set {
	slices.Sort(s.Read)
	s.Read = slices.Compact(s.Read)
	slices.Sort(s.Deny)
	s.Deny = slices.Compact(s.Deny)
	s.Env = maps.Clone(s.Env)
	return s
}

// token matches a setting of cargo that is a credential.
var token = regexp.MustCompile(`(?im)^[^#\n]*\b(?:token|secret-key)\s*=`)

// namesToken reports whether a file of settings contains a credential, or cannot be read.
func namesToken(path string) bool {
	if strings.TrimSuffix(filepath.Base(path), ".toml") != "config" {
		return false
	}
	raw, err := os.ReadFile(path)
	return err != nil || token.Match(raw)
}

func glob(dir, pattern string) []string {
	list, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		return nil // the directory has a bracket in its name
	}
	return list
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func resolved(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// isInside reports whether path is dir or below it.
func isInside(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// newestFirst sorts paths by the numbers in them, the highest first.
func newestFirst(paths []string) []string {
	numbers := func(path string) []int {
		var list []int
		for _, word := range digits.FindAllString(path, -1) {
			n, err := strconv.Atoi(word)
			if err != nil {
				n = 0 // no version has so many digits
			}
			list = append(list, n)
		}
		return list
	}
	slices.SortStableFunc(paths, func(a, b string) int { return slices.Compare(numbers(b), numbers(a)) })
	return paths
}

var digits = regexp.MustCompile(`\d+`)
