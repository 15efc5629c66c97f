package preference

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

// Prefix begins the data of the buttons of /settings: PREFIX:SETTING shows a setting, PREFIX:SETTING:VALUE chooses,
// and PREFIX: goes back. Commands are settings too: model, timezone.
const Prefix = "st"

// Settings answers /settings: how the bot is set for a person or a group, with a button for what they may change.
type Settings struct {
	*Preferences
	Model func(session bot.SessionKey) string
	// Zone returns the name of the time zone of the readers of a place.
	Zone func(msg *bot.Message) string
	// Several reports whether there are models to choose from.
	Several func() bool
	Heard   bool    // something is set up that writes down speech
	Speaks  bool    // answers can be spoken
	Default string  // what becomes of a text that arrives during a turn, where nothing is chosen: telegram.busy
	Context Context // keeps the talk of groups; nil = nothing does
	// Sections are settings of other features, below those of this one.
	Sections []Section
	// Run carries out the command in call.Message.Command.
	Run func(ctx context.Context, call *turn.Call) (turn.Effect, error)
}

// Section is a setting that another feature shows and changes.
type Section struct {
	// Line returns its line for the conversation of a call; "" = it has none there.
	Line func(call *turn.Call) string
	// Button returns the button that shows what it can be, with the feature's own data; false = the caller may not
	// change it. A card that takes the place of the settings has a button with Prefix + ":" that goes back.
	Button func(call *turn.Call) (button bot.Button, may bool)
	Topics bool // each topic of a group has its own
}

// Context keeps what people of a group say to each other (bot/talk).
type Context interface {
	// Switch returns what goes with switching it on or off in a place: facts, and what the group is told.
	Switch(ctx context.Context, call *turn.Call, on bool) ([]bot.Fact, bot.Row, error)
	// Erased returns the facts that erase what is kept of a person, everywhere.
	Erased(ctx context.Context, caller string) ([]bot.Fact, error)
}

// Feature returns /settings.
func (s Settings) Feature() feature.Feature {
	return feature.Feature{
		Name:     "settings",
		Commands: []feature.Command{{Name: "settings", Shows: true, Run: s.Command}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: s}},
		Follow:   s.Follow,
		Moved:    s.Forget,
	}
}

// changeable lists what the caller may change here. In a group it is what all share, for admins: its model, its
// receipts and which answers are spoken. What is somebody's own is changed in private; a group has the time zone of the
// bot.
func (s Settings) changeable(call *turn.Call) []texts.SettingName {
	group := call.Message.Place.Group
	var list []texts.SettingName
	if !group {
		list = append(list, texts.SettingLanguage, texts.SettingClock, texts.SettingZone)
	}
	if s.Several() && (call.Admin || !group) {
		list = append(list, texts.SettingModel)
	}
	if !group && s.Heard {
		list = append(list, texts.SettingVoice)
	}
	if !group {
		list = append(list, texts.SettingBusy)
	}
	if call.Admin || !group {
		list = append(list, texts.SettingReceipts)
		if s.Speaks {
			list = append(list, texts.SettingSpeech)
		}
	}
	if call.Admin && group {
		list = append(list, texts.SettingQuestions)
	}
	switch {
	case s.Context == nil:
	case !group:
		list = append(list, texts.SettingTalk)
	case call.Admin:
		list = append(list, texts.SettingContext)
	}
	return list
}

// standardOf returns what a setting is where nothing is chosen.
func (s Settings) standardOf(setting texts.SettingName) string {
	if setting == texts.SettingBusy {
		return s.Default
	}
	return s.valuesOf(setting)[0]
}

// valueOf returns what a setting is for a person, or for the group.
func (s Settings) valueOf(msg *bot.Message, setting texts.SettingName) string {
	if value := s.of(ownerOf(msg.Place, msg.Caller, setting), setting); value != "" {
		return value
	}
	return s.standardOf(setting)
}

// Command answers /settings.
func (s Settings) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if err := s.Follow(ctx); err != nil { // another process may have stored something a moment ago
		return turn.Effect{}, err
	}
	return call.Reply(s.settingsCard(call, nil)), nil
}

// settingsCard shows all settings, with a button for each that the caller may change. just is what is being chosen: it
// is stored together with the card.
func (s Settings) settingsCard(call *turn.Call, just map[texts.SettingName]string) bot.Content {
	msg, w := call.Message, s.deps.Words.At(call.Message.Place)
	if clock, ok := just[texts.SettingClock]; ok {
		w.Clock = texts.Clock(clock)
	}
	shown := texts.Settings{
		Group: msg.Place.Group, Zone: s.Zone(msg), Model: s.Model(call.Session), Heard: s.Heard, Speaks: s.Speaks,
		Now: s.deps.Now(), Context: s.Context != nil,
		Values: map[texts.SettingName]string{},
	}
	for _, setting := range texts.ChosenSettings() {
		shown.Values[setting] = s.valueOf(msg, setting)
		if value, ok := just[setting]; ok {
			shown.Values[setting] = value
		}
	}
	var buttons []bot.Button
	for _, setting := range s.changeable(call) {
		buttons = append(buttons, bot.Button{
			Label: w.SettingButton(msg.Language, setting), Data: Prefix + ":" + string(setting),
		})
	}
	for _, section := range s.Sections {
		if line := section.Line(call); line != "" {
			shown.More = append(shown.More, line)
		}
		if button, may := section.Button(call); may {
			buttons = append(buttons, button)
		}
	}
	shown.Own = s.heldInGroups(call)
	if msg.Place.Group {
		shown.Shared, shown.Topic = s.chosenByAdmins(call)
	} else {
		set, known := just[settingOwn]
		if !known {
			set = s.chosen.Value()[factKey(msg.Caller, ownSet)]
		}
		shown.More = append(shown.More, w.OwnLine(msg.Language, set != ""))
		buttons = append(buttons, bot.Button{
			Label: w.OwnButton(msg.Language), Data: Prefix + ":" + string(settingOwn),
		})
	}
	content := bot.Content{Language: msg.Language, Text: w.Settings(msg.Language, shown)}
	content.Entities = render.Inert(content.Text)
	for _, button := range buttons {
		if last := len(content.Buttons) - 1; last >= 0 && len(content.Buttons[last]) < 2 {
			content.Buttons[last] = append(content.Buttons[last], button)
		} else {
			content.Buttons = append(content.Buttons, []bot.Button{button})
		}
	}
	return content
}

// chosenByAdmins names what the admins of a group choose there: for all of it and, in a topic, for that topic.
func (s Settings) chosenByAdmins(call *turn.Call) (shared, topic []string) {
	admin := *call
	admin.Admin = true
	name := func(label string, topics bool) {
		if topics && call.Message.Place.Thread != "" {
			topic = append(topic, label)
		} else {
			shared = append(shared, label)
		}
	}
	for _, setting := range s.changeable(&admin) {
		topics := setting == texts.SettingModel || setting == texts.SettingContext
		name(s.deps.Words.SettingButton(call.Message.Language, setting), topics)
	}
	for _, section := range s.Sections {
		if button, may := section.Button(&admin); may {
			name(button.Label, section.Topics)
		}
	}
	return shared, topic
}

// heldInGroups names what each person chooses in private and holds in groups too. A group has the clock of its language,
// the time zone of the bot, and its own model, receipts and spoken answers.
func (s Settings) heldInGroups(call *turn.Call) (own []string) {
	language := call.Message.Language
	msg := *call.Message
	msg.Place.Group = false
	private := *call
	private.Message = &msg
	for _, setting := range s.changeable(&private) {
		switch setting {
		case texts.SettingLanguage, texts.SettingVoice, texts.SettingBusy, texts.SettingTalk:
			own = append(own, s.deps.Words.SettingButton(language, setting))
		}
	}
	return append(own, s.deps.Words.OwnButton(language))
}

// valueCard shows what one setting can be, with a button for each value.
func (s Settings) valueCard(call *turn.Call, setting texts.SettingName) bot.Content {
	msg, w := call.Message, s.deps.Words.At(call.Message.Place)
	now := s.valueOf(msg, setting)
	content := bot.Content{Language: msg.Language, Text: w.SettingAsks(msg.Language, setting)}
	content.Entities = render.Inert(content.Text)
	for _, value := range s.valuesOf(setting) {
		button := bot.Button{
			Label: w.SettingValue(msg.Language, setting, value), Data: Prefix + ":" + string(setting) + ":" + value,
		}
		if value == now {
			button.Label = "✓ " + button.Label
		}
		content.Buttons = append(content.Buttons, []bot.Button{button})
	}
	content.Buttons = append(content.Buttons, []bot.Button{{Label: w.SettingBack(msg.Language), Data: Prefix + ":"}})
	return content
}

// Press implements turn.Presser. Who may not change a setting is told whose it is.
func (s Settings) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if err := s.Follow(ctx); err != nil { // another process may have stored something a moment ago
		return turn.Effect{}, err
	}
	msg := call.Message
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	name, value, chooses := strings.Cut(strings.TrimPrefix(msg.Data, Prefix+":"), ":")
	setting := texts.SettingName(name)
	if own := setting == settingOwn && !msg.Place.Group && msg.Caller != ""; own && !chooses {
		return s.askOwn(ctx, call, toast)
	} else if own && value == ownForgotten {
		return s.forgetOwn(call, toast), nil
	}
	e, err := s.pressSetting(ctx, call, toast, setting, value, chooses)
	return s.stopAsking(e, msg.Caller), err
}

// pressSetting handles the button of a setting, "" = of all: it shows what it can be, or chooses a value.
func (s Settings) pressSetting(
	ctx context.Context, call *turn.Call, toast bot.Row, setting texts.SettingName, value string, chooses bool,
) (turn.Effect, error) {
	msg, name := call.Message, string(setting)
	may := slices.Contains(s.changeable(call), setting)
	switch {
	case name != "" && (!may || msg.Caller == "" || chooses && !slices.Contains(s.valuesOf(setting), value)):
		toast.Alert, toast.Content.Text = true, s.deps.Words.SettingNot(msg.Language, msg.Place.Group)
		return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
	case setting == texts.SettingModel, setting == texts.SettingZone:
		return s.runCommand(ctx, call, name, toast)
	case name != "" && !chooses:
		return call.ShowCard(toast, s.valueCard(call, setting)), nil
	case name == "":
		return call.ShowCard(toast, s.settingsCard(call, nil)), nil
	}
	e := s.storeChoice(ownerOf(msg.Place, msg.Caller, setting), setting, value, s.standardOf(setting))
	shown := *msg
	if setting == texts.SettingLanguage {
		shown.Language = cmp.Or(value, msg.Told, msg.Language)
	}
	given := *call
	given.Message = &shown
	toast.Content.Text = s.deps.Words.SettingDone(shown.Language)
	card := s.settingsCard(&given, map[texts.SettingName]string{setting: value})
	e.Change.Send = given.ShowCard(toast, card).Change.Send
	return s.withTalk(ctx, call, e, setting, value)
}

// withTalk adds to the effect of a choice what becomes of the talk of groups that is kept.
func (s Settings) withTalk(
	ctx context.Context, call *turn.Call, e turn.Effect, setting texts.SettingName, value string,
) (turn.Effect, error) {
	switch {
	case setting == texts.SettingContext && value != s.valueOf(call.Message, setting):
		facts, told, err := s.Context.Switch(ctx, call, value == texts.ContextOn)
		if err != nil {
			return turn.Effect{}, err
		}
		e.Change.Facts, e.Change.Send = append(e.Change.Facts, facts...), append(e.Change.Send, told)
	case setting == texts.SettingTalk && value == texts.TalkNever:
		facts, err := s.Context.Erased(ctx, call.Message.Caller)
		if err != nil {
			return turn.Effect{}, err
		}
		e.Change.Facts = append(e.Change.Facts, facts...)
	}
	return e, nil
}

// runCommand gives the command that shows and changes a setting.
func (s Settings) runCommand(
	ctx context.Context, call *turn.Call, command string, toast bot.Row,
) (turn.Effect, error) {
	msg := *call.Message
	msg.Command, msg.Args = command, ""
	given := *call
	given.Message = &msg
	e, err := s.Run(ctx, &given)
	e.Change.Send = append([]bot.Row{toast}, e.Change.Send...)
	return e, err
}

var _ turn.Presser = Settings{}
