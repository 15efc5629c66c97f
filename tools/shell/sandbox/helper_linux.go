package sandbox

import (
	"encoding/json"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// What a helper is started for: the second argument.
const (
	modeSupervise = "supervise"
	modeProbe     = "probe"
)

// Files that a helper inherits.
const (
	fdSpec    = 3
	fdControl = 4
	fdReport  = 5
)

// marker in the environment of a helper says that the program must not start another: it did not call Main.
const marker = "ZEPHBOT_SANDBOX_HELPER"

// report is what a helper says on its way, one JSON value each. The last one has Ended set.
type report struct {
	Starting    bool   `json:"starting,omitempty"` // from here on the command may run
	PID         int    `json:"pid,omitempty"`      // of the command
	Error       string `json:"error,omitempty"`
	Unavailable bool   `json:"unavailable,omitempty"` // Error is that of a required sandbox
	Ended       bool   `json:"ended,omitempty"`
	Code        int    `json:"code,omitempty"`
	Signal      string `json:"signal,omitempty"`
	Left        int    `json:"left,omitempty"`
	Stuck       bool   `json:"stuck,omitempty"`
	TooMany     bool   `json:"too_many,omitempty"`
}

// Main reports whether the program was started as a helper; then its work is done and main must return. It has to come before anything that
// opens files or starts goroutines. args are os.Args.
func Main(args []string) bool {
	if len(args) < 3 || args[1] != Arg || os.Getenv(marker) == "" {
		return false
	}
	switch args[2] {
	case modeSupervise:
		supervise()
	case modeProbe:
		probeSelf()
	default:
		return false
	}
	return true
}

// helperEnv is all that a helper sees of the environment. A helper built with the race detector must not linger for a second at its end.
func helperEnv() []string { return []string{marker + "=1", "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"} }

// readSpec reads what the run is.
func readSpec() (Spec, error) {
	unix.CloseOnExec(fdSpec)
	var spec Spec
	var st unix.Stat_t
	if err := unix.Fstat(fdSpec, &st); err != nil {
		return spec, fmt.Errorf("find the run: %w", err)
	}
	raw := make([]byte, st.Size)
	if n, err := unix.Pread(fdSpec, raw, 0); err != nil || n != len(raw) {
		return spec, fmt.Errorf("read the run: %d of %d bytes: %w", n, len(raw), err)
	}
	if err := json.Unmarshal(raw, &spec); err != nil {
		return spec, fmt.Errorf("read the run: %w", err)
	}
	return spec, nil
}

// say writes a report; nobody is left to tell when that fails.
func say(f *os.File, r report) {
	raw, err := json.Marshal(r)
	if err != nil {
		return
	}
	_, _ = f.Write(append(raw, '\n'))
}

// confine takes away from the calling thread, and from what it starts, what spec does not grant, as far as the kernel goes; all of it when spec
// requires it. The goroutine must be locked to its thread.
func confine(spec Spec) (Level, error) {
	var level Level
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil { // Landlock and seccomp ask for it
		return level, fmt.Errorf("give up new privileges: %w", err)
	}
	abi := landlockABI()
	if abi > 0 {
		if err := restrict(spec, abi); err != nil {
			return level, err
		}
		level.Landlock = abi
	} else if spec.Require {
		return level, fmt.Errorf("%w: the kernel has no Landlock", ErrUnavailable)
	}
	dropCapabilities()
	if err := filterCalls(spec.Network != NetworkOff); err == nil {
		level.Seccomp = true
	} else if spec.Require {
		return level, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return level, nil
}

// keptCapabilities are what root still may inside the sandbox: deal with files of other owners in the directories that are granted.
const keptCapabilities = 1<<unix.CAP_CHOWN | 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_FOWNER | 1<<unix.CAP_FSETID

// dropCapabilities leaves keptCapabilities at most. It fails where there is nothing to drop.
func dropCapabilities() {
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
	for c := uintptr(0); c <= 63; c++ {
		if keptCapabilities&(uint64(1)<<c) == 0 {
			_ = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return
	}
	data[0].Permitted &= keptCapabilities
	data[0].Effective &= keptCapabilities
	data[0].Inheritable = 0
	data[1] = unix.CapUserData{}
	_ = unix.Capset(&head, &data[0])
}
