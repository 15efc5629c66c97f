package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/tools/filter"
)

// maxFiltered limits what filter reads, in bytes.
const maxFiltered = 64 << 20

// filtered is what `filter --json` prints (contract).
type filtered struct {
	Text       string   `json:"text"`
	Rules      []string `json:"rules"`
	Confidence string   `json:"confidence"`
	LinesIn    int      `json:"lines_in"`
	LinesOut   int      `json:"lines_out"`
	CharsIn    int      `json:"chars_in"`
	CharsOut   int      `json:"chars_out"`
}

// filterFlags are the flags of `filter`.
type filterFlags struct {
	command string
	exit    int
	json    bool
}

func (c *command) filter() *cobra.Command {
	var f filterFlags
	cmd := &cobra.Command{
		Use: "filter --command CMD", Short: "Filter the output of a command on stdin as the model would see it",
		Args: cobra.NoArgs,
		Long: "Filter the output of a command on stdin as the model would see it: credentials hidden, noise dropped " +
			"by the rules of [tools.filters].\n" +
			"What was removed is counted on stderr.",
		Example: `  go test ./... 2>&1 | zephbot filter --command "go test ./..." --exit-code 1`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("command") || strings.TrimSpace(f.command) == "" {
				return usageError{errors.New("filter needs --command: the command whose output is on stdin")}
			}
			if f.exit < -1 || f.exit > 255 {
				return usageError{
					fmt.Errorf("--exit-code %d: want 0 to 255, or -1 for a command that was killed", f.exit),
				}
			}
			return c.runFilter(f)
		},
	}
	cmd.Flags().StringVar(&f.command, "command", "", "the command line that printed what is on stdin")
	cmd.Flags().IntVar(&f.exit, "exit-code", 0, "its exit code; -1 when a signal or a time limit ended it")
	cmd.Flags().BoolVar(&f.json, "json", false, "print JSON with rule names and confidence")
	return cmd
}

func (c *command) runFilter(f filterFlags) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	engine, masked, err := c.outputFilter(cfg)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(c.env.In, maxFiltered+1))
	if err != nil {
		return fmt.Errorf("read stdin: %w", err)
	}
	if len(raw) > maxFiltered {
		return fmt.Errorf("stdin has more than %d bytes", maxFiltered)
	}
	exit := &f.exit
	if f.exit < 0 {
		exit = nil
	}
	out := engine.Filter(f.command, exit, masked(strings.ToValidUTF8(string(raw), "\uFFFD")))
	if err := c.printFiltered(out, f.json); err != nil {
		return err
	}
	if stats := out.Stats(); stats != "" {
		_, err = fmt.Fprintln(c.env.Err, stats)
	}
	return err
}

func (c *command) printFiltered(out filter.Output, asJSON bool) error {
	if asJSON {
		v := filtered{
			Text: out.Text, Rules: out.Rules, Confidence: out.Level.String(), LinesIn: out.LinesIn,
			LinesOut: out.LinesOut, CharsIn: out.CharsIn, CharsOut: out.CharsOut,
		}
		if v.Rules == nil {
			v.Rules = []string{}
		}
		return c.printLine(v)
	}
	text := out.Text
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	_, err := io.WriteString(c.env.Out, text)
	return err
}

// outputFilter builds the filter of the configuration, and the function that hides credentials before it. Problems of
// the rules are printed to stderr.
func (c *command) outputFilter(cfg *config.Config) (*filter.Engine, func(string) string, error) {
	options := cfg.Tools.Filters
	beside := ""
	if cfg.File != "" {
		beside = filepath.Dir(cfg.Path(cfg.File))
	}
	rules, problems := filter.Load(filter.Find(cfg.Path(options.FiltersPath), beside))
	for _, p := range problems {
		if _, err := fmt.Fprintln(c.env.Err, "warning: "+p.String()); err != nil {
			return nil, nil, err
		}
	}
	masked := func(s string) string { return s }
	if options.Security.Enabled {
		redactor, err := redact.NewWith(redact.Options{ExtraPatterns: options.Security.ExtraPatterns})
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("tools.filters.security.extra_patterns: %w", err)}
		}
		masked = redactor.String
	}
	return filter.NewEngine(filter.Options{
		Rules: rules, Disabled: !options.Enabled, Quiet: !options.Security.Enabled,
	}), masked, nil
}
