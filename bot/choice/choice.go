// Package choice lets people choose who answers a conversation: its model (/model) and its persona (/settings), what is
// offered, who may choose, and what was chosen.
package choice

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/policy/nearest"
)

// Prefix begins the data of the buttons: "m1:<model>", or "m1:" for the configured order.
const Prefix = "m1"

const (
	modelBucket         = "model" // holds the choices (chosen)
	modelRevisionBucket = "model_revision"
)

// Model is a provider that people can choose.
type Model struct {
	Name string // of the provider in the configuration
	ID   string // the vendor's name of the model; may be empty
}

// Deps are the dependencies of Choices. All but Lock and Personas are required.
type Deps struct {
	Store   facts.Store
	Offered []Model // the first one answers if nothing was chosen
	Words   texts.Words
	Now     func() time.Time
	Lock    bool // nobody may choose
	// Personas decide the model of a conversation whose persona has one; nil = there are none.
	Personas *Personas
}

// Choices knows what was chosen. It is safe for concurrent use and starts no goroutines.
type Choices struct {
	*chosen
	deps Deps
}

// New returns Choices. Nothing is chosen before the first Follow.
func New(deps Deps) *Choices {
	return &Choices{deps: deps, chosen: newChosen(deps.Store, modelBucket, modelRevisionBucket, deps.Now)}
}

// Of returns the provider that a conversation is answered by: that of its persona, or the one that was chosen; "" = the
// configured order. It reads nothing from the store. A provider that is no longer offered is ignored.
func (c *Choices) Of(session bot.SessionKey) string {
	if _, own := c.ofPersona(session); own.Name != "" {
		return own.Name
	}
	name, _ := c.of(session)
	if !c.offersModel(name) {
		return ""
	}
	return name
}

// ofPersona returns the persona of a conversation, if it has a model of its own, and that model.
func (c *Choices) ofPersona(session bot.SessionKey) (persona string, own Model) {
	if c.deps.Personas == nil {
		return "", Model{}
	}
	p, _ := c.deps.Personas.Of(session)
	if p.Model.Name == "" {
		return "", Model{}
	}
	return p.Name, p.Model
}

func (c *Choices) offersModel(name string) bool {
	return !c.deps.Lock && slices.ContainsFunc(c.deps.Offered, func(m Model) bool { return m.Name == name })
}

// Several reports whether people have models to choose from.
func (c *Choices) Several() bool { return !c.deps.Lock && len(c.deps.Offered) > 1 }

// mayChoose reports whether the caller may choose a model here. A persona that has one decides it.
func (c *Choices) mayChoose(call *turn.Call) bool {
	persona, _ := c.ofPersona(call.Session)
	return c.Several() && mayChoose(call) && persona == ""
}

// Command answers /model: it shows the models with a button for each, or chooses the model named.
func (c *Choices) Command(_ context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, c.deps.Words
	wanted := strings.TrimSpace(msg.Args)
	switch {
	case wanted == "" || !c.Several(): // what there is, also of a name that cannot be chosen
		return call.Reply(c.modelCard(call, c.Of(call.Session), "")), nil
	case !c.mayChoose(call):
		return call.ReplyAside(bot.Content{Text: c.whyNot(call)}), nil
	}
	name, ok := c.findModel(wanted)
	if !ok {
		near, _ := nearest.Nearest(wanted, c.modelNames())
		return call.ReplyAside(bot.Content{Text: w.ModelUnknown(msg.Language, near, c.modelNames())}), nil
	}
	e := c.storeChoice(call, name)
	e.Change.Send = append(e.Change.Send, call.Reply(c.modelCard(call, name, msg.Signature())).Change.Send...)
	return e, nil
}

// whyNot says why the caller may not choose a model.
func (c *Choices) whyNot(call *turn.Call) string {
	if persona, own := c.ofPersona(call.Session); persona != "" {
		return c.deps.Words.ModelOfPersona(call.Message.Language, modelLabel(own), persona)
	}
	return c.deps.Words.ModelAdmins(call.Message.Language)
}

// Feature returns /model.
func (c *Choices) Feature() feature.Feature {
	return feature.Feature{
		Name:     "model",
		Commands: []feature.Command{{Name: "model", Shows: true, Run: c.Command}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: c}},
		Follow:   c.Follow,
		Moved:    c.Forget,
	}
}

// findModel finds a provider by its name or the name of its model, ignoring case. If several have the same
// model, the first one is returned.
func (c *Choices) findModel(wanted string) (name string, ok bool) {
	for _, m := range c.deps.Offered {
		if strings.EqualFold(m.Name, wanted) {
			return m.Name, true
		}
	}
	for _, m := range c.deps.Offered {
		if strings.EqualFold(m.ID, wanted) {
			return m.Name, true
		}
	}
	return "", false
}

func (c *Choices) modelNames() []string {
	names := make([]string, len(c.deps.Offered))
	for i, m := range c.deps.Offered {
		names[i] = m.Name
	}
	return names
}

// Press implements turn.Presser.
func (c *Choices) Press(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if err := c.Follow(ctx); err != nil { // another process may have stored something a moment ago
		return turn.Effect{}, err
	}
	msg, w := call.Message, c.deps.Words
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	i := slices.IndexFunc(c.deps.Offered, func(m Model) bool { return msg.Data == buttonData(m.Name) })
	switch {
	case !c.mayChoose(call):
		toast.Alert, toast.Content.Text = true, c.whyNot(call)
	case i < 0:
		toast.Alert, toast.Content.Text = true, w.ModelGone(msg.Language)
	default:
		e := c.storeChoice(call, c.deps.Offered[i].Name)
		e.Change.Send = append(e.Change.Send, toast)
		if msg.Message != "" {
			card := c.modelCard(call, c.deps.Offered[i].Name, msg.Signature())
			e.Change.Send = append(e.Change.Send, bot.Row{
				Place: msg.Place, Purpose: bot.Record, Edit: msg.Message, Content: card,
			})
		}
		return e, nil
	}
	return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
}

// storeChoice stores a choice. Choosing the first model removes the choice outside of topics, so that the
// configured order applies again.
func (c *Choices) storeChoice(call *turn.Call, name string) turn.Effect {
	if name == c.deps.Offered[0].Name && !inTopic(call) { // in a topic, the choice of the whole chat would apply
		name = ""
	}
	return c.store(call, name)
}

// modelCard shows which model answers, with a button for each alternative; by is the person who has just chosen.
func (c *Choices) modelCard(call *turn.Call, now, by string) bot.Content {
	w, lang := c.deps.Words, call.Message.Language
	if persona, _ := c.ofPersona(call.Session); persona != "" {
		content := bot.Content{Language: lang, Text: c.whyNot(call)}
		content.Entities = render.Inert(content.Text)
		return content
	}
	if now == "" {
		now = c.deps.Offered[0].Name
	}
	i := slices.IndexFunc(c.deps.Offered, func(m Model) bool { return m.Name == now })
	content := bot.Content{Language: lang}
	content.Text = w.ModelCard(lang, modelLabel(c.deps.Offered[i]), by, c.mayChoose(call), call.Message.Place.Group &&
		call.Message.Place.Thread == "")
	if c.deps.Lock || len(c.deps.Offered) == 1 {
		content.Text = w.ModelFixed(lang, cmp.Or(c.deps.Offered[i].ID, now))
	}
	content.Entities = render.Inert(content.Text)
	if !c.mayChoose(call) {
		return content
	}
	for _, m := range c.deps.Offered {
		b := bot.Button{Label: modelLabel(m), Data: buttonData(m.Name)}
		if m.Name == now {
			b.Label = "✓ " + b.Label
		}
		content.Buttons = append(content.Buttons, []bot.Button{b})
	}
	return content
}

func modelLabel(m Model) string {
	if m.ID == "" || m.ID == m.Name {
		return m.Name
	}
	return m.Name + " · " + m.ID
}

// buttonData identifies a provider in a button, whose data has at most 64 bytes (Bot API).
func buttonData(name string) string {
	sum := sha256.Sum256([]byte(name))
	return Prefix + ":" + base64.RawURLEncoding.EncodeToString(sum[:12])
}

var _ turn.Presser = (*Choices)(nil)
