package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/tools/audit"
)

// maxMarkdown bounds what render reads.
const maxMarkdown = 8 << 20

func (c *command) renderCommand() *cobra.Command {
	return &cobra.Command{
		Use: "render", Short: "Show what Telegram would get for Markdown on stdin, as JSON", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			raw, err := io.ReadAll(io.LimitReader(c.env.In, maxMarkdown+1))
			if err != nil {
				return fmt.Errorf("read stdin: %w", err)
			}
			if len(raw) > maxMarkdown {
				return fmt.Errorf("stdin has more than %d bytes", maxMarkdown)
			}
			return c.printJSON(render.Markdown(string(raw)))
		},
	}
}

func (c *command) printJSON(v any) error {
	enc := json.NewEncoder(c.env.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (c *command) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check, print or begin a configuration", Args: oneOfSubs, RunE: needSub}
	var changed, force bool
	print := &cobra.Command{
		Use: "print", Short: "Print the effective configuration and where each value comes from; secrets stay hidden", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			return config.Print(c.env.Out, cfg, changed)
		},
	}
	print.Flags().BoolVar(&changed, "changed", false, "only what differs from the defaults")
	check := &cobra.Command{
		Use: "check", Short: "Find all mistakes in the configuration at once", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.checkConfig() },
	}
	begin := &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented configuration (default ./zephbot.toml)", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := config.FileName
			if len(args) == 1 {
				name = args[0]
			}
			return c.initConfig(name, force)
		},
	}
	begin.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	cmd.AddCommand(check, print, begin)
	return cmd
}

func (c *command) checkConfig() error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	for _, w := range cfg.Warnings {
		if _, err := fmt.Fprintln(c.env.Out, "warning: "+w.String()); err != nil {
			return err
		}
	}
	file := cfg.File
	if file == "" {
		file = "no config file (defaults and environment)"
	}
	_, err = fmt.Fprintln(c.env.Out, "ok: "+file)
	return err
}

func (c *command) initConfig(name string, force bool) error {
	if name == "-" {
		_, err := c.env.Out.Write(config.Init())
		return err
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.env.WorkDir, name)
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	f, err := os.OpenFile(name, mode, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already; --force overwrites it", name)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	_, err = f.Write(config.Init())
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	_, err = fmt.Fprintln(c.env.Out, "written: "+name)
	return err
}

func (c *command) auditCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "audit", Short: "Read or verify the audit log", Args: oneOfSubs, RunE: needSub}
	var lines int
	tail := &cobra.Command{
		Use: "tail [FILE]", Short: "Print the last lines", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			return c.withAudit(args, func(f *os.File, _ string) error {
				last, err := audit.Tail(f, lines)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(c.env.Out, strings.Join(last, "\n"))
				return err
			})
		},
	}
	tail.Flags().IntVarP(&lines, "lines", "n", 20, "how many lines")
	verify := &cobra.Command{
		Use: "verify [FILE…]", Short: "Check the hash chain, over rotated files too; exit code 1 when it is broken",
		RunE: func(cmd *cobra.Command, args []string) error { return c.verifyAudit(cmd.Context(), args) },
	}
	cmd.AddCommand(tail, verify)
	return cmd
}

// verifyAudit checks the files of a chain, the oldest first: those that are named, or those that the hashes of the log lead to. The service's database
// says how far the log had come.
func (c *command) verifyAudit(ctx context.Context, args []string) error {
	name, dirs, err := c.auditFile(args)
	if err != nil {
		return err
	}
	names := args
	if len(args) < 2 {
		if names, err = audit.Files(name); err != nil {
			return err
		}
	}
	mark, err := app.AuditMark(ctx, name, dirs...)
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
	return c.auditReport(name, report, mark, len(files))
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
	_, err := fmt.Fprintf(c.env.Out, "ok: %d lines, last hash %s%s\n", report.Lines, report.Last, end)
	return err
}

// auditFile is the log that is named last, or the configured one, and the directories whose database may know it.
func (c *command) auditFile(args []string) (name string, dirs []string, err error) {
	if len(args) > 0 {
		return args[len(args)-1], nil, nil
	}
	cfg, err := c.load()
	if err != nil {
		return "", nil, err
	}
	dir := cfg.Path(cfg.DataDir)
	switch cfg.Audit.Destination {
	case "stdout":
		return "", nil, usageError{errors.New("the audit goes to stdout (audit.destination): there is no file to read")}
	case "":
		return filepath.Join(dir, "audit.jsonl"), []string{dir}, nil
	default:
		return cfg.Path(cfg.Audit.Destination), []string{dir}, nil
	}
}

// withAudit opens the named audit log, or the configured one.
func (c *command) withAudit(args []string, do func(f *os.File, name string) error) error {
	name, _, err := c.auditFile(args)
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	defer func() { _ = f.Close() }() // read only
	return do(f, name)
}
