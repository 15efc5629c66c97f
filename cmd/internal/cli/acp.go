package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

func (c *command) acpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "acp", Short: "Serve a code editor over the Agent Client Protocol", Args: cobra.NoArgs,
		Long: "Speaks the Agent Client Protocol on stdin and stdout; an editor starts it as its agent. Its " +
			"tools work in " +
			"the project that is open there. Log lines go to stderr. Ends when the editor closes stdin.",
		Example: "  in the settings of Zed:\n  \"agent_servers\": {\"zephbot\": {\"command\": \"zephbot\", " +
			"\"args\": [\"acp\"]}}",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.env.InTerm {
				return usageError{
					errors.New("acp speaks with an editor on stdin, and stdin is a terminal: name it as an agent in " +
						"the editor's settings, or use `zephbot chat` here"),
				}
			}
			cfg, err := c.load()
			if err != nil {
				return err
			}
			if cfg.Log.Level == "info" && cfg.Origin("log.level") == (config.Origin{}) {
				cfg.Log.Level = "warn" // an editor shows what is on stderr as problems
			}
			return app.ACP(cmd.Context(), c.options(cfg), app.ACPOptions{
				In:       c.env.In,
				Out:      c.env.Out,
				Language: language(c.env.Environ),
			})
		},
	}
}
