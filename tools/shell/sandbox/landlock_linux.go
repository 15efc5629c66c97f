package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/landlock-lsm/go-landlock/landlock"
	llsys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// maxABI is the newest Landlock that the rules here are made for.
const maxABI = 7

// maxCarved bounds the entries that are granted one by one because a denied path lies between them.
const maxCarved = 20_000

// systemRead may be read and executed in every sandbox.
func systemRead() []string {
	return []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt", "/nix/store", "/run/current-system",
		"/dev/random", "/dev/urandom",
		"/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/uptime", "/proc/version", "/proc/filesystems", "/proc/sys/kernel", "/proc/sys/vm",
		"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
	}
}

// systemConfig is what may be read of /etc: what programs need, and nothing that may hold a secret (shadow, keys, other services' settings).
func systemConfig() []string {
	names := strings.Fields(`passwd group hosts hostname host.conf resolv.conf nsswitch.conf gai.conf services protocols networks rpc ethertypes
		localtime timezone ld.so.cache ld.so.conf ld.so.conf.d ssl/certs ssl/openssl.cnf ssl/cert.pem pki/tls/certs pki/tls/openssl.cnf
		pki/ca-trust/extracted ca-certificates ca-certificates.conf crypto-policies gnutls alternatives profile profile.d bash.bashrc bashrc
		bash_completion.d inputrc terminfo gitconfig mime.types magic magic.mime os-release debian_version alpine-release redhat-release
		lsb-release fonts locale.alias locale.conf default/locale shells login.defs ssh/ssh_config ssh/ssh_config.d manpath.config
		ImageMagick-6 ImageMagick-7 java-17-openjdk java-21-openjdk java-25-openjdk python3 perl php ruby R papersize xdg vim nanorc
		mke2fs.conf machine-id`)
	paths := make([]string, len(names))
	for i, n := range names {
		paths[i] = filepath.Join("/etc", n)
	}
	return paths
}

// landlockABI is the version of Landlock that can be enforced here; 0 when there is none.
func landlockABI() int {
	v, err := llsys.LandlockGetABIVersion()
	if err != nil || v < 1 {
		return 0
	}
	return min(v, maxABI)
}

// restrict enforces the file and network part of spec for the calling thread, which must not change, and what it starts.
func restrict(spec Spec, abi int) error {
	deny := denied(spec)
	g := grants{abi: abi, deny: deny, covered: cover(spec, deny)}
	for _, p := range append(append(systemRead(), systemConfig()...), spec.Read...) {
		g.add(p, false)
	}
	for _, p := range append([]string{"/dev/null", "/dev/zero", "/dev/full"}, spec.Write...) {
		g.add(p, true)
	}
	if g.err != nil {
		return g.err
	}
	return g.apply(spec.Network != NetworkOff)
}

// handled are the accesses that a version of Landlock can bound.
func handled(abi int) landlock.Config {
	versions := []landlock.Config{landlock.V1, landlock.V2, landlock.V3, landlock.V4, landlock.V5, landlock.V6, landlock.V7}
	return versions[min(abi, len(versions))-1]
}

// apply enforces the rules for the calling thread.
func (g *grants) apply(network bool) error {
	cfg := handled(g.abi)
	attr := llsys.RulesetAttr{HandledAccessFS: uint64(cfg.HandledAccessFS), HandledAccessNet: uint64(cfg.HandledAccessNet), Scoped: uint64(cfg.Scoped)}
	if network {
		attr.HandledAccessNet = 0
	}
	set, err := llsys.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return fmt.Errorf("apply Landlock: make the rules: %w", err)
	}
	defer func() { _ = unix.Close(set) }() // the kernel has the rules, or nothing holds
	for _, r := range g.rules {
		if err := r.addTo(set, attr.HandledAccessFS); err != nil {
			return fmt.Errorf("apply Landlock: grant %s: %w", r.path, err)
		}
	}
	if err := llsys.LandlockRestrictSelf(set, 0); err != nil {
		return fmt.Errorf("apply Landlock: %w", err)
	}
	return nil
}

// Accesses that are granted together.
const (
	accessFile  = llsys.AccessFSExecute | llsys.AccessFSReadFile | llsys.AccessFSWriteFile | llsys.AccessFSTruncate // all that a file can have
	accessRead  = llsys.AccessFSExecute | llsys.AccessFSReadFile | llsys.AccessFSReadDir
	accessWrite = accessRead | llsys.AccessFSWriteFile | llsys.AccessFSTruncate | llsys.AccessFSRemoveDir | llsys.AccessFSRemoveFile | llsys.AccessFSMakeDir |
		llsys.AccessFSMakeReg | llsys.AccessFSMakeSock | llsys.AccessFSMakeFifo | llsys.AccessFSMakeSym | llsys.AccessFSRefer // no devices
)

// rule grants accesses below a path.
type rule struct {
	path   string
	access uint64
}

// addTo adds the rule to a set; what vanished meanwhile needs none.
func (r rule) addTo(set int, handledFS uint64) error {
	fd, err := unix.Open(r.path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }() // opened for its path only
	return llsys.LandlockAddPathBeneathRule(set, &llsys.PathBeneathAttr{AllowedAccess: r.access & handledFS, ParentFd: fd}, 0)
}

// denied are the canonical paths that spec denies. A denied link is denied with what it points to: put in its place, a command's own file would
// be taken for it.
func denied(spec Spec) []string {
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
	abi  int
	deny []string // canonical
	// covered are those of deny that may be granted with the directory they are in, because something lies over them.
	covered map[string]bool
	rules   []rule
	n       int
	err     error
}

// add grants what is at p; what does not exist needs no grant. A denied path at or below p is left out. A denied path above p does not
// count: who grants p knows better.
func (g *grants) add(p string, write bool) {
	real, err := filepath.EvalSymlinks(p)
	if err != nil {
		return
	}
	g.carve(real, write)
}

// carve grants p but for what is denied below. Landlock cannot take out a part of what it grants, so the rest is granted piece by piece.
// New entries cannot be made directly in a directory that is granted in pieces. It can be listed, and because that right reaches down as all
// rights do, so can the denied directories below it: their names are seen, their contents are not.
func (g *grants) carve(p string, write bool) {
	if g.err != nil {
		return
	}
	between := false
	for _, d := range g.deny {
		if d == p {
			return
		}
		between = between || below(d, p) && !g.covered[d]
	}
	if !between {
		g.grant(p, write)
		return
	}
	entries, err := os.ReadDir(p)
	if err != nil {
		return // nothing that we cannot read ourselves is granted
	}
	g.rules = append(g.rules, rule{path: p, access: llsys.AccessFSReadDir})
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 { // what a link points to is granted where it is, or not
			g.carve(filepath.Join(p, e.Name()), write)
		}
	}
}

// below says whether d is inside the directory p.
func below(d, p string) bool {
	return strings.HasPrefix(d, strings.TrimSuffix(p, "/")+"/")
}

// grant adds the rule for one path.
func (g *grants) grant(p string, write bool) {
	info, err := os.Stat(p)
	if err != nil {
		return
	}
	if g.n++; g.n > maxCarved {
		g.err = fmt.Errorf("a denied path lies between more than %d others, which are granted one by one: move it to a directory of its own", maxCarved)
		return
	}
	r := rule{path: p, access: accessRead}
	if write {
		r.access = accessWrite
	}
	if !info.IsDir() {
		r.access &= accessFile
	}
	g.rules = append(g.rules, r)
}
