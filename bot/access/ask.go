package access

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/turn"
)

// strangerBucket holds who or what admins were told of: the key is that of a person, the value a stranger. It is kept
// for as long as a button to admit them makes sense. toldBucket holds, by bot, a name of the last
// time: each is computed from it, so that of two at once, in any process, the second is computed again.
const (
	strangerBucket = "stranger"
	strangerFor    = 30 * 24 * time.Hour
	toldBucket     = "stranger_told"
)

// Limits of what admins are told of those who are not admitted: so many a day, and each of them once in that time.
const (
	MostStrangers = 20
	strangerOnce  = 24 * time.Hour
)

// The buttons below what admins are told: PREFIX:VERB:ID.
const (
	pressAdmit = "a"
	pressGroup = "g"
)

// stranger is somebody, or a group, that admins were told of.
type stranger struct {
	Name     string    `json:"name,omitempty"`
	Username string    `json:"username,omitempty"`
	Language string    `json:"language,omitempty"`
	At       time.Time `json:"at"`
}

// refuseStranger refuses a person who is not admitted. In private they are told so, and the admins may admit them.
func (g *Guard) refuseStranger(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	v := turn.Verdict{Reason: "person not in telegram.allowed_users"}
	var err error
	switch {
	case msg.Kind == bot.Press:
		v.Reply = g.words.Stranger(msg.Language, msg.Person)
	case !msg.Place.Group:
		v.Reply, v.Once = g.words.Stranger(msg.Language, msg.Person), "stranger/"+msg.Caller
		s := stranger{Name: msg.Name, Username: msg.Username, Language: msg.Language}
		v.Change, err = g.tellAdmins(ctx, msg.Place, msg.Person, s, pressAdmit)
	}
	return v, err
}

// refuseGroup refuses whatever comes from a group that is not admitted. The group is told so when the bot joins it; the
// admins may admit the group once somebody in it wants something.
func (g *Guard) refuseGroup(ctx context.Context, msg *bot.Message) (turn.Verdict, error) {
	v := turn.Verdict{Reason: "group not in telegram.allowed_chats"}
	var err error
	switch {
	case msg.Kind == bot.Member:
		v.Reply, v.Once = g.words.Unlisted(msg.Language, msg.Place.Chat), "unlisted/"+msg.Place.ChatKey()
	case msg.Kind == bot.Text && msg.Addressed && msg.Place.Ordinary():
		v.Change, err = g.tellAdmins(ctx, msg.Place, msg.Place.Chat, stranger{Name: msg.Title}, pressGroup)
	}
	return v, err
}

// tellAdmins has the admins told of a person or group that is not admitted: who it is and nothing of what they wrote,
// once in strangerOnce, and of no more than MostStrangers in that time. The Change is refused with ErrConflict if they
// were told of somebody else meanwhile.
func (g *Guard) tellAdmins(
	ctx context.Context, place bot.Place, id string, s stranger, verb string,
) (bot.Change, error) {
	if g.opts.Private == nil {
		return bot.Change{}, nil
	}
	now := g.now()
	key, all := personKey(place, id), personKey(place, "")
	told, err := g.store.Fact(ctx, toldBucket, all, now) // before the list that is computed with
	if err != nil {
		return bot.Change{}, fmt.Errorf("read of whom admins were told last: %w", err)
	}
	before, err := g.listStrangers(ctx, key)
	if err != nil {
		return bot.Change{}, err
	}
	if last, is := before[key]; is && now.Sub(last.At) < strangerOnce {
		return bot.Change{}, nil
	}
	if before, err = g.listStrangers(ctx, all); err != nil {
		return bot.Change{}, err
	}
	today := 0
	for _, other := range before {
		if now.Sub(other.At) < strangerOnce {
			today++
		}
	}
	if today >= MostStrangers {
		return bot.Change{}, nil
	}
	admins, err := g.allAdmins(ctx, place)
	if err != nil || len(admins) == 0 {
		return bot.Change{}, err
	}
	s.At = now.UTC()
	value, err := json.Marshal(s)
	if err != nil {
		return bot.Change{}, fmt.Errorf("stranger: %w", err)
	}
	this := rand.Text()
	change := bot.Change{Facts: []bot.Fact{
		{Bucket: strangerBucket, Key: key, Value: string(value), Expires: now.Add(strangerFor)},
		{Bucket: toldBucket, Key: all, Value: this, Expires: now.Add(strangerFor), Was: &told},
	}}
	text, label := g.words.StrangerAsks("", s.Name, s.Username, id), g.words.AdmitButton("")
	if verb == pressGroup {
		text, label = g.words.GroupAsks("", s.Name, id), g.words.AdmitGroupButton("")
	}
	for _, admin := range admins {
		to := g.opts.Private(admin)
		change.Send = append(change.Send, bot.Row{
			Session: to.SessionKey(""), Place: to, Purpose: bot.Reply, Key: fmt.Sprintf("asks/%s/%s", this, admin),
			Content: bot.Content{
				Text: text, Entities: render.Inert(text),
				Buttons: [][]bot.Button{{{Label: label, Data: Prefix + ":" + verb + ":" + id, Style: "success"}}},
			},
		})
	}
	return change, nil
}

// listStrangers lists whom admins were told of, by key.
func (g *Guard) listStrangers(ctx context.Context, prefix string) (map[string]stranger, error) {
	facts, err := g.store.FactsOf(ctx, strangerBucket, prefix, g.now())
	if err != nil {
		return nil, fmt.Errorf("read whom admins were told of: %w", err)
	}
	list := make(map[string]stranger, len(facts))
	for _, f := range facts {
		var s stranger
		if err := json.Unmarshal([]byte(f.Value), &s); err != nil {
			return nil, fmt.Errorf("whom admins were told of, %s: %w", f.Key, err)
		}
		list[f.Key] = s
	}
	return list, nil
}

// pinName is what goes with binding a configured name to the person who uses it first: the admins are told.
func (g *Guard) pinName(ctx context.Context, msg *bot.Message, name string) (bot.Change, error) {
	if g.opts.Private == nil {
		return bot.Change{}, nil
	}
	admins, err := g.allAdmins(ctx, msg.Place)
	if err != nil {
		return bot.Change{}, err
	}
	var change bot.Change
	text := g.words.NamePinned("", name, msg.Name, msg.Person)
	for _, admin := range admins {
		to := g.opts.Private(admin)
		change.Send = append(change.Send, bot.Row{
			Session: to.SessionKey(""),
			Place:   to,
			Purpose: bot.Reply,
			Key:     "pinned/" + g.nameKey(name) + "/" + msg.Person + "/" + admin,
			Content: bot.Content{Text: text, Entities: render.Inert(text)},
		})
	}
	return change, nil
}
