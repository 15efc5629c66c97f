package mcp

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/policy/lazyregexp"
	"github.com/zephbot/zephbot/tools/mcp/guard"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// Sandbox says how the programs of servers are confined.
type Sandbox struct {
	Helper  string   // how to start the helper: sandbox.Self, or "" when there is none, and nothing is enforced
	Off     bool     // do not confine files and network; the whole process tree still ends with the server
	Require bool     // refuse to start a program when the kernel cannot confine it
	Deny    []string // paths that no program may reach, not even inside directories that are granted to it
	Level   string   // what the kernel enforces here, for people
}

// networkOf returns what a server may reach: what its configuration says, or else a default by trust. The default is
// everything that we can reach for a trusted server, the internet without this machine for an untrusted one, and
// nothing for a sandboxed one.
func (s Server) networkOf() sandbox.Network {
	switch s.Network {
	case "off":
		return sandbox.NetworkOff
	case "internet":
		return sandbox.NetworkInternet
	case "all":
		return sandbox.NetworkAll
	}
	switch s.Trust {
	case guard.Trusted:
		return sandbox.NetworkAll
	case guard.Untrusted:
		return sandbox.NetworkInternet
	default:
		return sandbox.NetworkOff
	}
}

// isConfined reports whether the kernel confines the server's program.
func (s Server) isConfined(o Options) bool {
	return !o.Sandbox.Off && o.Sandbox.Helper != "" && s.Confine != "off"
}

// Holds describes in a few words how the program of a server is kept away from the rest of the machine. The card that
// asks about the server shows it.
func (m *Manager) Holds(cfg Server) string {
	if !cfg.isConfined(m.o) {
		return "nothing but its environment and its directory: it has the rights of the bot"
	}
	dirs := "its own directory"
	if len(cfg.Roots) > 0 || len(argDirs(cfg)) > 0 {
		dirs += ", its roots and the directories among its arguments"
	}
	var reads []string
	if len(scriptFiles(cfg)) > 0 && cfg.Trust != guard.Sandboxed {
		reads = append(reads, "what is beside its script and in the npm package around it")
	}
	if reads = append(reads, cfg.Read...); len(reads) > 0 {
		dirs += "; read only: " + strings.Join(reads, ", ")
	}
	text := fmt.Sprintf("kernel sandbox (files: %s; network: %s)", dirs, cfg.networkOf())
	if m.o.Sandbox.Level != "" {
		text += "; " + m.o.Sandbox.Level
	}
	return text
}

// sandboxSpec returns the sandbox specification of a connection's program. dir is its own directory.
func (c *conn) sandboxSpec(path, dir string, env []string) sandbox.Spec {
	s := c.s
	o := s.m.o
	spec := sandbox.Spec{
		Helper:  o.Sandbox.Helper,
		Argv:    append([]string{path}, s.cfg.Args...),
		Dir:     cmp.Or(s.cfg.Dir, dir),
		Env:     env,
		Off:     true,
		Linger:  -1,
		Network: sandbox.NetworkAll,
		Grace:   termGrace,
	}
	if !s.cfg.isConfined(o) {
		return spec
	}
	spec.Off, spec.Require, spec.Network, spec.Deny = false, o.Sandbox.Require, s.cfg.networkOf(), c.deniedPaths()
	for _, d := range installDirs(path) { // a denied file stays denied: the bot may be installed in the same directory
		if !c.holdsHome(d) {
			spec.Read = append(spec.Read, d)
		}
	}
	spec.Write = []string{dir}
	for _, r := range c.usableRoots() { // a sandboxed server has none
		if u, err := url.Parse(r.URI); err == nil {
			spec.Write = append(spec.Write, filepath.FromSlash(u.Path))
		}
	}
	spec.Read = append(spec.Read, s.cfg.Read...)
	if s.cfg.Trust == guard.Sandboxed {
		return spec
	}
	for _, d := range argDirs(s.cfg) {
		if c.tooWide(d) {
			s.log.Warn().Str("directory", d).
				Msg("a directory among the arguments of an mcp server holds the bot's own files; it is not granted")
			continue
		}
		spec.Write = append(spec.Write, d)
	}
	packages := c.packageGrants(c.scriptDirs(path))
	spec.Read = append(spec.Read, packages.read...)
	spec.Deny = append(spec.Deny, c.withoutOwn(packages.deny)...)
	for _, file := range scriptFiles(s.cfg) { // a script, with what is beside it; or its settings alone
		if dir := filepath.Dir(file); !c.tooWide(dir) {
			spec.Read = append(spec.Read, dir)
			continue
		}
		spec.Read = append(spec.Read, file)
	}
	spec.Read = append(spec.Read, c.envFiles()...)
	return spec
}

// installDirs returns the directories that a program consists of, apart from the system's: where it was found, where
// its symbolic link leads, and the tree around a bin directory.
func installDirs(path string) []string {
	var dirs []string
	add := func(file string) {
		dir := filepath.Dir(file)
		dirs = append(dirs, dir)
		switch filepath.Base(dir) {
		case "bin", "shims":
			dirs = append(dirs, filepath.Dir(dir))
		}
	}
	add(path)
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		add(real)
	}
	return dirs
}

// deniedPaths returns the paths that the program cannot reach: everything that is denied, except what its own
// command line and environment name.
func (c *conn) deniedPaths() []string { return c.withoutOwn(c.s.m.o.Sandbox.Deny) }

// withoutOwn returns paths without those that the configuration of the server names.
func (c *conn) withoutOwn(paths []string) []string {
	own := slices.Concat(argDirs(c.s.cfg), scriptFiles(c.s.cfg), c.envFiles())
	for _, p := range c.s.cfg.Read {
		if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() {
			own = append(own, filepath.Clean(p))
		}
	}
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return slices.Contains(own, filepath.Clean(p)) })
}

// tooWide reports whether a directory contains what no server may have: the whole machine, our home directory, or
// anything that is denied. A file that another configured server names does not count: it is denied alone.
func (c *conn) tooWide(dir string) bool {
	var others []string
	for i := range c.s.m.o.Servers {
		others = append(others, namedFiles(&c.s.m.o.Servers[i])...)
	}
	return c.holdsHome(dir) || slices.ContainsFunc(c.deniedPaths(), func(p string) bool {
		return containsPath(dir, p) && !slices.Contains(others, filepath.Clean(p))
	})
}

// envFiles returns the files that the environment of a configured server names, such as that of its key.
func (c *conn) envFiles() []string {
	if c.s.dynamic {
		return nil
	}
	return regularFiles(slices.Collect(maps.Values(c.s.cfg.Env)))
}

// namedFiles returns the files that the command line and the environment of a server name.
func namedFiles(cfg *Server) []string {
	return slices.Concat(regularFiles(cfg.Args), regularFiles(slices.Collect(maps.Values(cfg.Env))))
}

// holdsHome reports whether a directory is the root or contains our home directory or our data.
func (c *conn) holdsHome(dir string) bool {
	o := c.s.m.o
	own := []string{"/"}
	for _, kv := range o.Environ {
		if home, ok := strings.CutPrefix(kv, "HOME="); ok && home != "" {
			own = append(own, home)
		}
	}
	if o.WorkDir != "" {
		own = append(own, filepath.Dir(o.WorkDir))
	}
	return slices.ContainsFunc(own, func(p string) bool { return containsPath(dir, p) })
}

// containsPath reports whether a path is dir or lies inside it.
func containsPath(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// argDirs returns the directories among a server's arguments. Whoever configured or approved the arguments has thereby
// granted them.
func argDirs(cfg Server) []string {
	return existingPaths(cfg.Args, func(info os.FileInfo) bool { return info.IsDir() })
}

// regularFiles returns the files among texts, which are arguments or values of variables.
func regularFiles(texts []string) []string {
	return existingPaths(texts, func(info os.FileInfo) bool { return info.Mode().IsRegular() })
}

// existingPaths returns the existing absolute paths among texts, also behind an option (--config=/x), in order.
func existingPaths(texts []string, want func(os.FileInfo) bool) []string {
	var list []string
	for _, text := range texts {
		if _, value, ok := strings.Cut(text, "="); ok && strings.HasPrefix(text, "-") {
			text = value
		}
		if !filepath.IsAbs(text) {
			continue
		}
		if info, err := os.Stat(text); err == nil && want(info) {
			list = append(list, filepath.Clean(text))
		}
	}
	return list
}

// privateEnv makes the program's own directory its home, so that its caches and settings stay there. Variables that the
// operator configured win.
func privateEnv(env []string, dir string, configured map[string]string) ([]string, error) {
	tmp := filepath.Join(dir, "tmp")
	if err := os.MkdirAll(tmp, 0o700); err != nil {
		return nil, fmt.Errorf("make the directory for temporary files: %w", err)
	}
	own := map[string]string{"HOME": dir, "TMPDIR": tmp, "USERPROFILE": dir}
	out := slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		if _, ok := configured[name]; ok {
			return false
		}
		lower := strings.ToLower(name)
		_, ours := own[name]
		return ours || strings.HasPrefix(name, "XDG_") || strings.HasPrefix(lower, "npm_config_") ||
			strings.HasPrefix(name, "UV_") || name == "PYTHONUSERBASE" || name == "OLDPWD"
	})
	for name, value := range own {
		if _, ok := configured[name]; !ok {
			out = append(out, name+"="+value)
		}
	}
	slices.Sort(out)
	return out, nil
}

// barred matches what programs print when the kernel or the network refused them something.
var barred = lazyregexp.New(
	`(?i)\b(?:EACCES|EPERM|EROFS|ENOENT|ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|EHOSTUNREACH)\b|permission ` +
		`denied|not permitted|read-only file system|no such file|name resolution|network is unreachable|dns error|` +
		`fetch failed|getaddrinfo`,
)

// unfound matches what node, Python and others print when a file of their own code cannot be read.
var unfound = lazyregexp.New(`ERR_MODULE_NOT_FOUND|MODULE_NOT_FOUND|Cannot find (?:module|package)|No module named|` +
	`ModuleNotFoundError|ImportError`)

// confinedHint says that a program that ended was confined, and names the settings that decide what it may reach. It
// returns "" for a program that is not confined, and for one that had worked before, unless its last words suggest that
// something was refused.
func (c *conn) confinedHint(text string) string {
	missing := unfound().MatchString(text)
	if c.proc == nil || !c.s.cfg.isConfined(c.s.m.o) ||
		c.readySession() != nil && !missing && !barred().MatchString(text) {
		return ""
	}
	key := "mcp.servers[].network, roots, read and confine say what it may reach"
	if missing {
		key = "if what it misses is installed, name its directory in mcp.servers[].read"
	}
	return fmt.Sprintf(" (it is confined: network %s, files in its own directory, its package and its roots; %s)",
		c.s.cfg.networkOf(), key)
}
