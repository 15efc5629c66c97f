package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/layout"
	"github.com/zephbot/zephbot/tools/audit"
)

func (c *command) verifyCommand(mode *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "verify [FILE…]", Short: "Check the hash chains, over rotated files too; exit code 1 when one is broken",
		Long: "Checks that no line of the audit logs was changed, added, moved, removed or cut off, and names " +
			"the first bad\n" +
			"line of each log. With files, they are one chain, the oldest first.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.verifyAudit(cmd.Context(), args, *mode, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object for each log")
	return cmd
}

// verified is what verify says of a log.
type verified struct {
	Log    string         `json:"log"`
	Mode   string         `json:"mode,omitempty"`
	OK     bool           `json:"ok"`
	Files  int            `json:"files"`
	Marked bool           `json:"marked"` // a database knows how far the log had come
	First  *audit.Problem `json:"first,omitempty"`
	audit.Report
}

// verifyAudit verifies every log, or the named files as one chain, and continues after a broken one.
func (c *command) verifyAudit(ctx context.Context, args []string, mode string, asJSON bool) error {
	logs, err := c.auditLogs(args, mode)
	if err != nil {
		return err
	}
	var broken []error
	for _, log := range logs {
		v, err := verifyLog(ctx, log, args)
		if err != nil {
			broken = append(broken, err)
			continue
		}
		if asJSON {
			err = c.printLine(v)
			if err == nil && !v.OK {
				err = errSilent
			}
		} else {
			err = c.auditReport(v)
		}
		broken = append(broken, err)
	}
	return errors.Join(broken...)
}

// verifyLog verifies the files of a chain, the oldest first: those that are named, or those that the hashes of the log
// lead to. The database of the mode contains the position of the log.
func verifyLog(ctx context.Context, log layout.Log, names []string) (v verified, err error) {
	mark, err := layout.MarkOf(ctx, log)
	if err != nil {
		return v, err
	}
	v = verified{Log: log.Path, Mode: log.Mode, Marked: mark != nil, Files: len(names)}
	if len(names) > 1 {
		v.Report, err = audit.VerifyFiles(mark, names...)
	} else {
		v.Report, v.Files, err = audit.VerifyLog(log.Path, mark)
	}
	if v.OK = len(v.Problems) == 0; !v.OK {
		v.First = &v.Problems[0]
	}
	return v, err
}

// maxShown limits how many problems of a log are printed.
const maxShown = 20

func (c *command) auditReport(v verified) error {
	for i, p := range v.Problems {
		if i == maxShown {
			if _, err := fmt.Fprintf(
				c.env.Out, "… and %d more; --json has up to 200\n", len(v.Problems)-i+v.More,
			); err != nil {
				return err
			}
			break
		}
		if _, err := fmt.Fprintln(c.env.Out, problemLine(p)); err != nil {
			return err
		}
	}
	if err := c.auditNotes(v); err != nil {
		return err
	}
	if !v.OK {
		return fmt.Errorf(
			"%s: the chain is broken in %d places; the first bad line is %s",
			v.Log, len(v.Problems)+v.More, placeOf(*v.First),
		)
	}
	end := ""
	if v.Files > 1 {
		end = fmt.Sprintf(" in %d files", v.Files)
	}
	if !v.Marked {
		end += "; no database knows this log, so lines cut off at its end cannot be noticed"
	}
	_, err := fmt.Fprintf(c.env.Out, "ok: %s: %d lines, last hash %s%s\n", v.Log, v.Lines, v.Last, end)
	return err
}

// auditNotes prints what is not as it was written, and accounted for.
func (c *command) auditNotes(v verified) error {
	var notes []string
	if r := v.Removed; r != nil {
		notes = append(notes, fmt.Sprintf(
			"%d lines until %s were removed by retention on %s", r.Lines, local(r.Until), local(r.At),
		))
	}
	for _, e := range v.Erased {
		text := fmt.Sprintf("%d lines were pseudonymised on %s by order %s", e.Lines, local(e.At), e.Receipt)
		if e.Gone > 0 {
			text += fmt.Sprintf(
				"; %d more lines of it are not here (removed by retention, or not replaced yet)", e.Gone,
			)
		}
		notes = append(notes, text)
	}
	if v.Torn > 0 {
		notes = append(notes, fmt.Sprintf(
			"%d lines were cut short by a crash, which the lines after them account for", v.Torn,
		))
	}
	if v.Report.Lost > 0 {
		notes = append(notes, fmt.Sprintf("%d lines could not be written, according to the log", v.Report.Lost))
	}
	if v.Unfinished {
		notes = append(notes, "the last line is incomplete: it is being written, or a crash cut it short within its "+
			"last second; the next start accounts for it")
	}
	for _, note := range notes {
		if _, err := fmt.Fprintf(c.env.Out, "%s: %s\n", v.Log, note); err != nil {
			return err
		}
	}
	return nil
}

func problemLine(p audit.Problem) string {
	return placeOf(p) + ": " + string(p.Kind) + ": " + oneLine(p.Text)
}

// placeOf returns FILE:LINE and the time that the line says.
func placeOf(p audit.Problem) string {
	where := p.File
	if p.Line > 0 {
		where += ":" + strconv.Itoa(p.Line)
	}
	if p.Time != "" {
		where += " (" + oneLine(local(p.Time)) + ")"
	}
	return where
}

// local returns a time of a line in the local zone; what is no time stays as it is.
func local(stamp string) string {
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return stamp
	}
	return at.Local().Format("2006-01-02 15:04:05 -0700")
}
