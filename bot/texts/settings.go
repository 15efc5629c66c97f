package texts

import (
	"fmt"
	"strings"
)

// settingsBook is what /settings says.
type settingsBook struct {
	Head, HeadGroup              string
	Language                     string
	Zone, Model                  string // name
	Hears, Deaf                  string
	Busy                         map[string]string // what becomes of a text during a turn, by the value of telegram.busy
	Foot                         string
	ModelButton, ZoneButton, Not string
}

// Settings is how the bot is set for a person or a group.
type Settings struct {
	Group       bool
	Zone, Model string
	Hears       bool   // voice messages are written down
	Busy        string // telegram.busy
}

// Settings answers /settings.
func (w Words) Settings(language string, s Settings) string {
	b := &w.in(language).Settings
	head, hears := b.Head, b.Deaf
	if s.Group {
		head = b.HeadGroup
	}
	if s.Hears {
		hears = b.Hears
	}
	lines := []string{head, b.Language, fmt.Sprintf(b.Zone, named(s.Zone)), fmt.Sprintf(b.Model, named(s.Model)), hears}
	if busy := b.Busy[s.Busy]; busy != "" {
		lines = append(lines, busy)
	}
	return strings.Join(append(lines, "", b.Foot), "\n")
}

// SettingButton labels the button that gives a command which changes a setting.
func (w Words) SettingButton(language, command string) string {
	b := &w.in(language).Settings
	if command == "model" {
		return b.ModelButton
	}
	return b.ZoneButton
}

// SettingNot says that somebody cannot change a setting here.
func (w Words) SettingNot(language string) string { return w.in(language).Settings.Not }
