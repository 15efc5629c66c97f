package app_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rs/zerolog"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/bottest"
	"github.com/zephbot/zephbot/bot/deliver"
	"github.com/zephbot/zephbot/bot/render"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/bot/texts"
)

const (
	askerID int64 = 11
	forumID int64 = -1001234567890
)

// What the strict server refuses for good goes out in the next form that it takes.
func TestRefusedForms(t *testing.T) {
	t.Parallel()
	words, long := texts.Words{}, strings.Repeat("x", 4097)
	bold := []render.Entity{{Type: "bold", Offset: 0, Length: 2}}
	photo := bot.File{Name: "a.png", Type: "image/png", Data: onePixel(t)}
	all := bot.Content{Text: "hi there", Entities: bold, Buttons: [][]bot.Button{{{Label: "Approve", Data: "a1:x:y"}}}}
	wide := bot.Content{Text: "hi there", Entities: bold, Buttons: [][]bot.Button{{{Label: "Approve", Data: strings.Repeat("x", 65)}}}}
	fault := func(method, has, text string) telegramtest.Fault {
		return telegramtest.Fault{Method: method, Kind: telegramtest.Fault400, Has: has, Description: "Bad Request: " + text}
	}
	refuse := func(has string) telegramtest.Fault { return fault("send*", has, "wrong "+has) }
	closed, noFiles := fault("send*", "message_thread_id", "TOPIC_CLOSED"), fault("sendDocument", "", "not enough rights to send documents to the chat")
	wait := telegramtest.Fault{Method: "sendDocument", Kind: telegramtest.Fault429, RetryAfter: 1, Count: 1}
	for name, c := range map[string]struct {
		topic   string
		content bot.Content
		faults  []telegramtest.Fault
		text    string
		left    string
		state   bot.RowState
	}{
		"nothing wrong":      {content: all, text: "hi there", left: "reply bold keys"},
		"topic gone":         {topic: "99", content: all, text: "hi there\n\n" + words.NoTopic(""), left: "bold keys"},
		"topic closed":       {topic: "7", content: all, faults: []telegramtest.Fault{closed}, text: "hi there\n\n" + words.NoTopic(""), left: "bold keys"},
		"topic and format":   {topic: "99", content: all, faults: []telegramtest.Fault{refuse("entities")}, text: "hi there\n\n" + words.NoTopic(""), left: "keys"},
		"reply":              {content: all, faults: []telegramtest.Fault{refuse("reply_parameters")}, text: "hi there", left: "bold keys"},
		"format":             {content: all, faults: []telegramtest.Fault{refuse("entities")}, text: "hi there", left: "keys"},
		"keys too long":      {content: wide, text: "hi there", left: ""},
		"format and keys":    {content: all, faults: []telegramtest.Fault{refuse("entities"), refuse("reply_markup")}, text: "hi there"},
		"text too long":      {content: bot.Content{Text: long}, text: words.AsFile(""), left: "answer.txt"},
		"text and files":     {content: bot.Content{Text: long}, faults: []telegramtest.Fault{noFiles}, text: words.Unsendable("")},
		"file":               {content: bot.Content{Text: "a.txt", File: &bot.File{Name: "a.txt", Data: []byte("x")}}, faults: []telegramtest.Fault{noFiles}, text: words.Unsendable("")},
		"whole answer":       {content: bot.Content{Text: "all", Instead: "none", File: &bot.File{Name: "answer.txt", Data: []byte(long)}}, text: "all", left: "reply answer.txt"},
		"answer, no files":   {content: bot.Content{Text: "all", Instead: "none", File: &bot.File{Name: "answer.txt", Data: []byte(long)}}, faults: []telegramtest.Fault{noFiles}, text: "none"},
		"photo":              {content: bot.Content{Text: "see", File: &photo}, text: "see", left: "reply photo"},
		"photo refused":      {content: bot.Content{Text: "see", File: &photo}, faults: []telegramtest.Fault{fault("sendPhoto", "", "IMAGE_PROCESS_FAILED")}, text: "see", left: "reply a.png"},
		"photo and files":    {content: bot.Content{Text: "see", File: &photo}, faults: []telegramtest.Fault{fault("sendPhoto", "", "IMAGE_PROCESS_FAILED"), noFiles}, text: words.Unsendable("")},
		"nothing to see":     {text: words.Unsendable("")},
		"held up on the way": {content: bot.Content{Text: long}, faults: []telegramtest.Fault{wait}, text: words.AsFile(""), left: "answer.txt"},
		"full topic":         {topic: "99", content: bot.Content{Text: long[:4096]}, text: long[:4096], left: "keys"},
		"everything":         {content: all, faults: []telegramtest.Fault{refuse("")}, state: bot.Unknown},
	} {
		for _, purpose := range []bot.Purpose{bot.Final, bot.Question, bot.Reply} {
			t.Run(name+", "+string(purpose), func(t *testing.T) {
				t.Parallel()
				row := bot.Row{Purpose: purpose, Session: "s", Content: c.content}
				row.Place = bot.Place{Channel: "telegram", Bot: "1", Surface: "bot", Chat: strconv.FormatInt(forumID, 10), Group: true, Thread: c.topic}
				stored, shown := deliverStrictly(t, row, c.faults)
				if c.state != "" {
					if stored.State != c.state {
						t.Errorf("row is %s: %s", stored.State, stored.Problem)
					}
					return
				}
				if stored.State != bot.Sent || (stored.Problem == "") != (strings.Contains(c.left, "reply") && c.left != "reply a.png") {
					t.Errorf("row is %s: %q", stored.State, stored.Problem)
				}
				if diff := cmp.Diff([]string{c.text, c.left}, []string{shown.Text, leftOf(&shown)}); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// onePixel is a picture.
func onePixel(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// leftOf names what a message still has.
func leftOf(m *telegramtest.Shown) string {
	var left []string
	if m.ReplyTo != 0 {
		left = append(left, "reply")
	}
	if len(m.Entities) > 0 {
		left = append(left, "bold")
	}
	if len(m.Keyboard) > 0 {
		left = append(left, "keys")
	}
	if m.Attachment != nil {
		name := m.Attachment.Name
		if name == "" {
			name = m.Attachment.Kind
		}
		left = append(left, name)
	}
	return strings.Join(left, " ")
}

// deliverStrictly sends a row, as an answer to a message, through the client and the strict server. It returns what
// became of the row, and the newest message.
func deliverStrictly(t *testing.T, row bot.Row, faults []telegramtest.Fault) (bot.Row, telegramtest.Shown) {
	t.Helper()
	server := telegramtest.New(telegramtest.Options{PrivacyOff: true})
	t.Cleanup(server.Close)
	server.AddUser(telegramtest.User{ID: askerID, FirstName: "Ann"})
	server.AddGroup(telegramtest.Group{ID: forumID, Title: "Forum", Forum: true, Topics: []telegramtest.Topic{{ID: 7, Name: "Seven"}}, Members: []int64{askerID}})
	url, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range faults {
		server.AddFault(f)
	}
	client, err := telegram.NewClient(telegram.Options{Token: server.Token(), APIURL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	asked, _ := server.Say(askerID, forumID, telegramtest.Message{Text: "please"})
	row.ReplyTo = strconv.Itoa(asked)
	store := bottest.New()
	applied, err := store.Apply(t.Context(), &bot.Change{Send: []bot.Row{row}})
	if err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{}, 16)
	out := deliver.NewOutbox(deliver.Deps{
		Store: store, Sender: client, Pacer: deliver.NewPacer(deliver.Limits{}, deliver.PacerOptions{}), Words: texts.Words{}, Log: zerolog.Nop(),
		Observe: func(bot.Row, string, time.Time) { over <- struct{}{} },
	}, deliver.Options{Channel: "telegram", Bot: "1", Backoff: time.Millisecond})
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- out.Run(ctx) }()
	stored := row
	for stored.State != bot.Sent && stored.State != bot.Unknown && stored.State != bot.Dead {
		<-over
		if stored, err = store.Row(t.Context(), applied.Rows[0]); err != nil {
			t.Fatal(err)
		}
	}
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
	shown := server.Chat(forumID)
	return stored, shown[len(shown)-1]
}
