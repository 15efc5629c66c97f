package diagnostics_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/diagnostics"
	"github.com/zephbot/zephbot/tools/shell"
)

// desk runs commands without a sandbox, in a directory.
type desk struct {
	t       *testing.T
	dir     string
	ran     []string
	stdout  string   // answers instead of a process
	missing []string // programs that commands cannot run
	outside string   // where those are; "" = nowhere
	code    int
}

func (d *desk) Subject(_ context.Context, _ *tools.Call, text string) (tools.Subject, error) {
	return tools.Subject{Inputs: []string{text}, Show: text}, nil
}
func (d *desk) May(context.Context, *tools.Call, string) error { return nil }
func (d *desk) Changes(context.Context, *tools.Call, string) (tools.Changes, error) {
	return tools.Changes{}, nil
}
func (d *desk) Dir(tools.Origin) (string, error) { return d.dir, nil }

func (d *desk) Output(ctx context.Context, _ *tools.Call, text string) (*shell.Output, error) {
	d.ran = append(d.ran, text)
	if d.stdout != "" || d.code != 0 {
		return &shell.Output{Stdout: d.stdout, Result: &tools.Result{Text: d.stdout, ExitCode: &d.code}}, nil
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", text)
	cmd.Dir = d.dir
	cmd.Env = append(os.Environ(), "GOFLAGS=") // with -trimpath, go vet repeats the paths of an earlier run
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		return nil, err
	}
	code := cmd.ProcessState.ExitCode()
	return &shell.Output{Stdout: out.String(), Stderr: errs.String(), Result: &tools.Result{Text: out.String() + errs.String(), ExitCode: &code, Error: code != 0}}, nil
}

func project(t *testing.T, files map[string]string) *desk {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, dir: dir}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// find finds every program but those in missing; what is only outside is where commands cannot look.
func (d *desk) find(_ context.Context, program string) (path string, usable bool) {
	if slices.Contains(d.missing, program) {
		return d.outside, false
	}
	return "/usr/bin/" + program, true
}

// check calls the tool. Every program but those in missing is installed.
func (d *desk) check(args map[string]any, missing ...string) (*tools.Result, tools.Subject, error) {
	d.t.Helper()
	d.missing = missing
	tool, err := diagnostics.New(diagnostics.Options{Runner: d, Find: d.find})
	if err != nil {
		d.t.Fatal(err)
	}
	raw, _ := json.Marshal(args)
	call := &tools.Call{Args: raw}
	subject, err := tool.Describe(d.t.Context(), call)
	if err != nil {
		return nil, subject, err
	}
	res, err := tool.Run(d.t.Context(), call)
	return res, subject, err
}

// TestGo checks a broken module with the real go.
func TestGo(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("there is no go in PATH")
	}
	d := project(t, map[string]string{
		"mod/go.mod": "module x\n\ngo 1.26\n", "mod/sub/s.go": "package sub\n\nvar X int = \"a\"\n",
		"mod/fine/f.go": "package fine\n\nfunc F(x int) {\n\tx = x\n}\n",
	})
	res, subject, err := d.check(map[string]any{"path": "mod"})
	if err != nil {
		t.Fatal(err)
	}
	want := "sub/s.go:3:13: error: cannot use \"a\" (untyped string constant) as int value in variable declaration\n" +
		"fine/f.go:4:2: warning: self-assignment of x (assign)"
	if diff := cmp.Diff(want, res.Text); diff != "" {
		t.Errorf("found (-want +got):\n%s", diff)
	}
	if subject.Show != "cd 'mod' && { go build -o /dev/null ./...; a=$?; go vet -json ./... && (exit $a); }" || d.ran[0] != subject.Show {
		t.Errorf("asked about %q, ran %q", subject.Show, d.ran)
	}
	report := res.Raw.(diagnostics.Report)
	if report.Checker != "go" || len(report.Diagnostics) != 2 || report.Diagnostics[0].Line != 3 {
		t.Errorf("report %+v", report)
	}
	if err := os.RemoveAll(filepath.Join(d.dir, "mod/sub")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.dir, "mod/fine/f.go"), []byte("package fine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if res, _, err = d.check(map[string]any{"path": "mod"}); err != nil || res.Text != "No diagnostics (go)." {
		t.Errorf("a module without faults: %+v %v", res, err)
	}
}

// TestCheckers reads output in the form that the documentation of each checker gives.
func TestCheckers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file, kind, stdout, command, want string
	}{
		"cargo": {
			"Cargo.toml", "clippy", `{"reason":"compiler-artifact","package_id":"x"}
{"reason":"compiler-message","message":{"level":"warning","message":"unused variable: ` + "`x`" + `","spans":[{"file_name":"src/a.rs","line_start":1,"column_start":2,"is_primary":false},{"file_name":"src/main.rs","line_start":2,"column_start":9,"is_primary":true}]}}
{"reason":"compiler-message","message":{"level":"error","message":"mismatched types","spans":[{"file_name":"src/main.rs","line_start":3,"column_start":18,"is_primary":true}]}}
{"reason":"compiler-message","message":{"level":"error","message":"aborting due to 1 previous error","spans":[]}}
{"reason":"compiler-message","message":{"level":"warning","message":"","spans":[]}}
{"reason":"build-finished","success":false}`, "cargo clippy --message-format=json",
			"src/main.rs:3:18: error: mismatched types\nsrc/main.rs:2:9: warning: unused variable: `x`",
		},
		"tsc": {
			"tsconfig.json", "", "src/a.ts(3,5): error TS2322: Type 'string' is not assignable to type 'number'.\n  more about it\nerror TS6053: File 'b.ts' not found.\n",
			"tsc --noEmit --pretty false", "error: TS6053: File 'b.ts' not found.\nsrc/a.ts:3:5: error: TS2322: Type 'string' is not assignable to type 'number'.",
		},
		"pyright": {
			"pyrightconfig.json", "", `{"version":"1.1","generalDiagnostics":[{"file":"DIR/a.py","severity":"error","message":"\"x\" is not defined","range":{"start":{"line":0,"character":6},"end":{"line":0,"character":7}},"rule":"reportUndefinedVariable"},{"file":"DIR/a.py","severity":"information","message":"note","range":{"start":{"line":4,"character":0}}}],"summary":{"errorCount":1}}`,
			"pyright --outputjson", "a.py:1:7: error: \"x\" is not defined (reportUndefinedVariable)\na.py:5:1: note: note",
		},
		"ruff": {
			"pyproject.toml", "", `[{"code":"F401","message":"os imported but unused","filename":"DIR/a.py","location":{"row":1,"column":8},"end_location":{"row":1,"column":10},"fix":null},{"code":null,"message":"SyntaxError: Expected an expression","filename":"DIR/b.py","location":{"row":2,"column":1}}]`,
			"ruff check --output-format=json .", "b.py:2:1: error: SyntaxError: Expected an expression\na.py:1:8: warning: os imported but unused (F401)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := project(t, map[string]string{tc.file: ""})
			d.stdout, d.code = strings.ReplaceAll(tc.stdout, "DIR", d.dir), 1
			args := map[string]any{}
			if tc.kind != "" {
				args["level"] = tc.kind
			}
			res, subject, err := d.check(args)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, res.Text); diff != "" || subject.Show != tc.command {
				t.Errorf("asked about %s, found (-want +got):\n%s", subject.Show, diff)
			}
			res, subject, err = d.check(args, strings.Fields(tc.command)[0])
			if err != nil || !strings.Contains(res.Text, "is not installed here") || len(res.Raw.(diagnostics.Report).Diagnostics) != 0 || res.Error {
				t.Errorf("without the program: %+v %v", res, err)
			}
			if subject.Show != "command -v "+strings.Fields(tc.command)[0] || len(d.ran) != 1 {
				t.Errorf("without the program: asked about %s, ran %v", subject.Show, d.ran)
			}
			d.outside = "/home/ann/.cargo/bin/" + strings.Fields(tc.command)[0]
			res, _, err = d.check(args, strings.Fields(tc.command)[0])
			if err != nil || !strings.Contains(res.Text, "is installed in /home/ann/.cargo/bin, where commands cannot look") ||
				!strings.Contains(res.Text, `tools.shell.toolchains = "auto"`) {
				t.Errorf("where commands cannot look: %+v %v", res, err)
			}
			d.stdout = "something went wrong"
			if res, _, err = d.check(args); err != nil || !strings.Contains(res.Text, "failed without a finding:\nsomething went wrong") {
				t.Errorf("a checker that fails: %+v %v", res, err)
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	d := project(t, map[string]string{"tsconfig.json": "", "a b'c/tsconfig.json": ""})
	d.stdout, d.code = strings.Repeat("a.ts(1,1): warning TS1: same.\n", 3), 1
	for i := range 80 {
		d.stdout += "a.ts(" + strings.Repeat("1", i%5+1) + "," + strings.Repeat("2", i/5%9+1) + "): error TS2: e" + strings.Repeat("x", i) + "\n"
	}
	res, _, err := d.check(nil)
	if err != nil || strings.Count(res.Text, "\n") != 50 || !strings.HasSuffix(res.Text, "… and 31 more") || strings.Contains(res.Text, "warning") {
		t.Errorf("fifty, errors first: %v\n%s", err, res.Text)
	}
	if res, _, err = d.check(map[string]any{"max_diagnostics": 2}); err != nil || res.Raw.(diagnostics.Report).Omitted != 79 {
		t.Errorf("two: %+v %v", res, err)
	}
	if _, subject, err := d.check(map[string]any{"path": "a b'c"}); err != nil || !strings.HasPrefix(subject.Show, `cd 'a b'\''c' && {`) {
		t.Errorf("a path with a quote: %q %v", subject.Show, err)
	}
	for _, path := range []string{"..", "/etc", "none", "tsconfig.json", "a b'c/../.."} {
		if _, _, err := d.check(map[string]any{"path": path}); err == nil || !strings.Contains(err.Error(), "is no directory of the workspace") {
			t.Errorf("%s: %v", path, err)
		}
	}
	empty := project(t, map[string]string{"README.md": ""})
	if _, _, err := empty.check(nil); err == nil || !strings.Contains(err.Error(), "there is no project in this directory") {
		t.Errorf("no project: %v", err)
	}
}
