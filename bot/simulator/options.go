package simulator

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/story"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	defaultListen = "127.0.0.1:0"
	defaultPause  = time.Second
	defaultGrace  = 30 * time.Second
)

// Options configure a Simulator.
type Options struct {
	// Listen is the address of the page; it must be a loopback address. Default "127.0.0.1:0".
	Listen string
	// Command returns the command of the bot process, not started yet. The process has to use the Bot API at apiURL
	// with this token. The simulator sets its output and process group. Required.
	Command func(apiURL, token string) *exec.Cmd
	// Dir keeps people's messages, files and undelivered updates over restarts. With "" they are only kept as long as
	// the Simulator.
	Dir string
	// Stdout receives one line, "simulator: http://127.0.0.1:PORT". Default: discarded.
	Stdout io.Writer
	// Stderr receives what the bot process prints. Default: discarded.
	Stderr io.Writer
	// Log is the simulator's own log.
	Log zerolog.Logger
	// NewTopic is told that somebody opened a topic on the page, before anybody can write there; may be nil.
	NewTopic func(group int64, thread int)
	// Inspect reads what the bot remembers of its turns. Without it, the inspector only shows the Bot API calls.
	Inspect Inspector
	// Fake configures the Bot API. An empty Token is replaced by one that differs at every start, so that nothing else
	// on the machine can use it.
	Fake telegramtest.Options
	// Open opens the page in the browser.
	Open bool
	// Pause is how long the supervisor waits before it restarts a bot that died; it doubles with every consecutive
	// death, up to 30 s. Default 1 s.
	Pause time.Duration
	// Grace is how long the bot may take to exit before it is killed. Default 30 s.
	Grace time.Duration
}

// Inspector reads the bot's store for the inspector panel. It is called from several goroutines, whether or not the bot
// runs.
type Inspector interface {
	// Story returns what the bot did for a person in a chat, oldest turn first. thread is "" outside topics. For a chat
	// that the bot does not know, the Story is empty.
	Story(ctx context.Context, chat, thread, person string) (Story, error)
}

// Story is what the bot did in one conversation.
type Story struct {
	Turns []StoryTurn `json:"turns"`
}

// StoryTurn is one question and everything done for it.
type StoryTurn = story.Turn

// Step is one step of a turn.
type Step = story.Step

// Kinds of a Step.
const (
	StepModel    = story.Model
	StepTool     = story.Tool
	StepApproval = story.Approval
	StepAnswer   = story.Answer
	StepEnd      = story.End
)

func (o Options) withDefaults() Options {
	if o.Listen == "" {
		o.Listen = defaultListen
	}
	if o.Stdout == nil {
		o.Stdout = io.Discard
	}
	if o.Stderr == nil {
		o.Stderr = io.Discard
	}
	if o.Pause <= 0 {
		o.Pause = defaultPause
	}
	if o.Grace <= 0 {
		o.Grace = defaultGrace
	}
	o.Fake.PrivacyOff = true // the bot is an admin of the group, and sees what is written there
	if o.Fake.Now == nil {
		o.Fake.Now = time.Now
	}
	return o
}

func (o Options) validate() error {
	if o.Command == nil {
		return errors.New("simulator: Options.Command is missing: it makes the bot process")
	}
	if err := CheckListen(o.Listen); err != nil {
		return fmt.Errorf("simulator: %w", err)
	}
	return nil
}

// CheckListen returns what is wrong with an address of the page.
func CheckListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address %q: want HOST:PORT, such as %s: %w", address, defaultListen, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen address %q is not a loopback address: whoever reaches the page can act as every "+
			"person; use %s", address, defaultListen)
	}
	return nil
}
