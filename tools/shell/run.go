package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/disk"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

const (
	drainAfter      = 2 * time.Second        // for readers after the last process we know of is gone
	progressAfter   = 2 * time.Second        // before a person is shown what a command does
	progressEvery   = 500 * time.Millisecond // between two progress lines
	shownInProgress = 200                    // characters
)

// ending says why a run is over.
type ending int

const (
	ended ending = iota
	timedOut
	cancelled
	flooded  // it printed more than it may
	filled   // the disk is full
	vanished // its supervisor was killed from outside
)

// String is the ending as the envelope has it.
func (e ending) String() string {
	return [...]string{"", "timeout", "cancelled", "output_limit", "disk_full", "unknown"}[e]
}

// job is one run.
type job struct {
	text     string
	ws       string
	timeout  time.Duration
	cancel   <-chan struct{} // besides the context; may be nil
	progress func(string)    // may be nil
	bared    bool            // it was allowed because what it may not read is kept away from it
}

// outcome is how a job went.
type outcome struct {
	output
	status sandbox.Status
	ending ending
	full   *tools.Error // why the disk ended it
	held   bool         // something unknown still holds the output
	took   time.Duration
}

// failed says whether a transaction has to be taken back: exit 2 and above or a listed code, a signal, a timeout, a cancel.
func (o *outcome) failed(codes []int) bool {
	if o.ending != ended || o.status.Signal != "" || o.status.Hit != "" {
		return true
	}
	if len(codes) > 0 {
		return slices.Contains(codes, o.status.Code)
	}
	return o.status.Code >= 2
}

// exitCode is nil when a signal ended the command.
func (o *outcome) exitCode() *int {
	if o.status.Signal != "" {
		return nil
	}
	code := o.status.Code
	return &code
}

// execute runs a job to its end. It always comes back: what cannot be killed is left and said.
func (r *Runner) execute(ctx context.Context, j job) (*outcome, error) {
	bars, complete := r.Bars(ctx, j.ws)
	if j.bared && !complete {
		return nil, &tools.Error{
			Category: tools.PolicyBlocked, Denied: true, Message: "the command was not run: the files changed, and what it may not read can no longer be kept away from it",
			Suggestion: "Run it again, so that a person is asked.",
		}
	}
	watch, err := r.opts.Disk.Watch(ctx, j.ws)
	if err != nil {
		return nil, tools.AsError(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make pipe: %w", err)
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make pipe: %w", err), outR.Close(), outW.Close())
	}
	p, err := sandbox.Start(ctx, r.spec(j, bars), outW, errW)
	closeErr := errors.Join(outW.Close(), errW.Close())
	if err = errors.Join(err, closeErr); err != nil {
		if p != nil {
			p.Stop()
			<-p.Done()
		}
		return nil, errors.Join(err, outR.Close(), errR.Close())
	}
	began := r.opts.Now()
	c := newCapture(r.opts.MaxCapture, maxStream, r.opts.MaxOutput, r.opts.SnapshotDir)
	defer c.close()
	var readers sync.WaitGroup
	readers.Go(func() { r.read(c, outR, stdout) })
	readers.Go(func() { r.read(c, errR, stderr) })

	o := &outcome{}
	o.ending, o.full = r.wait(ctx, j, p, c, watch)
	o.status = p.Status()
	o.held = drain(&readers, outR, errR)
	o.took = max(0, r.opts.Now().Sub(began))
	if o.output, err = c.output(); err != nil {
		r.log.Error().Err(err).Msg("output of a command was lost")
		o.text = apart(o.stdout, o.stderr) + "\n[warn] a part of the output was lost: it could not be read back"
	}
	switch {
	case o.status.Err != nil:
		return nil, o.status.Err
	case o.status.Vanished:
		o.ending = vanished
	}
	return o, nil
}

// read takes in one stream; a pipe that was closed over a reader is no news.
func (r *Runner) read(c *capture, f *os.File, which int) {
	if err := c.read(f, which); err != nil && !errors.Is(err, os.ErrClosed) {
		r.log.Warn().Err(err).Msg("output of a command was lost")
	}
}

// wait lets the command run until it ends or has to, and shows what it does meanwhile.
func (r *Runner) wait(ctx context.Context, j job, p *sandbox.Process, c *capture, watch *disk.Watch) (ending, *tools.Error) {
	timer := time.NewTimer(j.timeout)
	defer timer.Stop()
	var watcher sync.WaitGroup
	if j.progress != nil {
		watcher.Go(func() { r.watch(j.progress, p.Done(), c) })
	}
	following, unfollow := context.WithCancel(ctx)
	defer unfollow()
	full := make(chan *tools.Error, 1)
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

// watch shows the last line of what takes long, when it is a new one.
func (r *Runner) watch(show func(string), done <-chan struct{}, c *capture) {
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
			line, _ = shorten(r.opts.Redact(line), shownInProgress)
			show(line)
		}
		select {
		case <-done:
			return
		case <-tick.C:
		}
	}
}

// drain waits for the readers, bounded: a process that got away may hold a pipe for ever. It closes the files.
func drain(readers *sync.WaitGroup, files ...*os.File) (held bool) {
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

// spec says to the sandbox what to run and what it may reach.
func (r *Runner) spec(j job, bars []string) sandbox.Spec {
	argv, env := r.commandLine(j)
	return sandbox.Spec{
		Helper:  r.opts.Helper,
		Argv:    argv,
		Dir:     j.ws,
		Env:     env,
		Read:    append(r.shellDir(), r.opts.ReadPaths...),
		Write:   append([]string{j.ws}, r.opts.AllowedPaths...),
		Deny:    slices.Concat(r.barred(j.ws), bars),
		Network: r.opts.Network,
		Off:     r.opts.Sandbox == SandboxOff,
		Require: r.opts.Sandbox == SandboxRequired,
		Limits:  r.opts.Limits,
	}
}

// foreground runs a command and waits for it.
func (r *Runner) foreground(ctx context.Context, call *tools.Call, text, ws string) (*tools.Result, error) {
	tx, err := r.begin(ctx, text, ws)
	if err != nil {
		return nil, err
	}
	defer tx.close()
	o, err := r.execute(ctx, job{text: text, ws: ws, timeout: r.opts.Timeout, progress: call.Progress, bared: bared(call)})
	if err != nil {
		return nil, startFailure(err)
	}
	var lines []string
	if o.ending != vanished { // nobody knows what of it still runs
		lines = tx.settle(call, o)
	}
	return r.conclude(call, o, tx.warnings, lines), nil
}

// bared reports that a call was allowed without a question because the kernel keeps from it what it may not read.
func bared(call *tools.Call) bool { return call.Trail != nil && call.Trail.Bared }

// startFailure says why nothing ran.
func startFailure(err error) error {
	if errors.Is(err, sandbox.ErrUnavailable) {
		return &tools.Error{Category: tools.PermanentFailure, Message: "the command was not run: the kernel sandbox is required and could not be set up", Err: err}
	}
	if known := new(tools.Error); errors.As(err, &known) {
		return known
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return tools.AsError(err)
	}
	return &tools.Error{Category: tools.PermanentFailure, Message: "the command could not be started", Err: fmt.Errorf("run command: %w", err)}
}

// conclude makes the result of a run. One that could not do its work has a Failure besides what it printed.
func (r *Runner) conclude(call *tools.Call, o *outcome, before, after []string) *tools.Result {
	code := o.exitCode()
	if o.ending != ended && o.ending != flooded { // the signal was ours; the failure says why
		code = nil
	}
	if call.Trail != nil {
		call.Trail.ExitCode = code
		call.Trail.Truncated = call.Trail.Truncated || o.omitted > 0
	}
	failure := r.failure(o, code)
	return &tools.Result{
		Text:      render(o.text, o, before, append(r.remarks(o), after...)),
		Raw:       r.envelope(o, code),
		ExitCode:  code,
		Truncated: o.omitted > 0,
		Error:     code == nil || *code != 0,
		Failure:   failure,
	}
}

func (r *Runner) envelope(o *outcome, code *int) Envelope {
	return Envelope{
		Stdout: o.stdout, Stderr: o.stderr, ExitCode: code, Truncated: o.omitted > 0, Omitted: o.omitted, Signal: o.signal(), Ended: o.ending.String(),
		Millis: o.took.Milliseconds(),
	}
}

// signal is what ended the command, when it was not us.
func (o *outcome) signal() string {
	if o.ending != ended && o.ending != flooded {
		return ""
	}
	return o.status.Signal
}

// failure says why a run could not do its work; nil = it ended by itself, well or not. 126 and 127 are the model's mistakes.
func (r *Runner) failure(o *outcome, code *int) *tools.Error {
	switch {
	case o.ending == timedOut:
		return &tools.Error{Category: tools.Timeout, Message: fmt.Sprintf("the command was stopped after %s", r.opts.Timeout), Suggestion: r.tooLong()}
	case o.ending == filled:
		return &tools.Error{Category: o.full.Category, Message: "the command was stopped: " + o.full.Message, Suggestion: o.full.Suggestion}
	case o.ending == cancelled:
		return &tools.Error{Category: tools.Cancelled, Message: "the command was cancelled while it ran"}
	case o.ending == vanished:
		return &tools.Error{
			Category: tools.PermanentFailure, Message: "[outcome unknown] The command was running when its supervisor was killed from outside, " +
				"as happens when the machine runs out of memory. It was ended; it may have done all of its work, or a part, or nothing.",
			Suggestion: "Look at what is there before you decide to run it again.",
		}
	case code != nil && *code == 126:
		return &tools.Error{
			Category: tools.PolicyBlocked, Message: "exit code 126: a file may not be executed", Mistake: true,
			Suggestion: "Run it with its interpreter, or make it executable first.",
		}
	case code != nil && *code == 127:
		return &tools.Error{
			Category: tools.PermanentFailure, Message: "exit code 127: a command was not found", Mistake: true,
			Suggestion: "Check the name, or use a command that is installed.",
		}
	}
	return nil
}

func (r *Runner) tooLong() string {
	if r.opts.MaxBackgroundRuns > 0 {
		return "Try a smaller step, or run it with background=true."
	}
	return "Try a smaller step."
}

// remarks are what there is to say about how a run ended, besides its exit code.
func (r *Runner) remarks(o *outcome) []string {
	lines := r.overLimit(o)
	if o.status.Left > 0 {
		lines = append(lines, "[warn] processes that it left behind were ended; use background=true for what has to go on")
	}
	if o.status.Stuck || o.held {
		lines = append(lines, "[warn] a process that it started could not be ended and may still run")
	}
	if r.note != "" {
		lines = append(lines, r.note)
	}
	return lines
}

// overLimit says which limit a command met, its value and its key.
func (r *Runner) overLimit(o *outcome) []string {
	const table = "tools.shell.limits."
	l := r.opts.Limits
	var lines []string
	stopped := func(what, key string) { lines = append(lines, "[warn] stopped: "+what+" ("+table+key+")") }
	switch {
	case o.ending == flooded:
		stopped("it printed more than "+bytesText(r.opts.MaxOutput), "output_bytes")
	case o.status.Hit == sandbox.LimitProcs:
		stopped(fmt.Sprintf("more than %d processes at one time", l.Procs), "processes")
	case o.status.Hit == sandbox.LimitMemory:
		stopped("its processes used more than "+bytesText(l.Memory)+" of memory together", "memory_bytes")
	case o.status.Hit == sandbox.LimitFileSize:
		stopped("a file would have become larger than "+bytesText(l.FileSize), "file_bytes")
	case o.status.Hit == sandbox.LimitCPU:
		stopped(fmt.Sprintf("a process used more than %s of processor time", l.CPU), "cpu_seconds")
	}
	met := func(sign, what, key string, limit int64) {
		if limit > 0 && strings.Contains(o.stderr, sign) {
			lines = append(lines, "[note] "+what+" ("+table+key+")")
		}
	}
	met("Too many open files", fmt.Sprintf("a process may have %d files open", l.Files), "open_files", int64(l.Files))
	met("File too large", "a file may have "+bytesText(l.FileSize), "file_bytes", l.FileSize)
	met("fork: retry:", fmt.Sprintf("a command may have %d processes", l.Procs), "processes", int64(l.Procs))
	met("annot allocate memory", "a command may have "+bytesText(l.Memory)+" of memory", "memory_bytes", l.Memory)
	return lines
}

// bytesText is a number of bytes for people: whole units where there are any.
func bytesText(n int64) string {
	units := []string{"bytes", "KiB", "MiB", "GiB"}
	unit := 0
	for unit+1 < len(units) && n >= 1024 && n%1024 == 0 {
		n, unit = n/1024, unit+1
	}
	for unit+1 < len(units) && n >= 10*1024 {
		n, unit = n/1024, unit+1
	}
	return fmt.Sprintf("%d %s", n, units[unit])
}

// render is the text for the model: what was printed, how it ended, and notes before and after.
func render(body string, o *outcome, before, after []string) string {
	if strings.TrimSpace(body) == "" {
		body = "(no output)"
	}
	lines := append(slices.Clone(before), body)
	switch code := o.exitCode(); {
	case o.signal() != "":
		lines = append(lines, "[killed by signal: "+o.signal()+"]")
	case code != nil && *code != 0 && o.ending == ended:
		lines = append(lines, fmt.Sprintf("[exit code %d]", *code))
	}
	return strings.Join(append(lines, after...), "\n")
}
