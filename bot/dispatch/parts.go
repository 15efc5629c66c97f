// Package dispatch turns accepted arrivals into turns of the agent: one worker a session, many sessions at once,
// nothing that answers a person behind the thing that waits for the person. Every step is a Change of the store; a
// process may die between any two.
package dispatch

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// Runner moves a turn (agent.Runner).
type Runner interface {
	Run(ctx context.Context, turn *agent.Turn, journal agent.Journal, sink agent.Sink) (agent.Outcome, error)
}

// Outbox delivers rows; Wake says that new ones are there.
type Outbox interface {
	Wake(place bot.Place)
}

// Words are the sentences the dispatcher needs, in the reader's language (bot/texts).
type Words interface { //nolint:interfacebloat // one book of sentences, read as a whole
	// Ended says why a turn ended without an answer. Text is what the outcome carries: the partial answer, the repeated
	// result, a quota's sentence.
	Ended(language, reason, text string, stats journal.Stats, request string) string
	// Cut is added under an answer that the token limit cut.
	Cut(language string) string
	// Away says that the model does not answer and that the message is kept.
	Away(language, request string) string
	// Behind says that a message waits behind a decision.
	Behind(language string) string
	// NotKept says that a file which a tool made could not be kept, and so is not sent.
	NotKept(language, tool, name string) string
	// Nothing answers a message without anything to work on.
	Nothing(language string) string
	// Placeholder is the first text of a message that will grow.
	Placeholder(language string) string
	// Unstored says that a message cannot be stored now and is not lost.
	Unstored(language string) string
	// OutOfOrder tells an admin why nothing can be stored, and what to do.
	OutOfOrder(language, advice string) string
	// Broken says that a message could not be handled because of a fault of ours.
	Broken(language, request string) string
}

// Parts are what a Dispatcher works with.
type Parts struct {
	Store     bot.Store
	Decoders  map[bot.Source]bot.Decoder // by where an arrival came from; the channel's own updates have its name
	Composer  bot.Composer
	Runner    Runner
	Guard     turn.Guard
	Meter     turn.Meter
	Commands  turn.Commands
	Approvals turn.Approvals
	Outbox    Outbox
	// Direct sends beside the outbox what has to be said when nothing can be stored; nil = nothing is said. Operators
	// are told too.
	Direct    bot.Sender
	Operators []bot.Place
	Progress  func(turn.Watched) turn.Progress // nil = nothing is shown
	Words     Words
	Log       zerolog.Logger
	Now       func() time.Time
	// News reads what has happened since the session's last turn, for the model; may be nil.
	News func(ctx context.Context, session bot.SessionKey) (turn.News, error)
	// Workspace is the id of the workspace of a session that has none yet; nil = none is stored.
	Workspace func(session bot.SessionKey) string
	// Observe takes what metrics count; may be nil. Must not block.
	Observe func(Observation)
}

// Observation is one thing worth counting.
type Observation struct {
	What     string // update, turn, queue
	Kind     string // of update: its kind; of turn: its outcome
	Duration time.Duration
}

// Options tune a Dispatcher. Zero values mean the documented default.
type Options struct {
	Channel, Bot string
	// names this process in leases; default random. A name that stays over restarts lets the next process go on at once
	Owner       string
	Concurrency int // turns at once; default 1024
	PerCaller   int // turns of one person at once; default a quarter of Concurrency, at least 1
	// bytes that the turns at once may hold together, by what the latest ones held; 0 = any number
	Memory  int64
	Lease   time.Duration // default 60 s
	Sweep   time.Duration // how often timers and other replicas' work are looked for; default 1 s
	Tries   int           // of an arrival whose handling fails; default 3
	GiveUp  time.Duration // how long a model, or what else a turn needs, may be away; default 10 min
	Grace   time.Duration // how long running turns may go on at the end; default 20 s
	OnceFor time.Duration // how long a Verdict's reply is not repeated; default 24 h
	// other processes work on the same store: what overtakes is left for a moment to the one that accepted it
	Shared bool
}

func (o Options) withDefaults() Options {
	dur := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	if o.Concurrency <= 0 {
		o.Concurrency = 1024
	}
	if o.PerCaller <= 0 {
		o.PerCaller = max(1, o.Concurrency/4)
	}
	if o.Tries <= 0 {
		o.Tries = 3
	}
	if o.Owner == "" {
		o.Owner = rand.Text()
	}
	dur(&o.Lease, time.Minute)
	dur(&o.Sweep, time.Second)
	dur(&o.GiveUp, 10*time.Minute)
	dur(&o.Grace, 20*time.Second)
	dur(&o.OnceFor, 24*time.Hour)
	return o
}
