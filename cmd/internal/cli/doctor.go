package cli

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/doctor"
)

func (c *command) doctorCommand() *cobra.Command {
	var asJSON, offline, model bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check everything that the service depends on, and say what to do", Args: cobra.NoArgs,
		Long: "Checks configuration, Telegram, models, databases, MCP servers, sandbox, audit log and more: " +
			"a line each, " +
			"with what to do where something is wrong.\n" +
			"It works with a broken configuration, and while the service runs. It changes nothing; each model " +
			"is asked for " +
			"one word. Exit code 1 if something fails.\n" +
			"--model also gives each model one small turn with all tools, and shows what its server refused, " +
			"what was learnt " +
			"by that, and what it cost.\n" +
			"--json prints a list of {\"check\",\"status\":\"ok|warn|fail\",\"text\",\"cure\"}. docs/setup.md " +
			"explains the rows.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			opts, err := c.patient()
			if err != nil {
				return err
			}
			opts.Offline, opts.Model = offline, model
			rows := doctor.Run(cmd.Context(), opts)
			if cmd.Context().Err() != nil {
				return cmd.Context().Err()
			}
			if asJSON {
				err = c.printJSON(rows)
			} else {
				err = c.printRows(rows)
			}
			if err == nil && slices.ContainsFunc(rows, func(r doctor.Row) bool { return r.Status == doctor.Fail }) {
				err = errSilent
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&model, "model", false, "give each model one small turn with all tools")
	cmd.Flags().BoolVar(&offline, "offline", false, "leave out what needs the network")
	return cmd
}

// patient returns what doctor examines: the configuration as far as it can be read. Of a file that cannot be read at
// all nothing is used, and a row says so.
func (c *command) patient() (doctor.Options, error) {
	cfg, found, err := c.examine()
	if err != nil {
		return doctor.Options{}, err
	}
	if cfg == nil {
		if cfg, err = c.bare(); err != nil {
			return doctor.Options{}, err
		}
		found.Warnings = append(found.Warnings, config.Problem{
			Text: "everything below is about the environment and the defaults only, because the file cannot be read; " +
				"correct it, and run zephbot doctor again",
		})
	}
	return doctor.Options{Options: c.options(cfg), Problems: found.Problems, Warnings: found.Warnings}, nil
}

// printRows prints a line for each row, with what to do below it.
func (c *command) printRows(rows []doctor.Row) error {
	wide, counts := 0, map[doctor.Status]int{}
	for _, r := range rows {
		wide = max(wide, len([]rune(r.Check)))
		counts[r.Status]++
	}
	for _, r := range rows {
		line := fmt.Sprintf("%-4s  %-*s  %s", r.Status, wide, r.Check, r.Text)
		if r.Cure != "" {
			line += " → " + r.Cure
		}
		if _, err := fmt.Fprintln(c.env.Out, line); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(
		c.env.Out, "%d ok, %d to look at, %d failed\n", counts[doctor.OK], counts[doctor.Warn], counts[doctor.Fail],
	)
	return err
}
