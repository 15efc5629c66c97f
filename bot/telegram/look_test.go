package telegram_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/zephbot/zephbot/bot/telegram"
	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
)

// TestAwait: who sends the wanted text in private is found, among other messages; nothing is confirmed.
func TestAwait(t *testing.T) {
	t.Parallel()
	w := setup(t, 10*time.Second)
	w.Say(bob, group, telegramtest.Message{Text: "/start CODE"}) // anybody in the group reads it
	w.AddPrivate(bob)
	w.Say(bob, bob, telegramtest.Message{Text: "/start other"})
	found := make(chan telegram.Visitor, 1)
	failed := make(chan error, 1)
	go func() { // ends with the test
		who, err := w.client.Await(t.Context(), func(text string) bool { return text == "/start CODE" }, time.Millisecond)
		failed <- err
		found <- who
	}()
	if err := w.WaitFor(t.Context(), func() bool { return len(w.CallsOf("getUpdates")) > 1 }); err != nil {
		t.Fatal(err)
	}
	w.Say(ann, ann, telegramtest.Message{Text: "/start CODE"})
	if err, who := <-failed, <-found; err != nil || who.ID != ann || who.Name != "Ann A" {
		t.Errorf("%+v %v", who, err)
	}
	if w.PendingUpdates() != 3 {
		t.Errorf("%d updates are left", w.PendingUpdates())
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := w.client.Await(ended, func(string) bool { return false }, time.Millisecond); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for range 100 {
		w.Say(ann, ann, telegramtest.Message{Text: "x"})
	}
	if _, err := w.client.Await(t.Context(), func(string) bool { return false }, time.Millisecond); !errors.Is(err, telegram.ErrBacklog) {
		t.Error(err)
	}
}

// TestFaults: a wrong token, a webhook and a server that is away are told apart.
func TestFaults(t *testing.T) {
	t.Parallel()
	w := setup(t, 10*time.Second)
	me := func(token, url string) telegram.Fault {
		_, err := newClient(t, telegram.Options{Token: token, APIURL: url, Timeout: 10 * time.Second}).Me(t.Context())
		return telegram.FaultOf(err)
	}
	if f := me(w.Token(), w.url); f != telegram.NoFault {
		t.Error(f)
	}
	if f := me("123456:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", w.url); f != telegram.WrongToken {
		t.Error(f)
	}
	if f := me(w.Token(), "http://127.0.0.1:1"); f != telegram.Unreachable {
		t.Error(f)
	}
	w.AddFault(telegramtest.Fault{Method: "getUpdates", Kind: telegramtest.Fault409, Count: 2})
	if rival, err := w.client.Rival(t.Context(), time.Second); !rival || err != nil {
		t.Errorf("%v %v", rival, err)
	}
	if _, err := w.client.Await(t.Context(), nil, time.Millisecond); telegram.FaultOf(err) != telegram.Conflict {
		t.Error(err)
	}
	w.AddFault(telegramtest.Fault{Method: "getMe", Kind: telegramtest.Fault429, Count: 1})
	if f := me(w.Token(), w.url); f != telegram.Busy {
		t.Error(f)
	}
	w.AddFault(telegramtest.Fault{Method: "getMe", Kind: telegramtest.Fault502, Count: 1})
	if f := me(w.Token(), w.url); f != telegram.Unreachable {
		t.Error(f)
	}
	if ahead, ok := w.client.Clock(t.Context(), func() time.Time { return time.Now().Add(time.Hour) }); !ok || ahead < 59*time.Minute || ahead > 61*time.Minute {
		t.Errorf("%v %v", ahead, ok)
	}
}
