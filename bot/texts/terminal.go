package texts

import (
	"fmt"
	"strconv"
	"strings"
)

// Terminal is what is said at a terminal besides the conversation. Sentences with %s have gaps.
type Terminal struct {
	You      string // who sits there, as who did something
	Welcome  string // below the first line
	Thinking string
	Stopping string
	StopHint string // behind what is being done
	Leave    string // after one Ctrl-C at an empty prompt
	Queued   string // before messages that are sent after the answer
	Waiting  string // number of these
	Context  string // percent of the room that the conversation fills, the room
	Choose   string // below a list of choices
	Why      string // before what the person writes as the reason for a denial
	WhyHint  string
	WhyForm  string // in an editor: what the form asks
	Choices  string // of a question, at a terminal without a screen
	Answer   string // the same of one that can be answered in words
	// AnswerHint is below the choices of a question that can be answered in words.
	AnswerHint string
	Earlier    string // before what was said last
	Other      string // before an answer of another conversation
	Which      string // before the list of conversations
	BuiltIn    string // no model is configured
	Search     string // before what is searched for in the history

	FormHead     string // server, tool
	FormSecret   string // server
	FormHint     string
	FormWrong    string // reason
	FormOptional string
	FormDefault  string // value
	FormConsent  string
	FormLate     string // server
}

// Consumption says what a conversation has used, in a line: the model, how much of so many tokens it fills, what it has
// cost. What is zero is not said.
func (w Words) Consumption(language, model string, tokens, room int, usd float64) string {
	parts := []string{model}
	if tokens > 0 && room > 0 {
		share := min(100, (tokens*100+room/2)/room)
		parts = append(parts, fmt.Sprintf(w.in(language).Terminal.Context, share, inThousands(room)))
	}
	if usd > 0 {
		parts = append(parts, w.Money(language, usd))
	}
	return strings.Join(parts, " · ")
}

// inThousands says a number of tokens roughly: 128k.
func inThousands(n int) string {
	if n < 1000 {
		return strconv.Itoa(n)
	}
	return strconv.Itoa((n+500)/1000) + "k"
}

// Terminal returns what is said at a terminal.
func (w Words) Terminal(language string) Terminal { return w.in(language).Terminal }

// editorBook is what an editor shows of us besides the conversation: the names of the modes, and what each does.
type editorBook struct {
	Ask, AskAbout, Code, CodeAbout, Architect, ArchitectAbout string
}

// EditorMode returns the name of a mode of `zephbot acp`, by its id, and what it does. An unknown one has its id.
func (w Words) EditorMode(language, mode string) (name, about string) {
	b := w.in(language).Editor
	switch mode {
	case "ask":
		return b.Ask, b.AskAbout
	case "code":
		return b.Code, b.CodeAbout
	case "architect":
		return b.Architect, b.ArchitectAbout
	}
	return mode, ""
}
