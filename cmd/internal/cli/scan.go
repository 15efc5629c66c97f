package cli

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/policy/redact"
	"github.com/zephbot/zephbot/policy/scan"
)

// verdict is one line of `scan` (contract).
type verdict struct {
	Flagged bool     `json:"flagged"`
	Rules   []string `json:"rules"`
	Text    string   `json:"text"` // after redaction or sanitising
}

func (c *command) scanCommand() *cobra.Command {
	return &cobra.Command{
		Use: "scan secrets|injection", Short: "Look for credentials or for prompt injection in stdin, one text a line",
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"secrets", "injection"},
		RunE: func(_ *cobra.Command, args []string) error {
			look, err := c.scanner(args[0])
			if err != nil {
				return err
			}
			return c.everyLine(func(line string) error { return c.printLine(look(line)) })
		},
	}
}

// scanner returns the function that scans one text. It looks for credentials like the service, with
// tools.filters.security.extra_patterns.
func (c *command) scanner(kind string) (func(string) verdict, error) {
	switch kind {
	case "secrets":
		r, err := c.extraRedactor()
		if err != nil {
			return nil, err
		}
		return func(text string) verdict {
			v := verdict{Rules: []string{}, Text: r.String(text)}
			for _, f := range r.Scan(text) {
				if !slices.Contains(v.Rules, f.Rule) {
					v.Rules = append(v.Rules, f.Rule)
				}
			}
			v.Flagged = len(v.Rules) > 0
			return v
		}, nil
	case "injection":
		return func(text string) verdict {
			v := verdict{Rules: []string{}, Text: scan.Visible(text)}
			for _, m := range scan.Flag(text) {
				if !slices.Contains(v.Rules, m.Rule) {
					v.Rules = append(v.Rules, m.Rule)
				}
			}
			if v.Flagged = len(v.Rules) > 0; v.Flagged {
				v.Text, _ = scan.Clean(text)
			}
			return v
		}, nil
	default:
		return nil, usageError{errors.New("scan needs secrets or injection")}
	}
}

// extraRedactor returns a Redactor with the known shapes and the extra patterns of the configuration.
func (c *command) extraRedactor() (*redact.Redactor, error) {
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	var options redact.Options
	if s := cfg.Tools.Filters.Security; s.Enabled {
		options.ExtraPatterns = s.ExtraPatterns
	}
	return redact.NewWith(options)
}
