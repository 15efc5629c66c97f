package texts

import (
	"fmt"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/policy/redact"
)

// personaBook is what is said of personas, and of how people want to be answered.
type personaBook struct {
	Line, Button, None, Inherited string // in /settings
	Ask, AskGroup, AskTopic       string // above the personas to choose from
	Chosen                        string // who has just chosen
	Gone, NotThere                string
	Model                         string // the persona has a model of its own
	Status                        string
	Own                           ownBook
}

// ownBook is what is said of the instructions that somebody has given for the answers to them.
type ownBook struct {
	Line, Button, Set, None string
	Ask, Now                string
	Noted, Long, Remove     string
	Mask, Masked            string // in place of a credential, and that there was one
}

// PersonaLine is the line of /settings about the persona; "" = none.
func (w Words) PersonaLine(language, name string) string {
	b := &w.in(language).Personas
	if name == "" {
		return fmt.Sprintf(b.Line, b.None)
	}
	return fmt.Sprintf(b.Line, named(name))
}

// PersonaButton labels the button of /settings that shows the personas.
func (w Words) PersonaButton(language string) string { return w.in(language).Personas.Button }

// PersonaCard is above the personas to choose from; by is who has just chosen, "" = nobody.
func (w Words) PersonaCard(language, by string, topic, group bool) string {
	b := &w.in(language).Personas
	text := b.Ask
	switch {
	case topic:
		text = b.AskTopic
	case group:
		text = b.AskGroup
	}
	if by != "" {
		text += "\n" + fmt.Sprintf(b.Chosen, render.Cut(by, 64))
	}
	return text
}

// PersonaValue labels the button of a persona; "" = none, or in a topic that of its group. PersonaNobody is none there.
func (w Words) PersonaValue(language, name string, topic bool) string {
	b := &w.in(language).Personas
	switch {
	case name == "" && topic:
		return b.Inherited
	case name == "", name == PersonaNobody:
		return b.None
	default:
		return name
	}
}

// PersonaNobody is chosen in a topic that has no persona, although its group has one.
const PersonaNobody = "-"

// PersonaGone says once that the persona of a conversation is no longer configured.
func (w Words) PersonaGone(language, name string) string {
	return fmt.Sprintf(w.in(language).Personas.Gone, named(name))
}

// PersonaNotThere says that the persona of a button is not configured.
func (w Words) PersonaNotThere(language string) string { return w.in(language).Personas.NotThere }

// ModelOfPersona says that the model of a conversation is that of its persona.
func (w Words) ModelOfPersona(language, model, persona string) string {
	return fmt.Sprintf(w.in(language).Personas.Model, model, persona)
}

// OwnLine is the line of /settings about the instructions of its reader.
func (w Words) OwnLine(language string, set bool) string {
	b := &w.in(language).Personas.Own
	if set {
		return fmt.Sprintf(b.Line, b.Set)
	}
	return fmt.Sprintf(b.Line, b.None)
}

// OwnButton labels the button of /settings that shows the instructions of its reader.
func (w Words) OwnButton(language string) string { return w.in(language).Personas.Own.Button }

// OwnAsk shows the instructions of the reader, "" = none, and asks for others: at most so many characters, in the next
// message within some time.
func (w Words) OwnAsk(language, now string, most int, within time.Duration) string {
	b := &w.in(language).Personas.Own
	text := fmt.Sprintf(b.Ask, most, w.Duration(language, within))
	if now != "" {
		text = fmt.Sprintf(b.Now, strings.ReplaceAll(now, redact.Mask, b.Mask)) + "\n\n" + text
	}
	return text
}

// OwnNoted repeats the instructions that were taken.
func (w Words) OwnNoted(language, text string) string {
	b := &w.in(language).Personas.Own
	shown := strings.ReplaceAll(text, redact.Mask, b.Mask)
	if shown == text {
		return fmt.Sprintf(b.Noted, text)
	}
	return fmt.Sprintf(b.Noted, shown) + "\n\n" + b.Masked
}

// OwnLong says that the instructions are too long.
func (w Words) OwnLong(language string, most int) string {
	return fmt.Sprintf(w.in(language).Personas.Own.Long, most)
}

// OwnRemove labels the button that removes the instructions.
func (w Words) OwnRemove(language string) string { return w.in(language).Personas.Own.Remove }
