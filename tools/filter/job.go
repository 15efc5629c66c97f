package filter

import "fmt"

// job is one text on its way through the rules that match.
type job struct {
	lines    []line // what the stages before left
	exit     *int
	doubt    bool // exit code 0 does not say that the command succeeded
	limited  bool // other commands printed into the text: only lines that a rule names may go
	named    int  // lines that look like a failure; counted only when guarded
	failures *failures
	covered  []bool // lines of the input that stand in the output as the repetition of another one
	total    int    // lines of the input
}

// failed says whether the run is known to have failed. Without an exit code it has.
func (j *job) failed() bool { return j.exit == nil || *j.exit != 0 }

// guarded says whether lines of failure have to survive.
func (j *job) guarded() bool { return j.failed() || j.doubt }

// blind says that the run failed and no line says why: then only what a rule names as noise may go.
func (j *job) blind() bool { return j.failed() && j.named == 0 }

func (j *job) cover(src int32) {
	if src < 0 {
		return
	}
	if j.covered == nil {
		j.covered = make([]bool, j.total)
	}
	j.covered[src] = true
}

// verdict is the sentence about a failed run whose output does not say so.
func (j *job) verdict() string {
	if j.exit == nil {
		return "(the command failed: it did not end by itself)"
	}
	return fmt.Sprintf("(the command failed: exit code %d)", *j.exit)
}

// strategy shortens a text. It must not change j.lines, and gives Fallback when it found nothing to do. Line order is
// the input's.
type strategy interface {
	apply(j *job) ([]line, Confidence)
	// names says whether it drops only lines that are named by patterns or recognised one by one, so that foreign lines
	// in the text are safe.
	names() bool
}

// run applies the rules in order.
func (j *job) run(rules []*rule) ([]line, Confidence) {
	level := None
	for _, r := range rules {
		lines, got := r.strategy.apply(j)
		if got == Fallback || got == None {
			continue
		}
		j.lines = lines
		if level == None {
			level = got
		}
		level = level.Worst(got)
	}
	if level == None {
		level = Fallback
	}
	return j.lines, level
}
