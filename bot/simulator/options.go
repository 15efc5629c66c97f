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

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	defaultListen = "127.0.0.1:0"
	defaultPause  = time.Second
	defaultGrace  = 30 * time.Second
)

// Options configures a Simulator.
type Options struct {
	// Listen is the address of the page; it must be a loopback address. Default "127.0.0.1:0".
	Listen string
	// Command makes the bot process, not started yet. It has to talk to the Bot API at apiURL with this token. Its
	// output and process group are set by the simulator. Required.
	Command func(apiURL, token string) *exec.Cmd
	// Dir keeps people's messages, files and undelivered updates over restarts. "" keeps them for the life of the
	// Simulator only.
	Dir string
	// Stdout gets one line, "simulator: http://127.0.0.1:PORT". Default: nowhere.
	Stdout io.Writer
	// Stderr gets what the bot process prints. Default: nowhere.
	Stderr io.Writer
	// Log is the simulator's own log.
	Log zerolog.Logger
	// Inspect reads what the bot remembers of its turns. Without it the inspector shows the Bot API calls alone.
	Inspect Inspector
	// Fake configures the Bot API. An empty Token is replaced by one that is made anew at every start, so that nothing
	// else on the machine can use it.
	Fake telegramtest.Options
	// Open opens the page in the browser.
	Open bool
	// Pause is how long a bot that died stays dead; it doubles with every death in a row, up to 30 s. Default 1 s.
	Pause time.Duration
	// Grace is how long the bot may take to end by itself before it is killed. Default 30 s.
	Grace time.Duration
}

// Inspector reads the bot's store for the inspector panel. It is called while the bot runs and while it is dead, from
// several goroutines.
type Inspector interface {
	// Story tells what the bot did for a person in a chat, oldest turn first. thread is "" outside topics. A chat the
	// bot does not know is an empty Story.
	Story(ctx context.Context, chat, thread, person string) (Story, error)
}

// Story is what the bot did in one conversation.
type Story struct {
	Turns []StoryTurn `json:"turns"`
}

// StoryTurn is one question and everything done for it.
type StoryTurn struct {
	ID       string    `json:"id"`
	State    string    `json:"state"` // running, waiting for a decision, done …: as people should read it
	Began    time.Time `json:"began"`
	Text     string    `json:"text"`               // what was asked
	Messages []int     `json:"messages,omitempty"` // ids of the chat messages the turn made, as far as known
	Steps    []Step    `json:"steps"`
}

// Kinds of a Step.
const (
	StepModel    = "model"
	StepTool     = "tool"
	StepApproval = "approval"
	StepAnswer   = "answer"
	StepEnd      = "end"
)

// Step is one step of a turn.
type Step struct {
	Kind   string  `json:"kind"`
	Name   string  `json:"name,omitempty"` // model, tool, or outcome
	Text   string  `json:"text,omitempty"` // arguments, result, answer
	Rule   string  `json:"rule,omitempty"` // what decided
	By     string  `json:"by,omitempty"`   // who approved or denied
	Millis int64   `json:"millis,omitempty"`
	Tokens int64   `json:"tokens,omitempty"`
	USD    float64 `json:"usd,omitempty"`
	Failed bool    `json:"failed,omitempty"`
}

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

// CheckListen says what is wrong with an address of the page.
func CheckListen(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen address %q: want HOST:PORT, such as %s: %w", address, defaultListen, err)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("listen address %q is not a loopback address: whoever reaches the page can act as every person; use %s", address, defaultListen)
	}
	return nil
}
