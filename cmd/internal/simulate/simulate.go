// Package simulate runs the service against a local Telegram, so that people can try it.
package simulate

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/cmd/internal/check"
	"github.com/zephbot/zephbot/cmd/internal/config"
	"github.com/zephbot/zephbot/persistence"
)

// Flag tells `serve` that a simulator runs it, which has checked the configuration and warned already.
const Flag = "--simulated"

// Options are the options of `zephbot simulate`.
type Options struct {
	Listen     string
	Stdout     io.Writer
	Stderr     io.Writer
	Executable string   // path of this program: the bot runs as a process of its own, so that it can be killed
	Args       []string // common flags to pass on: --config, --log-level, --log-format
	Open       bool
}

// simulatorLock is the file with which a simulator locks its directory: the bot that it starts locks the same directory
// like a service.
const simulatorLock = "simulator.lock"

// Run runs the same service against a local Telegram, with a page to chat on.
func Run(ctx context.Context, opts app.Options, sim Options) error {
	if err := simulator.CheckListen(sim.Listen); err != nil {
		return fmt.Errorf("%w: --listen: %w", config.ErrInvalid, err)
	}
	if err := app.Ready(opts, check.Use{Model: len(opts.Config.LLM.Providers) > 0}); err != nil {
		return err
	}
	home := opts.Layout().Simulator()
	if err := os.MkdirAll(home, 0o700); err != nil {
		return fmt.Errorf("%w: data_dir: %w", config.ErrInvalid, err)
	}
	unlock, err := persistence.Lock(home, simulatorLock, "simulate")
	if err != nil {
		return err
	}
	defer unlock()
	stories := &stories{path: filepath.Join(home, "zephbot.db")}
	defer stories.close()
	s, err := simulator.New(simulator.Options{
		Listen:  sim.Listen,
		Dir:     home,
		Stdout:  sim.Stdout,
		Stderr:  sim.Stderr,
		Log:     opts.Log.With().Str("component", "simulator").Logger(),
		Inspect: stories,
		Open:    sim.Open,
		NewTopic: func(group int64, thread int) {
			id, _ := stories.bot.Load().(string)
			warnOfSamples(opts.Log, layOutTopic(home, id, group, thread))
		},
		Command: func(apiURL, token string) *exec.Cmd {
			id, _, _ := strings.Cut(token, ":")
			stories.bot.Store(id)
			warnOfSamples(opts.Log, layOutSamples(home, id))
			//nolint:noctx // the simulator ends it with its process group
			cmd := exec.Command(sim.Executable, append([]string{"serve", Flag, "--data-dir", home}, sim.Args...)...)
			cmd.Env = append(childEnv(os.Environ()), simulated(opts, apiURL, token)...)
			return cmd
		},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// warnOfSamples says that sample files are missing; err may be nil.
func warnOfSamples(log zerolog.Logger, err error) {
	if err != nil {
		log.Warn().Err(err).Msg("cannot create the sample files; everything else works")
	}
}

// demoTurns is the number of turns a day that a person has with the built-in model, so that /quota shows a bar.
const demoTurns = 100

// childEnv removes the variables that would point the simulated bot to the real Telegram.
func childEnv(env []string) []string {
	var out []string
	for _, pair := range env {
		if !strings.HasPrefix(pair, "ZEPH_TELEGRAM_") && !strings.HasPrefix(pair, "ZEPH_METRICS_") &&
			!strings.HasPrefix(pair, "ZEPH_TRIGGERS_") {
			out = append(out, pair)
		}
	}
	return out
}

// simulated returns the configuration of the simulated bot: its own people and group are admitted; without a model it
// uses the built-in one, and unless there are limits of turns, people get some to look at.
func simulated(opts app.Options, apiURL, token string) []string {
	env := []string{
		"ZEPH_TELEGRAM_TOKEN=" + token,
		"ZEPH_TELEGRAM_API_URL=" + apiURL,
		"ZEPH_TELEGRAM_ALLOWED_USERS=" + joinIDs(simulator.AllowedUsers()),
		"ZEPH_TELEGRAM_ADMINS=" + joinIDs(simulator.Admins()),
		"ZEPH_TELEGRAM_ALLOWED_CHATS=" + joinIDs(simulator.AllowedChats()),
		"ZEPH_GROUPS_CONTEXT=true",
		"ZEPH_METRICS_LISTEN=",
		"ZEPH_TRIGGERS_LISTEN=127.0.0.1:0", // /hooks says where hooks are called
		"ZEPH_DATABASE_URL=",
		"ZEPH_WORKSPACES_DIR=",
		"ZEPH_WORKSPACES_SHARED=false",
		// its state is in its own directory
	}
	zone := opts.Config.Telegram.TimeZone
	if zone == "" {
		zone = "Local" // the page is viewed on this machine
	}
	env = append(env, "ZEPH_TELEGRAM_TIME_ZONE="+zone)
	if opts.Config.Telegram.Language != "" {
		env = append(env, "ZEPH_TELEGRAM_LANGUAGE="+opts.Config.Telegram.Language)
	}
	if len(opts.Config.LLM.Providers) == 0 {
		env = append(env, OfflineModel()...)
		if opts.Config.Quotas.User == (config.Limits{}) {
			env = append(env, "ZEPH_QUOTAS_USER_TURNS_PER_DAY="+strconv.Itoa(demoTurns))
		}
	}
	return env
}

// WithPersonas returns the configuration with some personas to choose from in /settings, if it has none.
func WithPersonas(cfg *config.Config) *config.Config {
	if len(cfg.Personas) > 0 {
		return cfg
	}
	shown := *cfg
	shown.Personas = map[string]config.Persona{
		"pirate": {Instructions: "You are an old pirate. Answer in two sentences, in the language that you are asked in."},
		"tutor": {
			Instructions: "You are a tutor. Explain as to somebody who learns, and ask back before you give a solution.",
		},
	}
	return &shown
}

// OfflineModel returns the variables that configure the built-in model, for where none is configured.
func OfflineModel() []string {
	return []string{"ZEPH_LLM_PROVIDERS_MAIN_TYPE=offline", "ZEPH_LLM_PROVIDERS_MAIN_PACE=45ms"}
}

func joinIDs(ids []int64) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(parts, ",")
}
