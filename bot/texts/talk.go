package texts

import (
	"fmt"
	"time"
)

// talkBook is what a group is told about its talk being kept.
type talkBook struct {
	On  string // who, messages, how long
	Off string // who
	// Hidden says that the channel shows the bot too little of it.
	Hidden string
}

// Kept says how much of the talk of a group is kept.
type Kept struct {
	Messages int
	For      time.Duration
	Hidden   bool // the bot is shown what is meant for it alone, unless it is an admin of the group
}

// TalkOn tells a group that its talk is kept from now on, and who wants it.
func (w Words) TalkOn(language, who string, kept Kept) string {
	b := &w.in(language).Talk
	text := fmt.Sprintf(b.On, named(who), kept.Messages, w.Duration(language, kept.For))
	if kept.Hidden {
		text += "\n\n" + b.Hidden
	}
	return text
}

// TalkOff tells a group that its talk is no longer kept, and who wants that.
func (w Words) TalkOff(language, who string) string {
	return fmt.Sprintf(w.in(language).Talk.Off, named(who))
}
