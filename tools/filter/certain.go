package filter

import "strings"

// sureWords returns the words that mean a failure even when the exit code is 0. Every entry contains one of
// failureWords.
func sureWords() []string {
	return []string{
		"panic:", "panicked at", "fatal:", "fatal error", "traceback (most", "segmentation fault", "core dumped",
		"killed", "denied", "refused", "rejected", "not found", "no such file", "cannot ", "can't ", "could not ",
		"couldn't ", "unable to ", "timed out", "out of memory", "oomkill", "no space left", "crashloop", "backoff",
		"evicted", "unhealthy", "notready", "conflict (", "data race", "deadlock", "exited with", "returned non-zero",
		"err!", "sigsegv", "sigabrt", "undefined:", "undefined reference", "not ok", "*** [", "unauthorized",
		"forbidden", "assertionerror",
	}
}

// isCertain reports whether a line means a failure although the command ended with exit code 0: make -k and -i, a hook
// that refused, a crash loop among healthy pods. It is stricter than has, because a successful run may well mention
// errors.
func (f *failures) isCertain(l *line) bool {
	bits := f.scanLine(l)
	if bits&failureBits == 0 {
		return false
	}
	body := l.bodyText()
	// the last condition excludes lines about what configure and cmake look for
	if !f.judgeText(bits, body) || isWarning(bits, body) || beginsWith(trimBlanks(body), "-- ", "checking ") {
		return false
	}
	return bits&sureBit != 0 || bits&3 != 0 && f.speaksOfFailure(body) || openingOf(body) >= opensLong
}

// speaksOfFailure reports whether error or fail occurs in a line as a word and not in a name: it does in "2 errors" and
// "TypeError: x", but not in errors.go and --fail-fast.
func (f *failures) speaksOfFailure(body string) bool {
	found := false
	f.look.scanAt(body, func(bits uint64, end int) {
		switch {
		case bits&1 != 0:
			found = found || standsAlone(body, end-len("error"), end)
		case bits&2 != 0:
			found = found || standsAlone(body, end-len("fail"), end)
		}
	})
	return found
}

// standsAlone reports whether the word from start, which continues with letters from end, is not part of a name.
func standsAlone(body string, start, end int) bool {
	for end < len(body) && lowerByte(body[end]) >= 'a' && lowerByte(body[end]) <= 'z' {
		end++
	}
	next, after := byteAt(body, end), byteAt(body, end+1)
	if next == ':' && after != ':' {
		return true // TypeError: x
	}
	before := byteAt(body, start-1)
	if wordByte(before) || before == '-' || before == '/' {
		return false
	}
	return !wordByte(next) && next != '-' && next != '/' || next == '.' && (after == ' ' || after == 0)
}

// byteAt returns the byte of s at i; 0 outside of s.
func byteAt(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}

// isVerdict reports whether a certain line is a program's statement about its own run. Such a run has failed, whatever
// its exit code.
func isVerdict(body string) bool {
	t := trimBlanks(body)
	return strings.Contains(t, "*** [") || strings.HasSuffix(t, "(ignored)") ||
		beginsWith(t, "! [", "--- FAIL", "FAIL\t", "not ok ", "npm ERR!", "npm error", "error: could not compile")
}

// watchPassed marks the lines of a run with exit code 0 that must be kept. It returns how many lines look like a
// failure, and whether the success of the run is doubtful.
func (f *failures) watchPassed(lines []line, r reading) (n int, doubt bool) {
	left := 0
	if r.speaks {
		f.lookAll(lines)
	}
	for i := range lines {
		l := &lines[i]
		looks := false
		if r.speaks {
			looks = f.isCertain(l)
		} else {
			looks = isComplaint(l) && f.isFailureLine(l)
		}
		switch {
		case looks:
			l.keep = true
			n++
			doubt = doubt || r.speaks && isVerdict(l.bodyText())
			if openingOf(l.bodyText()) >= opensLong {
				left = blockLines
			}
		case left == 0:
		case isBoundary(l), isBlank(l.bodyText()):
			left = 0
		default:
			l.keep = true
			left--
		}
	}
	return n, doubt
}

// isComplaint reports whether a line of a search program is its own message rather than a match: "find: 'x': Permission
// denied".
func isComplaint(l *line) bool {
	if l.off > 0 {
		return true
	}
	name, _, ok := strings.Cut(l.bodyText(), ": ")
	return ok && isSearch([]string{name, "grep"})
}

// markAnswers marks what the remote side of a push said when something went wrong, except its progress, because the
// text of a hook can have any form.
func markAnswers(lines []line, wrong bool) {
	for i := 0; i < len(lines) && !wrong; i++ {
		wrong = lines[i].keep && strings.HasPrefix(trimBlanks(lines[i].bodyText()), "! [")
	}
	for i := range lines {
		said, ok := strings.CutPrefix(lines[i].bodyText(), "remote: ")
		if ok && wrong && !isBlank(said) && !beginsWith(said, "Enumerating ", "Counting ", "Compressing ", "Total ",
			"Resolving ", "Writing ", "Receiving ") {
			lines[i].keep = true
		}
	}
}

// printsTables reports whether a command prints tables of objects with a state: pods, containers, services.
func (r reading) printsTables() bool {
	for _, spellings := range r.producers {
		for _, one := range spellings {
			if beginsWith(
				one, "kubectl ", "oc ", "docker ", "podman ", "docker-compose ", "systemctl ", "helm ", "nomad ",
			) {
				return true
			}
		}
	}
	return false
}

// markStates marks the rows of a table that show a problem.
func markStates(lines []line) (n int) {
	for i := range lines {
		if isUnwell(lines[i].bodyText()) {
			lines[i].keep = true
			n++
		}
	}
	return n
}

// isUnwell reports whether a row of a table has a state that needs attention. Cells are
// separated by two blanks or a tab.
func isUnwell(row string) bool {
	cells, short, done := 0, false, false
	for row != "" {
		row = trimBlanks(row)
		end := strings.Index(row, "  ")
		if tab := strings.IndexByte(row, '\t'); tab >= 0 && (end < 0 || tab < end) {
			end = tab
		}
		if end < 0 {
			end = len(row)
		}
		cell := row[:end]
		row = row[end:]
		if cells++; cells > 1 && badState(cell) {
			return true
		}
		short = short || cells > 1 && lacksReady(cell)
		done = done || cell == "Completed" || cell == "Succeeded"
	}
	return short && !done && cells > 2
}

// badState reports whether a cell names a state in which something does not run as it should.
func badState(cell string) bool {
	cell = strings.TrimPrefix(cell, "Init:")
	switch cell {
	case "Error", "Pending", "Failed", "failed", "Unknown", "Terminating", "Evicted", "OOMKilled", "NotReady",
		"CrashLoopBackOff", "ContainerCannotRun", "DeadlineExceeded", "Dead", "dead", "StartError", "NodeLost", "Lost",
		"degraded", "Degraded", "unhealthy":
		return true
	}
	switch {
	case beginsWith(cell, "Err", "Create", "Invalid", "ImagePull", "RunContainer") &&
		(strings.HasSuffix(cell, "Error") || strings.HasSuffix(cell, "BackOff") || strings.HasSuffix(cell, "Pull") ||
			strings.HasSuffix(cell, "Name")):
		return true
	case beginsWith(cell, "Restarting (", "NotReady,", "Ready,SchedulingDisabled"),
		strings.Contains(cell, "(unhealthy)"):
		return true
	}
	return strings.HasPrefix(cell, "Exited (") && !strings.HasPrefix(cell, "Exited (0)")
}

// lacksReady reports whether a cell is an incomplete count of ready instances: 0/1.
func lacksReady(cell string) bool {
	have, want, ok := strings.Cut(cell, "/")
	if !ok || have == "" || want == "" || strings.Trim(have+want, "0123456789") != "" {
		return false
	}
	return len(have) < len(want) || len(have) == len(want) && have < want
}
