package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// probeTimeout bounds a probe that nobody bounds.
const probeTimeout = 30 * time.Second

// Probe finds out what the kernel enforces, by confining a helper and looking whether it is. helper as in Spec.
func Probe(ctx context.Context, helper string) Level {
	if helper == "" {
		return Level{Reason: "this program is not set up as its own helper"}
	}
	if os.Getenv(marker) != "" {
		return Level{Reason: errUncalled.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, helper, Arg, modeProbe)
	cmd.Dir, cmd.Env = "/", helperEnv()
	out, err := cmd.Output()
	if err != nil {
		return Level{Reason: "the helper does not start: " + err.Error()}
	}
	var level Level
	if err := json.Unmarshal(out, &level); err != nil {
		return Level{Reason: "the helper gave no answer; does main call sandbox.Main?"}
	}
	return level
}

// probeSelf confines this process and prints what holds.
func probeSelf() {
	runtime.LockOSThread() // what is taken away is taken from this thread
	level, err := confine(Spec{})
	if err != nil {
		level.Reason = err.Error()
	}
	if level.Landlock > 0 {
		if f, err := os.Open("/"); !errors.Is(err, fs.ErrPermission) {
			level.Landlock, level.Reason = 0, "Landlock is there but does not hold"
			if err == nil {
				_ = f.Close()
			}
		}
	} else if level.Reason == "" {
		level.Reason = "the kernel has no Landlock, or it is not enabled (lsm=landlock,…)"
	}
	if level.Seccomp {
		if fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); !errors.Is(err, unix.EPERM) {
			level.Seccomp, level.Reason = false, fmt.Sprintf("seccomp is there but does not hold: %v", err)
			if err == nil {
				_ = unix.Close(fd)
			}
		}
	} else if level.Reason == "" {
		level.Reason = "the kernel has no seccomp filter, or there is none for this processor"
	}
	raw, err := json.Marshal(level)
	if err != nil {
		return
	}
	_, _ = os.Stdout.Write(raw)
}
