// Package command is the table of slash commands: who may use which, which of them act while a turn is running, and
// what they do. The effect of a command is computed from the store and applied as one Change that also finishes its
// arrival, so that it happens once.
package command

import (
	"context"
	"math"
	"sort"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/nearest"
)

// Store is what commands read.
type Store interface {
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
	Tickets(ctx context.Context, scope string) ([]bot.Ticket, error)
	OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error)
	Express(ctx context.Context, channel, bot string, limit int) ([]bot.Arrival, error)
	Counts(ctx context.Context, channel, bot string) (bot.Counts, error)
}

// Questions decides open questions (bot/approval).
type Questions interface {
	Command(ctx context.Context, call *turn.Call, state bot.ApprovalState) (turn.Effect, error)
	// Rules lists what is always allowed.
	Rules(ctx context.Context, call *turn.Call) (turn.Effect, error)
}

// About is what /status, /tools and /model show.
type About struct {
	Model    func(session bot.SessionKey) string
	Sandbox  string
	Embedded bool   // counters are kept in the process
	Engine   string // of the database, as people call it
	Version  string
	Started  time.Time
	Tools    func(place bot.Place) []string
	Unset    func() []texts.Unset // tools that are absent because a key is not set; may be nil
	// Aside lists tools that servers of models refuse, which are not offered to them; may be nil.
	Aside func() []texts.SetAside
	// Fenced reports whether the model of a conversation takes no tools, so that it writes its calls as text; may be nil.
	Fenced  func(session bot.SessionKey) bool
	Servers func() texts.Connected // may be nil
	Filters func() texts.Filtered  // may be nil
	// Processes returns the processes that use the same database, this one first. May be nil.
	Processes func() []string
	// Previews says whether questions about commands show what they would do; may be nil.
	Previews func(ctx context.Context) texts.Previews
	// Redis asks the server for its state; it returns nil if there is no server. May be nil.
	Redis func(ctx context.Context) *texts.Redis
}

// Policy describes the rules (/policy).
type Policy interface {
	// Status lists the rules in force, one line per table.
	Status() []string
	// Check returns what the rules would decide about a call of msg's sender, without running it. An error is about the
	// arguments, for the person who typed them.
	Check(ctx context.Context, msg *bot.Message, session bot.SessionKey, tool string,
		args []byte) (effect string, why texts.Refusal, err error)
}

// Quotas sets limits in the chat (bot/quota). It answers with a sentence and what is stored with it.
type Quotas interface {
	Manage(ctx context.Context, call *turn.Call) (text string, effect turn.Effect, err error)
}

// Background are the commands of a session that run without anybody waiting.
type Background interface {
	// Running returns how many run in this process, and the facts that make other processes end theirs, one per
	// command.
	Running(ctx context.Context, session bot.SessionKey) (here int, elsewhere []bot.Fact, err error)
	// End ends those of this process.
	End(session bot.SessionKey)
}

// Deps are the dependencies of the commands.
type Deps struct {
	Store     Store
	Questions Questions
	Policy    Policy
	Usage     func(ctx context.Context, msg *bot.Message) ([]texts.Usage, error)
	Quotas    Quotas // nil = none can be set
	About     About
	Desks
	Servers Servers // nil = there is no MCP client
	// Refusals explains what was refused; nil = nothing is.
	Refusals Refusals
	People   People // nil = nobody is admitted in the chat
	// Decides reports whether a person may decide questions somewhere in a place, own or others'; nil = everybody may.
	Decides func(ctx context.Context, msg *bot.Message) (bool, error)
	Blocks  Blocks          // nil = nothing is ever blocked
	Behind  Background      // nil = nothing runs in the background
	Admins  func() []string // names or ids, for refusals
	Words   texts.Words
	Now     func() time.Time
}

// Table is the set of commands. Safe for concurrent use.
type Table struct {
	deps     Deps
	commands map[string]entry
}

type entry struct {
	class   turn.Class
	admin   bool
	decides bool // listed for those who may decide questions
	private bool // answered in private chats only
	absent  bool // part of the contract, not of this version
	off     bool // there is nothing here that carries it out: not listed, it answers so
	run     func(ctx context.Context, call *turn.Call) (turn.Effect, error)
}

// New returns the Table.
func New(deps Deps) *Table {
	t := &Table{deps: deps}
	t.commands = map[string]entry{
		"start":   {class: turn.Overtakes, run: t.start},
		"help":    {class: turn.Overtakes, run: t.help},
		"status":  {class: turn.Overtakes, run: t.status},
		"quota":   {class: turn.Overtakes, run: t.quota},
		"tools":   {class: turn.Overtakes, run: t.tools},
		"model":   {class: turn.Overtakes, run: deps.Model},
		"memory":  {class: turn.Overtakes, off: deps.Memory == nil, run: t.memory},
		"stop":    {class: turn.Overtakes, run: t.stop},
		"approve": {class: turn.Overtakes, decides: true, run: t.decide(bot.Approved)},
		"deny":    {class: turn.Overtakes, decides: true, run: t.decide(bot.Denied)},
		"clear":   {class: turn.Interrupts, run: t.reset(texts.Words.Cleared)},
		"new":     {class: turn.Interrupts, run: t.reset(texts.Words.Fresh)},
		"policy":  {class: turn.Overtakes, admin: true, run: t.policy},
		"mcp":     {class: turn.Overtakes, admin: true, off: deps.Servers == nil, run: t.mcp},
		"people":  {class: turn.Overtakes, admin: true, private: true, off: deps.People == nil, run: t.people(People.People)},
		"admit":   {class: turn.Overtakes, admin: true, private: true, off: deps.People == nil, run: t.people(People.Admit)},
		"remove":  {class: turn.Overtakes, admin: true, private: true, off: deps.People == nil, run: t.people(People.Remove)},
		"admin":   {class: turn.Overtakes, admin: true, private: true, off: deps.Operator == nil, run: deps.Operator},
		"skills":  {class: turn.Overtakes, off: deps.Skills == nil, run: t.skills},
		"why":     {class: turn.Overtakes, off: deps.Refusals == nil, run: t.why},

		"schedule": {class: turn.Overtakes, off: deps.Schedule == nil, run: t.schedule},
		"timezone": {class: turn.Overtakes, off: deps.Zone == nil, run: deps.Zone},
		"export":   {class: turn.Overtakes, absent: deps.Export == nil, run: t.orNotBuilt("export", deps.Export)},
		"forget":   {class: turn.Overtakes, absent: deps.Forget == nil, run: t.orNotBuilt("forget", deps.Forget)},
	}
	t.commands["recap"] = entry{class: turn.Overtakes, absent: deps.Recap == nil, run: t.orNotBuilt("recap", deps.Recap)}
	return t
}

// Reader is for whom commands are listed.
type Reader struct {
	Admin   bool
	Decides bool // they may decide questions
	Group   bool // who reads in a group
}

// Menu lists the commands that somebody may use, in the order of /help.
func (t *Table) Menu(of Reader) []string {
	own, more := t.names(of)
	return append(own, more...)
}

// names lists the commands for everybody and those for admins, sorted.
func (t *Table) names(of Reader) (own, more []string) {
	for _, n := range t.deps.Words.Names() {
		switch e, ok := t.commands[n]; {
		case !ok || e.absent || e.off || n == "start" || (e.private && of.Group) || (e.decides && !of.Decides):
		case e.admin && of.Admin:
			more = append(more, n)
		case !e.admin:
			own = append(own, n)
		}
	}
	sort.Strings(own)
	sort.Strings(more)
	return own, more
}

// built lists the commands that an unknown one may have been meant as: each of them answers, if only with who may use
// it and where.
func (t *Table) built() []string {
	var list []string
	for _, n := range t.deps.Words.Names() {
		if e, ok := t.commands[n]; ok && !e.absent {
			list = append(list, n)
		}
	}
	return list
}

// Class implements turn.Commands. An unknown command is answered at once.
func (t *Table) Class(name string) turn.Class {
	if e, ok := t.commands[strings.ToLower(name)]; ok {
		return e.class
	}
	return turn.Overtakes
}

// Run implements turn.Commands.
func (t *Table) Run(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	name := strings.ToLower(call.Message.Command)
	e, ok := t.commands[name]
	switch {
	case name == "":
		return turn.Effect{}, nil
	case !ok:
		near, _ := nearest.Nearest(name, t.built())
		return t.aside(call, t.deps.Words.UnknownCommand(call.Message.Language, name, near)), nil
	case e.admin && !call.Admin:
		return t.aside(call, t.deps.Words.AdminsOnly(call.Message.Language, t.deps.Admins())), nil
	}
	return e.run(ctx, call)
}

// say replies with plain text.
func (t *Table) say(call *turn.Call, text string) turn.Effect {
	msg := call.Message
	row := bot.Row{Session: call.Session, Place: msg.Place, Purpose: bot.Reply, Content: bot.Content{Text: text}}
	if msg.Place.Group {
		row.ReplyTo = msg.Message
	}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{row}}}
}

// aside replies with text that concerns nobody but the person who gave the command.
func (t *Table) aside(call *turn.Call, text string) turn.Effect {
	e := t.say(call, text)
	e.Change.Send[0] = e.Change.Send[0].Aside(call.Message)
	return e
}

// orNotBuilt returns a desk, or what says that there is none.
func (t *Table) orNotBuilt(name string, desk Desk) Desk {
	if desk == nil {
		return t.notBuilt(name)
	}
	return desk
}

func (t *Table) notBuilt(name string) func(context.Context, *turn.Call) (turn.Effect, error) {
	return func(_ context.Context, call *turn.Call) (turn.Effect, error) {
		return t.say(call, t.deps.Words.NotBuilt(call.Message.Language, name)), nil
	}
}

func (t *Table) help(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	of := Reader{Admin: call.Admin, Decides: true, Group: call.Message.Place.Group}
	if t.deps.Decides != nil {
		var err error
		if of.Decides, err = t.deps.Decides(ctx, call.Message); err != nil {
			return turn.Effect{}, err
		}
	}
	own, admin := t.names(of)
	return t.say(call, t.deps.Words.Help(call.Message.Language, own, admin)), nil
}

func (t *Table) quota(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if strings.TrimSpace(call.Message.Args) != "" && t.deps.Quotas != nil {
		text, e, err := t.deps.Quotas.Manage(ctx, call)
		if err == nil {
			e.Change.Send = append(e.Change.Send, t.aside(call, text).Change.Send...)
		}
		return e, err
	}
	usage, err := t.deps.Usage(ctx, call.Message)
	if err != nil {
		if ctx.Err() != nil {
			return turn.Effect{}, err
		}
		zerolog.Ctx(ctx).Error().Err(err).Msg("cannot read the quotas")
		return t.aside(call, t.deps.Words.QuotaUnread(call.Message.Language)), nil
	}
	return t.aside(call, t.deps.Words.At(call.Message.Place).Quota(call.Message.Language, usage)), nil
}

func (t *Table) decide(state bot.ApprovalState) func(context.Context, *turn.Call) (turn.Effect, error) {
	return func(ctx context.Context, call *turn.Call) (turn.Effect, error) {
		return t.deps.Questions.Command(ctx, call, state)
	}
}

// expressBatch is how many express messages are searched for one's own position among them.
const expressBatch = 1000

// accepted returns the position of an express message in the order of acceptance: /stop does not apply to messages that
// came after it. Both may arrive in one batch after a time without a connection.
func (t *Table) accepted(ctx context.Context, msg *bot.Message) (int64, error) {
	list, err := t.deps.Store.Express(ctx, msg.Place.Channel, msg.Place.Bot, expressBatch)
	if err != nil {
		return 0, err
	}
	for _, a := range list {
		if a.ID == msg.ID {
			return a.Seq, nil
		}
	}
	return math.MaxInt64, nil // not among the express arrivals: it applies to all that wait
}

// stop ends the running turn and drops what waits in the session: messages, open questions, commands in the background.
// It spares what was written after the command, which may have begun a turn before the command is handled. The end of
// the turn tells the person that it has stopped.
func (t *Table) stop(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	lane, err := t.deps.Store.Lane(ctx, call.Session)
	if err != nil {
		return turn.Effect{}, err
	}
	waiting, err := t.deps.Store.Tickets(ctx, string(call.Session))
	if err != nil {
		return turn.Effect{}, err
	}
	before, err := t.accepted(ctx, call.Message)
	if err != nil {
		return turn.Effect{}, err
	}
	var e turn.Effect
	stopped := texts.Stopped{Running: lane.Turn != "" && lane.Arrival < before}
	for _, a := range waiting {
		if a.Seq < before && (lane.Turn == "" || a.Seq != lane.Arrival) {
			e.Change.Done = append(e.Change.Done, a.Seq)
			stopped.Messages++
		}
	}
	if stopped.Running {
		e.Change.Lanes = []bot.LaneUpdate{{Session: call.Session, Stop: &lane.Turn}}
		e.Stop = []bot.SessionKey{call.Session}
		if stopped.Questions, err = t.questions(ctx, call.Session, lane.Turn); err != nil {
			return turn.Effect{}, err
		}
	}
	if t.deps.Behind != nil {
		here, elsewhere, err := t.deps.Behind.Running(ctx, call.Session)
		if err != nil {
			return turn.Effect{}, err
		}
		stopped.Commands, e.Change.Facts = here+len(elsewhere), elsewhere
		e.Then = func(context.Context, *bot.Applied) (turn.Effect, error) {
			t.deps.Behind.End(call.Session)
			return turn.Effect{}, nil
		}
	}
	if !stopped.Running || stopped.Any() {
		e.Change.Send = t.say(call, t.deps.Words.Stopping(call.Message.Language, stopped)).Change.Send
	}
	return e, nil
}

// questions counts the open questions of a turn, which its end withdraws.
func (t *Table) questions(ctx context.Context, session bot.SessionKey, turn string) (int, error) {
	open, err := t.deps.Store.OpenApprovals(ctx, session)
	n := 0
	for i := range open {
		if open[i].Turn == turn {
			n++
		}
	}
	return n, err
}

// reset starts a new conversation: the model no longer sees what came before.
func (t *Table) reset(word func(texts.Words, string) string) func(context.Context, *turn.Call) (turn.Effect, error) {
	return func(ctx context.Context, call *turn.Call) (turn.Effect, error) {
		lane, err := t.deps.Store.Lane(ctx, call.Session)
		if err != nil {
			return turn.Effect{}, err
		}
		e := t.say(call, word(t.deps.Words, call.Message.Language))
		e.Change.Facts = append(e.Change.Facts, bot.Fact{
			Bucket: bot.ResetBucket, Key: string(call.Session), Value: t.deps.Now().UTC().Format(time.RFC3339Nano),
		})
		e.Change.Append = &bot.Append{Session: call.Session, After: lane.Last, Entries: []journal.Entry{{
			Turn: "reset/" + call.Message.ID, Kind: journal.SummaryEntry, At: t.deps.Now(), Caller: call.Message.Caller,
		}}}
		return e, nil
	}
}

// policy shows the rules, or what they would decide.
func (t *Table) policy(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, t.deps.Words
	verb, rest, _ := strings.Cut(strings.TrimSpace(msg.Args), " ")
	tool, args, _ := strings.Cut(strings.TrimSpace(rest), " ")
	switch {
	case verb == "status" || verb == "":
		return t.say(call, w.PolicyStatus(msg.Language, t.deps.Policy.Status())), nil
	case verb == "rules" && strings.TrimSpace(rest) == "":
		return t.deps.Questions.Rules(ctx, call)
	case verb != "check" || tool == "" || strings.TrimSpace(args) == "":
		return t.say(call, w.PolicyHelp(msg.Language)), nil
	}
	effect, why, err := t.deps.Policy.Check(ctx, msg, call.Session, tool, []byte(strings.TrimSpace(args)))
	if err != nil {
		return t.say(call, w.Said(msg.Language, err.Error())+"\n"+w.PolicyHelp(msg.Language)), nil //nolint:nilerr // a reply
	}
	return t.say(call, w.PolicyDecision(msg.Language, effect, &why)), nil
}
