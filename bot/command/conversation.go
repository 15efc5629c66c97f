package command

import (
	"context"
	"math"
	"time"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Store is what commands read.
type Store interface {
	Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
	Tickets(ctx context.Context, scope string) ([]bot.Ticket, error)
	OpenApprovals(ctx context.Context, session bot.SessionKey) ([]bot.Approval, error)
	Express(ctx context.Context, channel, bot string, limit int) ([]bot.Arrival, error)
	Counts(ctx context.Context, channel, bot string) (bot.Counts, error)
}

// Background are the commands of a session that run without anybody waiting.
type Background interface {
	// Running returns how many run in this process, and the facts that make other processes end theirs, one per
	// command.
	Running(ctx context.Context, session bot.SessionKey) (here int, elsewhere []bot.Fact, err error)
	// End ends those of this process.
	End(session bot.SessionKey)
}

// Overheard is what people say to each other in groups (bot/talk).
type Overheard interface {
	// Began returns the facts that go with a conversation that begins anew, or was cleared.
	Began(ctx context.Context, call *turn.Call, cleared bool) ([]bot.Fact, error)
}

// Conversation is what people do with a conversation: they stop what runs in it, and begin it
// again. Safe for concurrent use.
type Conversation struct {
	Store  Store
	Behind Background  // nil = nothing runs in the background
	Speech turn.Speech // nil = nothing is spoken
	// Overheard is what conversations of groups read besides; nil = nothing.
	Overheard Overheard
	Words     texts.Words
	Now       func() time.Time
}

// Feature returns /stop, /clear and /new.
func (c *Conversation) Feature() feature.Feature {
	return feature.Feature{Name: "conversation", Commands: []feature.Command{
		{Name: "stop", Run: c.answerStop},
		{Name: "clear", Interrupts: true, Run: c.resetWith(texts.Words.Cleared, false)},
		{Name: "new", Interrupts: true, Run: c.resetWith(texts.Words.Fresh, true)},
	}}
}

// expressBatch is how many express messages are searched for one's own position among them.
const expressBatch = 1000

// acceptedAt returns the position of an express message in the order of acceptance: /stop does not apply to messages
// that came after it. Both may arrive in one batch after a time without a connection.
func (c *Conversation) acceptedAt(ctx context.Context, msg *bot.Message) (int64, error) {
	list, err := c.Store.Express(ctx, msg.Place.Channel, msg.Place.Bot, expressBatch)
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

// answerStop ends the running turn and drops what waits in the session: messages, open questions, commands in the
// background. It spares what was written after the command, which may have begun a turn before the command is handled.
// The end of the turn tells the person that it has stopped.
func (c *Conversation) answerStop(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	lane, err := c.Store.Lane(ctx, call.Session)
	if err != nil {
		return turn.Effect{}, err
	}
	waiting, err := c.Store.Tickets(ctx, string(call.Session))
	if err != nil {
		return turn.Effect{}, err
	}
	before, err := c.acceptedAt(ctx, call.Message)
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
		if stopped.Questions, err = c.countQuestions(ctx, call.Session, lane.Turn); err != nil {
			return turn.Effect{}, err
		}
	}
	if c.Behind != nil {
		here, elsewhere, err := c.Behind.Running(ctx, call.Session)
		if err != nil {
			return turn.Effect{}, err
		}
		stopped.Commands, e.Change.Facts = here+len(elsewhere), elsewhere
	}
	var speech turn.Effect
	if c.Speech != nil {
		if stopped.Speech, speech, err = c.Speech.Stopping(ctx, call.Session, ""); err != nil {
			return turn.Effect{}, err
		}
		e.Change.Facts, e.Change.Rows = append(e.Change.Facts, speech.Change.Facts...), speech.Change.Rows
	}
	e.Then = func(ctx context.Context, applied *bot.Applied) (turn.Effect, error) {
		if c.Behind != nil {
			c.Behind.End(call.Session)
		}
		if speech.Then != nil {
			return speech.Then(ctx, applied)
		}
		return turn.Effect{}, nil
	}
	if !stopped.Running || stopped.Any() {
		e.Change.Send = call.ReplyText(c.Words.Stopping(call.Message.Language, stopped)).Change.Send
	}
	return e, nil
}

// countQuestions counts the open questions of a turn, which its end withdraws.
func (c *Conversation) countQuestions(ctx context.Context, session bot.SessionKey, turn string) (int, error) {
	open, err := c.Store.OpenApprovals(ctx, session)
	n := 0
	for i := range open {
		if open[i].Turn == turn {
			n++
		}
	}
	return n, err
}

// resetWith starts a new conversation: the model no longer sees what came before. parted: a search still finds it.
func (c *Conversation) resetWith(
	word func(texts.Words, string) string, parted bool,
) func(context.Context, *turn.Call) (turn.Effect, error) {
	return func(ctx context.Context, call *turn.Call) (turn.Effect, error) {
		lane, err := c.Store.Lane(ctx, call.Session)
		if err != nil {
			return turn.Effect{}, err
		}
		e := call.ReplyText(word(c.Words, call.Message.Language))
		e.Change.Facts = append(e.Change.Facts, bot.Fact{
			Bucket: bot.ResetBucket, Key: string(call.Session), Value: c.Now().UTC().Format(time.RFC3339Nano),
		})
		e.Change.Append = &bot.Append{Session: call.Session, After: lane.Last, Entries: []journal.Entry{{
			Turn: "reset/" + call.Message.ID, Kind: journal.SummaryEntry, At: c.Now(), Caller: call.Message.Caller,
			Parted: parted,
		}}}
		if c.Overheard == nil {
			return e, nil
		}
		began, err := c.Overheard.Began(ctx, call, !parted)
		e.Change.Facts = append(e.Change.Facts, began...)
		return e, err
	}
}
