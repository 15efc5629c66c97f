package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/zephbot/zephbot/bot/access"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/upkeep"
)

// setupFlags are answers that are given on the command line. Secrets come from files or the environment only: others
// see the arguments of a program, and a shell remembers them.
type setupFlags struct {
	tokenFile, keyFile, provider, baseURL, model, workDir, sandbox string
	admins                                                         []int64
	noStart, unchecked                                             bool
}

func (c *command) setupCommand() *cobra.Command {
	var f setupFlags
	cmd := &cobra.Command{
		Use: "setup", Short: "Set up a bot: five questions, a configuration, and it runs", Args: cobra.NoArgs,
		Long: "Asks for the token of the bot, who its admin is, which model answers, where it works and how " +
			"commands are " +
			"confined; checks each answer, writes a short commented\n" +
			"configuration (./zephbot.toml, or --config) and starts the bot. An existing file is never " +
			"overwritten. Ctrl-C " +
			"leaves nothing behind.\n" +
			"Every answer can be given by a flag or in the environment (ZEPH_TELEGRAM_TOKEN, " +
			"ZEPH_LLM_PROVIDERS_MAIN_API_KEY), " +
			"so that it runs without a terminal too.",
		Example: "  zephbot setup\n  zephbot setup --token-file token --provider openai --key-file key --model " +
			"gpt-5-mini --admin 4711 --no-start",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.setup(cmd.Context(), &f)
		},
	}
	p := cmd.Flags()
	p.StringVar(&f.tokenFile, "token-file", "", "file with the token from @BotFather")
	p.Int64SliceVar(&f.admins, "admin", nil, "numeric id of an admin, such as 4711; may be "+
		"repeated. Without it the bot shows a code, and whoever sends it is the admin")
	p.StringVar(&f.provider, "provider", "", "openai (or any server with its API), anthropic, ollama, offline, or a "+
		"preset such as gemini (docs/models.md)")
	p.StringVar(&f.baseURL, "base-url", "", "address of the API, if it is not the vendor's own")
	p.StringVar(&f.keyFile, "key-file", "", "file with the key of the API")
	p.StringVar(&f.model, "model", "", "name of the model")
	p.StringVar(&f.workDir, "workdir", "", "directory in which all conversations work (default: each has one of its own)")
	p.StringVar(&f.sandbox, "sandbox", "", "auto, required or off")
	p.BoolVar(&f.noStart, "no-start", false, "write the configuration, and do not start the bot")
	p.BoolVar(&f.unchecked, "unchecked", false, "do not try token and model, for a machine without network")
	return cmd
}

// setup is one run of the command.
type setup struct {
	c    *command
	f    *setupFlags
	in   *asker
	env  *config.Config // what the environment alone says
	path string         // of the file that is written, absolute
	own  bool           // the file is where it is found without --config
	out  config.Chosen
	bot  *upkeep.Found // nil = the token was not checked
	code string        // that was shown and that nobody has sent; "" = none
}

// errInterrupted ends a setup that somebody interrupted.
var errInterrupted = errors.New("interrupted")

func (c *command) setup(ctx context.Context, f *setupFlags) error {
	env, err := c.bare()
	if err != nil {
		return err
	}
	s := &setup{c: c, f: f, env: env, in: newAsker(ctx, c.env)}
	err = s.run(ctx)
	if s.bot != nil {
		s.bot.Close()
	}
	if ctx.Err() != nil && err != nil {
		s.in.say("\nInterrupted. Nothing was written.")
		return errSilent
	}
	if err == nil && f.noStart && s.path == "" {
		s.in.say("It is used as it is. Start the bot with: %s", s.command("serve"))
	}
	if err != nil || f.noStart {
		return err
	}
	return c.start(ctx, s)
}

// run asks everything and writes the file.
func (s *setup) run(ctx context.Context) error {
	if err := s.place(); err != nil {
		return err
	}
	if s.path == "" { // an existing file is used
		return nil
	}
	s.in.explain("Five questions, then the bot runs. Ctrl-C ends this; nothing is written before the end.")
	for _, step := range []func(context.Context) error{s.askToken, s.askAdmin, s.askModel, s.askWorkDir, s.askSandbox} {
		if err := step(ctx); err != nil {
			return err
		}
		if ctx.Err() != nil {
			return errInterrupted
		}
	}
	return s.write()
}

// bare returns the configuration of the environment and the flags alone.
func (c *command) bare() (*config.Config, error) {
	src := c.source()
	src.File, src.ReadFile = "", func(name string) ([]byte, error) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	cfg, err := config.Examine(src)
	if cfg == nil {
		return nil, err
	}
	return cfg, nil
}

// place finds where the file is written. One that exists is kept: its values are used, or another path.
func (s *setup) place() error {
	name := s.c.flags.config
	if name == "" {
		if name = s.c.found(); name == "" {
			name = config.FileName
		}
	}
	for s.exists(s.c.absolute(name)) {
		if !s.in.person {
			return usageError{
				fmt.Errorf(
					"%s exists already and is not overwritten: start it with zephbot serve, or name another file "+
						"with --config",
					name,
				),
			}
		}
		s.in.say("%s exists already; it is never overwritten.", name)
		answer, err := s.in.line("Enter uses it as it is; or type the path of another file: ")
		if err != nil {
			return err
		}
		if answer == "" {
			s.c.flags.config, s.own = name, s.c.absolute(name) == filepath.Join(s.c.env.WorkDir, config.FileName)
			return nil
		}
		name = answer
	}
	s.path = s.c.absolute(name)
	s.own = s.path == filepath.Join(s.c.env.WorkDir, config.FileName)
	if text := unfit(filepath.Dir(s.path)); text != "" {
		return usageError{fmt.Errorf("%s cannot be written: %s", s.path, text)}
	}
	return nil
}

// found returns the file that is used without --config; "" = there is none.
func (c *command) found() string {
	cfg, err := config.Examine(c.source())
	if problems, ok := errors.AsType[config.Problems](err); ok && cfg == nil && len(problems) > 0 {
		return problems[0].File
	}
	if cfg == nil {
		return ""
	}
	return cfg.File
}

func (s *setup) exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// absolute resolves a path that a person typed.
func (c *command) absolute(path string) string {
	if rest, ok := strings.CutPrefix(path, "~"); ok && c.env.Home != "" && (rest == "" || rest[0] == '/') {
		return filepath.Join(c.env.Home, rest)
	}
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(c.env.WorkDir, path)
}

// unfit returns why a directory cannot be written, or made; "" = it can.
func unfit(dir string) string {
	for {
		info, err := os.Stat(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir):
			dir = filepath.Dir(dir)
		case err != nil:
			return err.Error()
		case !info.IsDir():
			return dir + " is a file"
		default:
			return check.NotWritable(dir)
		}
	}
}

// secretFile reads a secret from a file.
func (c *command) secretFile(flag, path string) (config.Secret, error) {
	raw, err := os.ReadFile(c.absolute(path))
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return "", usageError{fmt.Errorf("%s %s: %w", flag, path, err)}
	}
	text := strings.TrimSpace(string(raw))
	if text == "" || len(text) > maxSecret || strings.ContainsAny(text, "\r\n") {
		return "", usageError{fmt.Errorf("%s %s: want the secret alone, on one line", flag, path)}
	}
	return config.Secret(text), nil
}

// maxSecret limits a token or key, in bytes.
const maxSecret = 4096

// write writes the file, whole or not at all, for this account only.
func (s *setup) write() error {
	if s.c.flags.dataDir != "" {
		s.out.DataDir = s.c.absolute(s.c.flags.dataDir)
	} else if !s.own && !s.env.Set("data_dir") {
		s.out.DataDir = filepath.Join(filepath.Dir(s.path), "data") // not where it happens to be started
	}
	text := config.Compose(s.out)
	src := s.c.source()
	src.File, src.ReadFile = s.path, func(string) ([]byte, error) { return text, nil }
	cfg, err := config.Load(src)
	if err != nil { // the environment may contradict the answers
		return err
	}
	if err := writeNew(s.path, text); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return usageError{
				fmt.Errorf("%s exists by now and is not overwritten: name another file with --config", s.path),
			}
		}
		return fmt.Errorf("write the configuration: %w", err)
	}
	s.c.flags.config = s.path
	s.in.say("\nWritten: %s (only this account can read it).", s.path)
	if s.code != "" {
		if err := access.KeepCode(cfg.Path(cfg.DataDir), s.code); err != nil {
			return err
		}
	}
	if !s.f.noStart {
		return nil
	}
	s.in.say("Start the bot with: %s", s.command("serve"))
	return nil
}

// command is a command line with this configuration.
func (s *setup) command(name string) string {
	if s.own {
		return "zephbot " + name
	}
	return fmt.Sprintf("zephbot %s --config %q", name, s.c.flags.config)
}

// writeNew creates a file with a content, durably, or fails with fs.ErrExist.
func writeNew(path string, text []byte) (err error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".zephbot-*") // mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name())) }()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	// unlike a renaming, it never replaces
	if err = os.Link(f.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return createNew(path, text) // a file system without links
}

// createNew does the same where a crash in between may leave a part.
func createNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// start runs the bot with the file.
func (c *command) start(ctx context.Context, s *setup) error {
	cfg, err := c.load()
	if err != nil {
		return err
	}
	if cfg.Telegram.Token == "" {
		return usageError{
			fmt.Errorf(
				"%s has no telegram.token; add it there, or run zephbot setup --config with another file",
				c.flags.config,
			),
		}
	}
	s.in.say(
		"The bot starts; Ctrl-C ends it. Later, in this directory: %s. If something does not work: %s\nNext: %s",
		s.command("serve"), s.command("doctor"), s.next(cfg),
	)
	opts := c.options(cfg)
	opts.AdminCode = s.code
	return app.Serve(ctx, opts)
}

// next says what the person does once the bot runs.
func (s *setup) next(cfg *config.Config) string {
	switch {
	case len(cfg.Telegram.Admins) > 0 || s.path == "": // of a file that was there the bot knows who its admins are
		return "write to the bot. In a group: add it there, admit the group (it asks you), and mention it in a message."
	case s.code != "":
		return "open the link above, or send the bot /start " + s.code + ": that makes you its admin."
	default:
		return "send the bot the code that it shows below (first_admin): that makes you its admin."
	}
}
