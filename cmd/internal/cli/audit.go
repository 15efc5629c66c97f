package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/layout"
)

func (c *command) auditCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "audit", Short: "Read, verify or export the audit logs", Args: oneOfSubs, RunE: needSub,
		Long: "Reads, verifies or exports the audit logs of every mode: serve, simulate, chat and tools. --mode " +
			"takes those " +
			"of one; a file takes that alone.",
	}
	var mode string
	cmd.PersistentFlags().StringVar(&mode, "mode", "",
		"only the logs of this mode: "+strings.Join(layout.Modes(), ", "))
	cmd.AddCommand(c.tailCommand(&mode), c.verifyCommand(&mode), c.exportCommand(&mode))
	return cmd
}

// errNoLog means that nothing has written an audit log yet.
var errNoLog = errors.New("no audit log exists yet")

// auditLogs returns the log that is named last, or all that exist.
func (c *command) auditLogs(args []string, mode string) ([]layout.Log, error) {
	if len(args) > 0 {
		return c.logsOf(nil, args, mode)
	}
	cfg, err := c.load()
	if err != nil {
		return nil, err
	}
	return c.logsOf(cfg, nil, mode)
}

// logsOf is auditLogs for a configuration that has been read.
func (c *command) logsOf(cfg *config.Config, args []string, mode string) ([]layout.Log, error) {
	if mode != "" && !slices.Contains(layout.Modes(), mode) {
		return nil, usageError{fmt.Errorf("--mode %q: there are %s", mode, strings.Join(layout.Modes(), ", "))}
	}
	if len(args) > 0 {
		return []layout.Log{{Path: args[len(args)-1]}}, nil
	}
	var logs []layout.Log
	var looked []string
	for _, log := range c.options(cfg).Layout().Logs() {
		shared := cfg.Audit.Destination != "" && log.Mode == layout.Serve && mode != layout.Tools
		if mode != "" && mode != log.Mode && !shared {
			continue
		}
		if looked = append(looked, log.Path); log.Exists() {
			logs = append(logs, log)
		}
	}
	switch {
	case len(logs) > 0:
		return logs, nil
	case cfg.Audit.Destination == "stdout" && mode != layout.Tools:
		return nil, usageError{errors.New("the audit goes to stdout (audit.destination): there is no file to read")}
	default:
		return nil, fmt.Errorf("%w; looked for %s", errNoLog, strings.Join(looked, ", "))
	}
}
