package telegram_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/blob/blobtest"
	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// albumRow is a row with several files.
func albumRow(chat string, files ...bot.File) *bot.Row {
	row := hello(chat)
	row.Content = bot.Content{Text: "see", File: &files[0], More: files[1:]}
	return row
}

func TestAlbum(t *testing.T) {
	t.Parallel()
	png := bot.File{Name: "a b.png", Type: "image/png", Data: picture(t, 9, 9, false)}
	odd := bot.File{Name: "odd.png", Type: "image/png", Data: []byte("no picture")}
	song := bot.File{Name: "s.mp3", Type: "audio/mpeg", Data: []byte("ID3")}
	text := bot.File{Name: "ä \"q\".txt", Type: "text/plain", Data: []byte("data")}
	ten := make([]bot.File, 10)
	for i := range ten {
		ten[i] = text
	}
	for name, test := range map[string]struct {
		files []bot.File
		kind  string
	}{
		"photos":            {[]bot.File{png, png}, "photo"},
		"sounds":            {[]bot.File{song, song, song}, "audio"},
		"ten of one name":   {ten, "document"},
		"one is no picture": {[]bot.File{png, odd}, "document"},
		"mixed":             {[]bot.File{text, png, song}, "document"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, time.Minute)
			asked, _ := w.Say(ann, group, telegramtest.Message{Text: "hi"})
			row := albumRow("-500", test.files...)
			row.ReplyTo = strconv.Itoa(asked)
			row.Content.Entities = []render.Entity{{Type: "bold", Offset: 0, Length: 3}}
			first := w.send(t, row)
			if first.Text != "see" || len(first.Entities) != 1 || first.ReplyTo != asked {
				t.Errorf("%+v", first)
			}
			shown := w.Chat(group)[1:]
			if len(shown) != len(test.files) {
				t.Fatalf("%d messages for %d files", len(shown), len(test.files))
			}
			for i, m := range shown {
				if m.Attachment == nil || m.Attachment.Kind != test.kind || (i > 0 && m.Text != "") {
					t.Fatalf("message %d: %+v", i, m)
				}
				data, _ := w.FileData(m.Attachment.FileID)
				if diff := cmp.Diff(test.files[i].Data, data); diff != "" || (test.kind != "photo" && m.Attachment.Name != test.files[i].Name) {
					t.Errorf("file %d is %q: %s", i, m.Attachment.Name, diff)
				}
			}
			row.Content.Text = strings.Repeat("x", 2000)
			if m := w.send(t, row); render.Length(m.Text) != 1024 || len(m.Entities) != 0 {
				t.Errorf("caption of %d", render.Length(m.Text))
			}
			if p := w.Problems(); len(p) > 0 {
				t.Errorf("problems %q", p)
			}
		})
	}
}

// TestAlbumFromWhereItIsKept: a topic has the album too, and what cannot be opened is known before anything is sent.
func TestAlbumFromWhereItIsKept(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	var files blobtest.Store
	w.client = newClient(t, telegram.Options{Token: w.Token(), APIURL: w.url, Files: &files})
	var list []bot.File
	for i := range 3 {
		ref, err := files.Put(t.Context(), "s", strings.NewReader(strings.Repeat(fmt.Sprint(i, "\x00\r\n--"), 9000)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, bot.File{Name: fmt.Sprint(i, ".bin"), Hash: ref.Hash, Size: ref.Size})
	}
	row := albumRow(strconv.FormatInt(forum, 10), list...)
	row.Session, row.Place.Thread = "s", "7"
	w.send(t, row)
	for i, m := range w.Chat(forum) {
		if data, _ := w.FileData(m.Attachment.FileID); !strings.HasPrefix(string(data), fmt.Sprint(i)) || int64(len(data)) != list[i].Size || m.Thread != 7 {
			t.Errorf("message %d in thread %d: %d bytes", i, m.Thread, len(data))
		}
	}
	files.Forget()
	before := len(w.Calls())
	_, err := w.client.Send(t.Context(), row)
	wantError(t, err, bot.Refused)
	if len(w.Calls()) != before {
		t.Error("half an album was sent")
	}
}

func TestOutcomesOfAlbums(t *testing.T) {
	t.Parallel()
	text := bot.File{Name: "a.txt", Data: []byte("data")}
	for name, c := range map[string]struct {
		status int
		body   string
		want   bot.SendOutcome // "" = sent
		id     string
	}{
		"fine":             {status: 200, body: `{"ok":true,"result":[{"message_id":5},{"message_id":6}]}`, id: "5"},
		"sent, answer cut": {status: 200, body: `{"ok":true,"result":[{"message_id":7,"ch`, id: "7"},
		"refused":          {status: 400, body: `{"ok":false,"error_code":400,"description":"Bad Request: group send failed"}`, want: bot.Refused},
		"too large":        {status: 413, body: `{"ok":false,"error_code":413,"description":"Request Entity Too Large"}`, want: bot.Refused},
		"cut":              {status: 200, body: `{"ok`, want: bot.Vague},
		"429":              {status: 429, body: `{"ok":false,"error_code":429,"description":"x","parameters":{"retry_after":7}}`, want: bot.Throttled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			id, err := answering(t, c.status, c.body).Send(t.Context(), albumRow("11", text, text))
			if c.want != "" {
				wantError(t, err, c.want)
				return
			}
			if err != nil || id != c.id {
				t.Errorf("%q, %v", id, err)
			}
		})
	}
}

// TestAlbumIsStrict: the fake refuses what Telegram would, so that the client is held to it.
func TestAlbumIsStrict(t *testing.T) {
	t.Parallel()
	w := setup(t, time.Minute)
	item := func(kind string) string { return `{"type":"` + kind + `","media":"attach://a"}` }
	for media, want := range map[string]string{
		"[" + item("document") + "]": "2-10",
		"[" + strings.Repeat(item("document")+",", 10) + item("document") + "]": "2-10",
		"[" + item("document") + "," + item("photo") + "]":                      "can't be mixed",
		"[" + item("voice") + "," + item("voice") + "]":                         "not supported",
		`[{"type":"photo","media":"attach://a","kaption":"x"},` + item("photo"): "can't parse",
		`[{"type":"photo","media":"attach://none"},` + item("photo") + "]":      "wrong remote file",
	} {
		got := callForm(t, w, "sendMediaGroup", map[string]string{"chat_id": "11", "media": media})
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", media, got)
		}
	}
	if shown := w.Chat(ann); slices.ContainsFunc(shown, func(m telegramtest.Shown) bool { return m.FromBot }) {
		t.Errorf("something was sent: %+v", shown)
	}
}

// callForm calls a method with form values and returns the body of the answer.
func callForm(t *testing.T, w *world, method string, values map[string]string) string {
	t.Helper()
	query := make([]string, 0, len(values))
	form := make(map[string][]string, len(values))
	for k, v := range values {
		form[k], query = []string{v}, append(query, k)
	}
	resp, err := http.PostForm(w.url+"/bot"+w.Token()+"/"+method, form) //nolint:noctx // of a test
	if err != nil {
		t.Fatal(err, query)
	}
	defer func() { _ = resp.Body.Close() }()
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		n, err := resp.Body.Read(buf)
		b.Write(buf[:n])
		if err != nil {
			return b.String()
		}
	}
}
