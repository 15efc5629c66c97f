package preference_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/preference"
	"github.com/zephbot/zephbot/bot/texts"
	"github.com/zephbot/zephbot/bot/turn"
)

var private = bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "42"}

var group = bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "-5", Group: true}

const caller = "telegram:42"

// world is a process with settings, and the store that it shares.
type world struct {
	preference.Settings
	store *bottest.Store
	given string // the command that a button gave
}

func setup(t *testing.T, store *bottest.Store) *world {
	t.Helper()
	w := &world{store: store}
	p := preference.New(preference.Deps{
		Store: store, Words: texts.Words{}, Now: time.Now, Redact: func(s string) string { return strings.ReplaceAll(s, "secret", "[redacted]") },
	})
	if err := p.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Settings = preference.Settings{
		Preferences: p, Model: func(bot.SessionKey) string { return "gpt" },
		Zone: func(*bot.Message) string { return "UTC" }, Several: func() bool { return true }, Heard: true, Speaks: true, Default: "queue",
		Run: func(_ context.Context, c *turn.Call) (turn.Effect, error) {
			w.given = c.Message.Command
			return c.ReplyText("card"), nil
		},
	}
	return w
}

func call(place bot.Place, admin bool) *turn.Call {
	msg := &bot.Message{Place: place, Caller: caller, Person: "42", Language: "en", Message: "9", Query: "q"}
	return &turn.Call{Message: msg, Session: place.SessionKey("42"), Admin: admin}
}

// apply stores what a press does, and returns the pop-up and the card that is shown.
func (w *world) apply(t *testing.T, e turn.Effect, err error) (toast, card bot.Row) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	applied, err := w.store.Apply(t.Context(), &e.Change)
	if err != nil {
		t.Fatal(err)
	}
	if e.Then != nil {
		if _, err := e.Then(t.Context(), applied); err != nil {
			t.Fatal(err)
		}
	}
	return e.Change.Send[0], e.Change.Send[len(e.Change.Send)-1]
}

func (w *world) press(t *testing.T, c *turn.Call, data string) (toast, card bot.Row) {
	t.Helper()
	c.Message.Data = data
	e, err := w.Press(t.Context(), c)
	return w.apply(t, e, err)
}

func dataOf(row bot.Row) (list []string) {
	for _, b := range slices.Concat(row.Content.Buttons...) {
		list = append(list, b.Data)
	}
	return list
}

// TestButtons: who has which buttons, what a press of each does, and that data fits into a button.
func TestButtons(t *testing.T) {
	t.Parallel()
	all := []string{"st:language", "st:clock", "st:timezone", "st:model", "st:voice", "st:busy", "st:receipts", "st:speech"}
	for name, row := range map[string]struct {
		place bot.Place
		admin bool
		want  []string
	}{
		"person, private": {place: private, want: append(slices.Clone(all), "st:instructions")},
		"admin, private":  {place: private, admin: true, want: append(slices.Clone(all), "st:instructions")},
		"person, group":   {place: group},
		"admin, group":    {place: group, admin: true, want: []string{"st:model", "st:receipts", "st:speech", "st:questions"}},
	} {
		w := setup(t, bottest.New())
		e, err := w.Command(t.Context(), call(row.place, row.admin))
		_, card := w.apply(t, e, err)
		if diff := cmp.Diff(row.want, dataOf(card)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, data := range append(slices.Clone(all), "st:clear", "st:voice:loud", "st:language:xx", "st:busy:queue:x", "st:help:me") {
			w.given = ""
			toast, card := w.press(t, call(row.place, row.admin), data)
			may := slices.Contains(row.want, data)
			if may == toast.Alert {
				t.Errorf("%s presses %s: alert %t", name, data, toast.Alert)
			}
			command := data == "st:model" || data == "st:timezone"
			if (w.given != "") != (may && command) {
				t.Errorf("%s presses %s: gave %q", name, data, w.given)
			}
			if !may || command {
				continue
			}
			values := dataOf(card)
			if len(values) < 3 || values[len(values)-1] != "st:" {
				t.Errorf("%s: %s has the buttons %q", name, data, values)
			}
			for _, value := range values {
				if len(value) > 64 {
					t.Errorf("%q is longer than 64 bytes", value)
				}
				if toast, card := w.press(t, call(row.place, row.admin), value); toast.Alert || card.Edit != "9" || len(dataOf(card)) == 0 {
					t.Errorf("%s presses %s: %+v", name, value, card)
				}
			}
		}
	}
}

// TestChosen: what one process stores holds in another one after it has followed, for that person or group alone.
func TestChosen(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	here, there := setup(t, store), setup(t, store)
	for _, data := range []string{"st:language:de", "st:clock:12", "st:voice:off", "st:busy:steer", "st:receipts:always", "st:speech:always"} {
		here.press(t, call(private, false), data)
	}
	here.press(t, call(group, true), "st:receipts:off")
	here.press(t, call(group, true), "st:speech:asked")
	here.press(t, call(group, true), "st:questions:private")
	if there.Language(caller, "en") != "en" || there.Busy(caller) != "" {
		t.Error("known before it was followed")
	}
	if err := there.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := private
	other.Chat = "7"
	for _, w := range []*world{here, there} {
		if w.Language(caller, "en") != "de" || w.Clock(private) != texts.ClockTwelve || w.Hears(caller) || w.Busy(caller) != "steer" ||
			w.Receipts(private, caller) != texts.ReceiptsAlways || w.Receipts(group, caller) != texts.ReceiptsOff ||
			w.Speech(private, caller) != texts.SpeechAlways || w.Speech(group, caller) != texts.SpeechAsked {
			t.Error("what was chosen does not hold")
		}
		if w.Language("telegram:7", "en") != "en" || w.Clock(other) != "" || w.Clock(group) != "" || !w.Hears("telegram:7") || w.Busy("telegram:7") != "" ||
			w.Receipts(other, "telegram:7") != texts.ReceiptsShort || w.Speech(other, "telegram:7") != texts.SpeechSpoken {
			t.Error("it holds for somebody else")
		}
	}
	_, card := here.press(t, call(private, false), "st:")
	for _, line := range []string{"Language: Deutsch", "Clock: ", "Voice messages: I do not listen", "While I work: what you send is taken into", "Receipts: after each"} {
		if !strings.Contains(card.Content.Text, line) {
			t.Errorf("%q is not in %q", line, card.Content.Text)
		}
	}
	// what is chosen back leaves nothing behind
	told := call(private, false)
	told.Message.Language, told.Message.Told = "de", "es"
	if toast, card := here.press(t, told, "st:language:"); toast.Content.Text != "Anotado." || !strings.HasPrefix(card.Content.Text, "Tus ajustes") {
		t.Errorf("the language of the client is used at once: %q %q", toast.Content.Text, card.Content.Text)
	}
	for _, data := range []string{"st:clock:", "st:voice:on", "st:busy:queue", "st:receipts:short", "st:speech:spoken"} {
		here.press(t, call(private, false), data)
	}
	here.press(t, call(group, true), "st:receipts:short")
	here.press(t, call(group, true), "st:speech:spoken")
	if !here.Hides(group) || here.Hides(private) {
		t.Error("where questions are asked is not what was chosen")
	}
	here.press(t, call(group, true), "st:questions:here")
	facts, err := store.FactsOf(t.Context(), "preference", "", time.Now())
	if err != nil || len(facts) != 0 {
		t.Errorf("%v are left, %v", facts, err)
	}
}

// TestUnknownValue: what another version has stored, and this one does not know, counts as not chosen.
func TestUnknownValue(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	if _, err := store.Apply(t.Context(), &bot.Change{Facts: []bot.Fact{
		{Bucket: "preference", Key: caller + "/language", Value: "xx"}, {Bucket: "preference", Key: caller + "/busy", Value: "panic"},
	}}); err != nil {
		t.Fatal(err)
	}
	w := setup(t, store)
	if w.Language(caller, "ru") != "ru" || w.Busy(caller) != "" {
		t.Errorf("%q, %q", w.Language(caller, "ru"), w.Busy(caller))
	}
}

// explanations explain nothing.
type explanations struct{ turn.Explanations }

func (explanations) Explains(context.Context, *bot.Message, time.Time) (bool, error) {
	return false, nil
}

func (explanations) Explain(_ context.Context, msg *bot.Message, _ time.Time) (turn.Effect, error) {
	return (&turn.Call{Message: msg}).ReplyText("not asked"), nil
}

// TestOwnInstructions: the next message of who was asked is their text, in every process, unless it is something else or
// they went on with another button. It is kept without credentials, and removed by its button.
func TestOwnInstructions(t *testing.T) {
	t.Parallel()
	store := bottest.New()
	here, there := setup(t, store), setup(t, store)
	write := func(w *world, text string, change func(msg *bot.Message)) (taken bool, said string) {
		t.Helper()
		msg := *call(private, false).Message
		msg.Kind, msg.Text = bot.Text, text
		if change != nil {
			change(&msg)
		}
		listening := w.Listening(explanations{})
		taken, err := listening.Explains(t.Context(), &msg, time.Now())
		if err != nil || !taken {
			return false, ""
		}
		e, err := listening.Explain(t.Context(), &msg, time.Now())
		_, row := w.apply(t, e, err)
		return true, row.Content.Text
	}
	own := func(w *world) string {
		t.Helper()
		text, err := w.OwnInstructions(t.Context(), caller)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if taken, _ := write(here, "Call me Ann", nil); taken {
		t.Error("taken from somebody who was not asked")
	}
	here.press(t, call(private, false), "st:instructions")
	for name, change := range map[string]func(msg *bot.Message){
		"command":        func(msg *bot.Message) { msg.Command = "new" },
		"reply":          func(msg *bot.Message) { msg.Reply = &bot.Quote{} },
		"forwarded":      func(msg *bot.Message) { msg.Forwarded = true },
		"file":           func(msg *bot.Message) { msg.Files = []bot.Attachment{{}} },
		"another chat":   func(msg *bot.Message) { msg.Place.Chat = "7" },
		"another topic":  func(msg *bot.Message) { msg.Place.Thread = "7" },
		"group":          func(msg *bot.Message) { msg.Place = group },
		"another person": func(msg *bot.Message) { msg.Caller = "telegram:7" },
		"nothing":        func(msg *bot.Message) { msg.Text = " " },
	} {
		if taken, said := write(here, "Call me Ann", change); taken {
			t.Errorf("%s: taken, %q", name, said)
		}
	}
	if taken, said := write(here, strings.Repeat("ы", 501), nil); !taken || own(here) != "" || !strings.HasPrefix(said, "That is too long") {
		t.Errorf("too long: taken %t, %q", taken, said)
	}
	if taken, said := write(here, " Call me Ann, not secret ", nil); !taken || !strings.HasSuffix(said, "\nCall me Ann, not [removed]\n\nI have left out what looked like a password.") {
		t.Errorf("taken %t, %q", taken, said)
	}
	if taken, _ := write(here, "Hello", nil); taken {
		t.Error("taken twice")
	}
	if own(there) != "" {
		t.Error("read although nobody has told this process of it")
	}
	if err := there.Follow(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, w := range []*world{here, there} {
		if got := own(w); got != "Call me Ann, not [redacted]" {
			t.Errorf("%q", got)
		}
	}
	if _, card := here.press(t, call(private, false), "st:instructions"); !strings.HasPrefix(card.Content.Text, "You have told me:\nCall me Ann") {
		t.Errorf("%q", card.Content.Text)
	}
	here.press(t, call(private, false), "st:")
	if taken, _ := write(here, "Hello", nil); taken {
		t.Error("taken although another button was pressed")
	}
	there.press(t, call(private, false), "st:instructions:-")
	if own(there) != "" || own(here) != "" {
		t.Error("not removed")
	}
	for _, bucket := range []string{"preference", "own_instructions"} {
		if left, err := store.FactsOf(t.Context(), bucket, "", time.Now()); err != nil || len(left) != 0 {
			t.Errorf("%s: %v are left, %v", bucket, left, err)
		}
	}
}
