package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/replay"
)

// printer prints until the first error.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

func (c *command) policyTestCommand() *cobra.Command {
	var asJSON, tap bool
	cmd := &cobra.Command{
		Use:   "test FILE…",
		Short: "Check examples of calls against the rules; exit code 1 if one is decided differently",
		Long: "Each [[example]] of a TOML file has tool, args and expect (allow, ask or deny), and optionally name, " +
			"caller, chat, mode\n" +
			"(serve or chat), flagged and rule (a part of the trace). Nothing is run. docs/policy.md has examples.",
		Args: cobra.MinimumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			files := make([][]replay.Example, len(args))
			for i, name := range args {
				list, err := c.examples(name)
				if err != nil {
					return usageError{err}
				}
				files[i] = list
			}
			cfg, err := c.load()
			if err != nil {
				return err
			}
			return c.rules(cfg, func(r *app.Rules) error {
				t := &policyTest{printer: printer{out: c.env.Out}, rules: r, tap: tap, json: asJSON}
				for i, list := range files {
					t.file(args[i], list)
				}
				return t.end()
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each example")
	cmd.Flags().BoolVar(&tap, "tap", false, "print TAP (test anything protocol)")
	cmd.MarkFlagsMutuallyExclusive("json", "tap")
	return cmd
}

// examples reads a file of examples.
func (c *command) examples(name string) ([]replay.Example, error) {
	path := name
	if !filepath.IsAbs(path) {
		path = filepath.Join(c.env.WorkDir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	data, err := io.ReadAll(io.LimitReader(f, replay.MaxExamples+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return replay.ParseExamples(name, data)
}

// policyTest prints the outcomes of examples.
type policyTest struct {
	printer
	rules     *app.Rules
	tap, json bool
	done      int
	failed    int
}

func (t *policyTest) file(name string, list []replay.Example) {
	if t.tap && t.done == 0 {
		t.printf("TAP version 13\n")
	}
	for i := range list {
		r := replay.Test(&list[i], t.rules, app.ExampleCall)
		if t.done++; !r.OK {
			t.failed++
		}
		switch {
		case t.json:
			t.asJSON(name, r)
		case t.tap:
			t.asTAP(name, r)
		case !r.OK:
			t.asText(name, r)
		}
	}
}

func (t *policyTest) asText(name string, r replay.Result) {
	t.printf("%s\n", title(name, r))
	if r.Error != "" {
		t.printf("    cannot be decided: %s\n", oneLine(r.Error))
		return
	}
	t.printf("    expected %s\n    got      %s\n", expected(r), got(r))
	if r.Got.Reason != "" {
		t.printf("    because  %s\n", oneLine(r.Got.Reason))
	}
}

func (t *policyTest) asTAP(name string, r replay.Result) {
	if r.OK {
		t.printf("ok %d - %s\n", t.done, title(name, r))
		return
	}
	t.printf("not ok %d - %s\n  ---\n  expected: %q\n  got: %q\n  reason: %q\n  ...\n",
		t.done, title(name, r), expected(r), got(r), r.Got.Reason+r.Error)
}

func (t *policyTest) asJSON(name string, r replay.Result) {
	if t.err != nil {
		return
	}
	t.err = (&command{env: Env{Out: t.out}}).printLine(struct {
		File string `json:"file"`
		replay.Result
	}{name, r})
}

// title names an example: its place, its name and its call.
func title(name string, r replay.Result) string {
	text := fmt.Sprintf("%s:%d", name, r.Line)
	if r.Name != "" {
		text += " (" + oneLine(r.Name) + ")"
	}
	return text + ": " + r.Tool + " " + shortened(oneLine(r.What), 100)
}

func expected(r replay.Result) string {
	if r.Rule == "" {
		return r.Expect
	}
	return fmt.Sprintf("%s by a rule with %q", r.Expect, r.Rule)
}

func got(r replay.Result) string { return oneLine(r.Got.Effect + " by " + r.Got.Rule) }

func (t *policyTest) end() error {
	switch {
	case t.tap:
		t.printf("1..%d\n", t.done)
	case !t.json:
		t.printf("%d examples, %d as expected, %d not\n", t.done, t.done-t.failed, t.failed)
	}
	if t.err == nil && t.failed > 0 {
		return errSilent
	}
	return t.err
}
