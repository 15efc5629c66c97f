package servers

import (
	"context"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/news"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/mcp"
)

// tellLater replies to a command at a later time; what distinguishes the replies to one command. facts are stored with
// it.
func (d *Handler) tellLater(ctx context.Context, call *turn.Call, what, text string, facts ...bot.Fact) {
	row := bot.Row{
		Session: call.Session, Place: call.Message.Place, Purpose: bot.Reply,
		Key:     "later/" + what + "/" + call.Message.ID,
		Content: bot.Content{Text: text, Language: call.Message.Language},
	}
	if call.Message.Place.Group {
		row.ReplyTo = call.Message.Message
	}
	d.deps.Send(ctx, row, facts...)
}

// Tell returns a function that tells the chats that use a server, and their models at the next turn, what happened to
// it.
func (d *Handler) Tell(ctx context.Context) func(mcp.Notice) {
	return func(n mcp.Notice) {
		for i, name := range n.Sessions {
			session := d.deps.Moves.Current(bot.SessionKey(name))
			var lane bot.Lane
			err := d.deps.Keeper.Insist(ctx, func() (err error) {
				lane, err = d.deps.Store.Lane(ctx, session)
				return err
			})
			if err != nil || lane.Place.Channel != d.deps.Channel || lane.Place.Bot != d.deps.Bot {
				continue
			}
			d.tellServer(ctx, n, lane, i)
		}
	}
}

// toldBucket holds what a session was last told about a server: every process has connections of its own, and sees it
// disappear and return.
const (
	toldBucket   = "mcp_told"
	toldFor      = 7 * 24 * time.Hour // that it is away, or back
	toldShortly  = time.Minute        // anything else, which may happen again
	toldTogether = 2                  // seconds
)

// toldFact returns the fact that a session was told of a notice; known reports whether it exists already.
func (d *Handler) toldFact(ctx context.Context, n mcp.Notice, lane bot.Lane) (told bot.Fact, known bool) {
	told = bot.Fact{
		Bucket: toldBucket, Key: string(lane.Session) + "/" + n.Server, Value: string(n.Kind),
		Expires: d.deps.Now().Add(toldFor),
	}
	if n.Kind != mcp.Away && n.Kind != mcp.Back {
		told.Key += "/" + string(n.Kind)
		told.Value, told.Expires = fmt.Sprint(n.Tools, n.Fresh, n.Held), d.deps.Now().Add(toldShortly)
	}
	last, err := d.deps.Store.Fact(ctx, toldBucket, told.Key, d.deps.Now())
	return told, err == nil && last == told.Value // telling twice is better than never
}

// tellServer tells one of them, in one commit.
func (d *Handler) tellServer(ctx context.Context, n mcp.Notice, lane bot.Lane, i int) {
	w, now := d.deps.Words.At(lane.Place), d.deps.Now()
	change := &bot.Change{}
	if d.deps.Shared {
		told, known := d.toldFact(ctx, n, lane)
		if known {
			return
		}
		change.Facts = append(change.Facts, told)
	}
	if f, ok := news.About(lane.Session, now, n); ok {
		change.Facts = append(change.Facts, f)
	}
	text := n.Text
	switch n.Kind {
	case mcp.Away:
		text = w.ServerAway("", n.Server)
	case mcp.Back:
		text = w.ServerBack("", n.Server, len(d.deps.Client.Tools(n.Server)))
	case mcp.Withdrawn:
		text = w.ServerWaits("", n.Server, n.Tools, n.Fresh, n.Held)
	case mcp.Changed: // the model is told; people need not know
		text = ""
	}
	if text != "" {
		key := fmt.Sprintf("mcp/%s/%s/%d/%d", n.Server, n.Kind, now.UnixNano(), i)
		if d.deps.Shared { // if two processes tell it at the same moment, one row is stored
			key = fmt.Sprintf("mcp/%s/%s/%s/%d", n.Server, n.Kind, lane.Session, now.Unix()/toldTogether)
		}
		change.Send = []bot.Row{{
			Session: lane.Session, Place: lane.Place, Purpose: bot.Notice, Key: key, Content: bot.Content{Text: text},
		}}
	}
	if err := d.deps.Keeper.Keep(ctx, change); err != nil {
		d.deps.Log.Error().Err(err).Str("server", n.Server).Str("chat", lane.Place.Chat).
			Msg("news of a server not kept")
		return
	}
	d.deps.News.Note(lane.Session)
	d.deps.Wake(lane.Place)
}
