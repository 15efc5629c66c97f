package shell

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell/sandbox"
)

// concludeRun returns the result of a run. If the run could not do its work, the result
// has a Failure besides the output.
func (r *Runner) concludeRun(call *tools.Call, o *outcome, before, after []string) *tools.Result {
	code := o.exitCode()
	if o.ending != ended && o.ending != flooded { // the signal was ours; the failure says why
		code = nil
	}
	if call.Trail != nil {
		call.Trail.ExitCode = code
		call.Trail.Truncated = call.Trail.Truncated || o.omitted > 0
	}
	failure := r.runError(o, code)
	return &tools.Result{
		Text:      renderResult(o.text, o, before, append(r.endRemarks(o), after...)),
		Raw:       r.resultEnvelope(o, code),
		ExitCode:  code,
		Truncated: o.omitted > 0,
		Error:     code == nil || *code != 0,
		Failure:   failure,
	}
}

func (r *Runner) resultEnvelope(o *outcome, code *int) Envelope {
	return Envelope{
		Stdout: o.stdout, Stderr: o.stderr, ExitCode: code, Truncated: o.omitted > 0, Omitted: o.omitted,
		Signal: o.endSignal(), Ended: o.ending.String(),
		Millis: o.took.Milliseconds(),
	}
}

// endSignal returns the signal that ended the command; "" if it was ours or there was none.
func (o *outcome) endSignal() string {
	if o.ending != ended && o.ending != flooded {
		return ""
	}
	return o.status.Signal
}

// runError returns the error of a run that could not do its work; nil if the command ended by itself, whatever its exit
// code. Exit codes 126 and 127 are the model's mistakes.
func (r *Runner) runError(o *outcome, code *int) *tools.Error {
	switch {
	case o.ending == timedOut:
		return &tools.Error{Category: tools.Timeout, Message: fmt.Sprintf("the command was stopped after %s",
			r.opts.Timeout), Suggestion: r.tooLong()}
	case o.ending == filled:
		// Not the category of a call that was refused before it ran: nobody may take this for "nothing happened".
		return &tools.Error{
			Category:   tools.PermanentFailure,
			Message:    "the command was stopped while it ran, and may have done a part of its work: " + o.full.Message,
			Suggestion: o.full.Suggestion,
		}
	case o.ending == cancelled:
		return &tools.Error{Category: tools.Cancelled, Message: "the command was cancelled while it ran"}
	case o.ending == vanished:
		return &tools.Error{
			Category: tools.PermanentFailure,
			Message: "[outcome unknown] The command was running when its supervisor was killed from outside, " +
				"as happens when the machine runs out of memory. It was ended; it may have done all of its work, or " +
				"a part, or nothing.",
			Suggestion: "Look at what is there before you decide to run it again.",
		}
	case code != nil && *code == 126:
		return &tools.Error{
			Category: tools.PolicyBlocked, Mistake: true, Begun: true,
			Message:    "exit code 126: a file may not be executed; what came before it may have been done",
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

// endRemarks returns notes about how a run ended, besides its exit code.
func (r *Runner) endRemarks(o *outcome) []string {
	lines := r.overLimit(o)
	if o.status.Left > 0 {
		lines = append(lines,
			"[warn] processes that it left behind were ended; use background=true for what has to go on")
	}
	if o.status.Stuck || o.held {
		lines = append(lines, "[warn] a process that it started could not be ended and may still run")
	}
	if r.note != "" {
		lines = append(lines, r.note)
	}
	return lines
}

// overLimit returns notes about the limit that a command reached, with its value and key.
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

// bytesText formats a number of bytes for people, in whole units if possible.
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

// renderResult returns the text for the model: the output, how the run ended, and the notes before and after.
func renderResult(body string, o *outcome, before, after []string) string {
	if strings.TrimSpace(body) == "" {
		body = "(no output)"
	}
	lines := append(slices.Clone(before), body)
	switch code := o.exitCode(); {
	case o.endSignal() != "":
		lines = append(lines, "[killed by signal: "+o.endSignal()+"]")
	case code != nil && *code != 0 && o.ending == ended:
		lines = append(lines, fmt.Sprintf("[exit code %d]", *code))
	}
	return strings.Join(append(lines, after...), "\n")
}
