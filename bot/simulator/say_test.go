package simulator_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/simulator"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/tools/document/documenttest"
)

// a file as the page sends it.
func upload(name, as string, data []byte) p {
	return p{"name": name, "as": as, "data": data}
}

func TestAlbum(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	var made struct{ Messages []int }
	s.post("say", p{"me": ann, "chat": ann, "text": "two of them", "files": []p{
		upload("a.png", "photo", picture(40, 30)), upload("b.png", "photo", picture(30, 40)),
	}}, &made)
	if len(made.Messages) != 2 {
		t.Fatalf("messages %v", made.Messages)
	}
	v := s.await(ann, ann, 0, func(v *simulator.View) bool {
		return len(v.Messages) == 2 && v.Messages[0].Reactions != nil && v.Messages[1].Reactions != nil
	})
	first, second := v.Messages[0], v.Messages[1]
	if first.Album == "" || first.Album != second.Album || first.Text != "two of them" || second.Text != "" {
		t.Errorf("album %q %q, captions %q %q", first.Album, second.Album, first.Text, second.Text)
	}
	if a := second.Attachment; a.Kind != "photo" || a.Width != 30 || a.Height != 40 || a.Size == 0 {
		t.Errorf("photo: %+v", a)
	}
	if diff := cmp.Diff([]string{"👀"}, first.Reactions); diff != "" {
		t.Errorf("reactions (-want +got):\n%s", diff)
	}
	if row := v.Chats[0]; row.LastText != "Photo" {
		t.Errorf("last text %q", row.LastText)
	}
	s.post("say", p{"me": ann, "chat": ann, "files": []p{upload("a.png", "photo", picture(40, 30))}}, nil)
	if m := s.view(ann, ann, 0).Messages[2]; m.Album != "" {
		t.Errorf("one photo is an album %q", m.Album)
	}
}

// TestUploadsThatNoClientSends: nothing of a message is sent when a part of it cannot be.
func TestUploadsThatNoClientSends(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	png := picture(4, 4)
	eleven := slices.Repeat([]p{upload("a", "photo", png)}, 11)
	for name, tc := range map[string]struct {
		files []p
		want  string
	}{
		"no picture":          {[]p{upload("a.png", "photo", []byte("<svg onload=alert(1)>"))}, "no JPEG, PNG or WebP"},
		"a GIF":               {[]p{upload("a.gif", "photo", []byte("GIF89a\x01\x00\x01\x00"))}, "no JPEG, PNG or WebP"},
		"cut picture":         {[]p{upload("a.png", "photo", png[:20])}, "no JPEG, PNG or WebP"},
		"the second is empty": {[]p{upload("a.png", "photo", png), upload("b.png", "photo", nil)}, "1 byte to 20 MB"},
		"the second is none":  {[]p{upload("a.png", "photo", png), upload("b.png", "photo", []byte("x"))}, "no JPEG"},
		"eleven":              {eleven, "at most 10"},
		"kinds":               {[]p{upload("a.png", "photo", png), upload("b.txt", "", []byte("x"))}, "do not go together"},
		"voices":              {[]p{upload("a", "voice", []byte("x")), upload("b", "voice", []byte("x"))}, "one by one"},
		"endless name":        {[]p{upload(strings.Repeat("n", 256), "", []byte("x"))}, "at most 255"},
		"negative":            {[]p{{"name": "v", "as": "voice", "data": []byte("x"), "duration": -1}}, "want 0 to"},
		"unknown":             {[]p{{"name": "v", "kind": "x", "data": []byte("x")}}, "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			s.refused("say", p{"me": ann, "chat": ann, "files": tc.files}, tc.want)
		})
	}
	status, _, raw := s.request(http.MethodPost, "/api/say", p{"me": ann, "chat": ann, "files": []p{upload("a", "", make([]byte, 24<<20))}}, nil)
	if status != http.StatusBadRequest || !bytes.Contains(raw, []byte("too large")) {
		t.Errorf("24 MB: %d %s", status, raw)
	}
	if n := len(s.sim.Fake().Chat(ann)); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
}

// TestHostileFiles: what people and the bot upload never becomes a page, a script or a style of this origin, whatever its
// name and its sender say; what is displayed is found in the content.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	html := []byte("<!doctype html><script>fetch('/api/bot')</script>")
	svg := []byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`)
	for _, tc := range []struct {
		name, mime, as string
		data           []byte
		kind           string
		file           string
	}{
		{"evil.html", "text/html", "", html, "application/octet-stream", "evil.html"},
		{"evil.svg", "image/svg+xml", "", svg, "application/octet-stream", "evil.svg"},
		{"evil.js", "text/javascript", "", []byte("alert(1)"), "application/octet-stream", "evil.js"},
		{"evil.css", "text/css", "", []byte("*{display:none}"), "application/octet-stream", "evil.css"},
		{"evil.pdf", "application/pdf", "", []byte("%PDF-1.7\n<script>"), "application/octet-stream", "evil.pdf"},
		{"page.xml", "application/xhtml+xml", "", []byte(`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"/>`), "application/octet-stream", "page.xml"},
		{"html.png", "image/png", "", html, "application/octet-stream", "html.png"},
		{"polyglot.png", "text/html", "", append(picture(2, 2), html...), "image/png", "polyglot.png"},
		{"polyglot.gif", "text/html", "", append([]byte("GIF89a"), html...), "image/gif", "polyglot.gif"},
		{"v.ogg", "text/html", "voice", append([]byte("OggS\x00"), html...), "audio/ogg", "voice"},
		{"not.ogg", "audio/ogg", "voice", html, "application/octet-stream", "voice"},
		{"../../etc/passwd", "", "", []byte("x"), "application/octet-stream", "passwd"},
		{`..\..\autoexec.bat`, "", "", []byte("x"), "application/octet-stream", "autoexec.bat"},
		{"..", "", "", []byte("x"), "application/octet-stream", "document"},
		{"a\r\nSet-Cookie: x=1\r\n.txt", "", "", []byte("x"), "application/octet-stream", ""},
		{`a"; filename="b.html`, "", "", []byte("x"), "application/octet-stream", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := upload(tc.name, tc.as, tc.data)
			f["mime"] = tc.mime
			s.post("say", p{"me": ann, "chat": ann, "files": []p{f}}, nil)
			list := s.sim.Fake().Chat(ann)
			i := slices.IndexFunc(list, func(m telegramtest.Shown) bool {
				return m.Attachment != nil && (m.Attachment.Name == tc.name || tc.as == "voice" && m.Attachment.Kind == "voice" && int(m.Attachment.Size) == len(tc.data))
			})
			if i < 0 {
				t.Fatal("it was not sent")
			}
			status, head, body := s.request(http.MethodGet, fmt.Sprintf("/api/file?me=%d&id=%s", ann, list[i].Attachment.FileID), nil, nil)
			if status != http.StatusOK || !bytes.Equal(body, tc.data) || head.Get("Content-Type") != tc.kind {
				t.Errorf("%d, %d bytes of type %q, want %d of type %q", status, len(body), head.Get("Content-Type"), len(tc.data), tc.kind)
			}
			if head.Get("X-Content-Type-Options") != "nosniff" || head.Get("Set-Cookie") != "" ||
				head.Get("Content-Security-Policy") != "sandbox; default-src 'none'" || head.Get("Cross-Origin-Resource-Policy") != "same-origin" {
				t.Errorf("headers: %v", head)
			}
			disposition := head.Get("Content-Disposition")
			if !strings.HasPrefix(disposition, "attachment") || tc.file != "" && disposition != "attachment; filename="+tc.file {
				t.Errorf("disposition %q", disposition)
			}
		})
	}
}

// TestPartsOfAFile: a player asks for parts, to go forward and back in a recording.
func TestPartsOfAFile(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.post("say", p{"me": ann, "chat": ann, "files": []p{upload("v.ogg", "voice", []byte("OggS\x00 and so on"))}}, nil)
	path := fmt.Sprintf("/api/file?me=%d&id=%s", ann, s.sim.Fake().Chat(ann)[0].Attachment.FileID)
	status, head, body := s.request(http.MethodGet, path, nil, map[string]string{"Range": "bytes=6-8"})
	if status != http.StatusPartialContent || string(body) != "and" || head.Get("Content-Range") != "bytes 6-8/15" {
		t.Errorf("%d %q %q", status, body, head.Get("Content-Range"))
	}
	if status, _, _ := s.request(http.MethodGet, strings.Replace(path, "me=1001", "me=1002", 1), nil, nil); status != http.StatusNotFound {
		t.Errorf("somebody else's file: %d", status)
	}
}

// TestForOneAlone: an ephemeral message is shown to one person, where it was said, and to nobody else.
func TestForOneAlone(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.say(ben, team, deploys, "@zephbot aside")
	last := func(v *simulator.View) *simulator.ViewMessage { return &v.Messages[len(v.Messages)-1] }
	v := s.await(ben, team, deploys, func(v *simulator.View) bool { return last(v).Ephemeral != 0 })
	if m := last(v); m.Text != "for you alone" || m.MessageID != 0 || !m.FromBot || m.Reply == nil || m.Reply.Name != "Ben" {
		t.Errorf("ephemeral: %+v, reply %+v", m, m.Reply)
	}
	s.say(cy, team, deploys, "and on it goes")
	want := []string{"Ben: @zephbot aside", "Zeph: for you alone", "Cy: and on it goes"}
	if diff := cmp.Diff(want, texts(s.view(ben, team, deploys))); diff != "" {
		t.Errorf("Ben sees (-want +got):\n%s", diff)
	}
	for _, me := range []int64{ann, cy} {
		if diff := cmp.Diff([]string{want[0], want[2]}, texts(s.view(me, team, deploys))); diff != "" {
			t.Errorf("%d sees (-want +got):\n%s", me, diff)
		}
	}
	if n := len(s.view(ben, team, 0).Messages); n != 0 {
		t.Errorf("%d messages in another topic", n)
	}
	button := p{"me": ben, "chat": team, "message": 0, "alone": last(v).Ephemeral, "row": 0, "column": 0, "label": "Fine"}
	var made struct{ Press string }
	s.post("press", button, &made)
	s.await(ben, team, deploys, func(v *simulator.View) bool {
		return len(v.Answers) == 1 && v.Answers[0].ID == made.Press && v.Answers[0].Text == "Thanks, Ben"
	})
	button["me"] = cy
	s.refused("press", button, "gone")
}

// TestReplyToPhoto: who replies to somebody's photo in a group sees it above what they write.
func TestReplyToPhoto(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	s.post("say", p{"me": ann, "chat": team, "files": []p{upload("cat.jpg", "photo", documenttest.JPEG(30, 20))}}, nil)
	photo := s.view(ben, team, 0).Messages[0]
	s.post("say", p{"me": ben, "chat": team, "text": "what is this?", "reply_to": photo.MessageID}, nil)
	m := s.view(ben, team, 0).Messages[1]
	if m.Reply == nil || m.Reply.Picture == "" || m.Reply.Picture != photo.Attachment.FileID || m.Reply.Name != "Ann" || m.Reply.Text != "Photo" {
		t.Fatalf("the reply shows %+v of %+v", m.Reply, photo.Attachment)
	}
	status, _, body := s.request(http.MethodGet, fmt.Sprintf("/api/file?me=%d&id=%s", ben, m.Reply.Picture), nil, nil)
	if status != http.StatusOK || len(body) == 0 {
		t.Errorf("its picture: %d, %d bytes", status, len(body))
	}
}

func TestQuotes(t *testing.T) {
	t.Parallel()
	s := launch(t, nil)
	id := s.say(ann, ann, 0, "a long question with a point")
	s.refused("say", p{"me": ann, "chat": ann, "text": "x", "reply_to": id, "quote": "never said"}, "cannot be quoted")
	s.post("say", p{"me": ann, "chat": ann, "text": "this", "reply_to": id, "quote": "with a point"}, nil)
	if m := s.view(ann, ann, 0).Messages; m[len(m)-1].Quote != "with a point" && m[1].Quote != "with a point" {
		t.Errorf("quote: %+v", m)
	}
	s.say(ann, ann, 0, "quote me")
	if m := s.awaitText(ann, ann, 0, "quoted"); m.Quote != "quote" || m.Reply == nil {
		t.Errorf("the bot's quote: %+v", m)
	}
}
