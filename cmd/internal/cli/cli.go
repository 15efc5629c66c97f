// Package cli is the command line: flags, exit codes and output. Package app does the work.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/bot/terminal/console"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/footprint"
	"github.com/zephbot/zephbot/cmd/internal/simulate"
)

// Exit codes (contract).
const (
	Fine   = 0
	Failed = 1
	Usage  = 2
)

// Env is the environment of a command.
type Env struct {
	In         io.Reader
	Out, Err   io.Writer
	Environ    []string
	WorkDir    string
	Home       string
	Executable string
	InTerm     bool   // In is a terminal: there is a person
	Flush      func() // discards what was typed and not read yet; may be nil
	// Hide stops the terminal from showing what is typed, until show is called; nil = it shows nothing anyway.
	Hide func() (show func(), err error)
	// Local are the addresses at which setup looks for models on this machine; nil = the usual ones.
	Local   []string
	ErrTerm bool // Err is a terminal: colours
	OutTerm bool // Out is a terminal: it obeys control characters
	// Columns returns the width of the terminal that Out is, which may change; nil or 0 = it is not known.
	Columns func() int
	Stdin   Input // what In is
	// Console prepares the terminal that In and Out are; nil = they are none that can draw.
	Console Console
	// Interrupts receives each Ctrl-C; nil = none. The first one ends the command, unless the command handles them
	// itself.
	Interrupts <-chan os.Signal
}

// Standard returns the environment of the process. Values that cannot be determined are empty; what needs them reports
// that.
func Standard() Env {
	e := Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), InTerm: isTerminal(os.Stdin),
		Flush: flush(os.Stdin), ErrTerm: isTerminal(os.Stderr), Stdin: inputOf(os.Stdin),
		OutTerm: isTerminal(os.Stdout), Console: consoleOf(os.Stdin, os.Stdout),
		Columns: func() int { return console.SizeOf(os.Stdout).Cols },
	}
	if e.InTerm {
		e.Hide = hide(os.Stdin)
	}
	e.WorkDir, _ = os.Getwd()
	e.Home, _ = os.UserHomeDir()
	e.Executable, _ = os.Executable()
	return e
}

// isTerminal reports whether a file is a terminal that can draw. The null device, which is a character device too, is
// none.
func isTerminal(f *os.File) bool { return console.IsTerminal(f) && os.Getenv("TERM") != "dumb" }

// columns returns the width of the terminal; 0 = it is not known.
func (e Env) columns() int {
	if e.Columns == nil {
		return 0
	}
	return e.Columns()
}

// usageError is a mistake in the command line or the configuration.
type usageError struct{ error }

// Unwrap returns the cause.
func (u usageError) Unwrap() error { return u.error }

// Main runs a command line and returns the exit code. Errors are printed once, here.
func Main(ctx context.Context, args []string, env Env) int {
	c := &command{env: env}
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watched, unwatch := context.WithCancel(context.WithoutCancel(ctx))
	watching.Go(func() { c.interrupts.watch(watched, env.Interrupts, end) })
	defer func() {
		unwatch()
		watching.Wait()
		end()
	}()
	root := c.root()
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	err := root.ExecuteContext(ctx)
	var usage usageError
	var problems config.Problems
	switch {
	case err == nil:
		return Fine
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return Fine
	case errors.Is(err, errSilent), errors.Is(err, app.ErrStopped), errors.Is(err, app.ErrNoAnswer):
		return Failed
	case errors.As(err, &usage), errors.As(err, &problems), errors.Is(err, config.ErrInvalid):
		c.complain(err)
		return Usage
	default:
		c.complain(err)
		return Failed
	}
}

// complain prints an error, with one line per problem.
func (c *command) complain(err error) {
	text := strings.ReplaceAll(err.Error(), config.ErrInvalid.Error()+": ", "")
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line != config.ErrInvalid.Error() {
			_, _ = fmt.Fprintln(c.env.Err, "zephbot: "+line) // stderr is gone: it cannot be reported
		}
	}
}

// command is one run of the command line.
type command struct {
	env        Env
	interrupts interrupts
	flags      struct {
		config, dataDir, logLevel, logFormat string
		version                              bool
	}
}

func (c *command) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "zephbot",
		Short: "A Telegram service through which people talk to an agent that runs tools",
		Long: "zephbot serves Telegram when a token is configured, and else simulates it: a page in the browser on " +
			"which several people chat with the bot.\n" +
			"Exit codes: 0 fine, 1 failed, 2 usage or configuration.",
		Args: oneOfSubs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.flags.version {
				return c.printVersion()
			}
			cfg, err := c.load()
			if err != nil {
				return err
			}
			if cfg.Telegram.Token != "" {
				return c.serve(cmd.Context(), cfg, false)
			}
			return c.simulate(cmd.Context(), cfg, "127.0.0.1:0", false)
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(wrongFlag)
	// Not cobra's own flag: a version in our words needs its templates, and with text/template the linker keeps every
	// method of every type.
	root.Flags().BoolVarP(&c.flags.version, "version", "v", false, "print version, commit and Go version")
	p := root.PersistentFlags()
	p.StringVar(&c.flags.config, "config", "",
		"config file (default ./zephbot.toml, then $XDG_CONFIG_HOME/zephbot/zephbot.toml)")
	p.StringVar(&c.flags.dataDir, "data-dir", "", "directory of the database, the audit log and workspaces")
	p.StringVar(&c.flags.logLevel, "log-level", "", "trace, debug, info, warn or error")
	p.StringVar(&c.flags.logFormat, "log-format", "", "console or json")
	root.AddCommand(
		c.serveCommand(),
		c.simulateCommand(),
		c.chatCommand(),
		c.acpCommand(),
		c.configCommand(),
		c.versionCommand(),
		c.renderCommand(),
		c.auditCommand(),
		c.toolsCommand(),
		c.policyCommand(),
		c.scanCommand(),
		c.filter(),
		c.mcpCommand(),
		c.migrateCommand(),
		c.debugCommand(),
		c.doctorCommand(),
		c.healthCommand(),
		c.setupCommand(),
		c.backupCommand(),
		c.restoreCommand(),
		c.userCommand(),
		c.completionCommand(),
	)
	for _, sub := range root.Commands() {
		wrapArgs(sub)
	}
	return root
}

// wrapArgs makes wrong arguments a usage error that shows the correct usage.
func wrapArgs(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if _, told := errors.AsType[usageError](err); err == nil || told {
				return err
			}
			return usageError{fmt.Errorf("%s: %w; usage: %s", cmd.CommandPath(), err, cmd.UseLine())}
		}
	}
	for _, sub := range cmd.Commands() {
		wrapArgs(sub)
	}
}

// load reads the configuration: flags override the environment, which overrides the file, which overrides the defaults.
func (c *command) load() (*config.Config, error) { return config.Load(c.source()) }

// source returns where the configuration comes from.
func (c *command) source() config.Source {
	return config.Source{
		Tools: app.Tools(),
		File:  c.flags.config, Env: c.env.Environ, Flags: c.keys(), Home: c.env.Home, WorkDir: c.env.WorkDir,
	}
}

// keys returns the keys that flags set.
func (c *command) keys() map[string]string {
	flags := map[string]string{}
	for key, value := range map[string]string{
		"data_dir": c.flags.dataDir, "log.level": c.flags.logLevel, "log.format": c.flags.logFormat,
	} {
		if value != "" {
			flags[key] = value
		}
	}
	return flags
}

// logger returns a logger to stderr: stdout is for answers.
func (c *command) logger(cfg *config.Config) zerolog.Logger {
	level, err := zerolog.ParseLevel(cfg.Log.Level)
	if err != nil {
		level = zerolog.InfoLevel
	}
	out := c.env.Err
	if cfg.Log.Format == "console" {
		out = zerolog.ConsoleWriter{Out: c.env.Err, NoColor: !c.env.ErrTerm, TimeFormat: "15:04:05"}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}

func (c *command) options(cfg *config.Config) app.Options {
	return app.Options{Config: cfg, Version: version(), Log: c.logger(cfg), WorkDir: c.env.WorkDir, State: c.stateDir()}
}

// stateDir returns the directory for the state of a person's programs on this system; "" if it cannot be determined.
func (c *command) stateDir() string {
	value := func(name string) string {
		for _, pair := range c.env.Environ {
			// The XDG specification ignores relative paths.
			if v, ok := strings.CutPrefix(pair, name+"="); ok && filepath.IsAbs(v) {
				return v
			}
		}
		return ""
	}
	below := func(dir string, names ...string) string {
		if dir == "" {
			return ""
		}
		return filepath.Join(append([]string{dir}, names...)...)
	}
	switch runtime.GOOS {
	case "windows":
		return below(value("LOCALAPPDATA"), "zephbot")
	case "darwin":
		return below(c.env.Home, "Library", "Application Support", "zephbot")
	default:
		return cmp.Or(below(value("XDG_STATE_HOME"), "zephbot"), below(c.env.Home, ".local", "state", "zephbot"))
	}
}

func (c *command) serve(ctx context.Context, cfg *config.Config, simulated bool) error {
	if simulated {
		cfg = simulate.WithPersonas(cfg)
	}
	opts := c.options(cfg)
	opts.Checked = simulated
	return app.Serve(ctx, opts)
}

func (c *command) simulate(ctx context.Context, cfg *config.Config, listen string, open bool) error {
	var args []string
	for flag, value := range map[string]string{
		"--config": c.flags.config, "--log-level": c.flags.logLevel, "--log-format": c.flags.logFormat,
	} {
		if value != "" {
			args = append(args, flag, value)
		}
	}
	if c.env.Executable == "" {
		return errors.New("the program's own file cannot be found; the simulator needs it to start the bot")
	}
	return simulate.Run(ctx, c.options(cfg), simulate.Options{
		Listen: listen, Stdout: c.env.Out, Stderr: c.env.Err, Executable: c.env.Executable, Args: args, Open: open,
	})
}

func (c *command) serveCommand() *cobra.Command {
	var simulated bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve Telegram (long polling)", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			footprint.HastenStart()
			cfg, err := c.load()
			if err != nil {
				return err
			}
			return c.serve(cmd.Context(), cfg, simulated)
		},
	}
	flag := strings.TrimPrefix(simulate.Flag, "--")
	cmd.Flags().BoolVar(&simulated, flag, false, "a simulator runs this")
	cmd.Flags().Lookup(flag).Hidden = true
	return cmd
}

func (c *command) simulateCommand() *cobra.Command {
	var listen string
	var open bool
	cmd := &cobra.Command{
		Use: "simulate", Short: "Serve a simulated Telegram, with a page to chat on", Args: cobra.NoArgs,
		Long: "Runs the service against a Telegram simulator on this machine. The page has a private chat for each " +
			"person and a group with a topic; the bot is a\n" +
			"process of its own that can be restarted and killed. State lives in data_dir/simulate. Without a " +
			"configured model the built-in offline one answers.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := c.load()
			if err != nil {
				return err
			}
			return c.simulate(cmd.Context(), cfg, listen, open)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "127.0.0.1:0", "loopback address of the page")
	cmd.Flags().BoolVar(&open, "open", false, "open the page in the browser")
	return cmd
}

// language returns the language of the terminal.
func language(environ []string) string {
	values := map[string]string{}
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		values[name] = value
	}
	for _, name := range []string{"LC_ALL", "LC_MESSAGES", "LANG"} {
		if v, _, _ := strings.Cut(values[name], "."); v != "" {
			return strings.ReplaceAll(v, "_", "-")
		}
	}
	return ""
}
