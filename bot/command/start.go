package command

import (
	"context"
	"regexp"
	"strings"

	"github.com/zephbot/zephbot/bot/turn"
)

// payload is what a link t.me/BOT?start=PAYLOAD can bring (Bot API, deep linking). Anybody can make such a link,
// and the person who follows it sends it with one tap: it shows something and changes nothing.
var payload = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// answerStart answers /start, with what a link asks for.
func (t *Table) answerStart(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, t.deps.Words
	wanted := strings.TrimSpace(msg.Args)
	if payload.MatchString(wanted) && t.commands[strings.ToLower(wanted)].Shows {
		shown, show := *call, *msg
		show.Command, show.Args = strings.ToLower(wanted), ""
		shown.Message = &show
		return t.Run(ctx, &shown)
	}
	if t.deps.Welcome != nil {
		if e, ok, err := t.deps.Welcome(ctx, call); ok || err != nil {
			return e, err
		}
	}
	greeting := w.Start(msg.Language, msg.Name)
	if wanted == "" {
		return call.ReplyText(greeting), nil
	}
	return call.ReplyText(greeting + "\n\n" + w.StartUnknown(msg.Language)), nil
}
