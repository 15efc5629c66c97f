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
		Use: "scan secrets|injection", Short: "Look for credentials or for prompt injection in stdin, one text a line", Args: cobra.ExactArgs(1),
		ValidArgs: []string{"secrets", "injection"},
		RunE: func(_ *cobra.Command, args []string) error {
			look, err := scanner(args[0])
			if err != nil {
				return err
			}
			return c.lines(func(line string) error { return c.printLine(look(line)) })
		},
	}
}

func scanner(kind string) (func(string) verdict, error) {
	switch kind {
	case "secrets":
		r := redact.New(nil)
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
			clean, rules := scan.Clean(text)
			if rules == nil {
				rules = []string{}
			}
			return verdict{Flagged: len(rules) > 0, Rules: rules, Text: clean}
		}, nil
	default:
		return nil, usageError{errors.New("scan needs secrets or injection")}
	}
}
