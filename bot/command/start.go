package command

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot/turn"
)

var (
	// payload is what a link t.me/BOT?start=PAYLOAD can bring (Bot API, deep linking). Anybody can make such a link, and
	// whoever follows it sends it with one tap: it shows something and changes nothing.
	payload = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	// code is the form of the first admin's code: that of the service, or the shorter one of setup.
	code = regexp.MustCompile(`^(?i)(?:[A-Z2-7]{12}|[A-Z2-7]{26})$`)
)

// linked are the commands that a link may name: those that only show something.
var linked = []string{"help", "status", "quota", "tools", "model", "why"}

// start answers /start, with what a link asks for.
func (t *Table) start(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, t.deps.Words
	wanted := strings.TrimSpace(msg.Args)
	greeting := w.Start(msg.Language, msg.Name)
	switch {
	case wanted == "":
		return t.say(call, greeting), nil
	case call.Admin && code.MatchString(wanted): // the one that has made them admin
		return t.say(call, greeting+"\n\n"+w.StartAdmin(msg.Language)), nil
	case payload.MatchString(wanted) && slices.Contains(linked, strings.ToLower(wanted)):
		shown, show := *call, *msg
		show.Command, show.Args = strings.ToLower(wanted), ""
		shown.Message = &show
		return t.Run(ctx, &shown)
	default:
		return t.say(call, greeting+"\n\n"+w.StartUnknown(msg.Language)), nil
	}
}
