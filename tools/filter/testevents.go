package filter

import (
	"encoding/json"
	"strings"
)

// event is a line of go test -json (cmd/test2json).
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

// id names a test of a package.
type id struct{ pkg, test string }

// jsonEvents says whether a text is the output of go test -json.
func jsonEvents(lines []line) bool {
	n := 0
	for i := range min(len(lines), 20) {
		if looksEvent(lines[i].body()) {
			n++
		}
	}
	return n > 0 && n*2 >= min(len(lines), 20)
}

func looksEvent(s string) bool {
	return strings.HasPrefix(s, `{"`) && strings.Contains(s, `"Action":"`)
}

// event counts an event.
func (c *tally) event(e event) {
	switch {
	case e.Action == "fail":
		c.failed = true
	case e.Action == "pass" && e.Test == "":
		c.packages++
	case e.Action == "pass":
		c.passed++
	case e.Action == "skip" && e.Test == "":
		c.bare++
	}
}

// events keeps, word for word, the events of tests and packages that failed, and every line that is no event.
func (t testSummary) events(j *job) ([]line, Confidence) {
	failed := map[id]bool{}
	list := make([]event, len(j.lines))
	c := tally{}
	for i := range j.lines {
		body := j.lines[i].body()
		if !looksEvent(body) || json.Unmarshal([]byte(body), &list[i]) != nil {
			list[i] = event{}
			continue
		}
		if e := list[i]; e.Action == "fail" {
			failed[id{e.Package, e.Test}] = true
		}
		c.event(list[i])
	}
	out := make([]line, 0, 64)
	for i, e := range list {
		told := e.Action == "" || e.Action == "fail" || strings.HasPrefix(e.Action, "build-")
		output := e.Action == "output" && failed[id{e.Package, e.Test}] && !eventOK(j.lines[i].body())
		if told || output || j.lines[i].keep {
			out = append(out, j.lines[i])
		}
	}
	if len(out) == len(j.lines) {
		return nil, Fallback
	}
	return append(out, c.summary(j)...), Full
}
