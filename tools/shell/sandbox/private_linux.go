package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A reading command (Spec.Reading) that has a root of its own also has a directory of its own.
const (
	privateSize = 64 << 20   // bytes
	nowhere     = "/nowhere" // the home of a command without one
)

// readingLimits are the largest limits of a reading command: nobody was asked about it.
var readingLimits = Limits{ //nolint:gochecknoglobals // a table
	Procs: 128, Memory: 1 << 30, FileSize: privateSize, Files: 1024, CPU: 60 * time.Second,
}

// onlyReading returns the spec of a command that only reads.
func onlyReading(spec Spec, can abilities) Spec {
	spec.Read = slices.Concat(spec.Read, spec.Write)
	spec.Write, spec.Network = nil, NetworkOff
	l := &spec.Limits
	l.Procs, l.Memory = smallerLimit(l.Procs, readingLimits.Procs), smallerLimit(l.Memory, readingLimits.Memory)
	l.FileSize, l.Files = smallerLimit(l.FileSize, readingLimits.FileSize), smallerLimit(l.Files, readingLimits.Files)
	l.CPU = smallerLimit(l.CPU, readingLimits.CPU)
	tmp, home := nowhere, nowhere
	if can.root {
		tmp = privatePlace(spec)
		home = homeIn(tmp)
	}
	spec.Env = append(slices.DeleteFunc(slices.Clone(spec.Env), func(v string) bool {
		return strings.HasPrefix(v, "HOME=") || strings.HasPrefix(v, "TMPDIR=")
	}), "HOME="+home, "TMPDIR="+tmp)
	return spec
}

// smallerLimit returns the smaller of two limits, of which the first may be 0 = unlimited.
func smallerLimit[T int | int64 | time.Duration](v, most T) T {
	if v <= 0 {
		return most
	}
	return min(v, most)
}

// privatePlace returns where the command's own directory is: /tmp, unless something that it may read is there. A grant
// to write would hold for that, too.
func privatePlace(spec Spec) string {
	for _, p := range append(slices.Concat(spec.Read, spec.Write), spec.Dir) {
		if real := Canonical(p); real == "/tmp" || isBelow(real, "/tmp") {
			return "/run/zephbot-tmp"
		}
	}
	return "/tmp"
}

// homeIn returns the home directory in the command's own directory.
func homeIn(place string) string { return filepath.Join(place, "home") }

// isPrivate reports whether an attempt was about what every command may write: its own directory, and devices.
func isPrivate(spec Spec, path string) bool {
	place := privatePlace(spec)
	return path == place || isBelow(path, place) || isBelow(path, "/dev") || isBelow(path, "/proc")
}
