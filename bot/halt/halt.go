// Package halt is the Stop button below a growing answer, where the channel has no such button of its own: in
// groups.
package halt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/approval"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Prefix begins the data of a button: PREFIX:TURN, where TURN is a hash of the turn's id.
const Prefix = "s1"

// hashed is how much of the hash of a turn's id a button contains, in bytes.
const hashed = 12

// Store is where the turns in progress are found.
type Store interface {
	// Busy lists the lanes of a chat that have a turn.
	Busy(ctx context.Context, chat string) ([]bot.Lane, error)
}

// Button makes the buttons and handles their presses. It keeps no state: what is to be stopped is stored, so that the
// process that runs the turn finds it, whichever process handles the press. Safe for concurrent use.
type Button struct {
	Store Store
	Words texts.Words
	// Rights returns who may approve in a place; nil = only who asked and admins may stop.
	Rights func(ctx context.Context, place bot.Place, tool string) (approval.Rights, error)
}

// Feature returns the presses of the button.
func (d Button) Feature() feature.Feature {
	return feature.Feature{Name: "stop button", Buttons: []feature.Button{{Prefix: Prefix, Presser: d}}}
}

// Buttons are those below the growing answer of a turn.
func (d Button) Buttons(language, turn string) [][]bot.Button {
	return [][]bot.Button{{{Label: d.Words.StopButton(language), Data: buttonData(turn)}}}
}

func buttonData(turn string) string {
	sum := sha256.Sum256([]byte(turn))
	return Prefix + ":" + hex.EncodeToString(sum[:hashed])
}

// Press implements turn.Presser: it stops the turn of the button, unless that has ended or the person may not. It has
// the effect of the Stop button of a draft: what waits behind the turn is kept.
func (d Button) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	lanes, err := d.Store.Busy(ctx, msg.Place.ChatKey())
	if err != nil {
		return turn.Effect{}, err
	}
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	answer := func(text string, alert bool) turn.Effect {
		toast.Content, toast.Alert = bot.Content{Text: text, Language: msg.Language}, alert
		return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}
	}
	i := slices.IndexFunc(lanes, func(l bot.Lane) bool {
		return strings.HasPrefix(msg.Data, Prefix+":") && buttonData(l.Turn) == msg.Data
	})
	if i < 0 {
		return answer(d.Words.StopOver(msg.Language), false), nil
	}
	may, err := d.mayStop(ctx, call, &lanes[i])
	switch {
	case err != nil:
		return turn.Effect{}, err
	case !may:
		return answer(d.Words.StopNotYours(msg.Language), true), nil
	}
	e := answer(d.Words.StopToast(msg.Language), false)
	e.Change.Lanes = []bot.LaneUpdate{{Session: lanes[i].Session, Stop: &lanes[i].Turn}}
	e.Stop = []bot.SessionKey{lanes[i].Session}
	return e, nil
}

// mayStop reports whether the person may stop a turn: who asked, approvers and admins may.
func (d Button) mayStop(ctx context.Context, call *turn.Call, lane *bot.Lane) (bool, error) {
	caller := call.Message.Caller
	switch {
	case caller == "" || call.Message.FromBot:
		return false, nil
	case call.Admin || caller == lane.Caller:
		return true, nil
	case d.Rights == nil:
		return false, nil
	}
	rights, err := d.Rights(ctx, lane.Place, "")
	return slices.Contains(rights.Approvers, caller) || slices.Contains(rights.Admins, caller), err
}

var _ turn.Presser = Button{}
