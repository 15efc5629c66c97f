package bot_test

import (
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/bot"
)

// everything is a message in which no field is empty.
func everything() bot.Message {
	return bot.Message{
		ID: "0190", Kind: bot.Text,
		Place:  bot.Place{Channel: "terminal", Bot: "local", Surface: "bot", Chat: "main", Thread: "12", Group: true},
		Caller: "terminal:ann", Person: "ann", Name: "Ann", Username: "ann", Language: "de", Title: "Team", FromBot: true, Text: "/run it", Command: "run", Args: "it", Message: "7",
		Reply: &bot.Quote{ID: "6", Author: "Ben", Own: true, Text: "well?"},
		Files: []bot.Attachment{{Kind: "photo", ID: "f", Name: "a.png", MIME: "image/png", Size: 3, Note: "a cat", Seconds: 4, Album: "9", Still: "s"}},
		Data:  "a1:x:y", Query: "q", Shown: true, Unplaced: true, Unnamed: true, Target: "-6", Status: "joined", Forwarded: true, Hook: "alerts", Addressed: true, Heard: []journal.Heard{{Message: "7", Arrival: "0188"}}, At: time.Date(2026, 3, 1, 12, 0, 0, 5, time.UTC),
	}
}

// TestMessageIsStoredAsEver compares with what an earlier version wrote: rows that wait while the program is updated
// are read by the next version. A failure here means that messageVersion has to rise, and that the old form has to be
// read too.
func TestMessageIsStoredAsEver(t *testing.T) {
	t.Parallel()
	message := everything()
	for v, i := reflect.ValueOf(message), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() && v.Type().Field(i).Tag.Get("json") != "-" {
			t.Errorf("%s is not in the example", v.Type().Field(i).Name)
		}
	}
	golden, err := os.ReadFile("testdata/message.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	raw, err := bot.EncodeMessage(&message)
	if err != nil || string(raw) != strings.TrimSpace(string(golden)) {
		t.Errorf("%v\n%s\nwant\n%s", err, raw, golden)
	}
	for name, stored := range map[string]string{
		"this version":              string(golden),
		"before there were any":     strings.Replace(string(golden), `"v":1,`, "", 1),
		"with a field of the later": strings.Replace(string(golden), `"v":1,`, `"v":1,"mood":"good",`, 1),
	} {
		got, err := bot.MessageDecoder{}.Decode([]byte(stored))
		if diff := cmp.Diff(message, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestMessageThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for stored, foreign := range map[string]bool{
		`{"v":2,"id":"1","kind":"text","place":{"channel":"terminal","chat":"a"}}`: true,
		`{"v":2,"id":7}`:  true, // whatever it is made of
		`{"v":-1}`:        true,
		`{}`:              false,
		`null`:            false,
		`{"v":1,"id":""}`: false,
		`{"v":"1"}`:       false,
		`{`:               false,
		``:                false,
		`{"v":1,"id":"1","kind":"text","place":{"channel":"terminal"}}`: false,
	} {
		got, err := bot.MessageDecoder{}.Decode([]byte(stored))
		if err == nil || errors.Is(err, bot.ErrForeign) != foreign || !cmp.Equal(got, bot.Message{}) {
			t.Errorf("%s: %+v, %v", stored, got, err)
		}
	}
	if raw, err := bot.EncodeMessage(&bot.Message{ID: "1"}); err == nil || raw != nil {
		t.Errorf("half a message is stored as %s", raw)
	}
}

// FuzzMessage: what is read is stored as something that is read as the same.
func FuzzMessage(f *testing.F) {
	message := everything()
	raw, err := bot.EncodeMessage(&message)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw)
	f.Add([]byte(`{"v":3}`))
	f.Add([]byte(`{"id":"1","kind":"press","place":{"channel":"c","chat":"d"},"at":"2026-01-01T00:00:00+01:00"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := bot.MessageDecoder{}.Decode(data)
		if err != nil {
			return
		}
		again, err := bot.EncodeMessage(&first)
		if err != nil {
			t.Fatalf("%+v is not stored: %v", first, err)
		}
		second, err := bot.MessageDecoder{}.Decode(again)
		if err != nil {
			t.Fatalf("%s is not read: %v", again, err)
		}
		one, _ := json.Marshal(first)
		two, _ := json.Marshal(second)
		if string(one) != string(two) {
			t.Errorf("read as %s, then as %s", one, two)
		}
	})
}
