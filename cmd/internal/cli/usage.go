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

// wrongFlag makes a wrong flag a usage error that says what was wanted, and suggests the nearest one.
func wrongFlag(cmd *cobra.Command, err error) error {
	if missing, ok := errors.AsType[*pflag.NotExistError](err); ok {
		return usageError{unknownFlag(cmd, missing)}
	}
	if bare, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return usageError{fmt.Errorf("--%s needs a value: %s", bare.GetFlag().Name, wantedOf(bare.GetFlag()))}
	}
	if wrong, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		f := wrong.GetFlag()
		return usageError{fmt.Errorf("--%s %q: want %s", f.Name, wrong.GetValue(), wantedOf(f))}
	}
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}

// unknownFlag names the flag that was probably meant; of one letter, those that begin with it.
func unknownFlag(cmd *cobra.Command, missing *pflag.NotExistError) error {
	name := missing.GetSpecifiedName()
	written := "--" + name
	if missing.GetSpecifiedShortnames() != "" {
		written = "-" + name
	}
	var names, begin []string
	add := func(f *pflag.Flag) {
		names = append(names, f.Name)
		if !f.Hidden && strings.HasPrefix(f.Name, name) {
			begin = append(begin, "--"+f.Name)
		}
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	if near, ok := nearest.Nearest(name, names); ok && len(name) > 1 {
		begin = []string{"--" + near}
	}
	if len(begin) == 0 || len(begin) > 3 {
		return fmt.Errorf("unknown flag: %s; see %s --help", written, cmd.CommandPath())
	}
	return fmt.Errorf("unknown flag: %s; did you mean %s?", written, strings.Join(begin, " or "))
}

// wantedOf says which values a flag takes, and what they mean.
func wantedOf(f *pflag.Flag) string {
	kind := map[string]string{
		"int": "a whole number", "int64Slice": "whole numbers", "duration": "a time such as 30s or 5m",
		"bool": "true or false",
	}[f.Value.Type()]
	if kind == "" {
		return f.Usage
	}
	return kind + " (" + f.Usage + ")"
}
