package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zephbot/zephbot/tools/shell/sandbox/supervisor"
)

// helperProcess is a running helper.
type helperProcess struct {
	cmd     *exec.Cmd
	control *os.File
	reports *os.File
}

// noLinger prevents a helper that was built with the race detector from sleeping a second before it exits.
const noLinger = "GORACE=atexit_sleep_ms=0"

// startHelper starts a helper that executes a plan.
func startHelper(ctx context.Context, helper, mode string, p *supervisor.Plan, can abilities, stdin, stdout,
	stderr *os.File,
) (*helperProcess, error) {
	run, err := planFile(p)
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
	cmd := exec.CommandContext(context.WithoutCancel(ctx), helper, supervisor.Arg, mode)
	cmd.Dir, cmd.Env = "/", []string{supervisor.Marker + "=1", "GOMAXPROCS=2", "GOGC=off", "GOMEMLIMIT=64MiB", noLinger}
	if stdin != nil { // a nil *os.File is not a nil io.Reader
		cmd.Stdin = stdin
	}
	if stdout != nil {
		cmd.Stdout = stdout
	}
	if stderr != nil {
		cmd.Stderr = stderr
	}
	cmd.ExtraFiles = []*os.File{run, controlR, reportW}
	cmd.SysProcAttr = can.startAttributes()
	if err := helpers.startHelper(cmd); err != nil {
		return nil, errors.Join(fmt.Errorf("start the helper: %w", err), controlW.Close(), reportR.Close())
	}
	return &helperProcess{cmd: cmd, control: controlW, reports: reportR}, nil
}

// readReport reads one report.
func (h *helperProcess) readReport() (*supervisor.Report, error) {
	return supervisor.ReadReport(func(b []byte) error {
		_, err := io.ReadFull(h.reports, b)
		return err
	})
}

// close waits for a helper that has nothing left to do, and releases everything.
func (h *helperProcess) close() {
	late := time.AfterFunc(stuckAfter, func() { _ = h.cmd.Process.Kill() })
	helpers.waitHelper(h.cmd)
	late.Stop()
	_ = h.control.Close() // already closed after a stop
	_ = h.reports.Close()
}

// planFile writes the plan to an unnamed file, which the helper inherits.
func planFile(p *supervisor.Plan) (*os.File, error) {
	fd, err := unix.MemfdCreate("run", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("write the run: %w", err)
	}
	f := os.NewFile(uintptr(fd), "run")
	if _, err := f.Write(p.Encode()); err != nil {
		return nil, errors.Join(fmt.Errorf("write the run: %w", err), f.Close())
	}
	return f, nil
}

// startHelped runs the command below a helper.
func startHelped(ctx context.Context, spec Spec, stdout, stderr *os.File) (*Process, error) {
	var can abilities
	if spec.Off && spec.Reading {
		return nil, fmt.Errorf("%w: it is switched off", ErrUnavailable)
	}
	if !spec.Off {
		can = learnAbilities(ctx, spec.Helper)
		if spec.Reading && !can.confinementLevel().Reading() {
			return nil, fmt.Errorf(
				"%w: nothing keeps a command from changing files here: %s", ErrUnavailable, can.confinementLevel(),
			)
		}
		if spec.Require && (can.abi == 0 || !can.calls) {
			return nil, fmt.Errorf("%w: %s", ErrUnavailable, can.reason)
		}
	}
	if spec.Overlay != nil {
		if !can.root || !can.guard {
			return nil, fmt.Errorf("%w: a layer needs a root of its own and seccomp notifications", ErrUnavailable)
		}
		if err := spec.Overlay.makeLayers(spec); err != nil {
			return nil, fmt.Errorf("make a layer: %w", err)
		}
	}
	can.layer = spec.Overlay != nil
	p, err := makePlan(spec, can)
	if err != nil {
		return nil, err
	}
	h, err := startHelper(ctx, spec.Helper, supervisor.ModeRun, p, can, spec.Stdin, stdout, stderr)
	if err != nil {
		return nil, err
	}
	stopped := make(chan struct{})
	proc := &Process{stop: func() { close(stopped) }, done: make(chan struct{})}
	reports := make(chan *supervisor.Report)
	proc.wg.Go(func() { passReports(h, reports) })
	proc.wg.Go(func() {
		defer close(proc.done)
		if spec.Reading {
			spec.Limits = onlyReading(spec, can).Limits
		}
		w := watcher{
			spec:          spec,
			status:        Status{Blind: spec.Reading && !can.guard},
			pid:           can.pid,
			helperProcess: h,
			reports:       reports,
			stopped:       stopped,
		}
		proc.status = w.waitForEnd()
		if spec.Overlay != nil {
			proc.status.Elsewhere = spec.Overlay.writtenRoot(spec)
		}
		h.close()
		for range w.reports { // lets listen end
		}
	})
	return proc, nil
}

// passReports passes on the reports of a helper until it ends.
func passReports(h *helperProcess, to chan<- *supervisor.Report) {
	defer close(to)
	for {
		r, err := h.readReport()
		if err != nil {
			return // the end, or a helper that died in the middle of a report
		}
		to <- r
	}
}

// watcher follows one helper.
type watcher struct {
	*helperProcess

	spec    Spec
	pid     bool // everything ends with the helper
	reports <-chan *supervisor.Report
	stopped <-chan struct{}

	starting bool // the command may be running
	main     int  // process id of the command in the helper's namespace
	status   Status
	ended    bool
}

// waitForEnd waits for the last report, but not forever: after the request to stop, the helper has a limited time, and
// then all known processes are killed.
func (w *watcher) waitForEnd() Status {
	stopped := w.stopped
	var late <-chan time.Time
	for {
		select {
		case r, ok := <-w.reports:
			if !ok {
				return w.goneStatus()
			}
			w.takeReport(r)
		case <-stopped:
			stopped = nil
			_ = w.control.Close() // a helper that has ended needs no request
			timer := time.NewTimer(w.spec.Grace + 2*stuckAfter)
			defer timer.Stop()
			late = timer.C
		case <-late:
			w.huntProcesses()
			return Status{Signal: "killed", Stuck: true}
		}
	}
}

// takeReport processes one report.
func (w *watcher) takeReport(r *supervisor.Report) {
	switch {
	case r.Starting:
		w.starting = true
	case r.PID > 0:
		w.main = r.PID
	case r.Error != "":
		w.status.Err = errors.New(r.Error)
		if r.Missing && w.spec.Require {
			w.status.Err = fmt.Errorf("%w (%s)", ErrUnavailable, r.Error)
		}
	}
	if !r.Ended {
		return
	}
	w.ended = true
	w.status.Internet = r.Tried&supervisor.TriedInternet != 0
	w.status.Sockets = r.Tried&(supervisor.TriedInternet|supervisor.TriedSocket) != 0
	w.status.Moves = r.Tried&supervisor.TriedRename != 0
	w.status.Code, w.status.Left, w.status.Stuck = r.Code, r.Left, r.Stuck
	for _, a := range r.Attempts {
		if !isPrivate(w.spec, a.Path) {
			w.status.Tried = append(w.status.Tried, Attempt{Verb: Verb(a.Verb), Path: a.Path})
		}
	}
	if r.Signal != 0 {
		w.status.Signal = syscall.Signal(r.Signal).String()
	}
	switch {
	case r.Hit&supervisor.HitProcs != 0:
		w.status.Hit = LimitProcs
	case r.Hit&supervisor.HitMemory != 0:
		w.status.Hit = LimitMemory
	default:
		w.status.Hit = w.spec.Limits.limitHit(r.Code, syscall.Signal(r.Signal))
	}
}

// goneStatus returns the status when the reports have ended, and with them the helper.
func (w *watcher) goneStatus() Status {
	if w.ended {
		return w.status
	}
	w.huntProcesses()
	if !w.starting {
		return Status{Signal: "killed", Err: errors.Join(w.status.Err,
			errors.New("the helper ended without a word about the command"))}
	}
	return Status{Signal: "killed", Vanished: true}
}

// huntProcesses kills what can be found of a run whose helper does not do so. In a PID namespace, all
// processes end with the helper.
func (w *watcher) huntProcesses() {
	if w.pid {
		_ = w.cmd.Process.Kill() // it may have ended already
		return
	}
	tree := supervisor.Descendants(w.cmd.Process.Pid)
	if w.main > 0 {
		tree = signalTree(w.main, kill, tree)
	}
	signalTree(w.cmd.Process.Pid, kill, tree)
	helpers.waitHelper(w.cmd) // its processes become ours only after it has ended completely
	if isShielded() {
		helpers.killOrphans()
	}
}
