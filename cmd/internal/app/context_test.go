package app_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/zephbot/zephbot/cmd/internal/apptest"
)

// longTalk is a scenario of so many messages and answers, in the first of which something is decided. The model sums up
// only if it is sent what was decided, in the conversation or in the earlier summary.
func longTalk(turns int) *txtar.Archive {
	const config = "[agent]\ncontext_budget_tokens = 32000\n"
	const model = `on "The earlier summary:": expect "Heron"
and say Decisions: 2026-03-01: the project is called Heron.\nOpen tasks: Ann draws the logo.\nNames: src/heron.go
on "The conversation:": expect "Heron"
and say Decisions: 2026-03-01: the project is called Heron.\nOpen tasks: Ann draws the logo.\nNames: src/heron.go
on "what is it called": say Heron, as decided first
on "look": call bash {"command":"seq 1 400"}
then say I saw 400 lines
on "note": say Noted
on "call it Heron": say Agreed
on "draws the logo": say Waiting for Ann
`
	var chat strings.Builder
	chat.WriteString("ben: let us call it Heron\nbot@ben: Agreed\nben: Ann draws the logo, for src/heron.go\nbot@ben: Waiting for Ann\n")
	for i := range turns {
		fmt.Fprintf(&chat, "ben: note %d {60×word %d and more }\nbot@ben: /^(Noted|.*has become long.*)$/\nidle\n", i, i)
		if i == 2 {
			chat.WriteString("ben: look\nbot@ben: /May I run this/\npress ben@ben \"Approve once\"\nbot@ben: I saw 400 lines\n")
		}
	}
	// Each turn has ended before the next message, and its line above was the bot's next message, so one that is left is the
	// answer to the last note: somewhere in between, the person was told once that there is a summary. Without a summary
	// nothing would be left, with two such messages one more.
	chat.WriteString("bot@ben: Noted\nsilent@ben\nben: what is it called?\nbot@ben: Heron, as decided first\nsilent@ben\n")
	return &txtar.Archive{Files: []txtar.File{
		{Name: "config", Data: []byte(config)}, {Name: "model", Data: []byte(model)}, {Name: "chat", Data: []byte(chat.String())},
	}}
}

// TestLongConversation: a conversation of more than 200 messages keeps going, and the model still reads what was decided
// first, what is open and the names.
func TestLongConversation(t *testing.T) {
	t.Parallel()
	archive := longTalk(104)
	archive.Files[2].Data = append(archive.Files[2].Data, "model saw /The conversation:.*let us call it Heron.*Ann draws the logo, for src.heron.go/\nmodel saw /summary of the conversation before this, material.*Heron.*Ann draws the logo.*src.heron.go.*what is it called/\nmodel not saw /call it Heron.*what is it called/\n"...)
	apptest.Play(t, archive)
}
