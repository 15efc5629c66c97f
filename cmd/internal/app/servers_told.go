package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/zephbot/zephbot/bot/news"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/mcp"
)

// beside runs work that a command began, until the service ends. Its errors are its own to tell.
func (s *service) beside(work func(ctx context.Context)) error {
	s.aside.Lock()
	defer s.aside.Unlock()
	if s.asideCtx == nil {
		return errors.New("the service is stopping")
	}
	ctx := s.asideCtx
	s.asideWork.Go(func() { work(ctx) })
	return nil
}

// tellLater answers a command later than at once; what tells the answers of one command apart. facts are stored with it.
func (s *service) tellLater(ctx context.Context, call *turn.Call, what, text string, facts ...bot.Fact) {
	row := bot.Row{
		Session: call.Session, Place: call.Message.Place, Purpose: bot.Reply, Key: "later/" + what + "/" + call.Message.ID,
		Content: bot.Content{Text: text, Language: call.Message.Language},
	}
	if call.Message.Place.Group {
		row.ReplyTo = call.Message.Message
	}
	s.send(ctx, row, facts...)
}

// send stores a row, and facts in the same commit, and has it delivered. The row has a key, so that it can be stored again.
func (s *service) send(ctx context.Context, row bot.Row, facts ...bot.Fact) {
	if err := s.core.keeper().Keep(ctx, &bot.Change{Send: []bot.Row{row}, Facts: facts}); err != nil {
		s.log.Error().Err(err).Str("chat", row.Place.Chat).Msg("message not stored")
		return
	}
	s.outbox.Wake(row.Place)
}

// tellServers tells the chats that use a server, and their models at the next turn, what happened to it.
func (s *service) tellServers(ctx context.Context) func(mcp.Notice) {
	return func(n mcp.Notice) {
		for i, session := range n.Sessions {
			session = s.core.moves.Current(session)
			var lane bot.Lane
			err := s.core.keeper().Insist(ctx, func() (err error) {
				lane, err = s.core.stores.Bot.Lane(ctx, session)
				return err
			})
			if err != nil || lane.Place.Channel != s.ch.name || lane.Place.Bot != s.ch.bot {
				continue
			}
			s.tellServer(ctx, n, lane, i)
		}
	}
}

// tellServer tells one of them, in one commit.
func (s *service) tellServer(ctx context.Context, n mcp.Notice, lane bot.Lane, i int) {
	w, now := s.core.words(), s.core.now()
	change := &bot.Change{}
	if f, ok := news.About(lane.Session, now, n); ok {
		change.Facts = []bot.Fact{f}
	}
	text := n.Text
	switch n.Kind {
	case mcp.Away:
		text = w.ServerAway("", n.Server)
	case mcp.Back:
		text = w.ServerBack("", n.Server, len(s.core.servers.Tools(n.Server)))
	case mcp.Withdrawn:
		text = w.ServerWaits("", n.Server, n.Tools, n.Fresh, n.Held)
	case mcp.Changed: // the model is told; people need not know
		text = ""
	}
	if text != "" {
		key := fmt.Sprintf("mcp/%s/%s/%d/%d", n.Server, n.Kind, now.UnixNano(), i)
		change.Send = []bot.Row{{Session: lane.Session, Place: lane.Place, Purpose: bot.Notice, Key: key, Content: bot.Content{Text: text}}}
	}
	if err := s.core.keeper().Keep(ctx, change); err != nil {
		s.log.Error().Err(err).Str("server", n.Server).Str("chat", lane.Place.Chat).Msg("news of a server not kept")
		return
	}
	s.core.news.Note(lane.Session)
	s.outbox.Wake(lane.Place)
}

// serverCounts are the MCP servers by state, for the metrics.
func (c *Core) serverCounts() map[string]float64 {
	counts := map[string]float64{}
	for state, n := range c.servers.Counts() {
		counts[string(state)] = float64(n)
	}
	return counts
}

// connected says for /status how many servers there are.
func (c *Core) connected() texts.Connected {
	counts := c.servers.Counts()
	all := 0
	for _, n := range counts {
		all += n
	}
	return texts.Connected{Connected: counts[mcp.Connected], All: all}
}
