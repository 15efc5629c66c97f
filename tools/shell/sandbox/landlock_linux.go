package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// maxABI is the newest version of Landlock that these rules support.
const maxABI = 7

// maxCarved limits the entries that are granted one by one because a denied path lies between them.
const maxCarved = 20_000

// systemRead returns the paths that every sandbox may read and execute.
func systemRead() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/run/current-system",
		"/dev/random", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime",
		"/proc/version", "/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm", "/sys/devices/system/cpu",
		"/sys/kernel/mm/transparent_hugepage",
	}
}

// SystemDirs returns the directories of programs and libraries that every sandbox may read and execute.
func SystemDirs() []string {
	return slices.DeleteFunc(systemRead(), func(p string) bool {
		return strings.HasPrefix(p, "/dev/") || strings.HasPrefix(p, "/proc/") || strings.HasPrefix(p, "/sys/")
	})
}

// systemConfig returns the parts of /etc that commands may read: what programs need, and nothing that may contain a
// secret (shadow, keys, settings of other services).
func systemConfig() []string {
	names := strings.Fields(
		`passwd group hosts hostname host.conf resolv.conf nsswitch.conf gai.conf services protocols networks rpc ethertypes
		localtime timezone ld.so.cache ld.so.conf ld.so.conf.d ssl/certs ssl/openssl.cnf ssl/cert.pem pki/tls/certs pki/tls/openssl.cnf
		pki/ca-trust/extracted ca-certificates ca-certificates.conf crypto-policies gnutls alternatives profile profile.d bash.bashrc bashrc
		bash_completion.d inputrc terminfo gitconfig mime.types magic magic.mime os-release debian_version alpine-release redhat-release
		lsb-release fonts locale.alias locale.conf default/locale shells login.defs ssh/ssh_config ssh/ssh_config.d manpath.config
		ImageMagick-6 ImageMagick-7 java-17-openjdk java-21-openjdk java-25-openjdk python3 perl php ruby R papersize xdg vim nanorc
		mke2fs.conf machine-id`,
	)
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = filepath.Join("/etc", n)
	}
	return paths
}

// landlockABI returns the version of Landlock that can be enforced; 0 when there is none.
func landlockABI() int {
	v, err := llsys.LandlockGetABIVersion()
	if err != nil || v < 1 {
		return 0
	}
	return min(v, maxABI)
}

// systemDevices returns the devices that every sandbox may read and write.
func systemDevices() []string { return []string{"/dev/null", "/dev/zero", "/dev/full"} }

// landlockRules adds the file and network part of spec to the plan.
func landlockRules(p *supervisor.Plan, spec Spec, can abilities, deny []string, covered map[string]bool) error {
	g := grants{deny: deny, covered: covered}
	for _, path := range slices.Concat(systemRead(), systemConfig(), spec.Read) {
		g.addPath(path, false)
	}
	for _, path := range append(systemDevices(), spec.Write...) {
		g.addPath(path, true)
	}
	if g.err != nil {
		return g.err
	}
	cfg := handledAccess(can.abi)
	p.FS, p.Scoped = uint64(cfg.HandledAccessFS), uint64(cfg.Scoped)
	if spec.Network == NetworkOff {
		p.Net = uint64(cfg.HandledAccessNet)
	}
	switch { // directories of the command's own
	case can.root && spec.Reading:
		g.rules = append(g.rules, supervisor.Rule{Path: privatePlace(spec), Access: accessWrite})
	case can.root:
		g.rules = append(g.rules, supervisor.Rule{Path: "/dev/shm", Access: accessWrite})
	}
	for _, r := range g.rules {
		p.Rules = append(p.Rules, supervisor.Rule{Path: r.Path, Access: r.Access & p.FS})
	}
	return nil
}

// handledAccess returns the accesses that a version of Landlock can restrict.
func handledAccess(abi int) landlock.Config {
	versions := []landlock.Config{
		landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6,
		landlock.V7,
	}
	return versions[min(abi, len(versions))-1]
}

// Accesses that are granted together.
const (
	// accessFile is everything that can be granted for a file.
	accessFile = llsys.AccessFSExecute | llsys.AccessFSReadFile | llsys.AccessFSWriteFile | llsys.AccessFSTruncate
	accessRead = llsys.AccessFSExecute | llsys.AccessFSReadFile | llsys.AccessFSReadDir
	// accessWrite does not let a command create devices.
	accessWrite = accessRead | llsys.AccessFSWriteFile | llsys.AccessFSTruncate | llsys.AccessFSRemoveDir |
		llsys.AccessFSRemoveFile | llsys.AccessFSMakeDir | llsys.AccessFSMakeReg | llsys.AccessFSMakeSock |
		llsys.AccessFSMakeFifo | llsys.AccessFSMakeSym | llsys.AccessFSRefer
)

// deniedPaths returns the canonical paths that spec denies. A link is denied together with its target, because a
// command could otherwise replace the link by a file of its own.
func deniedPaths(spec Spec) []string {
	var out []string
	for _, p := range spec.Deny {
		real := Canonical(p)
		out = append(out, real)
		if link := filepath.Join(Canonical(filepath.Dir(p)), filepath.Base(p)); link != real {
			out = append(out, link)
		}
	}
	return out
}

// grants collects rules.
type grants struct {
	deny []string // canonical
	// covered lists the paths in deny that a mount covers. They may be granted together with their directory.
	covered map[string]bool
	rules   []supervisor.Rule
	n       int
	err     error
}

// addPath grants p. A path that does not exist needs no grant. Denied paths at or below p are left out. A denied path
// above p is ignored: the grant is more specific.
func (g *grants) addPath(p string, write bool) {
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return
	}
	g.carvePath(real, write)
}

// carvePath grants p except for what is denied below it. Landlock cannot exclude a part of what it grants, so
// everything else is granted piece by piece. In a directory that is granted in pieces, no entries can be created. The
// directory can be listed. Like all rights, this one also holds further down, so the names in denied directories below
// can be seen, but not their contents.
func (g *grants) carvePath(p string, write bool) {
	if g.err != nil {
		return
	}
	between := false
	for _, d := range g.deny {
		if d == p {
			return
		}
		between = between || isBelow(d, p) && !g.covered[d]
	}
	if !between {
		g.grantPath(p, write)
		return
	}
	entries, err := os.ReadDir(p)
	if err != nil {
		return // do not grant what we cannot read ourselves
	}
	g.rules = append(g.rules, supervisor.Rule{Path: p, Access: llsys.AccessFSReadDir})
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 { // the target of a link has its own grant, or none
			g.carvePath(filepath.Join(p, e.Name()), write)
		}
	}
}

// isBelow reports whether d is inside the directory p.
func isBelow(d, p string) bool {
	return strings.HasPrefix(d, strings.TrimSuffix(p, "/")+"/")
}

// grantPath adds the rule for one path.
func (g *grants) grantPath(p string, write bool) {
	info, err := os.Stat(p)
	if err != nil {
		return
	}
	if g.n++; g.n > maxCarved {
		g.err = fmt.Errorf("a denied path lies between more than %d others, which are granted one by one: move it to "+
			"a directory of its own", maxCarved)
		return
	}
	r := supervisor.Rule{Path: p, Access: accessRead}
	if write {
		r.Access = accessWrite
	}
	if !info.IsDir() {
		r.Access &= accessFile
	}
	g.rules = append(g.rules, r)
}
