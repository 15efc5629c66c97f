package choice

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/agent/prompt"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/preference"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/reason"
	"github.com/zephbot/zephbot/tools"
)

// PersonaPrefix begins the data of the buttons of personas: "pe:" shows them, "pe:<id>" chooses one.
const PersonaPrefix = "pe"

const (
	personaBucket         = "persona" // holds the names of chosen personas (chosen)
	personaRevisionBucket = "persona_revision"
	// missed precedes the name of a persona that is no longer configured, once that was said.
	missed = "!"
	// recordTool is what the audit log calls the choice of a persona; "" is none, or in a topic that of the group.
	recordTool = "persona_set"
)

// Persona is a way to answer: what the operator offers to chats and topics.
type Persona struct {
	Name         string
	Instructions string // for the model, after those of the operator and of the chat
	Model        Model  // that answers; zero = as it is without the persona
	// Tools that it has, of those that the chat and its people may use; nil = all of them.
	Tools []string
	Voice string // of spoken answers; "" = as it is without the persona
}

// Has reports whether the persona has a tool.
func (p *Persona) Has(tool string) bool { return p.Tools == nil || slices.Contains(p.Tools, tool) }

// PersonaDeps are the dependencies of Personas. All but Audit are required.
type PersonaDeps struct {
	Store   facts.Store
	Offered []Persona
	Words   texts.Words
	Now     func() time.Time
	Audit   turn.Audit
}

// Personas knows which personas were chosen. It is safe for concurrent use and starts no goroutines.
type Personas struct {
	*chosen
	deps PersonaDeps
}

// NewPersonas returns Personas. Nothing is chosen before the first Follow.
func NewPersonas(deps PersonaDeps) *Personas {
	return &Personas{chosen: newChosen(deps.Store, personaBucket, personaRevisionBucket, deps.Now), deps: deps}
}

// Of returns the persona of a conversation; false = it has none, or one that is no longer configured. It reads nothing
// from the store.
func (p *Personas) Of(session bot.SessionKey) (Persona, bool) {
	name, _ := p.of(session)
	return p.named(strings.TrimPrefix(name, missed))
}

func (p *Personas) named(name string) (Persona, bool) {
	i := slices.IndexFunc(p.deps.Offered, func(o Persona) bool { return o.Name == name })
	if i < 0 {
		return Persona{}, false
	}
	return p.deps.Offered[i], true
}

// Missing adds to the manner of a turn what is said, and stored with it, if its conversation has chosen a persona that
// is no longer configured. It is said once for each choice.
func (p *Personas) Missing(ctx context.Context, session bot.SessionKey, language string, manner *turn.Manner) error {
	if name, _ := p.unsaid(session); name == "" {
		return nil
	}
	if err := p.Follow(ctx); err != nil { // a turn of a moment ago may have said it
		return err
	}
	name, key := p.unsaid(session)
	if name == "" {
		return nil
	}
	manner.Notice = &turn.Notice{
		Text: p.deps.Words.PersonaGone(language, name), Key: "persona/" + key + "/" + name,
	}
	manner.Facts = []bot.Fact{{Bucket: personaBucket, Key: key, Value: missed + name}, p.stored.Revised()}
	return nil
}

// unsaid returns the name of a persona that is missing, and was not said to be; "" = none.
func (p *Personas) unsaid(session bot.SessionKey) (name, key string) {
	name, key = p.of(session)
	if _, there := p.named(name); there || name == texts.PersonaNobody || strings.HasPrefix(name, missed) {
		return "", ""
	}
	return name, key
}

// Manner returns how the persona of a conversation answers; the zero value if it has none.
func (p *Personas) Manner(session bot.SessionKey) turn.Manner {
	persona, ok := p.Of(session)
	if !ok {
		return turn.Manner{}
	}
	m := turn.Manner{Persona: prompt.Persona{Name: persona.Name, Instructions: persona.Instructions}}
	if persona.Tools != nil {
		m.Narrow = func(o *tools.Overlay) *tools.Overlay {
			return o.Narrow(persona.Has, func(tool string) reason.Reason {
				return reason.New(reason.ToolNotOfPersona, tool, persona.Name)
			})
		}
	}
	return m
}

// Feature returns what follows and answers the choices.
func (p *Personas) Feature() feature.Feature {
	return feature.Feature{
		Name:    "personas",
		Buttons: []feature.Button{{Prefix: PersonaPrefix, Presser: p}},
		Follow:  p.Follow,
		Moved:   p.Forget,
	}
}

// Setting returns the part of /settings about the persona.
func (p *Personas) Setting() preference.Section {
	return preference.Section{
		Topics: true,
		Line: func(call *turn.Call) string {
			if len(p.deps.Offered) == 0 {
				return ""
			}
			return p.deps.Words.PersonaLine(call.Message.Language, p.shownName(call))
		},
		Button: func(call *turn.Call) (bot.Button, bool) {
			label := p.deps.Words.PersonaButton(call.Message.Language)
			return bot.Button{Label: label, Data: PersonaPrefix + ":"}, p.mayChoose(call)
		},
	}
}

// shownName returns the name of the persona that a conversation has; "" = none.
func (p *Personas) shownName(call *turn.Call) string {
	persona, _ := p.Of(call.Session)
	return persona.Name
}

func (p *Personas) mayChoose(call *turn.Call) bool {
	return len(p.deps.Offered) > 0 && call.Message.Caller != "" && mayChoose(call)
}

// Press implements turn.Presser.
func (p *Personas) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if err := p.Follow(ctx); err != nil { // another process may have stored something a moment ago
		return turn.Effect{}, err
	}
	msg, w := call.Message, p.deps.Words
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	shows := msg.Data == PersonaPrefix+":"
	value, known := p.pressedValue(call)
	switch {
	case !p.mayChoose(call):
		toast.Alert, toast.Content.Text = true, w.SettingNot(msg.Language, msg.Place.Group)
	case !shows && !known:
		toast.Alert, toast.Content.Text = true, w.PersonaNotThere(msg.Language)
	case shows:
		value, _ = p.valueHere(call)
		return call.ShowCard(toast, p.card(call, value, "")), nil
	default:
		e := p.deps.Audit.Record(p.store(call, value), call, recordTool, map[string]string{
			"persona": value, "for": choiceKey(call),
		})
		toast.Content.Text = w.SettingDone(msg.Language)
		shown := p.card(call, value, msg.Signature())
		e.Change.Send = call.ShowCard(toast, shown).Change.Send
		return e, nil
	}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
}

// values lists what can be chosen here: "" is none, or in a topic the persona of the group.
func (p *Personas) values(call *turn.Call) []string {
	values := []string{""}
	if inTopic(call) {
		values = append(values, texts.PersonaNobody)
	}
	for i := range p.deps.Offered {
		values = append(values, p.deps.Offered[i].Name)
	}
	return values
}

// pressedValue returns the choice that a button stands for.
func (p *Personas) pressedValue(call *turn.Call) (value string, ok bool) {
	for _, value := range p.values(call) {
		if call.Message.Data == personaData(value) {
			return value, true
		}
	}
	return "", false
}

// valueHere returns what was chosen for exactly this place.
func (p *Personas) valueHere(call *turn.Call) (value string, ok bool) {
	value, key := p.of(call.Session)
	if key != choiceKey(call) {
		return "", false
	}
	return strings.TrimPrefix(value, missed), true
}

// card shows the personas, with a button for each; now is the choice of this place, by is who has just chosen it.
func (p *Personas) card(call *turn.Call, now, by string) bot.Content {
	lang, w := call.Message.Language, p.deps.Words
	content := bot.Content{Language: lang, Text: w.PersonaCard(lang, by, inTopic(call), call.Message.Place.Group)}
	content.Entities = render.Inert(content.Text)
	for _, value := range p.values(call) {
		b := bot.Button{Label: w.PersonaValue(lang, value, inTopic(call)), Data: personaData(value)}
		if value == now {
			b.Label = "✓ " + b.Label
		}
		content.Buttons = append(content.Buttons, []bot.Button{b})
	}
	back := bot.Button{Label: w.SettingBack(lang), Data: preference.Prefix + ":"}
	content.Buttons = append(content.Buttons, []bot.Button{back})
	return content
}

// personaData identifies a choice in a button, whose data has at most 64 bytes (Bot API).
func personaData(name string) string {
	sum := sha256.Sum256([]byte(name))
	return PersonaPrefix + ":" + base64.RawURLEncoding.EncodeToString(sum[:12])
}

var _ turn.Presser = (*Personas)(nil)
