package telegramtest_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

func TestDeleting(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	own := w.send(ann, "own")
	hers, _ := w.Say(ann, ann, telegramtest.Message{Text: "hers"})
	w.must("deleteMessages", p{"chat_id": ann, "message_ids": []int{own, 77, hers}}, nil)
	for _, m := range w.Chat(ann) {
		if !m.Deleted {
			t.Errorf("not deleted: %+v", m)
		}
	}
	theirs, _ := w.Say(bob, forum, telegramtest.Message{Text: "spam"})
	w.must("deleteMessage", p{"chat_id": forum, "message_id": theirs}, nil) // the bot is an admin there
	old := w.send(ann, "old")
	w.clock.add(48 * time.Hour)
	w.refused("deleteMessage", p{"chat_id": ann, "message_id": old}, 400, "Bad Request: message can't be deleted")
}

func TestDrafts(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	draft := func(id int, text string, stop bool) {
		t.Helper()
		w.must("sendMessageDraft", p{"chat_id": ann, "draft_id": fmt.Sprint(id), "text": text, "can_stop": stop}, nil)
	}
	draft(1, "", false)
	draft(1, "half", false)
	if d, ok := w.Draft(ann); !ok || d.Text != "half" || d.Frames != 2 {
		t.Errorf("draft: %+v %t", d, ok)
	}
	if _, err := w.Stop(ann, ann, 1); err == nil {
		t.Error("stopped a draft without a Stop button")
	}
	w.clock.add(29 * time.Second)
	draft(1, "half", false) // the same text is fine and renews the life
	w.clock.add(29 * time.Second)
	if _, ok := w.Draft(ann); !ok {
		t.Error("draft gone before 30 s")
	}
	w.clock.add(time.Second)
	if _, ok := w.Draft(ann); ok {
		t.Error("draft alive after 30 s")
	}
	draft(2, "more", true)
	w.send(ann, "real")
	if _, ok := w.Draft(ann); ok {
		t.Error("a message by the bot must wipe the draft")
	}
	draft(3, "stop me", true)
	if _, err := w.Stop(ann, ann, 2); err == nil {
		t.Error("stopped a draft that is not shown")
	}
	id, err := w.Stop(ann, ann, 3)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Draft(ann); ok {
		t.Error("a stopped draft is still shown")
	}
	got := w.poll(nil)
	if len(got) != 1 || got[0].ID != id || got[0].Stopped["draft_id"] != 3.0 {
		t.Errorf("updates after Stop: %+v", got)
	}
	w.must("sendMessageDraft", p{"chat_id": ann, "draft_id": 4, "text": "keep", "can_stop": true, "keep_on_stop": true}, nil)
	if _, err := w.Stop(ann, ann, 4); err != nil {
		t.Fatal(err)
	}
	if _, ok := w.Draft(ann); !ok {
		t.Error("keep_on_stop was not kept")
	}
}

func TestTyping(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	typing := func(chat int64, thread int) {
		t.Helper()
		w.must("sendChatAction", p{"chat_id": chat, "action": "typing", "message_thread_id": thread}, nil)
	}
	typing(ann, 0)
	w.clock.add(4 * time.Second)
	if got := w.Typing(ann); len(got) != 1 || got[0].Action != "typing" {
		t.Errorf("after 4 s: %+v", got)
	}
	w.clock.add(time.Second)
	if got := w.Typing(ann); got != nil {
		t.Errorf("after 5 s: %+v", got)
	}
	typing(forum, 1) // General takes its id here
	typing(forum, 7)
	w.send(forum, "x", p{"message_thread_id": 7})
	if got := w.Typing(forum); len(got) != 1 || got[0].Thread != 0 {
		t.Errorf("a message must end typing in its own thread only: %+v", got)
	}
}

func TestReactions(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	id, _ := w.Say(ann, ann, telegramtest.Message{Text: "x"})
	for _, row := range []struct {
		set  []p
		want []string
	}{
		{[]p{{"type": "emoji", "emoji": "👀"}}, []string{"👀"}},
		{[]p{{"type": "emoji", "emoji": "⚡️"}}, []string{"⚡️"}},
		{[]p{}, nil},
	} {
		w.must("setMessageReaction", p{"chat_id": ann, "message_id": id, "reaction": row.set}, nil)
		m, _ := w.Message(ann, id)
		if diff := cmp.Diff(row.want, m.Reactions); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{})
	w.Say(ann, ann, telegramtest.Message{Text: "look", Document: &telegramtest.File{Name: "a.txt", Data: []byte("hello")}})
	w.Say(ann, ann, telegramtest.Message{Video: &telegramtest.File{Name: "big.mp4", Size: 20<<20 + 1}})
	got := w.poll(nil)
	if len(got) != 2 || got[0].Message["caption"] != "look" {
		t.Fatalf("updates: %+v", got)
	}
	doc, _ := got[0].Message["document"].(map[string]any)
	var f struct {
		Path string `json:"file_path"`
		Size int    `json:"file_size"`
	}
	w.must("getFile", p{"file_id": doc["file_id"]}, &f)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.url+"/file/bot"+w.Token()+"/"+f.Path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if r := do(req); r.raw != "hello" || f.Size != 5 {
		t.Errorf("download: %+v %+v", r, f)
	}
	video, _ := got[1].Message["video"].(map[string]any)
	w.refused("getFile", p{"file_id": video["file_id"]}, 400, "Bad Request: file is too big")

	var form bytes.Buffer
	mw := multipart.NewWriter(&form)
	part, err := mw.CreateFormFile("document", "out.log")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := part.Write([]byte("log")); err != nil {
		t.Fatal(err)
	}
	if err := mw.WriteField("chat_id", "11"); err != nil {
		t.Fatal(err)
	}
	if err := mw.WriteField("caption", "the log"); err != nil {
		t.Fatal(err)
	}
	if err := mw.Close(); err != nil {
		t.Fatal(err)
	}
	if r := w.post("sendDocument", mw.FormDataContentType(), form.Bytes()); !r.OK {
		t.Fatalf("sendDocument: %+v", r)
	}
	chat := w.Chat(ann)
	last := chat[len(chat)-1]
	if last.Attachment == nil || last.Attachment.Name != "out.log" || last.Text != "the log" {
		t.Fatalf("shown: %+v", last)
	}
	if data, ok := w.FileData(last.Attachment.FileID); !ok || string(data) != "log" {
		t.Errorf("sent bytes: %q", data)
	}
	w.refused("editMessageText", p{"chat_id": ann, "message_id": last.MessageID, "text": "x"}, 400, "Bad Request: there is no text in the message to edit")
	w.must("editMessageCaption", p{"chat_id": ann, "message_id": last.MessageID, "caption": "new"}, nil)
	w.must("sendDocument", p{"chat_id": ann, "document": last.Attachment.FileID}, nil)
}

func TestTopics(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{PrivateTopics: true})
	var made struct {
		ID int `json:"message_thread_id"`
	}
	w.must("createForumTopic", p{"chat_id": forum, "name": "Made"}, &made)
	w.must("editForumTopic", p{"chat_id": forum, "message_thread_id": made.ID, "name": "Renamed"}, nil)
	want := []telegramtest.Topic{{ID: 1, Name: "General"}, {ID: 7, Name: "Seven"}, {ID: made.ID, Name: "Renamed"}}
	if diff := cmp.Diff(want, w.Topics(forum)); diff != "" {
		t.Error(diff)
	}
	w.must("createForumTopic", p{"chat_id": ann, "name": "Private"}, &made)
	w.send(ann, "there", p{"message_thread_id": made.ID})
	id, err := w.StartTopic(ann, ann, "Hers")
	if err != nil {
		t.Fatal(err)
	}
	w.Say(ann, ann, telegramtest.Message{Text: "in it", Thread: id})
	got := w.poll(nil)
	if len(got) != 2 || got[1].Message["message_thread_id"] != float64(id) || got[1].Message["is_topic_message"] != true {
		t.Errorf("updates: %+v", got)
	}
}

func TestProfile(t *testing.T) {
	t.Parallel()
	w := setup(t, telegramtest.Options{Username: "my_bot", Name: "My", PrivacyOff: true})
	var me map[string]any
	w.must("getMe", nil, &me)
	if me["username"] != "my_bot" || me["can_read_all_group_messages"] != true || me["id"] != float64(w.BotID()) {
		t.Errorf("getMe: %v", me)
	}
	list := []p{{"command": "help", "description": "Help"}}
	w.must("setMyCommands", p{"commands": list}, nil)
	w.must("setMyCommands", p{"commands": list, "scope": p{"type": "chat", "chat_id": group}, "language_code": "de"}, nil)
	var got []map[string]any
	w.must("getMyCommands", p{"scope": p{"type": "chat", "chat_id": group}, "language_code": "de"}, &got)
	if len(got) != 1 || got[0]["command"] != "help" {
		t.Errorf("getMyCommands: %v", got)
	}
	w.must("deleteMyCommands", nil, nil)
	if all := w.Commands(); len(all) != 1 || len(all["chat:-500/de"]) != 1 {
		t.Errorf("Commands: %v", all)
	}
	w.must("setMyDescription", p{"description": "d"}, nil)
	if w.About("description", "") != "d" {
		t.Error("description was not kept")
	}
	var member map[string]any
	w.must("getChatMember", p{"chat_id": forum, "user_id": ann}, &member)
	if member["status"] != "administrator" {
		t.Errorf("getChatMember: %v", member)
	}
	w.must("getChatMember", p{"chat_id": forum, "user_id": carol}, &member)
	if member["status"] != "left" {
		t.Errorf("getChatMember of a stranger: %v", member)
	}
	var admins []map[string]any
	w.must("getChatAdministrators", p{"chat_id": forum}, &admins)
	if len(admins) != 2 {
		t.Errorf("getChatAdministrators: %v", admins)
	}
	var chat map[string]any
	w.must("getChat", p{"chat_id": forum}, &chat)
	if chat["is_forum"] != true || chat["type"] != "supergroup" {
		t.Errorf("getChat: %v", chat)
	}
	w.clock.add(10 * time.Minute)
	w.must("close", nil, nil)
	w.must("logOut", nil, nil)
	w.refused("getMe", nil, 400, "Bad Request: Logged out")
}
