package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"
)

// startPlain starts the command without a helper, in its own session and process group.
func startPlain(ctx context.Context, spec Spec, stdout, stderr *os.File) (*Process, error) {
	//nolint:gosec // running commands is its purpose
	cmd := exec.CommandContext(context.WithoutCancel(ctx), spec.Argv[0], spec.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = spec.Dir, spec.Env, stdout, stderr
	if spec.Stdin != nil {
		cmd.Stdin = spec.Stdin
	}
	cmd.SysProcAttr = ownSession()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a command: %w", err)
	}
	stopped := make(chan struct{})
	p := &Process{stop: func() { close(stopped) }, done: make(chan struct{})}
	ended := make(chan error, 1)
	p.wg.Go(func() { ended <- cmd.Wait() })
	p.wg.Go(func() {
		defer close(p.done)
		p.status = watchPlain(cmd.Process.Pid, spec, ended, stopped)
	})
	return p, nil
}

// watchPlain waits for the command and ends what it leaves behind.
func watchPlain(pid int, spec Spec, ended <-chan error, stopped <-chan struct{}) Status {
	var s Status
	select {
	case err := <-ended:
		s = plainStatus(err)
	case <-stopped:
		tree := signalTree(pid, term, nil)
		grace := time.NewTimer(spec.Grace)
		defer grace.Stop()
		select {
		case err := <-ended:
			s = plainStatus(err)
		case <-grace.C:
			tree = signalTree(pid, kill, tree)
			stuck := time.NewTimer(stuckAfter)
			defer stuck.Stop()
			select {
			case err := <-ended:
				s = plainStatus(err)
			case <-stuck.C:
				return Status{Signal: "killed", Stuck: true}
			}
		}
		signalTree(pid, kill, tree)
		return s
	}
	lingerPlain(pid, spec.Linger, stopped)
	if groupAlive(pid) {
		s.Left = 1 // without a helper, the number is not known
		signalTree(pid, kill, nil)
	}
	return s
}

// lingerPlain waits for the rest of the process group, for a limited time.
func lingerPlain(pid int, linger time.Duration, stopped <-chan struct{}) {
	deadline := time.NewTimer(linger)
	defer deadline.Stop()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for groupAlive(pid) {
		select {
		case <-stopped:
			return
		case <-deadline.C:
			return
		case <-poll.C:
		}
	}
}

// plainStatus converts the result of exec.Cmd.Wait.
func plainStatus(err error) Status {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return Status{}
	case errors.As(err, &exit):
		if sig := signalOf(exit.ProcessState); sig != "" {
			return Status{Signal: sig}
		}
		return Status{Code: exit.ExitCode()}
	default:
		return Status{Err: fmt.Errorf("wait for a command: %w", err)}
	}
}
