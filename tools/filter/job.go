package filter

import "fmt"

// job is one text while the matching rules are applied.
type job struct {
	lines    []line // the result of the rules so far
	exit     *int
	doubt    bool // exit code 0 does not mean that the command succeeded
	limited  bool // other commands also printed into the text: only lines that a rule names may be dropped
	named    int  // lines that look like a failure; counted only if guarded
	failures *failures
	covered  []bool // lines of the input that the output contains in merged form
	total    int    // lines of the input
}

// runFailed reports whether the run failed. A run without an exit code counts as failed.
func (j *job) runFailed() bool { return j.exit == nil || *j.exit != 0 }

// isGuarded reports whether lines of failure must be kept.
func (j *job) isGuarded() bool { return j.runFailed() || j.doubt }

// isBlind reports whether the run failed and no line says why. Only what a rule names as noise may be dropped then.
func (j *job) isBlind() bool { return j.runFailed() && j.named == 0 }

func (j *job) coverSource(src int32) {
	if src < 0 {
		return
	}
	if j.covered == nil {
		j.covered = make([]bool, j.total)
	}
	j.covered[src] = true
}

// failureVerdict returns a sentence about a failed run whose output does not say that it failed.
func (j *job) failureVerdict() string {
	if j.exit == nil {
		return "(the command failed: it did not end by itself)"
	}
	return fmt.Sprintf("(the command failed: exit code %d)", *j.exit)
}

// strategy shortens a text. It must not change j.lines, must keep the order of lines, and returns Fallback if it found
// nothing to do.
type strategy interface {
	applyTo(j *job) ([]line, Confidence)
	// isNaming reports whether the strategy drops only lines that are named by patterns or recognised one by one, so
	// that foreign lines in the text are safe.
	isNaming() bool
}

// runRules applies the rules in order.
func (j *job) runRules(rules []*rule) ([]line, Confidence) {
	level := None
	for _, r := range rules {
		lines, got := r.strategy.applyTo(j)
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
