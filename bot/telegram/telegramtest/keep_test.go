package telegramtest_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// everyKind fills a world with one message of each kind.
func everyKind(t *testing.T, w *world) {
	t.Helper()
	file := func(name string) *telegramtest.File {
		return &telegramtest.File{Name: name, MIME: "x/y", Data: []byte("bytes of " + name), Width: 8, Height: 6, Duration: 3, Emoji: "🎲"}
	}
	for _, m := range []telegramtest.Message{
		{Text: "hello @zephbot /help https://example.org"},
		{Text: "caption", Document: file("d")},
		{Photo: file("p")},
		{Voice: file("v")},
		{Audio: file("a")},
		{Video: file("f")},
		{Sticker: file("s")},
		{VideoNote: file("n")},
		{Animation: file("g")},
		{Location: telegramtest.At(1.5, 2.5)},
		{Contact: telegramtest.Card("Eve", "123")},
		{Venue: telegramtest.Venue("Bar", "Street", 1, 2)},
		{Poll: telegramtest.Poll("which?", map[string]int{"a": 1})},
		{Dice: telegramtest.Dice("🎲", 6)},
		{Text: "of two", Photo: file("one"), MediaGroup: "g"},
		{Photo: file("two"), MediaGroup: "g"},
		{Text: "forwarded", ForwardOrigin: telegramtest.Hidden("Somebody")},
		{Text: "via", ViaBot: &telegramtest.User{ID: 9, Username: "gif"}},
		{Text: "answer", ReplyTo: 1, Quote: "hello"},
	} {
		if _, err := w.Post(ann, ann, m); err != nil {
			t.Fatal(err)
		}
	}
	buttons := `{"inline_keyboard":[[{"text":"Yes","callback_data":"y","style":"success"},{"text":"No","disabled":{}}]]}`
	w.must("sendMessage", p{"chat_id": ann, "text": "bold", "entities": json.RawMessage(`[{"type":"bold","offset":0,"length":4}]`), "reply_markup": json.RawMessage(buttons)}, nil)
	w.must("setMessageReaction", p{"chat_id": ann, "message_id": 1, "reaction": json.RawMessage(`[{"type":"emoji","emoji":"👀"}]`)}, nil)
	w.must("editMessageText", p{"chat_id": ann, "message_id": 20, "text": "changed"}, nil)
	if err := w.DeleteMessage(ann, 2); err != nil {
		t.Fatal(err)
	}
	topic, err := w.StartTopic(ann, forum, "Plans")
	if err != nil {
		t.Fatal(err)
	}
	w.must("sendMessage", p{"chat_id": forum, "message_thread_id": topic, "text": "in it"}, nil)
	w.must("sendMessage", p{
		"chat_id": forum, "text": "alone", "ephemeral_message_parameters": json.RawMessage(`{"receiver_user_id":12}`),
	}, nil)
}

// TestEverythingIsRestored: a server that gets what another one kept shows the same and goes on with the next ids.
func TestEverythingIsRestored(t *testing.T) {
	t.Parallel()
	before := setup(t, telegramtest.Options{})
	everyKind(t, before)
	after := setup(t, telegramtest.Options{})
	for _, f := range before.Files() {
		data, _ := before.FileData(f.ID)
		if err := after.RestoreFile(f, data); err != nil {
			t.Fatal(err)
		}
	}
	if err := after.RestoreTopics(forum, before.Topics(forum)); err != nil {
		t.Fatal(err)
	}
	for _, chat := range []int64{ann, forum} {
		raw, err := json.Marshal(before.Keep(chat))
		if err != nil {
			t.Fatal(err)
		}
		var kept []telegramtest.Kept
		if err := json.Unmarshal(raw, &kept); err != nil {
			t.Fatal(err)
		}
		if err := after.Restore(chat, kept); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(before.Chat(chat), after.Chat(chat)); diff != "" {
			t.Errorf("chat %d (-want +got):\n%s", chat, diff)
		}
		again, err := json.Marshal(after.Keep(chat))
		if err != nil || string(again) != string(raw) {
			t.Errorf("chat %d is kept differently (%v):\n%s\n%s", chat, err, raw, again)
		}
	}
	if diff := cmp.Diff(before.Ephemeral(forum, bob), after.Ephemeral(forum, bob)); diff != "" || len(after.Ephemeral(forum, ann)) != 0 {
		t.Errorf("ephemeral (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Topics(forum), after.Topics(forum)); diff != "" {
		t.Errorf("topics (-want +got):\n%s", diff)
	}
	// The next ones of both are the same too.
	for _, w := range []*world{before, after} {
		if _, err := w.Post(ann, ann, telegramtest.Message{Document: &telegramtest.File{Name: "new", Data: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
	}
	a, b := before.Chat(ann), after.Chat(ann)
	if diff := cmp.Diff(a[len(a)-1], b[len(b)-1]); diff != "" {
		t.Errorf("the next message (-want +got):\n%s", diff)
	}
	if n := after.PendingUpdates(); n != 1 {
		t.Errorf("%d updates: only the new message is news", n)
	}
}

func TestWhatIsNotRestored(t *testing.T) {
	t.Parallel()
	from := setup(t, telegramtest.Options{})
	everyKind(t, from)
	kept := from.Keep(ann)
	w := setup(t, telegramtest.Options{})
	for name, tc := range map[string]struct {
		chat   int64
		change func(*telegramtest.Kept)
		want   string
	}{
		"no chat":     {99, nil, "no chat 99"},
		"gap":         {ann, func(k *telegramtest.Kept) { k.Body.ID = 5 }, "cannot follow"},
		"nobody":      {ann, func(k *telegramtest.Kept) { k.Body.From = nil }, "nobody"},
		"no date":     {ann, func(k *telegramtest.Kept) { k.Date = k.EditedAt }, "no date"},
		"no topic":    {forum, func(k *telegramtest.Kept) { k.Body.ID, k.Body.IsTopicMessage = 8, true }, "topic 0"},
		"entity":      {ann, func(k *telegramtest.Kept) { k.Body.Text = "" }, "entity"},
		"lost a file": {ann, func(k *telegramtest.Kept) { *k = kept[2]; k.Body.ID = 1 }, "is missing"},
	} {
		one := []telegramtest.Kept{kept[0]}
		if tc.change != nil {
			tc.change(&one[0])
		}
		if err := w.Restore(tc.chat, one); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	if n := len(w.Chat(ann)) + len(w.Chat(forum)); n != 0 {
		t.Errorf("%d messages were restored all the same", n)
	}
	f := from.Files()[0]
	if err := w.RestoreFile(f, nil); err != nil {
		t.Error(err)
	}
	if err := w.RestoreFile(f, nil); err == nil {
		t.Error("a file was restored twice")
	}
	if err := w.RestoreTopics(group, nil); err == nil {
		t.Error("topics of a basic group")
	}
}

// TestPressAlone: only the receiver of an ephemeral message presses its buttons, and the bot is told which one it was.
func TestPressAlone(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	w.must("sendMessage", p{
		"chat_id": forum, "text": "alone", "ephemeral_message_parameters": json.RawMessage(`{"receiver_user_id":12}`),
		"reply_markup": json.RawMessage(`{"inline_keyboard":[[{"text":"Yes","callback_data":"y"},{"text":"No","disabled":{}}]]}`),
	}, nil)
	for _, tc := range []struct {
		user int64
		id   int
		data string
	}{{ann, 1, "y"}, {bob, 2, "y"}, {bob, 1, "n"}, {bob, 1, ""}} {
		if _, err := w.PressAlone(tc.user, forum, tc.id, tc.data); err == nil {
			t.Errorf("%+v was pressed", tc)
		}
	}
	id, err := w.PressAlone(bob, forum, 1, "y")
	if err != nil {
		t.Fatal(err)
	}
	raw := w.call("getUpdates", p{"timeout": 0}).raw
	for _, part := range []string{`"id":"` + id + `"`, `"message_id":0`, `"ephemeral_message_id":1`, `"data":"y"`} {
		if !strings.Contains(raw, part) {
			t.Errorf("the update lacks %s: %s", part, raw)
		}
	}
}
