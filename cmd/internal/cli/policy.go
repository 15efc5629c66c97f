package cli

import (
	"encoding/json"
	"errors"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// rules opens the rules of a configuration, calls run, and closes them.
func (c *command) rules(cfg *config.Config, run func(*app.Rules) error) error {
	if cfg.Log.Level == "info" {
		cfg.Log.Level = "error" // only the answer matters here
	}
	r, err := app.OpenRules(c.options(cfg))
	if err != nil {
		return err
	}
	return errors.Join(run(r), r.Close())
}

func (c *command) policyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "policy",
		Short: "Ask what the rules decide, test them, or replay recorded calls with others",
		Args:  oneOfSubs,
		RunE:  needSub,
	}
	cmd.AddCommand(c.policyCheckCommand(), c.policyReplayCommand(), c.policyTestCommand())
	return cmd
}

func (c *command) policyCheckCommand() *cobra.Command {
	var caller string
	check := &cobra.Command{
		Use: "check TOOL JSON | -", Short: "Print decision and trace as JSON", Args: cobra.RangeArgs(1, 2),
		Long: "Prints {\"effect\":\"allow|ask|deny\",\"rule\",\"reason\"}. With - it reads one " +
			"{\"tool\":\"…\",\"args\":{…}} a line and answers one decision a line;\n" +
			"a line that is wrong is answered with {\"error\":\"…\"} and the others go on (exit code 1 at the end).",
		RunE: func(cmd *cobra.Command, args []string) error {
			if (args[0] == "-") != (len(args) == 1) {
				return usageError{errors.New("policy check needs TOOL and JSON, or - alone")}
			}
			return c.bench(func(b *app.Bench) error {
				if args[0] == "-" {
					return c.checkLines(cmd.Context(), b, caller)
				}
				d, err := b.Check(cmd.Context(), app.CallOptions{
					Tool: args[0], Args: json.RawMessage(args[1]), Caller: caller,
				})
				if err != nil {
					return err
				}
				return c.printLine(d)
			})
		},
	}
	check.Flags().StringVar(&caller, "caller", "", "caller id, such as telegram:42")
	return check
}
