package shell

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
	"github.com/zephbot/zephbot/tools/workspace"
)

const (
	drainAfter      = 2 * time.Second        // for the readers, after the last known process has ended
	progressAfter   = 2 * time.Second        // before a person sees what a command does
	progressEvery   = 500 * time.Millisecond // between two progress lines
	shownInProgress = 200                    // characters
)

// ending says why a run ended.
type ending int

const (
	ended ending = iota
	timedOut
	cancelled
	flooded  // it printed more than allowed
	filled   // the disk is full
	vanished // its supervisor was killed by somebody else
)

// String returns the name used in the envelope.
func (e ending) String() string {
	return [...]string{"", "timeout", "cancelled", "output_limit", "disk_full", "unknown"}[e]
}

// permit says why a command may run, and with it, how.
type permit struct {
	bared    bool // because the kernel hides from it the files that it must not read
	reading  bool // only where it can change nothing and reach nobody
	approved bool // by a person, now or as one of several that look like it
	exact    bool // a person approved exactly this text
}

// permitOf returns the permit of a call.
func permitOf(call *tools.Call) permit {
	return permit{
		bared:    wasBared(call),
		reading:  isReading(call),
		approved: call.Trail.Approved(),
		exact:    isExact(call),
	}
}

// job is one run.
type job struct {
	permit

	text     string
	ws       string
	timeout  time.Duration
	cancel   <-chan struct{} // in addition to the context; may be nil
	progress func(string)    // may be nil
	read     []string        // directories that it may read in addition
	stream   int             // bytes that are kept of each stream; 0 = maxStream
	home     string          // its home directory; "" = ws
	// layer is where it writes instead of its directory, at most most bytes, without network; nil = it is no preview.
	layer *sandbox.Overlay
	most  int64
}

// outcome is the result of a job.
type outcome struct {
	output
	status sandbox.Status
	ending ending
	full   *tools.Error // the error, if the disk guard ended it
	held   bool         // an unknown process still holds the output open
	took   time.Duration
}

// needsRollback reports whether a transaction has to be rolled back: after exit code 2 or above or a listed code, a
// signal, a timeout or a cancellation.
func (o *outcome) needsRollback(codes []int) bool {
	if o.ending != ended || o.status.Signal != "" || o.status.Hit != "" {
		return true
	}
	if len(codes) > 0 {
		return slices.Contains(codes, o.status.Code)
	}
	return o.status.Code >= 2
}

// exitCode returns nil when a signal ended the command.
func (o *outcome) exitCode() *int {
	if o.status.Signal != "" {
		return nil
	}
	code := o.status.Code
	return &code
}

// executeJob runs a job to its end. It always returns: a process that cannot be killed is left behind and reported.
func (r *Runner) executeJob(ctx context.Context, j job) (*outcome, error) {
	bars, complete := r.Bars(ctx, j.ws)
	if j.bared && !complete {
		return nil, tools.Refused(reason.New(reason.FilesChanged), "Run it again, so that a person is asked.")
	}
	var watch *workspace.Watch
	if !j.reading {
		var err error
		if watch, err = r.opts.Disk.Watch(ctx, j.ws); err != nil {
			return nil, tools.AsError(err)
		}
	}
	if !j.approved && !j.reading {
		var err error
		if j.home, err = r.makeHome(); err != nil {
			return nil, err
		}
		defer r.removeHome(j.home)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make pipe: %w", err), outR.Close(), outW.Close())
	}
	p, err := sandbox.Start(ctx, r.sandboxSpec(j, bars), outW, errW)
	closeErr := errors.Join(outW.Close(), errW.Close())
	if err = errors.Join(err, closeErr); err != nil {
		if p != nil {
			p.Stop()
			<-p.Done()
		}
		return nil, errors.Join(err, outR.Close(), errR.Close())
	}
	began := r.opts.Now()
	c := newCapture(r.opts.MaxCapture, orDefault(j.stream, maxStream), r.opts.MaxOutput, r.opts.SnapshotDir)
	defer c.close()
	var readers sync.WaitGroup
	readers.Go(func() { r.readPipe(c, outR, stdout) })
	readers.Go(func() { r.readPipe(c, errR, stderr) })

	o := &outcome{}
	o.ending, o.full = r.waitForEnd(ctx, j, p, c, watch)
	o.status = p.Status()
	o.held = drainReaders(&readers, outR, errR)
	o.took = max(0, r.opts.Now().Sub(began))
	if o.output, err = c.capturedOutput(); err != nil {
		r.log.Error().Err(err).Msg("output of a command was lost")
		o.text = joinApart(o.stdout, o.stderr) + "\n[warn] a part of the output was lost: it could not be read back"
	}
	switch {
	case o.status.Err != nil:
		return nil, o.status.Err
	case o.status.Vanished:
		o.ending = vanished
	}
	return o, nil
}

// makeHome makes an empty home directory for a command that nobody approved. Programs read their configuration at home,
// and some of it names other programs; what somebody has written into the workspace is not to decide that.
func (r *Runner) makeHome() (string, error) {
	dir, err := os.MkdirTemp(r.opts.SnapshotDir, "zephbot-home-")
	if err != nil {
		return "", fmt.Errorf("make a home directory: %w", err)
	}
	return filepath.EvalSymlinks(dir)
}

// removeHome removes what makeHome has made. A command may have left directories there that cannot be written.
func (r *Runner) removeHome(dir string) {
	err := os.RemoveAll(dir)
	if err != nil {
		opened := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
			if err == nil && e.IsDir() {
				err = os.Chmod(path, 0o700)
			}
			return err
		})
		err = errors.Join(opened, os.RemoveAll(dir))
	}
	if err != nil {
		r.log.Warn().Err(err).Msg("the home directory of a command cannot be removed")
	}
}

// readPipe reads one stream. An error because the pipe was closed meanwhile is ignored.
func (r *Runner) readPipe(c *capture, f *os.File, which int) {
	if err := c.readStream(f, which); err != nil && !errors.Is(err, os.ErrClosed) {
		r.log.Warn().Err(err).Msg("output of a command was lost")
	}
}

// waitForEnd waits until the command ends or has to be ended, and reports progress.
func (r *Runner) waitForEnd(ctx context.Context, j job, p *sandbox.Process, c *capture,
	watch *workspace.Watch,
) (ending, *tools.Error) {
	timer := time.NewTimer(j.timeout)
	defer timer.Stop()
	var watcher sync.WaitGroup
	if j.progress != nil {
		watcher.Go(func() { r.watchOutput(j.progress, p.Done(), c) })
	}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	full := make(chan *tools.Error, 2)
	if j.layer != nil {
		watcher.Go(func() {
			if over := watchGrowth(following, j.most, j.layer.Upper, j.layer.Beside); over != nil {
				full <- over
			}
		})
	}
	watcher.Go(func() {
		if over := watch.Follow(following); over != nil {
			full <- tools.AsError(over)
		}
	})
	var why *tools.Error
	end := ended
	select {
	case <-p.Done():
	case <-timer.C:
		end = timedOut
	case <-ctx.Done():
		end = cancelled
		if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
			end = timedOut
		}
	case <-j.cancel:
		end = cancelled
	case <-c.flood:
		end = flooded
	case why = <-full:
		end = filled
	}
	unfollow()
	if end != ended {
		p.Stop()
		<-p.Done()
	}
	watcher.Wait()
	return end, why
}

// watchOutput reports the last line of a command that takes long, whenever it changes.
func (r *Runner) watchOutput(show func(string), done <-chan struct{}, c *capture) {
	first := time.NewTimer(progressAfter)
	defer first.Stop()
	select {
	case <-done:
		return
	case <-first.C:
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	shown := ""
	for {
		if line := c.lastLine(); line != "" && line != shown {
			shown = line
			line, _ = shortenText(r.opts.Redact(line), shownInProgress)
			show(line)
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

// drainReaders waits for the readers for a limited time, because a process that escaped may hold a pipe
// open forever. It closes the files.
func drainReaders(readers *sync.WaitGroup, files ...*os.File) (held bool) {
	done := make(chan struct{})
	var waiter sync.WaitGroup
	waiter.Go(func() { // ends with the readers, which end at the latest when the files are closed below
		readers.Wait()
		close(done)
	})
	timer := time.NewTimer(drainAfter)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		held = true
	}
	for _, f := range files {
		_ = f.Close() // nothing was written
	}
	waiter.Wait()
	return held
}

// sandboxSpec returns the sandbox specification: what to run and what it may reach.
func (r *Runner) sandboxSpec(j job, bars []string) sandbox.Spec {
	argv, env := r.commandLine(j)
	limits := r.opts.Limits
	if j.layer != nil && (limits.FileSize <= 0 || limits.FileSize > j.most) {
		limits.FileSize = j.most
	}
	return sandbox.Spec{
		Helper:  r.opts.Helper,
		Argv:    argv,
		Dir:     j.ws,
		Env:     env,
		Read:    slices.Concat(r.programPaths(j), r.opts.ReadPaths, r.opts.Toolchains.Read, j.read),
		Write:   slices.Concat([]string{j.ws}, homeDirs(j), r.opts.AllowedPaths),
		Deny:    slices.Concat(r.barredPaths(j.ws), bars, r.opts.Toolchains.Deny),
		Network: r.opts.Network,
		Off:     r.opts.Sandbox == SandboxOff,
		Reading: j.reading,
		Require: r.opts.Sandbox == SandboxRequired,
		Limits:  limits,
		Overlay: j.layer,
	}
}

// homeDirs are the home directories of a job besides its workspace.
func homeDirs(j job) []string {
	if j.home == "" {
		return nil
	}
	return []string{j.home}
}

// runForeground runs a command and waits for it.
func (r *Runner) runForeground(ctx context.Context, call *tools.Call, text, ws string) (*tools.Result, error) {
	tx, err := r.beginTransaction(ctx, call, text, ws)
	if err != nil {
		return nil, err
	}
	defer tx.close()
	var o *outcome
	if call.Layer != "" { // it ran already, when a person was asked
		if o, err = r.applyLayer(ctx, call, ws); err == nil {
			call.Trail.Layer = call.Layer
		}
	} else {
		o, err = r.executeJob(ctx, job{
			text: text, ws: ws, timeout: r.opts.Timeout, progress: call.Progress,
			permit: permitOf(call), read: r.readableDirs(call.Origin),
		})
	}
	if err != nil {
		return nil, startFailure(err)
	}
	if why := o.tooLittle(ws); isReading(call) && why.Code != "" {
		return nil, &tools.Walled{Reason: why}
	}
	var lines []string
	if note := o.hushedNote(ws); isReading(call) && note != "" {
		lines = append(lines, note)
	}
	if o.ending != vanished { // otherwise parts of it may still be running
		lines = append(lines, tx.compareAfter(call, o)...)
	}
	return r.concludeRun(call, o, tx.warnings, lines), nil
}

// readableDirs returns the directories that the commands of a conversation may read in addition.
func (r *Runner) readableDirs(o tools.Origin) []string {
	if r.opts.Readable == nil {
		return nil
	}
	return r.opts.Readable(o)
}

// wasBared reports whether a call was allowed without a question because the kernel hides
// from it what it must not read.
func wasBared(call *tools.Call) bool { return call.Trail != nil && call.Trail.Bared }

// isExact reports whether a person approved exactly this call.
func isExact(call *tools.Call) bool { return call.Trail != nil && call.Trail.ApprovedBy != "" }

// startFailure returns the error of a command that was not started.
func startFailure(err error) error {
	if errors.Is(err, sandbox.ErrUnavailable) {
		return &tools.Error{
			Category: tools.PermanentFailure,
			Message:  "the command was not run: the kernel sandbox is required and could not be set up", Err: err,
		}
	}
	if known := new(tools.Error); errors.As(err, &known) {
		return known
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return tools.AsError(err)
	}
	return &tools.Error{
		Category: tools.PermanentFailure, Message: "the command could not be started",
		Err: fmt.Errorf("run command: %w", err),
	}
}
