package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// completionCommand prints a script with which a shell completes commands and flags.
func (c *command) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use: "completion bash|zsh|fish", Short: "Print what lets a shell complete commands and flags",
		Long: "Prints a script for the shell. Loaded, it completes the commands of zephbot, their flags and names of " +
			"files with Tab.",
		Example: "  bash: source <(zephbot completion bash)          # in ~/.bashrc; needs the package bash-completion\n" +
			"  zsh:  source <(zephbot completion zsh)           # in ~/.zshrc, after compinit\n" +
			"  fish: zephbot completion fish > ~/.config/fish/completions/zephbot.fish",
		Args: cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs), ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			var err error
			switch args[0] {
			case "bash":
				err = root.GenBashCompletionV2(c.env.Out, true)
			case "zsh":
				err = root.GenZshCompletion(c.env.Out)
			case "fish":
				err = root.GenFishCompletion(c.env.Out, true)
			}
			if err != nil {
				return fmt.Errorf("write the script: %w", err)
			}
			return nil
		},
	}
}
