package telegram_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot"
	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

const (
	ann   int64 = 11
	bob   int64 = 12
	group int64 = -500
	forum int64 = -1001234567890
)

type world struct {
	*telegramtest.Server
	client *telegram.Client
	url    string
}

// setup is a Bot API server with people and a client of it.
func setup(t *testing.T, timeout time.Duration) *world {
	t.Helper()
	s := telegramtest.New(telegramtest.Options{PrivacyOff: true})
	t.Cleanup(s.Close)
	s.AddUser(telegramtest.User{ID: ann, FirstName: "Ann", LastName: "A", Username: "ann_a", Language: "en"})
	s.AddUser(telegramtest.User{ID: bob, FirstName: "Bob"})
	s.AddPrivate(ann)
	s.AddGroup(telegramtest.Group{ID: group, Title: "Basic", Members: []int64{ann, bob}})
	s.AddGroup(telegramtest.Group{
		ID: forum, Title: "Forum", Forum: true, Topics: []telegramtest.Topic{{ID: 7, Name: "Seven"}}, Members: []int64{ann, bob}, Admins: []int64{s.BotID()},
	})
	url, err := s.Start()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Server: s, url: url}
	w.client = newClient(t, telegram.Options{Token: s.Token(), APIURL: url, Timeout: timeout})
	return w
}

func newClient(t *testing.T, opts telegram.Options) *telegram.Client {
	t.Helper()
	c, err := telegram.NewClient(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// answering is a client of a server that answers everything with the same words.
func answering(t *testing.T, status int, body string) *telegram.Client {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(s.Close)
	return newClient(t, telegram.Options{Token: telegramtest.DefaultToken, APIURL: s.URL})
}

func place(chat string, topic ...string) bot.Place {
	return bot.Place{Channel: "telegram", Bot: "7000000001", Surface: "bot", Chat: chat, Thread: strings.Join(topic, ""), Group: strings.HasPrefix(chat, "-")}
}

func hello(chat string) *bot.Row {
	return &bot.Row{Place: place(chat), Purpose: bot.Final, Content: bot.Content{Text: "hello"}}
}

// refusing is an address where nobody listens.
func refusing(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(context.WithoutCancel(t.Context()), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + l.Addr().String()
}
