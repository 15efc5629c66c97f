package app_test

import (
	"strings"
	"testing"

	"github.com/zephbot/zephbot/bot/telegram/telegramtest"
	"github.com/zephbot/zephbot/cmd/internal/app"
	"github.com/zephbot/zephbot/tools/mcp/mcptest"
)

const tidies = `
on "first": call kind:tidy {"text":"%s/one"}
then say First done.
on "second": call kind:tidy {"text":"%s/two"}
then say Second done.
on "third": call kind:tidy {"text":"%s/three"}
then say Third done.
on "fourth": call kind:tidy {"text":"%s/one"}
then say Fourth done.
on "fifth": call kind:tidy {"text":"%s/one"}
then say Fifth done.
`

// TestAttackServerGrants: a yes for a tool of a server ends with the conversation and with the server; so does a rule
// for a call. A server of the same name with another command line, or one that was removed and added once more, has to
// be allowed anew.
func TestAttackServerGrants(t *testing.T) {
	t.Parallel()
	w := begin(t, strings.ReplaceAll(tidies, "%s", t.TempDir()), app.Internet{}, permitted, chatted)
	say := func(text string) { w.fake.Say(1001, 1001, telegramtest.Message{Text: text}) }
	add := func(n int) {
		say("/mcp add kind " + kindServer + " " + string(mcptest.Lie) + " " + t.TempDir())
		w.agree("kind")
		w.says("kind: connected", n)
	}
	cards := func() (n int) {
		for _, m := range w.fake.Chat(1001) {
			if m.FromBot && strings.Contains(m.Text, "kind:tidy") {
				n++
			}
		}
		return n
	}
	add(1)
	say("first")
	w.card("/one")
	w.press("Approve this tool in this conversation")
	w.says("First done.", 1)
	w.says("Tool approved for this conversation by Ann", 1)
	before := cards()
	say("second") // other arguments, and nobody is asked
	w.says("Second done.", 1)
	if now := cards(); now != before {
		t.Errorf("asked again: %d cards, then %d", before, now)
	}
	say("/new")
	w.says("A fresh conversation.", 1)
	say("third")
	w.card("/three")
	w.press("Deny")
	w.says("Third done.", 1)
	say("fourth")
	w.card("/one")
	w.press("Always…")
	w.card("Store this rule for this chat?")
	w.press("Store it")
	w.says("Fourth done.", 1)
	before = cards()
	say("fourth")
	w.says("Fourth done.", 2)
	if now := cards(); now != before {
		t.Errorf("asked again: %d cards, then %d", before, now)
	}
	say("/policy rules")
	w.says("1. kind:tidy: {\"text\":\"", 1)
	say("/mcp remove kind")
	w.says("kind: removed", 1)
	add(2)
	say("fifth")
	w.wait("a question after the rules", func(m telegramtest.Shown) bool { return len(m.Keyboard) > 1 && strings.Contains(m.Text, "/one") })
	w.press("Deny")
	w.says("Fifth done.", 1)
	w.end()
}
