package filter_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/tools/filter"
)

// TestFolds: runs of lines that differ in counters, times, percentages, sizes, durations and digests are folded, except
// the first and the last line. A line with a different word, data without words, and a line that reports a failure are
// kept.
func TestFolds(t *testing.T) {
	t.Parallel()
	e := engine(t, filter.Options{})
	for name, form := range map[string]string{
		"counter": "copied %d of 900 files", "percentage": "progress: %d %%", "size": "sent %d.5 MB of the backup", "duration": "step done in %dms", "clock": "[12:00:%02d] chunk stored, 10 %%",
		"digest": "layer 00%02dabcdef01 pushed, 3/9", "part": "[%d/900] compiling",
	} {
		for _, exit := range []int{0, 1} {
			var b strings.Builder
			for i := range 200 {
				fmt.Fprintf(&b, form+"\n", i)
			}
			bad := fmt.Sprintf(form, 200) + ": error, it was lost"
			out := e.Filter("./backup.sh", &exit, b.String()+bad+"\n"+b.String())
			survives(t, out, fmt.Sprintf(form, 0))
			survives(t, out, fmt.Sprintf(form, 199))
			survives(t, out, bad)
			if out.LinesOut > 8+50*exit || !out.Dropped { // when it failed the lines below the error stay
				t.Errorf("%s, exit code %d: %d lines\n%s", name, exit, out.LinesOut, out.Text)
			}
		}
	}
	for _, form := range []string{"%d", "%d,7,9", "%d: error at item 4 of 9", "v%[1]d_%[1]c of 3"} {
		var b strings.Builder
		for i := range 20 {
			fmt.Fprintf(&b, form+"\n", 'a'+i)
		}
		if out := e.Filter("python3 rows.py", new(0), b.String()); strings.Contains(out.Text, "omitted") {
			t.Errorf("%s folds:\n%s", form, out.Text)
		}
	}
}

// TestDiagnostics: every location of a group is listed, and errors, their first notes, and the warnings of the file that
// has errors are kept unchanged with their excerpts, also on the error stream.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, "[stderr] src/m%d.c:%d:5: warning: unused variable ‘x’ [-Wunused-variable]\n[stderr]    %d |   int x;\n[stderr]       |       ^\n", i%20, i+1, i+1)
	}
	bad := "[stderr] src/m3.c:99:1: error: ‘y’ undeclared"
	b.WriteString(bad + "\n[stderr]    99 | y;\n[stderr] src/m3.c:99:1: note: one\n[stderr] src/m3.c:99:2: note: two\n[stderr] src/m3.c:99:3: note: three\n[stderr] src/m3.c:99:4: note: four\n")
	for _, command := range []string{"gcc -c src/*.c", "make", "make -k 2>&1 | tail -500"} {
		out := engine(t, filter.Options{}).Filter(command, new(1), b.String())
		survives(t, out, bad)
		survives(t, out, "[stderr]    99 | y;")
		survives(t, out, "[stderr] src/m3.c:99:1: note: one")
		survives(t, out, "[stderr] src/m3.c:4:5: warning: unused variable ‘x’ [-Wunused-variable]")
		survives(t, out, "[stderr]    24 |   int x;")
		for i := range 40 {
			if i%20 != 3 && !strings.Contains(out.Text, fmt.Sprintf("src/m%d.c:%d:5, %d:5", i%20, i%20+1, i%20+21)) {
				t.Fatalf("%s: place %d is not named in\n%s", command, i, out.Text)
			}
		}
		if strings.Contains(out.Text, "note: four") || out.LinesOut > 24 {
			t.Errorf("%s: %d lines\n%s", command, out.LinesOut, out.Text)
		}
	}
}
