package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/zephbot/zephbot/bot/terminal"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/cmd/internal/simulate"
)

// maxMessage limits a message that --once reads from stdin, in bytes.
const maxMessage = 1 << 20

// fromStdin is the value of --once that means stdin.
const fromStdin = "-"

func (c *command) chatCommand() *cobra.Command {
	var f chatFlags
	cmd := &cobra.Command{
		Use: "chat", Short: "Chat in the terminal", Args: cobra.MaximumNArgs(2),
		Long: "Talks to the agent in the terminal; its tools work in the current directory. Ctrl-C ends the running " +
			"turn, and twice at the prompt the program.\n" +
			"It begins a new conversation; --continue goes on with the newest one of this directory, --resume with " +
			"one that you choose.\n" +
			"--once (-p) answers one message and ends, with exit code 1 if there is no answer; without a message, or " +
			"with -, it reads stdin. With a message, what " +
			"is on stdin is its context: a file, or a pipe that brings something within 3 s (with - behind the " +
			"message: whenever it does).\n" +
			"--json prints one JSON object an event:\n" +
			"{\"type\",\"session\",\"turn\",\"text\",\"call\",\"approval\"} with the types delta, tool_started, " +
			"tool_finished, plan, notice, approval, answer, error.\n" +
			"--plain reads and writes line by line and draws nothing, as for pipes. If there is nobody at the " +
			"terminal, calls that need approval are denied.",
		Example: "  zephbot chat --continue\n  zephbot chat --once \"what is in this directory?\"\n" +
			"  git diff | zephbot chat --once \"review this\"",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.reportJSON(cmd, &f, c.chat(cmd, &f, args))
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.once, "once", "p", "", "answer this message and end; - or no message: the one on stdin")
	flags.SetNormalizeFunc(func(_ *pflag.FlagSet, name string) pflag.NormalizedName {
		switch name {
		case "prompt", "print": // what other programs call it
			name = "once"
		}
		return pflag.NormalizedName(name)
	})
	flags.Lookup("once").NoOptDefVal = fromStdin
	flags.DurationVar(&f.wait, "wait", 0, "how long --once waits for a model that does not answer (default 1m, 8s without a connection)")
	flags.BoolVar(&f.asJSON, "json", false, "print events as JSON")
	flags.BoolVarP(&f.goOn, "continue", "c", false, "go on with the newest conversation of this directory")
	flags.StringVar(&f.resume, "resume", "", "go on with this conversation; without a name: choose one")
	flags.Lookup("resume").NoOptDefVal = toChoose
	flags.BoolVar(&f.plain, "plain", false, "read and write line by line")
	return cmd
}

// toChoose is the value of --resume without a name.
const toChoose = "?"

// chatFlags are the flags of chat.
type chatFlags struct {
	once, resume        string
	wait                time.Duration
	asJSON, goOn, plain bool
}

// chat runs the conversation.
func (c *command) chat(cmd *cobra.Command, f *chatFlags, args []string) error {
	set := cmd.Flags().Changed("once")
	resume := cmd.Flags().Changed("resume")
	if resume && !set && f.resume == toChoose && len(args) == 1 { // the value of a flag that needs none is an argument
		f.resume, args = args[0], nil
	}
	if err := f.fit(set, resume, cmd.Flags().Changed("wait")); err != nil {
		return err
	}
	text, err := c.once(set, f.once, args)
	if err != nil {
		return err
	}
	cfg, note, err := c.loadForChat(text == "" && !f.asJSON)
	if err != nil {
		return err
	}
	byDefault := cfg.Log.Level == "info" && cfg.Origin("log.level") == (config.Origin{})
	if byDefault {
		cfg.Log.Level = "warn" // only the conversation matters here
	}
	o := app.ChatOptions{
		In:         c.env.In,
		Out:        c.env.Out,
		Once:       text,
		Wait:       f.wait,
		Note:       note,
		JSON:       f.asJSON,
		Ask:        c.env.InTerm,
		Screen:     c.env.OutTerm,
		Quiet:      byDefault && text != "", // why there is no answer is said in one sentence
		Flush:      c.env.Flush,
		Language:   language(c.env.Environ),
		Interrupts: c.interrupts.take,
		Continue:   f.goOn,
	}
	if resume {
		f.resume = strings.TrimPrefix(f.resume, toChoose)
		o.Resume = &f.resume
	}
	if !f.plain && !f.asJSON && text == "" {
		o.Face = c.face()
	}
	o.Err = c.env.Err
	return app.Chat(cmd.Context(), c.options(cfg), o)
}

// loadForChat reads the configuration. If it has no model and a person is there to talk, the built-in one answers, which
// note says; a single message, or a program, is not to take what it says for an answer.
func (c *command) loadForChat(talk bool) (cfg *config.Config, note string, err error) {
	cfg, err = c.load()
	if err != nil || len(cfg.LLM.Providers) > 0 || !talk || !c.env.InTerm {
		return cfg, "", err
	}
	from := c.source()
	from.Env = append(slices.Clone(from.Env), simulate.OfflineModel()...)
	cfg, err = config.Load(from)
	return cfg, texts.Words{}.Terminal(language(c.env.Environ)).BuiltIn, err
}

// reportJSON ends the output of --once --json with an event of the type error if there is an error that was not shown.
func (c *command) reportJSON(cmd *cobra.Command, f *chatFlags, err error) error {
	if err == nil || !f.asJSON || !cmd.Flags().Changed("once") ||
		errors.Is(err, app.ErrNoAnswer) || errors.Is(err, app.ErrStopped) {
		return err
	}
	text := strings.ReplaceAll(err.Error(), config.ErrInvalid.Error()+": ", "")
	raw, failed := json.Marshal(terminal.Event{Type: "error", Text: text})
	if failed == nil {
		_, failed = fmt.Fprintln(c.env.Out, string(raw))
	}
	return errors.Join(err, failed)
}

// fit refuses flags that exclude each other; once, resume and wait say whether these were given.
func (f *chatFlags) fit(once, resume, wait bool) error {
	switch {
	case wait && !once:
		return usageError{errors.New("--wait belongs to --once")}
	case wait && f.wait <= 0:
		return usageError{errors.New("--wait needs a time above zero, such as 30s or 5m")}
	case f.goOn && resume:
		return usageError{errors.New("--continue and --resume exclude each other: one goes on with the newest " +
			"conversation, the other with one of your choice")}
	case once && (f.goOn || resume):
		return usageError{errors.New("--once is a conversation of its own and cannot go on with another one")}
	}
	return nil
}

// face returns the terminal of the person; nil if there is none that can draw. What is written to stderr from then on
// appears in it.
func (c *command) face() *app.Face {
	if c.env.Console == nil {
		return nil
	}
	aside := &terminal.LogWriter{To: c.env.Err}
	c.env.Err = aside
	return &app.Face{Open: c.env.Console, Colour: colours(c.env.Environ), Aside: aside}
}

// noArgument refuses a message without --once.
func noArgument(args []string) error {
	if len(args) == 0 {
		return nil
	}
	return usageError{fmt.Errorf("zephbot chat takes no argument: use --once %q for a single message", args[0])}
}

// messageOfStdin reads the message of --once from stdin, without the line ends behind it.
func (c *command) messageOfStdin() (string, error) {
	raw, err := io.ReadAll(io.LimitReader(c.env.In, maxMessage+1))
	if err != nil {
		return "", fmt.Errorf("read stdin: %w", err)
	}
	if len(raw) > maxMessage {
		return "", usageError{fmt.Errorf("the message on stdin has more than %d bytes", maxMessage)}
	}
	return strings.TrimRight(strings.ToValidUTF8(string(raw), "\uFFFD"), "\r\n"), nil
}

// once returns the message of --once, "" without the flag. Because the flag's value is optional, the text of `--once
// TEXT` arrives as an argument.
func (c *command) once(set bool, value string, args []string) (string, error) {
	if !set {
		return "", noArgument(args)
	}
	wait := false
	if n := len(args); n > 0 && args[n-1] == fromStdin && (n > 1 || value != fromStdin) {
		wait, args = true, args[:n-1]
	}
	switch {
	case len(args) > 1, len(args) > 0 && value != fromStdin:
		return "", usageError{errors.New("--once takes one message; write it in quotes")}
	case len(args) > 0:
		value = args[0]
	}
	if strings.TrimSpace(value) != "" && value != fromStdin {
		return c.context(value, wait)
	}
	if value == fromStdin {
		var err error
		if value, err = c.messageOfStdin(); err != nil {
			return "", err
		}
	}
	if strings.TrimSpace(value) == "" {
		return "", usageError{errors.New("--once needs a message: write it after the flag, or provide it on stdin")}
	}
	return value, nil
}
