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

func (testSummary) names() bool { return true } // foreign lines are kept; see looseHead

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

func (t testSummary) apply(j *job) ([]line, Confidence) {
	if jsonEvents(j.lines) {
		return t.events(j)
	}
	kinds := make([]kind, len(j.lines))
	c := tally{}
	for i := range j.lines {
		kinds[i] = c.sort(&j.lines[i])
	}
	yamlOfPassed(j.lines, kinds)
	if !c.recognised {
		return nil, Fallback
	}
	if !j.guarded() { // the runner may report a failure even if the exit code does not
		c.clean = j.failures.reports(j.lines) == 0
		if !c.clean {
			j.failures.protect(j.lines)
		}
	}
	if c.failed {
		logsOfPassed(j.lines, kinds)
	}
	keep := t.bounded(j.lines)
	for i := range j.lines {
		if kinds[i] == isLoose && !keep[i] {
			c.loose++
		}
	}
	out, cut := c.collect(j, kinds, keep)
	out = append(out, c.summary(j)...)
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
	rest, ok := strings.CutPrefix(lines[i].body(), "--- PASS: ")
	if !ok {
		return i
	}
	name, _, _ := strings.Cut(rest, " ")
	for at := i - 1; at >= 0 && i-at <= blockLines; at-- {
		if body := lines[at].body(); passes(lines[at].hints(), body) {
			if run, ok := strings.CutPrefix(body, "=== RUN "); ok && strings.TrimSpace(run) == name {
				return at + 1
			}
			return i
		}
	}
	return i
}

// bounded returns which lines are kept because they belong to a failure. In a run with many failures, those beyond the
// limit keep only what is protected.
func (t testSummary) bounded(lines []line) []bool {
	keep := make([]bool, len(lines))
	left, blocks := 0, 0
	for i := range lines {
		keep[i] = lines[i].keep
		kind := opensNothing
		if keep[i] {
			kind = opens(lines[i].body())
		}
		switch {
		case kind >= opensLong:
			if left = t.trace; blocks >= t.most {
				left = 0
			}
			blocks++
		case left > 0 && boundary(&lines[i]):
			left = 0
		case left > 0:
			keep[i] = true
			left--
		}
	}
	return keep
}

// collect drops what passed and shortens loose lines.
func (c *tally) collect(j *job, kinds []kind, keep []bool) (out []line, cut bool) {
	out = make([]line, 0, 64)
	head, tail := c.limits(j)
	seen, gap := 0, 0
	for i := range j.lines {
		if kinds[i] == isSummary || keep[i] {
			if gap > 0 {
				out, gap = append(out, omitted(gap)), 0
			}
			out = append(out, j.lines[i])
			c.shown = c.shown || kinds[i] == isResult
			continue
		}
		if kinds[i] == isResult {
			c.result(j.lines[i].body())
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
			out, gap = append(out, omitted(gap)), 0
		}
		out = append(out, j.lines[i])
	}
	if gap > 0 {
		out = append(out, omitted(gap))
	}
	return out, cut
}

// limits returns how many loose lines are kept.
func (c *tally) limits(j *job) (head, tail int) {
	switch {
	case j.blind() || j.limited:
		return c.loose, 0
	case j.guarded():
		return looseMost, looseMost
	}
	return looseHead, looseTail
}

// summary returns the totals of the runner's own lines.
func (c *tally) summary(j *job) []line {
	var out []line
	switch {
	case c.shown && c.results > 0:
		out = append(out, written(fmt.Sprintf("(%d passed in other targets)", c.sums[0])))
	case c.results > 0:
		verdict := "ok"
		switch {
		case c.failed || c.sums[1] > 0:
			verdict = "FAILED"
		case j.failed():
			verdict = "the run failed"
		case j.named > 0:
			verdict = "see above"
		}
		out = append(out,
			written(fmt.Sprintf("test result: %s. %d passed; %s%d ignored; %d filtered out", verdict, c.sums[0], c.failures(j), c.sums[2], c.sums[3])))
	}
	if c.packages+c.bare > 0 {
		out = append(out, written(c.goLine(j)))
	}
	if c.passed > 0 {
		out = append(out, written(fmt.Sprintf("(%d tests that passed left out)", c.passed)))
	}
	return out
}

// failures returns the number of failed tests as text. It never says "0 failed" for a failed run.
func (c *tally) failures(j *job) string {
	if c.sums[1] == 0 && (j.failed() || c.failed) {
		return ""
	}
	return fmt.Sprintf("%d failed; ", c.sums[1])
}

func (c *tally) goLine(j *job) string {
	bare := ""
	if c.bare > 0 {
		bare = fmt.Sprintf(", %d without tests", c.bare)
	}
	if c.failed || j.failed() {
		return fmt.Sprintf("(the run failed; %d packages passed%s)", c.packages, bare)
	}
	if j.named > 0 {
		return fmt.Sprintf("(%d packages passed%s)", c.packages, bare)
	}
	return fmt.Sprintf("ok: %d packages%s", c.packages, bare)
}

// sort returns the kind of a line and counts it.
func (c *tally) sort(l *line) kind {
	body := l.body()
	if body == "" {
		return isNoise
	}
	t := trimBlanks(body)
	if t == "" {
		return isNoise
	}
	if passes(l.hints(), body) {
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
	if k, ok := c.cargo(body, t); ok {
		return k
	}
	if k, ok := c.golang(body, t); ok {
		return k
	}
	if k, ok := c.python(t); ok {
		return k
	}
	return c.script(t)
}

// cargo handles lines of cargo test and nextest.
func (c *tally) cargo(body, t string) (kind, bool) {
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
	case begin(t, "FAIL [", "TIMEOUT ["):
		c.recognised, c.failed = true, true
		return isSummary, true
	case body != t && begin(t, "Finished ", "Running ", "Doc-tests ", "Starting "), begin(t, "────", "━━━━"):
		return isNoise, true
	}
	return isLoose, false
}

// result adds up "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s".
func (c *tally) result(body string) {
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

// golang handles lines of go test.
func (c *tally) golang(body, t string) (kind, bool) {
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

// reports counts the lines in which a runner reports that something failed.
func (f *failures) reports(lines []line) int {
	n := 0
	for i := range lines {
		body := lines[i].body()
		if f.words(&lines[i])&2 != 0 && f.has(&lines[i]) &&
			(opens(body) != opensNothing || strings.Contains(body, "FAILED") || strings.Contains(body, " failed")) {
			n++
		}
	}
	return n
}
