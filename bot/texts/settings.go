package texts

import (
	"fmt"
	"strings"
	"time"
)

// SettingName names a setting. Those that a command shows and changes have its name.
type SettingName string

// The settings, in the order in which they are shown.
const (
	SettingLanguage SettingName = "language"
	SettingClock    SettingName = "clock"
	SettingZone     SettingName = "timezone"
	SettingModel    SettingName = "model"
	SettingVoice    SettingName = "voice"
	SettingBusy     SettingName = "busy"
	SettingReceipts SettingName = "receipts"
	SettingSpeech   SettingName = "speech"
	SettingContext  SettingName = "context"
	// SettingQuestions is where the people who may approve are asked about what a group wants.
	SettingQuestions SettingName = "questions"
	// SettingTalk is whether the talk of groups that is kept has what a person says.
	SettingTalk SettingName = "talk"
)

// ChosenSettings lists the settings that people choose by buttons of /settings, and not by a command.
func ChosenSettings() []SettingName {
	return []SettingName{
		SettingLanguage, SettingClock, SettingVoice, SettingBusy, SettingReceipts, SettingSpeech, SettingContext,
		SettingQuestions, SettingTalk,
	}
}

// Whether recordings are written down.
const (
	VoiceOn  = "on"
	VoiceOff = "off"
)

// Where questions about calls of a group are shown.
const (
	QuestionsHere    = "here"
	QuestionsPrivate = "private" // in the private chats of those who may approve
)

// Which receipts answers have for which tools ran.
const (
	ReceiptsOff    = "off"
	ReceiptsShort  = "short"  // a button below the answer
	ReceiptsAlways = "always" // the receipt follows the answer
)

// Whether the talk of a group is kept for the turns that come after it.
const (
	ContextOff = "off"
	ContextOn  = "on"
)

// Whether the talk of groups that is kept has what a person says.
const (
	TalkKept  = "kept"
	TalkNever = "never"
)

// settingsBook is what /settings says.
type settingsBook struct {
	Head, HeadGroup string
	Self            string // the name of the language, in it
	Deaf            string // recordings cannot be written down
	FootOwn         string // what holds in groups too
	FootEach        string // what admins choose, what each person chooses
	FootTopic       string // what admins choose for the topic, for the whole group, what each person chooses
	// Asks is above the values of a setting, and Buttons is its name: in the list, and on the button that shows them.
	Asks, Buttons map[string]string
	// Values are what the settings can be, by SETTING_VALUE; where there is none, SETTING_auto. With _own
	// behind it, where the reader runs the service.
	Values       map[string]string
	Back, Done   string
	Not, NotHere string
}

// Settings is how the bot is set for a person or a group.
type Settings struct {
	Group       bool
	Zone, Model string
	Heard       bool      // recordings can be written down
	Speaks      bool      // answers can be spoken
	Context     bool      // the talk of groups can be kept
	Now         time.Time // as an example of the clock
	Values      map[SettingName]string
	More        []string // lines of other features
	// Shared and Topic name what the admins of a group choose there for all of it, and for one topic; Own what each person
	// chooses in private, and what holds in groups too.
	Shared, Topic, Own []string
}

// Settings answers /settings. A group has no language, clock or voice: these are each person's own.
func (w Words) Settings(language string, s Settings) string {
	b := &w.in(language).Settings
	line := func(setting SettingName, value string) string { return b.Buttons[string(setting)] + ": " + value }
	chosen := func(setting SettingName) string {
		return line(setting, w.SettingValue(language, setting, s.Values[setting]))
	}
	now, _ := w.local(s.Now)
	zone, model := line(SettingZone, named(zoneName(s.Zone, now))), line(SettingModel, named(s.Model))
	shared := chosen(SettingReceipts)
	if s.Speaks {
		shared += "\n" + chosen(SettingSpeech)
	}
	if s.Group {
		if s.Context {
			shared += "\n" + chosen(SettingContext)
		}
		lines := append([]string{b.HeadGroup, zone, model, shared, chosen(SettingQuestions)}, s.More...)
		shared, own := strings.Join(s.Shared, ", "), strings.Join(s.Own, ", ")
		foot := fmt.Sprintf(b.FootEach, shared, own)
		if len(s.Topic) > 0 {
			foot = fmt.Sprintf(b.FootTopic, strings.Join(s.Topic, ", "), shared, own)
		}
		return strings.Join(append(lines, "", foot), "\n")
	}
	voice := b.Deaf
	if s.Heard {
		voice = chosen(SettingVoice)
	}
	lines := append([]string{
		b.Head, chosen(SettingLanguage), line(SettingClock, w.hour(language, now)), zone, model, voice,
		chosen(SettingBusy), shared,
	}, s.More...)
	if s.Context {
		lines = append(lines, chosen(SettingTalk))
	}
	if w.Owner { // nobody else is here
		return strings.Join(lines, "\n")
	}
	return strings.Join(append(lines, "", fmt.Sprintf(b.FootOwn, strings.Join(s.Own, ", "))), "\n")
}

// SettingButton labels the button of a setting.
func (w Words) SettingButton(language string, setting SettingName) string {
	return w.in(language).Settings.Buttons[string(setting)]
}

// SettingAsks is above the values that a setting can have.
func (w Words) SettingAsks(language string, setting SettingName) string {
	return w.in(language).Settings.Asks[string(setting)]
}

// SettingValue says one value of a setting.
func (w Words) SettingValue(language string, setting SettingName, value string) string {
	if setting == SettingLanguage && value != "" {
		return in(value).Settings.Self
	}
	if value == "" {
		value = "auto"
	}
	values, name := w.in(language).Settings.Values, string(setting)+"_"+value
	if own := values[name+"_own"]; w.Owner && own != "" {
		return own
	}
	return values[name]
}

// SettingBack labels the button that shows all settings again.
func (w Words) SettingBack(language string) string { return w.in(language).Settings.Back }

// SettingDone says that a choice is stored.
func (w Words) SettingDone(language string) string { return w.in(language).Settings.Done }

// SettingNot says that somebody cannot change a setting here; in a group, who can.
func (w Words) SettingNot(language string, group bool) string {
	if group {
		return w.in(language).Settings.NotHere
	}
	return w.in(language).Settings.Not
}
