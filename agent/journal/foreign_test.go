package journal_test

import (
	"testing"

	"github.com/zephbot/zephbot/agent/journal"
	"github.com/zephbot/zephbot/agent/llm"
)

// TestForeign: what a conversation contains that nobody in it has written is known until it begins anew, also when only
// its end is read.
func TestForeign(t *testing.T) {
	t.Parallel()
	user := func(e journal.Entry) journal.Entry {
		e.Turn, e.Kind = "t", journal.UserEntry
		return e
	}
	result := func(e journal.Entry) journal.Entry {
		e.Turn, e.Kind = "t", journal.ResultEntry
		return e
	}
	for name, tt := range map[string]struct {
		entries []journal.Entry
		want    string
	}{
		"words":                 {[]journal.Entry{user(journal.Entry{Text: "tea"})}, ""},
		"own message, quoted":   {[]journal.Entry{user(journal.Entry{Quote: &journal.Quote{Own: true}})}, ""},
		"somebody's, quoted":    {[]journal.Entry{user(journal.Entry{Quote: &journal.Quote{}})}, "a quoted message"},
		"said in the group":     {[]journal.Entry{user(journal.Entry{Talk: []journal.Remark{{Text: "x"}}})}, "what was said in the group"},
		"forwarded":             {[]journal.Entry{user(journal.Entry{Foreign: "a forwarded message"})}, "a forwarded message"},
		"news":                  {[]journal.Entry{user(journal.Entry{News: "x"})}, "a command in the background"},
		"a file":                {[]journal.Entry{user(journal.Entry{Parts: []llm.Part{{Kind: llm.ImagePart}}})}, "an attached file"},
		"their voice":           {[]journal.Entry{user(journal.Entry{Parts: []llm.Part{{Kind: llm.TextPart, Own: true}}})}, ""},
		"reminded":              {[]journal.Entry{user(journal.Entry{Recalled: &journal.Recalled{Text: "x"}})}, ""},
		"a page":                {[]journal.Entry{result(journal.Entry{Tool: "x", Source: "https://a", Brought: true}), user(journal.Entry{Text: "tea"})}, "https://a"},
		"a tool's own words":    {[]journal.Entry{result(journal.Entry{Tool: "x", Source: "memory"})}, ""},
		"output":                {[]journal.Entry{result(journal.Entry{Tool: "x", Brought: true})}, "x"},
		"output, begun anew":    {[]journal.Entry{result(journal.Entry{Tool: "x", Brought: true}), {Kind: journal.SummaryEntry}}, ""},
		"output, then a legend": {[]journal.Entry{result(journal.Entry{Tool: "x", Brought: true}), {Kind: journal.SummaryEntry, Text: "s", State: &journal.ConversationState{Foreign: "x"}}}, "x"},
	} {
		if got := written(journal.ConversationState{}, tt.entries).Foreign; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	flagged := written(journal.ConversationState{}, []journal.Entry{user(journal.Entry{Flagged: true, Recalled: &journal.Recalled{Text: "x"}})})
	if flagged.Suspicious != "memory" {
		t.Errorf("flagged by %q", flagged.Suspicious)
	}
}
