package filter

import (
	"fmt"
	"strconv"
	"strings"
)

// Limits for loose lines, which a test run printed and which have no known form.
const (
	looseHead = 20
	looseTail = 20
	looseMost = 60 // for a failed run
)

// testSummary keeps failures and the final summary of test runs and drops what passed (seed 003): cargo test, nextest,
// go test (also -v and -json), pytest, unittest, jest, mocha, vitest, TAP.
type testSummary struct {
	most  int // failures that are kept whole; of others, only the lines that name and explain them
	trace int // lines kept below the head of a failure
}

func (testSummary) isNaming() bool { return true } // foreign lines are kept; see looseHead

// kind classifies a line of a test run.
type kind uint8

const (
	isLoose kind = iota
	isPass
	isNoise
	isSummary
	isResult // cargo's "test result:", which is added up
	isGoOK
)

// tally holds the counts.
type tally struct {
	recognised bool // a line was seen that only a test runner writes
	sums       [4]int
	results    int  // of cargo, added up
	shown      bool // another one is kept as it is
	failed     bool
	packages   int // Go packages that passed
	bare       int // Go packages without tests
	passed     int // Go tests that passed in -json
	clean      bool
	loose      int
}

func (t testSummary) applyTo(j *job) ([]line, Confidence) {
	if jsonEvents(j.lines) {
		return t.keepEvents(j)
	}
	kinds := make([]kind, len(j.lines))
	c := tally{}
	for i := range j.lines {
		kinds[i] = c.sortLine(&j.lines[i])
	}
	yamlOfPassed(j.lines, kinds)
	if !c.recognised {
		return nil, Fallback
	}
	if !j.isGuarded() { // the runner may report a failure even if the exit code does not
		c.clean = j.failures.countReports(j.lines) == 0
		if !c.clean {
			j.failures.protectLines(j.lines)
		}
	}
	if c.failed {
		logsOfPassed(j.lines, kinds)
	}
	keep := t.boundFailures(j.lines)
	for i := range j.lines {
		if kinds[i] == isLoose && !keep[i] {
			c.loose++
		}
	}
	out, cut := c.collectLines(j, kinds, keep)
	out = append(out, c.summaryLines(j)...)
	if cut {
		return out, Partial
	}
	return out, Full
}

// logsOfPassed marks what passing Go tests logged. It does not matter in a run in which others failed.
func logsOfPassed(lines []line, kinds []kind) {
	for i := range lines {
		from := logOf(lines, i)
		for at := from; at < i; at++ {
			if kinds[at] == isLoose {
				kinds[at] = isPass
			}
		}
	}
}

// logOf returns where the log of the passing Go test of line i begins: just after its "=== RUN". Without such a log it
// returns i.
func logOf(lines []line, i int) int {
	rest, ok := strings.CutPrefix(lines[i].bodyText(), "--- PASS: ")
	if !ok {
		return i
	}
	name, _, _ := strings.Cut(rest, " ")
	for at := i - 1; at >= 0 && i-at <= blockLines; at-- {
		if body := lines[at].bodyText(); isPassing(lines[at].wordHints(), body) {
			if run, ok := strings.CutPrefix(body, "=== RUN "); ok && strings.TrimSpace(run) == name {
				return at + 1
			}
			return i
		}
	}
	return i
}

// boundFailures returns which lines are kept because they belong to a failure. In a run with many failures, those
// beyond the limit keep only what is protected.
func (t testSummary) boundFailures(lines []line) []bool {
	keep := make([]bool, len(lines))
	left, blocks := 0, 0
	for i := range lines {
		keep[i] = lines[i].keep
		kind := opensNothing
		if keep[i] {
			kind = openingOf(lines[i].bodyText())
		}
		switch {
		case kind >= opensLong:
			if left = t.trace; blocks >= t.most {
				left = 0
			}
			blocks++
		case left > 0 && isBoundary(&lines[i]):
			left = 0
		case left > 0:
			keep[i] = true
			left--
		}
	}
	return keep
}

// collectLines drops what passed and shortens loose lines.
func (c *tally) collectLines(j *job, kinds []kind, keep []bool) (out []line, cut bool) {
	out = make([]line, 0, 64)
	head, tail := c.looseLimits(j)
	seen, gap := 0, 0
	for i := range j.lines {
		if kinds[i] == isSummary || keep[i] {
			if gap > 0 {
				out, gap = append(out, omittedLine(gap)), 0
			}
			out = append(out, j.lines[i])
			c.shown = c.shown || kinds[i] == isResult
			continue
		}
		if kinds[i] == isResult {
			c.addResult(j.lines[i].bodyText())
		}
		if kinds[i] != isLoose {
			continue
		}
		if seen++; seen > head && seen <= c.loose-tail {
			gap++
			cut = true
			continue
		}
		if gap > 0 {
			out, gap = append(out, omittedLine(gap)), 0
		}
		out = append(out, j.lines[i])
	}
	if gap > 0 {
		out = append(out, omittedLine(gap))
	}
	return out, cut
}

// looseLimits returns how many loose lines are kept.
func (c *tally) looseLimits(j *job) (head, tail int) {
	switch {
	case j.isBlind() || j.limited:
		return c.loose, 0
	case j.isGuarded():
		return looseMost, looseMost
	}
	return looseHead, looseTail
}

// summaryLines returns the totals of the runner's own lines.
func (c *tally) summaryLines(j *job) []line {
	var out []line
	switch {
	case c.shown && c.results > 0:
		out = append(out, writtenLine(fmt.Sprintf("(%d passed in other targets)", c.sums[0])))
	case c.results > 0:
		verdict := "ok"
		switch {
		case c.failed || c.sums[1] > 0:
			verdict = "FAILED"
		case j.runFailed():
			verdict = "the run failed"
		case j.named > 0:
			verdict = "see above"
		}
		out = append(out,
			writtenLine(fmt.Sprintf(
				"test result: %s. %d passed; %s%d ignored; %d filtered out",
				verdict, c.sums[0], c.failureCount(j), c.sums[2], c.sums[3],
			)))
	}
	if c.packages+c.bare > 0 {
		out = append(out, writtenLine(c.goLine(j)))
	}
	if c.passed > 0 {
		out = append(out, writtenLine(fmt.Sprintf("(%d tests that passed left out)", c.passed)))
	}
	return out
}

// failureCount returns the number of failed tests as text. It never says "0 failed" for a failed run.
func (c *tally) failureCount(j *job) string {
	if c.sums[1] == 0 && (j.runFailed() || c.failed) {
		return ""
	}
	return fmt.Sprintf("%d failed; ", c.sums[1])
}

func (c *tally) goLine(j *job) string {
	bare := ""
	if c.bare > 0 {
		bare = fmt.Sprintf(", %d without tests", c.bare)
	}
	if c.failed || j.runFailed() {
		return fmt.Sprintf("(the run failed; %d packages passed%s)", c.packages, bare)
	}
	if j.named > 0 {
		return fmt.Sprintf("(%d packages passed%s)", c.packages, bare)
	}
	return fmt.Sprintf("ok: %d packages%s", c.packages, bare)
}

// sortLine returns the kind of a line and counts it.
func (c *tally) sortLine(l *line) kind {
	body := l.bodyText()
	if body == "" {
		return isNoise
	}
	t := trimBlanks(body)
	if t == "" {
		return isNoise
	}
	if isPassing(l.wordHints(), body) {
		switch {
		case goOK(t):
			c.packages++
			c.recognised = true
		case t[0] == '?':
			c.bare++
			c.recognised = true
		case t[0] == '\xe2', t == "PASS", cargoNoise(t):
		default:
			c.recognised = true
		}
		return isPass
	}
	if k, ok := c.takeCargo(body, t); ok {
		return k
	}
	if k, ok := c.takeGo(body, t); ok {
		return k
	}
	if k, ok := c.takePython(t); ok {
		return k
	}
	return c.takeScript(t)
}

// takeCargo handles lines of cargo test and nextest.
func (c *tally) takeCargo(body, t string) (kind, bool) {
	switch {
	case strings.HasPrefix(body, "test result: "):
		c.recognised = true
		c.failed = c.failed || strings.HasPrefix(body, "test result: FAILED")
		return isResult, true
	case strings.HasPrefix(body, "running ") && strings.HasSuffix(strings.TrimSuffix(body, "s"), " test"):
		c.recognised = true
		return isNoise, true
	case strings.HasPrefix(t, "Nextest run ID"):
		return isNoise, true
	case strings.HasPrefix(t, "Summary ["):
		c.recognised = true
		return isSummary, true
	case strings.HasPrefix(body, "test ") && strings.HasSuffix(body, "FAILED"):
		c.recognised, c.failed = true, true
		return isSummary, true
	case beginsWith(t, "FAIL [", "TIMEOUT ["):
		c.recognised, c.failed = true, true
		return isSummary, true
	case body != t && beginsWith(t, "Finished ", "Running ", "Doc-tests ", "Starting "), beginsWith(t, "────", "━━━━"):
		return isNoise, true
	}
	return isLoose, false
}

// addResult adds up "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s".
func (c *tally) addResult(body string) {
	c.results++
	_, counts, _ := strings.Cut(body, ". ")
	for part := range strings.SplitSeq(counts, ";") {
		number, what, _ := strings.Cut(strings.TrimSpace(part), " ")
		n, err := strconv.Atoi(number)
		if err != nil {
			continue
		}
		for i, name := range []string{"passed", "failed", "ignored", "filtered out"} {
			if what == name {
				c.sums[i] += n
			}
		}
	}
}

// takeGo handles lines of go test.
func (c *tally) takeGo(body, t string) (kind, bool) {
	switch {
	case strings.HasPrefix(t, "--- FAIL: "), strings.HasPrefix(body, "FAIL\t"):
		c.recognised, c.failed = true, true
		return isSummary, true
	case body == "FAIL", strings.HasPrefix(body, "exit status "):
		c.failed = true
		return isSummary, true
	case body != t && strings.HasSuffix(body, "coverage: 0.0% of statements"):
		c.bare++
		c.recognised = true
		return isNoise, true
	case strings.HasPrefix(body, "coverage: "):
		return isNoise, true
	case strings.HasPrefix(body, "go: downloading "):
		return isNoise, true
	}
	return isLoose, false
}

// countReports counts the lines in which a runner reports that something failed.
func (f *failures) countReports(lines []line) int {
	n := 0
	for i := range lines {
		body := lines[i].bodyText()
		if f.scanLine(&lines[i])&2 != 0 && f.isFailureLine(&lines[i]) &&
			(openingOf(body) != opensNothing || strings.Contains(body, "FAILED") || strings.Contains(body, " failed")) {
			n++
		}
	}
	return n
}
