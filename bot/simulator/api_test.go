package simulator_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/simulator"
)

const (
	ann, ben, cy, dora, team = simulator.Ann, simulator.Ben, simulator.Cy, simulator.Dora, simulator.Team
	deploys                  = simulator.DeploysTopic
)

func TestPrivateChat(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.say(ann, ann, 0, "hello /help")
	m := s.awaitText(ann, ann, 0, "echo: hello /help")
	if !m.FromBot || m.Name != "Zeph" || m.Reply == nil || m.Reply.Text != "hello /help" || m.Reply.Name != "Ann" {
		t.Errorf("answer: %+v, reply %+v", m, m.Reply)
	}
	s.awaitBot("running") // it answers before the page is told that it runs
	v := s.view(ann, ann, 0)
	if v.Bot.State != "running" || v.Bot.PID == 0 || v.Bot.Starts != 1 {
		t.Errorf("bot: %+v", v.Bot)
	}
	if diff := cmp.Diff([]simulator.ViewCommand{{Command: "help", Text: "What I can do"}, {Command: "stop", Text: "Stop"}}, v.Commands); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
	if row := v.Chats[0]; row.Unread != 1 || row.LastText != "echo: hello /help" || row.LastName != "Zeph" {
		t.Errorf("row: %+v", row)
	}
	s.post("read", p{"me": ann, "chat": ann, "thread": 0, "message": m.MessageID}, nil)
	if v := s.view(ann, ann, 0); v.Chats[0].Unread != 0 || v.People[0].Unread != 0 {
		t.Errorf("after reading: %+v", v.Chats[0])
	}
}

func TestGroup(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.say(ben, team, deploys, "just talking")
	s.say(ben, team, deploys, "@zephbot hi")
	s.awaitText(cy, team, deploys, "echo: @zephbot hi")
	v := s.view(cy, team, deploys)
	if diff := cmp.Diff([]string{"Ben: just talking", "Ben: @zephbot hi", "Zeph: echo: @zephbot hi"}, texts(v)); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	if !v.Messages[0].Unseen || v.Messages[1].Unseen {
		t.Errorf("the first unread message is not marked alone")
	}
	var rows []string
	for _, r := range v.Chats {
		rows = append(rows, fmt.Sprintf("%s>%s %d", r.Group, r.Title, r.Unread))
	}
	if diff := cmp.Diff([]string{">Zeph 0", "Team>General 0", "Team>Deploys 3"}, rows); diff != "" {
		t.Errorf("chats (-want +got):\n%s", diff)
	}
	if n := len(s.view(cy, team, 0).Messages); n != 0 {
		t.Errorf("General shows %d messages of Deploys", n)
	}
	if rows := s.view(dora, dora, 0).Chats; len(rows) != 2 || rows[1].Title != "Garden" {
		t.Errorf("Dora sees %d chats", len(rows))
	}
	var made struct{ Thread int }
	s.post("topic", p{"me": cy, "chat": team, "name": "Plans"}, &made)
	s.say(cy, team, made.Thread, "@zephbot plans")
	s.awaitText(ben, team, made.Thread, "echo: @zephbot plans")
	if m := s.view(ben, team, made.Thread).Messages[0]; m.Service != "forum_topic_created" || m.Topic != "Plans" {
		t.Errorf("service message: %+v", m)
	}
}

func TestButtons(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.say(ann, ann, 0, "ask")
	m := s.awaitText(ann, ann, 0, "✋ May I run this?\nrm *.tmp")
	press := func(row, column int, label string) p {
		return p{"me": ann, "chat": ann, "message": m.MessageID, "row": row, "column": column, "label": label}
	}
	s.refused("press", press(1, 0, "Later"), "switched off")
	s.refused("press", press(0, 0, "Deny"), "has changed to")
	s.refused("press", press(0, 7, "Deny"), "gone")
	var pressed struct{ Press string }
	s.post("press", press(0, 1, "Deny"), &pressed)
	edited := s.awaitText(ann, ann, 0, "⛔ Denied by Ann")
	if !edited.Edited || edited.Keyboard != nil || edited.MessageID != m.MessageID {
		t.Errorf("after the press: %+v", edited)
	}
	want := []simulator.ViewAnswer{{Seq: 1, ID: pressed.Press, Text: "Thanks, Ann", Alert: true}}
	if diff := cmp.Diff(want, s.view(ann, ann, 0).Answers); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	if got := s.view(ben, ben, 0).Answers; len(got) != 0 {
		t.Errorf("Ben sees Ann's answers: %v", got)
	}
	s.refused("press", press(0, 0, "Approve"), "gone")
}

func TestDraftAndTyping(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.say(ben, team, deploys, "@zephbot typing")
	v := s.await(ben, team, deploys, func(v *simulator.View) bool { return v.Typing == "typing" })
	if v.Until.IsZero() || !v.Chats[2].Typing {
		t.Errorf("typing: %+v", v)
	}
	s.say(ann, ann, 0, "draft")
	v = s.await(ann, ann, 0, func(v *simulator.View) bool { return v.Draft != nil })
	if v.Draft.Text != "half a sen" || !v.Draft.CanStop {
		t.Errorf("draft: %+v", v.Draft)
	}
	s.refused("stop", p{"me": ann, "chat": ann, "draft": 8}, "no draft 8")
	s.post("stop", p{"me": ann, "chat": ann, "draft": v.Draft.ID}, nil)
	s.awaitText(ann, ann, 0, "stopped")
}

func TestEditAndDelete(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	id := s.say(ann, ann, 0, "one")
	s.post("edit", p{"me": ann, "chat": ann, "message": id, "text": "two"}, nil)
	if m := s.awaitText(ann, ann, 0, "two"); !m.Edited || m.MessageID != id {
		t.Errorf("edited: %+v", m)
	}
	theirs := s.say(ben, team, 0, "mine")
	s.refused("delete", p{"me": cy, "chat": team, "message": theirs}, "not yours")
	s.refused("edit", p{"me": cy, "chat": team, "message": theirs, "text": "x"}, "has no message")
	s.post("delete", p{"me": ben, "chat": team, "message": theirs}, nil)
	if n := len(s.view(ben, team, 0).Messages); n != 0 {
		t.Errorf("%d messages after deleting", n)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.post("say", p{"me": ann, "chat": ann, "text": "look", "files": []p{{"name": "a.txt", "mime": "text/plain", "data": []byte("data of a")}}}, nil)
	s.awaitText(ann, ann, 0, "got a.txt")
	s.say(ann, ann, 0, "file")
	v := s.await(ann, ann, 0, func(v *simulator.View) bool {
		return slices.ContainsFunc(v.Messages, func(m simulator.ViewMessage) bool { return m.FromBot && m.Attachment != nil })
	})
	a := v.Messages[len(v.Messages)-1].Attachment
	path := fmt.Sprintf("/api/file?me=%d&id=%s", ann, a.FileID)
	status, head, body := s.request(http.MethodGet, path, nil, nil)
	if status != http.StatusOK || string(body) != "<script>alert(1)</script>" {
		t.Errorf("file: %d %q", status, body)
	}
	want := map[string]string{
		"Content-Type": "application/octet-stream", "Content-Disposition": "attachment; filename=report.html",
		"Content-Security-Policy": "sandbox; default-src 'none'", "X-Content-Type-Options": "nosniff",
	}
	for k, v := range want {
		if head.Get(k) != v {
			t.Errorf("%s: %q, want %q", k, head.Get(k), v)
		}
	}
	for _, path := range []string{fmt.Sprintf("/api/file?me=%d&id=%s", ben, a.FileID), "/api/file?me=1001&id=nope", "/api/file?me=5&id=" + a.FileID} {
		if status, _, _ := s.request(http.MethodGet, path, nil, nil); status != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, status)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.awaitBot("running")
	s.post("fault", p{"kind": "duplicate", "count": 1}, nil)
	s.post("fault", p{"kind": "429", "count": 2}, nil)
	s.post("fault", p{"kind": "slow", "count": 1}, nil)
	want := map[string]int{"429": 2, "cut": 0, "duplicate": 1, "slow": 1}
	if diff := cmp.Diff(want, s.view(ann, ann, 0).Faults); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	s.refused("fault", p{"kind": "fire", "count": 1}, "unknown fault")
	s.refused("fault", p{"kind": "429", "count": 0}, "want 1 to")
	s.post("calm", p{}, nil)
	if got := s.view(ann, ann, 0).Faults; got["429"]+got["cut"]+got["duplicate"]+got["slow"] != 0 {
		t.Errorf("after calm: %v", got)
	}
	s.post("fault", p{"kind": "duplicate", "count": 1}, nil)
	s.say(ann, ann, 0, "twice")
	s.await(ann, ann, 0, func(v *simulator.View) bool {
		return cmp.Equal(texts(v), []string{"Ann: twice", "Zeph: echo: twice", "Zeph: echo: twice"}) && v.Faults["duplicate"] == 0
	})
	s.post("fault", p{"kind": "cut", "count": 1}, nil)
	id := s.say(ann, ann, 0, "cut me")
	s.awaitText(ann, ann, 0, "echo: cut me")
	var got simulator.Inspection
	s.await(ann, ann, 0, func(*simulator.View) bool {
		s.get(fmt.Sprintf("inspect?me=%d&chat=%d&message=%d", ann, ann, id), &got)
		return len(got.Calls) > 0
	})
	if c := got.Calls[0]; c.Fault != "cut" || !c.Executed || c.Status != 0 || c.Method != "sendMessage" {
		t.Errorf("call: %+v", c)
	}
}

// memoryOf is an inspector with a fixed memory.
type memoryOf struct {
	story simulator.Story
	err   error
}

func (m *memoryOf) Story(_ context.Context, chat, thread, person string) (simulator.Story, error) {
	out := m.story
	for i := range out.Turns {
		out.Turns[i].State = chat + "/" + thread + "/" + person
	}
	return out, m.err
}

func TestInspect(t *testing.T) {
	t.Parallel()
	long := epoch.Add(24 * time.Hour)
	memory := &memoryOf{story: simulator.Story{Turns: []simulator.StoryTurn{
		{ID: "old", Text: "@zephbot hi", Began: time.Unix(1, 0)},
		{ID: "named", Began: time.Unix(2, 0), Messages: []int{4711}},
		{ID: "worded", Text: "@zephbot hi", Began: long, Steps: []simulator.Step{{Kind: simulator.StepTool, Name: "bash", Rule: "allow ls", By: "Ann", Millis: 12}}},
		{ID: "later", Text: "other", Began: long.Add(time.Minute)},
	}}}
	s := launch(t, func(o *simulator.Options) { o.Inspect = memory })
	s.say(ben, team, deploys, "@zephbot hi")
	m := s.awaitText(ann, team, deploys, "echo: @zephbot hi")
	s.say(cy, team, deploys, "aside")
	var got simulator.Inspection
	s.get(fmt.Sprintf("inspect?me=%d&chat=%d&message=%d", ann, team, m.MessageID), &got)
	if got.Person != ben || got.Turn == nil || got.Turn.ID != "worded" || got.Turn.State != fmt.Sprintf("%d/%d/%d", team, deploys, ben) {
		t.Errorf("inspection: %+v", got)
	}
	if got.Turn != nil && (len(got.Turn.Steps) != 1 || got.Turn.Steps[0].Rule != "allow ls") {
		t.Errorf("steps: %+v", got.Turn.Steps)
	}
	s.await(ann, team, deploys, func(*simulator.View) bool {
		s.get(fmt.Sprintf("inspect?me=%d&chat=%d&message=%d", ann, team, m.MessageID), &got)
		return len(got.Calls) == 1 && got.Calls[0].Method == "sendMessage" && got.Calls[0].Message == m.MessageID
	})
	for _, c := range got.Calls {
		for name, v := range c.Params {
			if strings.Contains(v, s.sim.Fake().Token()) {
				t.Errorf("the token is in %s", name)
			}
		}
	}
	if status, _, raw := s.request(http.MethodGet, fmt.Sprintf("/api/inspect?me=%d&chat=%d&message=1", dora, team), nil, nil); status != http.StatusBadRequest {
		t.Errorf("Dora inspects the group: %d %s", status, raw)
	}
}

func TestInspectProblems(t *testing.T) {
	t.Parallel()
	for name, inspector := range map[string]simulator.Inspector{"": nil, "disk on fire": &memoryOf{err: errors.New("disk on fire")}} {
		s := launch(t, func(o *simulator.Options) { o.Inspect = inspector })
		id := s.say(ann, ann, 0, "hi")
		var got simulator.Inspection
		s.get(fmt.Sprintf("inspect?me=%d&chat=%d&message=%d", ann, ann, id), &got)
		if got.Problem == "" || !strings.Contains(got.Problem, name) || got.Turn != nil {
			t.Errorf("%q: %+v", name, got)
		}
	}
}

func TestBadRequests(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	for _, tc := range []struct {
		path string
		body p
		want string
	}{
		{"say", p{"me": ann, "chat": ann, "text": "  "}, "nothing to send"},
		{"say", p{"me": dora, "chat": team, "text": "x"}, "not in chat"},
		{"say", p{"me": 5, "chat": 5, "text": "x"}, "no user 5"},
		{"say", p{"me": ann, "chat": team, "thread": 99, "text": "x"}, "no topic 99"},
		{"say", p{"me": ann, "chat": ann, "text": "x", "reply_to": 99}, "no message 99"},
		{"say", p{"me": ann, "chat": ann, "files": []p{{"name": "e", "data": ""}}}, "1 byte to 20 MB"},
		{"say", p{"me": ann, "chat": ann, "files": []p{{"name": "e", "data": []byte("x"), "as": "hologram"}}}, "use photo, voice, audio, video or document"},
		{"say", p{"me": ann, "chat": ann, "text": strings.Repeat("x", 4097)}, "4097"},
		{"say", p{"me": ann, "sender": 4}, "unknown field"},
		{"edit", p{"me": ann, "chat": ann, "message": 1, "text": ""}, "needs some text"},
		{"topic", p{"me": ann, "chat": team, "name": " "}, "1 to 128"},
		{"read", p{"me": dora, "chat": team, "message": 1}, "not in chat"},
		{"bot", p{"do": "dance"}, "unknown order"},
	} {
		s.refused(tc.path, tc.body, tc.want)
	}
	for _, tc := range []struct{ path, want string }{
		{"view?me=5&chat=5", "no person 5"},
		{"view?me=1004&chat=-1001", "not in chat"},
		{"view?me=x&chat=1", "not a number"},
		{"inspect?me=1001&chat=1001&message=9", "no message 9"},
	} {
		status, _, raw := s.request(http.MethodGet, "/api/"+tc.path, nil, nil)
		if status != http.StatusBadRequest || !strings.Contains(string(raw), tc.want) {
			t.Errorf("%s: %d %s, want %q", tc.path, status, raw, tc.want)
		}
	}
}

func TestLimit(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	for i := range 3 {
		s.say(ann, team, 0, fmt.Sprint(i))
	}
	var v simulator.View
	s.get(fmt.Sprintf("view?me=%d&chat=%d&limit=2", ann, team), &v)
	if diff := cmp.Diff([]string{"Ann: 1", "Ann: 2"}, texts(&v)); diff != "" || !v.More {
		t.Errorf("more %v (-want +got):\n%s", v.More, diff)
	}
}

// TestReactions: everybody in the chat sees who reacted with what; one person has one reaction to a message, also after
// a restart.
func TestReactions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := launch(t, func(o *simulator.Options) { o.Dir = dir })
	s.say(ben, team, deploys, "@zephbot hi")
	m := s.awaitText(ben, team, deploys, "echo: @zephbot hi")
	for _, emoji := range []string{"👍", "🎉"} {
		s.post("react", p{"me": ben, "chat": team, "message": m.MessageID, "emoji": emoji}, nil)
	}
	s.post("react", p{"me": cy, "chat": team, "message": m.MessageID, "emoji": "👍"}, nil)
	want := []simulator.ViewReaction{{ID: ben, Name: "Ben", Emoji: "🎉"}, {ID: cy, Name: "Cy", Emoji: "👍"}}
	if diff := cmp.Diff(want, s.awaitText(ann, team, deploys, "echo: @zephbot hi").Reacted); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
	s.post("react", p{"me": cy, "chat": team, "message": m.MessageID, "emoji": ""}, nil)
	s.stop()
	s = launch(t, func(o *simulator.Options) { o.Dir = dir })
	if diff := cmp.Diff(want[:1], s.awaitText(ann, team, deploys, "echo: @zephbot hi").Reacted); diff != "" {
		t.Errorf("after a restart (-want +got):\n%s", diff)
	}
	for _, bad := range []p{
		{"me": dora, "chat": team, "message": m.MessageID, "emoji": "👍"},
		{"me": ann, "chat": team, "message": 999, "emoji": "👍"},
		{"me": ann, "chat": team, "message": m.MessageID, "emoji": strings.Repeat("👍", 9)},
	} {
		s.refused("react", bad, "nobody can react")
	}
}
