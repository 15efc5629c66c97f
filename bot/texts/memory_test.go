package texts_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/zephbot/zephbot/bot/texts"
)

// memories are the sentences of /memory.
func memories(l string) map[string][]string {
	one := texts.Memory{N: 1, Key: "x", Text: "y", Name: "Ann", At: time.Unix(0, 0)}
	labels := w.MemoryLabels(l)
	refused := []string{}
	for _, why := range []string{"empty", "long", "control", "secret", "full", "gone"} {
		refused = append(refused, w.MemoryRefused(l, why, 5000, 4096))
	}
	return map[string][]string{
		"Memories": {
			w.Memories(l, texts.Memories{}), w.Memories(l, texts.Memories{Shared: true}),
			w.Memories(l, texts.Memories{Shared: true, Page: []texts.Memory{one, {N: 2, Text: "z"}}, From: 1, All: 3, Note: "x"}),
			w.Memories(l, texts.Memories{Page: []texts.Memory{one}, From: 1, All: 1}),
		},
		"MemoryLabels": {labels.Change, labels.Delete, labels.All, labels.Yes, labels.YesAll, labels.Back},
		"MemoryAsk":    {w.MemoryAsk(l, one)}, "MemoryAskAll": {w.MemoryAskAll(l, 1, true), w.MemoryAskAll(l, 2, true), w.MemoryAskAll(l, 1, false), w.MemoryAskAll(l, 5, false)},
		"MemoryHow": {w.MemoryHow(l, one, "x")}, "MemoryDeleted": {w.MemoryDeleted(l)}, "MemoryCleared": {w.MemoryCleared(l, 1), w.MemoryCleared(l, 2)},
		"MemoryEdited": {w.MemoryEdited(l, one)}, "MemoryGone": {w.MemoryGone(l)}, "MemoryNowhere": {w.MemoryNowhere(l)}, "MemoryHelp": {w.MemoryHelp(l)},
		"MemoryOff": {w.MemoryOff(l)}, "MemoryRefused": refused,
	}
}

// TestMemories: a list is short enough for a message, however long what it lists is.
func TestMemories(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
	list := texts.Memories{From: 6, All: 9, Page: []texts.Memory{{N: 6, Key: "tea", Text: "green", Name: "Ann", At: at}, {N: 7, Text: "black", At: at}}}
	want := "What I remember for you, newest first:\n6. tea: green (Ann, 4 Mar 2026)\n7. black (4 Mar 2026)\n6 to 7 of 9."
	if diff := cmp.Diff(want, w.Memories("en", list)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	long := texts.Memory{Key: strings.Repeat("k", 64), Text: strings.Repeat("long ", 900), Name: strings.Repeat("n", 300)}
	list = texts.Memories{Shared: true, All: 99, Page: []texts.Memory{long, long, long, long, long}, Note: "x"}
	for _, language := range w.Languages() {
		for _, text := range []string{w.Memories(language, list), w.MemoryAsk(language, long), w.MemoryHow(language, long, "x"), w.MemoryEdited(language, long)} {
			if n := len([]rune(text)); n > 3000 {
				t.Errorf("%d characters in %s", n, language)
			}
		}
	}
}
