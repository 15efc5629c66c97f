package diagnostics_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/diagnostics"
)

// TestHostileOutput: what a checker prints is the project's: it makes no further lines, no message without end, and no
// more findings than are asked for.
func TestHostileOutput(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	deep := strings.Repeat("[", 1<<20)
	for name, o := range map[string]struct{ checker, stdout string }{
		"a file of two lines":   {"ruff", `[{"code":"E1","message":"m","filename":"a.py\nb.py:1:1: error: forged","location":{"row":1,"column":1}}]`},
		"a long file":           {"ruff", `[{"code":"E1","message":"m","filename":"` + long + `","location":{"row":1,"column":1}}]`},
		"a long message":        {"tsc", "a.ts(1,2): error TS1: " + long},
		"lines below nothing":   {"ruff", `[{"code":"E1","message":"m","filename":"a.py","location":{"row":-1,"column":-9223372036854775808}}]`},
		"a line that overflows": {"pyright", `{"generalDiagnostics":[{"file":"a","severity":"error","message":"m","range":{"start":{"line":9223372036854775807,"character":1}}}]}`},
		"deep JSON":             {"pyright", deep},
		"deep lines":            {"cargo", deep + "\n" + `{"reason":"compiler-message","message":{"level":"error","message":"m"}}`},
		"a report without end":  {"go", "{\n" + strings.Repeat("{\n", 1000)},
		"many":                  {"tsc", strings.Repeat("a.ts(1,2): error TS1: m\n", 10) + manyLines(5000)},
		"escapes":               {"tsc", "\x1b[31ma.ts\x1b[0m(1,2): error TS1: \x1b]0;title\x07 m\r"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look(t, o.checker, o.stdout)
		})
	}
}

func manyLines(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("a.ts(" + strings.Repeat("1", 1+i%6) + ",2): error TS1: m" + strings.Repeat("n", i/6) + "\n")
	}
	return b.String()
}

// look runs a checker that prints a text, and checks what is always so.
func look(t *testing.T, checker, stdout string) {
	t.Helper()
	d := project(t, nil)
	d.stdout, d.code = stdout, 1
	res, _, err := d.check(map[string]any{"checker": checker, "max_diagnostics": 20})
	if err != nil {
		if tools.AsError(err) == nil {
			t.Errorf("%s: %v", checker, err)
		}
		return
	}
	report, ok := res.Raw.(diagnostics.Report)
	if !ok || len(report.Diagnostics) > 20 {
		t.Fatalf("%s: %d findings", checker, len(report.Diagnostics))
	}
	if len(report.Diagnostics) == 0 {
		return // its output is shown as that of a command
	}
	if lines := strings.Count(res.Text, "\n"); lines > len(report.Diagnostics) || len(res.Text) > 20*8000 || !utf8.ValidString(res.Text) {
		t.Errorf("%s: %d lines and %d bytes for %d findings", checker, lines, len(res.Text), len(report.Diagnostics))
	}
	if strings.ContainsAny(res.Text, "\x1b\x07\r\x00") {
		t.Errorf("%s: control characters in %q", checker, res.Text)
	}
	for _, f := range report.Diagnostics {
		if f.Line < 0 || f.Column < 0 || f.Severity == "" {
			t.Errorf("%s: %+v", checker, f)
		}
	}
	if _, err := json.Marshal(report); err != nil {
		t.Errorf("%s: %v", checker, err)
	}
}

// FuzzOutput gives any output to all parsers.
func FuzzOutput(f *testing.F) {
	f.Add("s.go:3:13: m\nvet: x.go:1:2: n\n{\n\"p\": {\"assign\": [{\"posn\":\"a.go:1:2\",\"message\":\"m\"}]}\n}\n")
	f.Add("a.ts(1,2): error TS1: m\nerror TS5: n\n")
	f.Add(`{"reason":"compiler-message","message":{"level":"error","message":"m","spans":[{"file_name":"a","line_start":1,"is_primary":true}]}}`)
	f.Add(`{"generalDiagnostics":[{"file":"a","severity":"error","message":"m","range":{"start":{"line":1,"character":2}}}]}`)
	f.Add(`[{"code":null,"message":"m","filename":"a","location":{"row":1,"column":2}}]`)
	f.Fuzz(func(t *testing.T, stdout string) {
		for _, checker := range []string{"cargo", "go", "tsc", "pyright", "ruff"} {
			look(t, checker, stdout)
		}
	})
}
