package texts

// Terminal is what is said at a terminal besides the conversation. Sentences with %s have gaps.
type Terminal struct {
	Welcome  string // below the first line
	Thinking string
	Stopping string
	StopHint string // behind what is being done
	Leave    string // after one Ctrl-C at an empty prompt
	Queued   string // before messages that are sent after the answer
	Choose   string // below a list of choices
	Why      string // before what the person writes as the reason for a denial
	WhyHint  string
	WhyForm  string // in an editor: what the form asks
	Choices  string // of a question, at a terminal without a screen
	Earlier  string // before what was said last
	Other    string // before an answer of another conversation
	Which    string // before the list of conversations
	BuiltIn  string // no model is configured
	Search   string // before what is searched for in the history

	FormHead     string // server, tool
	FormSecret   string // server
	FormHint     string
	FormWrong    string // reason
	FormOptional string
	FormDefault  string // value
	FormConsent  string
	FormLate     string // server
}

// Terminal returns what is said at a terminal.
func (w Words) Terminal(language string) Terminal { return w.in(language).Terminal }
