// Package zone knows the time zones of people: what they have set with /timezone. Telegram does not tell them.
package zone

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/facts"
	"github.com/zephbot/zephbot/bot/feature"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/tools/schedule/when"
)

// Prefix begins the data of the buttons: "tz:<name of a zone>:<person>", or "tz::<person>" for the zone of the bot.
const Prefix = "tz"

const (
	// bucket holds the names of zones by caller id.
	bucket = "timezone"
	// revisions holds one value, which changes with each choice: other processes read it instead of all choices.
	revisions = "timezone_revision"
)

// Deps are the dependencies of Zones. All but Default are required.
type Deps struct {
	Store   facts.Store
	Words   texts.Words
	Now     func() time.Time
	Default *time.Location // of the bot; nil = UTC
}

// Zones knows what was set. It is safe for concurrent use and starts no goroutines.
type Zones struct {
	deps Deps
	set  *facts.Followed[map[string]zone] // by caller id
}

// zone is a time zone with the name that people know it by.
type zone struct {
	name string
	at   *time.Location
}

// New returns Zones. Nobody has set one before the first Follow.
func New(deps Deps) *Zones {
	return &Zones{
		deps: deps,
		set: facts.NewFollowed(deps.Store, bucket, revisions, deps.Now, func(list []bot.Fact) map[string]zone {
			set := make(map[string]zone, len(list))
			for _, fact := range list {
				// A name that this version does not know was set by another one; it counts as not set.
				if at, name, err := when.Zone(fact.Value); err == nil {
					set[fact.Key] = zone{name: name, at: at}
				}
			}
			return set
		}),
	}
}

// Of returns the zone that a person has set; nil = none. It reads nothing from the store.
func (z *Zones) Of(caller string) *time.Location { return z.set.Value()[caller].at }

// For returns the zone of a person, which is that of the bot if they have not set one, and its name.
func (z *Zones) For(caller string) (*time.Location, string) {
	own, ok := z.set.Value()[caller]
	switch {
	case ok:
		return own.at, own.name
	case z.deps.Default != nil:
		return z.deps.Default, z.deps.Default.String()
	default:
		return time.UTC, time.UTC.String()
	}
}

// In returns the zone that the readers of a place have set: in a private chat, that of the person; nil = none. A group
// has the zone of the bot, because its people have different ones.
func (z *Zones) In(place bot.Place) *time.Location {
	if place.Group || !place.Ordinary() {
		return nil
	}
	return z.Of(place.Channel + ":" + place.Chat)
}

// Follow reads what any process has set since the last call.
func (z *Zones) Follow(ctx context.Context) error { return z.set.Follow(ctx) }

// Feature returns /timezone.
func (z *Zones) Feature() feature.Feature {
	return feature.Feature{
		Name:     "zone",
		Commands: []feature.Command{{Name: "timezone", Run: z.Command}},
		Buttons:  []feature.Button{{Prefix: Prefix, Presser: z}},
		Follow:   z.Follow,
	}
}

// Command answers /timezone: it shows the person's zone with likely ones to choose from, or sets the one named.
func (z *Zones) Command(ctx context.Context, call *turn.Call) (turn.Effect, error) {
	if err := z.Follow(ctx); err != nil { // another process may have stored something a moment ago
		return turn.Effect{}, err
	}
	msg, w := call.Message, z.deps.Words
	wanted := strings.TrimSpace(msg.Args)
	if wanted == "" {
		return call.ReplyAside(z.zoneCard(msg, "", false)), nil
	}
	_, name, err := when.Zone(wanted)
	if err != nil {
		//nolint:nilerr // a reply
		return call.ReplyAside(bot.Content{Text: w.ZoneUnknown(msg.Language, wanted, when.Near(wanted))}), nil
	}
	e := z.storeChoice(msg.Caller, name)
	e.Change.Send = call.ReplyAside(z.zoneCard(msg, name, true)).Change.Send
	return e, nil
}

// Press implements turn.Presser. A card is its person's own: in a group others see it.
func (z *Zones) Press(_ context.Context, call *turn.Call) (turn.Effect, error) {
	msg, w := call.Message, z.deps.Words
	toast := bot.Row{Place: msg.Place, Purpose: bot.Toast, Query: msg.Query}
	pop := func(text string) (turn.Effect, error) {
		toast.Alert, toast.Content.Text = true, text
		return turn.Effect{Change: bot.Change{Send: []bot.Row{toast}}}, nil
	}
	name, person, _ := strings.Cut(strings.TrimPrefix(msg.Data, Prefix+":"), ":")
	if person != msg.Person || msg.Caller == "" {
		return pop(w.ZoneNotYours(msg.Language))
	}
	if name != "" {
		if _, canonical, err := when.Zone(name); err != nil || canonical != name {
			return pop(w.ZoneUnknown(msg.Language, name, nil)) //nolint:nilerr // a reply
		}
	}
	e := z.storeChoice(msg.Caller, name)
	e.Change.Send = []bot.Row{toast}
	if msg.Message != "" {
		e.Change.Send = append(e.Change.Send, bot.Row{
			Place: msg.Place, Purpose: bot.Record, Edit: msg.Message, Content: z.zoneCard(msg, name, true),
		})
	}
	return e, nil
}

// storeChoice stores a choice; "" takes it back.
func (z *Zones) storeChoice(caller, name string) turn.Effect {
	return turn.Effect{
		Change: bot.Change{Facts: []bot.Fact{{Bucket: bucket, Key: caller, Value: name}, z.set.Revised()}},
		Then:   func(ctx context.Context, _ *bot.Applied) (turn.Effect, error) { return turn.Effect{}, z.Follow(ctx) },
	}
}

// zoneCard shows a person's zone and its time, with buttons of likely ones. chosen says that name is what they have
// just chosen; "" is the zone of the bot.
func (z *Zones) zoneCard(msg *bot.Message, name string, chosen bool) bot.Content {
	w := z.deps.Words
	own := z.Of(msg.Caller) != nil
	at, shown := z.For(msg.Caller)
	if chosen {
		own = name != ""
		at, shown = z.For("")
		if own {
			at, shown, _ = when.Zone(name) // it is one: it was checked
		}
	}
	w.Zone = at
	content := bot.Content{Language: msg.Language, Text: w.Zoned(msg.Language, shown, z.deps.Now().In(at), own, chosen)}
	content.Entities = render.Inert(content.Text)
	content.Buttons = z.zoneButtons(msg, shown, own)
	return content
}

// zoneButtons offers likely zones, two in a row, and to take the own one back.
func (z *Zones) zoneButtons(msg *bot.Message, now string, own bool) [][]bot.Button {
	var rows [][]bot.Button
	for _, name := range likelyZones(msg.Language, z.deps.Default) {
		if name == now {
			continue
		}
		b := bot.Button{Label: z.deps.Words.ZonePlace(msg.Language, name), Data: Prefix + ":" + name + ":" + msg.Person}
		if len(b.Data) > mostData {
			continue
		}
		if last := len(rows) - 1; last >= 0 && len(rows[last]) == 1 {
			rows[last] = append(rows[last], b)
		} else {
			rows = append(rows, []bot.Button{b})
		}
	}
	if own {
		rows = append(rows, []bot.Button{{
			Label: z.deps.Words.ZoneOfBot(msg.Language),
			Data:  Prefix + "::" + msg.Person,
		}})
	}
	return rows
}

// mostData is how long the data of a button may be (Bot API).
const mostData = 64

// likelyZones lists zones in which many people live who use a language.
func likelyZones(language string, ofBot *time.Location) []string {
	base, _, _ := strings.Cut(strings.ToLower(language), "-")
	list := map[string][]string{
		"de": {"Europe/Berlin", "Europe/Vienna", "Europe/Zurich", "Europe/Luxembourg"},
		"es": {
			"Europe/Madrid",
			"America/Mexico_City",
			"America/Bogota",
			"America/Lima",
			"America/Santiago",
			"America/Argentina/Buenos_Aires",
		},
		"ru": {
			"Europe/Moscow",
			"Europe/Samara",
			"Asia/Yekaterinburg",
			"Asia/Novosibirsk",
			"Asia/Almaty",
			"Asia/Vladivostok",
		},
	}[base]
	if list == nil {
		list = []string{
			"Europe/London", "Europe/Berlin", "America/New_York", "America/Los_Angeles", "Asia/Kolkata",
			"Asia/Shanghai",
		}
	}
	if ofBot != nil {
		if _, name, err := when.Zone(ofBot.String()); err == nil && !slices.Contains(list, name) {
			list = append([]string{name}, list...)
		}
	}
	return append(slices.Clip(list), "UTC")
}

var _ turn.Presser = (*Zones)(nil)
