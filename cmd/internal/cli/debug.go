package cli

import (
	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/upkeep"
)

func (c *command) debugCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "debug", Short: "Gather what a bug report needs", Args: oneOfSubs, RunE: needSub}
	var texts bool
	dump := &cobra.Command{
		Use:   "dump TURN",
		Short: "Print what is known of a turn as JSON: journal, outbox, audit; credentials never, texts with --texts",
		Args:  cobra.ExactArgs(1),
		Long: "Prints what is known of a turn as JSON: its journal since the conversation began, its rows of the " +
			"outbox, its lines of the audit with the codes of MCP servers.\n" +
			"The log of the service and the audit name turns. Texts and arguments are left out, unless --texts is " +
			"given; credentials are taken out always. It may be run beside the service.",
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			found, err := upkeep.Dump(cmd.Context(), c.options(cfg), args[0], texts)
			if err != nil {
				return err
			}
			return c.printJSON(found)
		},
	}
	dump.Flags().BoolVar(&texts, "texts", false, "with what people, the model and tools said")
	cmd.AddCommand(dump)
	return cmd
}
