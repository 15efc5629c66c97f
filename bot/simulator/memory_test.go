package simulator_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot/simulator"
)

// fill makes a bit of everything.
func fill(s *site) {
	s.say(ann, ann, 0, "formats")
	s.await(ann, ann, 0, func(v *simulator.View) bool { return len(v.Messages) == 2 })
	s.say(ann, ann, 0, "ask")
	m := s.awaitText(ann, ann, 0, "✋ May I run this?\nrm *.tmp")
	s.post("press", p{"me": ann, "chat": ann, "message": m.MessageID, "row": 0, "column": 0, "label": "Approve"}, nil)
	s.awaitText(ann, ann, 0, "✅ Approved by Ann")
	s.say(ann, ann, 0, "ask")
	s.await(ann, ann, 0, func(v *simulator.View) bool { return len(v.Messages) == 6 })
	s.say(ann, ann, 0, "file")
	s.await(ann, ann, 0, func(v *simulator.View) bool { return len(v.Messages) == 8 })
	s.post("say", p{"me": ann, "chat": ann, "text": "both", "files": []p{
		{"name": "a.png", "data": picture(4, 3), "as": "photo"}, {"name": "b.png", "data": picture(3, 4), "as": "photo"},
	}}, nil)
	s.post("say", p{"me": ann, "chat": ann, "files": []p{{"name": "v.ogg", "data": []byte("OggS\x00"), "as": "voice", "duration": 3}}}, nil)
	s.say(ann, ann, 0, "photo")
	s.await(ann, ann, 0, func(v *simulator.View) bool {
		return slices.ContainsFunc(v.Messages, func(m simulator.ViewMessage) bool { return m.FromBot && m.Text == "a chart" })
	})
	s.say(ann, ann, 0, "album")
	s.await(ann, ann, 0, func(v *simulator.View) bool {
		last := v.Messages[len(v.Messages)-1]
		return last.FromBot && last.Album != "" && last.Album == v.Messages[len(v.Messages)-2].Album
	})
	s.say(ben, team, deploys, "@zephbot aside")
	s.await(ben, team, deploys, func(v *simulator.View) bool { return v.Messages[len(v.Messages)-1].Ephemeral == 1 })
	s.post("press", p{"me": ben, "chat": team, "alone": 1, "row": 0, "column": 0, "label": "Fine"}, nil)
	s.await(ben, team, deploys, func(v *simulator.View) bool { return len(v.Answers) == 1 })
	s.post("say", p{"me": ben, "chat": team, "thread": deploys, "text": "@zephbot look", "files": []p{{"name": "ä.txt", "mime": "text/plain", "data": []byte("data")}}}, nil)
	s.awaitText(ben, team, 0, "got ä.txt")
	var made struct{ Thread int }
	s.post("topic", p{"me": cy, "chat": team, "name": "Plans"}, &made)
	id := s.say(cy, team, made.Thread, "first")
	s.post("say", p{"me": ben, "chat": team, "thread": made.Thread, "text": "second", "reply_to": id}, nil)
	s.post("edit", p{"me": cy, "chat": team, "message": id, "text": "First!"}, nil)
	gone := s.say(cy, team, made.Thread, "oops")
	s.post("delete", p{"me": cy, "chat": team, "message": gone}, nil)
	s.say(cy, team, made.Thread, "third")
	s.post("read", p{"me": ben, "chat": team, "thread": deploys, "message": 9}, nil)
}

func TestEverythingIsKept(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := launch(t, func(o *simulator.Options) { o.Dir = dir })
	fill(s)
	s.order("stop")
	s.awaitBot("stopped")
	s.say(ann, ann, 0, "while it is down")
	want := map[string]*simulator.View{}
	places := func(s *site, into map[string]*simulator.View) {
		for _, me := range []int64{ann, ben, cy} {
			for _, row := range s.view(me, me, 0).Chats {
				into[fmt.Sprintf("%d %d %d", me, row.Chat, row.Thread)] = s.view(me, row.Chat, row.Thread)
			}
		}
	}
	places(s, want)
	s.stop()

	// The bot stays down at first, so that both pictures are of the same moment.
	again := launch(t, func(o *simulator.Options) {
		o.Dir, o.Pause = dir, stay
		o.Command = waitForFile(t, o.Command, filepath.Join(dir, "go"))
	})
	got := map[string]*simulator.View{}
	places(again, got)
	// What presses were answered with is not kept.
	ignore := cmp.Options{
		cmpopts.IgnoreFields(simulator.View{}, "Version", "Now", "Bot", "Commands", "Answers"), cmpopts.IgnoreUnexported(simulator.View{}),
	}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("after the restart (-want +got):\n%s", diff)
	}
	for _, m := range got[fmt.Sprintf("%d %d 0", ann, ann)].Messages {
		if m.Attachment == nil {
			continue
		}
		_, _, body := again.request(http.MethodGet, fmt.Sprintf("/api/file?me=%d&id=%s", ann, m.Attachment.FileID), nil, nil)
		if m.Attachment.Kind == "document" && string(body) != "<script>alert(1)</script>" || len(body) == 0 {
			t.Errorf("file: %q", body)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again.order("start")
	again.awaitText(ann, ann, 0, "echo: while it is down")
	var pressed struct{ Press string }
	last := 0
	for _, m := range again.view(ann, ann, 0).Messages {
		if m.Keyboard != nil {
			last = m.MessageID
		}
	}
	again.post("press", p{"me": ann, "chat": ann, "message": last, "row": 0, "column": 0, "label": "Approve"}, &pressed)
	again.await(ann, ann, 0, func(v *simulator.View) bool {
		return len(v.Answers) > 0 && v.Answers[len(v.Answers)-1].ID == pressed.Press
	})
}

// TestPressSurvives: a button pressed while the bot is down is answered after the simulator itself has gone and come
// back.
func TestPressSurvives(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := launch(t, func(o *simulator.Options) { o.Dir = dir })
	s.say(ann, ann, 0, "ask")
	m := s.awaitText(ann, ann, 0, "✋ May I run this?\nrm *.tmp")
	s.order("stop")
	s.awaitBot("stopped")
	s.post("press", p{"me": ann, "chat": ann, "message": m.MessageID, "row": 0, "column": 0, "label": "Approve"}, nil)
	s.stop()
	again := launch(t, func(o *simulator.Options) { o.Dir = dir })
	again.awaitText(ann, ann, 0, "✅ Approved by Ann")
	if a := again.view(ann, ann, 0).Answers; len(a) != 1 || a[0].Text != "Thanks, Ann" {
		t.Errorf("answers: %+v", a)
	}
}

// TestStateIsWrittenMeanwhile: the file is there without an orderly end, and a copy of it is a whole world.
func TestStateIsWrittenMeanwhile(t *testing.T) {
	t.Parallel()
	dir, other := t.TempDir(), t.TempDir()
	s := launch(t, func(o *simulator.Options) { o.Dir = dir })
	s.awaitBot("running")
	s.order("stop")
	s.awaitBot("stopped")
	s.say(ann, ann, 0, "kept")
	n := 0
	s.await(ann, ann, 0, func(*simulator.View) bool {
		// Each look makes an event, so that there is a next one while nothing else happens.
		n++
		s.post("read", p{"me": ann, "chat": ann, "message": 1000 + n}, nil)
		raw, err := os.ReadFile(filepath.Join(dir, "simulator.json"))
		if err != nil || !bytes.Contains(raw, []byte(`"kept"`)) {
			return false
		}
		return os.WriteFile(filepath.Join(other, "simulator.json"), raw, 0o600) == nil
	})
	again := launch(t, func(o *simulator.Options) { o.Dir = other })
	again.awaitText(ann, ann, 0, "echo: kept")
}

func TestBrokenState(t *testing.T) {
	t.Parallel()
	body := p{"message_id": 1, "from": p{"id": 1001}, "text": "x", "date": 1, "chat": p{"id": 1001}}
	state := func(chats, more p) string {
		all := p{"version": 2, "next_update": 5, "chats": chats}
		maps.Copy(all, more)
		raw, err := json.Marshal(all)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	with := func(changes p) p {
		out := maps.Clone(body)
		maps.Copy(out, changes)
		return p{"1001": []p{{"body": out, "date": "2026-01-01T00:00:00Z", "plain": true}}}
	}
	document := p{"document": p{"file_id": "F"}}
	file := func(changes p) p {
		out := p{"id": "F", "unique": "U000001", "kind": "document", "sum": strings.Repeat("0", 64)}
		maps.Copy(out, changes)
		return p{"files": []p{out}}
	}
	topic := p{"body": p{"message_id": 8, "from": p{"id": 1001}, "text": "x", "is_topic_message": true, "message_thread_id": 99}, "date": "2026-01-01T00:00:00Z"}
	for name, content := range map[string]string{
		"not JSON":       `{"version": 1, "ch`,
		"empty":          ``,
		"other version":  `{"version": 99}`,
		"gap":            state(with(p{"message_id": 7}), nil),
		"unknown person": state(with(p{"from": p{"id": 5}}), nil),
		"nobody":         state(with(p{"from": nil}), nil),
		"no date":        state(p{"1001": []p{{"body": body}}}, nil),
		"unknown chat":   state(p{"4": []p{}}, nil),
		"unknown topic":  state(p{"-1001": []p{topic}}, nil),
		"lost file":      state(with(document), nil),
		"lost content":   state(with(document), file(nil)),
		"path as file":   state(with(document), file(p{"sum": "../../etc/passwd"})),
		"nameless file":  state(with(document), file(p{"unique": ""})),
		"bad entities":   state(with(p{"entities": []p{{"type": "bold", "offset": 50, "length": 4}}}), nil),
		"bad press":      state(with(nil), p{"presses": []p{{"id": "1", "user": 1001, "chat": 1001, "message": 1, "data": "x"}}}),
		"bad update":     state(with(nil), p{"pending": []any{"x"}}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "simulator.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			log := &lockedBuffer{}
			s := launch(t, func(o *simulator.Options) { o.Dir, o.Log = dir, zerolog.New(log) })
			s.say(ann, ann, 0, "fresh")
			s.awaitText(ann, ann, 0, "echo: fresh")
			if n := len(s.view(ann, ann, 0).Messages); n != 2 {
				t.Errorf("%d messages", n)
			}
			if !strings.Contains(log.String(), "set aside") {
				t.Errorf("not a word about it: %s", log)
			}
			aside, err := filepath.Glob(filepath.Join(dir, "simulator.json.*.broken"))
			if err != nil || len(aside) != 1 {
				t.Fatalf("set aside: %v %v", aside, err)
			}
			if raw, err := os.ReadFile(aside[0]); err != nil || string(raw) != content {
				t.Errorf("the broken file: %q %v", raw, err)
			}
		})
	}
}
