package cli

import (
	"bufio"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/policy/nearest"
	"github.com/zephbot/zephbot/tools/audit"
)

// auditExport is `audit export`.
type auditExport struct {
	c      *command
	format string
	output string
	force  bool
	filter auditFilter
	broken int // lines that were left out
}

// exportFormats lists the formats of audit export.
func exportFormats() []string { return []string{"jsonl", "csv", "table"} }

func (c *command) exportCommand(mode *string) *cobra.Command {
	e := &auditExport{c: c}
	cmd := &cobra.Command{
		Use:   "export [FILE]",
		Short: "Write the lines of all logs as JSON lines, CSV or a table; exit code 1 when a chain is broken",
		Long: "Writes the lines of the audit logs of all modes and processes in the order of their times. The chains " +
			"are verified\n" +
			"first: what is broken is said on stderr and by the exit code 1, and the rest is written nevertheless.\n" +
			"In CSV, a cell that a spreadsheet would read as a formula begins with an apostrophe.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return e.run(cmd.Context(), args, *mode) },
	}
	flags := cmd.Flags()
	flags.StringVar(&e.format, "format", "jsonl", strings.Join(exportFormats(), ", "))
	flags.StringVarP(&e.output, "output", "o", "", "write to this file, which must not exist")
	flags.BoolVar(&e.force, "force", false, "replace the file of -o")
	e.filter.add(flags)
	return cmd
}

func (e *auditExport) run(ctx context.Context, args []string, mode string) error {
	if !slices.Contains(exportFormats(), e.format) {
		text := fmt.Sprintf("--format %q: there are %s", e.format, strings.Join(exportFormats(), ", "))
		if near, ok := nearest.Nearest(e.format, exportFormats()); ok {
			text = fmt.Sprintf("--format %q: did you mean %s?", e.format, near)
		}
		return usageError{errors.New(text)}
	}
	if err := e.filter.parse(time.Now()); err != nil {
		return err
	}
	logs, err := e.c.auditLogs(args, mode)
	if err != nil {
		return err
	}
	verdict := e.verify(ctx, logs)
	if err := e.write(func(out io.Writer) error { return e.export(ctx, out, logs) }); err != nil {
		return err
	}
	if e.broken > 0 {
		verdict = errors.Join(
			verdict, fmt.Errorf("%d broken lines were left out; zephbot audit verify names them", e.broken),
		)
	}
	return verdict
}

// verify verifies all logs.
func (e *auditExport) verify(ctx context.Context, logs []layout.Log) error {
	var broken []error
	for _, log := range logs {
		v, err := verifyLog(ctx, log, nil)
		switch {
		case err != nil:
			broken = append(broken, err)
		case !v.OK:
			broken = append(broken, fmt.Errorf("%s: the chain is broken; the first bad line is %s: %s: %s",
				log.Path, placeOf(*v.First), v.First.Kind, oneLine(v.First.Text)))
		}
	}
	return errors.Join(broken...)
}

// write calls do with stdout, or with a file that appears under its name when it is complete.
func (e *auditExport) write(do func(io.Writer) error) (err error) {
	if e.output == "" {
		out := bufio.NewWriterSize(e.c.env.Out, 64<<10)
		return errors.Join(do(out), out.Flush())
	}
	name := e.output
	if !filepath.IsAbs(name) {
		name = filepath.Join(e.c.env.WorkDir, name)
	}
	if _, err := os.Lstat(name); err == nil && !e.force {
		return usageError{fmt.Errorf("-o %s: the file exists; --force replaces it", e.output)}
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("-o %s: %w", e.output, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error that is returned is more important
		}
	}()
	out := bufio.NewWriterSize(f, 64<<10)
	if err := errors.Join(do(out), out.Flush(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func (e *auditExport) export(ctx context.Context, out io.Writer, logs []layout.Log) error {
	paths := make([]string, 0, len(logs))
	for _, log := range logs {
		paths = append(paths, log.Path)
	}
	one, end := e.writer(out, logs)
	err := audit.Merge(ctx, paths, e.filter.since, func(log int, l *audit.Line) error {
		switch {
		case !e.filter.match(l):
			return nil
		case l.Broken != "":
			e.broken++
			return nil
		default:
			return one(log, l)
		}
	})
	return errors.Join(err, end())
}

// writer returns what writes a line, and what ends the export.
func (e *auditExport) writer(
	out io.Writer, logs []layout.Log,
) (one func(log int, l *audit.Line) error, end func() error) {
	switch e.format {
	case "csv":
		w := csv.NewWriter(out)
		begun := w.Write(csvColumns())
		one = func(log int, l *audit.Line) error { return errors.Join(begun, w.Write(csvRow(logs[log].Mode, l))) }
		return one, func() error {
			w.Flush()
			return errors.Join(begun, w.Error())
		}
	case "table":
		t := auditTable{out: out, zone: time.Local}
		return func(_ int, l *audit.Line) error { return t.line(l) }, func() error { return nil }
	default:
		one = func(_ int, l *audit.Line) error {
			_, err := out.Write(append(l.Raw, '\n'))
			return err
		}
		return one, func() error { return nil }
	}
}

func csvColumns() []string {
	return []string{
		"timestamp", "mode", "kind", "caller_id", "channel", "session", "turn", "call", "parent_call", "tool", "args",
		"result", "reason", "error_category", "duration_ms", "exit_code", "truncated", "policy_effect",
		"policy_match", "approved_by", "cached", "attempts", "mcp_server_id", "mcp_error_code",
		"adversarial_policy_decision", "injection_flagged", "mark_cleared", "layer_applied", "correlation_id", "url",
		"method", "status", "response_bytes", "block_reason", "pseudonymised", "writer", "hash", "file", "line",
	}
}

func csvRow(mode string, l *audit.Line) []string {
	row := []string{
		l.Time.UTC().Format("2006-01-02T15:04:05.000Z"),
		mode,
		l.Kind,
		l.Caller,
		l.Channel,
		l.Session,
		l.Turn,
		l.Call,
		l.Parent,
		l.Tool,
		string(l.Args),
		l.Result,
		l.Reason,
		string(l.Category),
		number(l.Millis),
		number(l.ExitCode),
		flag(l.Truncated),
		l.Effect,
		l.Rule,
		l.ApprovedBy,
		flag(l.Cached),
		count(l.Attempts),
		l.Server,
		l.ServerError,
		l.Judge,
		flag(l.Injection),
		l.Cleared,
		l.Layer,
		l.Correlation,
		l.Request.URL,
		l.Request.Method,
		count(l.Request.Status),
		count(l.Request.Bytes),
		l.Request.Blocked,
		flag(l.Erased),
		l.Writer,
		l.Hash,
		l.File,
		strconv.Itoa(l.Number),
	}
	for i, text := range row {
		row[i] = harmless(text)
	}
	return row
}

// harmless prevents a spreadsheet from reading a cell as a formula: one that begins like it gets an apostrophe. Numbers
// stay numbers.
func harmless(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r\n|%", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseInt(text, 10, 64); err == nil && text[0] == '-' {
		return text
	}
	return "'" + text
}

func number[T int | int64](n *T) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}

func count[T int | int64](n T) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatInt(int64(n), 10)
}

func flag(b bool) string {
	if b {
		return "true"
	}
	return ""
}
