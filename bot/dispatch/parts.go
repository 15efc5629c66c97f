// Package dispatch turns accepted arrivals into turns of the agent. Each session has one worker, many sessions run at
// once, and nothing that answers a person waits behind something that waits for that person. Every step is a Change of
// the store, and the process may die between any two of them.
package dispatch

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Runner runs a turn (agent.Runner).
type Runner interface {
	Run(ctx context.Context, turn *agent.Turn, journal agent.Journal, sink agent.Sink) (agent.Outcome, error)
}

// Outbox delivers rows. Wake announces new ones.
type Outbox interface {
	Wake(place bot.Place)
}

// Signs are shown on messages that are not answered at once (bot/sign). What is reported must not block.
type Signs interface { //nolint:interfacebloat // the life of a sign
	// Waits reports that a message may wait behind a turn of the session.
	Waits(session bot.SessionKey)
	// Crowded reports that a message waits because many are asking, and not behind a turn of its session.
	Crowded(session bot.SessionKey, arrival int64, place bot.Place, message string)
	// Ended reports that a turn of the session has ended.
	Ended(session bot.SessionKey)
	// Merged reports messages that a turn took along with the one before them.
	Merged(session bot.SessionKey, messages []bot.Message)
	// Spent reports a message that is not answered because a quota is used up.
	Spent(session bot.SessionKey, place bot.Place, message string)
	// Shown reports whether a waiting message has a sign, in whichever process. It reads the store.
	Shown(ctx context.Context, session bot.SessionKey, arrival int64) bool
}

// Receiving is about messages that come in: what comes along with them, where it is stored, and which of them wait.
type Receiving struct {
	// Workspace returns the workspace id for a session that has none yet; nil = none is stored.
	Workspace func(session bot.SessionKey) string
	// Attachments reads the files of messages; nil = they are known by name only.
	Attachments turn.Attachments
	// Typing shows for a moment that something is being done; may be nil. It may be dropped and must not take long.
	Typing func(ctx context.Context, place bot.Place)
	// Waits shows text as the draft with this id, for some 30 s, for somebody who waits because many are asking; nil =
	// nowhere. able is false where that can never be shown, shown if it cannot be now.
	Waits  func(ctx context.Context, place bot.Place, draft int64, text string) (shown, able bool)
	Signs  Signs       // nil = none are shown
	Memory turn.Memory // nil = nothing is remembered between conversations
	// Resumed is told of each message that begins a turn, with what was said before it in the conversation, as far as
	// the turn reads it, but of no task that is due; may be nil. It must not block.
	Resumed  func(msg *bot.Message, session bot.SessionKey, before []journal.Entry)
	Personal Personal    // what people have chosen for themselves; nil = nothing
	Talk     Talk        // nil = nothing is kept of what people say to each other
	Speech   turn.Speech // nil = nothing is spoken
	// Runs follows the turns of messages that nobody has sent, by the source of their arrivals.
	Runs map[bot.Source]Runs
}

// Talk keeps what people of a group say to each other, where the group wants it (bot/talk).
type Talk interface {
	// Follow has Wants know what other processes have stored.
	Follow(ctx context.Context) error
	// Wants reports whether a message is kept that is not for the bot, provided that its sender may talk here. It reads
	// nothing.
	Wants(msg *bot.Message) bool
	// Keep returns the facts that keep such a message, and at times drop the oldest; they are stored together with its
	// arrival.
	Keep(ctx context.Context, msg *bot.Message) ([]bot.Fact, error)
	// Since returns what the conversation of a message has not read yet.
	Since(ctx context.Context, msg *bot.Message, session bot.SessionKey) (turn.Talk, error)
}

// Personal is what people have chosen for themselves (bot/preference). It must not block.
type Personal interface {
	// Language returns the language of a person whose client tells this one.
	Language(caller, told string) string
	// Busy returns what becomes of a text that arrives during a turn of its sender; "" = as in Options.
	Busy(caller string) string
}

// Buttons are those that are neither of questions nor of drafts.
type Buttons struct {
	// Pressers handle buttons by what their data begins with, up to the first colon. All others are Approvals'.
	Pressers map[string]turn.Presser
	// Below gives the buttons below an answer, or below what ends a turn without one; nil = none.
	Below func(answer turn.Answer) [][]bot.Button
	// After gives the messages that follow such an answer; nil = none do.
	After func(ctx context.Context, answer turn.Answer) ([]bot.Content, error)
	// Beside gives what is done beside an answer that a model has given; nil = nothing is.
	Beside func(answer turn.Answer) turn.Beside
	// Stop gives the buttons below an answer that is being written; nil = none.
	Stop func(language, turn string) [][]bot.Button
}

// Parts are the dependencies of a Dispatcher.
type Parts struct {
	Store bot.Store
	// by source of the arrival; the channel's own updates have the channel's name
	Decoders     map[bot.Source]bot.Decoder
	Composer     bot.Composer
	Runner       Runner
	Guard        turn.Guard
	Meter        turn.Meter
	Commands     turn.Commands
	Approvals    turn.Approvals
	Explanations turn.Explanations
	Buttons
	Outbox Outbox
	// Direct sends, without the outbox, what has to be said when nothing can be stored; nil = nothing is said.
	// Operators are told too.
	Direct    bot.Sender
	Operators func() []bot.Place               // nil = there are none
	Progress  func(turn.Watched) turn.Progress // nil = nothing is shown
	Words     texts.Words
	Log       zerolog.Logger
	Now       func() time.Time
	Receiving
	// News returns what has happened since the session's last turn, for the model; may be nil.
	// moved says that another process may have had the session last, and may have stored something a moment ago.
	News func(ctx context.Context, session bot.SessionKey, moved bool) (turn.News, error)
	// Manner returns how a message of a session is to be answered; may be nil. An error means that not all of it is known.
	Manner func(ctx context.Context, session bot.SessionKey, msg *bot.Message) (turn.Manner, error)
	Observers
}

// Observers are told what happens, for the operator. They must not block.
type Observers struct {
	// Observe receives what metrics count; may be nil.
	Observe func(Observation)
	// Trace returns the context for all work on a turn, and the id of its trace for log lines; nil = it is not traced.
	Trace func(ctx context.Context, turn string) (traced context.Context, id string)
}

// Observation is an event for metrics and traces.
type Observation struct {
	What string // update; queue: a turn has begun; turn: a run of one is over; end: a turn is over, and stored
	Kind string // for update: its kind; for turn and end: its outcome
	// For queue: how long the message has waited. For turn: how long the run took. For end: how long the turn took,
	// from the arrival of its message.
	Duration time.Duration
	Turn     string        // "" for an update
	Session  string        // for end
	Reason   string        // for end: why it ended without an answer; "" = it has one
	Stats    journal.Stats // for end: what the turn took
}

// Options configure a Dispatcher. Zero values mean the documented default.
type Options struct {
	Channel, Bot string
	// Names this process in leases; default random. With a name that is the same after a restart, the next process can
	// continue at once.
	Owner       string
	Concurrency int // maximum of concurrent turns; default 1024
	PerCaller   int // maximum of concurrent turns of one person; default a quarter of Concurrency, at least 1
	Starts      int // maximum of turns that begin at once, each until it is stored; 0 = learnt from how long that takes
	// Bytes that concurrent turns may hold together, estimated from the latest ones; 0 = no limit.
	Memory int64
	Lease  time.Duration // default 60 s
	Sweep  time.Duration // how often timers and the work of other replicas are checked; default 1 s
	Tries  int           // attempts to handle an arrival; default 3
	GiveUp time.Duration // how long a model, or anything else that a turn needs, may be unavailable; default 10 min
	// GiveUpUnreached is how long a model may be unavailable whose server takes no connection; default GiveUp.
	GiveUpUnreached time.Duration
	// Merge is the window in which messages of one person count as one; 0 = each is a turn of its own, but for albums.
	Merge time.Duration
	// Busy is what becomes of a text that arrives while a turn of the same person runs; default Queue.
	Busy    Busy
	Grace   time.Duration // how long running turns may continue at shutdown; default 20 s
	OnceFor time.Duration // how long the reply of a Verdict is not repeated; default 24 h
	// Other processes use the same store: express arrivals are left for a moment to the process that accepted them.
	Shared bool
	// Unattended: nobody on the channel can answer a question.
	Unattended bool
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
