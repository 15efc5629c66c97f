package command

import (
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// SettingsPrefix begins the data of the buttons of /settings.
const SettingsPrefix = "st"

// Settings answers /settings: how the bot is set for a person or a group, with a button for what they may change.
type Settings struct {
	Words texts.Words
	Model func(session bot.SessionKey) string
	// Zone returns the name of the time zone of the readers of a place.
	Zone func(msg *bot.Message) string
	// Chooses reports whether there are models to choose from.
	Chooses func() bool
	Hears   bool   // voice messages are written down
	Busy    string // what becomes of a text that arrives during a turn: telegram.busy
	// Run carries out the command in call.Message.Command.
	Run func(ctx context.Context, call *turn.Call) (turn.Effect, error)
}

// Feature returns /settings.
func (s Settings) Feature() feature.Feature {
	return feature.Feature{
		Name:     "settings",
		Commands: []feature.Command{{Name: "settings", Shows: true, Run: s.Command}},
		Buttons:  []feature.Button{{Prefix: SettingsPrefix, Presser: s}},
	}
}

// changeable lists the commands that change a setting and that the caller may give here: the model of a group is chosen
// by admins, and a group has the time zone of the bot.
func (s Settings) changeable(call *turn.Call) []string {
	var list []string
	group := call.Message.Place.Group
	if s.Chooses() && (call.Admin || !group) {
		list = append(list, "model")
	}
	if !group {
		list = append(list, "timezone")
	}
	return list
}

// Command answers /settings.
func (s Settings) Command(_ context.Context, call *turn.Call) (turn.Effect, error) {
	msg := call.Message
	content := bot.Content{Text: s.Words.Settings(msg.Language, texts.Settings{
		Group: msg.Place.Group, Zone: s.Zone(msg), Model: s.Model(call.Session), Hears: s.Hears, Busy: s.Busy,
	})}
	var row []bot.Button
	for _, name := range s.changeable(call) {
		row = append(row, bot.Button{Label: s.Words.SettingButton(msg.Language, name), Data: SettingsPrefix + ":" + name})
	}
	if row != nil {
		content.Buttons = [][]bot.Button{row}
	}
	return call.Reply(content), nil
}

// Press implements turn.Presser: a button gives the command that shows and changes its setting.
func (s Settings) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	msg := *call.Message
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	msg.Command, msg.Args = strings.TrimPrefix(msg.Data, SettingsPrefix+":"), ""
	if !slices.Contains(s.changeable(call), msg.Command) {
		toast.Alert, toast.Content.Text = true, s.Words.SettingNot(msg.Language)
		return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
	}
	given := *call
	given.Message = &msg
	e, err := s.Run(ctx, &given)
	e.Change.Send = append([]bot.Row{toast}, e.Change.Send...)
	return e, err
}

var _ turn.Presser = Settings{}
