package deploytest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// notBuilt begins the last cell of a row about something that the seeds name and that is not there; the reason follows.
const notBuilt = "not built: "

var (
	inTicks    = regexp.MustCompile("`([^`]+)`")
	aTest      = regexp.MustCompile(`^((?:Test|Fuzz|Benchmark)[A-Z]\w*)$`)
	ofPackage  = regexp.MustCompile(`^([a-z0-9_/]+)\.((?:Test|Fuzz|Benchmark)[A-Z]\w*)$`)
	aStep      = regexp.MustCompile(`^\.ci/run ([a-z]+)$`)
	aName      = regexp.MustCompile(`^[a-z0-9_]+$`)
	ruler      = regexp.MustCompile(`^[\s|:-]+$`)
	parityHead = []string{"feature", "where", "test", "deviation"}
)

// evidence is what rows may refer to.
type evidence struct {
	tests map[string][]string // by name: the directories of packages that have one
	steps []string
}

func evidenceOf(t *testing.T) evidence {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	e := evidence{tests: testsOfModule(t)}
	for _, m := range regexp.MustCompile(`(?m)^step_([a-z]+)\(\)`).FindAllStringSubmatch(string(raw), -1) {
		e.steps = append(e.steps, m[1])
	}
	return e
}

func exists(parts ...string) bool {
	_, err := os.Stat(filepath.Join(append([]string{root}, parts...)...))
	return err == nil
}

// proves reports what is wrong with something that is named as a proof; "" if it exists and can prove something.
func (e evidence) proves(name string) string {
	if m := ofPackage.FindStringSubmatch(name); m != nil {
		switch dirs := e.tests[m[2]]; {
		case len(dirs) == 0:
			return "there is no test " + m[2]
		case !slices.Contains(dirs, m[1]):
			return fmt.Sprintf("%s has no test %s; it is in %s", m[1], m[2], strings.Join(dirs, ", "))
		}
		return ""
	}
	if aTest.MatchString(name) {
		return "name the package of " + name + " too: " + strings.Join(e.tests[name], ", ")
	}
	if m := aStep.FindStringSubmatch(name); m != nil {
		if !slices.Contains(e.steps, m[1]) {
			return "there is no step " + name
		}
		return ""
	}
	scenario, ok := strings.CutPrefix(name, "scenario/")
	if ok && aName.MatchString(scenario) && exists("cmd/internal/app/testdata/scenario", scenario+".txtar") {
		return ""
	}
	return "`" + name + "` is no test of a package, step of .ci/run or scenario"
}

// cells splits a row of a table. A bar in backticks or behind a backslash does not separate.
func cells(line string) []string {
	var list []string
	var cell strings.Builder
	ticks := false
	for i, c := range line {
		switch {
		case c == '`':
			ticks = !ticks
		case c == '|' && !ticks && (i == 0 || line[i-1] != '\\'):
			list = append(list, strings.TrimSpace(cell.String()))
			cell.Reset()
			continue
		}
		cell.WriteRune(c)
	}
	if len(list) == 0 {
		return nil
	}
	return list[1:]
}

// checkParity returns what is wrong with a page of features, and the rows of what is not built.
func (e evidence) checkParity(text string) (problems, missing []string, rows int) {
	var head []string
	seen := map[string]int{}
	for i, line := range strings.Split(text, "\n") {
		wrong := func(format string, args ...any) {
			problems = append(problems, fmt.Sprintf("line %d: %s", i+1, fmt.Sprintf(format, args...)))
		}
		switch {
		case !strings.HasPrefix(line, "|"):
			head = nil
			continue
		case head == nil:
			if head = cells(line); !slices.Equal(head, parityHead) {
				wrong("a table has the columns %v, not %v", parityHead, head)
			}
			continue
		case ruler.MatchString(line):
			continue
		}
		row := cells(line)
		if len(row) == len(parityHead) && strings.HasPrefix(row[0], "**") && strings.Join(row[1:], "") == "" { // a heading
			continue
		}
		rows++
		if len(row) != len(parityHead) {
			wrong("%d cells, want %d: %.80s", len(row), len(parityHead), line)
			continue
		}
		if before, twice := seen[row[0]]; twice {
			wrong("%q is listed in line %d already", row[0], before)
		}
		seen[row[0]] = i + 1
		if reason, ok := strings.CutPrefix(row[3], notBuilt); ok {
			if missing = append(missing, row[0]+": "+reason); len(strings.TrimSpace(reason)) < 10 {
				wrong("%q is not built without a reason", row[0])
			}
			continue
		}
		proofs := inTicks.FindAllStringSubmatch(row[2], -1)
		if len(proofs) == 0 {
			wrong("%q has no proof; name a test, or say %q and why", row[0], notBuilt)
		}
		for _, m := range proofs {
			if text := e.proves(m[1]); text != "" {
				wrong("%q: %s", row[0], text)
			}
		}
		for _, m := range inTicks.FindAllStringSubmatch(row[1], -1) {
			if !exists(m[1]) {
				wrong("%q: there is no %s", row[0], m[1])
			}
		}
	}
	return problems, missing, rows
}

// TestParity: every feature has a proof that exists, or a reason why it is not built.
func TestParity(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "docs", "parity.md"))
	if err != nil {
		t.Fatal(err)
	}
	problems, missing, rows := evidenceOf(t).checkParity(string(raw))
	for _, p := range problems {
		t.Errorf("docs/parity.md: %s", p)
	}
	if rows < 100 {
		t.Errorf("%d rows were found", rows)
	}
	t.Logf("%d rows; not built:\n%s", rows, strings.Join(missing, "\n"))
}

// TestParityFindsWhatIsWrong: the check of the page fails where it must.
func TestParityFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	e := evidence{tests: map[string][]string{"TestThere": {"a/sql", "b"}}, steps: []string{"machine"}}
	const head = "| feature | where | test | deviation |\n|---|---|---|---|\n| **some** | | | |\n"
	for _, c := range []struct{ row, want string }{
		{"| a | `bot` | `a/sql.TestThere`, `scenario/approve`, `.ci/run machine` | |", ""},
		{"| a `b|c` \\| d | `bot/deliver` | `b.TestThere` | |", ""},
		{"| a | – | – | not built: nobody needs it |", ""},
		{"| a | – | – | not built: |", "has no proof"},
		{"| a | – | – | not built: no |", "without a reason"},
		{"| a | `bot` | – | |", "has no proof"},
		{"| a | `bot` | it is obvious | |", "has no proof"},
		{"| a | `bot` | `b.TestGone` | |", "no test TestGone"},
		{"| a | `bot` | `c.TestThere` | |", "c has no test TestThere; it is in a/sql, b"},
		{"| a | `bot` | `TestThere` | |", "name the package of TestThere too: a/sql, b"},
		{"| a | `bot` | `scenario/gone_for_good` | |", "gone_for_good"},
		{"| a | `bot` | `.ci/run nonsense` | |", "no step"},
		{"| a | `bot` | `docs/parity.md` | |", "is no test"},
		{"| a | `cmd/gone` | `b.TestThere` | |", "no cmd/gone"},
		{"| a | `bot` | `b.TestThere` |", "3 cells"},
		{"| a | `bot` | `b.TestThere` | |\n| a | `bot` | `b.TestThere` | |", "in line 4 already"},
	} {
		problems, _, _ := e.checkParity(head + c.row + "\n")
		if got := strings.Join(problems, "\n"); c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.row, got, c.want)
		}
	}
}
