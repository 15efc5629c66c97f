package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
)

// maxMarkdown limits what render reads, in bytes.
const maxMarkdown = 8 << 20

func (c *command) renderCommand() *cobra.Command {
	return &cobra.Command{
		Use: "render", Short: "Show what Telegram would get for Markdown on stdin, as JSON", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			raw, err := io.ReadAll(io.LimitReader(c.env.In, maxMarkdown+1))
			if err != nil {
				return fmt.Errorf("read stdin: %w", err)
			}
			if len(raw) > maxMarkdown {
				return fmt.Errorf("stdin has more than %d bytes", maxMarkdown)
			}
			return c.printJSON(render.Markdown(string(raw)))
		},
	}
}

func (c *command) printJSON(v any) error {
	enc := json.NewEncoder(c.env.Out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func (c *command) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check, print or begin a configuration", Args: oneOfSubs, RunE: needSub}
	var changed, force, all bool
	print := &cobra.Command{
		Use: "print", Short: "Print the effective configuration and where each value comes from; secrets stay hidden",
		Long: "Print the effective configuration and where each value comes from; secrets stay hidden.\n" +
			"What was learnt of the servers of models follows as comments.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			if err := config.Print(c.env.Out, cfg, changed); err != nil {
				return err
			}
			return upkeep.PrintLearnt(cmd.Context(), c.env.Out, c.options(cfg).Layout(), time.Now())
		},
	}
	print.Flags().BoolVar(&changed, "changed", false, "only what differs from the defaults")
	check := &cobra.Command{
		Use: "check", Short: "Find all mistakes in the configuration at once", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return c.checkConfig() },
	}
	begin := &cobra.Command{
		Use: "init [FILE]", Short: "Write a commented configuration to begin with (default ./zephbot.toml)",
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			name := config.FileName
			if len(args) == 1 {
				name = args[0]
			}
			text := config.Init()
			if all {
				text = config.InitAll()
			}
			return c.initConfig(name, text, force)
		},
	}
	begin.Flags().BoolVar(&all, "all", false, "write every key with its default")
	begin.Flags().BoolVar(&force, "force", false, "overwrite an existing file")
	cmd.AddCommand(check, print, begin)
	return cmd
}

func (c *command) initConfig(name string, text []byte, force bool) error {
	if name == "-" {
		_, err := c.env.Out.Write(text)
		return err
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join(c.env.WorkDir, name)
	}
	write := writeNew
	if force {
		write = overwrite
	}
	err := write(name, text)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s exists already; --force overwrites it", name)
	}
	if err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	_, err = fmt.Fprintln(c.env.Err, "written: "+name) // a shell may send the output to a file
	return err
}

// overwrite writes a file, whole or not at all, in the place of another one.
func overwrite(name string, text []byte) error {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target // a link to it remains
	}
	part := name + ".new"
	if err := os.Remove(part); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := createNew(part, text); err != nil {
		return err
	}
	return os.Rename(part, name)
}
