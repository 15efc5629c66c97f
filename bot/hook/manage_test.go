package hook_test

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/hook"
	"github.com/zephbot/zephbot/bot/turn"
)

var group = bot.Place{Channel: "telegram", Bot: "1", Surface: bot.SurfaceBot, Chat: "-7", Group: true}

// says has a person give /hooks to a process, stores what follows, and returns the answer to it and what was told in
// private.
func (w *world) says(h *hook.Hooks, person string, place bot.Place, args string) (answer, told string) {
	w.t.Helper()
	call := &turn.Call{
		Message: &bot.Message{
			ID: "m" + person, Kind: bot.Text, Place: place, Caller: "telegram:" + person, Person: person, Name: "P" + person,
			Command: "hooks", Args: args, Addressed: true,
		},
		Session: place.SessionKey(""), Admin: person == "42",
	}
	for {
		e, err := h.Command(w.t.Context(), call)
		if err != nil {
			w.t.Fatal(err)
		}
		applied, err := w.store.Apply(w.t.Context(), &e.Change)
		if errors.Is(err, bot.ErrConflict) {
			continue
		}
		if err == nil && e.Then != nil {
			_, err = e.Then(w.t.Context(), applied)
		}
		if err != nil {
			w.t.Fatal(err)
		}
		for _, row := range e.Change.Send[1:] {
			if row.Place.Group {
				w.t.Errorf("told in the group: %s", row.Content.Text)
			}
			told = row.Content.Text
		}
		return e.Change.Send[0].Content.Text, told
	}
}

// TestManage: who may make, see, change and remove hooks, and what each hears.
func TestManage(t *testing.T) {
	t.Parallel()
	w := open(t, 2, hook.Options{})
	one, two := w.hooks[0], w.hooks[1]
	made, told := w.says(one, "42", group, "add Merged Sum up {{.title}}")
	if !strings.HasPrefix(made, "The hook merged is made.") || strings.Contains(made, "whsec_") ||
		!strings.Contains(told, "https://bot.example.com/hooks/merged\n") {
		t.Errorf("%q, %q", made, told)
	}
	secret := regexp.MustCompile(`whsec_\S+`).FindString(told)
	for _, c := range []struct{ person, args, want string }{
		{"43", "add other x", "Only my admins"},
		{"42", "add merged x", "There is a hook merged already"},
		{"42", "add alerts x", "There is a hook alerts already"},
		{"42", "add ALARMS.1 x", "The name of a hook"},
		{"42", "add alarms {{range .}}", "What a hook is to do has at most 2000"},
		{"42", "add", "Something is missing after add, or too much is there.\n/hooks lists the hooks"},
		{"42", "drop merged", "I do not know what drop means here.\n/hooks lists the hooks"},
		{"42", "remove merged now", "Something is missing after remove, or too much is there.\n/hooks lists"},
		{"42", "remove alerts", "The hook alerts is set in the configuration"},
		{"42", "remove nothing", "There is no hook nothing"},
		{"43", "remove merged", "There is no hook merged"},
		{"43", "test merged", "Only P42 can do this"},
		{"42", "test nothing", "There is no hook nothing"},
		{"43", "", "Hooks of this group:\n• merged · never called · by P42\n"},
	} {
		if got, told := w.says(two, c.person, group, c.args); !strings.HasPrefix(got, c.want) || told != "" {
			t.Errorf("%s: /hooks %s: %q, want %q", c.person, c.args, got, c.want)
		}
	}
	if got, _ := w.says(two, "43", private, ""); !strings.HasPrefix(got, "You have no hooks.") {
		t.Errorf("somebody else's: %q", got)
	}
	body := `{"title":"fixes"}`
	call := func(secret string) int {
		r := request("POST", "/hooks/merged", body, "Authorization", "Bearer "+secret)
		return w.send(two, r)
	}
	if got := call(secret); got != 202 {
		t.Errorf("called: %d", got)
	}
	w.says(one, "42", group, "pause merged")
	body = `{"title":"more"}` // the other process finds out by itself
	if got := call(secret); got != 403 {
		t.Errorf("paused: %d", got)
	}
	w.says(two, "42", group, "resume merged")
	if got := call(secret); got != 202 {
		t.Errorf("resumed: %d", got)
	}
	_, renewed := w.says(two, "42", group, "secret merged")
	renewed = regexp.MustCompile(`whsec_\S+`).FindString(renewed)
	if call(secret) != 401 || call(renewed) != 200 || renewed == secret {
		t.Errorf("%q, then %q", secret, renewed)
	}
	if got, _ := w.says(two, "42", group, "test merged"); !strings.HasPrefix(got, "I call the hook merged") {
		t.Errorf("test: %q", got)
	}
	w.says(one, "42", private, "remove merged")
	body = `{"title":"late"}`
	if got := call(renewed); got != 401 {
		t.Errorf("removed: %d", got)
	}
	left, err := w.store.FactsOf(t.Context(), "hook", "", w.clock())
	if err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}

// TestMakeAtOnce: of two hooks with one name that are made at once in different chats, one is.
func TestMakeAtOnce(t *testing.T) {
	t.Parallel()
	w := open(t, 2, hook.Options{})
	call := func(place bot.Place) *turn.Call {
		return &turn.Call{
			Message: &bot.Message{ID: "1", Kind: bot.Text, Place: place, Caller: "telegram:42", Person: "42", Args: "add same x"},
			Session: place.SessionKey(""), Admin: true,
		}
	}
	first, err := w.hooks[0].Command(t.Context(), call(group))
	if err != nil {
		t.Fatal(err)
	}
	second, err := w.hooks[1].Command(t.Context(), call(private))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Apply(t.Context(), &first.Change); err != nil {
		t.Fatal(err)
	}
	if _, err := w.store.Apply(t.Context(), &second.Change); !errors.Is(err, bot.ErrConflict) {
		t.Errorf("the second one: %v", err)
	}
}

// TestLeft: the bot is removed from a group, and the hooks there begin nothing until somebody resumes them.
func TestLeft(t *testing.T) {
	t.Parallel()
	w := open(t, 1, hook.Options{})
	h := w.hooks[0]
	_, told := w.says(h, "42", group, "add merged x")
	w.says(h, "42", private, "add own x")
	e, err := h.Left(t.Context(), group, "9")
	if err != nil || len(e.Change.Send) != 1 || !strings.Contains(e.Change.Send[0].Content.Text, ": merged.") {
		t.Fatalf("%+v, %v", e.Change.Send, err)
	}
	if _, err := w.store.Apply(t.Context(), &e.Change); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Then(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	secret := regexp.MustCompile(`whsec_\S+`).FindString(told)
	if got := w.send(h, request("POST", "/hooks/merged", "{}", "Authorization", "Bearer "+secret)); got != 403 {
		t.Errorf("status %d", got)
	}
	if got, _ := w.says(h, "42", group, ""); !strings.Contains(got, "off: I was removed") {
		t.Errorf("%q", got)
	}
	if e, err := h.Left(t.Context(), group, "10"); err != nil || len(e.Change.Send) != 0 {
		t.Errorf("told again: %+v, %v", e.Change.Send, err)
	}
}

// presses has a person press a button below /hooks in a process, stores what follows, and returns the answer to the
// press, the card that is shown then, and what was told in private.
func (w *world) presses(h *hook.Hooks, person string, place bot.Place, data string) (toast, card bot.Row, told string) {
	w.t.Helper()
	call := &turn.Call{
		Message: &bot.Message{
			ID: "p" + person, Kind: bot.Press, Place: place, Caller: "telegram:" + person, Person: person, Name: "P" + person,
			Data: data, Query: "q", Message: "9",
		},
		Session: place.SessionKey(""), Admin: person == "42" || person == "41",
	}
	e, err := h.Press(w.t.Context(), call)
	if err != nil {
		w.t.Fatal(err)
	}
	applied, err := w.store.Apply(w.t.Context(), &e.Change)
	if err == nil && e.Then != nil {
		_, err = e.Then(w.t.Context(), applied)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	for _, row := range e.Change.Send[1:] {
		if row.Edit != "" {
			card = row
		} else {
			told = row.Content.Text
		}
		if row.Edit == "" && row.Place.Group {
			w.t.Errorf("told in the group: %s", row.Content.Text)
		}
	}
	return e.Change.Send[0], card, told
}

// buttonsOf returns the data of the buttons of a card, in order.
func buttonsOf(row bot.Row) (list []string) {
	for _, b := range slices.Concat(row.Content.Buttons...) {
		list = append(list, b.Data)
	}
	return list
}

// TestHookButtons: who may press what below /hooks, what each button does, and that the secret is told in private only.
func TestHookButtons(t *testing.T) {
	t.Parallel()
	w := open(t, 2, hook.Options{})
	one, two := w.hooks[0], w.hooks[1]
	_, told := w.says(one, "42", group, "add merged event=push .n=1 Sum up {{.title}}")
	secret := regexp.MustCompile(`whsec_\S+`).FindString(told)
	call := func(secret, body string) int {
		r := request("POST", "/hooks/merged", body, "Authorization", "Bearer "+secret, "X-GitHub-Event", "push")
		return w.send(one, r)
	}
	if got := call(secret, `{"n":2}`); got != 200 {
		t.Errorf("a call that meets no condition: %d", got)
	}
	if got := call(secret, `{"n":1}`); got != 202 {
		t.Errorf("a call that meets the conditions: %d", got)
	}
	for _, c := range []struct {
		person, data, toast, card string
		buttons                   []string
	}{
		{"42", "hk:list::0", "", "Hooks of this group:", []string{"hk:show:merged:0"}},
		{
			"42", "hk:show:merged:0", "", "It asks: Sum up {{.title}}\nOnly if: event=push .n=1",
			[]string{"hk:pause:merged:0", "hk:test:merged:0", "hk:renew?:merged:0", "hk:remove?:merged:0", "hk:list:merged:0"},
		},
		{"41", "hk:show:merged:0", "", "merged · called last", []string{"hk:pause:merged:0", "hk:remove?:merged:0", "hk:list:merged:0"}},
		{"41", "hk:secret:merged:0", "Only P42 can do this", "", nil},
		{"41", "hk:test:merged:0", "Only P42 can do this", "", nil},
		{"43", "hk:show:merged:0", "Only P42 or an admin", "", nil},
		{"43", "hk:remove:merged:0", "Only P42 or an admin", "", nil},
		{"42", "hk:show:nothing:0", "There is no hook nothing", "", nil},
		{"42", "hk:dance:merged:0", "There is no hook merged", "", nil},
		{"42", "hk:show", "There is no hook", "", nil},
		{"41", "hk:pause:merged:0", "", "paused", []string{"hk:remove?:merged:0", "hk:list:merged:0"}},
		{"41", "hk:resume:merged:0", "Only P42 can do this", "", nil},
		{
			"42", "hk:resume:merged:0", "", "merged · called last",
			[]string{"hk:pause:merged:0", "hk:test:merged:0", "hk:renew?:merged:0", "hk:remove?:merged:0", "hk:list:merged:0"},
		},
		{"42", "hk:test:merged:0", "I call the hook merged", "", nil},
		{"42", "hk:renew?:merged:0", "", "Give the hook merged a new secret?", []string{"hk:secret:merged:0", "hk:show:merged:0"}},
		{"42", "hk:remove?:merged:0", "", "Delete the hook merged?", []string{"hk:remove:merged:0", "hk:show:merged:0"}},
	} {
		toast, card, told := w.presses(two, c.person, group, c.data)
		if !strings.HasPrefix(toast.Content.Text, c.toast) || toast.Alert != (c.toast != "" && !strings.HasPrefix(c.toast, "I call")) {
			t.Errorf("%s presses %s: %+v, want %q", c.person, c.data, toast, c.toast)
		}
		if !strings.Contains(card.Content.Text, c.card) || !slices.Equal(buttonsOf(card), c.buttons) || told != "" {
			t.Errorf("%s presses %s: %q with %q, told %q", c.person, c.data, card.Content.Text, buttonsOf(card), told)
		}
		if c.person != "42" && strings.Contains(card.Content.Text, "Sum up") {
			t.Errorf("%s reads the prompt of somebody else: %q", c.person, card.Content.Text)
		}
	}
	toast, card, told := w.presses(two, "42", group, "hk:secret:merged:0")
	renewed := regexp.MustCompile(`whsec_\S+`).FindString(told)
	if renewed == "" || renewed == secret || strings.Contains(card.Content.Text+toast.Content.Text, "whsec_") {
		t.Errorf("%q, %q, told %q", toast.Content.Text, card.Content.Text, told)
	}
	if call(secret, `{"n":1,"x":1}`) != 401 || call(renewed, `{"n":1,"x":2}`) != 202 {
		t.Error("the secret is not renewed")
	}
	_, card, _ = w.presses(one, "41", private, "hk:remove:merged:0") // not theirs: it is not in their list
	if card.Content.Text != "" {
		t.Errorf("removed: %q", card.Content.Text)
	}
	if _, card, _ = w.presses(one, "41", group, "hk:remove:merged:0"); card.Content.Text != "Removed: merged. Its address is not taken any more." {
		t.Errorf("removed: %q", card.Content.Text)
	}
	if got := call(renewed, `{"n":1,"x":3}`); got != 401 {
		t.Errorf("after it was removed: %d", got)
	}
}

// TestHookPages: a long list comes in pages.
func TestHookPages(t *testing.T) {
	t.Parallel()
	w := open(t, 1, hook.Options{})
	for i := range 11 {
		w.says(w.hooks[0], "42", group, fmt.Sprintf("add h%02d", i))
	}
	_, card, _ := w.presses(w.hooks[0], "42", group, "hk:list::0")
	got := buttonsOf(card)
	if len(got) != 11 || got[9] != "hk:show:h09:0" || got[10] != "hk:list::1" {
		t.Errorf("%q", got)
	}
	_, card, _ = w.presses(w.hooks[0], "42", group, "hk:list::1")
	if got := buttonsOf(card); !slices.Equal(got, []string{"hk:show:h10:1", "hk:list::0"}) {
		t.Errorf("%q", got)
	}
}
