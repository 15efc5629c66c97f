// Package choice lets people choose the model of a conversation (/model): which models are offered, who may choose, and
// what was chosen.
package choice

import (
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
	// bucket holds the choices. A key is that of a private conversation, or that of a group's chat with wholeChat. Both
	// begin with the chat, so they follow a group that gets a new id.
	bucket    = "model"
	wholeChat = "/*"
	// revisions holds one value, which changes with each choice: other processes read it instead of all choices.
	revisions = "model_revision"
)

// Model is a provider that people can choose.
type Model struct {
	Name string // of the provider in the configuration
	ID   string // the vendor's name of the model; may be empty
}

// Deps are the dependencies of Choices. All but Lock are required.
type Deps struct {
	Store   facts.Store
	Offered []Model // the first one answers if nothing was chosen
	Words   texts.Words
	Now     func() time.Time
	Lock    bool // nobody may choose
}

// Choices knows what was chosen. It is safe for concurrent use and starts no goroutines.
type Choices struct {
	deps   Deps
	chosen *facts.Followed[map[string]string] // provider by key
	made   ahead
}

// New returns Choices. Nothing is chosen before the first Follow.
func New(deps Deps) *Choices {
	return &Choices{
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

// Of returns the provider that a conversation has chosen; "" = the configured order. It reads nothing from the store. A
// provider that is no longer offered is ignored.
func (c *Choices) Of(session bot.SessionKey) string {
	chosen, made := c.chosen.Value(), c.made.since(c.deps.Now())
	if len(chosen)+len(made) == 0 {
		return ""
	}
	in := func(key string) (string, bool) {
		if name, ok := made[key]; ok {
			return name, name != ""
		}
		name, ok := chosen[key]
		return name, ok
	}
	name, ok := in(string(session))
	if !ok {
		name, ok = in(topicKey(session.ChatKey(), session.Thread()))
	}
	if !ok {
		name, _ = in(session.ChatKey() + wholeChat)
	}
	if !c.offersModel(name) {
		return ""
	}
	return name
}

func (c *Choices) offersModel(name string) bool {
	return !c.deps.Lock && slices.ContainsFunc(c.deps.Offered, func(m Model) bool { return m.Name == name })
}

// Forget makes the next Follow read everything again, because a group has a new id.
func (c *Choices) Forget() { c.chosen.Forget() }

// Follow reads what any process has chosen since the last call.
func (c *Choices) Follow(ctx context.Context) error { return c.chosen.Follow(ctx) }

// choiceKey returns the key of the choice of a conversation. A group has one for the whole chat, and each of
// its topics may have another one.
func choiceKey(call *turn.Call) string {
	if p := call.Message.Place; p.Group {
		return topicKey(p.ChatKey(), p.Thread)
	}
	return string(call.Session)
}

// topicKey returns the key of the choice of a topic, or of the whole chat outside of topics.
func topicKey(chat, thread string) string {
	if thread != "" {
		chat += "/" + thread
	}
	return chat + wholeChat
}

// Several reports whether people have models to choose from.
func (c *Choices) Several() bool { return !c.deps.Lock && len(c.deps.Offered) > 1 }

// mayChoose reports whether the caller may choose: in a group, which shares one model, only admins may.
func (c *Choices) mayChoose(call *turn.Call) bool {
	return c.Several() && (call.Admin || !call.Message.Place.Group)
}

// Command answers /model: it shows the models with a button for each, or chooses the model named.
func (c *Choices) Command(_ context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, c.deps.Words
	wanted := strings.TrimSpace(msg.Args)
	switch {
	case wanted == "":
		return call.Reply(c.modelCard(call, c.Of(call.Session), "")), nil
	case !c.mayChoose(call):
		return call.ReplyAside(bot.Content{Text: w.ModelAdmins(msg.Language)}), nil
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
func (c *Choices) Press(_ context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, c.deps.Words
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	i := slices.IndexFunc(c.deps.Offered, func(m Model) bool { return msg.Data == buttonData(m.Name) })
	switch {
	case !c.mayChoose(call):
		toast.Alert, toast.Content.Text = true, w.ModelAdmins(msg.Language)
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
	where, value := choiceKey(call), name
	if name == c.deps.Offered[0].Name && (!call.Message.Place.Group || call.Message.Place.Thread == "") {
		value = "" // in a topic, the choice of the whole chat would apply
	}
	c.made.make(where, value, c.deps.Now())
	return turn.Effect{
		Change: bot.Change{Facts: []bot.Fact{{Bucket: bucket, Key: where, Value: value}, c.chosen.Revised()}},
		Then: func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) {
			err := c.Follow(ctx)
			if err == nil {
				c.made.read(where, value)
			}
			return turn.Effect{}, err
		},
	}
}

// modelCard shows which model answers, with a button for each alternative; by is the person who has just chosen.
func (c *Choices) modelCard(call *turn.Call, now, by string) bot.Content {
	w, lang := c.deps.Words, call.Message.Language
	if now == "" {
		now = c.deps.Offered[0].Name
	}
	i := slices.IndexFunc(c.deps.Offered, func(m Model) bool { return m.Name == now })
	content := bot.Content{Language: lang}
	content.Text = w.ModelCard(lang, modelLabel(c.deps.Offered[i]), by, c.mayChoose(call), call.Message.Place.Group &&
		call.Message.Place.Thread == "")
	if c.deps.Lock || len(c.deps.Offered) == 1 {
		content.Text = w.ModelFixed(lang, modelLabel(c.deps.Offered[i]))
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
