// Package dispatch turns accepted arrivals into turns of the agent: one worker a session, many sessions at once, nothing that answers a person behind
// the thing that waits for the person. Every step is a Change of the store; a process may die between any two.
package dispatch

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools"
)

// Runner moves a turn (agent.Runner).
type Runner interface {
	Run(ctx context.Context, turn *agent.Turn, journal agent.Journal, sink agent.Sink) (agent.Outcome, error)
}

// Verdict says whether a person may talk here.
type Verdict struct {
	OK     bool
	Admin  bool
	Reply  string // what to tell who may not; "" = silence
	Once   string // fact key under which Reply is said once in OnceFor; "" = always
	Reason string // for the log
}

// Guard knows who may talk and by which rules a chat lives (bot/access).
type Guard interface {
	Admit(ctx context.Context, msg *bot.Message) (Verdict, error)
	Rules(place bot.Place) Rules
}

// Rules are what is configured for a chat or topic.
type Rules struct {
	SharedSession bool // all people of the group talk in one session
	AnyMessage    bool // a group message needs no mention
	System        string
	Allowed       func(tool string) bool // nil = all tools
}

// Admission is what a quota says about a new turn.
type Admission struct {
	Charges    []bot.Charge // mirrored with the turn's beginning
	Refusal    string       // not "" = no: what the person is told
	Once       string       // fact key under which Refusal is said once per window
	OnceTill   time.Time
	Notice     string // said besides ("18 of 20 turns today")
	NoticeKey  string
	NoticeTill time.Time
}

// Meter counts turns (bot/quota). Admit is idempotent by turn.
type Meter interface {
	Admit(ctx context.Context, msg *bot.Message, turn string) (Admission, error)
	// Undo gives back what Admit took for a turn that never began.
	Undo(ctx context.Context, charges []bot.Charge) error
}

// Class says how a command runs.
type Class int

// The classes of commands.
const (
	Unknown    Class = iota // not a command of ours: answered with the nearest known one
	Overtakes               // acts at once, beside a running turn
	InLane                  // waits for its place in the session
	Interrupts              // stops the turn in progress, then runs in its place in the session
)

// Call is a command on its way.
type Call struct {
	Message *bot.Message
	Session string
	Admin   bool
	Running bool // a turn of this session is running in this process
}

// Effect is what a command or a button press does: applied as one Change together with finishing the arrival. When the store refuses it because the
// state moved on (ErrDecided, ErrConflict), it is asked for again.
type Effect struct {
	Change  bot.Change
	Stop    []string // sessions whose running turn is to be stopped once the Change is in
	Decided []string // sessions whose parked turn has a decision
	Wake    []string // sessions to look at
	// Then says what follows from what the store made of the Change (a vote that turned out to be the last); may be nil. It is applied too.
	Then func(ctx context.Context, applied *bot.Applied) (Effect, error)
}

// Commands are the slash commands (bot/command).
type Commands interface {
	Class(name string) Class
	Run(ctx context.Context, call *Call) (Effect, error)
}

// Asked is a turn's questions on their way to people.
type Asked struct {
	Session, Turn string
	Place         bot.Place
	Caller, Name  string
	Language      string
	ReplyTo       string
	Questions     []tools.Question
	Stats         journal.Stats
}

// Approvals puts questions to people and takes their decisions (bot/approval).
type Approvals interface {
	// Reachable says whether anybody could approve what a person asks for in a place.
	Reachable(place bot.Place, caller string) bool
	// Ask adds the approvals and cards that are not there yet to change.
	Ask(ctx context.Context, asked Asked, change *bot.Change) error
	Press(ctx context.Context, msg *bot.Message) (Effect, error)
	// Expired decides what nobody decided in time; nil effects when there is nothing.
	Expired(ctx context.Context, now time.Time) ([]Effect, error)
	// Withdraw adds the withdrawal of a turn's open questions, and of their cards, to change.
	Withdraw(ctx context.Context, session, turn, by string, change *bot.Change) error
}

// Outbox delivers rows; Wake says that new ones are there.
type Outbox interface {
	Wake(place bot.Place)
}

// Progress shows a running turn to the person who waits.
type Progress interface {
	agent.Sink
	// Run shows until ctx ends or Close is called.
	Run(ctx context.Context) error
	// Close ends it; afterwards nothing more is shown.
	Close()
}

// Watched says what a Progress shows.
type Watched struct {
	Place    bot.Place
	Turn     string
	Draft    int64 // id of the draft, positive
	Language string
	// Placeholder makes the durable message that grows in a group, or finds it again; "" while it is on its way.
	Placeholder func(ctx context.Context) (message string, err error)
	// Gone is told when the channel says that nothing reaches the place any more. It must not block.
	Gone func()
}

// Words are the sentences the dispatcher needs, in the reader's language (bot/texts).
type Words interface { //nolint:interfacebloat // one book of sentences, read as a whole
	// Ended says why a turn ended without an answer. Text is what the outcome carries: the partial answer, the repeated result, a quota's sentence.
	Ended(language, reason, text string, stats journal.Stats, request string) string
	// Cut is added under an answer that the token limit cut.
	Cut(language string) string
	// Away says that the model does not answer and that the message is kept.
	Away(language, request string) string
	// Behind says that a message waits behind a decision.
	Behind(language string) string
	// Attached describes files that came along, for the model.
	Attached(files []bot.Attachment) string
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
	Decoder   bot.Decoder
	Composer  bot.Composer
	Runner    Runner
	Guard     Guard
	Meter     Meter
	Commands  Commands
	Approvals Approvals
	Outbox    Outbox
	// Direct sends beside the outbox what has to be said when nothing can be stored; nil = nothing is said. Operators are told too.
	Direct    bot.Sender
	Operators []bot.Place
	Progress  func(Watched) Progress // nil = nothing is shown
	Words     Words
	Log       zerolog.Logger
	Now       func() time.Time
	// News reads what has happened since the session's last turn, for the model; may be nil.
	News func(ctx context.Context, session string) (News, error)
	// Observe takes what metrics count; may be nil. Must not block.
	Observe func(Observation)
}

// News is what the model of a session is told at the beginning of its next turn: commands that ended in the background, servers that came or went.
type News struct {
	Text    string
	Flagged bool       // it tries to give instructions
	Told    []bot.Fact // deleted by the Change that begins the turn, so that everything is told once, and nothing is lost when that Change fails
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
	Owner        string        // names this process in leases; default random. A name that stays over restarts lets the next process go on at once
	Concurrency  int           // turns at once; default 1024
	PerCaller    int           // turns of one person at once; default a quarter of Concurrency, at least 1
	Memory       int64         // bytes that the turns at once may hold together, by what the latest ones held; 0 = any number
	Lease        time.Duration // default 60 s
	Sweep        time.Duration // how often timers and other replicas' work are looked for; default 1 s
	Tries        int           // of an arrival whose handling fails; default 3
	GiveUp       time.Duration // how long a model, or what else a turn needs, may be away; default 10 min
	Grace        time.Duration // how long running turns may go on at the end; default 20 s
	OnceFor      time.Duration // how long a Verdict's reply is not repeated; default 24 h
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
