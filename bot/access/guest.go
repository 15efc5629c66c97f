package access

import (
	"context"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/turn"
)

// admitGuest decides about a question in a chat that the bot is not in. Only people who are admitted are answered
// there, with the tools of a user, and nobody is an admin. A stranger is not told anything: everybody in any chat can
// mention the bot, and each answer is a message in that chat.
func (g *Guard) admitGuest(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	switch {
	case !g.opts.Guests:
		return turn.Verdict{Reason: "telegram.guest_mode is off"}, nil
	case msg.Caller == "" || msg.FromBot || msg.Kind != bot.Text:
		return turn.Verdict{Reason: "not a question of a person"}, nil
	}
	role, err := g.roleOf(ctx, msg)
	if err != nil {
		return turn.Verdict{}, err
	}
	if role == "" {
		return turn.Verdict{Reason: "person not in telegram.allowed_users"}, nil
	}
	return turn.Verdict{OK: true, Allowed: g.toolsOf(User)}, nil
}
