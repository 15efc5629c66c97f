package telegramtest_test

import (
	"strings"
	"testing"
	"time"

	"github.com/go-telegram/bot/models"
	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

func TestEntitiesOfWhatPeopleSay(t *testing.T) {
	t.Parallel()
	e := func(kind models.MessageEntityType, offset, length int) models.MessageEntity {
		return models.MessageEntity{Type: kind, Offset: offset, Length: length}
	}
	for _, row := range []struct {
		text string
		want []models.MessageEntity
	}{
		{"/stop", []models.MessageEntity{e("bot_command", 0, 5)}},
		{"/stop@zephbot now", []models.MessageEntity{e("bot_command", 0, 13)}},
		{"привет /stop", []models.MessageEntity{e("bot_command", 7, 5)}},
		{"😀 @zephbot hi", []models.MessageEntity{e("mention", 3, 8)}},
		{"a/b and me@example and /a/b", nil},
		{"@ab is too short", nil},
		{"see https://a.example/x, ok", []models.MessageEntity{e("url", 4, 19)}},
		{"(/help)", []models.MessageEntity{e("bot_command", 1, 5)}},
		{"/héllo", nil},
	} {
		w := setup(t, telegramtest.Options{})
		w.Say(ann, ann, telegramtest.Message{Text: row.text})
		if diff := cmp.Diff(row.want, w.Chat(ann)[0].Entities); diff != "" {
			t.Errorf("%q: %s", row.text, diff)
		}
		w.Close()
	}
}

// TestWhatTheBotSees is privacy mode.
func TestWhatTheBotSees(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		opt  telegramtest.Options
		chat int64
		say  telegramtest.Message
		want bool
	}{
		"plain":              {telegramtest.Options{}, group, telegramtest.Message{Text: "hi"}, false},
		"privacy off":        {telegramtest.Options{PrivacyOff: true}, group, telegramtest.Message{Text: "hi"}, true},
		"admin":              {telegramtest.Options{}, forum, telegramtest.Message{Text: "hi"}, true},
		"command":            {telegramtest.Options{}, group, telegramtest.Message{Text: "/help"}, true},
		"command to it":      {telegramtest.Options{}, group, telegramtest.Message{Text: "/help@ZephBot"}, true},
		"command to another": {telegramtest.Options{}, group, telegramtest.Message{Text: "/help@otherbot"}, false},
		"mention":            {telegramtest.Options{}, group, telegramtest.Message{Text: "ok @zephbot"}, true},
		"other mention":      {telegramtest.Options{}, group, telegramtest.Message{Text: "ok @zephbots"}, false},
		"caption":            {telegramtest.Options{}, group, telegramtest.Message{Text: "😀 @zephbot", Photo: &telegramtest.File{}}, true},
		"reply to the bot":   {telegramtest.Options{}, group, telegramtest.Message{Text: "why?", ReplyTo: 1}, true},
		"reply to a person":  {telegramtest.Options{}, group, telegramtest.Message{Text: "why?", ReplyTo: 2}, false},
		"via the bot":        {telegramtest.Options{}, group, telegramtest.Message{Text: "x", ViaBot: &telegramtest.User{ID: 7000000001}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, row.opt)
			if row.chat == group {
				w.send(group, "by the bot")
				w.Say(bob, group, telegramtest.Message{Text: "by bob"})
			}
			_, id := w.Say(ann, row.chat, row.say)
			if got := id != 0; got != row.want {
				t.Errorf("seen: %t, want %t (problems: %q)", got, row.want, w.Problems())
			}
		})
	}
}

func TestMisuseIsTold(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	for _, row := range []struct {
		user, chat int64
		m          telegramtest.Message
		want       string
	}{
		{99, 99, telegramtest.Message{Text: "x"}, "no user 99"},
		{ann, -1, telegramtest.Message{Text: "x"}, "no chat -1"},
		{carol, group, telegramtest.Message{Text: "x"}, "user 13 is not in chat -500"},
		{ann, ann, telegramtest.Message{}, "needs text"},
		{ann, ann, telegramtest.Message{Text: "x", ReplyTo: 5}, "no message 5"},
		{ann, forum, telegramtest.Message{Text: "x", Thread: 5}, "no topic 5"},
		{ann, ann, telegramtest.Message{Text: strings.Repeat("x", 4097)}, "4097 UTF-16 units"},
		{ann, ann, telegramtest.Message{Text: "x", Entities: []models.MessageEntity{{Type: "bold", Offset: 3, Length: 3}}}, "ends after the end"},
	} {
		_, err := w.Post(row.user, row.chat, row.m)
		if err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%d in %d: got %v, want %q", row.user, row.chat, err, row.want)
		}
	}
	if m, u := w.Say(99, 99, telegramtest.Message{Text: "x"}); m != 0 || u != 0 || len(w.Problems()) != 1 {
		t.Errorf("Say: %d %d %q", m, u, w.Problems())
	}
	w.AddFault(telegramtest.Fault{Kind: "odd"})
	w.AddFault(telegramtest.Fault{Kind: "500", Method: "["})
	w.AddGroup(telegramtest.Group{ID: 5})
	w.AddPrivate(999)
	if len(w.Problems()) != 5 || len(w.Faults()) != 0 {
		t.Errorf("problems: %q", w.Problems())
	}
}

func TestPresses(t *testing.T) {
	t.Parallel()
	const tooOld = "Bad Request: query is too old and response timeout expired or query ID is invalid"
	w := setup(t, telegramtest.Options{})
	m := w.send(ann, "x", keyboard(p{"text": "Yes", "callback_data": "y"}, p{"text": "No", "disabled": p{}}))
	if _, err := w.PressButton(ann, ann, m, "No"); err == nil {
		t.Error("pressed a disabled button")
	}
	id, err := w.PressButton(ann, ann, m, "Yes")
	if err != nil {
		t.Fatal(err)
	}
	got := w.poll(nil)
	if len(got) != 1 || got[0].Callback["data"] != "y" || got[0].Callback["id"] != id {
		t.Fatalf("updates: %+v", got)
	}
	if msg, _ := got[0].Callback["message"].(map[string]any); msg["message_id"] != float64(m) || msg["date"] == 0.0 {
		t.Errorf("message of the press: %v", msg)
	}
	w.refused("answerCallbackQuery", p{"callback_query_id": id, "text": strings.Repeat("x", 201)}, 400, "Bad Request: MESSAGE_TOO_LONG")
	w.must("answerCallbackQuery", p{"callback_query_id": id, "text": "ok", "show_alert": true}, nil)
	w.refused("answerCallbackQuery", p{"callback_query_id": id}, 400, tooOld)
	if a, ok := w.CallbackAnswered(id); !ok || a.Text != "ok" || !a.ShowAlert || a.User != ann || a.Data != "y" {
		t.Errorf("answer: %+v %t", a, ok)
	}
	late, err := w.Press(ann, ann, m, "forged")
	if err != nil {
		t.Fatal(err)
	}
	w.clock.add(150 * time.Second)
	w.refused("answerCallbackQuery", p{"callback_query_id": late}, 400, tooOld)
	w.must("deleteMessage", p{"chat_id": ann, "message_id": m}, nil)
	if _, err := w.Press(ann, ann, m, "y"); err != nil {
		t.Fatal(err)
	}
	got = w.poll(p{"offset": got[0].ID + 1})
	if msg, _ := got[0].Callback["message"].(map[string]any); len(got) != 1 || msg["date"] != 0.0 {
		t.Errorf("a press on a deleted message must carry date 0: %+v", got)
	}
}

func TestBlocking(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	status := func(u update, key string) any {
		m, _ := u.Member[key].(map[string]any)
		return m["status"]
	}
	if _, err := w.Block(ann); err != nil {
		t.Fatal(err)
	}
	w.refused("sendMessage", p{"chat_id": ann, "text": "x"}, 403, "Forbidden: bot was blocked by the user")
	w.refused("sendChatAction", p{"chat_id": ann, "action": "typing"}, 403, "Forbidden: bot was blocked by the user")
	if _, err := w.Block(ann); err == nil {
		t.Error("blocked twice")
	}
	if _, err := w.Unblock(ann); err != nil {
		t.Fatal(err)
	}
	w.send(ann, "back")
	got := w.poll(nil)
	if len(got) != 2 || status(got[0], "old_chat_member") != "member" || status(got[0], "new_chat_member") != "kicked" ||
		status(got[1], "old_chat_member") != "kicked" || status(got[1], "new_chat_member") != "member" {
		t.Errorf("updates: %+v", got)
	}
}

func TestGroupsComeAndGo(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	if _, err := w.Leave(ann, forum); err != nil {
		t.Fatal(err)
	}
	w.refused("sendMessage", p{"chat_id": forum, "text": "x"}, 403, "Forbidden: bot was kicked from the supergroup chat")
	if _, u := w.Say(ann, forum, telegramtest.Message{Text: "/help"}); u != 0 {
		t.Error("the bot hears a group it was kicked from")
	}
	if _, err := w.Join(ann, forum); err != nil {
		t.Fatal(err)
	}
	w.send(forum, "x")
	if _, u := w.Say(ann, forum, telegramtest.Message{Text: "plain"}); u != 0 {
		t.Error("back as a plain member the bot must not see everything")
	}
	if _, err := w.Promote(ann, forum); err != nil {
		t.Fatal(err)
	}
	if _, u := w.Say(ann, forum, telegramtest.Message{Text: "plain"}); u == 0 {
		t.Error("an admin sees everything")
	}
	w.must("leaveChat", p{"chat_id": group}, nil)
	w.refused("sendMessage", p{"chat_id": group, "text": "x"}, 403, "Forbidden: bot is not a member of the group chat")
	w.AddGroup(telegramtest.Group{ID: -1009, Title: "Foreign", Members: []int64{ann}, NoBot: true})
	w.refused("sendMessage", p{"chat_id": -1009, "text": "x"}, 403, "Forbidden: bot is not a member of the supergroup chat")
	if err := w.Enter(carol, group); err != nil {
		t.Fatal(err)
	}
	w.Say(carol, group, telegramtest.Message{Text: "hello"})
	if err := w.Exit(carol, group); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Post(carol, group, telegramtest.Message{Text: "hello"}); err == nil {
		t.Error("spoke after leaving")
	}
}

func TestMigration(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	next, err := w.Migrate(group)
	if err != nil {
		t.Fatal(err)
	}
	r := w.refused("sendMessage", p{"chat_id": group, "text": "x"}, 400, "Bad Request: group chat was upgraded to a supergroup chat")
	if r.Parameters.MigrateTo != next || next >= -1000000000000 {
		t.Errorf("migrate_to_chat_id %d, new id %d", r.Parameters.MigrateTo, next)
	}
	got := w.poll(nil)
	if len(got) != 2 || got[0].Message["migrate_to_chat_id"] != float64(next) || got[1].Message["migrate_from_chat_id"] != float64(group) {
		t.Errorf("updates: %+v", got)
	}
	w.send(next, "there")
	if _, u := w.Say(bob, next, telegramtest.Message{Text: "/help"}); u == 0 {
		t.Error("members did not move")
	}
	if _, err := w.Migrate(next); err == nil {
		t.Error("migrated a supergroup")
	}
}

func TestFakeSenders(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	w.AnonymousSay(forum, telegramtest.Message{Text: "admin"})
	w.ChannelSay(forum, telegramtest.Group{ID: -1007, Title: "News"}, telegramtest.Message{Text: "channel"})
	got := w.poll(nil)
	if len(got) != 2 {
		t.Fatalf("updates: %+v", got)
	}
	for i, want := range []struct{ from, sender float64 }{{1087968824, float64(forum)}, {136817688, -1007}} {
		from, _ := got[i].Message["from"].(map[string]any)
		sender, _ := got[i].Message["sender_chat"].(map[string]any)
		if from["id"] != want.from || sender["id"] != want.sender {
			t.Errorf("%d: from %v sender_chat %v", i, from, sender)
		}
	}
}

func TestEditsByPeople(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	id, _ := w.Say(ann, group, telegramtest.Message{Text: "hello"})
	if u, err := w.EditText(ann, group, id, "hello @zephbot"); err != nil || u == 0 {
		t.Errorf("an edit that mentions the bot: %d %v", u, err)
	}
	if _, err := w.EditText(bob, group, id, "mine"); err == nil {
		t.Error("edited somebody else's message")
	}
	got := w.poll(nil)
	if len(got) != 1 || got[0].Edited["text"] != "hello @zephbot" || got[0].Edited["edit_date"] == nil {
		t.Errorf("updates: %+v", got)
	}
	if err := w.DeleteMessage(group, id); err != nil {
		t.Fatal(err)
	}
	if m, _ := w.Message(group, id); !m.Deleted || !m.Edited {
		t.Errorf("shown: %+v", m)
	}
}

func TestAlbum(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	for range 3 {
		w.Say(ann, ann, telegramtest.Message{Photo: &telegramtest.File{Data: []byte("x")}, MediaGroup: "g1"})
	}
	got := w.poll(nil)
	if len(got) != 3 || got[2].Message["media_group_id"] != "g1" || got[2].Message["photo"] == nil {
		t.Errorf("updates: %+v", got)
	}
}
