// Package diagnostics is the tool diagnostics: it runs the checker that fits a directory (cargo, go, tsc, pyright or
// ruff) and returns what the checker found, errors first, in one form (seeds 000 and 003).
//
// A checker is a program that runs code of the project: build scripts, macros, plug-ins. So the tool is a command to
// the policy, and it is run like one: in the sandbox, with the limits of commands.
package diagnostics

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/zephbot/zephbot/policy/act"
	"github.com/zephbot/zephbot/tools"
	"github.com/zephbot/zephbot/tools/shell"
)

// Name is the name of the tool.
const Name = "diagnostics"

// defaultMax is how many findings are returned at most.
const defaultMax = 50

// mostMax is the most that a call can ask for.
const mostMax = 500

// Says returns the tool's statement for the policy.
func Says() []act.Tool {
	return []act.Tool{{Name: Name, Statement: act.Statement{Act: act.Runs, Verb: act.Run, Gain: 0.6}}}
}

// Runner runs commands (shell.Runner).
type Runner interface {
	Subject(ctx context.Context, call *tools.Call, text string) (tools.Subject, error)
	May(ctx context.Context, call *tools.Call, text string) error
	Changes(ctx context.Context, call *tools.Call, text string) (tools.Changes, error)
	Output(ctx context.Context, call *tools.Call, text string) (*shell.Output, error)
	Dir(o tools.Origin) (string, error)
}

// Options configure the tool. Runner and Find are required.
type Options struct {
	Runner Runner
	// Find returns where a program is, "" = nowhere, and whether commands can run it (shell.Runner.FindProgram).
	Find func(ctx context.Context, program string) (path string, usable bool)
	Max  int // findings; 0 = defaultMax
}

// Finding is one message of a checker.
type Finding struct {
	Severity string `json:"severity"` // error, warning or note
	Message  string `json:"message"`
	File     string `json:"file,omitempty"` // relative to the checked directory where it is in it
	Line     int    `json:"line,omitempty"`
	Column   int    `json:"col,omitempty"`
}

// Report is Result.Raw.
type Report struct {
	Diagnostics []Finding `json:"diagnostics"`
	Checker     string    `json:"checker"`
	Omitted     int       `json:"omitted,omitempty"` // findings beyond the limit
	Warning     string    `json:"warning,omitempty"`
}

type in struct {
	Path    string `json:"path,omitempty" jsonschema:"directory of the project; without it the working directory"`
	Kind    string `json:"kind,omitempty" jsonschema:"check (the default), or clippy for lints of Rust as well"`
	Level   string `json:"level,omitempty" jsonschema:"another name of kind"`
	Checker string `json:"checker,omitempty" jsonschema:"which checker to run; without it the one that fits the files of the directory"`
	Max     int    `json:"max_diagnostics,omitempty" jsonschema:"most findings to return"`
}

// New returns the tool.
func New(o Options) (tools.Tool, error) {
	o.Max = cmp.Or(o.Max, defaultMax)
	return tools.New(tools.Typed[in]{
		Definition: tools.Definition{
			Name: Name, Says: act.Of(Says(), Name),
			Description: "Checks the code in a directory with its compiler or linter (cargo, go, tsc, pyright, ruff) " +
				"and returns errors and warnings " +
				"with file, line and column, errors first. Use it after changes of code, instead of running the " +
				"compiler yourself.",
		},
		Adjust: func(s *jsonschema.Schema) {
			for _, name := range []string{"kind", "level"} {
				s.Properties[name].Enum = []any{"check", "clippy"}
			}
			for _, c := range checkers() {
				s.Properties["checker"].Enum = append(s.Properties["checker"].Enum, c.name)
			}
			s.Properties["max_diagnostics"].Minimum = new(1.0)
			s.Properties["max_diagnostics"].Maximum = new(float64(mostMax))
		},
		Describe: func(ctx context.Context, call *tools.Call, in in) (tools.Subject, error) {
			p, err := o.plan(ctx, call, in)
			if err != nil {
				return tools.Subject{}, err
			}
			return o.Runner.Subject(ctx, call, p.text)
		},
		Check: func(ctx context.Context, call *tools.Call, in in) error {
			p, err := o.plan(ctx, call, in)
			if err != nil {
				return err
			}
			return o.Runner.May(ctx, call, p.text)
		},
		Changes: func(ctx context.Context, call *tools.Call, in in) (tools.Changes, error) {
			p, err := o.plan(ctx, call, in)
			if err != nil {
				return tools.Changes{}, err
			}
			return o.Runner.Changes(ctx, call, p.text)
		},
		Run: o.run,
	})
}

// plan is what a call runs.
type plan struct {
	checker checker
	missing string // program that commands cannot run; "" = none
	outside string // where it is although commands cannot run it; "" = nowhere
	text    string // of the command
	dir     string // absolute
}

// plan chooses the checker of a call. A program that is missing is not run: the command only looks for it.
func (o Options) plan(ctx context.Context, call *tools.Call, in in) (plan, error) {
	ws, err := o.Runner.Dir(call.Origin)
	if err != nil {
		return plan{}, err
	}
	dir := filepath.Join(ws, in.Path)
	if filepath.IsAbs(in.Path) {
		dir = filepath.Clean(in.Path)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() || !inside(ws, dir) {
		return plan{}, tools.Errorf(tools.InvalidParameters, "path %.200q is no directory of the workspace", in.Path)
	}
	c, err := choose(dir, in)
	if err != nil {
		return plan{}, err
	}
	p := plan{checker: c, dir: dir}
	local := filepath.Join(dir, "node_modules", ".bin", c.program)
	program := c.program
	if _, err := os.Stat(local); err == nil && c.local {
		program = "node_modules/.bin/" + c.program
	} else if path, usable := o.Find(ctx, c.program); !usable {
		p.missing, p.outside, p.text = c.program, path, "command -v "+c.program
		return p, nil
	}
	p.text = c.command(program, cmp.Or(in.Kind, in.Level))
	if rel, err := filepath.Rel(ws, dir); err == nil && rel != "." {
		p.text = "cd '" + strings.ReplaceAll(rel, "'", `'\''`) + "' && { " + p.text + "; }"
	}
	return p, nil
}

// inside reports whether a directory is in the workspace after links are resolved.
func inside(ws, dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(ws, real)
	return err == nil && filepath.IsLocal(rel)
}

// choose returns the checker that a call names, or the first whose files are in the directory.
func choose(dir string, in in) (checker, error) {
	list := checkers()
	if in.Checker != "" {
		i := slices.IndexFunc(list, func(c checker) bool { return c.name == in.Checker })
		if i < 0 {
			return checker{}, tools.Errorf(tools.InvalidParameters, "checker %.40q is not known", in.Checker)
		}
		return list[i], nil
	}
	var files []string
	for _, c := range list {
		for _, name := range c.files {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return c, nil
			}
		}
		files = append(files, c.files...)
	}
	return checker{}, &tools.Error{
		Category:   tools.InvalidParameters,
		Mistake:    true,
		Message:    "there is no project in this directory: none of " + strings.Join(files, ", "),
		Suggestion: "Give the directory of the project as path.",
	}
}

// run executes a call.
func (o Options) run(ctx context.Context, call *tools.Call, in in) (*tools.Result, error) {
	p, err := o.plan(ctx, call, in)
	if err != nil {
		return nil, err
	}
	most := min(cmp.Or(in.Max, o.Max), mostMax)
	if p.missing != "" {
		warning := p.missing + " is not installed here, so nothing was checked. An operator can install " +
			p.checker.install + "."
		if p.outside != "" {
			warning = p.missing + " is installed in " + filepath.Dir(p.outside) + ", where commands cannot look, so nothing " +
				"was checked. An operator can set tools.shell.toolchains = \"auto\", or name its directory there."
		}
		return &tools.Result{
			Text: "[warn] " + warning,
			Raw:  Report{Diagnostics: []Finding{}, Checker: p.checker.name, Warning: warning},
		}, nil
	}
	out, err := o.Runner.Output(ctx, call, p.text)
	if err != nil {
		return nil, err
	}
	list := p.checker.parse(out.Stdout, out.Stderr)
	code := out.Result.ExitCode
	if out.Result.Failure != nil && len(list) == 0 && code == nil {
		return out.Result, nil // stopped: its output says more than an empty list
	}
	if len(list) == 0 && (code == nil || *code != 0) {
		out.Result.Text = p.checker.name + " failed without a finding:\n" + out.Result.Text
		out.Result.Raw = Report{Diagnostics: []Finding{}, Checker: p.checker.name, Warning: "the checker failed"}
		return out.Result, nil
	}
	report := Report{Checker: p.checker.name}
	report.Diagnostics, report.Omitted = arrange(list, p.dir, most)
	return &tools.Result{Text: report.String(), Raw: report, ExitCode: code, Failure: out.Result.Failure}, nil
}

// String writes a report for the model.
func (r Report) String() string {
	if len(r.Diagnostics) == 0 {
		return "No diagnostics (" + r.Checker + ")."
	}
	var b strings.Builder
	for _, f := range r.Diagnostics {
		if f.File != "" {
			fmt.Fprintf(&b, "%s:%d:%d: ", f.File, f.Line, f.Column)
		}
		b.WriteString(f.Severity + ": " + f.Message + "\n")
	}
	if r.Omitted > 0 {
		fmt.Fprintf(&b, "… and %d more\n", r.Omitted)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// What is kept of a finding, in characters. A checker prints what is in the project, which may be anything.
const (
	mostFile    = 500
	mostMessage = 1000
)

// brief returns a text on one line, without control characters, and cut.
func brief(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// arrange sorts findings, errors first, drops repeated ones, and cuts the list.
func arrange(list []Finding, dir string, most int) (kept []Finding, omitted int) {
	seen := map[Finding]bool{}
	rank := func(f Finding) int { return slices.Index([]string{"error", "warning", "note"}, f.Severity) }
	for _, f := range list {
		if filepath.IsAbs(f.File) {
			if rel, err := filepath.Rel(dir, f.File); err == nil && filepath.IsLocal(rel) {
				f.File = rel
			}
		}
		f.File, f.Message = brief(strings.TrimPrefix(f.File, "./"), mostFile), brief(f.Message, mostMessage)
		f.Line, f.Column = max(0, f.Line), max(0, f.Column)
		if f.Message == "" || seen[f] {
			continue
		}
		seen[f] = true
		kept = append(kept, f)
	}
	slices.SortStableFunc(kept, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(rank(a), rank(b)),
			strings.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column),
		)
	})
	if len(kept) > most {
		omitted = len(kept) - most
		kept = kept[:most]
	}
	if kept == nil {
		kept = []Finding{}
	}
	return kept, omitted
}
