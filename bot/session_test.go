package bot_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot"
)

func TestSessionKey(t *testing.T) {
	t.Parallel()
	type parts struct {
		Channel, Chat, Thread, Person, ChatKey string
		Valid                                  bool
	}
	for key, want := range map[bot.SessionKey]parts{
		"telegram/7/bot/-5/0/0":    {"telegram", "-5", "", "", "telegram/7/bot/-5", true},
		"telegram/7/bot/-5/12/42":  {"telegram", "-5", "12", "42", "telegram/7/bot/-5", true},
		"telegram/7/business/5/0/": {"telegram", "5", "", "", "telegram/7/business/5", false},
		"/7/bot/5/0/0":             {"", "5", "", "", "/7/bot/5", false},
		"telegram/7/bot//0/0":      {"telegram", "", "", "", "telegram/7/bot/", false},
		"telegram/7/bot/5/0":       {},
		"telegram/7/bot/5/0/0/0":   {},
		"mcp/12":                   {},
		"s":                        {},
		"":                         {},
	} {
		got := parts{key.Channel(), key.Chat(), key.Thread(), key.Person(), key.ChatKey(), key.Valid()}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", key, diff)
		}
		parsed, err := bot.ParseSessionKey(string(key))
		if (err == nil) != want.Valid || want.Valid && parsed != key || !want.Valid && parsed != "" {
			t.Errorf("parsed %q as %q: %v", key, parsed, err)
		}
	}
}

func TestSessionKeyOfAPlace(t *testing.T) {
	t.Parallel()
	place := bot.Place{Channel: "telegram", Bot: "7", Surface: "bot", Chat: "-5"}
	topic := place
	topic.Thread = "12"
	for want, got := range map[bot.SessionKey]bot.SessionKey{
		"telegram/7/bot/-5/0/0":   place.SessionKey(""),
		"telegram/7/bot/-5/12/42": topic.SessionKey("42"),
	} {
		if got != want || !got.InChat(place.ChatKey()) || got.ChatKey() != place.ChatKey() {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for _, other := range []bot.SessionKey{"telegram/7/bot/-51/0/0", "telegram/7/bot/-5", "telegram/7/bot/-", ""} {
		if other.InChat(place.ChatKey()) {
			t.Errorf("%q is in chat %s", other, place.ChatKey())
		}
	}
}

func TestSessionKeyWithChat(t *testing.T) {
	t.Parallel()
	for key, want := range map[bot.SessionKey]bot.SessionKey{
		"telegram/7/bot/-5/0/42":  "telegram/7/bot/-6/0/42",
		"telegram/-5/bot/-5/-5/0": "telegram/-5/bot/-6/-5/0",
		"telegram/7/bot/-6/0/0":   "telegram/7/bot/-6/0/0",
		"mcp/12":                  "mcp/12",
		"":                        "",
	} {
		if got := key.WithChat("-6"); got != want {
			t.Errorf("%q with another chat is %q, want %q", key, got, want)
		}
	}
}

func TestCutChat(t *testing.T) {
	t.Parallel()
	type cut struct {
		Key, Rest string
		OK        bool
	}
	for key, want := range map[string]cut{
		"telegram/7/bot/-5":             {"telegram/7/bot/-5", "", true},
		"telegram/7/bot/-5/bash/a1/b/c": {"telegram/7/bot/-5", "/bash/a1/b/c", true},
		"telegram/7/bot":                {"///", "", false},
		"":                              {"///", "", false},
	} {
		place, rest, ok := bot.CutChat(key)
		if diff := cmp.Diff(want, cut{place.ChatKey(), rest, ok}); diff != "" {
			t.Errorf("%q (-want +got):\n%s", key, diff)
		}
	}
}

func TestScopeRange(t *testing.T) {
	t.Parallel()
	for scope, in := range map[string][]bot.SessionKey{
		"telegram/7/bot/-5":      {"telegram/7/bot/-5/0/0", "telegram/7/bot/-5/12/42"},
		"telegram/7/bot/-5/0/42": {"telegram/7/bot/-5/0/42"},
	} {
		low, high := bot.ScopeRange(scope)
		for _, key := range []bot.SessionKey{
			"telegram/7/bot/-5/0/0", "telegram/7/bot/-5/12/42", "telegram/7/bot/-5/0/42", "telegram/7/bot/-5/0/421", "telegram/7/bot/-51/0/0", "telegram/7/bot/-5",
		} {
			want := false
			for _, k := range in {
				want = want || k == key
			}
			if scope == "telegram/7/bot/-5" && key.InChat(scope) {
				want = true
			}
			if got := key >= low && key < high; got != want {
				t.Errorf("%q in %q: %t, want %t", key, scope, got, want)
			}
		}
	}
}

// FuzzSessionKey: what is made of parts can be taken apart again, and nothing that is not a key has parts.
func FuzzSessionKey(f *testing.F) {
	f.Add("telegram/7/bot/-5/0/42", "-6")
	f.Add("telegram/7/bot/-5", "-6")
	f.Add("a//b/c/d/e", "")
	f.Fuzz(func(t *testing.T, text, chat string) {
		key := bot.SessionKey(text)
		parts := strings.Split(text, "/")
		if len(parts) != 6 {
			if key.Valid() || key.Chat() != "" || key.Person() != "" || key.WithChat(chat) != key {
				t.Errorf("%q has parts", text)
			}
			return
		}
		if key.Channel() != parts[0] || key.Chat() != parts[3] || key.ChatKey() != strings.Join(parts[:4], "/") || !key.InChat(key.ChatKey()) {
			t.Errorf("%q: %q %q %q", text, key.Channel(), key.Chat(), key.ChatKey())
		}
		place, rest, ok := bot.CutChat(text)
		if !ok || place.ChatKey() != key.ChatKey() || rest != "/"+parts[4]+"/"+parts[5] {
			t.Errorf("%q is cut into %+v and %q", text, place, rest)
		}
		if !key.Valid() || strings.Contains(chat, "/") || chat == "" {
			return
		}
		place.Thread = key.Thread()
		if place.SessionKey(key.Person()) != key {
			t.Errorf("%q is made again as %q", key, place.SessionKey(key.Person()))
		}
		if moved := key.WithChat(chat); moved.Chat() != chat || moved.WithChat(key.Chat()) != key {
			t.Errorf("%q moved to %q is %q", key, chat, moved)
		}
	})
}

func BenchmarkSessionKey(b *testing.B) {
	b.ReportAllocs()
	key := bot.SessionKey("telegram/7/bot/-5/12/42")
	for b.Loop() {
		if key.Chat() == "" || key.Person() == "" || !key.InChat("telegram/7/bot/-5") {
			b.Fatal("it has none")
		}
	}
}
