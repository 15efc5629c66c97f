package texts_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"testing"

	"github.com/zephbot/zephbot/agent/llm"
	"github.com/zephbot/zephbot/agent/llm/offline"
	"github.com/zephbot/zephbot/bot/texts/languages"
)

var (
	proposes = regexp.MustCompile(`(?:for example|zum Beispiel|por ejemplo|например): ((?:[^\\"]|\\[^n])*)`)
	quoted   = regexp.MustCompile(`[“„«]([^“”„«»]+)[”“»]`)
)

// proposed are the sentences that the texts of a language propose to say, in the order of the texts.
func proposed(t *testing.T, tag string) []string {
	t.Helper()
	raw, err := languages.Files.ReadFile(tag + ".toml")
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, m := range proposes.FindAllStringSubmatch(string(raw), -1) {
		sentences := quoted.FindAllStringSubmatch(m[1], -1)
		if sentences == nil {
			sentences = [][]string{m}
		}
		for _, s := range sentences {
			list = append(list, s[1])
		}
	}
	return list
}

// action is what the built-in model does when somebody says a text; "" = nothing.
func action(t *testing.T, text string) string {
	t.Helper()
	req := &llm.Request{Messages: []llm.Message{{Role: llm.User, Text: text}}}
	for _, name := range []string{"list_directory", "schedule_deferred", "schedule_periodic", "read", "write", "bash"} {
		req.Tools = append(req.Tools, llm.Tool{Name: name})
	}
	res, err := offline.New(offline.Options{}).Chat(t.Context(), req, nil)
	if err != nil {
		t.Fatal(err)
	}
	var did string
	for _, use := range res.Uses {
		var args struct {
			Path  string
			RunAt string `json:"run_at"`
			Cron  string
		}
		if err := json.Unmarshal(use.Args, &args); err != nil {
			t.Fatal(err)
		}
		did += fmt.Sprint(use.Name, args)
	}
	return did
}

// TestProposedSentencesAreUnderstood: whoever says word for word what the bot proposes, in any language, gets it done by
// the built-in model too, as in English.
func TestProposedSentencesAreUnderstood(t *testing.T) {
	t.Parallel()
	english := proposed(t, languages.Standard)
	if len(english) == 0 {
		t.Fatal("no text proposes a sentence")
	}
	for _, tag := range languages.Tags() {
		said := proposed(t, tag)
		if len(said) != len(english) {
			t.Errorf("%s proposes %q, English %q", tag, said, english)
			continue
		}
		for i, text := range said {
			if got, want := action(t, text), action(t, english[i]); got != want || got == "" {
				t.Errorf("%s: %q does %q; %q does %q", tag, text, got, english[i], want)
			}
		}
	}
}
