package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zephbot/zephbot/policy/nearest"
)

// needSub fails a command that only groups others.
func needSub(cmd *cobra.Command, _ []string) error {
	return usageError{
		fmt.Errorf("%s needs one of its subcommands: %s; see %s --help", cmd.Name(), strings.Join(subs(cmd), ", "),
			cmd.CommandPath()),
	}
}

// oneOfSubs refuses an unknown subcommand, and suggests the nearest one.
func oneOfSubs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	text := fmt.Sprintf("unknown command %q for %s; ", args[0], cmd.CommandPath())
	if near, ok := nearest.Nearest(args[0], subs(cmd)); ok {
		return usageError{fmt.Errorf("%sdid you mean %s?", text, near)}
	}
	return usageError{fmt.Errorf("%sthere are: %s", text, strings.Join(subs(cmd), ", "))}
}

// subs returns the names of the subcommands that a person may type.
func subs(cmd *cobra.Command) []string {
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return names
}

// wrongFlag makes a wrong flag a usage error, and suggests the nearest one.
func wrongFlag(cmd *cobra.Command, err error) error {
	missing, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || missing.GetSpecifiedShortnames() != "" {
		return usageError{err}
	}
	var names []string
	add := func(f *pflag.Flag) { names = append(names, f.Name) }
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	if near, ok := nearest.Nearest(missing.GetSpecifiedName(), names); ok {
		return usageError{fmt.Errorf("%w; did you mean --%s?", err, near)}
	}
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}
