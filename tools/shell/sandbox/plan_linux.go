package sandbox

import (
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// sharedMemory is the size of a run's /dev/shm, in bytes.
const sharedMemory = 256 << 20

// makePlan returns the helper's plan for spec on a machine with these abilities.
func makePlan(spec Spec, can abilities) (*supervisor.Plan, error) {
	if spec.Reading {
		spec = onlyReading(spec, can)
	}
	p := &supervisor.Plan{
		Argv: spec.Argv, Dir: spec.Dir, Env: spec.Env, Grace: spec.Grace, Linger: spec.Linger,
		UserSpace: can.user, UID: os.Geteuid(), GID: os.Getegid(), PIDSpace: can.pid,
		Rlimits: spec.Limits.resourceLimits(can), Procs: spec.Limits.Procs, Memory: uint64(max(spec.Limits.Memory, 0)),
	}
	if spec.Off {
		return p, nil
	}
	deny := deniedPaths(spec)
	var covered map[string]bool
	if can.root {
		p.Mounts, covered = rootMounts(spec, can, deny)
	}
	p.Confine, p.Keep, p.ABI = true, keptCapabilities, can.abi
	if can.layer && can.user { // what the helper has for the overlay is not for the command
		p.Keep = 0
	}
	if can.abi > 0 {
		if err := landlockRules(p, spec, can, deny, covered); err != nil {
			return nil, err
		}
	}
	if !can.calls {
		return p, nil
	}
	o := filterOptions{
		network: spec.Network,
		unix:    can.unixSockets() && spec.Overlay == nil,
		memory:  can.root,
		pid:     can.pid,
	}
	if spec.Overlay != nil {
		p.Guard, o.tell = &supervisor.Guard{None: true, Layer: spec.Dir}, true
	}
	if spec.Reading {
		p.Keep = keptReading
		o.reading, o.tells, o.root = true, can.guard, can.root
		if can.guard {
			p.Watched = watchedCalls(can.root)
		}
	}
	if spec.Network == NetworkInternet {
		if can.guard {
			p.Guard = newGuard()
		} else {
			o.network = NetworkOff
		}
	}
	var err error
	if p.Filter, err = filterProgram(o); err != nil {
		return nil, fmt.Errorf("make the call filter: %w", err)
	}
	return p, nil
}

// newGuard returns the addresses of this machine, which count as loopback, and its name servers.
func newGuard() *supervisor.Guard {
	g := &supervisor.Guard{}
	if own, err := net.InterfaceAddrs(); err == nil {
		for _, a := range own {
			if n, ok := a.(*net.IPNet); ok {
				g.Own = append(g.Own, shortIP(n.IP))
			}
		}
	}
	raw, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		return g
	}
	for line := range strings.Lines(string(raw)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == "nameserver" {
			if ip := net.ParseIP(f[1]); ip != nil {
				g.Servers = append(g.Servers, shortIP(ip))
			}
		}
	}
	return g
}

// shortIP returns an IPv4 address in 4 bytes, others unchanged.
func shortIP(ip net.IP) []byte {
	if v4 := ip.To4(); v4 != nil {
		return v4
	}
	return ip
}
