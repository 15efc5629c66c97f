package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/tools/audit"
)

func (c *command) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Read or verify the audit logs", Args: oneOfSubs, RunE: needSub,
		Long: "Reads or verifies the audit logs of every mode: serve, simulate, chat and tools. --mode takes those " +
			"of one; a file takes that alone.",
	}
	var mode string
	cmd.PersistentFlags().StringVar(&mode, "mode", "",
		"only the logs of this mode: "+strings.Join(app.AuditModes(), ", "))
	var lines int
	tail := &cobra.Command{
		Use: "tail [FILE]", Short: "Print the last lines of each log; which it is of stands on stderr",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			if lines < 1 {
				return usageError{fmt.Errorf("--lines %d: want 1 or more", lines)}
			}
			return c.tailAudit(args, mode, lines)
		},
	}
	tail.Flags().IntVarP(&lines, "lines", "n", 20, "how many lines")
	verify := &cobra.Command{
		Use: "verify [FILE…]", Short: "Check the hash chains, over rotated files too; exit code 1 when one is broken",
		RunE: func(cmd *cobra.Command, args []string) error { return c.verifyAudit(cmd.Context(), args, mode) },
	}
	cmd.AddCommand(tail, verify)
	return cmd
}

func (c *command) tailAudit(args []string, mode string, lines int) error {
	logs, err := c.auditLogs(args, mode)
	if err != nil {
		return err
	}
	for _, log := range logs {
		if len(logs) > 1 {
			if _, err := fmt.Fprintf(c.env.Err, "==> %s: %s <==\n", log.Mode, log.Path); err != nil {
				return err
			}
		}
		if err := c.tailLog(log.Path, lines); err != nil {
			return err
		}
	}
	return nil
}

func (c *command) tailLog(path string, lines int) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	last, err := audit.Tail(f, lines)
	if err != nil || len(last) == 0 {
		return err
	}
	_, err = fmt.Fprintln(c.env.Out, strings.Join(last, "\n"))
	return err
}

// verifyAudit verifies every log, or the named files as one chain, and continues after a broken one.
func (c *command) verifyAudit(ctx context.Context, args []string, mode string) error {
	logs, err := c.auditLogs(args, mode)
	if err != nil {
		return err
	}
	var broken []error
	for _, log := range logs {
		files := args
		if len(args) < 2 {
			files = nil
		}
		broken = append(broken, c.verifyLog(ctx, log, files))
	}
	return errors.Join(broken...)
}

// verifyLog verifies the files of a chain, the oldest first: those that are named, or those that the hashes of the log
// lead to. The database of the mode contains the position of the log.
func (c *command) verifyLog(ctx context.Context, log app.AuditLog, names []string) (err error) {
	if names == nil {
		if names, err = audit.Files(log.Path); err != nil {
			return err
		}
	}
	mark, err := app.AuditMark(ctx, log)
	if err != nil {
		return err
	}
	files := make([]audit.File, 0, len(names))
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("audit log: %w", err)
		}
		defer func() { _ = f.Close() }() // read only
		files = append(files, audit.File{Name: name, Reader: f})
	}
	report, err := audit.Verify(mark, files...)
	if err != nil {
		return err
	}
	return c.auditReport(log.Path, report, mark, len(files))
}

func (c *command) auditReport(name string, report audit.Report, mark *audit.Mark, files int) error {
	for _, p := range report.Problems {
		where := p.File
		if p.Line > 0 {
			where += ":" + strconv.Itoa(p.Line)
		}
		if _, err := fmt.Fprintln(c.env.Out, where+": "+p.Text); err != nil {
			return err
		}
	}
	if len(report.Problems) > 0 {
		return fmt.Errorf("%s: the chain is broken in %d places", name, len(report.Problems))
	}
	end := ""
	if files > 1 {
		end = fmt.Sprintf(" in %d files", files)
	}
	if mark == nil {
		end += "; no database knows this log, so lines cut off at its end cannot be noticed"
	}
	_, err := fmt.Fprintf(c.env.Out, "ok: %s: %d lines, last hash %s%s\n", name, report.Lines, report.Last, end)
	return err
}

// auditLogs returns the log that is named last, or all that exist.
func (c *command) auditLogs(args []string, mode string) ([]app.AuditLog, error) {
	if mode != "" && !slices.Contains(app.AuditModes(), mode) {
		return nil, usageError{fmt.Errorf("--mode %q: there are %s", mode, strings.Join(app.AuditModes(), ", "))}
	}
	if len(args) > 0 {
		return []app.AuditLog{{Path: args[len(args)-1]}}, nil
	}
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	var logs []app.AuditLog
	var looked []string
	for _, log := range app.AuditLogs(c.options(cfg)) {
		shared := cfg.Audit.Destination != "" && log.Mode == app.AuditServe && mode != app.AuditTools
		if mode != "" && mode != log.Mode && !shared {
			continue
		}
		if looked = append(looked, log.Path); log.Exists() {
			logs = append(logs, log)
		}
	}
	switch {
	case len(logs) > 0:
		return logs, nil
	case cfg.Audit.Destination == "stdout" && mode != app.AuditTools:
		return nil, usageError{errors.New("the audit goes to stdout (audit.destination): there is no file to read")}
	default:
		return nil, fmt.Errorf("no audit log exists yet; looked for %s", strings.Join(looked, ", "))
	}
}
