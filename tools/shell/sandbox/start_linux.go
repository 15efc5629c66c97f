package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// errUncalled is the error of a program that was started as a helper and does not know it.
var errUncalled = errors.New("this program is a helper already: its main does not call sandbox.Main")

// startHelped runs the command below a helper.
func startHelped(ctx context.Context, spec Spec, stdout, stderr *os.File) (*Process, error) {
	if os.Getenv(marker) != "" {
		return nil, errUncalled
	}
	run, err := specFile(spec)
	if err != nil {
		return nil, err
	}
	defer func() { _ = run.Close() }() // in memory, and the helper has its own copy
	controlR, controlW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	defer func() { _ = controlR.Close() }() // the helper's end
	reportR, reportW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make pipe: %w", err), controlW.Close())
	}
	defer func() { _ = reportW.Close() }() // the helper's end
	cmd, err := startCommand(spec, func() *exec.Cmd {
		cmd := exec.CommandContext(context.WithoutCancel(ctx), spec.Helper, Arg, modeSupervise)
		cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = "/", helperEnv(), stdout, stderr
		if spec.Stdin != nil {
			cmd.Stdin = spec.Stdin
		}
		cmd.ExtraFiles = []*os.File{run, controlR, reportW}
		cmd.SysProcAttr = ownSession()
		return cmd
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the helper: %w", err), controlW.Close(), reportR.Close())
	}
	stopped := make(chan struct{})
	p := &Process{stop: func() { close(stopped) }, done: make(chan struct{})}
	reports := make(chan report)
	p.wg.Go(func() { listen(reportR, reports) })
	p.wg.Go(func() {
		defer close(p.done)
		w := watcher{spec: spec, cmd: cmd, control: controlW, reports: reports, stopped: stopped}
		p.status = w.watch()
		w.close(reportR)
	})
	return p, nil
}

// specFile puts the run into a file without a name, which the helper inherits.
func specFile(spec Spec) (*os.File, error) {
	raw, err := json.Marshal(spec)
	if err != nil {
		return nil, fmt.Errorf("write the run: %w", err)
	}
	fd, err := unix.MemfdCreate("run", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("write the run: %w", err)
	}
	f := os.NewFile(uintptr(fd), "run")
	if _, err := f.Write(raw); err != nil {
		return nil, errors.Join(fmt.Errorf("write the run: %w", err), f.Close())
	}
	return f, nil
}

// listen hands on the reports of a helper until it is gone.
func listen(f *os.File, to chan<- report) {
	defer close(to)
	dec := json.NewDecoder(f)
	for {
		var r report
		if dec.Decode(&r) != nil {
			return // the end, or a helper that died in the middle of a word
		}
		to <- r
	}
}

// watcher follows one helper.
type watcher struct {
	spec    Spec
	cmd     *exec.Cmd
	control *os.File
	reports <-chan report
	stopped <-chan struct{}

	starting bool // the command may run
	main     int  // process id of the command
	status   Status
	ended    bool
}

// watch waits for the last report. It does not wait for ever: after the word to stop the helper has its time, then everything we know is killed.
func (w *watcher) watch() Status {
	stopped := w.stopped
	var late <-chan time.Time
	for {
		select {
		case r, ok := <-w.reports:
			if !ok {
				return w.gone()
			}
			w.take(r)
		case <-stopped:
			stopped = nil
			_ = w.control.Close() // a helper that is gone needs no word
			timer := time.NewTimer(w.spec.Grace + 2*stuckAfter)
			defer timer.Stop()
			late = timer.C
		case <-late:
			w.hunt()
			return Status{Signal: "killed", Stuck: true}
		}
	}
}

// take takes in one report.
func (w *watcher) take(r report) {
	switch {
	case r.Starting:
		w.starting = true
	case r.PID > 0:
		w.main = r.PID
	case r.Error != "":
		w.status.Err = errors.New(r.Error)
		if r.Unavailable {
			w.status.Err = fmt.Errorf("%w (%s)", ErrUnavailable, r.Error)
		}
	}
	if r.Ended {
		w.ended = true
		w.status.Code, w.status.Signal, w.status.Left, w.status.Stuck, w.status.TooMany = r.Code, r.Signal, r.Left, r.Stuck, r.TooMany
	}
}

// gone is the end of the reports: the helper is at its end too.
func (w *watcher) gone() Status {
	if !w.ended {
		w.hunt()
		if !w.starting {
			return Status{Signal: "killed", Err: errors.Join(w.status.Err, errors.New("the helper ended without a word about the command"))}
		}
		return Status{Signal: "killed", Vanished: true}
	}
	return w.status
}

// hunt kills what can be found of a run whose helper does not do it.
func (w *watcher) hunt() {
	tree := descendants(w.cmd.Process.Pid)
	if w.main > 0 {
		tree = signalTree(w.main, kill, tree)
	}
	signalTree(w.cmd.Process.Pid, kill, tree)
}

// close waits for the helper, which has nothing to do any more, and lets everything go.
func (w *watcher) close(reports *os.File) {
	late := time.AfterFunc(stuckAfter, func() { _ = w.cmd.Process.Kill() })
	_ = w.cmd.Wait() // its status says nothing: the report did
	late.Stop()
	_ = w.control.Close() // closed already after a stop
	_ = reports.Close()
	for range w.reports { // lets listen end
	}
}
