package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
)

// maxMessage limits a message that --once reads from stdin, in bytes.
const maxMessage = 1 << 20

// fromStdin is the value of --once that means stdin.
const fromStdin = "-"

func (c *command) chatCommand() *cobra.Command {
	var once string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "chat", Short: "Chat in the terminal", Args: cobra.MaximumNArgs(1),
		Long: "Talks to the agent in the terminal; its tools work in the current directory. Ctrl-C ends the running " +
			"turn, and at the prompt the program.\n" +
			"--once answers one message and ends; without a message, or with -, it reads stdin. --json prints one " +
			"JSON object an event:\n" +
			"{\"type\",\"session\",\"turn\",\"text\",\"call\",\"approval\"} with the types delta, tool_started, " +
			"tool_finished, notice, approval, answer, error.\n" +
			"If there is nobody at the terminal, calls that need approval are denied.",
		Example: "  zephbot chat --once \"what is in this directory?\"\n  git diff | zephbot chat --once",
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := c.once(cmd.Flags().Changed("once"), once, args)
			if err != nil {
				return err
			}
			cfg, err := c.load()
			if err != nil {
				return err
			}
			if cfg.Log.Level == "info" && cfg.Origin("log.level") == (config.Origin{}) {
				cfg.Log.Level = "warn" // only the conversation matters here
			}
			return app.Chat(cmd.Context(), c.options(cfg), app.ChatOptions{
				In: c.env.In, Out: c.env.Out, Err: c.env.Err, Once: text, JSON: asJSON, Ask: c.env.InTerm,
				Flush: c.env.Flush, Language: language(c.env.Environ),
				Interrupts: c.interrupts.take,
			})
		},
	}
	cmd.Flags().StringVar(&once, "once", "", "answer this message and end; - or no message: the one on stdin")
	cmd.Flags().Lookup("once").NoOptDefVal = fromStdin
	cmd.Flags().BoolVar(&asJSON, "json", false, "print events as JSON")
	return cmd
}

// once returns the message of --once, "" without the flag. Because the flag's value is optional, the text of `--once
// TEXT` arrives as an argument.
func (c *command) once(set bool, value string, args []string) (string, error) {
	switch {
	case !set && len(args) > 0:
		return "", usageError{fmt.Errorf("chat takes no argument: use --once %q for a single message", args[0])}
	case !set:
		return "", nil
	case len(args) > 0 && value != fromStdin:
		return "", usageError{errors.New("--once takes one message; write it in quotes")}
	case len(args) > 0:
		value = args[0]
	}
	if value == fromStdin {
		raw, err := io.ReadAll(io.LimitReader(c.env.In, maxMessage+1))
		if err != nil {
			return "", fmt.Errorf("read stdin: %w", err)
		}
		if len(raw) > maxMessage {
			return "", usageError{fmt.Errorf("the message on stdin has more than %d bytes", maxMessage)}
		}
		value = strings.TrimRight(strings.ToValidUTF8(string(raw), "\uFFFD"), "\r\n")
	}
	if strings.TrimSpace(value) == "" {
		return "", usageError{errors.New("--once needs a message: write it after the flag, or provide it on stdin")}
	}
	return value, nil
}
