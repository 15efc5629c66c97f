// Package preference keeps what people choose in /settings: language, clock, whether voice messages are written down,
// what becomes of messages while the bot works, receipts, which answers are spoken, whether what they say in groups is
// kept, and in their own words how they want to be answered. In a group, admins choose whether there are receipts, what
// is spoken and whether its talk is kept; everything else is each person's own there too.
package preference

import (
	"context"
	"slices"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

const (
	// bucket holds the choices: by caller id, or by the chat of a group, and the name of the setting behind a slash.
	bucket = "preference"
	// revisions holds one value, which changes with each choice: other processes read it instead of all choices.
	revisions = "preference_revision"
)

// Deps are the dependencies of Preferences. All but Audit are required.
type Deps struct {
	Store facts.Store
	Words texts.Words
	Now   func() time.Time
	// Redact removes credentials from what people write.
	Redact func(text string) string
	Audit  turn.Audit
}

// Preferences knows what was chosen. It is safe for concurrent use and starts no goroutines.
type Preferences struct {
	deps   Deps
	chosen *facts.Followed[map[string]string] // value by key
	own    ownChanges
}

// New returns Preferences. Nothing is chosen before the first Follow.
func New(deps Deps) *Preferences {
	return &Preferences{
		deps: deps,
		chosen: facts.NewFollowed(deps.Store, bucket, revisions, deps.Now, func(list []bot.Fact) map[string]string {
			chosen := make(map[string]string, len(list))
			for _, fact := range list {
				chosen[fact.Key] = fact.Value
			}
			return chosen
		}),
	}
}

// Follow reads what any process has stored since the last call.
func (p *Preferences) Follow(ctx context.Context) error { return p.chosen.Follow(ctx) }

// of returns what a person or a group has chosen; "" = nothing, or something that this version does not know. It reads
// nothing from the store.
func (p *Preferences) of(owner string, setting texts.SettingName) string {
	value := p.chosen.Value()[factKey(owner, setting)]
	if !slices.Contains(p.valuesOf(setting), value) {
		return ""
	}
	return value
}

func factKey(owner string, setting texts.SettingName) string { return owner + "/" + string(setting) }

// valuesOf returns what a setting can be; the first is what it is where nothing was chosen, "" = what is told of the
// person, or what the operator has set.
func (p *Preferences) valuesOf(setting texts.SettingName) []string {
	switch setting {
	case texts.SettingLanguage:
		return append([]string{""}, p.deps.Words.Languages()...)
	case texts.SettingClock:
		return []string{string(texts.ClockAuto), string(texts.ClockTwelve), string(texts.ClockFull)}
	case texts.SettingVoice:
		return []string{texts.VoiceOn, texts.VoiceOff}
	case texts.SettingBusy:
		return []string{"queue", "steer", "interrupt"}
	case texts.SettingContext:
		return []string{texts.ContextOff, texts.ContextOn}
	case texts.SettingTalk:
		return []string{texts.TalkKept, texts.TalkNever}
	case texts.SettingReceipts:
		return []string{texts.ReceiptsShort, texts.ReceiptsAlways, texts.ReceiptsOff}
	case texts.SettingQuestions:
		return []string{texts.QuestionsHere, texts.QuestionsPrivate}
	case texts.SettingSpeech:
		return []string{texts.SpeechSpoken, texts.SpeechAlways, texts.SpeechAsked}
	default:
		return nil
	}
}

// Language returns the language that a person has chosen, or the one that their client tells.
func (p *Preferences) Language(caller, told string) string {
	if chosen := p.of(caller, texts.SettingLanguage); chosen != "" {
		return chosen
	}
	return told
}

// Clock returns the clock of the readers of a place: in a private chat, that of the person. In a group it is that of
// the language of whom a text is for.
func (p *Preferences) Clock(place bot.Place) texts.Clock {
	if place.Group || !place.Ordinary() {
		return texts.ClockAuto
	}
	return texts.Clock(p.of(place.Channel+":"+place.Chat, texts.SettingClock))
}

// Hears reports whether what a person says in recordings is to be written down.
func (p *Preferences) Hears(caller string) bool {
	return p.of(caller, texts.SettingVoice) != texts.VoiceOff
}

// Busy returns what becomes of a text of a person that arrives during their turn; "" = as the operator has set it.
func (p *Preferences) Busy(caller string) string { return p.of(caller, texts.SettingBusy) }

// Receipts returns which receipts the answers to a person have in a place.
func (p *Preferences) Receipts(place bot.Place, caller string) string {
	if chosen := p.of(ownerOf(place, caller, texts.SettingReceipts), texts.SettingReceipts); chosen != "" {
		return chosen
	}
	return texts.ReceiptsShort
}

// Hides reports whether the people of a group do not see the questions about its calls.
func (p *Preferences) Hides(place bot.Place) bool {
	return place.Group && p.of(place.ChatKey(), texts.SettingQuestions) == texts.QuestionsPrivate
}

// Speech returns which answers to a person are spoken in a place.
func (p *Preferences) Speech(place bot.Place, caller string) string {
	if chosen := p.of(ownerOf(place, caller, texts.SettingSpeech), texts.SettingSpeech); chosen != "" {
		return chosen
	}
	return texts.SpeechSpoken
}

// Context reports whether an admin wants the talk of a group to be kept, or that of a topic, which has a choice of its
// own.
func (p *Preferences) Context(place bot.Place) bool {
	return place.Group && p.of(ownerOf(place, "", texts.SettingContext), texts.SettingContext) == texts.ContextOn
}

// LeavesOut reports whether a person wants none of what they say in groups to be kept.
func (p *Preferences) LeavesOut(caller string) bool {
	return p.of(caller, texts.SettingTalk) == texts.TalkNever
}

// ownerOf returns whose a setting is: a group has the receipts and the spoken answers of the group.
func ownerOf(place bot.Place, caller string, setting texts.SettingName) string {
	switch {
	case place.Group && slices.Contains([]texts.SettingName{
		texts.SettingReceipts, texts.SettingSpeech, texts.SettingQuestions,
	}, setting), setting == texts.SettingContext && place.Thread == "":
		return place.ChatKey()
	case setting == texts.SettingContext:
		return place.ChatKey() + "/" + place.Thread
	}
	return caller
}

// Forget makes the next Follow read everything again, because a group has a new id.
func (p *Preferences) Forget() { p.chosen.Forget() }

// storeChoice stores a choice. What is chosen anyway is not stored: it follows the operator's configuration.
func (p *Preferences) storeChoice(owner string, setting texts.SettingName, value, standard string) turn.Effect {
	if value == standard {
		value = ""
	}
	return turn.Effect{
		Change: bot.Change{Facts: []bot.Fact{
			{Bucket: bucket, Key: factKey(owner, setting), Value: value}, p.chosen.Revised(),
		}},
		Then: p.followed,
	}
}
