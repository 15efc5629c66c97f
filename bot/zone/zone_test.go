package zone_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
	"github.com/zephbot/zephbot/bot/zone"
)

var private = bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "42"}

// apply stores what a command or a press does, and returns what is shown at last.
func apply(t *testing.T, store *bottest.Store, e turn.Effect, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	applied, err := store.Apply(t.Context(), &e.Change)
	if err != nil {
		t.Fatal(err)
	}
	if e.Then != nil {
		if _, err := e.Then(t.Context(), applied); err != nil {
			t.Fatal(err)
		}
	}
	return e.Change.Send[len(e.Change.Send)-1].Content.Text
}

// TestZones: what one process sets holds in another one after it has followed, for that person alone, and not in groups.
func TestZones(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	open := func() *zone.Zones {
		return zone.New(zone.Deps{Store: store, Words: texts.Words{}, Now: time.Now, Default: time.FixedZone("Test/Bot", 3600)})
	}
	here, there := open(), open()
	if err := there.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	msg := &bot.Message{Place: private, Caller: "telegram:42", Person: "42", Args: "berlin", Language: "en"}
	e, err := here.Command(t.Context(), &turn.Call{Message: msg})
	if said := apply(t, store, e, err); !strings.Contains(said, "now Europe/Berlin") {
		t.Error(said)
	}
	if got := there.Of("telegram:42"); got != nil {
		t.Errorf("before it has followed: %v", got)
	}
	if err := there.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	group := private
	group.Group = true
	guest := private
	guest.Surface = bot.SurfaceGuest
	for _, z := range []*zone.Zones{here, there} {
		if z.Of("telegram:42").String() != "Europe/Berlin" || z.In(private).String() != "Europe/Berlin" || z.In(group) != nil || z.In(guest) != nil || z.Of("telegram:7") != nil {
			t.Error("who has the zone")
		}
	}
	if at, name := there.For("telegram:7"); name != "Test/Bot" || at.String() != "Test/Bot" {
		t.Errorf("somebody else has %s", name)
	}
	press := *msg
	press.Data, press.Message, press.Person = "tz::42", "9", "7"
	e, err = here.Press(t.Context(), &turn.Call{Message: &press})
	if said := apply(t, store, e, err); !strings.Contains(said, "somebody else") || here.Of("telegram:42") == nil {
		t.Error(said)
	}
	press.Data, press.Person = "tz:../../etc:42", "42"
	e, err = here.Press(t.Context(), &turn.Call{Message: &press})
	if said := apply(t, store, e, err); !strings.Contains(said, "no time zone") || here.Of("telegram:42") == nil {
		t.Error(said)
	}
	press.Data = "tz::42"
	e, err = here.Press(t.Context(), &turn.Call{Message: &press})
	if said := apply(t, store, e, err); !strings.Contains(said, "my own time zone") || here.Of("telegram:42") != nil {
		t.Error(said)
	}
}

// TestPlaces: the buttons name cities as their readers call them.
func TestPlaces(t *testing.T) {
	t.Parallel()
	z := zone.New(zone.Deps{Store: bottest.New(), Words: texts.Words{}, Now: time.Now})
	for language, want := range map[string]string{
		"de": "Berlin Wien Zürich Luxemburg", "en": "London Berlin New York Los Angeles Kolkata Shanghai",
		"es": "Madrid Ciudad de México Bogotá Lima Santiago Buenos Aires", "ru": "Москва Самара Екатеринбург Новосибирск Алматы Владивосток",
	} {
		e, err := z.Command(t.Context(), &turn.Call{Message: &bot.Message{Place: private, Caller: "telegram:42", Person: "42", Language: language}})
		if err != nil {
			t.Fatal(err)
		}
		var labels []string
		for _, row := range e.Change.Send[0].Content.Buttons {
			for _, b := range row {
				labels = append(labels, b.Label)
			}
		}
		if got := strings.Join(labels, " "); got != want {
			t.Errorf("%s: %s", language, got)
		}
	}
}

// TestButtons: no data of a button is longer than Telegram takes, in any language.
func TestButtons(t *testing.T) {
	t.Parallel()
	z := zone.New(zone.Deps{Store: bottest.New(), Words: texts.Words{}, Now: time.Now})
	for _, language := range []string{"", "de", "es-MX", "ru", "en"} {
		msg := &bot.Message{Place: private, Caller: "telegram:9007199254740991", Person: "9007199254740991", Language: language}
		e, err := z.Command(t.Context(), &turn.Call{Message: msg})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, row := range e.Change.Send[0].Content.Buttons {
			for _, b := range row {
				if n++; len(b.Data) > 64 || b.Label == "" {
					t.Errorf("button %+v", b)
				}
			}
		}
		if n < 4 {
			t.Errorf("%q: %d buttons", language, n)
		}
	}
}
