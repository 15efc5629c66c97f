// Package turn defines the contract of a turn. The packages that decide about people, quotas, commands and approvals
// return these types, and the engine that runs turns (bot/dispatch) calls them through these interfaces. They do not
// import the engine.
package turn

import (
	"context"
	"time"

	"github.com/zephbot/zephbot/agent"
	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm/cost"
	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/tools"
)

// Raw is an update as the channel received it.
type Raw struct {
	ID     string // unique on the channel
	Body   []byte
	Source bot.Source // "" = the channel itself
}

// Verdict reports whether a person may talk here.
type Verdict struct {
	OK     bool
	Admin  bool
	Reply  string // what to tell a person who may not; "" = nothing
	Once   string // fact key under which Reply is said once per OnceFor; "" = always
	Reason string // for the log
	// Called names the sender with the id where the name does not tell who it is, because somebody else has it; "" = it does.
	Called string
	// Wait is how long an arrival waits before it is refused, because another one may change the verdict; 0 = not at all.
	Wait time.Duration
	// Change is stored with the refusal, besides Reply: rows that others are told of it by, and facts.
	Change bot.Change
	// Payer is the caller in whose name the message is handled, and who pays for it; "" = its sender.
	Payer string
	// Allowed says which tools the person has, besides what the chat allows; nil = all.
	Allowed func(tool string) bool
}

// Guard decides who may talk and which rules apply in a chat (bot/access).
type Guard interface {
	Admit(ctx context.Context, msg *bot.Message) (Verdict, error)
	Rules(place bot.Place) Rules
}

// Rules are the configuration of a chat or topic.
type Rules struct {
	SharedSession bool // all people of the group share one session
	AnyMessage    bool // messages in a group need no mention
	System        string
	Allowed       func(tool string) bool // nil = all tools
	// Added are built-in tools that conversations here have besides or instead of those of the same name.
	// Allowed does not apply to them.
	Added []tools.Tool
}

// Manner is how a turn is answered, as people have chosen it for its conversation and for themselves. The zero value is
// what it is where nobody has chosen anything.
type Manner struct {
	Model   string // name of the provider that is asked first; "" = the configured order
	Persona prompt.Persona
	// Narrow takes away the tools that the persona does not have; nil = none.
	Narrow func(o *tools.Overlay) *tools.Overlay
	Own    string // how the person wants to be answered, in their words
	// Notice is said at the beginning of the turn, with which Facts are stored; nil = nothing.
	Notice *Notice
	Facts  []bot.Fact
}

// Admission is the decision of a quota about a new turn.
type Admission struct {
	Charges    []bot.Charge // stored with the beginning of the turn
	Ledger     *bot.Ledger  // stored with it too: a *bot.NoRoom refuses the turn; see Meter.Undo
	Refusal    string       // what the person is told; "" = the turn is admitted
	Once       string       // fact key under which Refusal is said once per window
	OnceTill   time.Time
	Notice     string // said in addition ("18 of 20 turns today")
	NoticeKey  string
	NoticeTill time.Time
}

// Notice is something that a person is told once.
type Notice struct {
	Text string
	Key  string // what is told under it is told once
}

// Meter counts what is used (bot/quota). Admit is idempotent by turn.
type Meter interface {
	Admit(ctx context.Context, msg *bot.Message, turn string) (Admission, error)
	// Undo takes back what Admit charged for a turn that never began. If the ledger has refused it, Admit knows why.
	Undo(ctx context.Context, charges []bot.Charge) error
	// Open begins to count what a turn spends on models in this process, until its Close.
	Open(msg *bot.Message, turn string) Budget
}

// Budget is what a turn spends on models. Safe for concurrent use.
type Budget interface {
	cost.Payer
	Unstored
	// Notices are what the person is to be told of the quotas.
	Notices() []Notice
	// Close ends it. What is settled later is stored by itself and not among Charges.
	Close()
	// Flush stores what was spent in a Change of its own. What cannot be stored now is stored later, as long as the
	// process lives; the error is for the log.
	Flush(ctx context.Context) error
}

// Unstored is what a turn has spent and nobody has stored yet.
type Unstored interface {
	// Spend returns it, and what is to be set aside for what follows. The caller stores it in one
	// Change, as it is, and then calls Stored; until then everybody else who spends something of the
	// purse waits. The same may be stored twice.
	Spend(next Next) Spent
	// Begin is Spend for the Change that begins the turn. It is also held to what was admitted (Admission.Ledger, nil =
	// nothing), and sets aside what the first call of the model may cost. tokens is the size of the message.
	Begin(admitted *bot.Ledger, session string, tokens int) Spent
	// Stored ends Spend and Begin. applied is nil if it may not have been stored.
	Stored(spent *Spent, applied *bot.Applied)
}

// Next is what follows in a turn.
type Next struct {
	Call   bool // of the turn's model
	Tools  bool // which may need calls of other models
	Tokens int  // by which the request for the Call has grown
}

// Spent is what was spent, and what remains set aside once that is stored.
type Spent struct {
	Charges []bot.Charge
	Facts   []bot.Fact // for the receipt
	Ledger  *bot.Ledger
}

// None reports whether there is nothing to store.
func (s *Spent) None() bool { return len(s.Charges) == 0 && s.Ledger == nil }

// In adds it to a Change.
func (s *Spent) In(change *bot.Change) {
	change.Charges, change.Ledger = append(change.Charges, s.Charges...), s.Ledger
	change.Facts = append(change.Facts, s.Facts...)
}

// Class is how a command runs.
type Class int

// The classes of commands.
const (
	Unknown    Class = iota // not a command of ours: the reply names the nearest known one
	Overtakes               // acts at once, next to a running turn
	InLane                  // waits its turn in the session
	Interrupts              // stops the turn in progress, then waits its turn in the session
)

// NotAPerson is the Reason of a Verdict about a message in the name of a group or a channel.
const NotAPerson = "not a person"

// Call is a command that is to run.
type Call struct {
	Message *bot.Message
	Session bot.SessionKey
	Admin   bool
	Allowed func(tool string) bool // which tools the caller has, besides what the chat allows; nil = all
	Running bool                   // a turn of this session is running in this process
}

// Effect is what a command or a button press does. It is applied as one Change that also finishes the arrival. If the
// store refuses it because the state has changed (ErrDecided, ErrConflict), it is computed again.
type Effect struct {
	Change  bot.Change
	Stop    []bot.SessionKey // sessions whose running turn is stopped once the Change is stored
	Decided []bot.SessionKey // sessions whose parked turn has a decision
	Wake    []bot.SessionKey // sessions to look at
	// Then returns what follows from the result of the Change (a vote that turned out to be the last one); may be nil.
	// It is applied too.
	Then func(ctx context.Context, applied *bot.Applied) (Effect, error)
}

// TurnToStop returns the turn of a session that the Change asks to stop; "" = any.
func (e *Effect) TurnToStop(session bot.SessionKey) string {
	for i := range e.Change.Lanes {
		if u := &e.Change.Lanes[i]; u.Session == session && u.Stop != nil {
			return *u.Stop
		}
	}
	return ""
}

// Commands are the slash commands (bot/command).
type Commands interface {
	Class(name string) Class
	Run(ctx context.Context, call *Call) (Effect, error)
}

// Asked are a turn's questions that are to be put to people.
type Asked struct {
	Session      bot.SessionKey
	Turn         string
	Place        bot.Place
	Caller, Name string
	Title        string // of the group
	Language     string
	ReplyTo      string
	Questions    []tools.Question
	Stats        journal.Stats
}

// Approvals puts questions to people and handles their decisions (bot/approval).
type Approvals interface { //nolint:interfacebloat // the life of a question
	// Reachable reports whether there is anybody who could approve what a person asks for in a place.
	Reachable(ctx context.Context, place bot.Place, caller string) (bool, error)
	// Ask adds the missing approvals and cards to change.
	Ask(ctx context.Context, asked Asked, change *bot.Change) error
	Press(ctx context.Context, msg *bot.Message) (Effect, error)
	// Locate gives a press that is Unplaced the place of its question; false if it belongs to none.
	Locate(ctx context.Context, msg *bot.Message) (bool, error)
	// Expired decides the questions that nobody decided in time; it returns nil if there are none.
	Expired(ctx context.Context, now time.Time) ([]Effect, error)
	// Withdraw adds the withdrawal of a turn's open questions, and of their cards, to change.
	Withdraw(ctx context.Context, session bot.SessionKey, turn, by string, change *bot.Change) error
}

// Explanations are what people say in their own words about questions: why they have denied one, and what they answer
// (bot/approval).
type Explanations interface {
	// Explains reports whether a message that arrived at a time says why its sender has denied a question: it is a
	// reply to the card, soon enough; or whether it answers a question that waits for their words. It is no message to
	// answer then; Explain handles it.
	Explains(ctx context.Context, msg *bot.Message, at time.Time) (bool, error)
	Explain(ctx context.Context, msg *bot.Message, at time.Time) (Effect, error)
	// Reasons returns what was said about denied calls of a session and no model has read, as user entries without a
	// turn. The Change that appends them has to contain the facts, so that each is read once. It reads nothing from the
	// store while there is nothing, except with look: another process may have stored something.
	Reasons(ctx context.Context, session bot.SessionKey, look bool) ([]journal.Entry, []bot.Fact, error)
}

// Presser handles the buttons whose data begins with its prefix. The person was admitted before. What does not belong
// to a button that was really sent changes nothing: anybody with a client of their own can send any data on any
// message. A Presser answers each press with a bot.Toast.
type Presser interface {
	Press(ctx context.Context, call *Call) (Effect, error)
}

// Answer is an answer that is about to be sent.
type Answer struct {
	Language string
	Place    bot.Place
	Caller   string // whose turn it was
	Session  bot.SessionKey
	Turn     string
	Stats    journal.Stats
	Entries  []journal.Entry // of the turn, that are stored together with the answer
	Message  *bot.Message    // that is answered
	Text     string          // as the model wrote it; "" where a turn has ended without an answer
}

// Beside is what a feature does beside an answer.
type Beside struct {
	Facts []bot.Fact // stored together with the answer
	Then  func()     // called once that is stored; must not block; nil = nothing follows
}

// Speech are the answers that are being spoken (bot/speech).
type Speech interface {
	// Stopping returns how many answers of a session, to one person or ("") to anybody, are being spoken or wait to be
	// sent, and what ends them in whichever process. Its Change is refused with ErrConflict if they have gone on.
	Stopping(ctx context.Context, session bot.SessionKey, caller string) (n int, ends Effect, err error)
}

// Progress shows a running turn to the person who waits for it.
type Progress interface {
	agent.Sink
	// Run shows the turn until ctx ends or Close is called.
	Run(ctx context.Context) error
	// Close ends it; after that, nothing more is shown.
	Close()
}

// Watched is what a Progress shows.
type Watched struct {
	Place    bot.Place
	Turn     string
	Draft    int64 // id of the draft, positive
	Language string
	// Placeholder creates the durable message that grows in a group, or finds it again; "" while it is being delivered.
	Placeholder func(ctx context.Context) (message string, err error)
	Buttons     [][]bot.Button // below the placeholder
	// Gone is called when the channel reports that the place cannot be reached any more, with the time of the request
	// that has shown it. It must not block.
	Gone func(asked time.Time)
}

// News is what the model is told at the beginning of a session's next turn: commands that ended in the background,
// servers that appeared or disappeared.
type News struct {
	Text    string
	Flagged bool // the text tries to give instructions
	// Deleted by the Change that begins the turn, so that everything is told once, and nothing is lost if that Change
	// fails.
	Told []bot.Fact
}

// Talk is what people of a group have said to each other since a conversation last read it.
type Talk struct {
	Said []journal.Remark
	Told []bot.Fact // stored by the Change that begins the turn, so that it is told once
}

// Reminder is a message of which the model is perhaps to be reminded of something.
type Reminder struct {
	Message *bot.Message
	Known   []string // ids of what the conversation was reminded of already, as far as that is known
}

// Memory is what is remembered between conversations (bot/memory). Safe for concurrent use.
type Memory interface {
	// Has reports whether there may be something to recall for a message. It reads nothing from the store.
	Has(msg *bot.Message) bool
	// Recall returns what may matter to a message; nil = nothing. The payer of what it costs is in ctx. flagged:
	// it tries to give instructions.
	Recall(ctx context.Context, of *Reminder) (recalled *journal.Recalled, flagged bool)
}
