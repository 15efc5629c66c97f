// Package blocks stores which tools are blocked (they failed too often), and reports it: to the conversations
// affected, to the operators, and to /tools.
package blocks

import (
	"cmp"
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/tools"
)

// Bucket is the bucket of the facts of a Keeper.
const Bucket = "blocked"

// Keeper stores blocks as facts, by tool, session and caller. It implements anomaly.Store
// and is safe for concurrent use.
type Keeper struct{ Facts facts.Bucket }

// Blocks lists what is stored. Blocks that an earlier version stored had no end; they are omitted, which lifts them.
func (k Keeper) Blocks(ctx context.Context) ([]tools.Block, error) {
	stored, err := k.Facts.List(ctx, "")
	var list []tools.Block
	for _, f := range stored {
		var block tools.Block
		if json.Unmarshal([]byte(f.Value), &block) == nil && block.Tool != "" {
			list = append(list, block)
		}
	}
	return list, err
}

// Block stores a block until it no longer matters for the next one.
func (k Keeper) Block(ctx context.Context, block tools.Block) error {
	raw, err := json.Marshal(block)
	if err != nil {
		return err
	}
	f := k.Facts.Fact(blockKey(&block), string(raw))
	f.Expires = block.Forget()
	return k.Facts.Apply(ctx, f)
}

// Unblock removes a block.
func (k Keeper) Unblock(ctx context.Context, block tools.Block) error {
	return k.Facts.Save(ctx, blockKey(&block), "")
}

func blockKey(b *tools.Block) string {
	if b.Caller == "" {
		return b.Tool + " " + b.Session
	}
	return b.Tool + " " + b.Session + "/" + b.Caller // with a slash, so that erasing the caller finds it
}

// Detector knows which tools are blocked (anomaly.Detector).
type Detector interface {
	Blocks() []tools.Block
	// Lift lifts the blocks of a tool in every session at once; the caller removes them from the store.
	Lift(tool string) []tools.Block
	// Unblock also lifts them in the store.
	Unblock(ctx context.Context, tool string) (was bool, err error)
}

// List shows blocks in /tools and lifts them. It implements command.Blocks.
type List struct {
	Detector
	Keeper Keeper
}

// Blocked lists the blocks of a person in a session; with all, also those of the other people and sessions.
func (l List) Blocked(session bot.SessionKey, caller string, all bool) []texts.Blocked {
	var list []texts.Blocked
	for _, block := range l.Blocks() {
		here := (block.Session == "" || block.Session == string(session)) &&
			(block.Caller == "" || block.Caller == caller)
		if here || all {
			list = append(list, texts.Blocked{
				Tool: block.Tool, Reason: block.Why(),
				Left: block.Until.Sub(l.Keeper.Facts.Now()), Elsewhere: !here,
			})
		}
	}
	return list
}

// Lifted lifts the blocks of a tool and returns the facts that remove them from the store.
func (l List) Lifted(tool string) []bot.Fact {
	var list []bot.Fact
	for _, block := range l.Lift(tool) {
		list = append(list, l.Keeper.Facts.Fact(blockKey(&block), ""))
	}
	return list
}

// Event reports a tool that has just been blocked.
type Event struct {
	Tool              string // "server:*" = all tools of a server
	Session           string // the session affected; "" = all
	Caller, Name      string // the person affected, and how they call themselves; "" = everybody
	Until             time.Time
	Failures, Samples int // Failures of Samples calls failed
}

// Teller reports blocked tools to people. All fields but Called are required.
type Teller struct {
	Channel, Bot string             // the chats that are served
	Operators    func() []bot.Place // who is told of every block
	// Called returns what people and groups are called, by caller id; nil = nobody knows.
	Called func() map[string]string
	Lanes  interface {
		Lane(ctx context.Context, session bot.SessionKey) (bot.Lane, error)
	}
	Send  func(ctx context.Context, row bot.Row, facts ...bot.Fact) // stores a row and has it delivered
	Words texts.Words
	Now   func() time.Time
	Log   zerolog.Logger
}

// Tell informs the conversation in which a tool was blocked, and the operators. An operator who is in that conversation
// is told once. The rows of one event always have the same keys, so several processes may report it.
func (t Teller) Tell(ctx context.Context, e Event) {
	key := "blocked/" + e.Tool + "/" + strconv.FormatInt(e.Until.UnixNano(), 10)
	left := e.Until.Sub(t.Now()).Round(time.Minute)
	told := t.tellSession(ctx, e, key, left)
	where := told.Chat
	if t.Called != nil {
		where = cmp.Or(t.Called()[told.Channel+":"+told.Chat], where)
	}
	for i, place := range t.Operators() {
		if place != told {
			text := t.Words.At(place).ToolBlockedAdmins("", e.Tool, where, e.Failures, e.Samples, left)
			t.tellPlace(ctx, place.SessionKey(""), place, key+"/"+strconv.Itoa(i), text)
		}
	}
}

// tellSession informs the conversation and returns its place; the zero place if it does not belong to this channel.
func (t Teller) tellSession(ctx context.Context, e Event, key string, left time.Duration) bot.Place {
	if e.Session == "" {
		return bot.Place{}
	}
	session := bot.SessionKey(e.Session)
	lane, err := t.Lanes.Lane(ctx, session)
	if err != nil {
		t.Log.Error().Err(err).Str("tool", e.Tool).Str("session", e.Session).
			Msg("block of a tool not reported to its conversation")
		return bot.Place{}
	}
	if lane.Place.Channel != t.Channel || lane.Place.Bot != t.Bot {
		return bot.Place{}
	}
	w := t.Words.At(lane.Place)
	text := w.ToolBlocked("", e.Tool, left)
	if lane.Place.Group && e.Caller != "" {
		text = w.ToolBlockedFor("", e.Tool, cmp.Or(e.Name, e.Caller), left)
	}
	t.tellPlace(ctx, session, lane.Place, key, text)
	return lane.Place
}

func (t Teller) tellPlace(ctx context.Context, session bot.SessionKey, place bot.Place, key, text string) {
	t.Send(ctx, bot.Row{Session: session, Place: place, Purpose: bot.Reply, Key: key, Content: bot.Content{Text: text}})
}
